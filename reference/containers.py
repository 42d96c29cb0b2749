"""Containers: ZIP files and directories that map keys to bytes (format.md, chapter 1)."""

import io
import mmap
import os
import re
import struct
import zipfile
import zlib
from collections import namedtuple
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from stream.bits import DamagedError, Reader, UnsupportedError, check, crc32c

NOTE = (
    b"This file is an ambar store: a ZIP that holds a Zarr v3 hierarchy.\n"
    b"zarr.storage.ZipStore of zarr-python opens it, too.\n"
)
LOCAL = struct.pack("<4sHHHIIIIHH5sHH", b"PK\3\4", 20, 0x800, 0, 0x210000, zlib.crc32(NOTE), 119,
                    119, 5, 1501, b"ambar", 0x6D61, 1497)  # fmt: skip
HEADER = LOCAL + bytes(1536 - len(LOCAL)) + NOTE  # with zeros in place of the slots
SLOT = struct.Struct("<8sIIQQQQQQI")
Commit = namedtuple("Commit", "magic format crc number start length entries tail record flags")
RECORD = struct.Struct("<8sIIQQqQQQQQQQQIIII")
Record = namedtuple("Record", "commit time message previous written removed changes")
TRAILER = 216
COMMENT = (rb"ambar 001 commit (\d{20}) record (\d{20}) tail (\d{20}) ([01]) "
           rb"crc32c ([0-9a-f]{8}) ([0-9a-f]{8})")  # fmt: skip
HEAD = r"ambar directory (\d{3}) commit (\d+) next (\d+) entries (\d+) removed (\d+)"
LINE = r"([0-9a-f]{8}) ([0-9a-f]{8}|-) (\d+) (\d+) (.+)"
Entry = namedtuple(
    "Entry", "source start length crc seal deflated"
)  # of a file or the bytes of a ZIP


class Container(dict[str, Entry]):
    """The entries of a store by their keys."""

    def load(self, key: str) -> bytes:
        """Return the content of an entry, whose length and CRC-32 are verified."""
        source, start, length, crc, _, deflated = self[key]
        whole = isinstance(source, Path)
        data = source.read_bytes() if whole else source[start : start + (deflated or length)]
        data = inflate(data, length) if deflated else data
        check(len(data) == length, f"{key} has {len(data)} bytes; expected {length}")
        check(crc in (None, zlib.crc32(data)), f"the CRC-32 of {key} differs")
        return data

    def add(self, key: str, *entry) -> None:
        """Add an entry."""
        check(key not in self, f"the key {key!r} occurs twice")
        check_key(key)
        self[key] = Entry(*entry)


def inflate(data: bytes, length: int) -> bytes:
    """Return the content of `length` bytes of deflated bytes."""
    decoder = zlib.decompressobj(-15)
    content = b""
    with suppress(zlib.error):
        content = decoder.decompress(data, length + 1)
    valid = decoder.eof and not decoder.unused_data and len(content) == length
    check(valid, "deflated bytes are damaged")
    return content


def check_key(key: str) -> None:
    """Check that a key is valid (1.1)."""
    check(0 < len(key.encode()) <= 4096 and not re.search(r"[\x00-\x1f\x7f\\]", key)
          and not any(s in ("", ".", "..") or len(s.encode()) > 255 for s in key.split("/"))
          and not re.match(r"(?i)\.ambar(/|$)", key)
          and all(s == "zarr.json" or s.lower() != "zarr.json" for s in key.split("/")),
          f"{key!r} is not a valid key")  # fmt: skip


def open_container(path: str | Path, number: int | None = None) -> Container:
    """Return the entries of the last commit of a store, or of the commit of this number."""
    path = Path(path)
    data = None if path.is_dir() else map_file(path)
    commit = data and find_commit(data)
    check(number is None or commit, "only a ZIP of ambar has earlier commits", UnsupportedError)
    if data is None:
        return open_directory(path)
    if commit is None:
        return add_entries(Container(), zipfile.ZipFile(path).infolist(), data, None)
    if number is not None:
        found = [r.commit for r in read_records(data, commit) if r.commit.number == number]
        check(found, f"the file has no commit {number}")
        commit = found[0]
    return open_commit(data, commit)


def list_commits(path: str | Path) -> list[Record]:
    """Return the records of all commits of a ZIP, the newest first (1.3)."""
    data = map_file(Path(path))
    commit = find_commit(data)
    check(commit, "only a ZIP of ambar has earlier commits", UnsupportedError)
    return list(read_records(data, commit))


def map_file(path: Path) -> mmap.mmap:
    """Return the bytes of a file."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def open_commit(data: mmap.mmap, commit: Commit) -> Container:
    """Return the entries of a commit, by its tail, or by the records (1.3)."""
    directory = data[commit.start : commit.start + commit.length]
    if crc32c(directory) != commit.crc:
        check(commit.flags, "the CRC-32C of the central directory differs")
        return restore(data, commit)
    container = add_entries(Container(), list_directory(directory), data, commit.start)
    check(len(container) == commit.entries, "another number of entries than committed")
    if commit.flags and "zarr.json" in container:
        try:
            container.load("zarr.json")
        except ValueError:
            return restore(data, commit)
    return container


def restore(data: mmap.mmap, commit: Commit) -> Container:
    """Return the entries of a commit whose tail was overwritten (1.3)."""
    container, known = Container(), {"zarr.json"}
    for record in read_records(data, commit):
        full = record.commit
        removed, directory = [], data[full.start : full.start + full.length]
        if record.changes:
            root, removed, directory = record.changes
            if full == commit and root:
                container.add("zarr.json", root, 0, len(root), None, None, None)
        else:
            check(crc32c(directory) == full.crc, "the CRC-32C of a central directory differs")
        infos = [info for info in list_directory(directory) if info.orig_filename not in known]
        add_entries(container, infos, data, commit.record)
        known.update(container, removed)
        if not record.changes:
            check(len(container) == commit.entries, "another number of entries than committed")
            return container
    raise DamagedError("no record of a full commit")


def list_directory(directory: bytes) -> list[zipfile.ZipInfo]:
    """Return the entries of a central directory."""
    end = struct.pack("<4s8xIIH", b"PK\5\6", len(directory), 0, 0)
    return zipfile.ZipFile(io.BytesIO(directory + end)).infolist()


def add_entries(
    container: Container, infos: list[zipfile.ZipInfo], data: mmap.mmap, end: int | None
) -> Container:
    """Add entries of a central directory, all of which are before `end` (None: a foreign ZIP)."""
    for info in infos:
        mine = read_extras(info.extra).get(0x6D61, b"")
        document = f"/{info.filename}".endswith("/zarr.json")
        deflated = info.compress_size if document and info.compress_type == 8 else None
        check((info.compress_type == 0 or deflated is not None) and info.flag_bits & 1 == 0,
              f"{info.filename} is compressed or encrypted", UnsupportedError)  # fmt: skip
        possible = [info.file_size] if deflated is None else range(-(-info.file_size // 64), 2**32)
        check(info.compress_size in possible, f"{info.filename} has two different lengths")
        name_end = info.header_offset + 30 + len(info.filename.encode())
        if end is not None:
            check(len(mine) in (0, 4), f"{info.filename} has an invalid extra field of ambar")
            start = name_end + (20 if info.file_size >= 2**32 - 1 else 0)
            check(start + info.compress_size <= end, f"{info.filename} is outside of the entries")
        else:
            check(not mine, "the header of a store is damaged")
            if info.filename.startswith(".ambar/") or (info.is_dir() and not info.file_size):
                continue
            lengths = struct.unpack_from("<HH", data, info.header_offset + 26)
            start = info.header_offset + 30 + sum(lengths)
        seal = int.from_bytes(mine, "little") if mine else None
        container.add(info.orig_filename, data, start, info.file_size, info.CRC, seal, deflated)
    return container


def find_commit(data: mmap.mmap) -> Commit | None:
    """Return the last commit (1.3), or None for a ZIP of another program."""
    last = read_trailer(data)
    if data[26:37] != LOCAL[26:37]:
        check(last is None, "the header of a store is damaged")
        return None
    header = data[:512] + bytes(72) + data[584:1024] + bytes(72) + data[1096 : len(HEADER)]
    check(header == HEADER, "the header is damaged")
    commits = [read_slot(data[512:584], 0), read_slot(data[1024:1096], 1)]
    commit = max(filter(None, commits), key=lambda commit: commit.number, default=None)
    check(commit, "both slots of the header are damaged")
    if None in commits:
        check(last and last.number >= commit.number, "a slot and the trailer are damaged")
        commit = last
    check(commit.number > 0, "the store has no commit")
    end = commit.tail if commit.flags else commit.start + commit.length + TRAILER
    check(end <= len(data), "the file is truncated")
    return commit


def read_slot(slot: bytes, place: int) -> Commit | None:
    """Return the commit of a slot (1.2), or None if the slot is damaged."""
    commit = Commit(*SLOT.unpack(slot[:68]))
    if commit.magic != b"ambarcmt" or crc32c(slot[:68]) != int.from_bytes(slot[68:], "little"):
        return None
    check(commit.format <= 1, f"format {commit.format}; expected 1", UnsupportedError)
    if commit.number and commit.number % 2 != place:
        return None
    check(commit.format == 1 and (is_valid(commit) or not any(commit[2:])),
          "invalid fields of a slot")  # fmt: skip
    return commit


def is_valid(commit: Commit) -> bool:
    """Return whether a writer can have written these fields."""
    in_order = commit.record < commit.tail <= commit.start
    end = commit.start + commit.length + TRAILER
    return commit.number > 0 and in_order and end < 1 << 64 and commit.flags in (0, 1)


def read_trailer(data: mmap.mmap) -> Commit | None:
    """Return the commit of the trailer at the end of the file (1.2), or None."""
    trailer = data[-TRAILER:]
    match = re.fullmatch(COMMENT, trailer[98:])
    if not match or trailer[:4] != b"PK\6\6":
        return None
    entries, length, start = struct.unpack_from("<QQQ", trailer, 32)
    number, record, tail, flags = map(int, match.groups()[:4])
    crc, checksum = (int(digits, 16) for digits in match.groups()[4:])
    fields = crc, number, start, length, entries, tail, record, flags
    slot = SLOT.pack(b"ambarcmt", 1, *fields) + checksum.to_bytes(4, "little")
    at_end = start + length + TRAILER == len(data)
    return read_slot(slot, number % 2) if at_end else None


def read_records(data: mmap.mmap, commit: Commit) -> Iterator[Record]:
    """Yield the record of a commit, and those of all commits before (1.2)."""
    record = read_record(data, commit.record, commit.tail - commit.record)
    check(record.commit == commit, "the record is of another commit")
    yield record
    while record.previous:
        start, length = record.previous
        check(start + length <= record.commit.record, "a record is not before the next one")
        record = read_record(data, start, length)
        yield record


def read_record(data: mmap.mmap, start: int, length: int) -> Record:
    """Return the record of a commit (1.2)."""
    text = data[start : start + length]
    check(RECORD.size <= length == len(text), f"the record of a commit at {start} is damaged")
    (magic, size, checksum, place, number, time, before, before_length, _, written, removed, offset,
     directory, entries, crc, message, whole, stored) = RECORD.unpack_from(text)  # fmt: skip
    split = RECORD.size + message
    changes = text[split:]
    commit = Commit(b"ambarcmt", 1, crc, number, offset, directory, entries, start + length, start,
                    int(whole > 0))  # fmt: skip
    check(magic == b"ambarlog" and (size, place) == (length, start) and is_valid(commit)
          and crc32c(text[16:]) == checksum and len(changes) == stored
          and stored <= whole <= 64 * stored, f"the record of a commit at {start} is damaged"
          )  # fmt: skip
    changes = inflate(changes, whole) if stored < whole else changes
    message = text[RECORD.size : split].decode()
    previous = (before, before_length) if before else None
    return Record(commit, time, message, previous, written, removed, read_changes(changes))


def read_changes(changes: bytes) -> tuple[bytes, list[str], bytes] | None:
    """Return the root's document, keys of removed entries, and entries of a record (1.2)."""
    if not changes:
        return None
    reader, removed = Reader(changes), []
    root = reader.take(reader.unpack("I"))
    for _ in range(reader.unpack("I")):
        removed.append(reader.take(reader.unpack("H")).decode())
    return root, removed, changes[reader.at :]


def read_extras(data: bytes) -> dict[int, bytes]:
    """Return the extra fields of an entry of a central directory."""
    fields = {}
    while data:
        identifier, length = struct.unpack_from("<HH", data)
        check(4 + length <= len(data) and identifier not in fields, "invalid extra fields")
        fields[identifier], data = data[4 : 4 + length], data[4 + length :]
    return fields


def open_directory(folder: Path) -> Container:
    """Return the entries of a directory (1.6)."""
    container = Container()
    if os.path.lexists(folder / ".ambar"):
        for key, put, *entry in read_list(find_file(folder, ".ambar/commit").read_bytes()):
            new = f".ambar/new-{put}"
            file = find_file(folder, new if os.path.lexists(folder / new) else key)
            container.add(key, file, 0, *entry, None)
    else:
        for path in folder.rglob("*"):
            if path.is_symlink() or not path.is_dir():
                key = path.relative_to(folder).as_posix()
                file = find_file(folder, key)
                container.add(key, file, 0, file.stat().st_size, None, None, None)
    return container


def find_file(folder: Path, key: str) -> Path:
    """Return the path of a regular file that is reached without symbolic links (1.6)."""
    path = folder
    for segment in key.split("/"):
        path /= segment
        check(not path.is_symlink(), f"{path} is a symbolic link")
    check(path.is_file(), f"{path} does not exist, or is not a regular file")
    return path


def read_list(text: bytes) -> list[tuple]:
    """Return the key, number of the put, length, CRC-32 and seal of the entries of a list (1.6)."""
    body, _, last = text.rpartition(b"crc32c ")
    check(body[-1:] == b"\n" and last == b"%08x\n" % crc32c(body), "the list is damaged")
    head, *lines = body.decode()[:-1].split("\n")
    match = re.fullmatch(HEAD, head, re.ASCII)
    check(match, "the first line of the list is damaged")
    version, commit, following, entries, removed = map(int, match.groups())
    check(version <= 1, f"a directory of format {version}; expected 1", UnsupportedError)
    check(version == 1 and commit and len(lines) == entries + removed, "invalid counts in the list")
    found = []
    for line in lines[:entries]:
        match = re.fullmatch(LINE, line, re.ASCII)
        check(match, "a line of the list is damaged")
        crc, seal, length, put, key = match.groups()
        seal = None if seal == "-" else int(seal, 16)
        found.append((key, int(put), int(length), int(crc, 16), seal))
    keys, puts = [entry[0] for entry in found], {entry[1] for entry in found}
    gone = [line.removeprefix("removed ") for line in lines[entries:]]
    check(len(puts) == entries and max(puts, default=-1) < following, "invalid numbers of puts")
    check(lines[entries:] == [f"removed {key}" for key in gone], "a line of the list is damaged")
    check(all(sorted({*k}, key=str.encode) == k for k in (keys, gone)), "keys are not sorted")
    check(not {*keys} & {*gone}, "a key of the list is both an entry and removed")
    return found
