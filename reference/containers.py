"""Containers: ZIP files and directories that map keys to bytes (format.md, chapter 1)."""

import os
import re
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from stream.bits import DamagedError, UnsupportedError, check, crc32c

NOTE = (
    b"This file is an ambar store: a ZIP that holds a Zarr v3 hierarchy.\n"
    b"zarr.storage.ZipStore of zarr-python opens it, too.\n"
)
LOCAL = struct.pack("<4sHHHIIIIHH5sHH", b"PK\3\4", 20, 0x800, 0, 0x210000, zlib.crc32(NOTE), 119,
                    119, 5, 1501, b"ambar", 0x6D61, 1497)  # fmt: skip
SLOTS = (512, 1024)
TRAILER = 186
COMMENT = re.compile(rb"ambar 001 commit (\d{20}) tail (\d{20}) crc32c ([0-9a-f]{8}) ([0-9a-f]{8})")


class Entry(NamedTuple):
    """Where an entry's bytes are: a file, the first byte in it, and their number."""

    file: Path
    start: int
    length: int
    crc: int | None
    seal: int | None = None


class Commit(NamedTuple):
    """The fields of a slot (1.2)."""

    magic: bytes
    version: int
    crc: int
    number: int
    start: int
    length: int
    entries: int
    tail: int
    reserved: int

    @property
    def end(self) -> int:
        """The end of the trailer."""
        return self.start + self.length + TRAILER


@dataclass
class Container:
    """The entries of a store by their keys."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def read(self, key: str) -> bytes:
        """Return the content of an entry, whose length and CRC-32 are verified."""
        entry = self.entries[key]
        with open_plain(entry.file) as file:
            file.seek(entry.start)
            data = file.read(entry.length)
            check(len(data) == entry.length, f"{key} is shorter than {entry.length} bytes")
            whole = entry.start or os.fstat(file.fileno()).st_size == entry.length
            check(whole, f"{key} is longer than {entry.length} bytes")
        check(entry.crc in (None, zlib.crc32(data)), f"the CRC-32 of {key} differs")
        return data

    def add(self, key: str, entry: Entry) -> None:
        """Add an entry, whose key is checked."""
        check(key not in self.entries, f"the key {key!r} stands twice")
        check_key(key)
        self.entries[key] = entry


def open_plain(path: Path):
    """Open a file that is neither a link nor a device."""
    check(stat.S_ISREG(os.lstat(path).st_mode), f"{path} is not a regular file")
    return path.open("rb")


def check_key(key: str) -> None:
    """Check that a key is as 1.1 has it."""
    segments = key.split("/")
    good = (
        1 <= len(key.encode()) <= 4096
        and not re.search(r"[\x00-\x1f\x7f\\]", key)
        and not any(s in ("", ".", "..") or len(s.encode()) > 255 for s in segments)
        and segments[0].lower() != ".ambar"
        and all(s == "zarr.json" or s.lower() != "zarr.json" for s in segments)
    )
    check(good, f"{key!r} is not a valid key")


def open_container(path: str | Path) -> Container:
    """Open a store.

    Raises
    ------
    ValueError
        If it is damaged, or of a format that this module does not know.
    """
    path = Path(path)
    try:
        return _open_directory(path) if path.is_dir() else _open_zip(path)
    except (struct.error, UnicodeError, zipfile.BadZipFile) as error:
        raise DamagedError(f"{path}: {error}") from error


def _open_zip(path: Path) -> Container:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        header = file.read(1536 + len(NOTE))
        file.seek(max(0, size - TRAILER))
        trailer = file.read()
        if header[26:37] != LOCAL[26:37]:
            check(not _read_trailer(trailer, size), "the header of a store is damaged")
            return _open_foreign(path)
        blank = header
        for at in SLOTS:
            blank = blank[:at] + bytes(64) + blank[at + 64 :]
        check(blank == LOCAL + bytes(1536 - len(LOCAL)) + NOTE, "the header is damaged")
        commit = _last_commit(header, trailer, size)
        file.seek(commit.start)
        directory = file.read(commit.length)
    check(crc32c(directory) == commit.crc, "the CRC-32C of the central directory differs")
    return _read_directory(path, directory, commit)


def _read_slot(header: bytes, number: int) -> Commit | None:
    """Return the commit of a slot, or None if the slot is damaged."""
    slot = header[SLOTS[number] : SLOTS[number] + 64]
    commit = Commit(*struct.unpack("<8sIIQQQQQI", slot[:60]))
    if slot[:8] != b"ambarcmt" or crc32c(slot[:60]) != int.from_bytes(slot[60:], "little"):
        return None
    if commit.version > 1:
        raise UnsupportedError(f"a container of format {commit.version}; this reads format 1")
    if commit.number and commit.number % 2 != number:
        return None
    unused = commit.number > 0 or not any(commit[2:])
    check(commit.version == 1 and commit.reserved == 0 and unused, "a slot of impossible fields")
    return commit


def _read_trailer(trailer: bytes, size: int) -> Commit | None:
    """Return the commit of a whole trailer that ends a file of `size` bytes, or None."""
    match = COMMENT.fullmatch(trailer[98:])
    if not match or len(trailer) != TRAILER:
        return None
    number, tail = int(match[1]), int(match[2])
    entries, length, start = struct.unpack_from("<QQQ", trailer, 32)
    commit = Commit(b"ambarcmt", 1, int(match[3], 16), number, start, length, entries, tail, 0)
    slot = struct.pack("<8sIIQQQQQI", *commit)
    whole = trailer == _make_trailer(commit, match[0]) and crc32c(slot) == int(match[4], 16)
    return commit if whole and commit.end == size else None


def _make_trailer(commit: Commit, comment: bytes) -> bytes:
    """Return the three records at the end of a commit."""
    entries, length, start = commit.entries, commit.length, commit.start
    few, short, near = min(entries, 0xFFFF), min(length, 0xFFFFFFFF), min(start, 0xFFFFFFFF)
    return (
        struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 0x32D, 45, 0, 0, entries, entries, length, start)
        + struct.pack("<4sIQI", b"PK\6\7", 0, start + length, 1)
        + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, few, few, short, near, len(comment))
        + comment
    )


def _last_commit(header: bytes, trailer: bytes, size: int) -> Commit:
    """Find the last commit (1.3)."""
    slots = [_read_slot(header, 0), _read_slot(header, 1)]
    sound = [slot for slot in slots if slot]
    check(sound, "both slots are damaged")
    commit = max(sound, key=lambda slot: slot.number)
    if len(sound) == 1:
        last = _read_trailer(trailer, size)
        check(last and last.number >= commit.number, "a slot is damaged, and no trailer vouches")
        commit = last
    check(commit.number > 0, "no commit was ever made")
    check(commit.end <= size, "the file was cut short")
    check(commit.tail <= commit.start, "a tail behind the central directory")
    return commit


def _read_directory(path: Path, directory: bytes, commit: Commit) -> Container:
    """Read the central directory of a commit."""
    container, at = Container(), 0
    while at < len(directory):
        fields = struct.unpack_from("<4sHHHHIIIIHHHHHII", directory, at)
        signature, _, _, flags, method, _, crc, stored, length = fields[:9]
        name, extra, comment = fields[9:12]
        local = fields[15]
        check(signature == b"PK\1\2", "an entry of the central directory without signature")
        if method or flags & 1 or not flags & 0x800:
            raise UnsupportedError("an entry that is compressed, encrypted, or not of UTF-8")
        key = directory[at + 46 : at + 46 + name].decode()
        at += 46 + name
        check(at + extra + comment <= len(directory), "an entry reaches beyond the directory")
        extras = _read_extras(directory[at : at + extra])
        at += extra + comment
        mine, wide = extras.get(0x6D61, b""), extras.get(1, b"")
        check(len(mine) in (8, 12), f"{key} has no extra field of ambar's")
        large = [length, stored, local]
        for i, value in enumerate(large):
            if value == 0xFFFFFFFF:
                large[i], wide = struct.unpack("<Q", wide[:8])[0], wide[8:]
        check(not wide and large[0] == large[1], f"{key} has two lengths")
        start, seal = int.from_bytes(mine[:8], "little"), mine[8:]
        least = large[2] + 30 + name + (20 if large[0] >= 0xFFFFFFFF else 0)
        check(least <= start and start + large[0] <= commit.start, f"{key} overlaps its header")
        container.add(key, Entry(path, start, large[0], crc, _optional(seal)))
    check(len(container.entries) == commit.entries, "another number of entries than the slot says")
    return container


def _optional(seal: bytes) -> int | None:
    return int.from_bytes(seal, "little") if seal else None


def _read_extras(data: bytes) -> dict[int, bytes]:
    fields = {}
    while data:
        identifier, length = struct.unpack_from("<HH", data)
        check(4 + length <= len(data), "an extra field is cut short")
        check(identifier not in fields, "an extra field stands twice")
        fields[identifier], data = data[4 : 4 + length], data[4 + length :]
    return fields


def _open_foreign(path: Path) -> Container:
    """Open a ZIP that another program wrote (1.5)."""
    container = Container()
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for info in archive.infolist():
            check(0x6D61 not in _read_extras(info.extra), "the header of a store is damaged")
            if info.compress_type or info.flag_bits & 1:
                raise UnsupportedError(f"{info.filename} is compressed or encrypted")
            if info.filename.startswith(".ambar/") or (info.is_dir() and not info.file_size):
                continue
            file.seek(info.header_offset)
            local = file.read(30)
            check(local[:4] == b"PK\3\4", f"{info.filename} has no local header")
            start = info.header_offset + 30 + sum(struct.unpack("<HH", local[26:]))
            container.add(info.filename, Entry(path, start, info.file_size, info.CRC))
    return container


def _open_directory(path: Path) -> Container:
    """Open a directory (1.6)."""
    container, records = Container(), path / ".ambar"
    if not os.path.lexists(records):
        for folder, _, names in os.walk(path):
            for name in names:
                file = Path(folder, name)
                check(stat.S_ISREG(file.lstat().st_mode), f"{file} is not a regular file")
                key = file.relative_to(path).as_posix()
                container.add(key, Entry(file, 0, file.stat().st_size, None))
        return container
    check(stat.S_ISDIR(records.lstat().st_mode), f"{records} is not a folder")
    check(os.path.lexists(records / "commit"), "the list of entries is missing")
    with open_plain(records / "commit") as file:
        text = file.read()
    for key, entry in _read_list(path, text):
        waiting = records / f"new-{entry.start}"
        place = waiting if os.path.lexists(waiting) else path / key
        for parent in (path.joinpath(*Path(key).parts[:n]) for n in range(1, key.count("/") + 1)):
            check(place == waiting or not parent.is_symlink(), f"{parent} is a symbolic link")
        check(os.path.lexists(place), f"{key} is missing")
        container.add(key, entry._replace(file=place, start=0))
    return container


def _read_list(path: Path, text: bytes):
    """Yield the keys and entries of a list; `start` of these is the number of the put."""
    body, _, last = text[:-1].rpartition(b"\n")
    body += b"\n"
    check(text.endswith(b"\n") and last == b"crc32c %08x" % crc32c(body), "the list is damaged")
    head, *lines = body.decode().removesuffix("\n").split("\n")
    form = r"ambar directory (\d{3}) commit (\d+) next (\d+) entries (\d+) removed (\d+)"
    match = re.fullmatch(form, head, re.ASCII)
    check(match, "the first line of the list is damaged")
    version, commit, following, entries, removed = map(int, match.groups())
    if version > 1:
        raise UnsupportedError(f"a directory of format {version}; this reads format 1")
    check(version == 1 and commit and len(lines) == entries + removed, "numbers that do not fit")
    keys, puts = [], set()
    for line in lines[:entries]:
        found = re.fullmatch(r"([0-9a-f]{8}) ([0-9a-f]{8}|-) (\d+) (\d+) (.+)", line, re.ASCII)
        check(found, "a line of the list is damaged")
        crc, seal, length, put, key = found.groups()
        check(int(put) < following and put not in puts, "the number of a put is impossible")
        puts.add(put)
        keys.append(key.encode())
        yield key, Entry(path, int(put), int(length), int(crc, 16),
                         None if seal == "-" else int(seal, 16))  # fmt: skip
    gone = [line.removeprefix("removed ").encode() for line in lines[entries:]]
    check(all(line.startswith("removed ") for line in lines[entries:]), "a line is damaged")
    ordered = all(sorted(set(k)) == k for k in (keys, gone)) and not set(keys) & set(gone)
    check(ordered, "keys out of order")
