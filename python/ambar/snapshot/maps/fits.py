"""FITS files of maps, slices and cubes, with linear world coordinates (WCS)."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ambar._core import InvalidError
from ambar._util.arguments import check_mode
from ambar._util.optional import require
from ambar._util.output_files import published
from ambar.snapshot.physics.unit_expressions import parse_unit
from ambar.snapshot.regions import AXES

if TYPE_CHECKING:
    import xarray as xr

_NAMES = {
    "Msun": "solMass",
    "Lsun": "solLum",
    "au": "AU",
    "ly": "lyr",
    "gauss": "G",
    "tesla": "T",
    "hr": "h",
    "day": "d",
}
"""Names of units in the FITS standard, where they differ from those of pint."""
_CODE_UNITS = ("code", "code_length", "code_velocity", "dimensionless", "")
_NUMBER = re.compile(r"([0-9.]+(?:e[-+]?[0-9]+)?)\*(?=\D)")
_ORDER = ("right", "up", *AXES, "velocity")
"""Dimensions in the order of the axes of files."""
_SHORT = 30
"""The longest string, in characters, that has a comment in a header card."""
_CARDS = {
    "long_name": ("LONGNAME", "the field in words"),
    "statistic": ("STATIST", "along the line of sight"),
    "weight": ("WEIGHT", "of means"),
    "axis": ("SIGHT", "line of sight, to the viewer"),
    "up": ("UP", "direction that is upwards"),
    "center": ("CENTER", "middle of the map, in the unit of its axes"),
    "at": ("AT", "position of the slice, code length"),
    "level": ("LEVEL", "of the grid"),
    "source": ("SOURCE", "the snapshot"),
    "time": ("TIME", "code time"),
    "redshift": ("REDSHIFT", "of the snapshot"),
    "unit_l": ("UNIT_L", "[cm] one code unit of length"),
    "unit_d": ("UNIT_D", "[g/cm3] one code unit of density"),
    "unit_t": ("UNIT_T", "[s] one code unit of time"),
}
"""Header cards of attributes."""


def write_fits(
    image: xr.DataArray | xr.Dataset,
    path: str | os.PathLike[str],
    *,
    mode: Literal["w-", "w"] = "w-",
) -> None:
    """Write a map, a slice, a projection, a grid or a velocity cube as a FITS file.

    Axis 1 is to the right, and axis 2 upwards. The velocity of a cube is axis 3, with the opposite
    sign: FITS counts velocities away from the viewer as positive. Pixel centers are in the header
    as linear world coordinates.

    Parameters
    ----------
    image : xarray.DataArray or xarray.Dataset
        What `Amr.map`, `Particles.map`, `Amr.project`, `Amr.slice`, `Amr.grid` or
        `Amr.velocity_cube` returned. Each variable of a Dataset becomes an image extension with its
        name.
    path : str or path-like
        The file.
    mode : {"w-", "w"}, default "w-"
        "w-": the file must not exist. "w": replace it.

    Raises
    ------
    FileExistsError
        If the file exists, with ``mode="w-"``.
    ValueError
        If a coordinate is missing or not evenly spaced.
    TypeError
        If `image` is not an array or dataset of xarray.
    ModuleNotFoundError
        If astropy is not installed.

    Notes
    -----
    Units are in the notation of the FITS standard; values in a unit that it lacks, such as bar, are
    converted to cm, g, s and K. Code units have no BUNIT or CUNIT: choose others with ``unit=``,
    ``length_unit=`` and ``velocity_unit=``. The header has the field, the line of sight, the time,
    the snapshot and the code units of the run in CGS.

    Examples
    --------
    >>> amr = ambar.open_snapshot("run.ambar").amr
    >>> both = amr.map(["rho", "vx"], axis=(1, 1, 1), weight="mass", resolution=64)
    >>> ambar.write_fits(both, "map.fits")
    >>> from astropy.io import fits
    >>> [hdu.name for hdu in fits.open("map.fits")]
    ['PRIMARY', 'rho', 'vx']
    """
    for module in ("astropy", "xarray"):
        require(module, purpose="writing FITS", install="ambar[fits]")
    import xarray as xr
    from astropy.io import fits

    check_mode(mode, Literal["w-", "w"])
    if isinstance(image, xr.DataArray):
        hdus = [_with_image(fits.PrimaryHDU, image)]
    elif isinstance(image, xr.Dataset):
        images = [_with_image(fits.ImageHDU, array) for array in image.data_vars.values()]
        hdus = [fits.PrimaryHDU(), *images]
    else:
        raise TypeError(f"expected an xarray.DataArray or Dataset, found {type(image).__name__}")
    with published(Path(path), replace=mode == "w") as scratch:
        fits.HDUList(hdus).writeto(scratch)


def _with_image(hdu: Any, array: xr.DataArray) -> Any:
    """Return an image HDU of an array."""
    if not set(array.dims) <= set(_ORDER):
        raise InvalidError(
            "expected a map, a slice, a projection, a grid or a velocity cube, found "
            f"{array.name!r} with the dimensions {array.dims}; FITS files have images by position"
        )
    dims = sorted(array.dims, key=_ORDER.index)
    values = array.transpose(*reversed(dims)).to_numpy()
    unit, factor = _fits_unit(str(array.attrs.get("units", "")))
    made = hdu(values if factor == 1.0 else values * factor)
    cards = [("EXTNAME", str(array.name)), ("FIELD", str(array.name), "the field")]
    if unit:
        cards.append(("BUNIT", unit, "unit of the values"))
    for number, dim in enumerate(dims, 1):
        cards += _axis_cards(array, dim, number)
    made.header.update(_ascii([*cards, *_attribute_cards(array.attrs)]))
    return made


def _axis_cards(array: xr.DataArray, dim: Hashable, number: int) -> Iterator[tuple[Any, ...]]:
    """Yield the cards of the world coordinates of an axis."""
    if dim not in array.coords:
        raise InvalidError(f"expected coordinates of the dimension {dim!r}, found none")
    places = array[dim].to_numpy().astype(np.float64)
    unit, factor = _fits_unit(str(array[dim].attrs.get("units", "")))
    steps = np.diff(places)
    step = float(places[-1] - places[0]) / len(steps) if len(steps) else single_size(array, dim)
    if dim == "velocity":
        factor = -factor  # velocities of cubes are towards the viewer
    # Coordinates of a small part of a box are rounded.
    rounding = 8 * np.finfo(np.float64).eps * float(np.abs(places).max())
    if not np.allclose(steps, step, rtol=1e-6, atol=rounding):
        raise InvalidError(
            f"expected an evenly spaced coordinate {dim!r}, found steps of {steps.min():g} to "
            f"{steps.max():g}; select pixels with one step"
        )
    # A velocity without a unit would be one in m/s.
    name = "VELO" if dim == "velocity" and unit else str(dim).upper()
    yield f"CTYPE{number}", name[:8], "name of the axis"
    yield f"CRPIX{number}", (len(places) + 1) / 2, "reference pixel"
    yield f"CRVAL{number}", float(places[0] + places[-1]) / 2 * factor, "coordinate there"
    yield f"CDELT{number}", step * factor, "size of a pixel"
    if unit:
        yield f"CUNIT{number}", unit, "unit of the coordinate"


def single_size(array: xr.DataArray, dim: Hashable) -> float:
    """Return the size of the single pixel along a dimension."""
    if "cell_size" in array.attrs and str(dim) in AXES:
        return float(array.attrs["cell_size"][array.dims.index(dim)])
    name = "velocity_step" if dim == "velocity" else "pixel_size"
    return float(array.attrs.get(name, 1.0))


def _attribute_cards(attrs: dict[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the cards of what a map shows."""
    for name, (card, comment) in _CARDS.items():
        if name not in attrs:
            continue
        value = attrs[name]
        if isinstance(value, list | tuple):
            for number, part in enumerate(value, 1):
                yield f"{card}{number}", float(part), comment
        elif not isinstance(value, float) or math.isfinite(value):
            # The axis of slices and projections is a name.
            yield card, value, "perpendicular to the image" if name == "axis" else comment


def _ascii(cards: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yield cards with escapes for the characters that FITS lacks."""
    for name, value, *comment in cards:
        if isinstance(value, str):
            text = re.sub(r"[^ -~]", lambda c: ascii(c[0])[1:-1], value)
            # Comments do not fit beside long strings.
            yield (name, text, *comment) if len(text) <= _SHORT else (name, text)
        else:
            yield (name, value, *comment)


def _fits_unit(label: str) -> tuple[str, float]:
    """Return a unit in the notation of FITS, and the factor of values to it; "" for code units."""
    from astropy import units

    if label in _CODE_UNITS:
        return "", 1.0
    number = _NUMBER.match(label)
    factor = float(number[1]) if number else 1.0
    text = label[number.end() :] if number else label
    named = re.sub(r"[A-Za-z]+", lambda name: _NAMES.get(name[0], name[0]), text)
    try:
        with warnings.catch_warnings():
            # More than one slash is discouraged in FITS, but not in pint.
            warnings.simplefilter("ignore", units.UnitsWarning)
            found = units.Unit(named).to_string("fits")
    except ValueError:
        found = "10"
    if not found.startswith("10"):
        return found, factor
    try:
        unit = parse_unit(text)
    except InvalidError:
        return label, 1.0
    length, mass, time, kelvin = unit.dimension
    cgs = units.cm**length * units.g**mass * units.s**time * units.K**kelvin
    return cgs.to_string("fits"), factor * unit.factor
