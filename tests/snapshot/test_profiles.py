"""Profiles, phase diagrams and histograms, compared with NumPy on the whole table and with yt."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar._core import Binning
from ambar.snapshot.analysis import batches, profiles
from tests.helpers.sample_outputs import output

pytest.importorskip("xarray")

BALL = ambar.Sphere((0.4, 0.5, 0.55), 0.3)
NAMES = ["density", "pressure", "vx", "x", "y", "z", "dx"]


@pytest.fixture(params=["whole", "blocks"])
def cells(
    request: pytest.FixtureRequest, gravpart: ambar.Snapshot, monkeypatch: pytest.MonkeyPatch
) -> ambar.Amr:
    if request.param == "blocks":
        monkeypatch.setattr(batches, "BATCH_BYTES", 1)
        monkeypatch.setattr(profiles, "_SEARCH_BYTES", 1)
    return gravpart.amr


def arms(table: ambar.Table, center: Any) -> np.ndarray:
    """Return positions relative to the nearest image of a center in a box of size 1."""
    offset = np.stack([table[axis] for axis in "xyz"]) - np.reshape(center, (3, 1))
    return np.asarray(offset - np.rint(offset))


def binned(values: np.ndarray, weights: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return np.histogram(values, edges, weights=weights.astype(np.longdouble))[0]


@pytest.mark.parametrize("center", ["region", "max:density", (0.02, 0.98, 0.5)])
@pytest.mark.parametrize("weight", ["mass", "volume", None])
def test_radial_profiles_equal_numpy(cells: ambar.Amr, center: Any, weight: str | None) -> None:
    table = cells.read(NAMES, region=BALL)
    place = cells.find_center(center, region=BALL)
    radius = np.sqrt((arms(table, place) ** 2).sum(0))
    weights = table["dx"] ** 3 if weight else np.ones(len(table))
    if weight == "mass":
        weights = weights * table["density"]
    options: dict[str, Any] = {"center": center, "weight": weight, "region": BALL, "bins": 20}
    found = cells.profile("radius", ["density", "vx"], **options)
    edges = np.append(found["radius_lower"], found["radius_upper"][-1])
    assert (edges[0], edges[-1]) == (radius.min(), radius.max())
    np.testing.assert_allclose(found["radius"], (edges[1:] + edges[:-1]) / 2)
    assert found["count"].values.tolist() == np.histogram(radius, edges)[0].tolist()
    total = binned(radius, weights, edges)
    for name in ("density", "vx"):
        mean = binned(radius, weights * table[name], edges) / total
        np.testing.assert_allclose(found[name], mean.astype(float), rtol=1e-12, atol=1e-12)
        place_of = np.clip(np.searchsorted(edges, radius, "right") - 1, 0, 19)
        square = binned(radius, weights * (table[name] - mean[place_of]) ** 2, edges) / total
        deviation = cells.profile("radius", name, statistic="std", **options)[name]
        np.testing.assert_allclose(deviation**2, square.astype(float), rtol=1e-11, atol=1e-13)
    sums = cells.profile("radius", "mass", statistic="sum", **options)["mass"]
    mass = binned(radius, table["density"] * table["dx"] ** 3, edges)
    np.testing.assert_allclose(sums, mass.astype(float), rtol=1e-12)


@pytest.mark.parametrize("axis", ["z", "x", (1.0, -2.0, 0.5)])
def test_cylindrical_profiles(cells: ambar.Amr, axis: Any) -> None:
    table = cells.read(NAMES)
    vector = np.eye(3)["xyz".index(axis)] if isinstance(axis, str) else np.array(axis)
    vector = vector / np.linalg.norm(vector)
    arm = arms(table, (0.3, 0.5, 0.6))
    height = vector @ arm
    distance = np.sqrt(((arm - height * vector[:, None]) ** 2).sum(0))
    options: dict[str, Any] = {"center": (0.3, 0.5, 0.6), "axis": axis, "bins": 15}
    for name, values in (("cylindrical_radius", distance), ("cylindrical_z", height)):
        found = cells.profile(name, "density", weight=None, range=(0.01, 0.4), **options)
        edges = np.linspace(0.01, 0.4, 16)
        count = np.histogram(values, edges)[0]
        assert abs(found["count"].values - count).sum() <= 2  # of rounding at edges
        mean = np.histogram(values, edges, weights=table["density"])[0] / count
        np.testing.assert_allclose(found["density"], mean, rtol=1e-2)


def test_profiles_over_fields(cells: ambar.Amr) -> None:
    table = cells.read(NAMES)
    edges = np.geomspace(table["density"].min(), table["density"].max(), 65)
    found = cells.profile("density", "vx", weight=None)
    assert found["density"].attrs["scale"] == "log"
    np.testing.assert_allclose(found["density"], np.sqrt(edges[1:] * edges[:-1]))
    assert found["count"].values.tolist() == np.histogram(table["density"], edges)[0].tolist()
    own = cells.profile("density", "vx", bins=[0.5, 1.0, 4.0, 9.0], weight=None)
    assert own["count"].values.tolist() == (
        np.histogram(table["density"], [0.5, 1.0, 4.0, 9.0])[0].tolist()
    )
    assert own["density"].values.tolist() == [0.75, 2.5, 6.5]
    assert own["density_upper"].values.tolist() == [1.0, 4.0, 9.0]


def test_phase_diagrams(cells: ambar.Amr) -> None:
    table = cells.read(NAMES, where="pressure > 0")
    mass = table["density"] * table["dx"] ** 3
    options: dict[str, Any] = {"bins": (12, [1e-3, 0.1, 1.0, 20.0]), "where": "pressure > 0"}
    found = cells.phase("density", "pressure", **options)
    assert (found.dims, found.shape) == (("pressure", "density"), (3, 12))
    edges = [np.append(found[f"{n}_lower"], found[f"{n}_upper"][-1]) for n in found.dims[::-1]]
    expected = np.histogram2d(table["density"], table["pressure"], edges, weights=mass)[0]
    np.testing.assert_allclose(found.T, expected, rtol=1e-11)
    mean = cells.phase("density", "pressure", field="vx", weight="mass", **options)
    moving = np.histogram2d(table["density"], table["pressure"], edges, weights=mass * table["vx"])[
        0
    ]
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(mean.T, moving / expected, rtol=1e-9, atol=1e-11)
    whole = cells.phase("radius", "density", center="max:density")
    np.testing.assert_allclose(whole.sum(), cells.sum("mass"), rtol=1e-12)


def test_histograms(cells: ambar.Amr) -> None:
    table = cells.read(NAMES)
    volume = table["dx"] ** 3
    for weight, weights in (("auto", volume), (None, None), ("mass", table["density"] * volume)):
        found = cells.histogram("vx", weight=weight, bins=30, range=(-1, 1.5))
        expected = np.histogram(table["vx"], 30, (-1, 1.5), weights=weights)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    density = cells.histogram("rho", density=True, bins=30)
    width = density["rho_upper"] - density["rho_lower"]
    assert float((density * width).sum()) == pytest.approx(1, rel=1e-12)
    assert (density["rho"].attrs["scale"], density.attrs["weight"]) == ("log", "volume")


def test_units_of_profiles(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["sedov"]).amr
    factor = amr.info.units.length("kpc")
    units = {"radius": "kpc", "density": "nH"}
    half = 0.4 * factor
    found = amr.profile("radius", "density", units=units, range=(0, half), bins=8)
    code = amr.profile("radius", "density", range=(0, 0.4), bins=8)
    np.testing.assert_allclose(found["radius"], code["radius"] * factor)
    expected = code["density"] * amr.info.units.density("nH")
    np.testing.assert_allclose(found["density"].values, expected.values)
    assert [found[n].attrs["units"] for n in ("radius", "density")] == ["kpc", "1/cm**3"]
    mass = amr.histogram("density", weight="mass", units={"mass": "Msol"})
    assert mass.attrs["units"] == "Msun"
    same = amr.profile("radius", "density", units="nH", range=(0, 0.4), bins=8)["density"]
    np.testing.assert_allclose(same.values, expected.values)
    assert (same.attrs["units"], same.attrs["weight"]) == ("1/cm**3", "volume")
    assert amr.phase("radius", "density", field="mass", units="Msol").attrs["units"] == "Msun"
    assert amr.histogram("density", units="nH")["density"].attrs["units"] == "1/cm**3"
    with pytest.raises(ValueError, match="invalid key 'mass' of units"):
        amr.profile("radius", "density", units={"mass": "g"})
    assert float(mass.sum()) == pytest.approx(amr.sum("mass", unit="Msol"))


def test_particles_have_profiles(gravpart: ambar.Snapshot) -> None:
    rows = gravpart.particles
    table = rows.read(["x", "y", "z", "mass", "vx"])
    radius = np.sqrt((arms(table, (0.5, 0.5, 0.5)) ** 2).sum(0))
    found = rows.profile("radius", ["mass"], statistic="sum", bins=10, range=(0, 0.5))
    expected = np.histogram(radius, 10, (0, 0.5), weights=table["mass"])[0]
    np.testing.assert_allclose(found["mass"], expected, rtol=1e-12)
    assert rows.histogram("vx").attrs["units"] == "count"
    assert int(rows.histogram("vx").sum()) == len(rows)
    assert float(rows.phase("x", "vx").sum()) == pytest.approx(rows.sum("mass"))
    assert rows.profile("radius", "vx", center="com").attrs["weight"] == "mass"


@pytest.mark.parametrize(("is_log", "bins"), [*itertools.product([False, True], [1, 7, 1000])])
def test_bins_are_those_of_numpy(is_log: bool, bins: int) -> None:
    rng = np.random.default_rng(1)
    edges = np.geomspace(0.3, 70.0, bins + 1) if is_log else np.linspace(0.3, 70.0, bins + 1)
    values = np.concatenate([rng.uniform(-1, 90, 5000), edges, np.nextafter(edges, 0)])
    values = np.concatenate([values, [np.nan, np.inf, -np.inf, 0.0]])
    found = Binning([(edges, is_log)]).index([values])
    finite = values[np.isfinite(values)]
    expected = np.histogram(finite, edges)[0]
    assert np.bincount(found, minlength=bins + 1)[:bins].tolist() == expected.tolist()


def test_refusals(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    median: Any = "median"
    for call, text in (
        (lambda: amr.profile("radius", "rho", bins=0), "invalid number of bins: 0"),
        (lambda: amr.profile("radius", "rho", range=(1, 0)), "invalid range"),
        (lambda: amr.profile("radius", "rho", range=(0, 1), log=True), "expected low > 0"),
        (lambda: amr.profile("radius", "rho", bins=[1.0, 0.5]), "invalid edges of bins"),
        (lambda: amr.profile("radius", "rho", statistic=median), "invalid statistic 'median'"),
        (lambda: amr.profile("rho", "rho"), "expected fields other than 'rho'"),
        (lambda: amr.phase("rho", "rho"), "expected two different columns"),
        (lambda: amr.profile("cylindrical_z", "rho", axis="w"), "invalid axis: 'w'"),
        (lambda: amr.profile("cylindrical_z", "rho", axis=(0, 0, 0)), "not all 0"),
        (lambda: amr.profile("radius", "rho", center=(1, 2)), "expected a center of 3 numbers"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    with pytest.raises(KeyError, match="did you mean"):
        amr.profile("radius", "densty")
    with pytest.raises(ambar.LimitError, match="choose fewer bins"):
        amr.phase("density", "pressure", bins=(10**6, 10**6))
    with pytest.raises(ambar.LimitError, match="choose fewer bins"):
        amr.histogram("density", bins=10**12)


def test_empty_bins_and_selections(gravpart: ambar.Snapshot) -> None:
    empty = gravpart.amr.profile("rho", "vx", where="rho > 1e30", bins=4)
    assert np.isnan(empty["vx"]).all()
    assert int(empty["count"].sum()) == 0
    found = gravpart.amr.histogram("level", bins=3, weight=None)
    assert int(found.sum()) == len(gravpart.amr)
    one = gravpart.amr.histogram("level", bins=3, where="level == 5")
    assert float(one.sum()) > 0


def test_yt_agrees(gravpart: ambar.Snapshot) -> None:
    yt = pytest.importorskip("yt")
    yt.set_log_level(40)
    dataset = yt.load(str(output("gravpart") / "info_00002.txt"))
    ball = dataset.sphere(dataset.arr(BALL.center, "code_length"), (BALL.radius, "code_length"))
    amr = gravpart.amr
    radius = ("index", "radius")
    theirs = yt.create_profile(
        ball,
        radius,
        [("gas", "density"), ("gas", "velocity_x")],
        weight_field=("gas", "cell_mass"),
        n_bins=16,
        extrema={radius: ((0.05, "code_length"), (0.25, "code_length"))},
        logs={radius: False},
    )
    options: dict[str, Any] = {"weight": "mass", "center": "region", "region": BALL}
    options |= {"bins": 16, "range": (0.05, 0.25)}
    ours = amr.profile("radius", ["density", "velocity_x"], **options)
    np.testing.assert_allclose(theirs.x.to("code_length").d, ours["radius"], rtol=1e-12)
    for name, unit in (("density", "code_density"), ("velocity_x", "code_velocity")):
        expected = theirs["gas", name].to(unit).d
        np.testing.assert_allclose(ours[name], expected, rtol=1e-9)
        deviation = theirs.standard_deviation["gas", name].to(unit).d
        spread = amr.profile("radius", name, statistic="std", **options)
        np.testing.assert_allclose(spread[name], deviation, rtol=1e-9)
    diagram = yt.create_profile(
        ball,
        [("gas", "density"), ("gas", "velocity_x")],
        ("gas", "cell_mass"),
        weight_field=None,
        n_bins=[10, 12],
        extrema={
            ("gas", "density"): ((0.1, "code_density"), (30, "code_density")),
            ("gas", "velocity_x"): ((-2, "code_velocity"), (2, "code_velocity")),
        },
        logs={("gas", "density"): True, ("gas", "velocity_x"): False},
    )
    own = amr.phase(
        "density",
        "velocity_x",
        bins=(10, 12),
        range=((0.1, 30), (-2, 2)),
        log=(True, False),
        region=BALL,
    )
    expected = diagram["gas", "cell_mass"].to("code_mass").d
    np.testing.assert_allclose(own.T, expected, rtol=1e-9, atol=1e-15)
