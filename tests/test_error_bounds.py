"""Error bounds of all kinds, through the interfaces that take them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar import _core
from ambar.codecs import checked_bound
from ambar.store.error_bounds import is_kept, resolved

BOUNDS = [
    "1e-3 relative",
    "1e-3 relative above 1e-26",
    "10 bits",
    "1e-27 rms",
    "1e-4 of range",
    "60 dB",
]


def density(dtype: str = "f8") -> np.ndarray:
    """Return a positive field over many orders of magnitude."""
    z, y, x = np.indices((24, 20, 28)) * 0.2
    field: np.ndarray = np.exp(3 * (np.sin(x) + np.cos(1.3 * y) + np.sin(0.7 * z))) * 1e-27
    return field.astype(dtype)


def check(bound: str, values: np.ndarray, found: np.ndarray) -> None:
    span = (float(values.min()), float(values.max()))
    errors = found.astype("f8") - values.astype("f8")
    assert errors.any()
    assert is_kept(resolved(bound, span), values, errors)
    assert found.min() > 0


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_arrays_keep_their_bounds(bound: str, dtype: str, tmp_path: Path) -> None:
    values = density(dtype)
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.array("density", values, error_bound=bound)
    array = ambar.open(path)["density"]
    check(bound, values, array.read())
    stated = array.error_bound
    span = (float(values.min()), float(values.max()))
    assert stated == resolved(bound, span)
    assert ambar.compare(path, path).held


def test_parsing_names_what_is_expected() -> None:
    for wrong in ("", "1e-3 of", "2 relative", "0 bits", "1e-3 relativ", "nan"):
        with pytest.raises(ambar.InvalidError, match="invalid error bound"):
            _core.error_bound(wrong)
    with pytest.raises(ambar.InvalidError, match="value range"):
        resolved("80 dB")
    assert _core.error_bound("1e-3 of range", (0.0, 2.0)) == 2e-3
    assert _core.error_bound("0") == _core.error_bound("lossless") == 0.0


@pytest.mark.parametrize("bound", BOUNDS[:4])
def test_numcodecs_and_zarr_python(bound: str, tmp_path: Path) -> None:
    numcodecs = pytest.importorskip("numcodecs")
    zarr = pytest.importorskip("zarr")
    from ambar.codecs.numcodecs_api import AmbarCodec
    from ambar.codecs.zarr_python import AmbarCodec as Zarr3

    values = density()
    codec = AmbarCodec(bound)
    check(bound, values.ravel(), codec.decode(codec.encode(values)))
    assert numcodecs.get_codec(codec.get_config()).error_bound == codec.error_bound
    array = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=values.shape, dtype="f8", chunks=values.shape,
        serializer=Zarr3(error_bound=bound), compressors=None,
    )  # fmt: skip
    array[:] = values
    check(bound, values, zarr.open_array(str(tmp_path / "x.zarr"))[:])


def test_codecs_refuse_bounds_of_a_range() -> None:
    for wrong in ("1e-3 of range", "80 dB", True, None, -1.0):
        with pytest.raises(ambar.InvalidError):
            checked_bound(wrong)


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_hdf5_filter(bound: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    from ambar import hdf5

    if not hdf5.is_available():
        pytest.skip("no plugin in this installation")
    values = density("f4")
    span = (float(values.min()), float(values.max()))
    options: dict[str, Any] = hdf5.filter(bound, value_range=span)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("density", data=values, chunks=values.shape, **options)
    with h5py.File(tmp_path / "x.h5") as file:
        check(bound, values, file["density"][:])


def test_xarray_encodings(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    values = density()
    data = xr.Dataset({"density": (("z", "y", "x"), values)})
    data.ambar.write(tmp_path / "x.ambar", encoding={"density": {"error_bound": "1e-3 relative"}})
    found = xr.open_dataset(tmp_path / "x.ambar", engine="ambar").density.values
    check("1e-3 relative", values, found)
