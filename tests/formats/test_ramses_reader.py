"""Every kind of RAMSES output is read as what it holds, directly and through a store."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers import sample_outputs
from tests.helpers.paths import RAMSES, RAMSES_CASES
from tests.helpers.ramses_outputs import (
    PARTICLES,
    POISON,
    Columns,
    Spec,
    Truth,
    without,
    write_output,
)
from tests.helpers.ramses_outputs.variants import (
    FULL,
    SYNTHETIC,
    real_outputs,
    real_truth,
    shared_data,
)

COMPONENTS = {"hydro": "hydro", "grav": "gravity", "rt": "rt"}
FILES = {"hydro": "hydro", "gravity": "grav", "rt": "rt", "particles": "part"}


@pytest.fixture(scope="module", params=SYNTHETIC)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Truth:
    """Write a synthetic output of each kind."""
    return write_output(tmp_path_factory.mktemp(request.param), SYNTHETIC[request.param])


@pytest.fixture(params=["direct", "store"])
def way(request: pytest.FixtureRequest) -> str:
    """Return how an output is read."""
    return str(request.param)


def read(output: Path, way: str, scratch: Path) -> ambar.Snapshot:
    if way == "direct":
        return ambar.open_snapshot(output).load()
    ambar.convert(output, scratch / "x.ambar", fsync=False)
    opened = ambar.open(scratch / "x.ambar")
    assert isinstance(opened, ambar.Snapshot)
    return opened


def sorted_cells(columns: Columns) -> Columns:
    places = [columns[name] for name in ("iz", "iy", "ix") if name in columns]
    order = np.lexsort([*places, columns["level"]])
    return {name: column[order] for name, column in columns.items()}


def assert_same_bits(found: np.ndarray, true: np.ndarray, name: str) -> None:
    assert found.dtype == true.dtype, name
    unsigned = f"u{true.dtype.itemsize}"
    np.testing.assert_array_equal(found.view(unsigned), true.view(unsigned), err_msg=name)


def assert_cells(amr: ambar.Amr, true: Columns, **selection: Any) -> None:
    """Assert that `amr` has exactly the cells of `true`, in any order."""
    names = [name for name in true if name != "domain" or name in amr.fields]
    found = sorted_cells(dict(amr.read(names, **selection)))
    true = sorted_cells({name: true[name] for name in names})
    for name in names:
        if name in ("level", "ix", "iy", "iz"):
            np.testing.assert_array_equal(found[name], true[name], err_msg=name)
        else:
            assert_same_bits(found[name], true[name], name)


def assert_rows(found: Columns, true: Columns) -> None:
    """Assert that all columns are equal, in any order of rows; positions to 1e-14 of the box."""
    by_value = np.lexsort([found[name] for name in true])
    true_by_value = np.lexsort([*true.values()])
    for name, column in true.items():
        values, expected = found[name][by_value], column[true_by_value]
        if name.startswith("position") and len(expected):
            error = np.abs(values.astype(float) - expected.astype(float)).max()
            assert error <= 1e-14 * max(1.0, np.abs(expected).max()), name
        elif values.dtype == bool:
            np.testing.assert_array_equal(values, expected != 0, err_msg=name)
        else:
            assert_same_bits(values, expected, name)


def test_cells_of_every_kind_of_output(written: Truth, way: str, tmp_path: Path) -> None:
    snapshot = read(written.folder, way, tmp_path)
    if not written.fields:
        with pytest.raises(KeyError, match="hydro"):
            _ = snapshot.amr
        return
    assert_cells(snapshot.amr, written.cells())
    for kind, names in written.fields.items():
        assert tuple(snapshot.components[COMPONENTS[kind]]) == names


def test_cell_centres_of_every_kind_of_output(written: Truth) -> None:
    if not written.fields:
        pytest.skip("this kind has no cells")
    spec = written.spec
    cells = (
        ambar.open_snapshot(written.folder)
        .load()
        .amr.read(["level", "dx", *spec.axes, *(f"i{axis}" for axis in spec.axes)])
    )
    size = spec.boxlen / spec.box[0] * 0.5 ** cells["level"]
    np.testing.assert_array_equal(cells["dx"], size)
    for axis in spec.axes:
        np.testing.assert_allclose(cells[axis], (cells[f"i{axis}"] + 0.5) * size, rtol=1e-15)
    volume = (0.5 ** (spec.ndim * cells["level"].astype(float))).sum()
    assert volume == pytest.approx(np.prod(spec.box), rel=1e-12)


def test_rows_of_every_kind_of_output(written: Truth, way: str, tmp_path: Path) -> None:
    snapshot = read(written.folder, way, tmp_path)
    for kind in ("particles", "sinks", "clumps"):
        true = getattr(written, kind)
        if true is None:
            assert kind in snapshot.missing
            with pytest.raises(KeyError, match=kind.rstrip("s")):
                getattr(snapshot, kind)
            continue
        table = getattr(snapshot, kind)
        has_domains = "domain" in table.fields
        expected = {n: column for n, column in true.items() if n != "domain" or has_domains}
        if kind == "sinks" and written.spec.sinks == "bare":
            expected["age"] = expected.pop("tform")
            expected["acc_rate"] = expected.pop("acc_rate")
        if kind == "clumps":
            expected = {"id" if n == "index" else n: column for n, column in expected.items()}
        assert table.fields == [*expected]
        assert len(table) == len(next(iter(expected.values())))
        found = dict(table.read(table.fields))
        if kind == "particles":
            assert_rows(found, expected)
        else:
            for name, column in expected.items():
                np.testing.assert_array_equal(found[name], column, err_msg=name)


def test_run_information_of_every_kind_of_output(written: Truth, way: str, tmp_path: Path) -> None:
    spec, info = written.spec, read(written.folder, way, tmp_path).info
    assert isinstance(info, ambar.RamsesInfo)
    assert (info.ndim, info.ncpu, info.output) == (spec.ndim, spec.domains, spec.number)
    assert info.boxlen == pytest.approx(spec.boxlen, rel=1e-7 if spec.real == "<f4" else 1e-15)
    assert info.root[: spec.ndim] == spec.box
    assert info.ordering == spec.ordering
    assert (info.time, info.unit_d, info.H0, info.omega_m) == (0.25, 1.66e-24, 70.0, 0.3)
    assert (info.aexp, info.cosmological) == (spec.expansion, spec.cosmological)
    assert "RUN_PARAMS" in info.namelist


LEVELS = [(None, 2), ((2, 3), 3), ((3, 3), None), ((4, 9), None), ((2, 3), None), ((1, 2), 4)]


@pytest.mark.parametrize(("levels", "max_level"), LEVELS)
@pytest.mark.parametrize("kind", ["everything", "everything_2d", "walls", "box_3x2"])
def test_levels_select_leaves_of_a_tree_that_ends_at_max_level(
    kind: str, levels: tuple[int, int] | None, max_level: int | None, tmp_path: Path
) -> None:
    """Read `levels` of one output in every way.

    `levels` used to keep refined cells of the highest level in `load` and `convert`, and to
    drop them in `cells`.
    """
    truth = write_output(tmp_path, SYNTHETIC[kind])
    true = truth.cells(levels, max_level)
    if len(true["level"]) == 0:
        pytest.skip("this kind has no cells of these levels")
    direct = ambar.open_snapshot(truth.folder).load(levels=levels, max_level=max_level)
    assert_cells(direct.amr, true)
    target = tmp_path / "x.ambar"
    ambar.convert(truth.folder, target, levels=levels, max_level=max_level, fsync=False)
    assert_cells(ambar.open_snapshot(target).amr, true)
    whole = ambar.open_snapshot(truth.folder).load(max_level=max_level)
    assert_cells(whole.amr, true, levels=levels)


@pytest.mark.parametrize("output", real_outputs())
def test_levels_of_real_outputs_are_the_same_in_every_way(output: Path, tmp_path: Path) -> None:
    """As above, of real outputs, for which every pair of levels is tried."""
    opened = ambar.open_snapshot(output)
    low, high = opened.amr.levels
    for levels in [(low, low), (low, high - 1), (high, high), (low + 1, high)]:
        if levels[0] > levels[1]:
            continue
        expected = opened.amr.read(levels=levels)
        assert set(expected["level"]) <= set(range(levels[0], levels[1] + 1))
        target = tmp_path / f"{levels}.ambar"
        ambar.convert(output, target, levels=levels, fsync=False, mode="w")
        for amr in (
            ambar.open_snapshot(output).load(levels=levels).amr,
            ambar.open_snapshot(target).amr,
        ):
            found = amr.read()
            assert found.columns == expected.columns
            for name in expected:
                assert_same_bits(found[name], expected[name], name)


PERIODIC_KINDS = ["everything", "everything_1d", "everything_2d", "wall_z", "walls", "box_3x2"]


@pytest.mark.parametrize("kind", PERIODIC_KINDS)
def test_regions_reach_over_periodic_faces(kind: str, way: str, tmp_path: Path) -> None:
    """Compare regions at the box's faces with a count over all cells and particles.

    A sphere at a corner used to have an eighth of its cells.
    """
    truth = write_output(tmp_path, SYNTHETIC[kind])
    spec = truth.spec
    snapshot = read(truth.folder, way, tmp_path)
    size = np.array([spec.boxlen * cells / spec.box[0] for cells in spec.box])
    walls = [any(layers) for layers in spec.layers[: spec.ndim]]
    assert snapshot.info.periodic == tuple(not wall for wall in walls)
    period = np.where(walls, np.inf, size)
    amr = snapshot.amr
    centres = np.stack([amr.read([axis])[axis] for axis in spec.axes], axis=1)
    origin = (0.0,) * spec.ndim
    for region in (
        ambar.Sphere(origin, 0.3, "code"),
        ambar.Sphere(tuple(0.95 * size), 0.2 * spec.boxlen, "code"),
        ambar.Sphere(tuple(-0.1 * size), 0.2 * spec.boxlen, "code"),
        ambar.SphericalShell(origin, 0.1 * spec.boxlen, 0.35 * spec.boxlen, "code"),
        ambar.SphericalShell(tuple(0.5 * size), 0.2 * spec.boxlen, 0.6 * spec.boxlen, "code"),
        ambar.Box(tuple(-0.2 * size), tuple(0.1 * size), "code"),
        ambar.Box(tuple(0.7 * size), tuple(1.3 * size), "code"),
        ambar.Box((0.7 * size[0],) + (None,) * (spec.ndim - 1), (None,) * spec.ndim, "code"),
    ):
        inside = brute_force(region, centres, period)
        found = amr.read(["level", *spec.axes], region=region)
        np.testing.assert_array_equal(found["x"], centres[inside, 0], err_msg=str(region))
        np.testing.assert_array_equal(found["level"], amr.read(["level"])["level"][inside])
        if way == "direct":
            part = ambar.open_snapshot(truth.folder).load(region=region).amr.read(["x"])
            np.testing.assert_array_equal(part["x"], centres[inside, 0], err_msg=str(region))
        if truth.particles is None:
            continue
        names = [f"position_{axis}" for axis in spec.axes]
        rows = snapshot.particles.read([*names, "identity"])
        inside = brute_force(region, np.stack([rows[name] for name in names], axis=1), period)
        chosen = snapshot.particles.read(["identity"], region=region)["identity"]
        np.testing.assert_array_equal(chosen, rows["identity"][inside], err_msg=str(region))
        if way == "direct":
            part = (
                ambar.open_snapshot(truth.folder).load(region=region).particles.read(["identity"])
            )
            np.testing.assert_array_equal(part["identity"], chosen, err_msg=str(region))


def brute_force(region: ambar.Region, points: np.ndarray, period: np.ndarray) -> np.ndarray:
    """Return which points are in `region`, in code length, or in an image of it."""
    shifts = [(-side, 0.0, side) if np.isfinite(side) else (0.0,) for side in period]
    images = np.stack(np.meshgrid(*shifts, indexing="ij"), axis=-1).reshape(-1, len(period))
    if isinstance(region, ambar.Box):
        lo = np.array([-np.inf if x is None else x for x in region.lo])
        hi = np.array([np.inf if x is None else x for x in region.hi])
        # An open side ends at the face.
        closed = [
            region.lo[axis] is not None and region.hi[axis] is not None
            for axis in range(len(period))
        ]
        shown = [image for image in images if not image[[not one for one in closed]].any()]
        within = [((lo <= points + image) & (points + image < hi)).all(axis=1) for image in shown]
        return np.any(within, axis=0)
    assert isinstance(region, (ambar.Sphere, ambar.SphericalShell))
    center = np.array(region.center)
    squares = [((points + image - center) ** 2).sum(axis=1) for image in images]
    distance = np.sqrt(np.min(squares, axis=0))
    if isinstance(region, ambar.Sphere):
        return distance <= region.radius
    return (distance > region.inner) & (distance <= region.outer)


def test_a_sphere_at_a_corner_has_the_cells_yt_finds() -> None:
    yt = pytest.importorskip("yt")
    yt.set_log_level(50)
    output = RAMSES / "gravpart_small" / "output_00002"
    dataset = yt.load(str(output / "info_00002.txt"))
    theirs = dataset.sphere([0.0] * 3, (0.2, "code_length"))
    ours = ambar.open_snapshot(output)
    region = ambar.Sphere((0.0,) * 3, 0.2)
    density = ours.amr.read(["density"], region=region)["density"]
    np.testing.assert_array_equal(np.sort(density), np.sort(theirs["ramses", "Density"].d))
    mass = ours.particles.read(["mass"], region=region)["mass"]
    np.testing.assert_array_equal(np.sort(mass), np.sort(theirs["io", "particle_mass"].d))


@pytest.mark.parametrize("kind", ["amr", "hydro", "part"])
def test_big_endian_files_are_named_as_such(kind: str, tmp_path: Path) -> None:
    """Such files used to be reported as damaged or cut short."""
    truth = write_output(tmp_path, FULL)
    for path in truth.folder.glob(f"{kind}_00007.out*"):
        path.write_bytes(with_big_endian_markers(path.read_bytes()))
    message = r"big-endian one: its first record has 4 bytes"
    if kind == "amr":
        with pytest.raises(ambar.UnsupportedError, match=message):
            ambar.open_snapshot(truth.folder)
    else:
        missing = ambar.open_snapshot(truth.folder).missing
        assert "big-endian" in missing[{"hydro": "hydro", "part": "particles"}[kind]]


def with_big_endian_markers(content: bytes) -> bytes:
    """Return a file of Fortran records with the bytes of their markers swapped."""
    swapped, at = b"", 0
    while at < len(content):
        length = int.from_bytes(content[at : at + 4], "little")
        marker = length.to_bytes(4, "big")
        swapped += marker + content[at + 4 : at + 4 + length] + marker
        at += length + 8
    return swapped


REGION_KINDS = ["plain", "everything_1d", "everything_2d", "more_domains_than_octs", "quad"]
REGION_KINDS += ["overload", "planar", "angular", "bisection", "walls", "wall_below", "box_3x2"]
CORNERS = [(0.07, 0.23), (0.31, 0.82), (0.77, 0.98)]


@pytest.mark.parametrize("kind", REGION_KINDS)
def test_regions_lose_no_cell_whatever_the_ordering(kind: str, tmp_path: Path) -> None:
    truth = write_output(tmp_path, SYNTHETIC[kind])
    for low, high in CORNERS:
        assert_region(truth, (low,) * truth.spec.ndim, (high,) * truth.spec.ndim)


def test_regions_of_random_outputs_lose_no_cell(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    for number in range(40):
        spec = random_spec(rng, number)
        low, high = np.sort(rng.random((2, 3)), axis=0)
        truth = write_output(tmp_path / str(number), spec)
        assert_region(truth, tuple(low[: spec.ndim]), tuple(high[: spec.ndim]))


def assert_region(truth: Truth, low: tuple[float, ...], high: tuple[float, ...]) -> None:
    """Assert that a box, its corners in shares of the whole, has the cells of the truth."""
    spec, true = truth.spec, truth.cells()
    inside = np.ones(len(true["level"]), bool)
    sides = [spec.boxlen * cells / spec.box[0] for cells in spec.box]
    for axis, cells, start, end in zip(spec.axes, spec.box, low, high, strict=True):
        centre = (true[f"i{axis}"] + 0.5) * 0.5 ** true["level"] / cells
        inside &= (centre >= start) & (centre <= end)
    corner = tuple(share * side for share, side in zip(low, sides, strict=True))
    opposite = tuple(share * side for share, side in zip(high, sides, strict=True))
    region = ambar.Box(corner, opposite, unit="code")
    chosen = {name: column[inside] for name, column in true.items()}
    assert_cells(ambar.open_snapshot(truth.folder).load(region=region).amr, chosen)
    assert_cells(ambar.open_snapshot(truth.folder).load().amr, chosen, region=region)


def test_regions_of_bench48_lose_no_cell_and_no_particle() -> None:
    output = bench48()
    whole = ambar.open_snapshot(output).load()
    cells, rows = dict(whole.amr.read(["x", "y", "z", "density"])), dict(whole.particles.read())
    for centre, radius in [
        ((0.5, 0.5, 0.5), 0.07),
        ((0.2, 0.7, 0.4), 0.2),
        ((0.99, 0.5, 0.01), 0.3),
    ]:
        part = ambar.open_snapshot(output).load(region=ambar.Sphere(centre, radius))
        for found, true, names in (
            (part.amr.read(["density"])["density"], cells, ("x", "y", "z", "density")),
            (
                part.particles.read()["mass"],
                rows,
                ("position_x", "position_y", "position_z", "mass"),
            ),
        ):
            points = np.stack([true[name] for name in names[:3]], axis=1)
            region = ambar.Sphere(centre, radius, "code")
            inside = true[names[3]][brute_force(region, points, np.ones(3))]
            np.testing.assert_array_equal(np.sort(found), np.sort(inside))


def bench48() -> Path:
    """Return the output of 48 domains; skips the test where it is not here."""
    shared = shared_data()
    if shared is None or not (shared / "bench48").is_dir():
        pytest.skip("bench48 is not here: set AMBAR_TEST_DATA")
    return shared / "bench48" / "output_00002"


def test_ghosts_and_boundaries_never_show(tmp_path: Path) -> None:
    spec = replace(FULL, walls=((1, 1), (1, 1), (1, 1)), specials=False)
    cells = ambar.open_snapshot(write_output(tmp_path, spec).folder).load().amr.read()
    for name in cells:
        assert not (cells[name] == POISON).any(), name


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads: int, tmp_path: Path) -> None:
    truth = write_output(tmp_path, FULL)
    assert_cells(ambar.open_snapshot(truth.folder).load(threads=threads).amr, truth.cells())


def test_components_and_fields_can_be_chosen(tmp_path: Path) -> None:
    truth = write_output(tmp_path, FULL)
    chosen = ambar.open_snapshot(truth.folder).load(["hydro/density", "hydro/pressure"])
    assert chosen.components == {"hydro": ["density", "pressure"]}
    true = truth.cells()
    names = ("level", "ix", "iy", "iz", "density", "pressure")
    assert_cells(chosen.amr, {name: true[name] for name in names})
    with pytest.raises(KeyError, match="entropy"):
        ambar.open_snapshot(truth.folder).load(fields=["entropy"])
    bare = write_output(tmp_path / "bare", without(FULL, "groups"))
    with pytest.raises(KeyError, match="rt"):
        ambar.open_snapshot(bare.folder).load("rt")


@pytest.mark.campaign
def test_random_kinds_of_outputs(tmp_path: Path) -> None:
    rng = np.random.default_rng(2024)
    for number in range(300):
        spec = random_spec(rng, number)
        truth = write_output(tmp_path / str(number), spec)
        for way in ("direct", "store"):
            snapshot = read(truth.folder, way, truth.folder)
            assert_cells(snapshot.amr, truth.cells())
            if truth.particles is not None:
                columns = [name for name, _ in spec.particle_columns]
                assert_rows(
                    dict(snapshot.particles.read(columns)),
                    {name: truth.particles[name] for name in columns},
                )
        low, high = np.sort(rng.random((2, 3)), axis=0)
        assert_region(truth, tuple(low[: spec.ndim]), tuple(high[: spec.ndim]))
        levels, last = (int(rng.integers(1, 4)), int(rng.integers(4, 8))), int(rng.integers(3, 8))
        if len(truth.cells(levels, last)["level"]):
            cut = ambar.open_snapshot(truth.folder).load(levels=levels, max_level=last)
            assert_cells(cut.amr, truth.cells(levels, last))


def random_spec(rng: np.random.Generator, seed: int) -> Spec:
    """Return a kind of output put together at random."""
    ndim = int(rng.integers(1, 4))
    low = int(rng.integers(1, 4))
    walls = tuple((int(a), int(b)) for a, b in rng.integers(0, 2, (ndim, 2)))
    return Spec(
        ndim=ndim,
        domains=int(rng.integers(1, 20)),
        level_min=low,
        level_max=low + int(rng.integers(0, 7 - 2 * (ndim - 1))),
        root=tuple(int(n) for n in rng.integers(1, 4, ndim)) if rng.random() < 0.3 else (),
        walls=walls if rng.random() < 0.4 else (),
        real="<f4" if rng.random() < 0.3 else "<f8",
        ordering=str(rng.choice(["hilbert", "planar", "angular", "bisection"])),  # type: ignore[arg-type]
        quad=bool(rng.random() < 0.3),
        overload=int(rng.integers(1, 4)),
        hydro=tuple(f"field_{i}" for i in range(rng.integers(1, 9))),
        gravity=str(rng.choice(["", "plain", "density"])),  # type: ignore[arg-type]
        groups=int(rng.integers(0, 3)),
        particles=PARTICLES if rng.random() < 0.5 else (),
        particle_count=int(rng.choice([0, 1, 50, 3000])),
        folders=int(rng.integers(0, 4)),
        boxlen=float(rng.choice([1.0, 0.3, 1e5])),
        seed=seed,
    )


@pytest.mark.parametrize("kind", ["amr", "hydro", "grav", "rt", "part"])
def test_a_file_cut_short_is_an_error_that_names_it(kind: str, tmp_path: Path) -> None:
    truth = write_output(tmp_path, FULL)
    path = truth.folder / f"{kind}_00007.out00003"
    whole = path.read_bytes()
    for length in (len(whole) - 1, len(whole) // 2, 10, 0):
        path.write_bytes(whole[:length])
        with pytest.raises(ambar.CorruptError, match=path.name):
            everything(ambar.open_snapshot(truth.folder).load())


@pytest.mark.parametrize("component", ["hydro", "gravity", "rt", "particles"])
def test_the_error_for_a_missing_domain_names_the_file(component: str, tmp_path: Path) -> None:
    truth = write_output(tmp_path, FULL)
    name = f"{FILES[component]}_00007.out00002"
    (truth.folder / name).unlink()
    assert name in ambar.open_snapshot(truth.folder).load().missing[component]
    with pytest.raises(KeyError, match=name):
        ambar.open_snapshot(truth.folder).load(component)


def test_regions_of_sinks_have_the_dimensions_of_the_run(way: str, tmp_path: Path) -> None:
    """Sinks have three coordinates in all runs: a region of a 2-D run selects columns."""
    plane = write_output(tmp_path, SYNTHETIC["everything_2d"])
    assert plane.sinks is not None
    half = ambar.Box((None, None), (0.5, None), "code")
    ids = read(plane.folder, way, tmp_path).sinks.read("id", region=half)["id"]
    np.testing.assert_array_equal(ids, plane.sinks["id"][plane.sinks["x"] < 0.5])
    assert 0 < len(ids) < 5
    solid = write_output(tmp_path / "3d", FULL)
    snapshot = read(solid.folder, way, tmp_path / "3d")
    for region in (half, ambar.Sphere((0.5, 0.5), 0.5)):
        for rows in (snapshot.sinks, snapshot.clumps):
            with pytest.raises(ValueError, match=r"expected .* of 3 numbers"):
                rows.read(region=region)
        with pytest.raises(ValueError, match=r"expected .* of 3 numbers"):
            snapshot.load(region=region)


@pytest.mark.parametrize("name", ["level", "x", "domain", "potential"])
def test_fields_with_the_names_of_other_columns(name: str, way: str, tmp_path: Path) -> None:
    shutil.copytree(sample_outputs.output("gravpart"), tmp_path / "output_00002")
    descriptor = tmp_path / "output_00002" / "hydro_file_descriptor.txt"
    descriptor.write_text(descriptor.read_text().replace("pressure", name))
    renamed = read(tmp_path / "output_00002", way, tmp_path)
    original = ambar.open_snapshot(sample_outputs.output("gravpart"))
    assert f"{name}_field" in renamed.components["hydro"]
    places = ["level", "ix", "iy", "iz"]
    found = renamed.amr.read([*places, f"{name}_field", "potential"])
    expected = original.amr.read([*places, "pressure", "potential"])
    order, true = (sample_outputs.by_place(rows) for rows in (found, expected))
    for column, same in ((f"{name}_field", "pressure"), ("potential", "potential")):
        np.testing.assert_array_equal(found[column][order], expected[same][true])


def test_an_output_of_a_tree_alone_is_not_converted(tmp_path: Path) -> None:
    shutil.copytree(sample_outputs.output("sedov"), tmp_path / "output_00002")
    for pattern in ("hydro*", "namelist.txt"):
        for file in (tmp_path / "output_00002").glob(pattern):
            file.unlink()
    with pytest.raises(KeyError, match="output_00002: expected hydro, .* found only the tree"):
        ambar.convert(tmp_path / "output_00002", tmp_path / "x.ambar")
    assert not (tmp_path / "x.ambar").exists()


def test_an_output_that_lacks_a_tree_is_an_error(tmp_path: Path) -> None:
    truth = write_output(tmp_path, FULL)
    for lacking, first in (("amr_00007.out00002", 2), ("amr_*", 1)):
        for file in truth.folder.glob(lacking):
            file.unlink()
        with pytest.raises(FileNotFoundError, match="copy the output again") as found:
            everything(ambar.open_snapshot(truth.folder).load())
        assert found.value.filename == str(truth.folder / f"amr_00007.out{first:05d}")


def everything(snapshot: ambar.Snapshot) -> None:
    snapshot.amr.read()
    snapshot.particles.read()


@pytest.mark.parametrize("output", real_outputs())
def test_real_outputs_equal_their_truth(output: Path, way: str, tmp_path: Path) -> None:
    snapshot = read(output, way, tmp_path)
    assert_cells(snapshot.amr, real_truth(output, "leaf"))
    if particles := real_truth(output, "part"):
        stored = snapshot.particles
        if "domain" not in stored.fields:
            particles.pop("domain", None)
        assert set(particles) == set(stored.fields) - ({"domain"} - set(particles))
        assert_rows(dict(stored.read([*particles])), particles)


def test_real_sinks_and_clumps(way: str, tmp_path: Path) -> None:
    output = RAMSES_CASES / "sinks_clumps_3d" / "output_00002"
    snapshot = read(output, way, tmp_path)
    written = np.genfromtxt(output / "sink_00002.csv", delimiter=",", names=True, skip_header=0)
    sinks = snapshot.sinks.read()
    assert len(sinks) == np.atleast_1d(written).size
    np.testing.assert_array_equal(sinks["msink"], np.atleast_1d(written["msink"]))
    np.testing.assert_array_equal(sinks["level"], np.atleast_1d(written["level"]))
    files = sorted(output.glob("clump_00002.txt*"))
    lines = [line for path in files for line in path.read_text().splitlines()[1:]]
    mass = [float(line.split()[11]) for line in lines]
    clumps = snapshot.clumps.read()
    np.testing.assert_array_equal(clumps["mass_cl"], mass)
    np.testing.assert_array_equal(clumps["ncell"], [int(line.split()[4]) for line in lines])


YT_KINDS = ["plain", "more_domains_than_octs", "bisection", "overload", "quad", "walls", "v0"]


@pytest.mark.parametrize("kind", YT_KINDS)
def test_synthetic_outputs_equal_what_yt_reads(kind: str, tmp_path: Path) -> None:
    # Older versions of yt expect the header of an output with Hilbert ordering.
    pytest.importorskip("yt", minversion="4.4.3" if kind == "bisection" else None)
    spec = replace(SYNTHETIC[kind], specials=False, particles=PARTICLES)
    folder = write_output(tmp_path, spec).folder
    assert_like_yt(folder, ambar.open_snapshot(folder).load())


def test_bench48_equals_what_yt_reads() -> None:
    output = bench48()
    assert_like_yt(output, ambar.open_snapshot(output).load())


def assert_like_yt(output: Path, snapshot: ambar.Snapshot) -> None:
    yt = pytest.importorskip("yt")
    yt.set_log_level(50)
    dataset = yt.load(str(next(output.glob("info_?????.txt"))))
    data = dataset.all_data()
    width = float(dataset.domain_width[0].to("code_length").d)
    cells = sorted_cells(dict(snapshot.amr.read(["level", "ix", "iy", "iz", "density"])))
    level = np.rint(np.log2(width / data["index", "dx"].to("code_length").d)).astype(int)
    theirs: Columns = {"level": level, "density": data["ramses", "Density"].d}
    for axis in "xyz":
        place = data["index", axis].to("code_length").d / width * 2.0**level
        theirs[f"i{axis}"] = np.floor(place).astype(int)
    for name, column in sorted_cells(theirs).items():
        np.testing.assert_array_equal(cells[name], column, err_msg=name)
    if "particles" in snapshot.components:
        mass = data["io", "particle_mass"].d
        np.testing.assert_array_equal(np.sort(snapshot.particles.read()["mass"]), np.sort(mass))


@pytest.mark.parametrize("kind", ["plain", "everything", "everything_2d", "planar"])
def test_synthetic_outputs_equal_what_osyris_reads(kind: str, tmp_path: Path) -> None:
    osyris = pytest.importorskip("osyris")
    spec: Spec = replace(SYNTHETIC[kind], specials=False)
    output = write_output(tmp_path, spec).folder
    mesh = osyris.RamsesDataset(spec.number, path=str(output.parent)).load()["mesh"]
    snapshot = ambar.open_snapshot(output).load()
    cells = snapshot.amr.read(["level", "density"])
    np.testing.assert_array_equal(np.sort(mesh["level"].values), np.sort(cells["level"]))
    assert isinstance(snapshot.info, ambar.RamsesInfo)
    ours = np.sort(cells["density"]) * snapshot.info.unit_d
    np.testing.assert_allclose(np.sort(mesh["density"].values), ours, rtol=1e-14)
