"""AMReX plotfiles in HDF5: boxes and fields of ``WriteMultiLevelPlotfileHDF5`` in both layouts.

Each level has a group with the boxes (compound, inclusive corners), the offsets of their values
(``data:offsets=0``) and the values, 1-D. In the layout with one dataset (``data:datatype=0``), the
fields of a box are consecutive. In the layout with a dataset per field (``data:datatype=i``), the
offsets count the values of a field.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.hdf5_files import open_hdf5
from ambar._util.optional import require

__all__ = ["Hdf5Level", "Hdf5Plotfile", "is_hdf5_plotfile", "read_hdf5"]

_AGAIN = "copy the file again"


@dataclass(frozen=True)
class Hdf5Level:
    """One level, from its group; checked."""

    boxes: np.ndarray
    """(n, 2, ndim) int64: first and last cell of each box, both inclusive."""
    cell_size: np.ndarray
    """(ndim,) float64: sides of a cell."""
    ratio: int
    """Refinement ratio to the next level; 1 for the finest level."""
    domain: np.ndarray
    """(2, ndim) int64: first and last cell of the problem domain, both inclusive."""
    time: float
    step: int
    offsets: np.ndarray = field(repr=False)
    """int64 of shape (n + 1,): start of each box in the datasets, and the end of the last one."""


@dataclass(frozen=True)
class Hdf5Plotfile:
    """An AMReX plotfile in HDF5, open for reading; a context manager."""

    path: Path
    ndim: int
    names: list[str]
    """The fields, in their order in the file."""
    time: float
    coordinates: int
    """0 Cartesian, 1 cylindrical, 2 spherical."""
    lower: np.ndarray
    """(ndim,) float64: lower corner of the problem domain."""
    upper: np.ndarray
    """(ndim,) float64: upper corner of the problem domain."""
    levels: list[Hdf5Level]
    dtype: np.dtype[Any]
    """float32 or float64, in native byte order; the same for all fields and levels."""
    single: bool
    """Whether the fields of a box are consecutive in one dataset."""
    _file: Any = field(repr=False)

    def __enter__(self) -> Hdf5Plotfile:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; reading fails afterwards."""
        self._file.close()

    def read(self, level: int, box: int, name: str) -> np.ndarray:
        """Return a field on a box.

        Parameters
        ----------
        level : int
            0 is the coarsest.
        box : int
            Index of the box in ``levels[level].boxes``.
        name : str
            One of ``names``.

        Returns
        -------
        numpy.ndarray
            Shape (nx, ny, nz), with the dimensions of the plotfile; x is fastest in memory.

        Raises
        ------
        KeyError
            If the field, the level or the box does not exist.
        CorruptError
            If the values are damaged, or their compression filter is not installed.
        """
        if not 0 <= level < len(self.levels) or not 0 <= box < len(self.levels[level].boxes):
            raise _core.NotFoundError(f"{self.path}: no box {box} on level {level}")
        low, high = self.levels[level].boxes[box]
        shape = tuple(int(cells) for cells in high - low + 1)
        values = self.read_cells(level, box, name, 0, int(np.prod(shape)))
        return values.reshape(shape, order="F")

    def read_cells(self, level: int, box: int, name: str, start: int, stop: int) -> np.ndarray:
        """Return a field on the cells `start` to `stop` of a box, x fastest, as `read`."""
        if name not in self.names:
            raise _core.NotFoundError(
                f"{self.path}: no field {name!r}; available: {', '.join(self.names)}"
            )
        part = self.levels[level]
        low, high = part.boxes[box]
        component = self.names.index(name)
        first = int(part.offsets[box])
        first += component * int(np.prod(high - low + 1)) if self.single else 0
        key = f"level_{level}/data:datatype={0 if self.single else component}"
        try:
            values = self._file[key][first + start : first + stop]
        except OSError as error:
            message = f"{self.path}: {key}: {error}; {_AGAIN}, or install the filter that it names"
            raise _core.CorruptError(message) from error
        return np.ascontiguousarray(values, self.dtype)


def is_hdf5_plotfile(path: str | os.PathLike[str]) -> bool:
    """Return whether the file is a plotfile of AMReX in HDF5.

    Raises CorruptError if it is an HDF5 file that no program can open, as after a truncation.
    """
    h5py = require("h5py", purpose="reading HDF5", install="ambar[hdf5]")
    if not Path(path).is_file() or not h5py.is_hdf5(path):
        return False
    with open_hdf5(path) as file:
        return "num_levels" in file.attrs and "component_0" in file.attrs and "level_0" in file


def read_hdf5(path: str | os.PathLike[str]) -> Hdf5Plotfile:
    """Open a plotfile of AMReX in HDF5, without reading values.

    Parameters
    ----------
    path : str or path-like
        A file of ``amrex::WriteMultiLevelPlotfileHDF5`` or its variants with one or several
        datasets.

    Raises
    ------
    KeyError
        If the file does not exist.
    CorruptError
        If it is not such a plotfile, or parts of it are missing or inconsistent.
    UnsupportedError
        If its values are not cell-centred.
    """
    h5py = require("h5py", purpose="reading HDF5", install="ambar[hdf5]")
    # Registers the filter that the file may need.
    import ambar.hdf5  # noqa: F401

    path = Path(path)
    if not path.is_file():
        raise _core.NotFoundError(f"{path}: the file does not exist")
    try:
        file = h5py.File(path)
    except OSError as error:
        raise _core.CorruptError(f"{path}: {error}; {_AGAIN}") from error
    try:
        return _read_file(file, path)
    except (KeyError, OSError, TypeError, ValueError) as error:
        file.close()
        if isinstance(error, (_core.NotFoundError, _core.InvalidError)):
            raise
        message = f"{path}: not a plotfile of AMReX in HDF5, or a damaged one: {error}"
        raise _core.CorruptError(message) from error
    except BaseException:
        file.close()
        raise


def _read_file(file: Any, path: Path) -> Hdf5Plotfile:
    ndim = _integer(file, "dim")
    if not 1 <= ndim <= 3:
        raise _wrong(path, "dim", "1 to 3 dimensions", ndim)
    components = _integer(file, "num_components")
    names = [_text(file, f"component_{i}") for i in range(components)]
    if not names or len(set(names)) < len(names):
        raise _wrong(path, "component_0", "fields of different names", names)
    groups = [file[f"level_{i}"] for i in range(_integer(file, "num_levels"))]
    if not groups:
        raise _wrong(path, "num_levels", "at least one level", 0)
    single = "data:datatype=1" not in groups[0]
    levels = [_read_level(group, path, ndim, components if single else 1) for group in groups]
    dtypes = set()
    for group, level in zip(groups, levels, strict=True):
        for i in range(1 if single else components):
            key = f"data:datatype={i}"
            values = group[key]
            if values.shape != (level.offsets[-1],):
                raise _wrong(
                    path, f"{group.name}/{key}", f"{level.offsets[-1]} values", values.shape
                )
            dtypes.add(values.dtype.newbyteorder("="))
    if not dtypes <= {np.dtype("f4"), np.dtype("f8")} or len(dtypes) > 1:
        raise _wrong(path, "data:datatype=0", "float32 or float64 everywhere", dtypes)
    return Hdf5Plotfile(
        path=path,
        ndim=ndim,
        names=names,
        time=float(_one(file, "time")),
        coordinates=_integer(file, "coordinate_system"),
        lower=_row(groups[0], "prob_lo", ndim),
        upper=_row(groups[0], "prob_hi", ndim),
        levels=levels,
        dtype=dtypes.pop(),
        single=single,
        _file=file,
    )


def _read_level(group: Any, path: Path, ndim: int, components: int) -> Hdf5Level:
    if np.any(np.atleast_1d(group.attrs.get("domain_type", 0))):
        raise _core.UnsupportedError(
            f"{path}: {group.name}: expected cell-centred values, found others"
        )
    boxes = _corners(group["boxes"][()], ndim)
    domain = _corners(group.attrs["prob_domain"], ndim).reshape(2, ndim)
    offsets = np.asarray(group["data:offsets=0"][()], np.int64)
    cells = np.prod(boxes[:, 1] - boxes[:, 0] + 1, axis=1, dtype=np.int64)
    if np.any(boxes[:, 0] > boxes[:, 1]):
        raise _wrong(path, f"{group.name}/boxes", "boxes that are not empty", "an empty one")
    if len(boxes) != _integer(group, "ngrid"):
        raise _wrong(path, f"{group.name}/boxes", f"{_integer(group, 'ngrid')} boxes", len(boxes))
    complete = offsets.shape == (len(boxes) + 1,)
    room = np.diff(offsets) - cells * components if complete else -1
    # After the values of a rank, a gap may follow to the end of the chunk.
    if np.any(np.less(room, 0)) or (components > 1 and np.any(room)):
        expected = f"the sums of the boxes' {components} x cells"
        raise _wrong(path, f"{group.name}/data:offsets=0", expected, offsets)
    if offsets[0] < 0:
        raise _wrong(path, f"{group.name}/data:offsets=0", "no negative offset", offsets[0])
    return Hdf5Level(
        boxes=boxes,
        cell_size=_row(group, "Vec_dx", ndim),
        ratio=_integer(group, "ref_ratio"),
        domain=domain,
        time=float(_one(group, "time")),
        step=_integer(group, "steps"),
        offsets=offsets,
    )


def _corners(values: np.ndarray, ndim: int) -> np.ndarray:
    """Return compound corners ``lo_i .. hi_k`` as (n, 2, ndim) int64."""
    axes = "ijk"[:ndim]
    values = np.atleast_1d(values)
    columns = [values[f"{end}_{axis}"] for end in ("lo", "hi") for axis in axes]
    return np.stack(columns, axis=-1).astype(np.int64).reshape(-1, 2, ndim)


def _one(node: Any, name: str) -> Any:
    values = np.ravel(node.attrs[name])
    if len(values) != 1:
        raise ValueError(
            f"{node.name}: expected one value of the attribute {name}, found {len(values)}"
        )
    return values[0]


def _integer(node: Any, name: str) -> int:
    return int(_one(node, name))


def _row(node: Any, name: str, ndim: int) -> np.ndarray:
    values = np.asarray(node.attrs[name], np.float64)
    if values.shape != (ndim,):
        raise ValueError(
            f"{node.name}: expected {ndim} values of the attribute {name}, found {values.size}"
        )
    return values


def _text(node: Any, name: str) -> str:
    value = node.attrs[name]
    return value.decode() if isinstance(value, bytes) else str(value)


def _wrong(path: Path, node: str, expected: str, found: object) -> _core.CorruptError:
    return _core.CorruptError(f"{path}: {node}: expected {expected}, found {found}; {_AGAIN}")
