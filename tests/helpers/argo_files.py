"""Files as those of Argo's core profiles: dimensions, variables, types and attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

PARAMETERS = ("PRES", "TEMP", "PSAL")
_TEXTS = {
    "DATA_TYPE": 16,
    "FORMAT_VERSION": 4,
    "HANDBOOK_VERSION": 4,
    "REFERENCE_DATE_TIME": 14,
    "DATE_CREATION": 14,
    "DATE_UPDATE": 14,
}
_PROFILE_TEXTS = {
    "PLATFORM_NUMBER": 8,
    "PROJECT_NAME": 64,
    "PI_NAME": 64,
    "DATA_CENTRE": 2,
    "DC_REFERENCE": 32,
    "DATA_STATE_INDICATOR": 4,
    "PLATFORM_TYPE": 32,
    "FLOAT_SERIAL_NO": 32,
    "FIRMWARE_VERSION": 32,
    "WMO_INST_TYPE": 4,
    "VERTICAL_SAMPLING_SCHEME": 256,
    "POSITIONING_SYSTEM": 8,
}
_PROFILE_FLAGS = ("DIRECTION", "DATA_MODE", "JULD_QC", "POSITION_QC")
_HISTORY_TEXTS = {
    "HISTORY_INSTITUTION": 4,
    "HISTORY_STEP": 4,
    "HISTORY_SOFTWARE": 4,
    "HISTORY_SOFTWARE_RELEASE": 4,
    "HISTORY_REFERENCE": 64,
    "HISTORY_DATE": 14,
    "HISTORY_ACTION": 4,
    "HISTORY_PARAMETER": 16,
    "HISTORY_QCTEST": 16,
}
_CALIB_TEXTS = {
    "SCIENTIFIC_CALIB_EQUATION": 256,
    "SCIENTIFIC_CALIB_COEFFICIENT": 256,
    "SCIENTIFIC_CALIB_COMMENT": 256,
    "SCIENTIFIC_CALIB_DATE": 14,
}


def argo(number: int) -> xr.Dataset:  # noqa: C901 - one kind of variables after another
    """Return what a file holds, with `N_LEVELS` 50 to 100 and `N_HISTORY` 0 to 20."""
    rng = np.random.default_rng(number)
    levels, history = int(rng.integers(50, 101)), int(rng.integers(0, 21))
    variables: dict[str, Any] = {}

    def texts(name: str, dims: tuple[str, ...], shape: tuple[int, ...], width: int) -> None:
        text = f"{name} {number % 7}"[:width].ljust(width).encode()
        dim = "DATE_TIME" if width == 14 else f"STRING{width}"
        letters = np.broadcast_to(np.array(list(text), "u1").view("S1"), (*shape, width))
        variables[name] = ((*dims, dim), letters.copy(), {"long_name": name.lower()}, FILL)

    for name, width in _TEXTS.items():
        texts(name, (), (), width)
    for name, width in _PROFILE_TEXTS.items():
        texts(name, ("N_PROF",), (1,), width)
    for name, width in _HISTORY_TEXTS.items():
        texts(name, ("N_HISTORY", "N_PROF"), (history, 1), width)
    for name, width in _CALIB_TEXTS.items():
        texts(name, ("N_PROF", "N_CALIB", "N_PARAM"), (1, 1, 3), width)
    texts("STATION_PARAMETERS", ("N_PROF", "N_PARAM"), (1, 3), 16)
    texts("PARAMETER", ("N_PROF", "N_CALIB", "N_PARAM"), (1, 1, 3), 16)
    for name in _PROFILE_FLAGS:
        variables[name] = ("N_PROF", np.array([b"1"]), {}, FILL)
    days = {"units": "days since 1950-01-01 00:00:00 UTC", "axis": "T"}
    for name in ("JULD", "JULD_LOCATION"):
        moment = np.array([25000.0 + number / 8])
        variables[name] = ("N_PROF", moment, days, {"_FillValue": 999999.0})
    for name in ("LATITUDE", "LONGITUDE"):
        variables[name] = ("N_PROF", rng.uniform(-60, 60, 1), {"units": "degrees"}, {})
    variables["CYCLE_NUMBER"] = ("N_PROF", np.array([number], "i4"), {}, {"_FillValue": 99999})
    for name in ("HISTORY_START_PRES", "HISTORY_STOP_PRES", "HISTORY_PREVIOUS_VALUE"):
        values = np.full((history, 1), 5.0, "f4")
        variables[name] = (("N_HISTORY", "N_PROF"), values, {"units": "decibar"}, FLOAT)
    depth = np.sort(rng.uniform(0, 2000, levels)).astype("f4")
    columns = {"PRES": depth, "TEMP": 25 * np.exp(-depth / 600), "PSAL": 34 + depth / 2000}
    for name, values in columns.items():
        exact = np.round(values.astype("f8") * 1000) / 1000
        measured = exact.astype("f4")[np.newaxis]
        flags = np.where(rng.random((1, levels)) < 0.1, b" ", rng.choice([b"1", b"4"], levels))
        for suffix in ("", "_ADJUSTED"):
            about = {"long_name": name, "units": "units of it", "C_format": "%7.3f"}
            lacking = np.where(flags == b" ", np.float32(99999), measured)
            variables[name + suffix] = (("N_PROF", "N_LEVELS"), lacking, about, FLOAT)
            variables[f"{name}{suffix}_QC"] = (("N_PROF", "N_LEVELS"), flags, {}, FILL)
        error = np.full((1, levels), 0.002, "f4")
        variables[f"{name}_ADJUSTED_ERROR"] = (("N_PROF", "N_LEVELS"), error, about, FLOAT)
        variables[f"PROFILE_{name}_QC"] = ("N_PROF", np.array([b"A"]), {}, FILL)
    encoded = xr.Dataset(
        {
            name: xr.Variable(dims, values, attrs | fill)
            for name, (dims, values, attrs, fill) in variables.items()
        },
        attrs={"title": "Argo float vertical profile", "history": f"made {number}", "id": number},
    )
    return xr.decode_cf(encoded)


FILL = {"_FillValue": b" "}
FLOAT = {"_FillValue": np.float32(99999)}


def decoded_bytes(dataset: xr.Dataset) -> int:
    """Return the bytes of a dataset's values; of objects, those of the strings themselves."""
    return sum(
        sum(len(value) for value in variable.values.flat if isinstance(value, bytes))
        if variable.dtype.kind == "O"
        else variable.nbytes
        for variable in dataset.variables.values()
    )


def write_files(folder: Path, count: int) -> list[Path]:
    """Write files of NetCDF-4."""
    folder.mkdir(parents=True)
    files = [folder / f"R{number:07d}_001.nc" for number in range(count)]
    for number, file in enumerate(files):
        argo(number).to_netcdf(file, engine="netcdf4")
    return files
