"""The HTTP server of a viewer: on the loopback interface, with a token in its URL."""

from __future__ import annotations

import asyncio
import errno
import hmac
import logging
import secrets
import threading
from collections.abc import Callable
from typing import Any

from bokeh.document import Document
from bokeh.server.auth_provider import AuthProvider
from panel.io.server import get_server
from panel.io.state import set_curdoc
from tornado.ioloop import IOLoop
from tornado.web import RequestHandler

from ambar.viewer.background import stop_tasks

ADDRESS = "127.0.0.1"
_CLOSING_SECONDS = 0.1
"""The time in which browsers learn that the server ends."""
logging.getLogger("bokeh.server.util").setLevel(logging.ERROR)  # it warns of the origin "*"


class Server:
    """A server of one page, in a thread; each visitor gets a page of their own.

    Requests without the token get the status 403: pages and websockets. Any origin is accepted,
    because a page of another site does not know the token, and ports differ behind a tunnel.

    Parameters
    ----------
    make_page
        Returns what Panel can show; called for each visitor, in the thread of the server.
    title
        The title of the page.
    port
        The port; 0 for a free one.

    Raises
    ------
    OSError
        If the port is in use.
    Exception
        That of `make_page`, which is called once before.
    """

    def __init__(self, make_page: Callable[[], Any], title: str, port: int = 0) -> None:
        self._token = secrets.token_urlsafe(24)
        self._thread = threading.Thread(
            target=self._run, args=(make_page, title, port), name="ambar-viewer", daemon=True
        )
        self._has_started = threading.Event()
        self._error: Exception | None = None
        self._first = Document()
        """The document of the page that is made before the first visitor."""
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
        documents = [session.document for session in self._server.get_sessions()]
        for document in [self._first, *documents]:
            stop_tasks(document)
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
        with set_curdoc(self._first):
            make_page()  # so that errors are known, modules imported and the first tiles read
        self._server = get_server(
            {"/": make_page},
            port=port,
            address=ADDRESS,
            loop=self._loop,
            title=title,
            websocket_origin="*",
            auth_provider=_TokenAuth(self._token),
            websocket_max_message_size=16 << 20,
        )
        self.port = self._server.port
        self._server.start()
        self._loop.add_callback(self._has_started.set)


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
