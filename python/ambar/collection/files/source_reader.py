"""Reads a NetCDF file or a Zarr store with xarray as a dataset of a collection.

Processes run these functions. The process that starts them does not import xarray.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ambar import _core
from ambar._util.arguments import is_unicode
from ambar._util.foreign_files import EMPTY, is_empty_file, plotfile_of
from ambar._util.hdf5_files import SIGNATURE, is_hdf5, open_hdf5
from ambar._util.text import suggestion
from ambar.collection.files.classic_netcdf import SIGNATURES as CLASSIC
from ambar.collection.files.classic_netcdf import refuse_truncated
from ambar.collection.files.hdf5_groups import refuse_cycles
from ambar.collection.files.sources import Reading
from ambar.collection.storage.layout import Box, shape_of
from ambar.collection.storage.records import Record, as_record
from ambar.store.copies.selection import matching_names
from ambar.store.dtypes import convert_exactly

if TYPE_CHECKING:
    import xarray as xr

WHOLE = 32 << 20
"""Largest bytes of the data variables of a file that are read with it; others are deferred."""


def read_source(name: str, path: Path, reading: Reading, whole: int = WHOLE) -> Record:
    """Return the content of a file, decoded as by `xarray.open_dataset`.

    The values of large variables are `DeferredValues`, so that no process holds all of them:
    `read_part` reads them. Coordinates are never deferred.

    Parameters
    ----------
    name
        The name of the dataset.
    path
        A NetCDF file, or the folder of a Zarr store.
    reading
        The variables and the options of xarray.
    whole
        Bytes of numerical data variables from which on the others are deferred.

    Raises
    ------
    CorruptError
        If the file is empty or damaged, or has no variables.
    KeyError
        If the file has none of the variables.
    UnsupportedError, ValueError
        If xarray cannot read the file, all its variables are in groups, or a collection cannot
        store its content.
    """
    if not is_unicode(os.fspath(path)):
        raise _core.InvalidError("the path is not valid UTF-8, as libraries expect; rename it")
    opened = _opened(path, reading)
    with opened.dataset as dataset:
        groups = groups_of(path) if opened.file is None else _groups_in(opened.file)
        if groups and not dataset.variables:
            raise _core.UnsupportedError(
                f"expected variables in the root group, found only the groups {', '.join(groups)}; "
                + (
                    "if the file is a plotfile of AMReX, convert it alone, without other files"
                    if "level_0" in groups
                    else "open a group with xarray.open_dataset(path, group=...), and add it to a "
                    "collection"
                )
            )
        if not dataset.variables:
            raise _core.CorruptError(
                "expected variables, found none; the file may be damaged: restore it, or remove it"
            )
        content = _selected(dataset, reading.variables)
        # Reading makes arrays that nothing else refers to.
        record = as_record(name, content, copy=False, deferred=_deferred(content, whole))
        record = record._replace(groups=groups)
    if path.is_dir():
        # The order of the arrays differs between Zarr stores.
        return record._replace(variables=dict(sorted(record.variables.items())))
    return record


def groups_of(path: Path) -> tuple[str, ...]:
    """Return the groups in the root of a file of HDF5 or a Zarr store that have variables."""
    if path.is_dir():
        return tuple(sorted(place.name for place in path.iterdir() if _is_zarr_group(place)))
    if not is_hdf5(path) or not find_spec("netCDF4"):
        return ()
    import netCDF4

    with netCDF4.Dataset(path) as file:
        return _groups_in(file)


def _groups_in(file: Any) -> tuple[str, ...]:
    return tuple(name for name, group in file.groups.items() if _has_variables(group))


def _has_variables(group: Any) -> bool:
    """Whether a group of netCDF4, or a group in it, has variables."""
    return bool(group.variables) or any(map(_has_variables, group.groups.values()))


def _is_zarr_group(path: Path) -> bool:
    """Whether a folder in a Zarr store is a group with arrays or groups."""
    if not path.is_dir():
        return False
    document = path / "zarr.json"
    if document.exists():
        try:
            is_group = json.loads(document.read_bytes()).get("node_type") == "group"
        except (ValueError, AttributeError) as error:
            raise _core.CorruptError(
                f"{document}: expected the metadata of a Zarr node in JSON, found other content; "
                "restore the file"
            ) from error
    else:
        is_group = (path / ".zgroup").exists()
    return is_group and any(place.is_dir() for place in path.iterdir())


def _deferred(dataset: xr.Dataset, whole: int) -> list[str]:
    """Return the numerical data variables that exceed `whole` bytes, with those before them."""
    deferred = []
    for name, variable in dataset.data_vars.variables.items():
        if variable.dtype.kind in "biufc" and variable.size:
            if variable.nbytes > whole:
                deferred.append(str(name))
            else:
                whole -= variable.nbytes
    return deferred


def read_part(
    path: Path,
    reading: Reading,
    name: str,
    box: Box,
    stored: np.dtype[Any],
    dtype: np.dtype[Any],
) -> np.ndarray:
    """Return a part of the values of a variable, which `read_source` would return as `stored`.

    Raises
    ------
    ValueError
        If `dtype` cannot represent the values.
    CorruptError
        If the file is damaged, or no longer has such values.
    """
    with _opened(path, reading).dataset as dataset:
        values = np.asarray(dataset.variables[name][box].values, order="C")
    shape = shape_of(box)
    if values.shape != shape or values.dtype.newbyteorder("=") != stored:
        raise _core.CorruptError(
            f"{name}: expected {stored}{shape}, found {values.dtype}{values.shape}; ingest the "
            "file when no other process writes it"
        )
    if (found := convert_exactly(values, dtype)) is None:
        raise _core.InvalidError(
            f"{name} has values of {stored} that {dtype}, the dtype of the first dataset, cannot "
            "represent; convert them, or use on_mismatch='family'"
        )
    return found


def variable_names(path: Path, reading: Reading) -> list[str]:
    """Return the names of the variables that `read_source` returns, without reading values."""
    with _opened(path, reading).dataset as dataset:
        return list(map(str, _selected(dataset, reading.variables).variables))


def _selected(dataset: xr.Dataset, variables: list[str] | None) -> xr.Dataset:
    """Return data variables by name or pattern, with their coordinates.

    Raises KeyError if none of them exists.
    """
    if variables is None:
        return dataset
    names = list(map(str, dataset.data_vars))
    kept = matching_names(names, variables)
    if not kept:
        raise _core.NotFoundError(
            f"no variable {', '.join(map(repr, variables))}; {suggestion(variables[0], names)}"
        )
    # `dataset[kept]` would lose the order of the file.
    needed = dataset[kept].variables
    return dataset.drop_vars([name for name in dataset.variables if name not in needed])


def engine_of(path: Path) -> str | None:
    """Return the engine for a file; None if xarray has to determine it."""
    if path.is_dir():
        return "zarr"
    with path.open("rb") as file:
        start = file.read(8)
    if find_spec("netCDF4") and (start == SIGNATURE or start[:4] in CLASSIC):
        return "netcdf4"
    return None


class _Opened(NamedTuple):
    """A dataset, and the file of netCDF4 that it reads; None if another library reads it."""

    dataset: xr.Dataset
    file: Any


def _opened(path: Path, reading: Reading) -> _Opened:
    import xarray as xr

    engine = reading.engine or engine_of(path)
    _check_readable(path, engine, reading)
    try:
        with ExitStack() as stack:
            source: Any = path
            if engine == "netcdf4":
                # Has the groups of the file, which would be opened again for them.
                source = xr.backends.NetCDF4DataStore.open(path)
                stack.callback(source.close)
            options: dict[str, Any] = {
                "engine": engine if source is path else "store",
                "cache": False,
                "create_default_indexes": False,  # twice as fast; indices are not used here
            }
            dataset = xr.open_dataset(source, **options, decode_times=reading.decode_times)
            dataset = _with_numbers(dataset, source, options)
            stack.pop_all()
        return _Opened(dataset, None if source is path else source.ds)
    except OSError as error:
        if error.errno is not None and error.errno > 0:
            raise
        # Libraries have numbers of their own, below zero.
        raise _core.CorruptError(
            f"cannot be read: {error.strerror or error}; {_advice(path)}"
        ) from error
    except ValueError as error:
        if reading.decode_times and "decode_times" in str(error):
            raise _core.UnsupportedError(
                f"{_undecodable(error)}; keep times as numbers with decode_times=False"
            ) from None
        if engine is None and "did not find a match" in str(error):
            raise _core.UnsupportedError(_unknown(path)) from None
        raise


def _check_readable(path: Path, engine: str | None, reading: Reading) -> None:
    """Refuse unknown engines, and files that libraries misread or that crash them."""
    import xarray as xr

    if reading.engine and reading.engine not in (engines := xr.backends.list_engines()):
        raise _core.InvalidError(
            f"invalid engine {reading.engine!r}; must be one of {', '.join(engines)}, or install "
            "the package of that engine"
        )
    if is_empty_file(path):
        raise _core.CorruptError(EMPTY)
    if path.is_file():
        refuse_truncated(path)
    if engine == "netcdf4":
        refuse_cycles(path)


def _advice(path: Path) -> str:
    """Return what to do about a file that a library cannot read."""
    again = "restore it from a copy"
    if not is_hdf5(path) or not find_spec("h5py"):
        return again
    try:
        with open_hdf5(path) as file:
            file.visititems(lambda *_: None)
    except (_core.CorruptError, OSError):
        return again
    return (
        "h5py opens it: remove links without a target and empty datasets (h5py.Empty), which "
        f"NetCDF does not read, or {again}"
    )


def _undecodable(error: ValueError) -> str:
    """Return the variable that xarray could not decode, and the reason."""
    text = str(error).partition(" Try opening")[0].rstrip(".")
    # Newer versions of xarray name the variable in a note.
    found = re.search("variable '[^']*'", "\n".join([text, *getattr(error, "__notes__", ())]))
    return f"{found[0]}: {text}" if found and found[0] not in text else text


def _unknown(path: Path) -> str:
    """Return the error message for a file that no engine of xarray recognizes."""
    with path.open("rb") as file:
        start = file.read(8)
    if start == SIGNATURE or start[:4] in CLASSIC:
        return "no installed library reads such NetCDF files: pip install 'ambar[netcdf]'"
    if start[:6] == b"\x93NUMPY":
        return (
            "expected a NetCDF or HDF5 file or a Zarr store, found an array of NumPy; store it in "
            "Python: with ambar.create(store) as writer: writer.create_array(name, "
            "data=numpy.load(file))"
        )
    if (plotfile := plotfile_of(path)) is not None:
        return (
            "expected a NetCDF or HDF5 file or a Zarr store, found a file of the plotfile "
            f"{plotfile}; give the folder"
        )
    return (
        f"expected a NetCDF or HDF5 file or a Zarr store, found the first bytes {start!r}; ambar "
        "also converts outputs of RAMSES, plotfiles of AMReX, and meshes of PyVista and meshio"
        + ("" if find_spec("pyvista") and find_spec("meshio") else " (pip install 'ambar[mesh]')")
    )


def _with_numbers(dataset: xr.Dataset, source: Any, options: dict[str, Any]) -> xr.Dataset:
    """Return a dataset with the numbers of the file as times of calendars that NumPy lacks.

    Such a calendar has 360 days a year, for example. The attributes of the numbers are "units" and
    "calendar", with which `xarray.decode_cf` decodes them.
    """
    import xarray as xr

    # xarray moves the units to the encoding if it decodes times; strings keep them as an attribute.
    times = [
        name
        for name, variable in dataset.variables.items()
        if variable.dtype.kind == "O" and "units" in variable.encoding
    ]
    if not times:
        return dataset
    numbers = xr.open_dataset(source, **options, decode_times=False)
    changed = dataset.assign({name: numbers.variables[name] for name in times})

    def close() -> None:
        numbers.close()
        dataset.close()

    changed.set_close(close)
    return changed
