"""Containers: ZIP files and directories that map keys to bytes (format.md, chapter 1)."""

import io
import os
import re
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

from stream.bits import check, check_supported, crc32c, damage

NOTE = (
    b"This file is an ambar store: a ZIP that holds a Zarr v3 hierarchy.\n"
    b"zarr.storage.ZipStore of zarr-python opens it, too.\n"
)
LOCAL = struct.pack("<4sHHHIIIIHH5sHH", b"PK\3\4", 20, 0x800, 0, 0x210000, zlib.crc32(NOTE), 119,
                    119, 5, 1501, b"ambar", 0x6D61, 1497)  # fmt: skip
HEADER = LOCAL + bytes(1536 - len(LOCAL)) + NOTE  # with zeros in place of the slots
TRAILER = 186
COMMENT = rb"ambar 001 commit (\d{20}) tail (\d{20}) crc32c ([0-9a-f]{8}) ([0-9a-f]{8})"
HEAD = r"ambar directory (\d{3}) commit (\d+) next (\d+) entries (\d+) removed (\d+)"
LINE = r"([0-9a-f]{8}) ([0-9a-f]{8}|-) (\d+) (\d+) (.+)"


class Entry(NamedTuple):
    """Where an entry's bytes are, their CRC-32 and their seal; None where there is none."""

    file: Path
    start: int
    length: int
    crc: int | None
    seal: int | None = None


class Container(dict[str, Entry]):
    """The entries of a store by their keys."""

    def load(self, key: str) -> bytes:
        """Return the content of an entry, whose length and CRC-32 are verified."""
        entry = self[key]
        with open_plain(entry.file) as file:
            file.seek(entry.start)
            data = file.read(entry.length)
            size = os.fstat(file.fileno()).st_size
        check(len(data) == entry.length, f"{key} is shorter than {entry.length} bytes")
        check(entry.start or size == entry.length, f"{key} is longer than {entry.length} bytes")
        check(entry.crc in (None, zlib.crc32(data)), f"the CRC-32 of {key} differs")
        return data

    def add(self, key: str, entry: Entry) -> None:
        """Add an entry, whose key is checked."""
        check(key not in self, f"the key {key!r} stands twice")
        check_key(key)
        self[key] = entry


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


def open_plain(path: Path):
    """Open a file that is neither a link nor a device."""
    check(stat.S_ISREG(os.lstat(path).st_mode), f"{path} is not a regular file")
    return path.open("rb")


def check_key(key: str) -> None:
    """Check that a key is as 1.1 has it."""
    segments = key.split("/")
    check(0 < len(key.encode()) <= 4096 and not re.search(r"[\x00-\x1f\x7f\\]", key)
          and not any(s in ("", ".", "..") or len(s.encode()) > 255 for s in segments)
          and segments[0].lower() != ".ambar"
          and all(s == "zarr.json" or s.lower() != "zarr.json" for s in segments),
          f"{key!r} is not a valid key")  # fmt: skip


def open_container(path: str | Path) -> Container:
    """Open a store; damage and unknown formats are a `ValueError`."""
    path = Path(path)
    with damage(struct.error, zipfile.BadZipFile):
        return _open_directory(path) if path.is_dir() else _open_zip(path)


def _open_zip(path: Path) -> Container:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        header = file.read(len(HEADER))
        file.seek(max(0, size - TRAILER))
        trailer = file.read()
        if header[26:37] != LOCAL[26:37]:
            check(not _read_trailer(trailer, size), "the header of a store is damaged")
            return _read_entries(path, path, None)
        slots = header[512:576], header[1024:1088]
        check(header.replace(slots[0], bytes(64)).replace(slots[1], bytes(64)) == HEADER,
              "the header is damaged")  # fmt: skip
        commits = [_read_slot(slot, i) for i, slot in enumerate(slots)]
        commit = _last_commit(commits, trailer, size)
        file.seek(commit.start)
        directory = file.read(commit.length)
    check(crc32c(directory) == commit.crc, "the CRC-32C of the central directory differs")
    end = struct.pack("<4s8xIIH", b"PK\5\6", len(directory), 0, 0)
    return _read_entries(path, io.BytesIO(directory + end), commit)


def _read_slot(slot: bytes, number: int) -> Commit | None:
    """Return the commit of a slot, or None if the slot is damaged."""
    commit = Commit(*struct.unpack("<8sIIQQQQQI", slot[:60]))
    if commit.magic != b"ambarcmt" or crc32c(slot[:60]) != int.from_bytes(slot[60:], "little"):
        return None
    check_supported(commit.version <= 1, f"a container of format {commit.version}; expected 1")
    if commit.number and commit.number % 2 != number:
        return None
    check(commit.version == 1 and commit.reserved == 0 and (commit.number or not any(commit[2:])),
          "a slot of impossible fields")  # fmt: skip
    check(commit.end < 1 << 64, "a commit that ends behind 2^64")
    check(commit.tail <= commit.start, "a tail behind the central directory")
    return commit


def _read_trailer(trailer: bytes, size: int) -> Commit | None:
    """Return the commit of a whole trailer that ends a file of `size` bytes, or None."""
    match = re.fullmatch(COMMENT, trailer[98:])
    if not match or trailer[:4] != b"PK\6\6" or len(trailer) != TRAILER:
        return None
    entries, length, start = struct.unpack_from("<QQQ", trailer, 32)
    commit = Commit(b"ambarcmt", 1, int(match[3], 16), int(match[1]), start, length, entries,
                    int(match[2]), 0)  # fmt: skip
    slot = struct.pack("<8sIIQQQQQI", *commit)
    return commit if crc32c(slot) == int(match[4], 16) and commit.end == size else None


def _last_commit(slots: list[Commit | None], trailer: bytes, size: int) -> Commit:
    """Find the last commit (1.3)."""
    sound = [slot for slot in slots if slot]
    check(sound, "both slots are damaged")
    commit = max(sound, key=lambda slot: slot.number)
    if len(sound) == 1:
        last = _read_trailer(trailer, size)
        check(last and last.number >= commit.number, "a slot is damaged, and no trailer vouches")
        commit = last
    check(commit.number > 0, "no commit was ever made")
    check(commit.end <= size, "the file was cut short")
    return commit


def _read_entries(path: Path, source, commit: Commit | None) -> Container:
    """Read the central directory of a commit, or that of another program's ZIP (1.5)."""
    container = Container()
    with path.open("rb") as file:
        for info in zipfile.ZipFile(source).infolist():
            mine = _read_extras(info.extra).get(0x6D61, b"")
            check_supported(info.compress_type == 0 and info.flag_bits & 1 == 0,
                            f"{info.filename} is compressed or encrypted")  # fmt: skip
            check(info.compress_size == info.file_size, f"{info.filename} has two lengths")
            if commit:
                check(len(mine) in (8, 12), f"{info.filename} has no extra field of ambar's")
                start = int.from_bytes(mine[:8], "little")
                least = info.header_offset + 30 + len(info.filename.encode())
                check(least <= start and start + info.file_size <= commit.start,
                      f"{info.filename} lies where it cannot")  # fmt: skip
            else:
                check(not mine, "the header of a store is damaged")
                if info.filename.startswith(".ambar/") or (info.is_dir() and not info.file_size):
                    continue
                file.seek(info.header_offset)
                start = info.header_offset + 30 + sum(struct.unpack("<26xHH", file.read(30)))
            seal = int.from_bytes(mine[8:], "little") if len(mine) == 12 else None
            container.add(info.orig_filename, Entry(path, start, info.file_size, info.CRC, seal))
    check(not commit or len(container) == commit.entries, "another number of entries")
    return container


def _read_extras(data: bytes) -> dict[int, bytes]:
    fields = {}
    while data:
        identifier, length = struct.unpack_from("<HH", data)
        check(4 + length <= len(data) and identifier not in fields, "extra fields are damaged")
        fields[identifier], data = data[4 : 4 + length], data[4 + length :]
    return fields


def _open_directory(path: Path) -> Container:
    """Open a directory (1.6)."""
    container, records = Container(), path / ".ambar"
    if not os.path.lexists(records):
        for file in (Path(folder, name) for folder, _, names in os.walk(path) for name in names):
            check(stat.S_ISREG(file.lstat().st_mode), f"{file} is not a regular file")
            key = file.relative_to(path).as_posix()
            container.add(key, Entry(file, 0, file.stat().st_size, None))
        return container
    check(stat.S_ISDIR(records.lstat().st_mode), f"{records} is not a folder")
    check(os.path.lexists(records / "commit"), "the list of entries is missing")
    with open_plain(records / "commit") as file:
        text = file.read()
    for key, entry in _read_list(text).items():
        place = records / f"new-{entry.start}"
        if not os.path.lexists(place):
            place = path / key
            for parent in list(place.parents)[: key.count("/")]:
                check(not parent.is_symlink(), f"{parent} is a symbolic link")
        check(os.path.lexists(place), f"{key} is missing")
        container.add(key, entry._replace(file=place, start=0))
    return container


def _read_list(text: bytes) -> dict[str, Entry]:
    """Return the entries of a list by their keys; their `start` is the number of the put."""
    body, _, last = text.removesuffix(b"\n").rpartition(b"\n")
    check(text.endswith(b"\n") and last == b"crc32c %08x" % crc32c(body + b"\n"), "a damaged list")
    head, *lines = body.decode().split("\n")
    match = re.fullmatch(HEAD, head, re.ASCII)
    check(match, "the first line of the list is damaged")
    version, commit, following, entries, removed = map(int, match.groups())
    check_supported(version <= 1, f"a directory of format {version}; expected 1")
    check(version == 1 and commit and len(lines) == entries + removed, "numbers that do not fit")
    found = {}
    for line in lines[:entries]:
        parts = re.fullmatch(LINE, line, re.ASCII)
        check(parts, "a line of the list is damaged")
        crc, seal, length, put, key = parts.groups()
        found[key] = Entry(Path(), int(put), int(length), int(crc, 16),
                           None if seal == "-" else int(seal, 16))  # fmt: skip
    puts = {entry.start for entry in found.values()}
    check(len(puts) == entries and max(puts, default=-1) < following, "impossible numbers of puts")
    check(all(line.startswith("removed ") for line in lines[entries:]), "a line is damaged")
    gone = [line[8:] for line in lines[entries:]]
    check(all(sorted(set(k), key=str.encode) == list(k) for k in (found, gone)) and
          not found.keys() & set(gone), "keys out of order")  # fmt: skip
    return found
