"""A reader of ambar's stores, written from docs/format.md alone: it shows that the page is enough.

It needs NumPy, and numcodecs and pcodec to decompress. It verifies every checksum, but refuses only
some of what chapter 5 lists, and knows nothing of other programs' stores or of writers at work.
"""

from __future__ import annotations

import base64
import json
import math
import mmap
import re
import struct
import zlib
from collections import namedtuple
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

ABOUT = b"This file is an ambar store: a ZIP that holds a Zarr v3 hierarchy.\n"
ABOUT += b"zarr.storage.ZipStore of zarr-python opens it, too.\n"
COMMENT = rb"ambar 001 commit (\d{20}) record (\d{20}) tail (\d{20}) ([01]) "
COMMENT += rb"crc32c ([0-9a-f]{8}) ([0-9a-f]{8})"
LIST = r"ambar directory 001 commit (\d+) next \d+ entries (\d+) removed (\d+)"
FIXED = {"fixed_length_utf32": ("U", 4), "null_terminated_bytes": ("S", 1)}
VARIABLE = {"string": "vlen-utf8", "variable_length_bytes": "vlen-bytes"}
Commit = namedtuple(
    "Commit", "checksum number offset length entries tail record flags"
)  # as in a slot (1.2)
Record = namedtuple("Record", "commit time message previous log written removed changes")
Cells = namedtuple("Cells", "level corner size centre width")
KEY_BITS = 42  # of each coordinate, at most (4.4)
TABLE = list(range(256))  # of the CRC-32C
for _ in range(8):
    TABLE = [value >> 1 ^ (0x82F63B78 if value & 1 else 0) for value in TABLE]


def need(condition: object, message: str) -> None:
    """Refuse what does not hold."""
    if not condition:
        raise ValueError(message)


def crc32c(data: bytes) -> int:
    """Return the CRC-32C."""
    register = 0xFFFFFFFF
    for byte in data:
        register = TABLE[(register ^ byte) & 255] ^ register >> 8
    return register ^ 0xFFFFFFFF


def read_slot(slot: bytes, place: int) -> Commit | None:
    """Return the commit of a slot, or None if the slot is damaged."""
    magic, version, *fields, checksum = struct.unpack("<8s2I6Q2I", slot)
    commit = Commit(*fields)
    whole = magic == b"ambarcmt" and checksum == crc32c(slot[:68])
    if not whole or (commit.number and commit.number % 2 != place):
        return None
    need(version == 1 and commit.flags < 2, f"a slot of format {version}, flags {commit.flags}")
    need(commit.record < commit.tail or not any(commit), "a slot without a record")
    return commit


def read_trailer(file: mmap.mmap | bytes) -> Commit | None:
    """Return the commit of the trailer at the end of the file, which has all fields of a slot."""
    found = re.fullmatch(COMMENT, file[-118:])
    if found is None:
        raise ValueError("no trailer at the end of the file")
    number, record, tail, flags, checksum, seal = found.groups()
    entries, length, offset = struct.unpack_from("<3Q", file[-216:], 32)
    need(offset + length + 216 == len(file), "the trailer is of another place")
    numbers = (int(checksum, 16), int(number), offset, length, entries, int(tail), int(record))
    fields = (b"ambarcmt", 1, *numbers, int(flags), int(seal, 16))
    return read_slot(struct.pack("<8s2I6Q2I", *fields), int(number) % 2)


def last_commit(file: mmap.mmap | bytes) -> Commit:
    """Find the last commit of a ZIP (1.3)."""
    fields = (b"PK\3\4", 20, 0x0800, 0, 0x210000, zlib.crc32(ABOUT), 119, 119, 5, 1501, b"ambar")
    header = struct.pack("<4s3H4I2H5s2H", *fields, 0x6D61, 1497)
    outside = file[:512] + file[584:1024] + file[1096:1655]
    need(outside == header.ljust(512 + 2 * 440, b"\0") + ABOUT, "the header is damaged")
    slots = [read_slot(file[512:584], 0), read_slot(file[1024:1096], 1)]
    whole = sorted((slot for slot in slots if slot), key=lambda slot: slot.number)
    need(whole, "both slots are damaged")
    last = whole[-1] if len(whole) == 2 else read_trailer(file)
    if last is None or last.number < max(whole[-1].number, 1):
        raise ValueError("no commit, or a damaged trailer")
    end = last.tail if last.flags else last.offset + last.length + 216
    need(last.tail <= last.offset and end <= len(file), "the file was cut short")
    return last


def read_records(file: mmap.mmap | bytes, commit: Commit) -> Iterator[Record]:
    """Yield the record of a commit, and those of the commits before (1.2)."""
    at, length = commit.record, commit.tail - commit.record
    while True:
        data = file[at : at + length]
        need(len(data) == length >= 120, "the length of a record")
        magic, size, seal, place, number, time, before, before_length, *numbers = (
            struct.unpack_from("<8s2I2Qq8Q4I", data)
        )
        log, written, removed, offset, directory, entries, checksum, message, whole, stored = (
            numbers
        )
        fields = (checksum, number, offset, directory, entries, at + length, at, int(whole > 0))
        sound = (magic, size, place, seal) == (b"ambarlog", length, at, crc32c(data[16:]))
        need(sound and 120 + message + stored == length, "a record of a commit is damaged")
        text, changes = data[120 : 120 + message].decode(), data[120 + message :]
        if stored < whole:
            with suppress(zlib.error):
                changes = zlib.decompress(changes, wbits=-15)
        need(len(changes) == whole <= 64 * stored, "the changes of a commit")
        previous = (before, before_length) if before else None
        yield Record(Commit(*fields), time, text, previous, log, written, removed, changes)
        if previous is None:
            return
        need(before + before_length <= at, "a record is not before the next one")
        at, length = previous


def read_zip(
    path: Path, number: int | None = None
) -> tuple[int, dict[str, bytes], dict[str, int | None]]:
    """Return number, entries and seals of a commit of a store in one file; None: the last one."""
    with path.open("rb") as opened:
        file = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    commit = last_commit(file)
    if number is not None:
        commits = {record.commit.number: record.commit for record in read_records(file, commit)}
        commit = commits[number]
    try:
        entries, seals = read_entries(file, file_part(file, commit), commit.offset)
    except ValueError:
        need(commit.flags, "the central directory, or an entry, is damaged")
        entries, seals = restored(file, commit)
    need(len(entries) == commit.entries, "number of entries")
    return commit.number, entries, seals


def file_part(file: mmap.mmap, commit: Commit) -> bytes:
    """Return the central directory of a commit."""
    directory = file[commit.offset : commit.offset + commit.length]
    need(crc32c(directory) == commit.checksum, "checksum of the central directory")
    return directory


def restored(file: mmap.mmap, commit: Commit) -> tuple[dict[str, bytes], dict[str, int | None]]:
    """Return entries and seals of a commit whose tail was overwritten (1.3)."""
    entries: dict[str, bytes] = {}
    seals: dict[str, int | None] = {}
    gone = {"zarr.json"}
    for record in read_records(file, commit):
        keys: list[str] = []
        if record.changes:
            root, at = counted(record.changes, 0, 4)
            count, at = int.from_bytes(record.changes[at : at + 4], "little"), at + 4
            for _ in range(count):
                key, at = counted(record.changes, at, 2)
                keys.append(key.decode())
            if record.commit == commit and root:
                entries["zarr.json"], seals["zarr.json"] = root, None
            directory = record.changes[at:]
        else:
            directory = file_part(file, record.commit)
        found, more = read_entries(file, directory, commit.record, gone | set(entries))
        entries |= found
        seals |= more
        gone |= set(keys)
        if not record.changes:
            return entries, seals
    raise ValueError("no full commit")


def counted(data: bytes, at: int, width: int) -> tuple[bytes, int]:
    """Return bytes that follow their length, and where they end."""
    start = at + width
    end = start + int.from_bytes(data[at:start], "little")
    need(start <= end <= len(data), "the changes of a commit")
    return data[start:end], end


def read_entries(
    file: mmap.mmap, directory: bytes, end: int, skipped: Iterable[str] = ()
) -> tuple[dict[str, bytes], dict[str, int | None]]:
    """Return contents and seals of the entries of a central directory, all of them before `end`."""
    entries: dict[str, bytes] = {}
    seals: dict[str, int | None] = {}
    at = 0
    while at < len(directory):
        fields = struct.unpack_from("<4s4xHH4x3I3H8xI", directory, at)
        magic, flags, method, checksum, stored, size, *lengths, place = fields
        name, extra, at = at + 46, at + 46 + lengths[0], at + 46 + sum(lengths)
        key = directory[name:extra].decode()
        deflated = method == 8 and f"/{key}".endswith("/zarr.json")
        known = (
            magic == b"PK\1\2" and flags == 0x0800 and (deflated or (method, size) == (0, stored))
        )
        need(known and at <= len(directory), "an entry of the central directory")
        if key in skipped:
            continue
        if stored == 2**32 - 1:
            (stored,) = struct.unpack_from("<Q", directory, extra + 4)
        if place == 2**32 - 1:  # the last number of the ZIP64 field
            (place,) = struct.unpack_from("<Q", directory, extra + directory[extra + 2] - 4)
        own = directory[extra:at]
        own = own[4 + own[2] :] if own[:2] == b"\1\0" else own  # after the ZIP64 field
        kind, *seal = struct.unpack("<2I", own) if own else (0x46D61,)
        place += 30 + len(directory[name:extra]) + (20 if stored >= 2**32 - 1 else 0)
        need(kind == 0x46D61 and place + stored <= end, "the place of an entry")
        need(key not in entries, "an entry twice")
        content = file[place : place + stored]
        if deflated:
            need(size <= 64 * stored, f"length of {key}")
            with suppress(zlib.error):
                content = zlib.decompress(content, wbits=-15)
        need(zlib.crc32(content) == checksum, f"checksum of {key}")
        entries[key], seals[key] = content, *(seal or [None])
    return entries, seals


def read_directory(path: Path) -> tuple[int, dict[str, bytes], dict[str, int | None]]:
    """Return number, entries and seals of the last commit of a store in a folder (1.6)."""
    records = path / ".ambar"
    if not records.is_dir():  # a copy without ambar's records
        files = (file for file in path.rglob("*") if file.is_file())
        return 0, {file.relative_to(path).as_posix(): file.read_bytes() for file in files}, {}
    text, entries, seals = (records / "commit").read_bytes(), {}, {}
    need(text[-16:] == b"crc32c %08x\n" % crc32c(text[:-16]), "checksum of the list")
    first, *lines = text[:-16].decode().split("\n")
    found = re.fullmatch(LIST, first)
    if found is None:
        raise ValueError("first line of the list")
    number, count, removed = map(int, found.groups())
    need(len(lines) == count + removed + 1, "lines of the list")
    for line in lines[:count]:
        checksum, seal, size, put, key = line.split(" ", 4)
        new = records / f"new-{put}"
        content = (new if new.exists() else path / key).read_bytes()
        need(f"{zlib.crc32(content):08x} {len(content)}" == f"{checksum} {size}", f"{key} differs")
        entries[key], seals[key] = content, None if seal == "-" else int(seal, 16)
    need(len(entries) == count, "a key occurs twice")
    return number, entries, seals


def named(item: Any) -> tuple[str, dict[str, Any]]:
    """Return name and configuration of a codec, a type, a grid or an encoding."""
    return (item, {}) if isinstance(item, str) else (item["name"], item.get("configuration", {}))


def data_type(name: str, configuration: dict[str, Any]) -> np.dtype[Any]:
    """Return NumPy's type, which is `object` for values of any length."""
    if name in FIXED:
        letter, width = FIXED[name]
        return np.dtype(f"{letter}{configuration['length_bytes'] // width}")
    if name in ("numpy.datetime64", "numpy.timedelta64"):
        unit, scale = configuration["unit"], configuration["scale_factor"]
        return np.dtype(name[6:] + ("" if unit == "generic" else f"[{scale}{unit}]"))
    return np.dtype(object if name in VARIABLE else name)


def fill_value(value: Any, dtype: np.dtype[Any], *, binary: bool) -> Any:
    """Return the fill value of a document (2.2)."""
    if dtype.kind == "c":
        half = np.dtype(f"f{dtype.itemsize // 2}")
        return np.array([fill_value(v, half, binary=False) for v in value], half).view(dtype)[0]
    if binary:
        return base64.b64decode(value, validate=True)
    if dtype.kind == "f" and str(value).startswith("0x"):
        return np.array(int(value, 16), f"u{dtype.itemsize}").view(dtype)
    if dtype.kind in "mM" and value != "NaT":
        return np.array(value, "i8").view(dtype)
    return np.array(value, dtype)


def variable(data: bytes, count: int, codec: str) -> np.ndarray:
    """Decode values of any length."""
    values, at = np.empty(count, object), 4
    for row in range(count):
        end = at + 4 + int.from_bytes(data[at : at + 4], "little")
        values[row] = data[at + 4 : end].decode() if codec == "vlen-utf8" else data[at + 4 : end]
        at = end
    need(data[:4] == struct.pack("<I", count) and at == len(data), "values of any length")
    return values


def decode(codecs: list[Any], data: bytes, dtype: np.dtype[Any], shape: Any) -> np.ndarray:
    """Undo a chain of codecs, from its end on (chapter 3)."""
    from numcodecs import blosc, zstd
    from pcodec import standalone

    (first, configuration), *rest = map(named, codecs)
    if first == "transpose":
        order = configuration["order"]
        values = decode(codecs[1:], data, dtype, [shape[d] for d in order])
        return values.transpose([order.index(d) for d in range(len(shape))])
    if first == "numcodecs.delta":
        names = {configuration["dtype"], configuration.get("astype", configuration["dtype"])}
        need(dtype.kind in "iu" and names == {dtype.str}, f"differences of {names}")
        return np.cumsum(decode(codecs[1:], data, dtype, shape), dtype=dtype).reshape(shape)
    for name, _ in reversed(rest):
        if name == "crc32c":
            need(data[-4:] == struct.pack("<I", crc32c(data[:-4])), "checksum of a chunk")
            data = data[:-4]
        else:
            stored = len(data) if name == "zstd" else struct.unpack_from("<12xI", data)[0]
            need(stored == len(data), "length of a blosc buffer")
            data = {"blosc": blosc, "zstd": zstd}[name].decompress(data)
    if first in VARIABLE.values():
        return variable(data, math.prod(shape), first).reshape(shape)
    if first == "numcodecs.pcodec":
        values = np.empty(math.prod(shape), dtype)
        progress = standalone.simple_decompress_into(data, values)
        need(progress.finished and progress.n_processed == len(values), "numbers of a pco file")
        return values.reshape(shape)
    need(first == "bytes", f"codec {first}")
    order = configuration.get("endian", "little")
    need(order in ("little", "big"), f"byte order {order}")
    return np.frombuffer(data, dtype.newbyteorder(order)).astype(dtype).reshape(shape)


def blank(document: dict[str, Any]) -> np.ndarray:
    """Return an entry of an array, a chunk or a shard, that holds fill values."""
    grid, keys = named(document["chunk_grid"]), named(document["chunk_key_encoding"])
    need((grid[0], keys[0]) == ("regular", "default"), f"grid {grid}, keys {keys}")
    kind = named(document["data_type"])
    dtype = data_type(*kind)
    fill = fill_value(document["fill_value"], dtype, binary="bytes" in kind[0])
    return np.full(grid[1]["chunk_shape"], fill, dtype)


def decode_entry(document: dict[str, Any], data: bytes, seal: int | None) -> np.ndarray:
    """Decode a chunk, or a shard (2.3), and verify its tags if it has a seal."""
    values, codecs = blank(document), document["codecs"]
    name, sharding = named(codecs[0])
    if name != "sharding_indexed":
        need(seal in (None, zlib.crc32(data[-8:])), "the tag of a chunk differs")
        return decode(codecs, data, values.dtype, values.shape)
    chunk, codecs = sharding["chunk_shape"], sharding["codecs"]
    grid = [a // b for a, b in zip(values.shape, chunk, strict=True)]
    count = math.prod(grid)
    size, table = 16 * count + 4, 0 if seal is None else 4 * count
    if sharding.get("index_location") == "start":
        text, tags, sealed = data[:size], data[size : size + table], data[: size + table]
    else:
        text, tags, sealed = data[-size:], data[-size - table : -size], data[-size - table :]
    need(seal in (None, zlib.crc32(sealed)), "the seal of a shard differs")
    index = decode(sharding["index_codecs"], text, np.dtype("u8"), (math.prod(grid), 2))
    places = zip(np.ndindex(*grid), index.tolist(), strict=True)
    for number, (place, (offset, length)) in enumerate(places):
        if min(offset, length) < 2**64 - 1:  # else the chunk holds fill values
            need(offset + length <= len(data), "a chunk lies outside of its shard")
            encoded = data[offset : offset + length]
            tag = struct.pack("<I", zlib.crc32(encoded[-8:]))
            need(tags[4 * number : 4 * number + 4] in (b"", tag), "the tag of a chunk differs")
            values[part(place, chunk)] = decode(codecs, encoded, values.dtype, chunk)
    return values


def part(place: tuple[int, ...], shape: Any) -> tuple[slice, ...]:
    """Return which part of an array is the cell of a grid at `place`."""
    return tuple(slice(p * c, (p + 1) * c) for p, c in zip(place, shape, strict=True))


def parse_root(text: bytes) -> dict[str, Any]:
    """Parse the root's document and verify its checksum (2.4)."""
    document: dict[str, Any] = json.loads(text)
    said = document["attributes"]["ambar"].pop("checksum")  # says nothing of the group
    for match in re.finditer(said.encode(), text):  # attributes may hold the same text
        zeroed = text[: match.end() - 8] + b"00000000" + text[match.end() :]
        if json.loads(zeroed)["attributes"]["ambar"]["checksum"] == "crc32c:00000000":
            need(said == f"crc32c:{crc32c(zeroed):08x}", "checksum of the root")
            need(document["attributes"]["ambar"]["version"] == 1, "version of the store")
            return document
    raise ValueError("the root's checksum is not written as it must be")


class Store:
    """A commit of a store; the last one if `number` is None."""

    def __init__(self, path: Path, number: int | None = None) -> None:
        commit = read_directory(path) if path.is_dir() else read_zip(path, number)
        self.commit, self._entries, self._seals = commit
        root = parse_root(self._entries["zarr.json"])
        nodes = root.pop("consolidated_metadata", {"metadata": None})["metadata"]
        if nodes is None:  # the tail was overwritten
            names = sorted(key[:-10] for key in self._entries if key.endswith("/zarr.json"))
            nodes = {name: json.loads(self._entries[f"{name}/zarr.json"]) for name in names}
        self.nodes = {"": root} | nodes

    def array(self, path: str) -> np.ndarray:
        """Return the values of an array."""
        document, empty = self.nodes[path], blank(self.nodes[path])
        values = np.empty(document["shape"], empty.dtype)
        grid = [-(-a // b) for a, b in zip(values.shape, empty.shape, strict=True)]
        for place in np.ndindex(*grid):
            key = "/".join([path, "c", *map(str, place)])
            where: tuple[Any, ...] = (..., *part(place, empty.shape))
            target = values[where]
            whole = decode_entry(document, self._entries[key], self._seals.get(key))
            target[...] = whole[tuple(map(slice, target.shape))]
        return values

    def cells(self, path: str) -> Cells:
        """Rebuild the leaf cells of a group of the kind `amr` (4.4)."""
        about, level = self.nodes[path]["attributes"]["ambar"], self.array(f"{path}/level")
        said = about["version"], about["kind"], about["layout"], about["cells"]
        need(said == (1, "amr", "tree", len(level)), f"{path} is {said}")
        ndim, finest = about["ndim"], about["lattice_level"]
        box = [2**finest * number for number in about["root"]]
        need(level.max(initial=0) <= finest and max(box) <= 2**KEY_BITS, "size of the lattice")
        jumps: dict[int, int] = {}
        if f"{path}/index/jump_row" in self.nodes:
            rows, corners = (self.array(f"{path}/index/jump_{name}") for name in ("row", "corner"))
            jumps = dict(zip(rows.tolist(), map(morton, corners.tolist()), strict=True))
        size = np.left_shift(1, finest - level.astype(np.int64))[:, None]
        corner = walk(size[:, 0].tolist(), ndim, jumps)
        need(np.all((corner % size == 0) & (corner + size <= box)), "a cell in a wrong place")
        chunk = named(self.nodes[f"{path}/level"]["codecs"][0])[1].get("chunk_shape", [len(level)])
        if len(level) > chunk[0] or f"{path}/index/corner" in self.nodes:
            known = self.array(f"{path}/index/corner")
            need(np.array_equal(corner[:: chunk[0]], known), "the index has other corners")
        unit = about["boxlen"] / about["root"][0] * 2.0**-finest
        return Cells(level, corner, size, (2 * corner + size) * (unit / 2), size[:, 0] * unit)


def walk(sizes: list[int], ndim: int, jumps: dict[int, int]) -> np.ndarray:
    """Go along the curve through cells of these sizes, and return their corners."""
    corners, key = np.empty((len(sizes), ndim), np.int64), 0
    for row, size in enumerate(sizes):
        need(jumps.get(row, key) >= key, "a jump goes back")
        key = jumps.get(row, key)
        bits = f"{key:0{KEY_BITS * ndim}b}"  # those of each coordinate by turns, those of x last
        corners[row] = [int(bits[axis::ndim], 2) for axis in reversed(range(ndim))]
        key += size**ndim
    return corners


def morton(point: list[int]) -> int:
    """Return the key of a point."""
    bits = [f"{coordinate:0{KEY_BITS}b}" for coordinate in reversed(point)]
    return int("".join(map("".join, zip(*bits, strict=True))), 2)
