"""What `ambar.view` and the methods `.view()` return: a page in the browser or in a notebook."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from ambar._core import InvalidError
from ambar._util.optional import require

if TYPE_CHECKING:
    from ambar.viewer.server import Server

_FRAME = '<iframe src="{url}" width="100%" height="{height}" style="border: 0"></iframe>'


class Viewer:
    """A page that shows data in the browser; in a notebook the page is a widget.

    The page reads what the screen shows, and what may be shown next. Its server runs in a thread of
    this process, accepts connections from this machine only, and expects the token in its URL.

    Examples
    --------
    >>> viewer = ambar.view("run.ambar").serve(browser=False)
    >>> viewer.url
    'http://127.0.0.1:.../?token=...'
    >>> viewer.stop()
    """

    def __init__(self, make_page: Callable[[], Any], title: str) -> None:
        require("panel", purpose="the viewer", install="ambar[view]")
        self._make_page = make_page
        self._title = title
        self._server: Server | None = None

    def serve(self, port: int = 0, *, browser: bool = True) -> Self:
        """Start the server if it does not run yet, and open the page in a browser.

        Parameters
        ----------
        port : int, default 0
            The port of the loopback interface; 0 for a free one.
        browser : bool, default True
            Whether to open the page in the default browser.

        Returns
        -------
        Viewer
            This one.

        Raises
        ------
        OSError
            If the port is in use.

        Examples
        --------
        >>> with ambar.view("run.ambar").serve(browser=False) as viewer:
        ...     print(viewer.url)
        http://127.0.0.1:.../?token=...
        """
        if self._server is None:
            from ambar.viewer.server import Server

            self._server = Server(self._make_page, self._title, port)
        if browser:
            webbrowser.open(self.url)
        return self

    @property
    def url(self) -> str:
        """The URL of the page with the token; raises ValueError if the server does not run."""
        return self._running.url

    def wait(self) -> None:
        """Wait until the server ends, or for Ctrl-C, which raises KeyboardInterrupt.

        Examples
        --------
        >>> import threading
        >>> viewer = ambar.view("run.ambar").serve(browser=False)
        >>> threading.Timer(0.1, viewer.stop).start()
        >>> viewer.wait()
        """
        self._running.wait()

    def stop(self) -> None:
        """End the server; open pages report that they have lost it.

        Examples
        --------
        >>> viewer = ambar.view("run.ambar").serve(browser=False)
        >>> viewer.stop()
        """
        if self._server is not None:
            self._server.stop()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        """Return the title, and the URL if the server runs."""
        where = "not served yet" if self._server is None else self.url
        return f"<ambar.Viewer> {self._title}: {where}"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return the page as a widget, for notebooks."""
        self.serve(browser=False)
        return {"text/plain": repr(self), "text/html": _FRAME.format(url=self.url, height=760)}

    @property
    def _running(self) -> Server:
        if self._server is None:
            raise InvalidError(f"{self._title}: the viewer is not served; call serve() first")
        return self._server
