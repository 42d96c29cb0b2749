"""FITS files of maps and cubes: values, world coordinates and units as astropy reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.snapshot.maps.fits import _fits_unit
from tests.helpers.paths import RAMSES

fits = pytest.importorskip("astropy.io.fits")
units = pytest.importorskip("astropy.units")
WCS = pytest.importorskip("astropy.wcs").WCS

PHYSICAL = ambar.Units(unit_l=3.08567758128e21, unit_d=1.66e-24, unit_t=3.15576e13)


@pytest.fixture
def physical(stores: dict[str, Path]) -> ambar.Snapshot:
    return ambar.open_snapshot(stores["gravpart"]).with_units(PHYSICAL)


def check(hdu: Any, array: Any) -> None:
    """The file has the values of the array at the positions of its coordinates."""
    horizontal, vertical = array.dims[-1], array.dims[-2]
    dims = [horizontal, vertical, *array.dims[:-2]]
    if array.dims == ("x", "y", "z"):
        dims = [*array.dims]
    np.testing.assert_array_equal(hdu.data, array.transpose(*reversed(dims)).to_numpy())
    wcs = WCS(hdu.header)
    assert wcs.naxis == len(dims)
    pixels = np.meshgrid(*(np.arange(array.sizes[dim]) for dim in dims), indexing="ij")
    places = wcs.pixel_to_world_values(*pixels)
    for number, (dim, found) in enumerate(zip(dims, places, strict=True)):
        unit = array[dim].attrs["units"]
        factor = 1.0
        if not unit.startswith("code"):
            factor = units.Unit(unit).to(wcs.wcs.cunit[number])
        if dim == "velocity":
            factor = -factor  # FITS counts velocities away from the viewer as positive
        expected = array[dim].to_numpy() * factor
        shape = [-1 if n == number else 1 for n in range(len(dims))]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(
            found, np.broadcast_to(expected.reshape(shape), found.shape), atol=1e-12 * scale
        )


@pytest.mark.parametrize("axis", ["x", "y", "z", (0.3, -0.8, 0.5)])
def test_maps_are_at_their_coordinates(physical: ambar.Snapshot, axis: Any, tmp_path: Path) -> None:
    amr, path = physical.amr, tmp_path / "map.fits"
    image = amr.map(
        "density",
        axis=axis,
        center=(0.45, 0.5, 0.6),
        width=(0.5, 0.3),
        length_unit="kpc",
        resolution=20,
        unit="Msol/pc2",
    )
    assert image.shape == (12, 20)
    ambar.write_fits(image, path)
    (hdu,) = fits.open(path)
    check(hdu, image)
    assert [hdu.header[f"CUNIT{n}"] for n in (1, 2)] == ["kpc", "kpc"]
    assert units.Unit(hdu.header["BUNIT"]) == units.Msun / units.pc**2
    assert hdu.header["FIELD"] == "density"
    assert hdu.header["STATIST"] == "integral"
    np.testing.assert_allclose([hdu.header[f"SIGHT{n}"] for n in (1, 2, 3)], image.attrs["axis"])
    np.testing.assert_allclose([hdu.header[f"CENTER{n}"] for n in (1, 2, 3)], (0.45, 0.5, 0.6))
    assert hdu.header["TIME"] == physical.info.time
    assert hdu.header["SOURCE"] == physical.location
    assert hdu.header["UNIT_L"] == PHYSICAL.unit_l


def test_a_peak_is_right_side_up(physical: ambar.Snapshot, tmp_path: Path) -> None:
    """The largest value is at the pixel of the position of the densest cell."""
    amr = physical.amr
    peak = np.array(amr.argmax("density", length_unit="code").position)
    image = amr.map("density", statistic="maximum", resolution=64)
    ambar.write_fits(image, tmp_path / "peak.fits")
    hdu = fits.open(tmp_path / "peak.fits")[0]
    column, row = np.round(WCS(hdu.header).world_to_pixel_values(*peak[:2])).astype(int)
    assert hdu.data[row, column] == hdu.data.max()
    assert hdu.data[column, row] < hdu.data.max()
    assert "BUNIT" not in hdu.header
    assert "CUNIT1" not in hdu.header


def test_cubes_have_an_axis_of_velocity(physical: ambar.Snapshot, tmp_path: Path) -> None:
    cube = physical.amr.velocity_cube(
        "density",
        axis=(0, 1, 1),
        bins=10,
        velocity_unit="km/s",
        length_unit="pc",
        resolution=12,
        unit="g/cm2",
    )
    ambar.write_fits(cube, tmp_path / "cube.fits")
    (hdu,) = fits.open(tmp_path / "cube.fits")
    check(hdu, cube)
    assert hdu.header["CTYPE3"] == "VELO"
    assert hdu.header["CDELT3"] < 0
    assert hdu.header["CUNIT3"] == "km s-1"
    in_code = physical.amr.velocity_cube("density", axis=(0, 1, 1), bins=10, resolution=12)
    factor = PHYSICAL.velocity("km/s")
    np.testing.assert_allclose(cube["velocity"], in_code["velocity"] * factor)
    low, high = (float(in_code["velocity"][n]) * factor for n in (2, 7))
    part = physical.amr.velocity_cube(
        "density", axis=(0, 1, 1), bins=5, velocity_unit="km/s", range=(low, high), resolution=12
    )
    middle = float(cube["velocity"][4:6].mean())
    assert float(part["velocity"][2]) == pytest.approx(middle)
    ambar.write_fits(in_code, tmp_path / "code.fits")
    (hdu,) = fits.open(tmp_path / "code.fits")
    check(hdu, in_code)
    assert hdu.header["CTYPE3"] == "VELOCITY"


def test_several_fields_and_other_images(physical: ambar.Snapshot, tmp_path: Path) -> None:
    amr, path = physical.amr, tmp_path / "several.fits"
    both = amr.map(["density**2", "velocity_x"], weight="mass", resolution=16)
    ambar.write_fits(both, path)
    with fits.open(path) as file:
        assert [hdu.header.get("FIELD") for hdu in file] == [None, "density**2", "velocity_x"]
        for name in both:
            check(file[name], both[name])
    images = [
        amr.project("density", axis="x", level=4, unit="g/cm2"),
        amr.slice("velocity_y", axis="y", at=0.3, level=4, unit="km/s"),
        amr.grid("density", level=3),
        physical.particles.map("mass", axis="faceon", width=0.5, resolution=9),
        amr.map("density", width=0.1, resolution=1),
    ]
    for image in images:
        ambar.write_fits(image, path, mode="w")
        (hdu,) = fits.open(path)
        check(hdu, image)
    with pytest.raises(FileExistsError):
        ambar.write_fits(images[0], path)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("g/cm**3", "g cm-3"),
        ("Msun/pc**2", "solMass pc-2"),
        ("km/s/kpc", "km s-1 kpc-1"),
        ("1/cm**3", "cm-3"),
        ("uG", "uG"),
        ("K", "K"),
        ("Myr", "Myr"),
        ("J/kg", "J kg-1"),
    ],
)
def test_units_are_those_of_the_standard(unit: str, expected: str) -> None:
    found, factor = _fits_unit(unit)
    assert factor == 1.0
    assert units.Unit(found, format="fits") == units.Unit(expected, format="fits")


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        ("Ba", 0.1 * units.Pa),
        ("dyn", 1e-5 * units.N),
        ("bar", 1e5 * units.Pa),
        ("Mearth", 5.9722e24 * units.kg),
        ("3.5e+21*K*cm", 3.5e21 * units.K * units.cm),
        ("km/s/(kpc*Ba)", 10 * units.km / units.s / units.kpc / units.Pa),
    ],
)
def test_other_units_are_converted(unit: str, value: Any) -> None:
    found, factor = _fits_unit(unit)
    quantity = factor * units.Unit(found, format="fits")
    assert quantity.to_value(value.unit) == pytest.approx(value.value, rel=1e-6)


def test_what_fits_cannot_describe(gravpart: ambar.Snapshot, tmp_path: Path) -> None:
    image = gravpart.amr.map("density", resolution=8)
    path = tmp_path / "x.fits"
    with pytest.raises(ValueError, match="evenly spaced"):
        ambar.write_fits(image.isel(x=[0, 1, 5]), path)
    with pytest.raises(ValueError, match="coordinates of the dimension 'x'"):
        ambar.write_fits(image.drop_vars("x"), path)
    with pytest.raises(TypeError, match="found ndarray"):
        ambar.write_fits(image.to_numpy(), path)
    assert not path.exists()
    named = image.assign_attrs(source="Läufe/run\n.ambar")
    ambar.write_fits(named, path)
    assert fits.getheader(path)["SOURCE"] == "L\\xe4ufe/run\\n.ambar"


def test_data_of_two_dimensions(tmp_path: Path) -> None:
    amr = ambar.open_snapshot(RAMSES / "sedov2d_small" / "output_00002").amr
    image = amr.grid("density", level=5)
    ambar.write_fits(image, tmp_path / "flat.fits")
    check(fits.open(tmp_path / "flat.fits")[0], image)


def test_a_small_part_of_a_box_is_evenly_spaced(gravpart: ambar.Snapshot, tmp_path: Path) -> None:
    """Its coordinates are rounded."""
    image = gravpart.amr.map("density", center=(0.7, 0.6, 0.4), width=1e-9, resolution=64)
    ambar.write_fits(image, tmp_path / "zoom.fits")
    header = fits.getheader(tmp_path / "zoom.fits")
    assert header["CDELT1"] == pytest.approx(1e-9 / 64, rel=1e-5)


def test_only_images_by_position_are_written(physical: ambar.Snapshot, tmp_path: Path) -> None:
    for result in (physical.amr.profile("radius", "density"), physical.amr.phase("rho", "p")):
        with pytest.raises(ValueError, match="expected a map.*found .* with the dimensions"):
            ambar.write_fits(result, tmp_path / "x.fits")
    image = physical.amr.slice("density", axis="y", level=4)
    ambar.write_fits(image, tmp_path / "slice.fits")
    header = fits.getheader(tmp_path / "slice.fits")
    assert header["SIGHT"] == "y"
    assert header.comments["SIGHT"] == "perpendicular to the image"
