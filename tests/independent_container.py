"""The containers of ambar's stores, read as docs/format.md, chapter 1, says, and without ambar.

Entries are read whole, so that every checksum is verified. ZIPs of other programs (1.5) are errors
here, and a slot that is damaged is not read again in the hope of a writer that is at work on it.
"""

from __future__ import annotations

import functools
import mmap
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")
ALL_ONES = 2**32 - 1
TRAILER = rb"ambar 001 commit (\d{20}) tail (\d{20}) crc32c ([0-9a-f]{8}) [0-9a-f]{8}"
LANE = 128  # bytes that one lane of a CRC goes through


class StoreError(Exception):
    """The file is damaged, needs a newer reader, or is no store."""


def need(condition: object, message: str) -> None:
    """Refuse what does not hold."""
    if not condition:
        raise StoreError(message)


def rejecting(function: Callable[P, T]) -> Callable[P, T]:
    """Let `function` fail with StoreError alone, also where a value has a wrong type or size."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except (ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RuntimeError,
                TypeError, ValueError, struct.error) as error:  # fmt: skip
            raise StoreError(f"{type(error).__name__}: {error}") from error

    return wrapper


def _advance(registers: np.ndarray, lanes: np.ndarray) -> np.ndarray:
    for column in np.ascontiguousarray(lanes.T):
        registers = TABLE[(registers ^ column) & 0xFF] ^ (registers >> 8)
    return registers


TABLE = np.arange(256, dtype=np.uint32)
for _ in range(8):
    TABLE = np.where(TABLE & 1, (TABLE >> 1) ^ np.uint32(0x82F63B78), TABLE >> 1)
BYTE = TABLE.tolist()
SKIP = [  # what a lane of zeros makes of each byte of the register
    _advance(np.arange(256, dtype=np.uint32) << 8 * place, np.zeros((256, LANE), np.uint8)).tolist()
    for place in range(4)
]


def crc32c(data: bytes) -> int:
    """Return the CRC-32C: all lanes of the data at once, put together since CRCs are linear."""
    register, head = 0xFFFFFFFF, len(data) % LANE
    for byte in data[:head]:
        register = BYTE[(register ^ byte) & 255] ^ register >> 8
    lanes = np.frombuffer(data, np.uint8)[head:].reshape(-1, LANE)
    for lane in _advance(np.zeros(len(lanes), np.uint32), lanes).tolist():
        first, second, third, fourth = register.to_bytes(4, "little")
        register = SKIP[0][first] ^ SKIP[1][second] ^ SKIP[2][third] ^ SKIP[3][fourth] ^ lane
    return int(register ^ 0xFFFFFFFF)


def check_key(key: str) -> None:
    """Chapter 1.1."""
    need(0 < len(key.encode()) <= 4096 and not re.search(r"[\0-\x1f\x7f\\]", key), f"key {key!r}")
    segments = key.split("/")
    for segment in segments:
        need(segment not in ("", ".", "..") and len(segment.encode()) <= 255, f"key {key!r}")
        need(segment == "zarr.json" or segment.lower() != "zarr.json", f"key {key!r}")
    need(segments[0].lower() != ".ambar", f"key {key!r}")


class Commit(NamedTuple):
    """What a slot says of a commit, in its order (1.2)."""

    checksum: int
    number: int
    offset: int
    length: int
    entries: int
    tail: int

    def trailer(self) -> bytes:
        """Return the trailer of the commit, which ends it."""
        slot = struct.pack("<8s2I5QI", b"ambarcmt", 1, *self, 0)
        size, offset = self.length, self.offset
        places = (self.entries, self.entries, size, offset)
        record = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 0x32D, 45, 0, 0, *places)
        locator = struct.pack("<4sIQI", b"PK\6\7", 0, offset + size, 1)
        count, size, offset = min(self.entries, 0xFFFF), min(size, ALL_ONES), min(offset, ALL_ONES)
        end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, size, offset, 88)
        comment = "ambar 001 commit %020d tail %020d crc32c %08x %08x"
        numbers = (self.number, self.tail, self.checksum, crc32c(slot))
        return record + locator + end + (comment % numbers).encode()


def read_slot(slot: bytes, place: int) -> Commit | None:
    """Return what a slot says, or nothing if it is damaged."""
    magic, version, *fields, reserved = struct.unpack("<8s2I5QI", slot[:60])
    commit = Commit(*fields)
    belongs = commit.number == 0 or commit.number % 2 == place
    if magic != b"ambarcmt" or slot[60:] != struct.pack("<I", crc32c(slot[:60])) or not belongs:
        return None
    need(version == 1, f"the container's format is {version}")
    need(reserved == 0, "reserved bytes of a slot")
    return commit


def last_commit(file: mmap.mmap | bytes) -> Commit:
    """Find the last commit of a ZIP (1.3)."""
    about = b"This file is an ambar store: a ZIP that holds a Zarr v3 hierarchy.\n"
    about += b"zarr.storage.ZipStore of zarr-python opens it, too.\n"
    sizes = (zlib.crc32(about), 119, 119, 5, 1501)
    header = struct.pack("<4s3H4I2H", b"PK\3\4", 20, 0x0800, 0, 0x210000, *sizes)
    header += b"ambar" + struct.pack("<2H", 0x6D61, 1497)
    header = header.ljust(512, b"\0") + file[512:576] + bytes(448) + file[1024:1088] + bytes(448)
    need(file[:1655] == header + about, "the header is damaged, or this is no store")
    slots = [read_slot(file[512:576], 0), read_slot(file[1024:1088], 1)]
    last = max((slot for slot in slots if slot), key=lambda slot: slot.number, default=None)
    if last is None:
        raise StoreError("both slots are damaged")
    if None in slots:
        trailer = file[-186:]
        said = re.fullmatch(TRAILER, trailer[98:])
        if said is None:
            raise StoreError("a slot is damaged, and so is the trailer")
        count, length, offset = struct.unpack_from("<3Q", trailer, 32)
        whole = Commit(int(said[3], 16), int(said[1]), offset, length, count, int(said[2]))
        need(whole.trailer() == trailer and whole.number >= last.number, "slot and trailer")
        need(whole.offset + whole.length + 186 == len(file), "the trailer is of another place")
        last = whole
    need(last.number > 0, "no commit was made")
    need(last.offset + last.length + 186 <= len(file), "the file was cut short")
    need(last.tail <= last.offset, "the tail lies behind the central directory")
    return last


class Entry(NamedTuple):
    """An entry: its place is an offset in a ZIP, the number of a put in a directory."""

    checksum: int
    size: int
    place: int


def extra_fields(data: bytes) -> dict[int, bytes]:
    """Return the extra fields of an entry."""
    fields, at = {}, 0
    while at < len(data):
        kind, size = struct.unpack_from("<2H", data, at)
        fields[kind] = data[at + 4 : at + 4 + size]
        at += 4 + size
    need(at == len(data), "an extra field was cut short")
    return fields


class Zip:
    """The last commit of a store in one file."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._file = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        commit = last_commit(self._file)
        self.number = commit.number
        directory = self._file[commit.offset : commit.offset + commit.length]
        need(crc32c(directory) == commit.checksum, "checksum of the central directory")
        found = list(self._parse(directory, commit.offset))
        self.entries = dict(found)
        need(len(self.entries) == len(found) == commit.entries, "number of entries")

    @staticmethod
    def _parse(directory: bytes, end: int) -> Iterator[tuple[str, Entry]]:
        at = 0
        while at < len(directory):
            fields = struct.unpack_from("<4s6H3I5H2I", directory, at)
            magic, _, _, flags, method, _, _, checksum, stored, size, *rest = fields
            name_size, extra_size, comment_size, _, _, _, local = rest
            name, at = at + 46, at + 46 + name_size + extra_size + comment_size
            need(magic == b"PK\1\2" and at <= len(directory), "an entry of the central directory")
            key = directory[name : name + name_size].decode()
            check_key(key)
            need(flags == 0x0800 and method == 0, f"flags {flags:#x}, method {method} of {key}")
            extra = extra_fields(directory[name + name_size :][:extra_size])
            wide = struct.iter_unpack("<Q", extra.pop(1, b""))
            size, stored, local = (
                next(wide)[0] if value == ALL_ONES else value for value in (size, stored, local)
            )
            need(size == stored, f"{key} has two lengths")
            need(set(extra) == {0x6D61} and not list(wide), f"extra fields of {key}")
            (place,) = struct.unpack("<Q", extra[0x6D61])
            begin = local + 30 + name_size + (20 if size >= ALL_ONES else 0)
            need(begin <= place and place + size <= end, f"the place of {key}")
            yield key, Entry(checksum, size, place)

    def read(self, key: str) -> bytes:
        """Return the content of an entry."""
        entry = self.entries[key]
        content = self._file[entry.place : entry.place + entry.size]
        need(zlib.crc32(content) == entry.checksum, f"checksum of {key}")
        return content


class Directory:
    """The last commit of a store in a directory, or a copy of its files without ambar's own."""

    def __init__(self, path: Path) -> None:
        self._path, self.number = path, 0
        self.entries: dict[str, Entry | None] = {}
        if (path / ".ambar").is_dir():
            self._list = (path / ".ambar" / "commit").open("rb")
            self.number, self.entries = self._parse(self._list.read())
        else:
            files = (file for file in path.rglob("*") if file.is_file())
            self.entries = dict.fromkeys(file.relative_to(path).as_posix() for file in files)

    @staticmethod
    def _parse(text: bytes) -> tuple[int, dict[str, Entry | None]]:
        need(text[-16:] == b"crc32c %08x\n" % crc32c(text[:-16]), "checksum of the list")
        first, *lines, last = text[:-16].decode().split("\n")
        pattern = "ambar directory 001 commit # next # entries # removed #".replace("#", "([0-9]+)")
        numbers = re.fullmatch(pattern, first)
        need(numbers and not last, "first line of the list")
        number, following, count, removed = map(int, numbers.groups() if numbers else ())
        need(number > 0 and len(lines) == count + removed, "numbers of the list")
        entries: dict[str, Entry | None] = {}
        for line in lines[:count]:
            crc, size, put, key = line.split(" ", 3)
            need(re.fullmatch("[0-9a-f]{8} [0-9]+ [0-9]+", f"{crc} {size} {put}"), f"line {line}")
            check_key(key)
            need(int(put) < following and key not in entries, f"line {line}")
            entries[key] = Entry(int(crc, 16), int(size), int(put))
        need(len({entry.place for entry in entries.values() if entry}) == count, "numbers of puts")
        for line in lines[count:]:
            check_key(line.removeprefix("removed "))
            need(line.startswith("removed ") and line[8:] not in entries, f"line {line}")
        return number, entries

    def read(self, key: str) -> bytes:
        """Return the content of an entry."""
        entry, records = self.entries[key], self._path / ".ambar"
        if entry is None:
            return (self._path / key).read_bytes()
        try:
            content = (records / f"new-{entry.place}").read_bytes()
        except FileNotFoundError:
            content = (self._path / key).read_bytes()
        if not os.path.samestat((records / "commit").stat(), os.fstat(self._list.fileno())):
            now = self._parse((records / "commit").read_bytes())[1].get(key)
            need(now == entry, f"a later commit has replaced {key}")
        need(len(content) == entry.size and zlib.crc32(content) == entry.checksum, f"{key} differs")
        return content
