"""Units and cosmology against numbers worked out by other means."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

import ambar
from ambar import _core
from ambar.snapshot.physics.unit_expressions import parse_unit
from ambar.snapshot.regions import region_in_code
from ambar.snapshot.units import ColumnUnits
from tests.helpers.paths import EXAMPLES
from tests.helpers.sample_outputs import output

GALAXY = ambar.RamsesInfo(
    ndim=3,
    boxlen=100.0,
    time=30.0,
    unit_l=3.085677581282e21,
    unit_d=6.76838218451376e-23,
    unit_t=4.70430312423675e14,
)
# Planck-like, at redshift 1.
UNIVERSE = ambar.RamsesInfo(
    ndim=3,
    boxlen=1.0,
    time=-0.9,
    unit_l=1.5e26,
    unit_d=3e-29,
    unit_t=1e17,
    aexp=0.5,
    H0=70.0,
    omega_m=0.3,
    omega_l=0.7,
    cosmological=True,
)


def test_factors() -> None:
    units = GALAXY.units
    assert units.length("kpc") == pytest.approx(1.0, rel=1e-6)
    assert units.length("pc") == pytest.approx(1000, rel=1e-6)
    assert units.time("Myr") == pytest.approx(14.907, rel=1e-4)
    assert units.velocity("km/s") == pytest.approx(65.593, rel=1e-4)
    assert units.mass("Msol") == pytest.approx(9.997e8, rel=1e-3)
    assert units.density("nH") == pytest.approx(6.76838218451376e-23 * 0.76 / 1.66e-24)
    assert units.density("Msol/pc3") == pytest.approx(0.9997, rel=1e-3)
    # T/mu = m_H / k_B * v^2 for pressure = density in code units
    velocity = 65.593e5
    assert units.temperature("T_mu") == pytest.approx(
        1.66e-24 / 1.380649e-16 * velocity**2, rel=1e-4
    )
    assert units.temperature("K") == pytest.approx(units.temperature("T_mu") / 0.76)


def test_conversion_by_field_or_quantity() -> None:
    units = GALAXY.units
    assert units.convert(2.0, "density", "g/cm3") == pytest.approx(2 * GALAXY.unit_d)
    assert units.convert([1, 2], "vx", "km/s")[1] == pytest.approx(2 * units.velocity("km/s"))
    assert units.convert([3.0], "velocity_x", "code")[0] == 3.0
    assert units.convert(1.0, "x", "Mpc") == pytest.approx(1e-3, rel=1e-6)
    assert units.length("au") == units.length("Au")


def test_unknown_units_name_those_there_are() -> None:
    with pytest.raises(ValueError, match="kpc"):
        GALAXY.units.length("furlong")
    with pytest.raises(ValueError, match="length"):
        GALAXY.units.convert(1.0, "family", "kpc")


def test_regions_in_physical_units() -> None:
    radius = 10 / GALAXY.units.length("kpc")
    assert radius == pytest.approx(10.0, rel=1e-6)
    sphere = ambar.Sphere("bc", 10, "kpc")._to_code(GALAXY)
    assert sphere == _core.Region.sphere((50.0,) * 3, radius)
    box = ambar.Box((-1, -1, None), (1, 1, None), unit="kpc", center=("bc", "bc", 0))
    lo, hi = box.corners(GALAXY)
    assert lo[:2] == pytest.approx((49, 49))
    assert (lo[2], hi[2]) == (-math.inf, math.inf)
    box = ambar.Box((0, 0, 0), (1, 1, 1))
    assert box._to_code(GALAXY) == _core.Region.box((0.0,) * 3, (100.0,) * 3)
    shell = ambar.SphericalShell((1, 2, 3), 0.5, 1, "code")
    assert shell._to_code(GALAXY) == _core.Region.shell((1.0, 2.0, 3.0), 0.5, 1.0)
    assert shell._to_code(GALAXY) != _core.Region.sphere((1.0, 2.0, 3.0), 1.0)


@pytest.mark.parametrize(
    "region",
    [
        ambar.Box((0, 0), (1, 1)),
        ambar.Box((1, 0, 0), (0, 1, 1)),
        ambar.Box((math.nan, 0, 0), (1, 1, 1)),
        ambar.Sphere("bc", -1),
        ambar.Sphere("middle", 1),
        ambar.Sphere((0, 0), 1),
        ambar.Sphere("bc", 1, unit="furlong"),
        ambar.SphericalShell("bc", 2, 1),
    ],
    ids=str,
)
def test_invalid_regions_are_refused(region: Any) -> None:
    with pytest.raises(ValueError):
        region._to_code(GALAXY)


def test_ages() -> None:
    assert GALAXY.age("Myr") == pytest.approx(30 * GALAXY.units.time("Myr"))
    # In a flat universe: t = 2 / (3 H0 sqrt(omega_l)) asinh(sqrt(omega_l / omega_m) a^1.5)
    hubble = 70 * 1e5 / 3.08567758128e24
    expected = 2 / (3 * hubble * math.sqrt(0.7)) * math.asinh(math.sqrt(0.7 / 0.3) * 0.5**1.5)
    assert UNIVERSE.age("s") == pytest.approx(expected, rel=1e-10)
    assert UNIVERSE.age("Gyr") == pytest.approx(5.75, rel=0.01)
    for unit in ("kpc", "nothing"):
        with pytest.raises(ambar.InvalidError, match="is not a unit of time"):
            UNIVERSE.age(unit)
    assert UNIVERSE.redshift == pytest.approx(1.0)
    assert "redshift 1" in str(UNIVERSE)


def test_boxes_of_several_root_cells() -> None:
    info = ambar.RamsesInfo(ndim=2, boxlen=2.0, time=0.0, root=(2, 1, 1))
    assert info.box_size == (2.0, 1.0)
    disc = _core.Region.sphere((1.0, 0.5), 1.0)
    assert region_in_code(ambar.Sphere("bc", 0.5), info) == disc
    periodic = ambar.RamsesInfo(
        ndim=2, boxlen=2.0, time=0.0, root=(2, 1, 1), periodic=(True, False)
    )
    found = region_in_code(ambar.Sphere("bc", 0.5), periodic)
    assert found == disc.in_periodic_box((0.0, 0.0), (2.0, math.inf)) != disc


@pytest.mark.parametrize("periodic", [True, False])
def test_boxes_that_touch_a_face_overlap_if_it_is_periodic(periodic: bool) -> None:
    info = ambar.RamsesInfo(ndim=2, boxlen=3.0, time=0.0, periodic=(periodic, periodic))
    touching: list[list[float]] = [[-0.2, 0, 0, 1], [1, 0, 1.2, 1], [0, 1, 1, 2], [0, -1, 1, 0]]
    for numbers in touching:
        box = ambar.Box(numbers[:2], numbers[2:])
        if periodic:
            assert region_in_code(box, info) is not None
            continue
        with pytest.raises(ambar.InvalidError, match=r"does not overlap the box.*check the unit"):
            region_in_code(box, info)
    inside: list[list[float]] = [[-0.2, 0, 1e-9, 1], [0.99, 0, 1.2, 1], [-0.1, 0.5, 0.9, 0.6]]
    for numbers in inside:
        assert region_in_code(ambar.Box(numbers[:2], numbers[2:]), info) is not None


def test_names_of_fields_and_quantities() -> None:
    units = GALAXY.units
    assert units.convert(1582.0, "temperature", "K") == 1582.0
    assert units.factor("pressure_over_density", "K") == units.temperature("K")
    with pytest.raises(ambar.InvalidError, match="not a unit of temperature"):
        units.factor("temperature", "T_mu")
    with pytest.raises(ambar.InvalidError):
        units.factor("velocity_x**2", "km/s")
    assert units.factor("velocity_x**2", "km2/s2") == pytest.approx(units.velocity("km/s") ** 2)
    columns = ColumnUnits.of_names(units, ["foo/dx", "hydro/dx", "particles/mass", "rho/dx"])
    assert columns.factor("hydro/dx", "kpc") == units.length("kpc")
    assert columns.factor("particles/mass", "g") == units.mass("g")
    assert columns.factor("rho/dx", "g/cm4") == pytest.approx(units.unit_d / units.unit_l)
    with pytest.raises(ambar.InvalidError, match="foo/dx"):
        columns.factor("foo/dx", "kpc")


def test_labels_are_units() -> None:
    units = GALAXY.units
    assert units.factor("pressure", "K/cm**3") == units.factor("pressure", "K/cm3")
    assert units.factor("rho * vx**2", "K/cm**3") == pytest.approx(units.pressure("K/cm3"))
    for unit in ("pc**99999", "pc" + "9" * 5000, "s**" + "9" * 400, "1/mm**400"):
        with pytest.raises(ambar.InvalidError, match="too large or too small"):
            parse_unit(unit)
        with pytest.raises(ambar.InvalidError, match="not a unit of length"):
            units.factor("length", unit)
    for unit, meant in (("km_s", "km/s"), ("Msol_pc2", "Msol/pc2")):
        for call in (parse_unit, lambda unit: units.factor("time", unit)):
            with pytest.raises(ambar.InvalidError, match=f"did you mean '{meant}'"):
                call(unit)
    assert parse_unit("nK").factor == 1e-9
    assert parse_unit("GHz/MeV").dimension == parse_unit("Hz/eV").dimension
    for unit in ("npc", "xK", "nnK"):
        with pytest.raises(ambar.InvalidError, match="unknown unit"):
            parse_unit(unit)
    message = (
        r"'erg' is not a unit of T: expected the dimension K, found cm\*\*2\*g/s\*\*2; available"
    )
    with pytest.raises(ambar.InvalidError, match=message):
        ambar.open_snapshot(output("sedov")).amr.slice("T", unit="erg")
    with pytest.raises(ambar.InvalidError, match="unknown unit 'km_s'; did you mean 'km/s'[?]"):
        ambar.open_snapshot(output("sedov")).amr.read("rho", where="vx > 1 km_s")
    with pytest.raises(ambar.InvalidError, match="unknown unit 'G'"):
        ambar.fields.add("never", "rho", "G")


def test_electromagnetic_units_are_those_of_heaviside_and_lorentz() -> None:
    volt, coulomb, tesla = (parse_unit(name) for name in ("V", "C", "Tesla"))
    energy = coulomb * volt
    assert energy.is_like(parse_unit("J"))
    assert energy.factor == pytest.approx(1e7, rel=1e-14)
    assert parse_unit("MA s").factor == pytest.approx(1e6 * coulomb.factor, rel=1e-14)
    field = parse_unit("GV/m")
    assert field.is_like(tesla)
    # In SI, the energy density is epsilon_0 E**2 / 2; J/m**3 is 10 erg/cm**3.
    assert field.factor**2 / 2 == pytest.approx(10 * 8.8541878128e-12 * 1e18 / 2, rel=1e-9)
    assert tesla.factor**2 / 2 == pytest.approx(10 / (2 * 1.25663706212e-6), rel=1e-9)


def test_times_of_nyx_are_proper_times_since_the_start_of_the_run() -> None:
    """They were scaled with the expansion factor, as lengths are."""
    cosmology = pytest.importorskip("yt.utilities.cosmology")
    info = ambar.open_snapshot(EXAMPLES / "data" / "cosmic_web.ambar").with_units("Nyx").info
    assert info.redshift is not None
    # Of the run's input: comoving_h, comoving_OmM, and initial_z.
    universe = cosmology.Cosmology(hubble_constant=0.675, omega_matter=0.31, omega_lambda=0.69)
    expected = universe.t_from_z(info.redshift) - universe.t_from_z(30.0)
    assert info.age("Myr") == pytest.approx(float(expected.to_value("Myr")), rel=1e-3)
    assert info.age() == info.time
    assert info.units.time("s") * info.units.velocity("cm/s") == info.units.length("cm")


def test_units_of_codes_have_names() -> None:
    web = ambar.open_snapshot(EXAMPLES / "data" / "cosmic_web.ambar")
    nyx = web.with_units("Nyx")
    assert web.info.aexp is not None
    assert nyx.info.box_size[0] * nyx.info.units.length("Mpc") == pytest.approx(
        12 * web.info.aexp, rel=1e-9
    )
    # The mean density of baryons is near 4.2e-31 g/cm3 (1 + z)**3.
    mean = nyx.amr.mean("density", unit="g/cm3")
    assert 3e-31 < mean * web.info.aexp**3 < 6e-31
    title = nyx.plot("density", resolution=16).figure.get_suptitle()
    assert title == "along z, redshift 5.53, time 936.7 Myr"
    laser = ambar.open_snapshot(EXAMPLES / "data" / "laser_wake.ambar").with_units("WarpX")
    assert laser.amr.max("Ey", unit="GV/m") == pytest.approx(laser.amr.max("Ey") / 1e9)
    assert laser.amr.slice("rho", unit="C/m3").attrs["units"] == "C/m**3"
    assert laser.info.units.length("m") == pytest.approx(1)
    for units_of_box, where in (("kpc", None), ("box", "density > 1 g/cm3")):
        ball = ambar.Sphere("bc", 0.1, units_of_box)
        with pytest.raises(
            (ValueError, ambar.UnsupportedError), match="units; .*snapshot.with_units"
        ):
            web.amr.read("density", region=ball, where=where)
    assert web.with_units("SI").info.units.density("g/cm3") == pytest.approx(1e-3)
    assert web.with_units("cgs").info.units.unit_v == 1
    with pytest.raises(ValueError, match=r"'nyx'; did you mean 'Nyx'\?"):
        web.with_units("nyx")


@pytest.mark.parametrize("changed", [{"unit_l": 0.0}, {"unit_d": -1.0}, {"unit_t": math.nan}])
def test_factors_that_are_not_positive_are_refused(changed: dict[str, float]) -> None:
    """They gave ZeroDivisionError when a value was converted."""
    name, value = next(iter(changed.items()))
    with pytest.raises(ambar.InvalidError, match=f"invalid {name}: {value}; expected a finite"):
        dataclasses.replace(ambar.Units(1.0, 1.0, 1.0), **{name: value})  # type: ignore[arg-type]


def test_numbers_without_a_unit_are_dimensionless() -> None:
    amr = ambar.open_snapshot(output("sedov")).amr
    unit = amr.read("mach_number").to_xarray()["mach_number"].attrs["units"]
    assert unit == "dimensionless"
    assert amr.mean("mach_number", unit=unit) == amr.mean("mach_number")
    assert amr.map("level", weight="volume", unit=unit, resolution=4).attrs["units"] == unit
    with pytest.raises(ValueError, match="found dimensionless"):
        amr.mean("density", unit=unit)
