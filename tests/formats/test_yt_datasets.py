"""Datasets of yt as stores: cells and particles are those that yt itself returns."""

from __future__ import annotations

import itertools
import tracemalloc
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import ambar
from ambar.kinds import registry
from tests.helpers.command_line import run

yt = pytest.importorskip("yt")
yt.set_log_level(40)

pytestmark = pytest.mark.filterwarnings(
    "ignore::RuntimeWarning",
    "ignore::UserWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",  # of yt, for an index without grids
)

RANDOM = np.random.default_rng(5)
UNITS = {"length_unit": "kpc", "mass_unit": "Msun", "time_unit": "Myr"}


def grid(left: list[float], right: list[float], level: int, cells: list[int]) -> dict[Any, Any]:
    units = {"density": "code_density", "velocity_x": "km/s", "Bx": "gauss", "tracer": ""}
    fields = {name: (RANDOM.random(cells), unit) for name, unit in units.items()}
    edges: dict[Any, Any] = {
        "left_edge": left,
        "right_edge": right,
        "level": level,
        "dimensions": cells,
    }
    return edges | fields


@pytest.fixture(scope="module")
def nested() -> Any:
    """Two levels in three dimensions, around an origin that is not 0, with particles."""
    grids = [
        grid([-1, -1, 0], [1, 1, 1], 0, [16, 16, 8]),
        grid([-0.5, -0.5, 0.25], [0.5, 0.5, 0.5], 1, [16, 16, 4]),
        grid([0.0, 0.5, 0.5], [0.5, 1.0, 1.0], 1, [8, 8, 8]),
    ]
    for one in grids:
        low, high = np.array(one["left_edge"]), np.array(one["right_edge"])
        count = 0 if one["level"] else 40
        places = low + (high - low) * RANDOM.random((count, 3))
        for axis, name in enumerate("xyz"):
            one["io", f"particle_position_{name}"] = places[:, axis]
        one["io", "particle_mass"] = RANDOM.random(count)
    box = np.array([[-1, 1], [-1, 1], [0, 1]])
    return yt.load_amr_grids(grids, [16, 16, 8], bbox=box, sim_time=2.0, **UNITS)


def octree() -> Any:
    """An octree of 8 root octs, of which some are refined."""
    mask = np.array([8, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], np.uint8)
    cells = int((mask == 0).sum())
    data = {("gas", "density"): (RANDOM.random((cells, 1)), "g/cm**3")}
    return yt.load_octree(mask, data, num_zones=1, partial_coverage=0, **UNITS)


def athena(folder: Path) -> Path:
    """Mesh blocks in the layout of Athena++: leaf blocks on three levels only."""
    blocks: list[tuple[int, tuple[int, ...]]] = []

    def add(level: int, place: tuple[int, ...]) -> None:
        if (level, place) in ((0, (0, 0, 0)), (1, (1, 1, 1))):
            for end in itertools.product(range(2), repeat=3):
                add(level + 1, tuple(2 * a + b for a, b in zip(place, end, strict=True)))
        else:
            blocks.append((level, place))

    for place in itertools.product(range(2), repeat=3):
        add(0, place)
    side, count = 4, len(blocks)
    path = folder / "blast.out1.00001.athdf"
    with h5py.File(path, "w") as file:
        for axis in range(3):
            file.attrs[f"RootGridX{axis + 1}"] = np.array([-0.5, 0.5, 1.0])
            edges = [
                -0.5 + (np.arange(side + 1) / side + place[axis]) / 2 ** (level + 1)
                for level, place in blocks
            ]
            file[f"x{axis + 1}f"] = np.array(edges, "f4")
        file.attrs.update(
            NumMeshBlocks=count,
            MeshBlockSize=np.array([side] * 3),
            RootGridSize=np.array([2 * side] * 3),
            MaxLevel=2,
            Time=0.25,
            Coordinates=np.bytes_("cartesian"),
            DatasetNames=np.array([b"prim", b"B"]),
            NumVariables=np.array([3, 1]),
            VariableNames=np.array([b"rho", b"press", b"vel1", b"Bcc1"]),
        )
        file["Levels"] = np.array([level for level, _ in blocks], "i4")
        file["prim"] = RANDOM.random((3, count, side, side, side)).astype("f4")
        file["B"] = RANDOM.random((1, count, side, side, side)).astype("f4")
    return path


def flash(folder: Path) -> Path:
    """A block and its children in the layout of FLASH, with particles."""
    path = folder / "sedov_hdf5_chk_0001"
    text = np.dtype([("name", "S80"), ("value", "f8")])
    ints = np.dtype([("name", "S80"), ("value", "i4")])

    def parameters(file: h5py.File, name: str, dtype: np.dtype[Any], **values: Any) -> None:
        rows = [(key.ljust(80).encode(), value) for key, value in values.items()]
        file[name] = np.array(rows, dtype)

    children = list(itertools.product(range(2), repeat=3))
    boxes = [[[0.0, 2.0]] * 3]
    boxes += [[[float(end), end + 1.0] for end in reversed(place)] for place in children]
    with h5py.File(path, "w") as file:
        sides = {"xmin": 0.0, "ymin": 0.0, "zmin": 0.0, "xmax": 2.0, "ymax": 2.0, "zmax": 2.0}
        parameters(file, "real runtime parameters", text, **sides, gamma=1.4)
        parameters(file, "real scalars", text, time=0.5)
        parameters(
            file, "integer runtime parameters", ints, nblockx=1, nblocky=1, nblockz=1, lrefine_min=1
        )
        parameters(
            file, "integer scalars", ints, nxb=8, nyb=8, nzb=8, dimensionality=3, globalnumblocks=9
        )
        boundaries = [f"{axis}{end}_boundary_type" for axis in "xyz" for end in "lr"]
        strings = np.dtype([("name", "S80"), ("value", "S80")])
        names = {"geometry": b"cartesian", **dict.fromkeys(boundaries, b"periodic")}
        parameters(file, "string runtime parameters", strings, **names)
        parameters(file, "string scalars", strings, geometry=b"cartesian")
        parameters(file, "logical runtime parameters", ints, flag=1)
        parameters(file, "logical scalars", ints, flag=1)
        file["sim info"] = np.array([(9,)], [("file format version", "i4")])
        file["bounding box"] = np.array(boxes)
        file["refine level"] = np.array([1] + [2] * 8, "i4")
        file["node type"] = np.array([2] + [1] * 8, "i4")
        gid = np.full((9, 15), -1, "i4")
        gid[0, 7:] = np.arange(2, 10)
        file["gid"] = gid
        file["unknown names"] = np.array([[b"dens"], [b"velx"], [b"temp"]])
        for name in ("dens", "velx", "temp"):
            fine = RANDOM.random((8, 8, 8, 8))
            coarse = np.zeros((1, 8, 8, 8))
            for block, place in zip(fine, children, strict=True):
                means = block.reshape(4, 2, 4, 2, 4, 2).mean((1, 3, 5))
                z, y, x = (slice(4 * end, 4 * end + 4) for end in place)
                coarse[0, z, y, x] = means
            file[name] = np.concatenate([coarse, fine])
        columns = ["blk", "posx", "posy", "posz", "velx", "tag", "mass"]
        file["particle names"] = np.array([[name.ljust(24).encode()] for name in columns])
        rows = np.zeros((16, 7))
        rows[:, 0] = np.repeat(np.arange(2, 10), 2)
        for block, box in enumerate(boxes[1:]):
            low = np.array(box)[:, 0]
            rows[2 * block : 2 * block + 2, 1:4] = low + RANDOM.random((2, 3))
        rows[:, 4:] = RANDOM.random((16, 3))
        rows[:, 5] = np.arange(16)
        file["tracer particles"] = rows
        file["localnp"] = np.array([0] + [2] * 8, "i4")
    return path


def info_of(snapshot: ambar.Snapshot) -> ambar.CodeInfo:
    assert isinstance(snapshot.info, ambar.CodeInfo)
    return snapshot.info


def assert_same_cells(dataset: Any, store: Path) -> ambar.Snapshot:
    """Assert that leaf cells are those of yt, in the units of the files, bit for bit."""
    snapshot = ambar.open_snapshot(store)
    cells, data = snapshot.amr.read(), dataset.all_data()
    axes = "xyz"[: snapshot.info.ndim]
    ours, theirs = (
        np.round(np.stack(places), 9)
        for places in (
            [cells[axis] for axis in axes],
            [data["index", axis].to_value("code_length") for axis in axes],
        )
    )
    order, expected = np.lexsort(ours), np.lexsort(theirs)
    np.testing.assert_allclose(ours[:, order], theirs[:, expected], rtol=1e-9, atol=1e-9)
    names = ambar.open_store(store)._ambar_attributes("/")["source"]["fields"]["cells"]
    for name, key in names.items():
        info = dataset.field_info[tuple(key)]
        values = data[tuple(key)].to_value(info.units)
        found, wanted = cells[name][order], np.asarray(values)[expected]
        if info.units == info.output_units:
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_allclose(found, wanted, rtol=1e-14)
    return snapshot


def test_grids_in_memory(nested: Any, tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    done = ambar.convert(
        nested, tmp_path / "a.ambar", progress=lambda *counts: calls.append(counts)
    )
    assert done.converted == [str(nested)]
    assert calls[-1] == (1000, 1000)
    snapshot = assert_same_cells(nested, tmp_path / "a.ambar")
    info = info_of(snapshot)
    assert (info.code, info.lower, info.age("Myr")) == ("stream", (-1.0, -1.0, 0.0), 2.0)
    cells = snapshot.amr.read(["density", "velocity_x", "Bx"])
    data = nested.all_data()
    for name, unit, key in (
        ("density", "g/cm**3", ("gas", "density")),
        ("velocity_x", "km/s", ("gas", "velocity_x")),
        ("Bx", "Gauss", ("stream", "Bx")),
    ):
        expected = data[key].to_value(unit.lower())
        # One parsec and one solar mass differ between yt and ambar from the fourth digit on.
        np.testing.assert_allclose(np.sort(cells.column(name, unit)), np.sort(expected), rtol=1e-3)
    again = yt.load(tmp_path / "a.ambar").all_data()
    for key in (("gas", "density"), ("gas", "velocity_x"), ("stream", "tracer")):
        np.testing.assert_allclose(np.sort(again[key]), np.sort(data[key]), rtol=1e-12)
    assert again["stream", "Bx"].to("gauss").max() == pytest.approx(data["stream", "Bx"].max().v)
    # Level 0 has its own values under finer boxes: they are not averages.
    coarse = snapshot.amr._core.read_box(0, 0, "tracer")
    own = np.asarray(nested.index.grids[0]["stream", "tracer"])
    np.testing.assert_array_equal(coarse, own.ravel(order="F"))
    particles = snapshot.species["io"].read()
    order, expected = np.argsort(particles["mass"]), np.argsort(data["io", "particle_mass"])
    for axis in "xyz":
        np.testing.assert_array_equal(
            particles[f"position_{axis}"][order],
            np.asarray(data["io", f"particle_position_{axis}"])[expected],
        )
    # The dataset is unchanged.
    assert str(data["io", "particle_mass"].units) == "g"


def test_fields_and_error_bounds(nested: Any, tmp_path: Path) -> None:
    target = tmp_path / "a.ambar"
    fields = ["density", ("gas", "cell_mass"), "io/mass"]
    ambar.convert(nested, target, fields=fields, error_bound={"density": 1e-3})
    snapshot = ambar.open_snapshot(target)
    assert snapshot.components == {
        "cells": ["density", "cell_mass"],
        "particles/io": ["position_x", "position_y", "position_z", "mass"],
    }
    assert info_of(snapshot).field_units["cells/cell_mass"] == "g"
    found = np.sort(snapshot.amr.read(["density"])["density"])
    expected = np.sort(nested.all_data()["stream", "density"].to_value("code_density"))
    assert 0 < np.abs(found - expected).max() <= 2e-3
    masses = snapshot.amr.read(["cell_mass"]).column("cell_mass", "kg")
    own = nested.all_data()["gas", "cell_mass"].to_value("kg")
    np.testing.assert_allclose(np.sort(masses), np.sort(own), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fields": ["nothing"]}, KeyError, "no field of cells 'nothing'"),
        ({"fields": ["io/nothing"]}, KeyError, "no column 'nothing' of 'io'"),
        ({"components": ["stars"]}, KeyError, "no component 'stars'"),
        ({"error_bound": {"nothing": 1.0}}, KeyError, "bound is given for 'nothing'"),
        ({"levels": (0, 1)}, ValueError, "levels does not apply to the kind 'yt dataset'"),
    ],
)
def test_invalid_options_leave_no_store(
    nested: Any, tmp_path: Path, options: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ambar.convert(nested, tmp_path / "a.ambar", **options)
    assert list(tmp_path.iterdir()) == []


def test_blocks_of_athena(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Athena++ writes leaf blocks alone: levels below them become averages."""
    path = athena(tmp_path)
    ambar.convert(path, tmp_path / "a.ambar")
    code, out, _ = run(capsys, "info", path)
    assert code == 0
    assert "athena_pp" in out
    assert "dens" in out or "rho" in out
    snapshot = assert_same_cells(yt.load(path), tmp_path / "a.ambar")
    assert info_of(snapshot).code == "athena_pp"
    assert snapshot.components["cells"] == ["Bcc1", "pressure", "density", "velocity_x"]
    assert len(snapshot.amr) == (7 + 7 + 8) * 64
    fine = snapshot.amr.grid("density", level=1).to_numpy()
    coarse = snapshot.amr.grid("density", level=0).to_numpy()
    np.testing.assert_allclose(coarse, fine.reshape(8, 2, 8, 2, 8, 2).mean((1, 3, 5)))


def test_blocks_of_flash(tmp_path: Path) -> None:
    """Covered cells are averages, which the store leaves out."""
    path = flash(tmp_path)
    done = ambar.convert(path, tmp_path / "a.ambar")
    assert done.source_bytes == path.stat().st_size
    snapshot = assert_same_cells(yt.load(path), tmp_path / "a.ambar")
    assert info_of(snapshot).gamma == 1.4
    assert snapshot.components["cells"] == ["density", "temperature", "velocity_x"]
    assert snapshot.amr.read(["temperature"]).column("temperature", "K").max() < 1
    with h5py.File(path) as file:
        rows = file["tracer particles"][()]
    particles = snapshot.species["io"].read()
    order = np.argsort(particles["id"])
    for column, name in ((1, "position_x"), (3, "position_z"), (4, "velocity_x"), (6, "mass")):
        np.testing.assert_array_equal(particles[name][order], rows[:, column])
    assert particles["id"].dtype == np.int64


def test_octrees(tmp_path: Path) -> None:
    dataset = octree()
    ambar.convert(dataset, tmp_path / "a.ambar")
    snapshot = assert_same_cells(dataset, tmp_path / "a.ambar")
    assert len(snapshot.amr) == 15
    assert snapshot.amr.grid("density").shape == (4, 4, 4)


@pytest.mark.parametrize("cells", [(8, 4, 6), (8, 4, 1), (8, 1, 1)])
def test_uniform_grids(tmp_path: Path, cells: tuple[int, ...]) -> None:
    values = RANDOM.random(cells)
    dataset = yt.load_uniform_grid({"density": (values, "g/cm**3")}, cells, **UNITS)
    ambar.convert(dataset, tmp_path / "a.ambar")
    snapshot = assert_same_cells(dataset, tmp_path / "a.ambar")
    assert snapshot.info.ndim == sum(side > 1 for side in cells)


def test_stretched_grids_are_arrays_with_coordinates(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    widths = [RANDOM.random(cells) for cells in (4, 3, 2)]
    widths = [own / own.sum() for own in widths]
    values = RANDOM.random((4, 3, 2))
    dataset = yt.load_uniform_grid({"density": (values, "g/cm**3")}, (4, 3, 2), cell_widths=widths)
    ambar.convert(dataset, tmp_path / "a.ambar")
    opened = xr.open_dataset(tmp_path / "a.ambar", engine="ambar", group="grid_000000")
    np.testing.assert_array_equal(opened["density"], values)
    assert opened["density"].dims == ("x", "y", "z")
    data = dataset.all_data()
    centres = np.unique(data["index", "y"].to_value("code_length"))
    np.testing.assert_allclose(opened["y"], centres)
    np.testing.assert_allclose(np.diff(opened["x_edges"]), widths[0])
    assert ambar.open_store(tmp_path / "a.ambar").attrs["info"]["ndim"] == 3


def test_particles_in_bounded_memory(tmp_path: Path) -> None:
    count = 200_000
    data = {f"particle_position_{axis}": RANDOM.random(count) for axis in "xyz"}
    data |= {f"particle_own_{number}": RANDOM.random(count) for number in range(20)}
    data["particle_mass"] = RANDOM.random(count)
    dataset = yt.load_particles(data, **UNITS)
    dataset.index  # noqa: B018 - yt builds its index
    tracemalloc.start()
    ambar.convert(dataset, tmp_path / "a.ambar")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All columns together are 24; positions and their order are 4.
    assert peak < 14 * 8 * count
    particles = ambar.open_snapshot(tmp_path / "a.ambar").particles.read(["mass", "position_x"])
    order, expected = np.argsort(particles["mass"]), np.argsort(data["particle_mass"])
    np.testing.assert_array_equal(
        particles["position_x"][order], data["particle_position_x"][expected]
    )


def test_a_store_of_another_code_is_no_plotfile(tmp_path: Path) -> None:
    ambar.convert(athena(tmp_path), tmp_path / "a.ambar")
    with pytest.raises(ambar.UnsupportedError, match="found one of 'athena_pp'.*vtkhdf"):
        ambar.export(tmp_path / "a.ambar", tmp_path / "plt")
    assert not (tmp_path / "plt").exists()


def test_bounds_and_units_of_particles(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    data: dict[Any, Any] = {
        f"particle_position_{axis}": (10.0 * generator.random(50), "cm") for axis in "xyz"
    }
    data["particle_mass"] = generator.random(50)
    box = np.array([[0.0, 10.0]] * 3)
    dataset = yt.load_particles(data, length_unit=10.0, mass_unit=1.0, time_unit=1.0, bbox=box)
    target = tmp_path / "a.ambar"
    with pytest.raises(KeyError, match="not converted"):
        ambar.convert(dataset, target, error_bound=0.1)
    ambar.convert(dataset, target, error_bound={"io/mass": 0.1})
    table = ambar.open_snapshot(target).species["io"].read(["position_x", "mass"])
    found = np.sort(np.asarray(table.column("position_x", "cm")))
    expected = dataset.all_data()["io", "particle_position_x"].to_value("cm")
    np.testing.assert_allclose(found, np.sort(expected), rtol=1e-12)


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = athena(tmp_path)
    with h5py.File(path, "r+") as file:
        del file["prim"]
        del file["Levels"]
    with pytest.raises(ambar.CorruptError, match="blast.out1.00001.athdf"):
        ambar.convert(path, tmp_path / "a.ambar")
    assert not (tmp_path / "a.ambar").exists()


def test_netcdf_files_stay_collections(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    xr.Dataset({"a": ("x", [1.0])}).to_netcdf(tmp_path / "a.nc")
    kind = registry.kind_of_sources([tmp_path / "a.nc"])
    assert kind is not None
    assert kind.name == "collection"


def test_without_yt_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = athena(tmp_path)
    monkeypatch.setattr("ambar.formats.yt.source.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"ambar\[yt\]"):
        ambar.convert(path, tmp_path / "a.ambar")
