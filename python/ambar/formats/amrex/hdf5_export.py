"""Export of stores of plotfiles as AMReX plotfiles in HDF5, compressed by the filter of ambar.

The layout is that of ``WriteMultiLevelPlotfileHDF5MultiDset``: a 1-D dataset for each field and
level, with consecutive boxes. Chunks are large, and a box is in a single chunk, so that reading a
box decodes one chunk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ambar import _core, hdf5
from ambar._util.disk_space import check_free_space
from ambar._util.hdf5_file import hdf5_file
from ambar.store.error_bounds import ErrorBound, listed_bounds, resolved

if TYPE_CHECKING:
    from ambar.snapshot.amrex_info import AmrexInfo
    from ambar.snapshot.snapshot import Snapshot
    from ambar.store.store import Store

__all__ = ["export_hdf5"]

CHUNK_BYTES = 64 << 20
"""Bytes of a chunk at most, unless a single box has more."""

_COORDINATES = {"cartesian": 0, "cylindrical": 1, "spherical": 2}


@dataclass(frozen=True)
class _LevelLayout:
    """The boxes of a level, and their positions in its datasets."""

    boxes: np.ndarray
    """int64 of shape (n, 2, ndim): first cell, and after the last, x first; in file order."""
    numbers: np.ndarray
    """Shape (n,): numbers of the boxes in the store."""
    cells: np.ndarray
    """(n,) int64."""
    starts: np.ndarray
    """int64 of shape (n,): start of each box in the datasets."""
    chunk: int
    """Values of a chunk."""
    length: int
    """Values of a dataset."""

    def chunks(self) -> Iterator[tuple[int, slice]]:
        """Yield the start of each chunk, and its boxes."""
        firsts = np.flatnonzero(np.diff(self.starts // self.chunk, prepend=-1))
        for first, end in zip(firsts, [*firsts[1:], len(self.starts)], strict=True):
            yield int(self.starts[first]), slice(int(first), int(end))


def export_hdf5(
    store: Store,
    path: Path,
    *,
    error_bound: ErrorBound | None = None,
    without_particles: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write the cells of a store of a plotfile as an AMReX plotfile in HDF5.

    Programs whose HDF5 finds the plugin (HDF5_PLUGIN_PATH) can read the file. It does not contain
    particles: AMReX writes particles to separate files.

    Parameters
    ----------
    store : Store
        The store.
    path : Path
        The file to write.
    error_bound : float, str or mapping, optional
        As for `ambar.convert`: a number, ``"1e-3 of range"`` (of the finite values of the field on
        all cells), or a mapping of fields to these. By default lossless.
    without_particles : bool, default False
        Whether to leave out particles; by default a store with particles is an error.
    threads : int, optional
        Number of threads that encode; all cores by default.
    progress : callable, optional
        Called with the bytes done and all bytes.

    Raises
    ------
    OSError
        If the disk is full. Without an error bound, the free space is checked first.
    UnsupportedError
        If the cells are not patches, or have other types than float32 or float64, or several; if
        the store has particles, and `without_particles` is not set.
    KeyError
        If the field of a bound does not exist, or the plugin is not installed.
    CorruptError
        If a checksum differs.
    """
    import h5py

    from ambar.snapshot.snapshot import Snapshot, StoredSource

    hdf5.filter()
    is_snapshot = store._ambar_attributes().get("kind") == "snapshot"
    snapshot = Snapshot(StoredSource(store, "/")) if is_snapshot else None
    if snapshot is None or snapshot.amr.layout != "patches":
        raise _core.UnsupportedError(
            f"{store.location}: a plotfile in HDF5 needs a store of a plotfile"
        )
    if snapshot.species and not without_particles:
        raise _core.UnsupportedError(
            f"{store.location}: plotfiles in HDF5 cannot contain particles, found "
            f"{', '.join(snapshot.species)}; leave them out with without_particles=True, "
            "or export a native plotfile"
        )
    work = _Export(snapshot, store, path, listed_bounds(error_bound))
    with hdf5_file(h5py, path) as file:
        work.write(file, threads or _core.default_threads(), progress)


class _Export:
    """The cells to write, their geometry and error bounds."""

    def __init__(
        self, snapshot: Snapshot, store: Store, path: Path, bounds: Sequence[tuple[str, str]]
    ) -> None:
        self._core: _core.Amr = snapshot.amr._core
        self._info = cast("AmrexInfo", snapshot.info)
        self._fields = list(self._core.fields)
        dtypes = {np.dtype(self._core.dtype(field)) for field in self._fields}
        if len(dtypes) != 1 or not dtypes <= {np.dtype("f4"), np.dtype("f8")}:
            raise _core.UnsupportedError(
                f"{store.location}: expected float32 or float64 for all fields, found "
                f"{', '.join(sorted(map(str, dtypes)))}"
            )
        self._dtype = dtypes.pop()
        self._bounds = dict(bounds)
        for name in self._bounds:
            if name != "*" and name not in self._fields:
                raise _core.NotFoundError(
                    f"{store.location}: an error bound is given for {name!r}, but such a "
                    f"field does not exist; available: {', '.join(self._fields)}"
                )
        if not bounds:
            # Lossless values take about as many bytes as in the store.
            needed = sum(store[name].stored_bytes for name in store if name.startswith("amr/"))
            check_free_space(needed, path)
        renamed, files = _source_layout(store)
        self._names = [renamed.get(field, field) for field in self._fields]
        self._levels = [
            _level_layout(
                self._core.boxes(level), files.get(level), CHUNK_BYTES // self._dtype.itemsize
            )
            for level in range(len(self._info.levels))
        ]

    def write(self, file: Any, threads: int, progress: Callable[[int, int], None] | None) -> None:
        """Write everything into an empty file."""
        self._write_run(file)
        size = self._dtype.itemsize * len(self._fields)
        total = size * int(sum(level.cells.sum() for level in self._levels))
        done = 0
        with ThreadPoolExecutor(threads) as pool:
            groups = [self._write_level(file, number) for number in range(len(self._levels))]
            for component, field in enumerate(self._fields):
                bound = self._bound(field)
                for number, group in enumerate(groups):
                    encode = partial(self._encode, number, field, bound)
                    dataset = self._dataset(group, component, number, bound)
                    for cells in self._write_values(dataset, number, encode, pool, threads):
                        done += cells * self._dtype.itemsize
                        if progress is not None:
                            progress(done, total)

    def _write_run(self, file: Any) -> None:
        names = {f"component_{i}": np.bytes_(name) for i, name in enumerate(self._names)}
        info = self._info
        numbers = {
            "coordinate_system": _COORDINATES.get(info.coordinates, 0),
            "dim": info.ndim,
            "finest_level": len(self._levels) - 1,
            "num_components": len(self._fields),
            "num_levels": len(self._levels),
        }
        file.attrs.update(names | {name: _integer(n) for name, n in numbers.items()})
        file.attrs["plotfile_type"] = np.bytes_("VanillaHDF5")
        file.attrs["time"] = [float(info.time)]
        file.attrs["version_name"] = np.bytes_(info.format or "HyperCLaw-V1.1")
        file.create_group("Chombo_global").attrs["SpaceDim"] = _integer(info.ndim)

    def _write_level(self, file: Any, number: int) -> Any:
        info, layout = self._info, self._levels[number]
        level, axes = info.levels[number], "ijk"[: info.ndim]
        corner = np.dtype([(f"{end}_{axis}", "<i4") for end in ("lo", "hi") for axis in axes])
        corners = layout.boxes.copy()
        corners[:, 1] -= 1
        group = file.create_group(f"level_{number}")
        step = info.steps[number] if number < len(info.steps) else 0
        numbers = {
            "ngrid": len(corners),
            "ref_ratio": level.ratio[0] if level.ratio else 1,
            "steps": step,
        }
        group.attrs.update({name: _integer(n) for name, n in numbers.items()})
        group.attrs["ngrow"] = _integer(0)
        group.attrs["domain_type"] = np.zeros(info.ndim, np.int32)
        group.attrs["Vec_dx"] = np.array(level.cell_size)
        group.attrs["dx"] = np.array(level.cell_size[:1])
        group.attrs["prob_lo"], group.attrs["prob_hi"] = np.array([info.lower, info.upper])
        group.attrs["time"] = [float(info.time)]
        group.attrs["prob_domain"] = np.array((*level.lo, *(end - 1 for end in level.hi)), corner)
        rows = [tuple(row) for row in corners.reshape(len(corners), -1).tolist()]
        group["boxes"] = np.array(rows, corner)
        centring = np.dtype([(axis, "<i4") for axis in axes])
        group["boxcenter"] = np.zeros(len(corners), centring)
        group["data:offsets=0"] = np.append(layout.starts, layout.length).astype("<i8")
        return group

    def _dataset(self, group: Any, component: int, number: int, bound: float | str) -> Any:
        layout = self._levels[number]
        return group.create_dataset(
            f"data:datatype={component}",
            (layout.length,),
            self._dtype.newbyteorder("<"),
            chunks=(layout.chunk,),
            **hdf5.filter(bound or None),
        )

    def _write_values(
        self,
        dataset: Any,
        number: int,
        encode: Callable[[slice], tuple[np.ndarray, bytes | None]],
        pool: ThreadPoolExecutor,
        threads: int,
    ) -> Iterator[int]:
        """Write the chunks of a field on a level; `threads` chunks are encoded in parallel."""
        layout = self._levels[number]
        chunks = list(layout.chunks())
        for first in range(0, len(chunks), threads):
            batch = chunks[first : first + threads]
            encoded = pool.map(encode, [boxes for _, boxes in batch])
            for (start, boxes), (values, packet) in zip(batch, encoded, strict=True):
                if packet is not None and len(packet) < values.nbytes:
                    dataset.id.write_direct_chunk((start,), packet)
                else:
                    dataset[start : start + len(values)] = values[: layout.length - start]
                yield int(layout.cells[boxes].sum())

    def _encode(
        self, number: int, field: str, bound: float | str, boxes: slice
    ) -> tuple[np.ndarray, bytes | None]:
        """Return the values of a chunk with boxes in place, and the encoded chunk."""
        layout = self._levels[number]
        values = np.zeros(layout.chunk, self._dtype)
        begin = 0
        for box in layout.numbers[boxes]:
            found = self._core.read_box(number, int(box), field)
            values[begin : begin + len(found)] = found
            begin += len(found)
        corners = layout.boxes[boxes]
        missing = 3 - self._info.ndim
        corners_3d = np.zeros((len(corners), 2, 3), np.int64)
        corners_3d[:, 1] = 1
        corners_3d[:, 0, missing:] = corners[:, 0, ::-1]
        corners_3d[:, 1, missing:] = (corners[:, 1] - corners[:, 0])[:, ::-1]
        return values, _core.hdf5_boxes(values, corners_3d, bound)

    def _bound(self, field: str) -> float | str:
        """Return the bound of the chunks of a field; 0 for lossless."""
        bound = self._bounds.get(field, self._bounds.get("*"))
        if bound is None:
            return 0.0
        low, high = np.inf, -np.inf
        if _core.bound_needs_range(bound):
            for number, layout in enumerate(self._levels):
                for box in layout.numbers:
                    values = self._core.read_box(number, int(box), field)
                    finite = values[np.isfinite(values)]
                    low = min(low, float(finite.min(initial=np.inf)))
                    high = max(high, float(finite.max(initial=-np.inf)))
        return resolved(bound, (low, high) if low <= high else (0.0, 0.0))


def _integer(number: int) -> np.ndarray:
    """Return a number as AMReX writes attributes."""
    return np.array([number], np.int32)


def _source_layout(store: Store) -> tuple[dict[str, str], dict[int, list[int]]]:
    """Return the original names of renamed fields, and the number of the file of each box by level.

    Both are empty if unknown. AMReX writes a file per rank.
    """
    path = next((path for path in ("source/layout", "source/run") if path in store), None)
    if path is None:
        return {}, {}
    try:
        found = json.loads(store._array(path)[...].ravel()[0])
        renamed = dict(found.get("run", found).get("renamed", {}))
        levels = found["levels"] if path == "source/layout" else []
        files = {number: [*map(int, level["file"])] for number, level in enumerate(levels)}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _core.CorruptError(
            f"{store.location}: {path}: expected the layout of a plotfile: {error!r}; restore the "
            "file from a copy"
        ) from error
    return renamed, files


def _level_layout(boxes: np.ndarray, files: Sequence[int] | None, most: int) -> _LevelLayout:
    """Assign the boxes of a level to chunks: the boxes of one rank, or a part of them.

    Ranks with few cells share chunks, so that at most half of a chunk is padding, unless the next
    box does not fit.
    """
    owners = np.zeros(len(boxes), np.int64)
    if files is not None and len(files) == len(boxes):
        owners = np.asarray(files, np.int64)
    numbers = np.argsort(owners, kind="stable")
    boxes, owners = boxes[numbers], owners[numbers]
    cells = np.prod(boxes[:, 1] - boxes[:, 0], axis=1, dtype=np.int64)
    of_ranks = np.bincount(owners, weights=cells) if len(cells) else np.zeros(1)
    room = int(max(cells.max(initial=1), min(most, of_ranks.max(initial=1))))
    chunk_of = np.zeros(len(cells), np.int64)
    used = [0]
    for place, count in enumerate(cells):
        other = place > 0 and owners[place] != owners[place - 1]
        if used[-1] + count > room or (other and 2 * used[-1] >= room):
            used.append(0)
        chunk_of[place] = len(used) - 1
        used[-1] += int(count)
    chunk = max(used)
    inside = np.concatenate([np.cumsum(cells[chunk_of == n]) for n in range(len(used))])
    starts = chunk_of * chunk + inside - cells
    length = (len(used) - 1) * chunk + used[-1]
    # HDF5 refuses chunks that are larger than the dataset.
    return _LevelLayout(boxes, numbers, cells, starts, chunk, max(length, chunk))
