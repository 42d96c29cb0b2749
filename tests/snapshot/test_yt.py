"""Snapshots as yt datasets: equal to what yt reads from the files of RAMSES and AMReX itself."""

from __future__ import annotations

import gc
import pickle
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.paths import RAMSES, outside_data
from tests.helpers.ramses_outputs import Spec, write_output
from tests.helpers.ramses_outputs.variants import MHD, SYNTHETIC
from tests.helpers.sample_outputs import amrex_sample

yt = pytest.importorskip("yt")
yt.set_log_level(40)

from ambar.snapshot.amr import Amr  # noqa: E402
from ambar.snapshot.interop.yt import frontend, octs  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")

CASES = ["sedov3d_small", "gravpart_small", "mhd_small", "rt_small"]
# Fields that need an axis or a radius, and numbers of octs, whose order is ours.
NOT_COMPARED = {
    "grid_indices",
    "magnetic_field_los",
    "shear_mach",
    "velocity_los",
    "virial_radius_fraction",
}
# Of all but gradients, yt takes the size of the first cell for all cells (yt 4.4).
NEIGHBOURS = ("averaged", "divergence", "gradient", "shear", "vorticity")


class Rechunked:
    """Cells whose chunks are said to be shorter, so that small samples have many domains."""

    def __init__(self, amr: Amr, length: int) -> None:
        self._amr = amr
        self._core = self
        self.ends = [*range(length, len(amr), length), len(amr)]
        self.chunk_lengths = np.diff([0, *self.ends]).tolist()
        self.read: list[tuple[int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._amr, name)

    def _read_arrays(
        self, names: list[str], *, chunks: tuple[int, int] | None = None
    ) -> dict[str, np.ndarray]:
        first, after = chunks or (0, len(self.ends))
        self.read.append((first, after))
        start, stop = sum(self.chunk_lengths[:first]), self.ends[after - 1]
        return {name: values[start:stop] for name, values in self._amr._read_arrays(names).items()}


def in_many_domains(snapshot: ambar.Snapshot, rows: int = 777) -> Any:
    """Return a dataset of a small snapshot in many domains."""
    snapshot.__dict__["amr"] = Rechunked(snapshot.amr, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(octs, "DOMAIN_ROWS", 2 * rows)
        dataset = snapshot.to_yt()
        assert len(dataset.index.domains) > 2
    return dataset


@pytest.fixture(scope="module", params=CASES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Our dataset of a sample, in many domains, and yt's own."""
    run = RAMSES / request.param / "output_00002"
    if not run.exists():
        run = outside_data() / "ramses" / request.param / "output_00002"
    if not run.exists():
        pytest.skip(f"no sample {request.param}: set AMBAR_TEST_DATA")
    store = tmp_path_factory.mktemp(request.param) / "run.ambar"
    ambar.convert(run, store, fsync=False)
    return in_many_domains(ambar.open_snapshot(store)), yt.load(str(run / "info_00002.txt"))


def order(data: Any) -> np.ndarray:
    """Return the order of the cells of a selection by their places."""
    place = [np.round(data["index", axis].to("code_length").d, 12) for axis in "zyx"]
    return np.lexsort(place)


def assert_same(ours: Any, theirs: Any, fields: list[tuple[str, str]], rtol: float = 1e-12) -> None:
    """Assert that fields agree in two selections in cgs, relative to the largest value."""
    orders = order(ours), order(theirs)
    for field in fields:
        found, expected = ours[field].in_cgs().d, theirs[field].in_cgs().d
        assert found.shape == expected.shape, field
        scale = np.nanmax(np.abs(expected), initial=0.0)
        found, expected = found[orders[0]], expected[orders[1]]
        np.testing.assert_allclose(found, expected, rtol=0, atol=rtol * scale, err_msg=str(field))


def derived_fields(dataset: Any) -> Iterator[tuple[str, str]]:
    """Yield the fields of cells."""
    for kind, name in dataset.derived_field_list:
        if kind not in ("gas", "ramses", "gravity", "ramses-rt", "index", "boxlib"):
            continue
        if name not in NOT_COMPARED and not name.startswith("cutting_plane"):
            yield kind, name


def test_attributes_are_those_of_yts_own_reader(pair: tuple[Any, Any]) -> None:
    ours, theirs = pair
    assert set(theirs.field_list) <= set(ours.field_list)
    assert set(theirs.derived_field_list) <= set(ours.derived_field_list)
    for name in ("gamma", "refine_by", "dimensionality", "min_level", "max_level"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("domain_left_edge", "domain_right_edge", "domain_dimensions"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert ours.index.max_level == theirs.index.max_level
    assert float(ours.current_time) == pytest.approx(float(theirs.current_time))
    for name in [
        "length",
        "mass",
        "time",
        "velocity",
        "density",
        "pressure",
        "magnetic",
        "temperature",
    ]:
        ratio = getattr(ours, f"{name}_unit") / getattr(theirs, f"{name}_unit")
        assert float(ratio) == pytest.approx(1.0), name


def test_all_fields_of_cells_are_equal(pair: tuple[Any, Any]) -> None:
    """Gradients need the values of refined cells, which RAMSES writes and stores do not have."""
    ours, theirs = pair
    data = ours.all_data(), theirs.all_data()
    fields = list(derived_fields(theirs))
    others = [field for field in fields if not any(word in field[1] for word in NEIGHBOURS)]
    assert len(others) > 100
    assert_same(*data, others)
    if all(ours.periodicity):  # yt takes every run for periodic
        assert_same(*data, [field for field in fields if "gradient" in field[1]], 1e-6)


def selections(dataset: Any) -> Iterator[Any]:
    """Yield selections of every kind; some cut cells, and some reach over the box's faces."""
    length = (0.11, "code_length")
    yield dataset.sphere([0.4, 0.5, 0.6], (0.2, "code_length"))
    yield dataset.box([0.1, 0.2, 0.33], [0.5, 0.4, 0.9])
    yield dataset.disk([0.5, 0.5, 0.4], [1, 1, 0.2], (0.3, "code_length"), length)
    yield dataset.ortho_ray("x", (0.31, 0.52))
    yield dataset.cutting([0.1, 0.2, 0.9], [0.5, 0.5, 0.5])
    yield dataset.all_data().cut_region("obj['gas', 'density'] > obj['gas', 'density'].mean()")
    yield dataset.sphere([0.5] * 3, (0.2, "code_length")) - dataset.sphere([0.4] * 3, length)


def test_selections_are_equal(pair: tuple[Any, Any]) -> None:
    for ours, theirs in zip(*map(selections, pair), strict=True):
        assert theirs["gas", "density"].size > 0
        assert_same(ours, theirs, [("gas", name) for name in ("density", "sound_speed")])


def test_projections_slices_and_profiles_are_equal(pair: tuple[Any, Any]) -> None:
    density, speed = ("gas", "density"), ("gas", "velocity_magnitude")
    results = []
    for dataset in pair:
        total = dataset.proj(density, 2).to_frb(1.0, 64)[density]
        mean = dataset.proj(speed, 0, weight_field=density).to_frb(1.0, 64)[speed]
        cut = dataset.slice(1, 0.41).to_frb(1.0, 64)[density]
        ball = dataset.sphere([0.5] * 3, (0.3, "code_length"))
        bins = {("index", "radius"): ((0.01, "code_length"), (0.3, "code_length"))}
        profile = yt.create_profile(
            ball, ("index", "radius"), [density], n_bins=16, extrema=bins, weight_field=speed
        )
        edges = ball.quantities.extrema(density)
        results.append([total, mean, cut, profile[density], edges])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found.in_cgs().d, expected.in_cgs().d, rtol=1e-10)


def test_a_selection_reads_few_chunks(pair: tuple[Any, Any]) -> None:
    ours, _ = pair
    amr = ours.snapshot.amr
    _ = ours.index
    amr.read.clear()
    assert ours.sphere([0.15] * 3, (0.07, "code_length"))["gas", "density"].size > 0
    assert 0 < sum(after - first for first, after in amr.read) <= len(amr.ends) // 2


def test_values_of_refined_cells_are_equal(pair: tuple[Any, Any]) -> None:
    """A highest level, or a coarse grid, selects refined cells, which stores do not have."""
    field, grids, coarse = ("gas", "density"), [], []
    for dataset in pair:
        grids.append(dataset.covering_grid(0, dataset.domain_left_edge, [16] * 3)[field])
        region = dataset.all_data()
        region.max_level = 0
        coarse.append(region)
    assert np.isfinite(grids[0]).all()
    np.testing.assert_allclose(grids[0].in_cgs().d, grids[1].in_cgs().d, rtol=1e-12)
    assert_same(coarse[0], coarse[1], [field, ("gas", "velocity_x")])
    pair[0].print_stats()


@pytest.fixture
def gravpart_pair(tmp_path: Path) -> tuple[Any, Any]:
    """Our dataset of the case with particles, and yt's own."""
    run = RAMSES / "gravpart_small" / "output_00002"
    ambar.convert(run, tmp_path / "run.ambar", fsync=False)
    ours = in_many_domains(ambar.open_snapshot(tmp_path / "run.ambar"))
    return ours, yt.load(str(run / "info_00002.txt"))


@pytest.mark.parametrize("root", [(4, 4, 4), (3, 1, 2)])
def test_particles_in_boxes_of_several_root_cells(
    root: tuple[int, int, int], tmp_path: Path
) -> None:
    spec = replace(SYNTHETIC["everything"], root=root)
    snapshot = ambar.open_snapshot(write_output(tmp_path, spec).folder).load()
    dataset = in_many_domains(snapshot, 100)
    rows = snapshot.particles.read(["position_x", "position_y", "position_z"])
    places = np.stack([rows[f"position_{axis}"] for axis in "xyz"], axis=1) / snapshot.info.boxlen
    sides = np.array(snapshot.info.box_size) / snapshot.info.boxlen
    for low in (0.0, 0.3, 0.5):
        box = dataset.box(low * sides, (low + 0.45) * sides)
        inside = ((places >= low * sides) & (places < (low + 0.45) * sides)).all(axis=1)
        assert box["io", "particle_mass"].size == np.count_nonzero(inside) > 0
    deposited = float(dataset.all_data()["deposit", "io_count"].sum())
    assert deposited == np.count_nonzero((places < sides).all(axis=1)) > 0


def test_datasets_pickle(gravpart_pair: tuple[Any, Any], tmp_path: Path) -> None:
    assert len(gravpart_pair) == 2
    for dataset in (
        yt.load(str(tmp_path / "run.ambar")),
        ambar.open_snapshot(amrex_sample("advection_plt00006")).to_yt(unit_system="mks"),
    ):
        again = pickle.loads(pickle.dumps(dataset))
        assert type(again) is type(dataset)
        assert again.field_list == dataset.field_list
        assert again.unit_system.name == dataset.unit_system.name


def test_particles_are_equal(gravpart_pair: tuple[Any, Any]) -> None:
    balls = [ds.sphere([0.45] * 3, (0.2, "code_length")) for ds in gravpart_pair]
    boxes = [ds.all_data() for ds in gravpart_pair]
    for ours, theirs in (balls, boxes):
        orders = [np.argsort(data["io", "particle_identity"].d) for data in (ours, theirs)]
        assert len(orders[0]) > 50
        for name in [
            "particle_position_y",
            "particle_velocity_x",
            "particle_mass",
            "particle_family",
        ]:
            found, expected = ours["io", name], theirs["io", name]
            assert found.units == expected.units
            np.testing.assert_array_equal(found[orders[0]], expected[orders[1]], err_msg=name)
        assert ours["DM", "particle_mass"].size == theirs["DM", "particle_mass"].size
    # yt's own reader loses particles in cells of another domain.
    assert float(boxes[0]["deposit", "io_count"].sum()) == boxes[0]["io", "particle_mass"].size


def test_snapshots_that_are_not_in_a_store(gravpart_pair: tuple[Any, Any]) -> None:
    run = ambar.open_snapshot(RAMSES / "gravpart_small" / "output_00002")
    for snapshot in (run, run.load()):
        dataset = snapshot.to_yt()
        data, expected = dataset.all_data(), gravpart_pair[1].all_data()
        assert_same(data, expected, [("gas", "density"), ("gas", "acceleration_x")])
        total = data["io", "particle_mass"].sum().to("code_mass")
        assert float(total) == pytest.approx(snapshot.particles.read(["mass"])["mass"].sum())


def test_an_output_of_a_series_is_chosen(tmp_path: Path) -> None:
    ambar.convert(RAMSES / "sedov3d_small", tmp_path / "run.ambar", fsync=False)
    first = yt.load(str(tmp_path / "run.ambar"), output=1)
    assert float(first.current_time) == ambar.open_series(tmp_path / "run.ambar")[0].info.time
    with pytest.raises(ValueError, match=r"expected one output, found 2; choose one with output="):
        yt.load(str(tmp_path / "run.ambar"))
    with pytest.raises(KeyError, match="7"):
        yt.load(str(tmp_path / "run.ambar"), output=7)


def test_damaged_stores_get_the_errors_of_ambar(tmp_path: Path) -> None:
    (tmp_path / "empty.ambar").touch()
    (tmp_path / "folder.ambar").mkdir()
    for name in ("empty.ambar", "folder.ambar"):
        with pytest.raises((ambar.AmbarError, FileNotFoundError), match=name):
            yt.load(str(tmp_path / name))


def test_yt_finds_the_frontend() -> None:
    (entry,) = (e for e in entry_points(group="yt.frontends") if e.name == "ambar")
    assert entry.load() is frontend


def both(folder: Path, spec: Spec, *, cosmological: bool = False) -> Any:
    """Return a synthetic output, our dataset of it, and yt's own."""
    run = write_output(folder, spec).folder
    snapshot = ambar.open_snapshot(run).load()
    theirs = yt.load(str(run / f"info_{spec.number:05d}.txt"), cosmological=cosmological)
    return snapshot, snapshot.to_yt(), theirs


def test_units_follow_the_side_of_the_box(tmp_path: Path) -> None:
    """code_length was 1/boxlen of what yt's own reader has, and gamma 5/3 for every run."""
    spec = replace(SYNTHETIC["plain"], boxlen=2.5, particles=SYNTHETIC["everything"].particles)
    snapshot, ours, theirs = both(tmp_path, spec)
    assert ours.gamma == theirs.gamma == snapshot.info.gamma != 5 / 3
    assert ours.domain_right_edge.tolist() == theirs.domain_right_edge.tolist()
    names = ("density", "pressure", "velocity_x", "sound_speed", "cell_mass", "temperature")
    assert_same(ours.all_data(), theirs.all_data(), [("gas", name) for name in names])
    for name in ("particle_position_x", "particle_velocity_y", "particle_mass"):
        found, expected = (ds.all_data()["io", name] for ds in (ours, theirs))
        assert found.units == expected.units
        np.testing.assert_allclose(np.sort(found.d), np.sort(expected.d), rtol=1e-12)


def test_gravity_and_magnetic_fields(tmp_path: Path) -> None:
    _, ours, theirs = both(tmp_path / "gravity", replace(SYNTHETIC["plain"], gravity="plain"))
    names = ("acceleration_x", "acceleration_z", "potential", "potential_energy")
    assert_same(ours.all_data(), theirs.all_data(), [("gas", name) for name in names])
    _, ours, theirs = both(tmp_path / "mhd", Spec(hydro=MHD))
    magnetic = ("magnetic_field_y", "magnetic_field_strength", "magnetic_field_divergence")
    assert_same(ours.all_data(), theirs.all_data(), [("gas", name) for name in magnetic])


def test_cosmology_is_that_of_yts_own_reader(tmp_path: Path) -> None:
    """Time was the (negative) conformal time, the redshift 0, and there were no comoving units."""
    _, ours, theirs = both(tmp_path, SYNTHETIC["cosmological"], cosmological=True)
    assert ours.cosmological_simulation
    names = ["current_redshift", "omega_lambda", "omega_matter", "hubble_constant"]
    for name in names:
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name)), name
    assert float(ours.current_time / theirs.current_time) == pytest.approx(1)
    lengths = [ds.quan(1.0, "code_length").to("Mpccm") for ds in (ours, theirs)]
    assert float(lengths[0].d) == pytest.approx(float(lengths[1].d))
    assert ours.critical_density.in_cgs().d == pytest.approx(theirs.critical_density.in_cgs().d)


def test_birth_times(tmp_path: Path) -> None:
    """Those of a cosmological run are conformal: converted as times they were -2254 Myr."""
    spec = replace(SYNTHETIC["v0_particles"], expansion=0.125)
    snapshot, ours, theirs = both(tmp_path / "expanding", spec, cosmological=True)
    stored = np.sort(snapshot.particles.read(["birth_time"])["birth_time"])
    found = ours.all_data()["io", "conformal_birth_time"]
    np.testing.assert_array_equal(np.sort(found.d), stored)
    for name in ("particle_birth_time", "star_age"):
        if ("io", name) in theirs.derived_field_list:
            found, expected = (
                np.sort(ds.all_data()["io", name].to("Myr")) for ds in (ours, theirs)
            )
            np.testing.assert_allclose(found, expected, rtol=1e-9)
    snapshot, ours, _ = both(tmp_path / "static", replace(spec, expansion=1.0))
    found = np.sort(ours.all_data()["io", "particle_birth_time"].to("code_time").d)
    np.testing.assert_allclose(
        found, np.sort(snapshot.particles.read(["birth_time"])["birth_time"])
    )


PLOTFILES = ["advection_plt00006", "nyx64_plt00040", "lwfa_f32"]


@pytest.mark.parametrize("name", PLOTFILES)
def test_plotfiles_are_equal(name: str, tmp_path: Path) -> None:
    source = amrex_sample(name)
    ambar.convert(source, tmp_path / "run.ambar", fsync=False)
    ours, theirs = yt.load(str(tmp_path / "run.ambar")), yt.load(str(source))
    assert ours.field_list == theirs.field_list
    assert ours.derived_field_list == theirs.derived_field_list
    assert ours.parameters == theirs.parameters
    for place in ("grid_left_edge", "grid_right_edge", "grid_dimensions", "grid_levels"):
        found, expected = getattr(ours.index, place), getattr(theirs.index, place)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    field = theirs.field_list[0]
    derived = [
        field
        for field in derived_fields(theirs)
        if field[0] == "gas" and not any(word in field[1] for word in NEIGHBOURS)
    ]
    fields = [*theirs.field_list, ("index", "cell_volume"), *derived[::4]]
    assert_same(ours.all_data(), theirs.all_data(), fields, 0.0)
    center, width = theirs.domain_center, theirs.domain_width
    for kind in ("proj", "slice"):
        images = []
        for dataset in (ours, theirs):
            plane = dataset.proj(field, 2) if kind == "proj" else dataset.slice(2, center[2])
            images.append(plane.to_frb(width[0], 64, height=width[1])[field].d)
        np.testing.assert_allclose(images[0], images[1], rtol=1e-12)
    radius = 0.3 * width.min()
    assert_same(ours.sphere(center, radius), theirs.sphere(center, radius), [field], 0.0)


JOB_INFO = {
    "Nyx": " Nyx Job Information\n Nyx git hash: 1\n Inputs File Parameters\n amr.ref_ratio = 2\n",
    "AMReX": " AMReX Job Information\n",
}


@pytest.mark.parametrize(
    ("name", "code", "species"),
    [("nyx64_plt00040", "Nyx", "DM"), ("advection_plt00006", "AMReX", "particles")],
)
def test_the_codes_of_yt_are_recognized(name: str, code: str, species: str, tmp_path: Path) -> None:
    """With ``job_info``, yt knows the code: its units, its fields and its particles."""
    source = shutil.copytree(amrex_sample(name), tmp_path / name)
    (source / "job_info").write_text(JOB_INFO[code])
    ambar.convert(source, tmp_path / "run.ambar", fsync=False)
    ours, theirs = yt.load(str(tmp_path / "run.ambar")), yt.load(str(source))
    assert isinstance(ours, type(theirs))
    assert type(theirs).__name__ == f"{code}Dataset"
    assert set(theirs.field_list) <= set(ours.field_list)
    assert float((ours.length_unit / theirs.length_unit).d) == 1
    assert ours.current_redshift == theirs.current_redshift
    center, radius = theirs.domain_center, 0.2 * theirs.domain_width[0]
    for data in zip(
        (ours.all_data(), ours.sphere(center, radius)),
        (theirs.all_data(), theirs.sphere(center, radius)),
        strict=True,
    ):
        names = [name for kind, name in theirs.field_list if kind == species]
        assert len(names) > 3
        for column in names:
            found, expected = (np.sort(each[species, column].in_cgs().d) for each in data)
            np.testing.assert_array_equal(found, expected, err_msg=column)


def test_names_of_text_files_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store must not make yt.load write files elsewhere."""
    ambar.convert(amrex_sample("advection_plt00006"), tmp_path / "run.ambar", fsync=False)
    names = {"run": {"text_files": {"../../elsewhere": "x"}}}
    monkeypatch.setattr("ambar.snapshot.interop.yt.text_files.json.loads", lambda _: names)
    with pytest.raises(ambar.CorruptError, match="expected names of text files"):
        yt.load(str(tmp_path / "run.ambar"))


def test_units_of_plotfiles_are_those_given() -> None:
    units = ambar.Units(unit_l=3.0e24, unit_d=1e-29, unit_t=1e16)
    dataset = ambar.open_snapshot(amrex_sample("nyx64_plt00040")).with_units(units).to_yt()
    assert float(dataset.velocity_unit.to("cm/s")) == pytest.approx(3.0e8)
    assert float(dataset.mass_unit.to("g")) == pytest.approx(1e-29 * 3.0e24**3)
    nyx = ambar.open_snapshot(amrex_sample("nyx64_plt00040")).with_units("Nyx")
    assert float(nyx.to_yt().current_time.to("s")) == pytest.approx(nyx.info.age("s"))


def test_the_temporary_folder_is_removed_with_the_dataset() -> None:
    dataset = ambar.open_snapshot(amrex_sample("advection_plt00006")).to_yt()
    folder = Path(dataset.directory)
    assert folder.exists()
    del dataset
    gc.collect()
    assert not folder.exists()


def test_what_yt_cannot_take_is_refused() -> None:
    run = ambar.open_snapshot(RAMSES / "sedov3d_small" / "output_00002")
    with pytest.raises(ambar.UnsupportedError, match="fill"):
        _ = run.load(region=ambar.Sphere("bc", 0.2)).to_yt().index
    flat = outside_data() / "ramses" / "sedov2d_small" / "output_00002"
    if flat.exists():
        with pytest.raises(ambar.UnsupportedError, match="three dimensions"):
            ambar.open_snapshot(flat).to_yt()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.to_yt()
