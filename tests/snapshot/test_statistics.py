"""Statistics of cells and particles, compared with NumPy on the whole table and with yt."""

from __future__ import annotations

import itertools
import math
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.snapshot.analysis import batches, profiles, quantiles
from ambar.snapshot.analysis.moments import CompensatedSum
from tests.helpers.paths import RAMSES_CASES
from tests.helpers.sample_outputs import amrex_sample, output

BALL = ambar.Sphere((0.4, 0.5, 0.55), 0.3)
EDGE = ambar.Sphere((0.02, 0.5, 0.97), 0.2)
"""Across periodic faces."""
TOLERANCE = 1e-12
LONG = np.longdouble


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read a chunk at a time, in blocks of 500 rows."""
    monkeypatch.setattr(batches, "BATCH_BYTES", 1)
    monkeypatch.setattr(batches.each_block, "__defaults__", (500,))


@pytest.fixture(params=["whole", "blocks"])
def cells(request: pytest.FixtureRequest, gravpart: ambar.Snapshot) -> ambar.Amr:
    if request.param == "blocks":
        request.getfixturevalue("small_batches")
    return gravpart.amr


def mass_of(table: ambar.Table) -> np.ndarray:
    return np.asarray(table["density"].astype(LONG) * table["dx"].astype(LONG) ** 3)


def vectors(table: ambar.Table, *names: str) -> np.ndarray:
    return np.stack([table[name].astype(LONG) for name in names])


def close(found: Any, expected: Any, scale: float | None = None) -> None:
    """Assert agreement to 1e-12 of the values, or of a scale where these cancel."""
    expected = np.asarray(expected, np.float64)
    limit = TOLERANCE * (np.abs(expected).max() if scale is None else scale)
    np.testing.assert_allclose(found, expected, rtol=TOLERANCE, atol=limit)


@pytest.mark.parametrize("region", [None, BALL, EDGE], ids=["all", "ball", "edge"])
@pytest.mark.parametrize("weight", ["auto", "mass", None, "pressure"])
def test_statistics_equal_numpy(
    cells: ambar.Amr, region: ambar.Sphere | None, weight: str | None
) -> None:
    table = cells.read(["density", "vx", "pressure", "dx"], region=region)
    found = cells.statistics(["rho", "vx"], weight=weight, region=region)
    weights = {
        "auto": table["dx"].astype(LONG) ** 3,
        "mass": mass_of(table),
        None: np.ones(len(table), LONG),
        "pressure": table["pressure"].astype(LONG),
    }[weight]
    for name in ("rho", "vx"):
        values = table["density" if name == "rho" else name].astype(LONG)
        magnitude = float(np.abs(values).sum())
        mean = (values * weights).sum() / weights.sum()
        variance = (weights * (values - mean) ** 2).sum() / weights.sum()
        entry = found[name]
        close(entry.mean, mean, float((abs(values * weights)).sum() / abs(weights.sum())))
        close(entry.std, np.sqrt(variance))
        close(entry.sum, values.sum(), magnitude)
        assert (entry.min, entry.max) == (values.min(), values.max())
        assert entry.count == len(table)
        options: dict[str, Any] = {"region": region}
        assert cells.sum(name, **options) == pytest.approx(entry.sum, rel=TOLERANCE)
        assert cells.mean(name, weight=weight, **options) == pytest.approx(entry.mean, rel=1e-11)
        assert cells.std(name, weight=weight, **options) == entry.std
        assert (cells.min(name, **options), cells.max(name, **options)) == (entry.min, entry.max)
    close(found.weight_sum, weights.sum())


def test_selections_are_those_of_read(cells: ambar.Amr) -> None:
    options: dict[str, Any] = {"levels": (5, 6), "where": "rho > 1.5", "region": BALL}
    table = cells.read(["rho", "level"], **options)
    assert cells.statistics("rho", **options)["rho"].count == len(table)
    close(cells.mean("rho", weight=None, **options), table["rho"].mean())


def test_extrema_have_positions(cells: ambar.Amr) -> None:
    table = cells.read(["density", "potential", "x", "y", "z"], region=BALL)
    for found, column, row in (
        (cells.argmax("rho", region=BALL), "density", np.argmax(table["density"])),
        (cells.argmin("potential", region=BALL), "potential", np.argmin(table["potential"])),
    ):
        assert found.value == table[column][row]
        assert found.position == tuple(table[axis][row] for axis in "xyz")
        assert (cells.find_center(found.position) == found.position).all()
    with pytest.raises(ValueError, match="found no rows in the selection; choose"):
        cells.argmax("rho", where="rho > 1e30")


@pytest.mark.parametrize("collected", [1 << 20, 1000, 10])
def test_quantiles_are_exact(
    cells: ambar.Amr, monkeypatch: pytest.MonkeyPatch, collected: int
) -> None:
    monkeypatch.setattr(quantiles, "_COLLECTED_ROWS", collected)
    table = cells.read(["rho", "vx", "level", "dx"])
    levels = [0.0, 0.001, 0.25, 0.5, 0.9, 0.999, 1.0]
    for name in ("rho", "vx", "level"):
        method: Any = {"method": "inverted_cdf"}
        found = cells.quantile(name, levels, weight=None)
        assert found.tolist() == np.quantile(table[name], levels, **method).tolist()
        weighted = np.quantile(table[name], levels, weights=table["dx"] ** 3, **method)
        assert cells.quantile(name, levels).tolist() == weighted.tolist()
    assert isinstance(cells.quantile("rho", 0.5), float)
    with pytest.raises(ValueError, match="invalid quantile: 1.5"):
        cells.quantile("rho", 1.5)


def test_values_are_ordered_by_their_keys() -> None:
    values = np.sort([-np.inf, -1.5, -0.0, 0.0, 5e-324, 2.0, np.inf, -7.0])
    keys = [int(key) for key in quantiles._keys(values)]
    assert keys == sorted(keys)
    assert [quantiles._value(key) for key in keys] == values.tolist()
    assert int(quantiles._keys(np.array([-np.nan]))[0]) > keys[-1]


def test_masses_and_vectors_equal_numpy(cells: ambar.Amr) -> None:
    names = ["density", "dx", "x", "y", "z", "vx", "vy", "vz"]
    table = cells.read(names, region=BALL)
    mass = mass_of(table)
    place, velocity = vectors(table, "x", "y", "z"), vectors(table, "vx", "vy", "vz")
    bulk = (mass * velocity).sum(1) / mass.sum()
    speed = float(np.abs(velocity).max())
    close(cells.sum("mass", region=BALL), mass.sum())
    close(cells.center_of_mass(region=BALL), (mass * place).sum(1) / mass.sum())
    close(cells.bulk_velocity(region=BALL), bulk, speed)
    moving = velocity - bulk[:, None]
    tensor = (mass * moving[:, None] * moving[None]).sum(2) / mass.sum()
    close(cells.velocity_dispersion(region=BALL), tensor)
    arm = place - np.array(BALL.center, LONG)[:, None]
    for given, flow in ((None, velocity), ("bulk", moving), (bulk.astype(float), moving)):
        momentum = np.cross(arm.T, flow.T).T
        scale = float(np.abs(mass * momentum).sum())
        total = (mass * momentum).sum(1)
        options: dict[str, Any] = {"region": BALL, "velocity": given, "center": "region"}
        close(cells.angular_momentum(**options), total, scale)
        close(
            cells.angular_momentum(specific=True, **options),
            total / mass.sum(),
            scale / float(mass.sum()),
        )


def test_positions_wrap_in_periodic_boxes(gravpart: ambar.Snapshot) -> None:
    table = gravpart.amr.read(["density", "dx", "x", "y", "z"], region=EDGE)
    mass = mass_of(table)
    arm = vectors(table, "x", "y", "z") - np.array(EDGE.center, LONG)[:, None]
    arm -= np.rint(arm)
    expected = (np.array(EDGE.center) + (mass * arm).sum(1) / mass.sum()) % 1.0
    close(gravpart.amr.center_of_mass(region=EDGE), expected)
    box = ambar.Box((0.8, 0.4, 0.4), (1.2, 0.6, 0.6))
    assert abs((gravpart.amr.center_of_mass(weight="volume", region=box) + 0.5) % 1 - 0.5)[0] < 0.1


def test_particles(gravpart: ambar.Snapshot) -> None:
    rows = gravpart.particles
    table = rows.read(["mass", "x", "y", "z", "vx", "vy", "vz"], where="vx > 0")
    mass, options = table["mass"].astype(LONG), dict[str, Any](where="vx > 0")
    velocity = vectors(table, "vx", "vy", "vz")
    found = rows.statistics(["mass", "vx"], **options)
    assert found.weight is None
    close(found["mass"].sum, mass.sum())
    close(found["vx"].mean, table["vx"].mean())
    close(rows.bulk_velocity(**options), (mass * velocity).sum(1) / mass.sum())
    close(rows.velocity_dispersion(**options), np.cov(velocity, aweights=mass, bias=True), 1.0)
    assert rows.argmax("vx").value == table["vx"].max()
    with pytest.raises(ValueError, match=r"levels=\(1, 2\) does not apply to particles"):
        rows.sum("mass", levels=(1, 2))


def test_results_do_not_depend_on_threads(
    gravpart: ambar.Snapshot,
    small_batches: None,  # noqa: ARG001
) -> None:
    amr = gravpart.amr
    results = []
    for threads in (1, 2, 7, None):
        found = amr.statistics(["rho", "vx"], threads=threads)
        results.append(
            (
                *itertools.chain.from_iterable(vars(entry).values() for entry in found.values()),
                *amr.center_of_mass(threads=threads),
                *amr.velocity_dispersion(threads=threads).ravel(),
                *amr.quantile("rho", [0.1, 0.9], threads=threads),
                *amr.profile("radius", "rho", threads=threads)["rho"].values,
            )
        )
    first = np.array(results[0])
    for other in results[1:]:
        np.testing.assert_array_equal(first, other)


def test_empty_selections(gravpart: ambar.Snapshot) -> None:
    amr, nothing = gravpart.amr, "rho > 1e30"
    found = amr.statistics("rho", where=nothing)["rho"]
    assert (found.count, found.sum) == (0, 0)
    assert all(map(math.isnan, (found.mean, found.std, found.min, found.max)))
    assert math.isnan(amr.quantile("rho", 0.5, where=nothing))
    assert np.isnan(amr.center_of_mass(where=nothing)).all()
    assert np.isnan(amr.velocity_dispersion(where=nothing)).all()
    assert np.isnan(amr.angular_momentum(velocity="bulk", where=nothing)).all()
    with pytest.raises(ValueError, match=r"invalid velocity of the frame: \(nan, 0.0, 0.0\)"):
        amr.angular_momentum(velocity=(np.nan, 0, 0))
    with pytest.raises(ValueError, match="no mass in the selection"):
        amr.find_center("com", where=nothing)
    assert amr.sum("mass", where=nothing) == 0
    assert np.isnan(amr.min("rho", where=nothing))


def test_units(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["sedov"]).amr
    units = amr.info.units
    assert amr.sum("mass", unit="Msol") == pytest.approx(amr.sum("mass") * units.mass("Msol"))
    assert amr.mean("rho", unit="nH") == pytest.approx(amr.mean("rho") * units.density("nH"))
    found = amr.statistics(["rho", "p"], units={"rho": "g/cm3"})
    assert found["rho"].max == pytest.approx(amr.max("rho", unit="g/cm3"))
    assert found["p"].max == amr.max("p")
    close(amr.bulk_velocity(unit="km/s"), amr.bulk_velocity() * units.velocity("km/s"))
    square = units.velocity("km/s") ** 2
    close(amr.velocity_dispersion(unit="km/s"), amr.velocity_dispersion() * square)
    spin = amr.angular_momentum(center=(0.1, 0.2, 0.3), unit="Msol*kpc*km/s")
    factor = units.mass("Msol") * units.length("kpc") * units.velocity("km/s")
    close(spin, amr.angular_momentum(center=(0.1, 0.2, 0.3)) * factor)
    with pytest.raises(ValueError, match="'km/s' is not a unit of angular_momentum_x"):
        amr.angular_momentum(unit="km/s")
    with pytest.raises(ValueError, match="is not a unit of density"):
        amr.mean("rho", unit="km")


def test_centers(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    assert amr.find_center("bc").tolist() == [0.5, 0.5, 0.5]
    assert tuple(amr.find_center("max:rho", unit="code")) == amr.argmax("rho").position
    close(amr.find_center("com", unit="code"), amr.center_of_mass())
    for wrong, text in (
        ("middle", "invalid center 'middle'"),
        ("sink:one", "invalid number of a sink"),
    ):
        with pytest.raises(ValueError, match=text):
            amr.find_center(wrong)
    with pytest.raises(KeyError, match="no sinks"):
        amr.find_center("sink:1")


def test_regions_are_not_centers_by_default(gravpart: ambar.Snapshot) -> None:
    amr, around = gravpart.amr, gravpart.amr.about((0.3, 0.5, 0.5))
    close(amr.angular_momentum(region=BALL), amr.angular_momentum(center="bc", region=BALL))
    for rows in (amr, around):
        inside: dict[str, Any] = {"region": BALL, "where": "radius < 0.2"}
        found = rows.profile("level", "radius", statistic="sum", **inside)["radius"]
        assert float(found.sum()) == pytest.approx(rows.sum("radius", **inside))
    assert amr.find_center("region", region=BALL).tolist() == pytest.approx(BALL.center)
    for region in (None, ~BALL, BALL | EDGE):
        with pytest.raises(ValueError, match="expected a region with a center"):
            amr.angular_momentum(center="region", region=region)


def test_about_finds_centers(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    for center in ("max:density", "com"):
        view = amr.about(center)
        assert view.min("radius") == amr.about(amr.find_center(center)).min("radius")
    assert amr.about("max:density").min("radius") == 0
    with pytest.raises(ValueError, match="invalid center 'middle'"):
        amr.about("middle")
    sinks = ambar.open_snapshot(RAMSES_CASES / "sinks_clumps_3d" / "output_00002").sinks
    assert sinks.about("sink:1").min("radius") == 0


def test_about_the_bulk_velocity(gravpart: ambar.Snapshot) -> None:
    for rows in (gravpart.amr, gravpart.particles):
        view = rows.about(velocity="bulk")
        expected = rows.about(velocity=rows.bulk_velocity().tolist())
        assert view.sum("kinetic_energy") == expected.sum("kinetic_energy")
        assert view.sum("kinetic_energy") < rows.sum("kinetic_energy")
    with pytest.raises(ValueError, match="invalid velocity 'mean'; expected 'bulk' or numbers"):
        gravpart.amr.about(velocity="mean")


def test_particles_find_the_centers_of_cells(gravpart: ambar.Snapshot) -> None:
    particles, peak = gravpart.particles, gravpart.amr.find_center("max:density")
    close(particles.find_center("max:density"), peak)
    found = particles.profile("radius", "mass", center="max:density", statistic="sum", bins=4)
    expected = particles.profile("radius", "mass", center=peak, statistic="sum", bins=4)
    np.testing.assert_array_equal(found["mass"], expected["mass"])
    inside = particles.find_center("max:density", region=BALL)
    close(inside, gravpart.amr.find_center("max:density", region=BALL))
    heaviest = particles.find_center("max:mass")
    assert tuple(heaviest) == particles.argmax("mass").position
    alone = gravpart.load("particles").particles
    with pytest.raises(KeyError, match="has no cells for this center.* or a field of the particle"):
        alone.find_center("max:density")


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("mean", {"center": "bc"}, "'center'; radii and angles refer to the frame of about"),
        ("mean", {"units": "g/cm3"}, "'units'; did you mean 'unit'?"),
        ("statistics", {"unit": "g/cm3"}, "'unit'; did you mean 'units'?"),
        ("sum", {"weight": "mass"}, "'weight'; arguments: field, unit, region, cut, levels"),
        ("map", {"size": 3}, "'size'; arguments: fields, axis, up"),
    ],
)
def test_unknown_arguments_say_what_to_do(
    method: str, options: dict[str, Any], message: str, gravpart: ambar.Snapshot
) -> None:
    with pytest.raises(TypeError, match=re.escape(message)):
        getattr(gravpart.amr, method)("density", **options)


def test_positions_have_one_default_unit() -> None:
    amr = ambar.open_snapshot(amrex_sample("nyx64_plt00040")).amr
    side, lower = amr.info.boxlen, np.array(amr.info.lower)
    assert side != 1
    peak = amr.argmax("density")
    assert peak.position == tuple(amr.find_center("max:density"))
    code = amr.argmax("density", length_unit="code").position
    np.testing.assert_allclose(code, lower + side * np.array(peak.position))
    center = amr.center_of_mass(weight="density")
    expected = lower + side * center
    np.testing.assert_allclose(amr.center_of_mass(weight="density", unit="code"), expected)


def test_units_are_those_of_requested_fields(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["sedov"]).amr
    expected = amr.max("rho", unit="nH")
    for fields, units in (("rho", "nH"), (["rho", "p"], {"density": "nH"})):
        assert amr.statistics(fields, units=units)["rho"].max == pytest.approx(expected)
    with pytest.raises(ValueError, match="invalid key 'mass' of units; expected one of rho, p"):
        amr.statistics(["rho", "p"], units={"mass": "g"})
    with pytest.raises(ValueError, match="for 2 fields"):
        amr.statistics(["rho", "p"], units="nH")
    with pytest.raises(ValueError, match="at least one field"):
        amr.statistics([])


@pytest.mark.parametrize("threads", [-1, 0, 10**10])
def test_numbers_of_threads(gravpart: ambar.Snapshot, threads: int) -> None:
    with pytest.raises(ValueError, match="invalid number of threads"):
        gravpart.amr.sum("mass", threads=threads)


@pytest.mark.parametrize("collected", [1 << 20, 10])
def test_quantiles_of_invalid_weights(
    gravpart: ambar.Snapshot, monkeypatch: pytest.MonkeyPatch, collected: int
) -> None:
    monkeypatch.setattr(quantiles, "_COLLECTED_ROWS", collected)
    assert math.isnan(gravpart.amr.quantile("rho", 0.5, weight="sqrt(vx)"))


def test_centers_of_sinks_and_clumps() -> None:
    snapshot = ambar.open_snapshot(RAMSES_CASES / "sinks_clumps_3d" / "output_00002")
    sinks, clumps = snapshot.sinks.read(), snapshot.clumps.read()
    for center, rows, names in (
        (f"sink:{sinks['id'][0]}", sinks, ("x", "y", "z")),
        (f"clump:{clumps['id'][0]}", clumps, ("peak_x", "peak_y", "peak_z")),
    ):
        place = snapshot.amr.find_center(center, unit="code")
        assert place.tolist() == [rows[name][0] for name in names]
        spin = snapshot.amr.angular_momentum(center=center)
        close(spin, snapshot.amr.angular_momentum(center=place, length_unit="code"))
    assert snapshot.sinks.sum("mass") == sinks["msink"].sum()
    with pytest.raises(KeyError, match="no sink 99; available: 1"):
        snapshot.amr.find_center("sink:99")


def test_two_dimensions() -> None:
    amr = ambar.open_snapshot(RAMSES_CASES / "coarse_2x3_2d" / "output_00002").amr
    table = amr.read(["rho", "dx", "x", "y"])
    mass = table["rho"] * table["dx"] ** 2
    close(amr.sum("mass"), mass.sum())
    found = amr.center_of_mass()
    assert found.shape == (2,)
    with pytest.raises(ambar.UnsupportedError, match="3 dimensions"):
        amr.angular_momentum()


def test_plotfiles() -> None:
    nyx = ambar.open_snapshot(amrex_sample("nyx64_plt00040"))
    table = nyx.amr.read(["density", "dx"])
    close(nyx.amr.sum("mass"), (table["density"] * table["dx"] ** 3).sum())
    dark = nyx.particles.read(["mass", "xvel"])
    expected = (dark["mass"] * dark["xvel"]).sum() / dark["mass"].sum()
    assert nyx.particles.bulk_velocity()[0] == pytest.approx(expected, rel=1e-9)
    charge = ambar.open_snapshot(amrex_sample("lwfa_f32")).amr
    with pytest.raises(KeyError, match="mass"):
        charge.sum("mass")


def test_compensated_sums_lose_nothing() -> None:
    numbers = [1e16, 1.0, -1e16, 1e-8] * 100
    total = CompensatedSum((1,))
    for number in numbers:
        total.add(np.array([number]))
    assert total.value[0] == pytest.approx(math.fsum(numbers), rel=1e-14)
    total.add(np.array([np.inf]))
    assert total.value[0] == np.inf


class Repeated:
    """The cells of a core object, many times: a large table without large files."""

    def __init__(self, core: Any, times: int) -> None:
        self.core = core
        self.chunk_lengths = core.chunk_lengths * times

    def cells(self, *arguments: Any) -> dict[str, np.ndarray]:
        """Read one chunk; the sixth argument is its range."""
        count = len(self.core.chunk_lengths)
        start, stop = arguments[5]
        assert stop == start + 1
        chunk = (start % count, start % count + 1)
        found: dict[str, np.ndarray] = self.core.cells(*arguments[:5], chunk, *arguments[6:])
        return found

    def bounds(self, *arguments: Any) -> np.ndarray:
        """Return the bounds of the chunks."""
        count = len(self.chunk_lengths) // len(self.core.chunk_lengths)
        return np.tile(self.core.bounds(*arguments), (count, 1))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)


def test_memory_does_not_grow_with_the_table(
    gravpart: ambar.Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 1)
    monkeypatch.setattr(profiles, "_SEARCH_BYTES", 1)
    times, amr = 60, ambar.Amr(gravpart._source)
    once = amr.statistics(["density", "vx"], weight="mass")
    amr.profile("radius", "density")  # imports xarray, whose memory does not count
    size = times * len(amr) * 8 * 4
    monkeypatch.setattr(amr, "_core", Repeated(amr._core, times))
    tracemalloc.start()
    many = amr.statistics(["density", "vx"], weight="mass", threads=2)
    amr.velocity_dispersion(threads=2)
    amr.profile("radius", "density", threads=2)
    amr.quantile("density", [0.5, 0.9], threads=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < size / 4, f"{peak} bytes of {size}"
    assert many["density"].count == times * once["density"].count
    assert many["density"].mean == pytest.approx(once["density"].mean, rel=1e-13)
    assert many["vx"].std == pytest.approx(once["vx"].std, rel=1e-13)


def test_conditions_refer_to_the_frame_of_the_rows(gravpart: ambar.Snapshot) -> None:
    around = gravpart.amr.about((0.2, 0.5, 0.5))
    where, box = "radius < 0.1", ambar.Box((0, 0.2, 0.2), (1, 0.8, 0.8))
    table = around.read(["density", "dx", "x"], where=where, region=box)
    mass = mass_of(table)
    expected = (mass * table["x"]).sum() / mass.sum()
    found = around.center_of_mass(where=where, region=box)
    assert found[0] == pytest.approx(float(expected), rel=TOLERANCE)
    radii = around.profile("density", "radius", weight=None, bins=1, where=where)["radius"]
    assert float(radii[0]) < 0.1


yt = pytest.importorskip("yt")
yt.set_log_level(40)


def test_yt_agrees(gravpart: ambar.Snapshot) -> None:
    dataset = yt.load(str(output("gravpart") / "info_00002.txt"))
    ball = dataset.sphere(dataset.arr(BALL.center, "code_length"), (BALL.radius, "code_length"))
    amr = gravpart.amr
    code = {"mass": "code_mass", "density": "code_density", "velocity_x": "code_velocity"}
    low, high = ball.quantities.extrema(("gas", "density"))
    assert amr.min("density", region=BALL) == pytest.approx(float(low.to("code_density")))
    assert amr.max("density", region=BALL) == pytest.approx(float(high.to("code_density")))
    total = ball.quantities.total_quantity([("gas", "cell_mass")])
    assert amr.sum("mass", region=BALL) == pytest.approx(float(total.to(code["mass"])))
    center = ball.quantities.center_of_mass(use_gas=True, use_particles=False)
    np.testing.assert_allclose(
        amr.center_of_mass(region=BALL), center.to("code_length").d, rtol=1e-10
    )
    bulk = ball.quantities.bulk_velocity(use_gas=True, use_particles=False)
    np.testing.assert_allclose(
        amr.bulk_velocity(region=BALL), bulk.to("code_velocity").d, rtol=1e-9
    )
    spin = ball.quantities.angular_momentum_vector(use_gas=True, use_particles=False)
    found = amr.angular_momentum(center="region", region=BALL, specific=True)
    expected = spin.to("code_length*code_velocity").d
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    for weight, name in (("volume", "cell_volume"), ("mass", "cell_mass")):
        mean = ball.quantities.weighted_average_quantity(("gas", "velocity_x"), ("gas", name))
        found_mean = amr.mean("velocity_x", weight=weight, region=BALL)
        assert found_mean == pytest.approx(float(mean.to("code_velocity")), rel=1e-9)
        deviation = ball.quantities.weighted_standard_deviation(("gas", "density"), ("gas", name))
        found_std = amr.std("density", weight=weight, region=BALL)
        assert found_std == pytest.approx(float(deviation[0].to("code_density")), rel=1e-9)
    peak, *place = dataset.all_data().quantities.max_location(("gas", "density"))
    own = amr.argmax("density")
    assert own.value == pytest.approx(float(peak.to("code_density")))
    np.testing.assert_allclose(own.position, [float(x.to("code_length")) for x in place])


def test_yt_agrees_on_particles(gravpart: ambar.Snapshot) -> None:
    dataset = yt.load(str(output("gravpart") / "info_00002.txt"))
    data = dataset.all_data()
    mass, rows = data["io", "particle_mass"].to("code_mass").d, gravpart.particles
    assert rows.sum("mass") == pytest.approx(mass.sum(), rel=1e-10)
    bulk = data.quantities.bulk_velocity(use_gas=False, use_particles=True)
    np.testing.assert_allclose(rows.bulk_velocity(), bulk.to("code_velocity").d, rtol=1e-8)
    center = data.quantities.center_of_mass(use_gas=False, use_particles=True)
    np.testing.assert_allclose(rows.center_of_mass(), center.to("code_length").d, rtol=1e-10)
