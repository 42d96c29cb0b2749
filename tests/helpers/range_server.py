"""An HTTP server on loopback that serves parts of files, and misbehaves on request."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote, urlsplit


@dataclass
class RangeServer:
    """Serves the files below `root`; a context manager."""

    root: Path
    ranges: bool = True
    """Whether parts of files are served."""
    suffixes: bool = True
    """Whether parts counted from the end are served."""
    tags: bool = True
    """Whether files have entity tags, and requests for one that has gone are refused."""
    refuse: int = 0
    """The status of every answer, if it is not 0."""
    failures: int = 0
    """How many of the next requests fail with status 503."""
    delay: float = 0.0
    """Seconds before an answer."""
    rate: float = 0.0
    """Bytes a second of a connection; 0 for no limit."""
    silent: bool = False
    """Whether it takes requests and never answers."""
    log: list[tuple[str, str]] = field(default_factory=list)
    """Method or range, and path, of the requests so far."""
    stopped: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> RangeServer:
        outer = self

        class Handler(_Handler):
            server_of = outer

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def take(self) -> list[str]:
        """Return the ranges asked for since the last call."""
        taken = [what for what, _ in self.log]
        self.log.clear()
        return taken


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: RangeServer

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _refusal(self, path: Path, tag: str, wanted: str | None) -> int:
        """Return the status of an answer without content; 0 where there is content."""
        server = self.server_of
        if server.failures:
            server.failures -= 1
            return 503
        if server.refuse or not path.is_file():
            return server.refuse or 404
        if server.tags and self.headers.get("If-Match", tag) != tag:
            return 412
        from_end = server.ranges and wanted is not None and wanted.startswith("bytes=-")
        return 416 if from_end and not (server.suffixes and path.stat().st_size) else 0

    def _answer(self, *, body: bool) -> None:
        server = self.server_of
        wanted = self.headers.get("Range") if body else None
        server.log.append((wanted or self.command, self.path))
        if server.silent:
            server.stopped.wait(60)
            return
        server.stopped.wait(server.delay)
        path = server.root / unquote(urlsplit(self.path).path).lstrip("/")
        tag = f'"{path.stat().st_size}-{path.stat().st_mtime_ns}"' if path.is_file() else ""
        if status := self._refusal(path, tag, wanted):
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        start, stop = 0, (size := path.stat().st_size)
        if wanted is not None and server.ranges:
            first, last = wanted.removeprefix("bytes=").split("-")
            start = int(first) if first else max(size - int(last), 0)
            stop = min(int(last) + 1, size) if first and last else size
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{size}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(stop - start))
        if server.tags:
            self.send_header("ETag", tag)
        self.end_headers()
        if body:
            self._send(path, start, stop)

    def _send(self, path: Path, start: int, stop: int) -> None:
        rate = self.server_of.rate
        piece = 1 << 18
        with path.open("rb") as file:
            file.seek(start)
            while start < stop and (part := file.read(min(piece, stop - start))):
                if rate:
                    self.server_of.stopped.wait(len(part) / rate)
                try:
                    self.wfile.write(part)
                except ConnectionError:
                    return
                start += len(part)
