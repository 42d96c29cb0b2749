"""Conditions on cells and particles return the rows that NumPy does; invalid ones are errors."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar import _core
from ambar.snapshot.field_names import resolve
from ambar.snapshot.units import parse_where

# Conditions that Python evaluates on NumPy arrays as well.
CONDITIONS = [
    "rho * vx**2 > 1e-3",
    "(rho - 2) * 3 <= vx / 0.5",
    "abs(vx) > abs(vy)",
    "sqrt(vx**2 + vy**2 + vz**2) >= 0.1",
    "log10(p / rho) < -0.5",
    "vx**3 - -vy < 0",
    "2 ** level * dx == 1",
    "ix + iy >= 2 ** (level - 1)",
    "(x - 0.5)**2 + (y - 0.5)**2 + (z - 0.5)**2 < 0.3**2",
    "1 / vx > 10",
    "rho ** 0.5 > 1.2",
    "rho ** vx != 1",
    "rho > 1.5",
    "level == 5",
]


@pytest.mark.parametrize("where", CONDITIONS)
def test_conditions_equal_numpy(gravpart: ambar.Snapshot, where: str) -> None:
    names = ["rho", "vx", "vy", "vz", "p", "x", "y", "z", "dx", "ix", "iy", "level"]
    cells = gravpart.amr.read(names)
    functions = {"abs": np.abs, "sqrt": np.sqrt, "log10": np.log10}
    columns = {name: np.asarray(cells[name], np.float64) for name in names}
    with np.errstate(all="ignore"):
        holds = eval(where, functions, columns)  # noqa: S307 - one of the conditions above
    assert 0 < holds.sum() <= len(holds)
    found = gravpart.amr.read(["rho", "x"], where=where)
    np.testing.assert_array_equal(found["rho"], cells["rho"][holds])
    np.testing.assert_array_equal(found["x"], cells["x"][holds])
    condition = _core.Condition(where)
    np.testing.assert_array_equal(condition.evaluate({**columns}), holds)


def test_lists_minima_and_chains(gravpart: ambar.Snapshot) -> None:
    cells = gravpart.amr.read(["rho", "vx", "vy", "level"])
    rho, vx, vy, level = (cells[name] for name in ("rho", "vx", "vy", "level"))
    for where, holds in [
        ("level in [4, 6]", np.isin(level, [4, 6])),
        ("level not in (4, 6)", ~np.isin(level, [4, 6])),
        ("min(vx, vy, 0) < -0.05", np.minimum(np.minimum(vx, vy), 0) < -0.05),
        ("max(vx, vy) > 0.05", np.maximum(vx, vy) > 0.05),
        ("-0.1 < vx < vy < 0.1", (vx > -0.1) & (vx < vy) & (vy < 0.1)),
        ("not vx in [0] and rho + 1 in [2, 3]", (vx != 0) & np.isin(rho + 1, [2, 3])),
    ]:
        found = gravpart.amr.read(["rho"], where=where)
        np.testing.assert_array_equal(found["rho"], rho[holds], err_msg=where)


def test_arithmetic_spares_chunks(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    most = float(amr.read(["rho"])["rho"].max())
    assert amr.chunks_touched(where=f"2 * rho > {2 * most + 1!r}") == 0
    assert amr.chunks_touched(where="sqrt(rho) >= 0 and abs(vx) + 1 > 1") > 0
    assert amr.chunks_touched(where="rho ** 2 < -1 or log10(rho) in [1000]") == 0


def test_particles(gravpart: ambar.Snapshot) -> None:
    rows = gravpart.particles.read(["mass", "vx", "vy", "identity", "family"])
    holds = rows["mass"] * (rows["vx"] ** 2 + rows["vy"] ** 2) / 2 > 1e-9
    holds &= rows["family"] == 1
    assert holds.any()
    found = gravpart.particles.read(
        "id", where="mass * (vx**2 + vy**2) / 2 > 1e-9 and family in [1]"
    )
    np.testing.assert_array_equal(found["identity"], rows["identity"][holds])


def test_units_are_those_of_the_snapshot(gravpart: ambar.Snapshot) -> None:
    units = gravpart.info.units
    cells = gravpart.amr.read(["rho", "vx", "p", "x", "dx"])
    rho, vx = cells["rho"], cells["vx"]
    middle = float(np.median(rho * units.density("g/cm3")))
    speed = float(np.median(np.abs(vx) * units.velocity("km/s")))
    warm = float(np.median(cells["p"] / rho * units.temperature("K")))
    for where, holds in [
        (f"rho > {middle!r} g/cm3", rho > middle / units.density("g/cm3")),
        (f"{middle!r} g/cm3 < density", rho > middle / units.density("g/cm3")),
        (f"abs(vx) >= {speed!r} km/s", np.abs(vx) >= speed / units.velocity("km/s")),
        (f"p / rho < {warm!r} K", cells["p"] / rho < warm / units.temperature("K")),
        (f"x - {units.length('kpc') / 2!r} kpc > 0", cells["x"] > 0.5),
        (f"dx in [{units.length('AU') / 32!r} AU, 0 pc]", cells["dx"] == 1 / 32),
    ]:
        found = gravpart.amr.read(["rho"], where=where)
        assert 0 < len(found) < len(rho), where
        np.testing.assert_allclose(len(found), holds.sum(), atol=1, err_msg=where)
    mass = gravpart.particles.read("mass")["mass"]
    least = float(np.median(mass) * units.mass("Msun"))
    found = gravpart.particles.read("mass", where=f"mass > {least * 0.99!r} Msun")
    assert len(found) == (mass > np.median(mass) * 0.99).sum()


@pytest.mark.parametrize(
    "unit", ["cm-3", "cm**-3", "cm ** -3", "1/cm3", "1/cm**3", "cm-2 cm-1", "1/cm/cm**2"]
)
def test_number_densities_have_units(gravpart: ambar.Snapshot, unit: str) -> None:
    amr = gravpart.amr
    density = amr.read("number_density")["number_density"]
    middle = float(np.median(density))
    found = amr.read("number_density", where=f"number_density > {middle!r} {unit}")
    np.testing.assert_array_equal(found["number_density"], density[density > middle])


def test_exponents_of_units_are_without_spaces(gravpart: ambar.Snapshot) -> None:
    amr, units = gravpart.amr, gravpart.info.units
    rho = amr.read("rho")["rho"]
    middle = float(np.median(rho * units.density("g/cm3")))
    expected = (rho > middle / units.density("g/cm3")).sum()
    for unit in ("g cm-3", "g cm**-3", "g/cm**3", "kg cm-3 g/kg"):
        found = amr.read("rho", where=f"rho > {middle!r} {unit} and level > 0")
        np.testing.assert_allclose(len(found), expected, atol=1, err_msg=unit)
    length = units.length("kpc")
    # A difference, and a product with a power.
    assert len(amr.read("x", where=f"x > {length / 2!r} kpc - 0.25")) > len(amr) / 2
    assert len(amr.read("x", where=f"x**2 < {length**2 / 4!r} kpc**2")) < len(amr)
    for where, message in [
        ("number_density > 1/cm3", "write a unit after a number and a space"),
        ("number_density > 1 cm-2", "expected"),
    ]:
        with pytest.raises((KeyError, ValueError), match=message):
            amr.read("rho", where=where)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("rho > 1 km/s", r'character 9: expected density \(g/cm3, .*nH\), found "km/s", velocity'),
        ("rho + vx > 1 g/cm3", "expected a sum.*density.*and velocity"),
        ("level > 1 kpc", 'expected dimensionless, found "kpc", length'),
        ("rho > 1 furlong", 'unknown unit "furlong"; available: length'),
        ("rho > 1g/cm3", "put a space before a unit"),
        ("rho = 1", 'character 5: "=" is not an operator; write =='),
        ("rho > nan", "found nan, which equals no value"),
        ("(rho > 1", r'expected "\)" to close "\("'),
        ("rho >", "character 6: expected a field or a number, found the end"),
        ("rho > 'a'", "found a string"),
        ("rho(1) > 2", 'unknown function "rho"'),
    ],
)
def test_wrong_conditions_say_where(gravpart: ambar.Snapshot, where: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        gravpart.amr.read(["rho"], where=where)
    with pytest.raises(KeyError, match="enthalpy"):
        gravpart.amr.read(["rho"], where="2 * enthalpy > 1")
    with pytest.raises(KeyError, match="write the unit g/cm3 without spaces"):
        gravpart.amr.read(["rho"], where="rho > 1 g / cm3")


def test_conformal_times_have_no_units() -> None:
    galaxy = ambar.RamsesInfo(
        ndim=3, boxlen=100.0, time=30.0, unit_l=3e21, unit_d=7e-23, unit_t=5e14
    )
    universe = replace(galaxy, aexp=0.5, H0=70.0, omega_m=0.3, omega_l=0.7, cosmological=True)
    known = ["birth_time", "mass"]
    name_of = partial(resolve, known=known)
    with pytest.raises(ambar.UnsupportedError, match="conformal"):
        parse_where("birth > 3 Myr", name_of, universe.units)
    condition = parse_where("birth > -1 and mass > 3 Msol", name_of, universe.units)
    assert condition is not None
    assert condition.fields == known
    assert condition.units == []
    assert parse_where("birth > 3 Myr", name_of, galaxy.units) is not None


def test_numbers_with_units_are_converted_to_code_units() -> None:
    units = ambar.RamsesInfo(
        ndim=3, boxlen=100.0, time=30.0, unit_l=3e21, unit_d=7e-23, unit_t=5e14
    ).units
    rho = np.geomspace(1e-4, 1e4, 50)
    vx = np.linspace(-3, 3, 50)
    columns = {"density": rho, "velocity_x": vx}
    for where, holds in [
        ("rho > 1e-24 g/cm3", rho * units.density("g/cm3") > 1e-24),
        (
            "0.1 nH < rho <= 30 nH",
            (rho > 0.1 / units.density("nH")) & (rho <= 30 / units.density("nH")),
        ),
        ("abs(vx) > 40 km/s", abs(vx) * units.velocity("km/s") > 40),
        ("rho * vx**2 > 1e-10 erg/cm3", rho * vx**2 * units.pressure("Ba") > 1e-10),
        ("log10(rho / 1 g/cm3) > -23", np.log10(rho * units.density("g/cm3")) > -23),
    ]:
        condition = parse_where(where, partial(resolve, known=columns), units)
        assert condition is not None
        assert 0 < holds.sum() < len(rho)
        np.testing.assert_array_equal(condition.evaluate(columns), holds, err_msg=where)


def test_sizes_of_cells_are_lengths() -> None:
    units = ambar.Units(unit_l=100.0, unit_d=1.0, unit_t=1.0)
    for name in ("dx", "dy", "dz"):
        condition = parse_where(f"{name} > 1 m", str, units)
        assert condition is not None
        np.testing.assert_array_equal(
            condition.evaluate({name: np.array([0.5, 1.5])}), [False, True]
        )


def test_evaluate_takes_any_column() -> None:
    columns = {
        "name": np.array(["argo", "glider", "x"]),
        "object": np.array(["argo", None, 3], object),
        "big": np.array([2**53 + 1, 2**53, 0], ">i8"),
        "small": np.array([1, np.nan, 3], "f2")[::1],
        "flag": np.array([True, False, True]),
        "listed": [1, 2, 3],
    }
    for text, expected in [
        ("name == 'argo'", [1, 0, 0]),
        ("name in ['argo', \"x\"] and flag", None),
        ("object != 'argo'", [0, 0, 1]),
        ("object == 3", [0, 0, 1]),
        ("big == 9007199254740993", [1, 0, 0]),
        ("small > 0", [1, 0, 1]),
        ("flag == True", [1, 0, 1]),
        ("listed * 2 == 4", [0, 1, 0]),
        ("object == name", [1, 0, 0]),
    ]:
        if expected is None:
            with pytest.raises(ValueError, match="expected <"):
                _core.Condition(text)
        else:
            found = _core.Condition(text).evaluate(columns)
            assert found.dtype == bool
            assert found.tolist() == list(map(bool, expected)), text
    assert _core.Condition("a > 1 and b.c < a").fields == ["a", "b.c"]
    assert repr(_core.Condition("a > 'x'")) == "Condition(\"a > 'x'\")"
    with pytest.raises(ValueError, match="shape mismatch"):
        _core.Condition("flag == listed").evaluate({"flag": columns["flag"], "listed": [1, 2]})
    with pytest.raises(KeyError):
        _core.Condition("a > 1").evaluate({})
    with pytest.raises(ValueError, match="complex128 values; expected numbers or strings"):
        _core.Condition("a > 1").evaluate({"a": np.zeros(3, complex)})
    grid = np.arange(6.0).reshape(2, 3)
    found = _core.Condition("a > b").evaluate({"a": grid.T, "b": 2})
    np.testing.assert_array_equal(found, grid.T > 2)
    assert _core.Condition("a > b").evaluate({"a": 3, "b": np.float32(2)}).item() is True
    empty = _core.Condition("a > 1").evaluate({"a": []})
    assert empty.dtype == bool
    assert len(empty) == 0


def test_hostile_conditions_end() -> None:
    for depth in (10, 100_000):
        deep = "(" * depth + "a > 1" + ")" * depth
        assert _core.Condition(deep).fields == ["a"]
    for prefix, suffix in itertools.product(["not ", "-", "abs(", "[", "(a + "], ["", ") > 1"]):
        with pytest.raises(ValueError, match="at character"):
            _core.Condition(prefix * 50_000 + "a" + suffix)
