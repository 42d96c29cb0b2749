"""AMReX checkpoints: folders of MultiFabs with any ghost cells and nodal types, and other files.

A store keeps the files bit for bit: the values of FABs of equal shape are rows of arrays, and all
other bytes are arrays too. Each row of the table `segments` is a part of a file: the number of the
file in `files`, the number of the array in `values`, the first value in the array, and the number
of values.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.output_files import has_multifabs
from ambar._util.progress import progress_function
from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import Conversion, ConvertRequest, CopyRequest, ExportRequest
from ambar.kinds.targets import copying
from ambar.store.copies.arrays import copy_arrays
from ambar.store.kind import ARRAYS, summarize_store
from ambar.store.store import Store
from ambar.store.writer import Writer

_FAB = re.compile(
    rb"FAB \(\(\d+, \([\d ]+\)\),\((?P<bytes>[48]), \((?P<order>[\d ]+)\)\)\)"
    rb"\(\((?P<lo>[-\d,]+)\) \((?P<hi>[-\d,]+)\) \((?P<type>[\d,]+)\)\) (?P<components>\d+)\n"
)
_DTYPES: dict[bytes, np.dtype[Any]] = {
    b"8 7 6 5 4 3 2 1": np.dtype("<f8"),
    b"4 3 2 1": np.dtype("<f4"),
}
"""Types of values by the order of their bytes in the header; other values are kept as bytes."""
_LONGEST_HEADER = 4096
_ARRAY_BYTES = 32 << 20
"""Bytes of an array of values, and of the parts of a FAB."""
_PENDING_BYTES = 256 << 20
_SMALL_BYTES = 256 << 10
"""FABs of a shape that has fewer bytes at the end are rows of an array of numbers."""
_CACHED_BYTES = 512 << 20
_AGAIN = "copy the checkpoint again"

_Layout: TypeAlias = tuple[str, tuple[int, ...]]
"""The dtype of values, and the shape of a row: components and cells, z first; () of numbers."""


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder is a checkpoint: with a header and MultiFabs, but not a plotfile."""
    place = Path(path)
    return place.is_dir() and has_multifabs(place) and not _core.is_plotfile(place)


@dataclass
class _Batch:
    """Rows of one layout, which become an array."""

    layout: _Layout
    rows: list[np.ndarray] = field(default_factory=list)
    count: int = 0
    bytes: int = 0
    number: int | None = None
    """The number of its array, after it was written."""
    merged: tuple[_Batch, int] | None = None
    """The batch of numbers that has its values, and the first of them."""

    @property
    def row_values(self) -> int:
        """The number of values of a row."""
        return int(np.prod(self.layout[1], dtype=np.int64))

    def place(self, row: int) -> tuple[int, int]:
        """Return the number of the array that has a row, and the first value of the row in it."""
        batch, first = self.merged or (self, 0)
        if batch.number is None:
            raise _core.InvalidError("expected written values, found pending ones")
        return batch.number, first + row * self.row_values


@dataclass
class _MultiFab:
    fabs: int = 0
    components: int = 0
    type: str = ""
    values: int = 0


def _convert(request: ConvertRequest) -> Conversion:
    start = time.perf_counter()
    (path,) = map(Path, request.paths)
    request.refuse_append()
    if request.error_bound is not None:
        raise _core.InvalidError(
            f"{path}: checkpoints are stored without loss, so that a run continues bit for bit; "
            "convert it without an error bound"
        )
    files = _files(path)
    total = sum(size for _, size in files)
    _check_complete(path, {name for name, _ in files})
    with (
        progress_function(request.progress, f"converting {path.name}") as progress,
        request.create("w" if request.mode == "w" else "w-") as writer,
    ):
        stored = _CheckpointWriter(writer)
        done = 0
        for number, (name, size) in enumerate(files):
            stored.add(number, path, name)
            done += size
            if progress:
                progress(done, max(total, 1))
        stored.end([name for name, _ in files], {"name": path.name, "bytes": total})
    return Conversion(
        os.fspath(request.target),
        total,
        request.stored_bytes(),
        time.perf_counter() - start,
        [path.name],
    )


def _files(path: Path) -> list[tuple[str, int]]:
    """Return names and sizes of all files, and of empty folders with a slash at the end."""
    found = []
    for place in sorted(path.rglob("*")):
        name = place.relative_to(path).as_posix()
        if place.is_symlink() or not (place.is_dir() or place.is_file()):
            raise _core.UnsupportedError(
                f"{place}: expected files and folders in a checkpoint, found a link or a device; "
                "replace it by a copy"
            )
        if place.is_file():
            found.append((name, place.stat().st_size))
        elif next(place.iterdir(), None) is None:
            found.append((f"{name}/", 0))
    return found


def _check_complete(path: Path, names: set[str]) -> None:
    """Raise CorruptError if a file that the header of a MultiFab names does not exist."""
    for name in sorted(names):
        if not name.endswith("_H"):
            continue
        parent = PurePosixPath(name).parent
        for line in (path / name).read_bytes().splitlines():
            if line.startswith(b"FabOnDisk: "):
                fab = line.split()[1:2]
                data = (parent / b"".join(fab).decode(errors="replace")).as_posix()
                if data not in names:
                    raise _core.CorruptError(
                        f"{path / data}: the file does not exist, but {name} names it; {_AGAIN}"
                    )


class _CheckpointWriter:
    """Collects rows of files, and writes them as arrays."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._pending: dict[_Layout, _Batch] = {}
        self._segments: list[tuple[int, _Batch, int, int]] = []
        self._arrays = 0
        self._multifabs: dict[str, _MultiFab] = {}

    def add(self, number: int, folder: Path, name: str) -> None:
        """Add the file `number`."""
        if name.endswith("/"):
            return
        with (folder / name).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if file.read(5) == b"FAB (":
                file.seek(0)
                self._add_fabs(number, file, size, name)
                return
            file.seek(0)
            dtype = _dtype_of(folder, name)
            for piece in iter(lambda: file.read(_ARRAY_BYTES), b""):
                whole = len(piece) - len(piece) % dtype.itemsize
                self._add(number, np.frombuffer(piece[:whole], dtype), ())
                self._add_bytes(number, piece[whole:])

    def _add_fabs(self, number: int, file: IO[bytes], size: int, name: str) -> None:
        prefix = re.sub(r"_D_\d+$", "", name)
        while (start := file.tell()) < size:
            head = _FAB.match(file.read(_LONGEST_HEADER))
            if head is None:
                raise _core.CorruptError(
                    f"{file.name}: expected the header of a FAB at byte {start}; {_AGAIN}"
                )
            file.seek(start + head.end())
            shape = _shape_of(head)
            components, width = int(head["components"]), int(head["bytes"])
            # Integers of Python do not overflow.
            values = components * math.prod(shape)
            length = values * width
            is_valid = components > 0 and len(head["order"].split()) == width
            if not shape or not is_valid:
                raise _core.CorruptError(
                    f"{file.name}: expected a box of cells and their components in the header at "
                    f"byte {start}, found {head[0].decode().strip()!r:.200}; {_AGAIN}"
                )
            if file.tell() + length > size:
                raise _core.CorruptError(
                    f"{file.name}: expected {length} bytes of the FAB at byte {start}, found "
                    f"{size - file.tell()}; {_AGAIN}"
                )
            self._add_bytes(number, head[0])
            dtype = _DTYPES.get(head["order"])
            if dtype is None:
                for size_here in _sizes(length, _ARRAY_BYTES):
                    self._add_bytes(number, file.read(size_here))
            else:
                for row in _rows(components, shape, width):
                    content = file.read(math.prod(row) * width)
                    self._add(number, np.frombuffer(content, dtype).reshape(row), row)
            about = self._multifabs.setdefault(prefix, _MultiFab())
            about.fabs += 1
            about.components = components
            about.type = head["type"].decode()
            about.values += values

    def _add_bytes(self, number: int, content: bytes) -> None:
        if content:
            self._add(number, np.frombuffer(content, np.uint8), ())

    def _add(self, number: int, values: np.ndarray, row: tuple[int, ...]) -> None:
        """Add one row of this shape, or numbers."""
        layout = (values.dtype.str, row)
        batch = self._pending.setdefault(layout, _Batch(layout))
        count = 1 if row else len(values)
        if not count:
            return
        self._segments.append((number, batch, batch.count, count))
        batch.rows.append(values)
        batch.count += count
        batch.bytes += values.nbytes
        if batch.bytes >= _ARRAY_BYTES:
            self._write(batch)
        elif sum(batch.bytes for batch in self._pending.values()) > _PENDING_BYTES:
            self._write(max(self._pending.values(), key=lambda batch: batch.bytes))

    def _write(self, batch: _Batch) -> None:
        is_grid = len(batch.layout[1]) > 0
        del self._pending[batch.layout]
        batch.number = self._arrays
        self._arrays += 1
        values = np.stack(batch.rows) if is_grid else np.concatenate(batch.rows)
        batch.rows.clear()
        self._writer.create_array(
            f"values/{batch.number}", values, layout="grid" if is_grid else None
        )

    def _merge_small(self) -> None:
        """Append FABs of shapes that have few bytes to an array of numbers."""
        for layout, batch in list(self._pending.items()):
            if layout[1] and batch.bytes < _SMALL_BYTES:
                del self._pending[layout]
                whole = self._pending.setdefault((layout[0], ()), _Batch((layout[0], ())))
                batch.merged = whole, whole.count
                whole.rows += [row.ravel() for row in batch.rows]
                whole.count += batch.count * batch.row_values
                whole.bytes += batch.bytes

    def end(self, names: list[str], source: dict[str, Any]) -> None:
        """Write pending rows, the table of segments and the attributes."""
        self._merge_small()
        for batch in list(self._pending.values()):
            self._write(batch)
        table = [
            (file, *batch.place(start), count * batch.row_values)
            for file, batch, start, count in self._segments
        ]
        self._writer.create_array("segments", np.array(table, np.int64).reshape(-1, 4))
        self._writer.create_array("files", np.array(names, str))
        about = {name: vars(multifab) for name, multifab in self._multifabs.items()}
        own = {
            "version": 1,
            "kind": "checkpoint",
            "source": {"format": "amrex", "files": len(names), **source},
            "multifabs": about,
        }
        self._writer._create_group("/", {"ambar": own})


def _rows(components: int, shape: tuple[int, ...], width: int) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of the parts of a FAB, which are in memory one at a time.

    A large FAB is divided into components, and these into slabs of cells.
    """
    slab = math.prod(shape[1:]) * width
    if components * shape[0] * slab <= _ARRAY_BYTES:
        yield (components, *shape)
        return
    for _ in range(components):
        for length in _sizes(shape[0], max(_ARRAY_BYTES // slab, 1)):
            yield (1, length, *shape[1:])


def _sizes(total: int, most: int) -> Iterator[int]:
    """Yield the sizes of consecutive parts of at most `most`."""
    yield from (min(most, total - start) for start in range(0, total, most))


def _shape_of(head: re.Match[bytes]) -> tuple[int, ...]:
    """Return the cells of a FAB in each dimension, z first; () for an invalid box."""
    try:
        lo, hi = ([int(each) for each in head[end].split(b",")] for end in ("lo", "hi"))
    except ValueError:
        return ()
    sides = tuple(b - a + 1 for a, b in zip(lo, hi, strict=False))[::-1]
    return sides if len(lo) == len(hi) <= 3 and min(sides) > 0 else ()


def _dtype_of(folder: Path, name: str) -> np.dtype[Any]:
    """Return the type of the values in a file without headers of FABs."""
    place = PurePosixPath(name)
    if re.fullmatch(r"DATA_\d+", place.name) and len(place.parts) > 2:
        header = folder.joinpath(*place.parts[:-2], "Header")
        version = header.read_bytes()[:64].split(b"\n")[0] if header.is_file() else b""
        if version.startswith(b"Version_"):
            return np.dtype("<f4" if version.endswith(b"_single") else "<f8")
    return np.dtype("<f8" if re.search(r"_D_\d+$", name) else "u1")


def _export(request: ExportRequest) -> None:
    store, target = request.opened, request.target
    names = [str(name) for name in store["files"][:]]
    segments = store["segments"][:]
    _check_segments(store, segments, len(names))
    arrays = _Arrays(store, request.threads)
    ends = np.searchsorted(segments[:, 0], np.arange(len(names)), "right")
    title = f"exporting {Path(request.store).name}"
    target.mkdir()
    with progress_function(request.progress, title) as progress:
        first = 0
        for number, (name, end) in enumerate(zip(names, ends.tolist(), strict=True)):
            place = target / _checked(store, name)
            if name.endswith("/"):
                place.mkdir(parents=True)
            else:
                place.parent.mkdir(parents=True, exist_ok=True)
                with place.open("xb") as file:
                    for array, start, count in segments[first:end, 1:].tolist():
                        file.write(arrays.read(array, start, count))
            first = end
            if progress:
                progress(number + 1, len(names))


def _check_segments(store: Store, segments: np.ndarray, files: int) -> None:
    """Raise CorruptError unless the segments are those of the files, and of existing values."""
    if segments.ndim != 2 or segments.shape[1] != 4 or np.any(np.diff(segments[:, 0]) < 0):
        raise _damaged(store, "the table of segments is not sorted by file")
    if len(segments) and not (segments[0, 0] >= 0 and segments[-1, 0] < files):
        raise _damaged(store, f"the table of segments has other files than the {files} listed")
    total = 0
    for array in np.unique(segments[:, 1]).tolist():
        if f"values/{array}" not in store:
            raise _damaged(store, f"the array values/{array} of the table of segments is missing")
        values = store._array(f"values/{array}")
        _, _, starts, counts = segments[segments[:, 1] == array].T
        size = math.prod(values.shape)
        # Compared without sums, which could overflow.
        if np.any((starts < 0) | (counts < 0) | (starts > size) | (counts > size - starts)):
            raise _damaged(store, f"the table of segments has values that values/{array} lacks")
        total += sum(counts.tolist()) * values.dtype.itemsize
    expected = store._ambar_attributes()["source"]["bytes"]
    if total != expected:
        raise _damaged(
            store, f"expected {expected:,} bytes of files in the segments, found {total:,}"
        )


def _checked(store: Store, name: str) -> PurePosixPath:
    """Return the name of a file, which must be inside of the folder."""
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts or not place.parts or "\0" in name:
        raise _damaged(store, f"expected the name of a file of a checkpoint, found {name!r}")
    return place


def _damaged(store: Store, what: str) -> _core.CorruptError:
    return _core.CorruptError(f"{store.location}: {what}; restore the file from a copy")


class _Arrays:
    """The arrays of values of a checkpoint; those read last are kept."""

    def __init__(self, store: Store, threads: int | None) -> None:
        self._store = store
        self._threads = threads
        self._read: OrderedDict[int, np.ndarray] = OrderedDict()

    def read(self, array: int, start: int, count: int) -> bytes:
        """Return values of an array as bytes."""
        if array not in self._read:
            values = self._store._array(f"values/{array}").read(threads=self._threads)
            self._read[array] = np.ascontiguousarray(values).reshape(-1)
            while len(self._read) > 1 and self._bytes() > _CACHED_BYTES:
                self._read.popitem(last=False)
        self._read.move_to_end(array)
        values = self._read[array]
        if start < 0 or count < 0 or start + count > len(values):
            raise _damaged(self._store, f"values {start} to {start + count} of {array} are missing")
        return values[start : start + count].tobytes()

    def _bytes(self) -> int:
        return sum(values.nbytes for values in self._read.values())


def _copy(request: CopyRequest) -> None:
    request.refuse_append()
    if request.error_bound is not None:
        raise _core.InvalidError(
            f"{request.opened.location}: checkpoints are stored without loss, so that a run "
            "continues bit for bit; copy it without an error bound"
        )
    with copying(request) as (writer, report):
        copy_arrays(
            request.opened,
            writer,
            fields=None,
            steps=None,
            profile=request.new_profile,
            error_bound=None,
            report=report,
        )


def _summarize(resource: Resource) -> dict[str, Any]:
    found = summarize_store(resource)
    own = resource.store._ambar_attributes()
    return {**found, "source": own["source"], "multifabs": own["multifabs"]}


CHECKPOINT = Kind(
    name="checkpoint",
    match_source=lambda paths: len(paths) == 1 and is_checkpoint(paths[0]),
    open=lambda resource: resource.store,
    summarize=_summarize,
    compare=ARRAYS.compare,
    convert=_convert,
    copy=_copy,
    copy_request=CopyRequest,
    export=_export,
)
