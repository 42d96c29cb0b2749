"""The HTTP server of a viewer: on the loopback interface, with a token in its URL."""

from __future__ import annotations

import asyncio
import errno
import hmac
import logging
import secrets
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import panel as pn
from bokeh.protocol.message import Message
from bokeh.server.auth_provider import AuthProvider
from bokeh.server.session import ServerSession
from bokeh.server.tornado import BokehTornado
from bokeh.util.token import generate_jwt_token, generate_session_id
from panel.io.document import dispatch_tornado
from panel.io.server import DocHandler, WSHandler, get_server
from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine
from tornado.ioloop import IOLoop
from tornado.web import RequestHandler
from tornado.websocket import WebSocketClosedError

from ambar.viewer.background import stop_tasks

ADDRESS = "127.0.0.1"
_CLOSING_SECONDS = 0.1
"""The time in which browsers learn that the server ends."""
_OPENING_SECONDS = 60
"""The time that a browser has to connect to a page, for example through a slow tunnel."""
_TOKEN_SECONDS = 10 * 365 * 86400
"""The time in which a page that was made can be opened; Bokeh signs it."""
logging.getLogger("bokeh.server.util").setLevel(logging.ERROR)  # it warns of the origin "*"


class Server:
    """A server of one page, in a thread; each visitor gets a page of their own.

    Requests without the token get the status 403: pages and websockets. Any origin is accepted,
    because a page of another site does not know the token, and ports differ behind a tunnel.

    Parameters
    ----------
    make_page
        Returns what Panel can show; called for each visitor, in the thread of the server. The page
        of the first visitor is made when the server starts.
    title
        The title of the page.
    port
        The port; 0 for a free one.

    Raises
    ------
    OSError
        If the port is in use.
    Exception
        That of the first call of `make_page`.
    """

    def __init__(self, make_page: Callable[[], Any], title: str, port: int = 0) -> None:
        self._token = secrets.token_urlsafe(24)
        self._thread = threading.Thread(
            target=self._run, args=(make_page, title, port), name="ambar-viewer", daemon=True
        )
        self._has_started = threading.Event()
        self._error: Exception | None = None
        self._loop: IOLoop
        self._server: Any
        self.port = port
        self._thread.start()
        self._has_started.wait()
        if self._error is not None:
            raise self._error

    @property
    def url(self) -> str:
        """The URL of the page, with the token."""
        return f"http://{ADDRESS}:{self.port}/?token={self._token}"

    def wait(self) -> None:
        """Wait until the server ends."""
        while self._thread.is_alive():
            self._thread.join(0.2)  # lets Ctrl-C through

    def stop(self) -> None:
        """End the server, and the connections of open pages."""
        self._loop.add_callback(self._end)
        self._thread.join()

    def _end(self) -> None:
        for session in self._server.get_sessions():
            stop_tasks(session.document)
        for connection in list(self._server._tornado._clients):
            connection._socket.close()
        self._server.stop()
        self._loop.call_later(_CLOSING_SECONDS, self._loop.stop)

    def _run(self, make_page: Callable[[], Any], title: str, port: int) -> None:
        asyncio.set_event_loop(asyncio.new_event_loop())
        self._loop = IOLoop.current()
        try:
            self._start(make_page, title, port)
        except Exception as error:
            self._error = error
            if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
                message = f"the port {port} is in use; choose another port, or 0 for a free one"
                self._error = OSError(error.errno, message)
            self._has_started.set()
        else:
            self._loop.start()
        finally:
            self._loop.close(all_fds=True)

    def _start(self, make_page: Callable[[], Any], title: str, port: int) -> None:
        def make() -> Any:
            try:
                return make_page()
            except Exception as error:
                if self._has_started.is_set():
                    raise
                self._error = error  # Panel would log it
                return pn.Row()

        self._server = get_server(
            {"/": make},
            port=port,
            address=ADDRESS,
            loop=self._loop,
            title=title,
            websocket_origin="*",
            auth_provider=_TokenAuth(self._token),
            websocket_max_message_size=16 << 20,
            session_token_expiration=_TOKEN_SECONDS,
            unused_session_lifetime_milliseconds=_OPENING_SECONDS * 1000,
        )
        self.port = self._server.port
        tornado = self._server._tornado
        first = self._loop.run_sync(partial(_new_session, tornado))
        if self._error is not None:
            raise self._error
        options = {
            "application_context": tornado._applications["/"],
            "bokeh_websocket_path": "/ws",
        }
        page = ("/", _PageHandler, {**options, "first": [first]})
        tornado.add_handlers(".*", [page, ("/ws", _SocketHandler, options)])
        self._server.start()
        self._loop.add_callback(self._has_started.set)


async def _new_session(tornado: BokehTornado) -> ServerSession:
    """Return a session before its visitor comes; its page reads the first picture."""
    session_id = generate_session_id(signed=tornado.sign_sessions, secret_key=tornado.secret_key)
    token = generate_jwt_token(
        session_id,
        signed=tornado.sign_sessions,
        secret_key=tornado.secret_key,
        expiration=tornado.session_token_expiration,
    )
    request = HTTPServerRequest(
        start_line=RequestStartLine("GET", "/", "HTTP/1.1"), headers=HTTPHeaders({"Host": ADDRESS})
    )
    context = tornado._applications["/"]
    session = await context.create_session_if_needed(session_id, request, token)
    session.block_expiration()
    return session


class _PageHandler(DocHandler):  # type: ignore[misc]
    """Returns the page; the first visitor gets the session that has been made before."""

    def initialize(self, first: list[ServerSession], **_: object) -> None:
        self._first = first

    async def get_session(self) -> ServerSession:
        if self._first and "theme" not in self.request.arguments:
            session = self._first.pop()
            # As old as the server, it would be discarded before the browser connects.
            IOLoop.current().call_later(_OPENING_SECONDS, session.unblock_expiration)
            return session
        return await super().get_session()


class _SocketHandler(WSHandler):  # type: ignore[misc]
    """Writes each message to the websocket when it is created.

    The browser needs messages in this order: a later one refers to models that an earlier one adds.
    Bokeh writes its messages after the callback that created them, but Panel writes in the callback
    (`panel.io.unlocked`) unless Bokeh is writing. No message waits here, so none is overtaken.
    """

    def send_message(self, message: Message[Any]) -> asyncio.Future[list[Any]]:
        """Write a message; Bokeh awaits the future before it runs the next callback."""
        try:
            written = dispatch_tornado(self.connection, msg=message)
        except WebSocketClosedError:  # in the middle of the message; `on_close` follows
            written = []
        return asyncio.gather(*written, return_exceptions=True)


class _TokenAuth(AuthProvider):  # type: ignore[misc]
    """Accepts the requests whose query has the token; Bokeh repeats it for the websocket."""

    def __init__(self, token: str) -> None:
        self._token = token
        super().__init__()

    @property
    def get_user(self) -> Callable[[RequestHandler], str | None]:
        return self._user

    @property
    def login_url(self) -> str:
        return "/refused"

    @property
    def login_handler(self) -> type[RequestHandler]:
        return _Refusal

    @property
    def get_user_async(self) -> None:
        return None

    @property
    def get_login_url(self) -> None:
        return None

    @property
    def logout_url(self) -> None:
        return None

    @property
    def logout_handler(self) -> None:
        return None

    def _user(self, request: RequestHandler) -> str | None:
        given = request.get_query_argument("token", "")
        return "owner" if hmac.compare_digest(given.encode(), self._token.encode()) else None


class _Refusal(RequestHandler):  # type: ignore[misc]
    """The answer to requests without the token."""

    def get(self) -> None:
        self.set_status(403)
        self.finish(
            "ambar: the URL has no valid token. Open the complete URL that `ambar view` printed."
        )
