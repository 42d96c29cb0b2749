"""Export of a collection: a NetCDF file or a Zarr store for each dataset, in processes."""

from __future__ import annotations

import json
import math
import os
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.optional import require_any
from ambar._util.output_files import check_free_space, write_error
from ambar._util.progress import Progress, progress_function
from ambar.collection.collection import Collection
from ambar.collection.openers import collection_at
from ambar.collection.storage import layout
from ambar.collection.storage.attributes import plain
from ambar.kinds.request import Export
from ambar.parallel.workers import Failure, Workers, explained, processes_for
from ambar.store.cache import StoreKey

if TYPE_CHECKING:
    import xarray as xr

Format: TypeAlias = Literal["netcdf", "zarr"]

BATCH = 16
"""Datasets of a task of a process: neighbouring datasets share chunks."""
_NETCDF_BYTES = 16 << 10
"""Bytes of a NetCDF file without values."""
_NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
"""Numbers that xarray writes to NetCDF without conversion."""
_SUFFIXES = {"netcdf": ".nc", "zarr": ".zarr"}
_LIBRARIES = {"netcdf": ["netCDF4", "h5netcdf"], "zarr": ["zarr"]}


def export_collection(
    collection: Collection,
    folder: Path,
    *,
    format: Format = "netcdf",  # noqa: A002 - as xarray calls it
    datasets: Any = None,
    processes: int | None = None,
    progress: Progress | bool | None = None,
) -> Export:
    """Write each dataset of a collection as a NetCDF-4 file or as a Zarr store.

    Arguments and errors are those of `ambar.export`. Datasets that cannot be written are listed in
    `Export.failed`, and the others are written.

    The files have the names of the datasets. A "/" in a name makes folders; characters that file
    names cannot have, and names that lead out of `folder`, are percent-encoded (``..`` as
    ``%2E%2E``). xarray reads the same values, dtypes and attributes again, except those that NetCDF
    lacks: see docs/howto/collections.md.

    Raises
    ------
    ValueError
        If no dataset is selected.
    AmbarError
        If all datasets failed.
    """
    begun = time.monotonic()
    if format not in _SUFFIXES:
        raise _core.InvalidError(f"invalid format {format!r}; must be 'netcdf' or 'zarr'")
    names = collection.choose(datasets)
    if not names and len(collection):
        raise _core.InvalidError(
            f"{collection.location}: expected a condition or names that select datasets, found "
            f"{datasets!r:.80}, which selects none of {len(collection):,}; nothing is written"
        )
    for modules in (["xarray"], _LIBRARIES[format]):
        require_any(modules, purpose=f"writing {format}", install=f"ambar[{format}]")
    folder.mkdir()
    batches = [names[at : at + BATCH] for at in range(0, len(names), BATCH)]
    exported: list[str] = []
    failed: dict[str, str] = {}
    with (
        progress_function(progress, f"exporting {len(names):,} datasets") as report,
        Workers(processes_for(len(batches), processes)) as workers,
    ):
        tasks = ((collection._key, batch, folder, format) for batch in batches)
        for task, found in workers.map(_write_batch, tasks):
            errors = dict.fromkeys(task[1], found.why) if isinstance(found, Failure) else found
            for name in errors:
                _remove(folder / file_name(name, _SUFFIXES[format]))
            failed |= errors
            exported += [name for name in task[1] if name not in errors]
            if report is not None:
                report(len(exported) + len(failed), len(names))
    if failed and not exported:
        name, why = next(iter(failed.items()))
        raise _core.AmbarError(
            f"{folder.name}: none of {len(failed):,} datasets could be written; the first, "
            f"{name!r:.80}: {why}"
        )
    return Export(os.fspath(folder), exported, time.monotonic() - begun, failed)


@lru_cache(maxsize=1)
def _opened(key: StoreKey) -> Collection:
    """Return the collection; the process serves a single export, so it is opened once."""
    return collection_at(key, threads=1)


def _write_batch(
    key: StoreKey,
    names: list[str],
    folder: Path,
    format: Format,  # noqa: A002
) -> dict[str, str]:
    """Write some datasets; return the errors by name."""
    collection = _opened(key)
    failed = {}
    for name in names:
        try:
            path = folder / file_name(name, _SUFFIXES[format])
            path.parent.mkdir(parents=True, exist_ok=True)
            large = _large(collection, name, format)
            _write(collection[name] if large else collection.load(name), path, format, large)
        except Exception as error:  # xarray and its libraries raise exceptions of any type
            failed[name] = explained(error)
    return failed


def _large(collection: Collection, name: str, format: Format) -> list[str]:  # noqa: A002
    """Return the variables of a dataset to write in parts: those of netCDF4, without conversion."""
    if format != "netcdf" or find_spec("netCDF4") is None:
        return []
    family, row = collection._place(name)
    sizes = dict(family.sizes)
    for dim in family.ragged:
        first, last = collection._reader.offsets(family, dim)[row : row + 2].tolist()
        sizes[dim] = last - first
    return [
        key
        for key, column in family.columns.items()
        if not column.coordinate
        and column.times is None
        and column.type_name[1:] in _NUMBERS
        and math.prod(sizes[dim] for dim in column.dims) * np.dtype(column.type_name).itemsize
        > layout.LARGEST_SHARD
    ]


def _write(
    dataset: xr.Dataset,
    path: Path,
    format: Format,  # noqa: A002
    large: Iterable[str],
) -> None:
    """Write a dataset, of which the variables `large` are written in parts."""
    dataset = _storable(dataset, format)
    for variable in dataset.variables.values():
        variable.attrs = {k: _attribute(v, format) for k, v in variable.attrs.items()}
    dataset.attrs = {key: _attribute(value, format) for key, value in dataset.attrs.items()}
    try:
        path.exists()  # raises an error for a name that is too long: NetCDF says permission denied
        if format == "zarr":
            dataset.to_zarr(path, mode="w-")
        else:
            # The system does not allocate memory for zeros that are only read.
            empty = {
                key: variable.copy(data=np.zeros(variable.shape, variable.dtype))
                for key in large
                for variable in [dataset.variables[key]]
            }
            _write_netcdf(dataset.assign(empty), path)
            if empty:
                _fill(path, {key: dataset.variables[key] for key in empty})
    except OSError as error:
        raise write_error(error, Path(path.name)) from error


def _remove(path: Path) -> None:
    """Remove what a failed writer has left."""
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # it was a folder or does not exist, or no file can have this name
        path.unlink()


def _write_netcdf(dataset: xr.Dataset, path: Path) -> None:
    """Write a dataset as NetCDF.

    libnetcdf reports a full disk as missing permission, or as an error of HDF5.
    """
    needed = dataset.nbytes + _NETCDF_BYTES
    check_free_space(needed, path)
    # NetCDF has no complex numbers: netCDF4 makes a compound type of them.
    complex_ = any(v.dtype.kind == "c" for v in dataset.variables.values())
    options: dict[str, Any] = {"auto_complex": True} if complex_ else {}
    try:
        dataset.to_netcdf(path, **options)
    except (OSError, RuntimeError):
        check_free_space(needed, path)
        raise


def _fill(path: Path, variables: Mapping[str, xr.Variable]) -> None:
    """Write the values of variables into a file, in parts."""
    import netCDF4

    with netCDF4.Dataset(path, "a") as file:
        file.set_auto_maskandscale(False)
        for key, variable in variables.items():
            part = layout.cut(variable.shape, variable.dtype.itemsize)[1][1:]
            for box in layout.boxes(variable.shape, part):
                file[key][box] = variable[box].values


def _storable(dataset: xr.Dataset, format: Format) -> xr.Dataset:  # noqa: A002
    """Return a dataset whose types xarray can write."""
    changed = {}
    for key, variable in dataset.variables.items():
        if variable.dtype.kind == "O" and not variable.size:
            # xarray cannot infer the type of an empty array of objects.
            changed[key] = variable.astype("U1")
        elif variable.dtype == "f2" and format == "netcdf":
            changed[key] = variable.astype("f4")
        elif variable.dtype.kind == "O" and format == "netcdf":
            _refuse_nul(str(key), variable.values)
    return dataset.assign(changed) if changed else dataset


def _refuse_nul(name: str, values: np.ndarray) -> None:
    """Raise UnsupportedError if a string contains NUL, at which NetCDF would cut it."""
    if any(isinstance(value, str) and "\0" in value for value in values.flat):
        raise _core.UnsupportedError(
            f"{name}: expected strings without NUL characters, at which NetCDF cuts them; export "
            "to Zarr (format='zarr'), or replace these characters"
        )


def _attribute(value: Any, format: Format) -> Any:  # noqa: A002
    """Return an attribute in a type of the format; as text if the format has no such type."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return str(value)
    if format == "zarr":
        # JSON has no NaN: strict readers could not open the store.
        return str(value) if isinstance(value, float) and not np.isfinite(value) else plain(value)
    return value if isinstance(value, (str, float)) else _netcdf_attribute(value)


def _netcdf_attribute(value: Any) -> Any:
    if isinstance(value, bool):
        return np.int8(value)
    if isinstance(value, int):
        return np.array(value)[()]
    if isinstance(value, list) and value:
        if all(isinstance(part, str) for part in value):
            return value
        if {type(part) for part in value} <= {int, float}:
            return np.array(value)
    return json.dumps(plain(value))


def file_name(name: str, suffix: str) -> str:
    """Return the relative path of the file of a dataset.

    Characters that file names cannot have are percent-encoded. So is the dot of a folder whose name
    could be that of another dataset's file: "a.nc/b" is the file "a%2Enc/b.nc".
    """
    *folders, last = (_part(part) for part in name.split("/"))
    for at, folder in enumerate(folders):
        if folder.endswith(suffix):
            folders[at] = f"{folder.removesuffix(suffix)}%2E{suffix[1:]}"
    return "/".join([*folders, last + suffix])


def _part(part: str) -> str:
    if set(part) <= {"."}:
        return "%2E" * len(part) or "%"
    return "".join(f"%{ord(c):02X}" if c in "%\\" or ord(c) < 32 else c for c in part)
