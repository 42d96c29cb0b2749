"""Reading a NetCDF file or a Zarr store, through xarray, as a dataset of a collection."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import xarray as xr

from ambar import _core
from ambar.collection.files.sources import Reading
from ambar.collection.storage.records import Record, as_record

_HDF5 = b"\x89HDF\r\n\x1a\n"
_CLASSIC = (b"CDF\x01", b"CDF\x02", b"CDF\x05")


def read_source(name: str, path: Path, reading: Reading) -> Record:
    """Return what is in a file, decoded as `xarray.open_dataset` does.

    Parameters
    ----------
    name
        The name of the dataset.
    path
        A NetCDF file, or the folder of a Zarr store.
    reading
        What to read, and how.

    Raises
    ------
    KeyError
        If it has none of the variables.
    UnsupportedError, ValueError
        If it is not a file that xarray reads, or holds what a collection cannot.
    """
    variables = reading.variables
    with _opened(path, reading) as dataset:
        if variables is not None:
            kept = [variable for variable in variables if variable in dataset.data_vars]
            if not kept:
                raise _core.NotFoundError(
                    f"has none of {', '.join(variables)}, but "
                    f"{', '.join(map(str, dataset.data_vars)) or 'no variables'}"
                )
            # Without what they do not need; in the file's order, which `dataset[kept]` loses.
            needed = dataset[kept].variables
            dropped = [name for name in dataset.variables if name not in needed]
            dataset = dataset.drop_vars(dropped)  # noqa: PLW2901 - the whole is closed all the same
        record = as_record(name, _without_calendars(dataset))
    if path.is_dir():
        # Zarr stores list their arrays in any order, another for each store.
        return record._replace(variables=dict(sorted(record.variables.items())))
    return record


def engine_of(path: Path) -> str | None:
    """Return the engine for a file; None where xarray is to find out."""
    if path.is_dir():
        return "zarr"
    with path.open("rb") as file:
        start = file.read(8)
    if find_spec("netCDF4") and (start == _HDF5 or start[:4] in _CLASSIC):
        return "netcdf4"
    return None


def _opened(path: Path, reading: Reading) -> xr.Dataset:
    engine = reading.engine or engine_of(path)
    try:
        # Without indices opening takes half as long, and none is asked here.
        return xr.open_dataset(
            path,
            engine=engine,
            cache=False,
            create_default_indexes=False,
            decode_times=reading.decode_times,
        )
    except ValueError as error:
        if reading.decode_times and "decode_times" in str(error):
            raise _core.UnsupportedError(
                f"{_undecodable(error)}; keep times as numbers with decode_times=False "
                "(--no-decode-times)"
            ) from None
        if engine is None and "did not find a match" in str(error):
            raise _core.UnsupportedError(_unknown(path)) from None
        raise


def _undecodable(error: ValueError) -> str:
    """Return which variable xarray could not decode, and why."""
    text = str(error).partition(" Try opening")[0].rstrip(".")
    # Newer versions of xarray name the variable in a note.
    found = re.search("variable '[^']*'", "\n".join([text, *getattr(error, "__notes__", ())]))
    return f"{found[0]}: {text}" if found and found[0] not in text else text


def _unknown(path: Path) -> str:
    """Return what is said of a file that no engine of xarray recognises."""
    with path.open("rb") as file:
        start = file.read(8)
    if start == _HDF5 or start[:4] in _CLASSIC:
        return "no installed library reads such NetCDF files: pip install 'ambar[netcdf]'"
    return f"not a NetCDF or HDF5 file, and not a Zarr store: it begins with {start!r}"


def _without_calendars(dataset: xr.Dataset) -> xr.Dataset:
    """Return times that NumPy has no type for (a year of 360 days) as the file has them.

    They are numbers, with "units" and "calendar" in their attributes; `xarray.decode_cf` makes
    them times again.
    """
    changed = {
        name: xr.conventions.encode_cf_variable(variable.load())
        for name, variable in dataset.variables.items()
        if variable.dtype.kind == "O" and _is_calendar(variable)
    }
    return dataset.assign(changed) if changed else dataset


def _is_calendar(variable: xr.Variable) -> bool:
    first = variable[(0,) * variable.ndim].values.item() if variable.size else None
    return type(first).__module__.startswith("cftime")
