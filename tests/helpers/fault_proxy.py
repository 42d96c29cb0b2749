"""A proxy in front of a server of objects, which counts requests and lets chosen ones fail."""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

Fault = Literal["error", "throttled", "lost", "closed", "truncated", "slow"]
FAULTS: tuple[Fault, ...] = ("error", "throttled", "lost", "closed", "truncated", "slow")
"""An answer 500 or 503 without effect, an effect without an answer, a connection that is closed,
half of an answer, and a late answer."""


@dataclass
class FaultProxy:
    """Forwards requests to a server, unchanged."""

    backend: str
    log: list[tuple[str, str, int]] = field(default_factory=list)
    """Method, path, and bytes of the answer, of each request."""
    faults: dict[int, Fault] = field(default_factory=dict)
    """How requests fail, by their numbers from 0."""
    victim: int | None = None
    """A process that is killed instead of an answer."""
    kill_at: int = -1
    """The number of the request at which it is killed."""
    kill_before: bool = True
    """Whether that request has no effect."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    _count: int = 0
    _active: int = 0

    def restart(self) -> None:
        """Count requests from 0, and let none fail."""
        with self.lock:
            self.log.clear()
            self.faults = {}
            self.victim, self.kill_at, self._count = None, -1, 0

    def next_number(self) -> int:
        """Return the number of a request."""
        with self.lock:
            self._count += 1
            return self._count - 1

    @contextmanager
    def active(self) -> Iterator[None]:
        """Count a request that is being answered."""
        with self.lock:
            self._active += 1
        try:
            yield
        finally:
            with self.lock:
                self._active -= 1

    def wait_until_idle(self) -> None:
        """Wait until the requests of a killed process have had their effects."""
        while self._active:
            time.sleep(0.001)

    @property
    def count(self) -> int:
        """The number of requests so far."""
        return self._count

    def kill(self) -> None:
        """Kill the process."""
        with self.lock:
            if self.victim is not None:
                os.kill(self.victim, signal.SIGKILL)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultProxy

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        with self.proxy.active():
            self._handle_active()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815

    def _handle_active(self) -> None:
        proxy = self.proxy
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        number = proxy.next_number()
        fault = proxy.faults.get(number)
        is_fatal = number == proxy.kill_at
        if is_fatal and proxy.kill_before:
            proxy.kill()
            self.close_connection = True
            return
        if fault in ("error", "throttled"):
            self._refuse(500 if fault == "error" else 503)
            return
        if fault == "closed":
            self.close_connection = True
            return
        if fault == "slow":
            time.sleep(0.3)
        status, headers, answer = self._forward(body)
        proxy.log.append((self.command, self.path, len(answer)))
        if is_fatal:
            proxy.kill()
        if is_fatal or fault == "lost":
            self.close_connection = True
            return
        self._answer(status, headers, answer, is_whole=fault != "truncated")

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        host = urlsplit(self.proxy.backend).netloc
        connection = http.client.HTTPConnection(host, timeout=60)
        try:
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _refuse(self, status: int) -> None:
        self.proxy.log.append((self.command, self.path, 0))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(
        self, status: int, headers: list[tuple[str, str]], answer: bytes, *, is_whole: bool
    ) -> None:
        self.send_response_only(status)
        names = {name.lower() for name, _ in headers}
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "keep-alive"):
                self.send_header(name, value)
        if "content-length" not in names:
            self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(answer if is_whole else answer[: len(answer) // 2])
        self.close_connection = not is_whole


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that were killed."""


@contextmanager
def fault_proxy(backend: str) -> Iterator[tuple[str, FaultProxy]]:
    """Run a proxy; yield its endpoint, and what it does."""
    proxy = FaultProxy(backend)
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"proxy": proxy}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", proxy
    finally:
        server.shutdown()
        server.server_close()
