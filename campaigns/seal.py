"""Reads a store into its entries, and writes changed entries as a store with valid checksums.

Written from docs/format.md, chapters 1 and 2. The store may be hostile in any part, but all its
checksums are valid.
"""

from __future__ import annotations

import contextlib
import json
import re
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np

from campaigns.campaign import removed
from tests.helpers import independent_reader

ABOUT = (
    b"This file is an ambar store: a ZIP that holds a Zarr v3 hierarchy.\n"
    b"zarr.storage.ZipStore of zarr-python opens it, too.\n"
)
HEADER = 1655
SLOTS = (512, 1024)
SLOT = 72
ROOT = "zarr.json"
REMOVED = "removed/entry"
"""An entry that the first of several commits has, and the last one has not."""
_CHECKSUM = re.compile(rb'"checksum": ?"crc32c:([0-9a-f]{8})"')
_NONE = b"00000000"


def crc32c(data: bytes) -> int:
    """Return the CRC-32C."""
    return int(google_crc32c.value(bytes(data)))


@dataclass
class Image:
    """The content of a store."""

    entries: dict[str, bytes]
    commit: int = 1
    directory: bool = False
    """Whether it is a directory store."""
    list_change: Callable[[bytes], bytes] | None = None
    """Changes the central directory, or the list of entries, before it is sealed."""
    slot_change: Callable[[list[int]], list[int]] | None = None
    """Changes number, offset, length, entry count, tail, record and flags in slot and trailer."""
    steps: int = 0
    """The number of commits with temporary tails after a full one; each has some of the entries."""
    record_change: Callable[[list[int]], list[int]] | None = None
    """Changes the numbers of each record, from its offset on, before it is sealed."""
    changes_change: Callable[[bytes], bytes] | None = None
    """Changes what each record contains of root, removed keys and entries, before it is sealed."""
    killed: bytes | None = None
    """What a killed writer has written over the last tail, if it is temporary; cut off if empty."""
    checksums: dict[str, int] = field(default_factory=dict)
    """CRC-32 of entries whose stored checksum differs from that of the content."""
    sealed: set[str] = field(default_factory=set)
    """Entries that have a seal, and a table of tags if they are shards (format, 2.3)."""

    @property
    def root(self) -> dict[str, Any]:
        """The root's document."""
        document: dict[str, Any] = json.loads(self.entries[ROOT])
        return document

    def nodes(self) -> dict[str, Any]:
        """Return the documents of all nodes except the root."""
        found: dict[str, Any] = self.root["consolidated_metadata"]["metadata"]
        return found


def read(path: Path) -> Image:
    """Return the last commit of a sound store."""
    directory = path.is_dir()
    function = independent_reader.read_directory if directory else independent_reader.read_zip
    commit, entries, seals, *_ = function(path)
    sealed = {key for key, seal in seals.items() if seal is not None}
    return Image(dict(entries), commit, directory, sealed=sealed)


def write(path: Path, image: Image) -> None:
    """Write a store with valid tags and seals, and replace an existing one."""
    removed(path)
    for key in image.sealed & image.entries.keys():
        image.entries[key] = _tagged(image, key)
    if image.directory:
        _write_directory(path, image)
    else:
        path.write_bytes(zip_bytes(image))


def set_root(image: Image, document: Any) -> None:
    """Replace the root's document, with a valid checksum."""
    image.entries[ROOT] = seal_root(json.dumps(document).encode())


def seal_root(text: bytes) -> bytes:
    """Return the root's document with a valid checksum, if it has a checksum."""
    match = _CHECKSUM.search(text)
    if match is None:
        return text
    blank = text[: match.start(1)] + _NONE + text[match.end(1) :]
    return text[: match.start(1)] + b"%08x" % crc32c(blank) + text[match.end(1) :]


def seal_chunk(data: bytes, codecs: list[Any]) -> bytes:
    """Return a changed chunk with the checksums of its codecs repaired."""
    names = [codec if isinstance(codec, str) else codec.get("name") for codec in codecs]
    if names[-1:] != ["crc32c"] or len(data) < 4:
        return data
    body = data[:-4]
    if names[0] in ("ambar", "ambar.simplices") and len(body) >= 4:
        if names[0] == "ambar":
            body = seal_packets(body)
        body = body[:-4] + struct.pack("<I", crc32c(body[:-4]))
    return body + struct.pack("<I", crc32c(body))


def seal_packets(stream: bytes) -> bytes:
    """Return a stream with the checksums of head and level packets repaired (format, 7.1)."""
    out = bytearray(stream)
    if len(out) < 5 or out[3] >> 6 == 0:
        return stream
    at = 4

    def number() -> int:
        nonlocal at
        value = 0
        for shift in range(0, 63, 7):
            byte = out[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        return value

    # A changed length may point anywhere: what can be followed is repaired.
    with contextlib.suppress(IndexError):
        head = number()
        lengths = [number() + number() for _ in range((out[3] >> 6) + 1)]
        begin, end = 0, at + head
        for length in [*lengths, 0]:
            if end + 4 > len(out):
                break
            out[end : end + 4] = struct.pack("<I", crc32c(bytes(out[begin:end])))
            begin, end = end + 4, end + 4 + length
    return bytes(out)


def index_span(data: bytes, document: dict[str, Any]) -> tuple[slice, int] | None:
    """Return the span of a shard's index, and its number of chunks; None without an index."""
    codec = document["codecs"][0]
    if not isinstance(codec, dict) or codec.get("name") != "sharding_indexed":
        return None
    chunk = codec["configuration"]["chunk_shape"]
    shard = document["chunk_grid"]["configuration"]["chunk_shape"]
    count = int(np.prod([a // b for a, b in zip(shard, chunk, strict=True)], dtype=object))
    size = 16 * count + 4
    if codec["configuration"].get("index_location", "end") == "start":
        return slice(0, size), count
    return slice(len(data) - size, len(data)), count


def shard_index(data: bytes, document: dict[str, Any]) -> np.ndarray | None:
    """Return offsets and lengths of the chunks of a shard: uint64 (chunks, 2)."""
    found = index_span(data, document)
    if found is None:
        return None
    return np.frombuffer(data[found[0]][:-4], "<u8").reshape(-1, 2).copy()


def with_index(data: bytes, document: dict[str, Any], index: np.ndarray) -> bytes:
    """Return a shard with another index, with a valid checksum."""
    found = index_span(data, document)
    assert found is not None
    raw = index.astype("<u8").tobytes()
    raw += struct.pack("<I", crc32c(raw))
    return data[: found[0].start] + raw + data[found[0].stop :]


@dataclass(frozen=True)
class _Table:
    """The table of tags and the index of a shard."""

    tags: slice
    whole: slice
    index: np.ndarray


def _table(image: Image, key: str) -> _Table | None:
    """Return where the tags of a shard are; None if the entry is not a shard that can be read."""
    data = image.entries[key]
    try:
        document = array_of(image, key)
        found = None if document is None else index_span(data, document)
        index = None if document is None or found is None else shard_index(data, document)
    except (ArithmeticError, AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None  # a hostile document
    if found is None or index is None:
        return None
    place, size = found[0], 4 * found[1]
    first, last = place.start, place.stop
    tags = slice(last, last + size) if first == 0 else slice(first - size, first)
    if tags.start < 0 or tags.stop > len(data) or len(index) != found[1]:
        return None
    return _Table(tags, slice(min(first, tags.start), max(last, tags.stop)), index)


def _tagged(image: Image, key: str) -> bytes:
    """Return an entry with the tags of the chunks that its index finds."""
    data, table = image.entries[key], _table(image, key)
    if table is None:
        return data
    tags = np.frombuffer(data[table.tags], "<u4").copy()
    for number, (start, length) in enumerate(table.index.tolist()):
        if 0 < length <= len(data) and start <= len(data) - length:
            tags[number] = zlib.crc32(data[start : start + length][-8:])
    return data[: table.tags.start] + tags.tobytes() + data[table.tags.stop :]


def seal_of(image: Image, key: str) -> int | None:
    """Return the seal that an entry must have; None if it has none."""
    if key not in image.sealed:
        return None
    data, table = image.entries[key], _table(image, key)
    return zlib.crc32(data[-8:] if table is None else data[table.whole])


def chunk_codecs(document: dict[str, Any]) -> list[Any]:
    """Return the codecs of an array's chunks."""
    codec = document["codecs"][0]
    if isinstance(codec, dict) and codec.get("name") == "sharding_indexed":
        inner: list[Any] = codec["configuration"]["codecs"]
        return inner
    codecs: list[Any] = document["codecs"]
    return codecs


def array_of(image: Image, key: str) -> dict[str, Any] | None:
    """Return the document of the array that an entry is a chunk or a shard of."""
    nodes = image.nodes()
    parts = key.split("/")
    for at in range(len(parts) - 1, 0, -1):
        if parts[at] == "c" and "/".join(parts[:at]) in nodes:
            document: dict[str, Any] = nodes["/".join(parts[:at])]
            return document
    return None


def zip_bytes(image: Image) -> bytes:
    """Return a store in one file, of one full commit and `steps` others."""
    content, directory = bytearray(HEADER), dict[str, bytes]()
    keys = [key for key in image.entries if key != ROOT]
    slots = [_slot([0] * 7, 0)] * 2
    previous, log = [0, 0], 0
    for step in range(image.steps + 1):
        is_full, is_last = step == 0, step == image.steps
        part = [len(keys) * (step + more) // (image.steps + 1) for more in (0, 1)]
        contents = {key: image.entries[key] for key in keys[slice(*part)]}
        if image.steps and is_full:
            contents[REMOVED] = b"removed"
        for key, data in contents.items():
            directory[key] = _append(image, content, key, data)
        removed = [REMOVED] if image.steps and is_last and REMOVED not in image.entries else []
        for key in removed:
            del directory[key]
        changes = b"" if is_full else _changes(image, removed, [directory[key] for key in contents])
        stored = _deflated(changes)
        message = f"step {step}".encode()
        at, tail = len(content), bytearray()
        start = at + 120 + len(message) + len(stored)
        root = []
        if ROOT in image.entries:
            root.append(_append(image, tail, ROOT, image.entries[ROOT], start))
        listed = b"".join([*directory.values(), *root])
        if image.list_change is not None and is_last:
            listed = image.list_change(listed)
        numbers = [image.commit + step, start + len(tail), len(listed), len(directory) + len(root)]
        numbers += [start, at, int(not is_full)]
        log = 0 if is_full else log + start - at
        fields = [at, numbers[0], step * 10**6, *previous, log, len(contents), len(removed)]
        fields += [*numbers[1:4], crc32c(listed), len(message), len(changes), len(stored)]
        content += _record(image, fields, message + stored)
        previous = [at, start - at]
        if image.slot_change is not None and is_last:
            numbers = image.slot_change(numbers)
        slot = _slot(numbers, crc32c(listed))
        slots[numbers[0] % 2] = slot
        if is_full or is_last:
            end = bytes(tail) + listed + _trailer(numbers, crc32c(listed), slot)
            if image.killed is not None and not is_full:
                end = image.killed + end[len(image.killed) :] if image.killed else b""
            content += end
    content[:HEADER] = _header(slots)
    return bytes(content)


def _append(image: Image, content: bytearray, key: str, data: bytes, before: int = 0) -> bytes:
    """Append an entry, and return its entry of the central directory.

    `before` bytes of the file are before `content`.
    """
    name, start = key.encode("utf-8", "surrogateescape"), before + len(content)
    checksum = image.checksums.get(key, zlib.crc32(data))
    sizes = (checksum, len(data), len(data), len(name))
    content += struct.pack("<4s3HI3I2H", b"PK\3\4", 20, 0x800, 0, 0x210000, *sizes, 0) + name
    seal = seal_of(image, key)
    extra = b"" if seal is None else struct.pack("<2HI", 0x6D61, 4, seal)
    content += data
    fields = (b"PK\1\2", 0x032D, 20, 0x800, 0, 0x210000, *sizes, len(extra), 0, 0, 0)
    return struct.pack("<4s4HI3I5HII", *fields, 0x81A40000, start) + name + extra


def _changes(image: Image, removed: list[str], entries: list[bytes]) -> bytes:
    """Return the changes of a commit."""
    root = image.entries.get(ROOT, b"")
    with contextlib.suppress(ValueError, AttributeError, TypeError, RecursionError):
        document = json.loads(root)
        document.pop("consolidated_metadata", None)
        root = seal_root(json.dumps(document).encode())
    keys = [key.encode("utf-8", "surrogateescape") for key in removed]
    pieces = [struct.pack("<I", len(root)), root, struct.pack("<I", len(keys))]
    for key in keys:
        pieces += [struct.pack("<H", len(key)), key]
    changes = b"".join([*pieces, *entries])
    return changes if image.changes_change is None else image.changes_change(changes)


def _deflated(changes: bytes) -> bytes:
    """Return deflated bytes, or the bytes themselves if that is not shorter, or too short."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    deflated = deflater.compress(changes) + deflater.flush()
    is_shorter = len(deflated) < len(changes) <= 64 * len(deflated)
    return deflated if is_shorter else changes


def _record(image: Image, numbers: list[int], body: bytes) -> bytes:
    """Return the record of a commit."""
    if image.record_change is not None:
        numbers = image.record_change(numbers)
    words = [number % 2**64 for number in numbers[:11]]
    data = struct.pack("<11Q4I", *words, *(number % 2**32 for number in numbers[11:])) + body
    return struct.pack("<8s2I", b"ambarlog", len(data) + 16, crc32c(data)) + data


def slots_of(data: bytes) -> list[bytes]:
    """Return both slots of a store in one file."""
    return [data[at : at + SLOT] for at in SLOTS]


def _slot(numbers: list[int], checksum: int) -> bytes:
    *words, flags = numbers
    slot = struct.pack("<8s2I6QI", b"ambarcmt", 1, checksum, *words, flags % 2**32)
    return slot + struct.pack("<I", crc32c(slot))


def _header(slots: list[bytes]) -> bytes:
    fields = (b"PK\3\4", 20, 0x0800, 0, 0x210000, zlib.crc32(ABOUT), 119, 119, 5, 1501, b"ambar")
    header = bytearray(struct.pack("<4s3H4I2H5s2H", *fields, 0x6D61, 1497).ljust(1536, b"\0"))
    for slot, at in zip(slots, SLOTS, strict=True):
        header[at : at + SLOT] = slot
    return bytes(header) + ABOUT


def _trailer(numbers: list[int], checksum: int, slot: bytes) -> bytes:
    commit, offset, length, entries, tail, record, flags = numbers
    where = (offset + length) % 2**64
    fields = (b"PK\6\6", 44, 0x032D, 45, 0, 0, entries, entries, length, offset)
    few, short, near = min(entries, 0xFFFF), min(length, 2**32 - 1), min(offset, 2**32 - 1)
    comment = (
        f"ambar 001 commit {commit:020d} record {record:020d} tail {tail:020d} {flags % 2**32} "
        f"crc32c {checksum:08x} {int.from_bytes(slot[-4:], 'little'):08x}"
    ).encode()
    return (
        struct.pack("<4sQ2H2I4Q", *fields)
        + struct.pack("<4sIQI", b"PK\6\7", 0, where, 1)
        + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, few, few, short, near, len(comment))
        + comment
    )


def _write_directory(path: Path, image: Image) -> None:
    (path / ".ambar").mkdir(parents=True)
    lines = []
    for put, (key, data) in enumerate(sorted(image.entries.items(), key=lambda e: e[0].encode())):
        checksum = image.checksums.get(key, zlib.crc32(data))
        seal = seal_of(image, key)
        sealed = "-" if seal is None else f"{seal:08x}"
        lines.append(f"{checksum:08x} {sealed} {len(data)} {put} {key}\n")
        # Some hostile keys cannot be files, such as a key that is the folder of another key.
        with contextlib.suppress(OSError):
            (path / key).parent.mkdir(parents=True, exist_ok=True)
            (path / key).write_bytes(data)
    head = f"ambar directory 001 commit {image.commit} next {len(lines)} "
    text = f"{head}entries {len(lines)} removed 0\n{''.join(lines)}".encode()
    if image.list_change is not None:
        text = image.list_change(text)
    (path / ".ambar" / "commit").write_bytes(sealed_list(text))


def sealed_list(text: bytes) -> bytes:
    """Return a list of entries with its last line."""
    return text + b"crc32c %08x\n" % crc32c(text)
