"""From a collection to one NetCDF file or Zarr store a dataset, written in processes."""

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
from ambar._util.optional import missing
from ambar._util.scratch import already_there, publish, scratch_folder
from ambar.collection.collection import Collection
from ambar.collection.openers import open_collection
from ambar.collection.storage.attributes import plain
from ambar.kinds.request import Export, Progress, shown
from ambar.parallel.workers import Failure, Workers, explained, processes_for

if TYPE_CHECKING:
    import xarray as xr

Format: TypeAlias = Literal["netcdf", "zarr"]

BATCH = 16
"""Datasets that a process is given at a time: those side by side are decoded together."""
_SUFFIXES = {"netcdf": ".nc", "zarr": ".zarr"}


def export_collection(
    store: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    format: Format = "netcdf",  # noqa: A002 - as xarray calls it
    datasets: Any = None,
    processes: int | None = None,
    progress: Progress | Literal[True] | None = None,
) -> Export:
    """Write each dataset of a collection as a file of NetCDF-4, or as a Zarr store.

    Datasets that cannot be written are listed in `Export.failed`, and the others are written.

    A dataset's name is its file's; a "/" in it makes folders, and what no file can be called, or
    would lead out of `target`, is written as in URLs (``..`` as ``%2E%2E``). xarray reads the same
    values, dtypes and attributes again, but for what NetCDF lacks: see docs/howto/collections.md.

    Parameters
    ----------
    store
        The collection; a URL too.
    target
        The folder to write, which is made.
    format
        "netcdf" or "zarr".
    datasets
        Which, as for `Collection.read`; by default all.
    processes
        Processes to write in; by default one a core.
    progress
        A function called with the number of datasets done and of all, or True for a bar on the
        terminal.

    Raises
    ------
    ValueError
        If it is no collection, or the format is unknown.
    FileExistsError
        If there is something at `target` that is no empty folder.
    ModuleNotFoundError
        If the library that writes such files is missing.
    AmbarError
        If there are datasets, and none of them could be written.
    """
    begun = time.monotonic()
    if format not in _SUFFIXES:
        raise _core.InvalidError(f"format is 'netcdf' or 'zarr', not {format!r}")
    fleet = open_collection(store)
    names = fleet.choose(datasets)
    _check_writable(format)
    folder = Path(target)
    if folder.exists() and not (folder.is_dir() and next(folder.iterdir(), None) is None):
        raise already_there(folder)
    folder.mkdir(parents=True, exist_ok=True)
    place = str(folder.absolute())
    batches = [names[at : at + BATCH] for at in range(0, len(names), BATCH)]
    exported: list[str] = []
    failed: dict[str, str] = {}
    with (
        shown(progress, f"exporting {len(names):,} datasets") as report,
        # It outlives the processes, so that it has what is left of one that was killed.
        scratch_folder(folder) as scratch,
        Workers(processes_for(len(batches), processes)) as workers,
    ):
        unfinished = str(scratch.absolute())
        tasks = ((fleet.location, batch, place, unfinished, format) for batch in batches)
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
def _opened(path: str) -> Collection:
    """Return the collection as it was when this process, which lives for one export, began."""
    return open_collection(path, threads=1)


def _write_batch(
    path: str,
    names: list[str],
    folder: str,
    scratch: str,
    format: Format,  # noqa: A002
) -> dict[str, str]:
    """Write some datasets; return what failed."""
    fleet = _opened(path)
    failed = {}
    for name in names:
        try:
            place = Path(folder, file_name(name, _SUFFIXES[format]))
            place.parent.mkdir(parents=True, exist_ok=True)
            _write(fleet.load(name), place, Path(scratch), format)
        except Exception as error:  # whatever xarray and its libraries raise is told to the user
            failed[name] = explained(error)
    return failed


def _write(dataset: xr.Dataset, place: Path, scratch: Path, format: Format) -> None:  # noqa: A002
    """Write a dataset into the folder `scratch`; it gets its name when it is complete."""
    if place.exists():
        raise already_there(place)
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
            # NetCDF has no complex numbers: netCDF4 makes a compound type of them.
            complex_ = any(v.dtype.kind == "c" for v in dataset.variables.values())
            options: dict[str, Any] = {"auto_complex": True} if complex_ else {}
            dataset.to_netcdf(made, **options)
        publish(made, place)
    except BaseException:
        if made.is_dir():
            shutil.rmtree(made)
        else:
            made.unlink(missing_ok=True)
        raise


def _storable(dataset: xr.Dataset, format: Format) -> xr.Dataset:  # noqa: A002
    """Return a dataset whose types xarray can write."""
    changed = {}
    for key, variable in dataset.variables.items():
        if variable.dtype.kind == "O" and not variable.size:
            # Of no values xarray cannot tell that they are texts.
            changed[key] = variable.astype("U1")
        elif variable.dtype == "f2" and format == "netcdf":
            changed[key] = variable.astype("f4")
    return dataset.assign(changed) if changed else dataset


def _attribute(value: Any, format: Format) -> Any:  # noqa: A002
    """Return an attribute as the format holds it: what it does not hold as text."""
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return str(value)
    if format == "zarr":
        # JSON has no NaN: readers that keep to the standard could not open the store.
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
    """Return a dataset's name as the path of a file below a folder, with its suffix.

    What no file can be called is written as ``%XX``. So is the dot of a folder that would be called
    like another dataset's file: "a.nc/b" is the file "a%2Enc/b.nc".
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
