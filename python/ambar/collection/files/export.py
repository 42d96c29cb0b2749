"""Export of a collection: a NetCDF file or a Zarr store for each dataset, in processes."""

from __future__ import annotations

import json
import os
import shutil
import time
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import uuid4

import numpy as np

from ambar import _core
from ambar._util.disk_space import check_free_space, write_error
from ambar._util.optional import missing
from ambar._util.progress import Progress, progress_function
from ambar._util.scratch import publish, scratch_folder, target_exists, target_folder
from ambar.collection.collection import Collection
from ambar.collection.openers import collection_at
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
_SUFFIXES = {"netcdf": ".nc", "zarr": ".zarr"}


def export_collection(
    collection: Collection,
    target: str | os.PathLike[str],
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
    names cannot have, and names that lead out of `target`, are percent-encoded (``..`` as
    ``%2E%2E``). xarray reads the same values, dtypes and attributes again, except those that NetCDF
    lacks: see docs/howto/collections.md.

    Raises
    ------
    AmbarError
        If all datasets failed.
    """
    begun = time.monotonic()
    if format not in _SUFFIXES:
        raise _core.InvalidError(f"invalid format {format!r}; must be 'netcdf' or 'zarr'")
    names = collection.choose(datasets)
    _check_writable(format)
    folder = Path(target)
    if folder.exists() and not (folder.is_dir() and next(folder.iterdir(), None) is None):
        raise target_exists(folder)
    batches = [names[at : at + BATCH] for at in range(0, len(names), BATCH)]
    exported: list[str] = []
    failed: dict[str, str] = {}
    with (
        target_folder(folder),
        progress_function(progress, f"exporting {len(names):,} datasets") as report,
        # It is removed after the processes end, with the files of a process that was killed.
        scratch_folder(folder) as scratch,
        Workers(processes_for(len(batches), processes)) as workers,
    ):
        folders = folder.absolute(), scratch.absolute()
        tasks = ((collection._key, batch, *folders, format) for batch in batches)
        for task, found in workers.map(_write_batch, tasks):
            errors = dict.fromkeys(task[1], found.why) if isinstance(found, Failure) else found
            failed |= errors
            exported += [name for name in task[1] if name not in errors]
            if report is not None:
                report(len(exported) + len(failed), len(names))
        if failed and not exported:
            name, why = next(iter(failed.items()))
            raise _core.AmbarError(
                f"{os.fspath(target)}: none of {len(failed):,} datasets could be written; "
                f"the first, {name!r:.80}: {why}"
            )
    return Export(os.fspath(target), exported, time.monotonic() - begun, failed)


def _check_writable(format: Format) -> None:  # noqa: A002
    wanted = ("netCDF4", "h5netcdf") if format == "netcdf" else ("zarr",)
    for names in (("xarray",), wanted):
        if not any(map(find_spec, names)):
            extra = "netcdf" if format == "netcdf" else "zarr"
            raise missing(names[0], purpose=f"writing {format}", install=f"ambar[{extra}]")


@lru_cache(maxsize=1)
def _opened(key: StoreKey) -> Collection:
    """Return the collection; the process serves a single export, so it is opened once."""
    return collection_at(key, threads=1)


def _write_batch(
    key: StoreKey,
    names: list[str],
    folder: Path,
    scratch: Path,
    format: Format,  # noqa: A002
) -> dict[str, str]:
    """Write some datasets; return the errors by name."""
    collection = _opened(key)
    failed = {}
    for name in names:
        try:
            place = folder / file_name(name, _SUFFIXES[format])
            place.parent.mkdir(parents=True, exist_ok=True)
            _write(collection.load(name), place, scratch, format)
        except Exception as error:  # xarray and its libraries raise exceptions of any type
            failed[name] = explained(error)
    return failed


def _write(dataset: xr.Dataset, place: Path, scratch: Path, format: Format) -> None:  # noqa: A002
    """Write a dataset into the folder `scratch`, and rename the complete file."""
    if place.exists():
        raise target_exists(place)
    # xarray's writers look at the suffix.
    made = scratch / f"{uuid4().hex}{_SUFFIXES[format]}"
    dataset = _storable(dataset, format)
    for variable in dataset.variables.values():
        variable.attrs = {k: _attribute(v, format) for k, v in variable.attrs.items()}
    dataset.attrs = {key: _attribute(value, format) for key, value in dataset.attrs.items()}
    try:
        if format == "zarr":
            dataset.to_zarr(made, mode="w-")
        else:
            _write_netcdf(dataset, made, place)
        publish(made, place)
    except OSError as error:
        raise write_error(error, place) from error
    finally:
        if made.is_dir():
            shutil.rmtree(made)
        else:
            made.unlink(missing_ok=True)


def _write_netcdf(dataset: xr.Dataset, path: Path, place: Path) -> None:
    """Write a dataset to `path`, which is renamed to `place`.

    libnetcdf reports a full disk as missing permission, or as an error of HDF5.
    """
    needed = dataset.nbytes + _NETCDF_BYTES
    check_free_space(needed, place)
    # NetCDF has no complex numbers: netCDF4 makes a compound type of them.
    complex_ = any(v.dtype.kind == "c" for v in dataset.variables.values())
    options: dict[str, Any] = {"auto_complex": True} if complex_ else {}
    try:
        dataset.to_netcdf(path, **options)
    except (OSError, RuntimeError):
        check_free_space(needed, place)
        raise


def _storable(dataset: xr.Dataset, format: Format) -> xr.Dataset:  # noqa: A002
    """Return a dataset whose types xarray can write."""
    changed = {}
    for key, variable in dataset.variables.items():
        if variable.dtype.kind == "O" and not variable.size:
            # xarray cannot infer the type of an empty array of objects.
            changed[key] = variable.astype("U1")
        elif variable.dtype == "f2" and format == "netcdf":
            changed[key] = variable.astype("f4")
    return dataset.assign(changed) if changed else dataset


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
