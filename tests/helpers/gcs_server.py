"""A server of Google Cloud Storage on loopback, which keeps objects in memory.

It has the requests of the XML interface that object stores need, as Google documents them: objects
with generations, conditions on them, uploads of several parts, copies and lists.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

TOKEN = "a-token-of-the-tests"  # noqa: S105 - no server knows it


@dataclass
class Blob:
    """An object."""

    data: bytes
    generation: int
    modified: str = field(default_factory=lambda: formatdate(usegmt=True))

    @property
    def tag(self) -> str:
        """The entity tag."""
        return f'"{hashlib.sha256(self.data).hexdigest()}"'


@dataclass
class Bucket:
    """The objects, and the uploads that are neither complete nor aborted."""

    name: str
    blobs: dict[str, Blob] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _last: int = 1000

    def put(self, key: str, data: bytes) -> Blob:
        """Store an object."""
        self._last += 1
        self.blobs[key] = Blob(data, self._last)
        return self.blobs[key]

    def new_upload(self) -> str:
        """Return the name of a new upload."""
        self._last += 1
        self.uploads[f"upload-{self._last}"] = {}
        return f"upload-{self._last}"


def _xml(name: str, **texts: str) -> bytes:
    """Return an element with others in it."""
    inside = "".join(f"<{key}>{escape(text)}</{key}>" for key, text in texts.items())
    return f"<{name}>{inside}</{name}>".encode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _error(self, status: int, code: str) -> None:
        self._answer(status, _xml("Error", Code=code))

    def _blob_headers(self, blob: Blob) -> dict[str, str]:
        return {
            "ETag": blob.tag,
            "x_goog_generation": str(blob.generation),
            "Last_Modified": blob.modified,
        }

    def _handle(self) -> None:
        url = urlsplit(self.path)
        _, name, *rest = unquote(url.path).split("/", 2)
        key = rest[0] if rest else ""
        query = {k: v[0] for k, v in parse_qs(url.query, keep_blank_values=True).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with self.bucket.lock:
            self.bucket.requests.append(f"{self.command} {self.path}")
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._error(403, "AccessDenied")
            elif name != self.bucket.name:
                self._error(404, "NoSuchBucket")
            elif not key:
                self._list(query)
            elif self.command in ("GET", "HEAD"):
                self._get(key)
            elif self.command == "PUT":
                self._put(key, query, body)
            elif self.command == "POST":
                self._post(key, query, body)
            else:
                self._delete(key, query)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815

    def _list(self, query: dict[str, str]) -> None:
        time = "2026-01-01T00:00:00Z"
        items = b"".join(
            _xml("Contents", Key=key, Size=str(len(blob.data)), LastModified=time, ETag=blob.tag)
            for key, blob in sorted(self.bucket.blobs.items())
            if key.startswith(query.get("prefix", ""))
        )
        self._answer(200, b"<ListBucketResult>" + items + b"</ListBucketResult>")

    def _get(self, key: str) -> None:
        blob = self.bucket.blobs.get(key)
        if blob is None:
            return self._error(404, "NoSuchKey")
        if self.headers.get("If-Match", blob.tag) != blob.tag:
            return self._error(412, "PreconditionFailed")
        headers = self._blob_headers(blob)
        size = len(blob.data)
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if found is None:
            return self._answer(200, blob.data, **headers)
        start = int(found[1]) if found[1] else max(size - int(found[2]), 0)
        end = min(int(found[2]) + 1, size) if found[1] and found[2] else size
        if start >= size:
            return self._error(416, "InvalidRange")
        headers["Content_Range"] = f"bytes {start}-{end - 1}/{size}"
        return self._answer(206, blob.data[start:end], **headers)

    def _is_refused(self, key: str) -> bool:
        expected = self.headers.get("x-goog-if-generation-match")
        blob = self.bucket.blobs.get(key)
        generation = blob.generation if blob else 0
        return expected is not None and int(expected) != generation

    def _put(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploadId" in query:
            parts = self.bucket.uploads.get(query["uploadId"])
            if parts is None:
                return self._error(404, "NoSuchUpload")
            parts[int(query["partNumber"])] = body
            return self._answer(200, ETag=Blob(body, 0).tag)
        if self._is_refused(key):
            return self._error(412, "PreconditionFailed")
        source = self.headers.get("x-goog-copy-source")
        if source is not None:
            found = self.bucket.blobs.get(unquote(source).split("/", 1)[1])
            if found is None:
                return self._error(404, "NoSuchKey")
            self.bucket.put(key, found.data)
            return self._answer(200, _xml("CopyObjectResult"))
        return self._answer(200, b"", **self._blob_headers(self.bucket.put(key, body)))

    def _post(self, key: str, query: dict[str, str], body: bytes) -> None:
        if "uploads" in query:
            name = self.bucket.new_upload()
            return self._answer(200, _xml("InitiateMultipartUploadResult", UploadId=name))
        parts = self.bucket.uploads.pop(query["uploadId"], None)
        if parts is None:
            return self._error(404, "NoSuchUpload")
        numbers = [int(n) for n in re.findall(rb"<PartNumber>(\d+)</PartNumber>", body)]
        blob = self.bucket.put(key, b"".join(parts[number] for number in numbers))
        text = _xml("CompleteMultipartUploadResult", ETag=blob.tag)
        return self._answer(200, text, x_goog_generation=str(blob.generation))

    def _delete(self, key: str, query: dict[str, str]) -> None:
        if "uploadId" in query:
            self.bucket.uploads.pop(query["uploadId"], None)
        else:
            self.bucket.blobs.pop(key, None)
        self._answer(204)


@contextmanager
def gcs_server(bucket: str) -> Iterator[tuple[str, Bucket]]:
    """Run a server with a bucket; yield its endpoint, and the bucket."""
    content = Bucket(bucket)
    handler = type("Handler", (_Handler,), {"bucket": content})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", content
    finally:
        server.shutdown()
        server.server_close()
