"""Snapshots of Gadget, AREPO and SWIFT in HDF5, and catalogues of halos: against yt and pynbody."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pynbody
import pytest
import yt

import ambar
from ambar.formats.gadget import files
from tests.helpers.command_line import run
from tests.helpers.pages import read_page, run_blocks
from tests.helpers.particle_snapshots import (
    BOX,
    MPC,
    SUN,
    A,
    H,
    Particles,
    particles,
    write_gadget,
    write_rockstar,
    write_subfind,
    write_swift,
)
from tests.helpers.paths import RAMSES_CASES

ROWS = {0: 40_000, 1: 20_000, 4: 300, 5: 1}
SPECIES = {
    "PartType0": "gas",
    "PartType1": "dark_matter",
    "PartType4": "stars",
    "PartType5": "black_holes",
}
UNIT_BASE = {
    "UnitLength_in_cm": MPC / 1e3,
    "UnitMass_in_g": 1e10 * SUN,
    "UnitVelocity_in_cm_per_s": 1e5,
}


@pytest.fixture(scope="module")
def data() -> Particles:
    return particles(ROWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, data: Particles) -> Path:
    """Return a folder with a snapshot of each code, and its store NAME.ambar."""
    folder = tmp_path_factory.mktemp("snapshots")
    write_gadget(folder / "gadget2.hdf5", data, code="gadget2", compression="gzip")
    write_gadget(folder / "gadget4.hdf5", data)
    write_gadget(folder / "arepo.hdf5", data, code="arepo")
    small = particles({0: 2000, 1: 1000}, box=50.0, masses=(0, 1), floats="f8")
    small["PartType0"]["ElementMassFractions"] = np.full((2000, 2), [0.75, 0.25], "f4")
    write_swift(folder / "swift.hdf5", small, arrays=False)
    for name in ("gadget2", "gadget4", "arepo", "swift"):
        ambar.convert(folder / f"{name}.hdf5", folder / f"{name}.ambar", fsync=False)
    return folder


def info_of(snapshot: ambar.Snapshot) -> ambar.CodeInfo:
    assert isinstance(snapshot.info, ambar.CodeInfo)
    return snapshot.info


def rows_by_id(columns: Any, ids: str = "id") -> np.ndarray:
    return np.argsort(np.asarray(columns[ids]))


@pytest.mark.parametrize("name", ["gadget2", "gadget4", "arepo"])
def test_values_are_those_of_the_file(folder: Path, data: Particles, name: str) -> None:
    snapshot = ambar.open_snapshot(folder / f"{name}.ambar")
    assert info_of(snapshot).code == {"gadget2": "gadget"}.get(name, name)
    assert list(snapshot.species) == list(SPECIES.values())
    for group, sets in data.items():
        rows = snapshot.species[SPECIES[group]]
        read, order = rows.read(), rows_by_id(sets, "ParticleIDs")
        assert len(rows) == len(order)
        found = rows_by_id(read)
        for dataset, values in sets.items():
            title = {"Coordinates": "position", "Velocities": "velocity"}.get(dataset)
            columns = [dataset] if title is None else [f"{title}_{axis}" for axis in "xyz"]
            for number, column in enumerate(columns):
                expected = values if title is None else values[:, number]
                assert read[column].dtype == values.dtype
                np.testing.assert_array_equal(read[column][found], expected[order])
        if "Masses" not in sets:
            assert read["mass"].dtype == np.float64
            np.testing.assert_array_equal(read["mass"], 0.03125)


def test_regions_read_the_chunks_that_they_overlap(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    gas = {
        "Coordinates": generator.uniform(0, BOX, (300_000, 3)).astype("f4"),
        "Density": generator.uniform(1, 2, 300_000),
    }
    write_gadget(tmp_path / "snap.hdf5", {"PartType0": gas})
    path = tmp_path / "s.ambar"
    ambar.convert(tmp_path / "snap.hdf5", path, fsync=False)
    rows = ambar.open_snapshot(path).species["gas"]
    region = ambar.Sphere((BOX / 4,) * 3, 0.1 * BOX, unit="code")
    offsets = gas["Coordinates"].astype("f8") - BOX / 4
    near = np.sort(gas["Density"][np.linalg.norm(offsets, axis=1) < 0.1 * BOX])
    np.testing.assert_array_equal(np.sort(rows.read("rho", region=region)["rho"]), near)
    # Other chunks need not be intact.
    chunks = ambar.open_store(path)._core.array("/particles/gas/Density").chunk_ranges()
    assert len(chunks) == 9
    with path.open("r+b") as file:
        for chunk in chunks[2:]:
            file.seek(chunk.offset + chunk.length // 2)
            file.write(bytes(16))
    damaged = ambar.open_snapshot(path).species["gas"]
    np.testing.assert_array_equal(np.sort(damaged.read("rho", region=region)["rho"]), near)
    with pytest.raises(ambar.CorruptError):
        damaged.read("rho")


@pytest.mark.parametrize("name", ["gadget2", "gadget4", "arepo", "swift"])
def test_yt_has_the_same_values_and_units(folder: Path, name: str) -> None:
    yt.set_log_level(50)
    base = {} if name in ("swift", "arepo") else {"unit_base": UNIT_BASE}
    dataset = yt.load(folder / f"{name}.hdf5", **base)
    snapshot = ambar.open_snapshot(folder / f"{name}.ambar")
    assert snapshot.info.age("s") == pytest.approx(float(dataset.current_time.to("s")), rel=1e-5)
    assert snapshot.info.redshift == pytest.approx(dataset.current_redshift)
    width = [snapshot.info.units.length("cm") * side for side in snapshot.info.box_size]
    np.testing.assert_allclose(width, np.asarray(dataset.domain_width.to("cm")), rtol=1e-12)
    everything, gas = dataset.all_data(), snapshot.species["gas"]
    order = np.argsort(np.asarray(everything["PartType0", "ParticleIDs"]))
    swift = name == "swift"
    compared = [
        ("Coordinates", "x", "cm"),
        ("Densities" if swift else "Density", "rho", "g/cm**3"),
    ]
    if not swift:  # of which yt has other units: velocities of SWIFT are peculiar
        compared += [
            ("Masses", "mass", "g"),
            ("Velocities", "vx", "cm/s"),
            ("InternalEnergy", "u", "erg/g"),
            ("SmoothingLength", "hsml", "cm"),
        ]
    for theirs, ours, unit in compared:
        table = gas.read([ours, "id"])
        # In float64, as a product of float32 is rounded.
        values = everything["PartType0", theirs].astype("f8").to(unit)
        expected = np.asarray(values)[order]
        found = table.column(ours, unit)[rows_by_id(table)]
        np.testing.assert_allclose(
            found, expected[:, 0] if expected.ndim > 1 else expected, rtol=1e-12
        )


@pytest.mark.parametrize("name", ["arepo", "swift"])
def test_pynbody_has_the_same_values_and_units(folder: Path, name: str) -> None:
    theirs = pynbody.load(str(folder / f"{name}.hdf5"))
    snapshot = ambar.open_snapshot(folder / f"{name}.ambar")
    order = np.argsort(np.asarray(theirs.gas["iord"]))
    for field, ours, unit, known in [
        ("pos", "x", "cm", "cm"),
        ("vel", "vx", "cm s**-1", "cm/s"),
        ("mass", "mass", "g", "g"),
        ("rho", "density", "g cm**-3", "g/cm**3"),
        ("u", "u", "erg g**-1", "erg/g"),
    ]:
        values = theirs.gas[field].astype("f8")
        factor = values.units.ratio(unit, **theirs.conversion_context())
        expected = np.asarray(values)[order] * factor
        table = snapshot.species["gas"].read([ours, "id"])
        np.testing.assert_allclose(
            table.column(ours, known)[rows_by_id(table)],
            expected[:, 0] if expected.ndim > 1 else expected,
            rtol=1e-12,
        )


def test_attributes_of_eagle_are_units(folder: Path, tmp_path: Path, data: Particles) -> None:
    few = {"PartType0": data["PartType0"]}
    write_gadget(tmp_path / "eagle.hdf5", few, code="eagle")
    ambar.convert(tmp_path / "eagle.hdf5", tmp_path / "eagle.ambar", fsync=False)
    snapshots = [
        ambar.open_snapshot(path) for path in (tmp_path / "eagle.ambar", folder / "arepo.ambar")
    ]
    assert snapshots[0].info.redshift == pytest.approx(1 / A - 1)
    for name, unit in [("mass", "g"), ("vx", "cm/s"), ("u", "erg/g"), ("rho", "g/cm3")]:
        tables = [snapshot.species["gas"].read([name, "id"]) for snapshot in snapshots]
        columns = [table.column(name, unit)[rows_by_id(table)] for table in tables]
        np.testing.assert_allclose(columns[0], columns[1], rtol=1e-12)


def test_units_of_swift_are_those_of_its_attributes(folder: Path) -> None:
    snapshot = ambar.open_snapshot(folder / "swift.ambar")
    assert snapshot.info.periodic == (True, True, True)
    assert info_of(snapshot).gamma == pytest.approx(5 / 3)
    gas = snapshot.species["gas"]
    assert gas.read("ElementMassFractions_Helium")["ElementMassFractions_Helium"][0] == 0.25
    with h5py.File(folder / "swift.hdf5") as file:
        for dataset, column, unit in [
            ("Velocities", "velocity_x", "cm/s"),
            ("Masses", "mass", "g"),
            ("InternalEnergies", "u", "erg/g"),
        ]:
            node = file["PartType0"][dataset]
            factor = node.attrs[
                "Conversion factor to physical CGS (including cosmological corrections)"
            ]
            order = np.argsort(file["PartType0/ParticleIDs"][()])
            expected = node[()].reshape(len(node), -1)[order, 0] * factor
            table = gas.read([column, "id"])
            found = table.column(column, unit)[rows_by_id(table)]
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_analysis_of_other_rows_works(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    snapshot = ambar.open_snapshot(folder / "gadget4.ambar")
    gas = snapshot.species["gas"]
    total = gas.read("mass").column("mass", "Msol").sum()
    assert gas.sum("mass", unit="Msol") == pytest.approx(total)
    image = gas.map("mass", resolution=32, unit="Msol/kpc2")
    area = (snapshot.info.boxlen * snapshot.info.units.length("kpc") / 32) ** 2
    assert float(image.sum()) * area == pytest.approx(total, rel=1e-3)
    assert (
        gas.read("kinetic_energy", where="mass > 1e10 Msol").column("kinetic_energy", "erg").all()
    )
    picture = tmp_path / "gas.png"
    store = folder / "gadget4.ambar"
    assert (
        run(capsys, "plot", store, "--particles", "--species", "gas", "--field", "mass", picture)[0]
        == 0
    )
    assert picture.stat().st_size > 0


@pytest.mark.parametrize("given", ["folder", "first", "all", "virtual"])
def test_several_files_are_one_snapshot(tmp_path: Path, data: Particles, given: str) -> None:
    folder = tmp_path / "snapdir_003"
    folder.mkdir()
    few = {name: {key: values[:500] for key, values in sets.items()} for name, sets in data.items()}
    path = folder / "snap_003.hdf5"
    if given == "virtual":
        parts = write_swift(path, few, files=3, box=BOX)
        shutil.copy(parts[0], path)
        with h5py.File(path, "r+") as file:
            file["Header"].attrs["Virtual"] = np.array([1], "i4")
            file["Header"].attrs["NumFilesPerSnapshot"] = np.array([1], "i4")
    else:
        parts = write_gadget(path, few, files=3, code="arepo")
    sources: dict[str, Any] = {"folder": folder, "first": parts[0], "all": parts, "virtual": path}
    ambar.convert(sources[given], tmp_path / "s.ambar", fsync=False)
    snapshot = ambar.open_snapshot(tmp_path / "s.ambar")
    for group, sets in few.items():
        table = snapshot.species[SPECIES[group]].read(["id", "x"])
        np.testing.assert_array_equal(np.sort(table["id"]), np.sort(sets["ParticleIDs"]))
        order = rows_by_id(sets, "ParticleIDs")
        np.testing.assert_array_equal(table["x"][rows_by_id(table)], sets["Coordinates"][order, 0])


def test_several_processes_read_large_datasets(
    tmp_path: Path, data: Particles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_LARGE", 1)
    monkeypatch.setattr(files, "_TASK", 1 << 18)
    write_gadget(tmp_path / "snap.hdf5", {"PartType0": data["PartType0"]}, compression="gzip")
    ambar.convert(tmp_path / "snap.hdf5", tmp_path / "s.ambar", fsync=False, threads=2)
    table = ambar.open_snapshot(tmp_path / "s.ambar").species["gas"].read(["id", "mass"])
    order = rows_by_id(data["PartType0"], "ParticleIDs")
    np.testing.assert_array_equal(
        table["mass"][rows_by_id(table)], data["PartType0"]["Masses"][order]
    )


def test_a_run_without_a_box_has_the_domain_of_its_particles(tmp_path: Path) -> None:
    data = particles({1: 1000, 2: 500}, ids="u4", floats="f8")
    for sets in data.values():
        sets["Coordinates"] -= BOX / 2
    write_gadget(tmp_path / "galaxy.hdf5", data, code="gadget2", box=0.0, cosmological=False)
    ambar.convert(tmp_path / "galaxy.hdf5", tmp_path / "s.ambar")
    snapshot = ambar.open_snapshot(tmp_path / "s.ambar")
    info = info_of(snapshot)
    assert (info.periodic, info.aexp, info.time) == ((False,) * 3, None, 2.5)
    everything = np.concatenate([sets["Coordinates"] for sets in data.values()])
    np.testing.assert_allclose(info.lower, everything.min(axis=0))
    np.testing.assert_allclose(info.upper, everything.max(axis=0))
    assert list(snapshot.species) == ["dark_matter", "disk"]
    assert snapshot.species["disk"].dtype("id") == np.uint32
    assert info.units.velocity("km/s") == pytest.approx(1.0)
    box = ambar.Box((0, 0, 0), (BOX / 4,) * 3, unit="code")
    inside = (everything >= 0).all(axis=1) & (everything <= BOX / 4).all(axis=1)
    assert sum(len(one.read("x", region=box)) for one in snapshot.species.values()) == inside.sum()


def test_components_fields_and_error_bounds(folder: Path, tmp_path: Path) -> None:
    ambar.convert(
        folder / "gadget4.hdf5",
        tmp_path / "s.ambar",
        components=["gas"],
        fields=["mass", "Velocities", "rho"],
        error_bound={"gas/Density": "1e-3 relative", "gas/velocity_*": 0.5},
    )
    gas = ambar.open_snapshot(tmp_path / "s.ambar").species["gas"]
    assert gas.fields == [
        *(f"position_{axis}" for axis in "xyz"),
        "Masses",
        *(f"velocity_{axis}" for axis in "xyz"),
        "Density",
    ]
    read, original = gas.read(), ambar.open_snapshot(folder / "gadget4.ambar").species["gas"].read()
    np.testing.assert_allclose(read["rho"], original["rho"], rtol=1e-3)
    np.testing.assert_allclose(read["vx"], original["vx"], atol=0.5)
    assert (read["vx"] != original["vx"]).any()
    limit = float(np.quantile(original["rho"], 0.99))
    found = gas.read("rho", where=f"rho > {limit!r}")["rho"]
    np.testing.assert_array_equal(found, read["rho"][read["rho"] > limit])
    assert ambar.compare(
        folder / "gadget4.ambar", tmp_path / "s.ambar", fields=["particles/gas"]
    ).held


def test_halos_are_tables_with_positions(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sets = write_subfind(tmp_path / "fof_subhalo_tab_010.hdf5")
    with h5py.File(tmp_path / "fof_subhalo_tab_010.hdf5", "r+") as file:
        file["IDs/ID"] = np.arange(9)
        file["Group/index"] = file["Group/GroupLen"][()]
    lines = write_rockstar(tmp_path / "out_0.list")
    paths = (folder / "gadget4.hdf5", tmp_path / "s.ambar")
    halos_of = (
        "--halos",
        tmp_path / "fof_subhalo_tab_010.hdf5",
        "--halos",
        tmp_path / "out_0.list",
    )
    code, output, errors = run(capsys, "convert", *paths, "--components", "stars", *halos_of)
    assert code == 0, errors
    assert "fof_subhalo_tab_010.hdf5/IDs/ID" in output + errors
    snapshot = ambar.open_snapshot(tmp_path / "s.ambar")
    halos = snapshot.halos
    assert {name: len(rows) for name, rows in halos.items()} == {
        "groups": 300,
        "subhalos": 500,
        "rockstar": 200,
    }
    region = ambar.Sphere("bc", 0.3)
    positions = sets["Subhalo/SubhaloPos"].astype("f8")
    near = np.linalg.norm(positions - BOX / 2, axis=1) < 0.3 * BOX
    found = halos["subhalos"].read(["SubhaloIDMostbound", "mass"], region=region)
    order = np.argsort(found["SubhaloIDMostbound"])
    expected = np.flatnonzero(near)[np.argsort(sets["Subhalo/SubhaloIDMostbound"][near])]
    np.testing.assert_array_equal(found["mass"][order], sets["Subhalo/SubhaloMass"][expected])
    masses = found.column("mass", "g")[order]
    np.testing.assert_allclose(
        masses, found["mass"][order].astype("f8") * (1e10 * SUN / H), rtol=1e-12
    )
    groups = halos["groups"].read(["GroupLen", "GroupLenType_5", "GroupVel_z", "index_field"])
    np.testing.assert_array_equal(groups["index_field"], groups["GroupLen"])
    np.testing.assert_array_equal(
        groups["GroupLenType_5"], sets["Group/GroupLenType"][groups["GroupLen"], 5]
    )
    velocities = sets["Group/GroupVel"][groups["GroupLen"], 2].astype("f8") / A
    np.testing.assert_allclose(groups.column("GroupVel_z", "km/s"), velocities, rtol=1e-12)
    table = halos["rockstar"].read()
    order = np.argsort(table["id"])
    assert table["num_p"].dtype == np.int64
    np.testing.assert_array_equal(table["mvir"][order], lines[:, 2])
    # Rockstar has lengths in Mpc/h, the snapshot in kpc/h.
    np.testing.assert_allclose(table["x"][order], lines[:, 8] * 1000, rtol=1e-6)
    near = np.linalg.norm(lines[:, 8:11] - 25, axis=1) < 15
    assert len(halos["rockstar"].read("id", region=region)) == near.sum()
    assert table.column("mvir", "Msol")[order][0] == pytest.approx(lines[0, 2] / H)


HOP = "   #   npart       mass  cont.frac" + "".join(f"{f'{one}c':>11}" for one in "xyzuvw")


def test_halos_of_hop_belong_to_a_ramses_output(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    places = generator.uniform(0, 1, (40, 3)).round(4)
    lines = [
        f"{number + 1:5d} {20 + number:7d} {1e-3 * (number + 1):10.3E} {0:10.3E} "
        + " ".join(f"{value:10.3E}" for value in [*place, 1.0, 2.0, -3.0])
        for number, place in enumerate(places.tolist())
    ]
    path = tmp_path / "hop00002.pos"
    path.write_text("\n".join([HOP, *lines]) + "\n")
    source = RAMSES_CASES / "stars_3d" / "output_00002"
    ambar.convert(source, tmp_path / "r.ambar", halos=path)
    snapshot = ambar.open_snapshot(tmp_path / "r.ambar")
    table = snapshot.halos["hop"].read(region=ambar.Sphere("bc", 0.3))
    places = np.array([[float(f"{value:.3E}") for value in place] for place in places.tolist()])
    near = np.linalg.norm(places - 0.5, axis=1) < 0.3
    np.testing.assert_array_equal(np.sort(table["id"]), np.flatnonzero(near) + 1)
    assert table.column("mass", "g")[0] == pytest.approx(
        1e-3 * table["id"][0] * snapshot.info.units.mass("g")
    )
    assert list(snapshot.components) == [
        *ambar.open_snapshot(source).components,
        "halos/hop",
    ]
    path.write_text("\n".join([HOP, *lines])[:-20])
    with pytest.raises(ambar.CorruptError, match="expected lines of 10 numbers"):
        ambar.convert(source, tmp_path / "s.ambar", halos=path)
    assert not (tmp_path / "s.ambar").exists()
    with pytest.raises(ValueError, match="halos belong to one output"):
        ambar.convert(source.parent, tmp_path / "s.ambar", halos=path)


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def remove(path: Path) -> None:
    path.unlink()


def change_time(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["Header"].attrs["Time"] = 0.5


def drop_dataset(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        del file["PartType0/Density"]


def shorten(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        values = file["PartType0/Density"][:-1]
        del file["PartType0/Density"]
        file["PartType0/Density"] = values


def scramble(path: Path) -> None:
    with h5py.File(path) as file:
        chunk = file["PartType0/Density"].id.get_chunk_info(0)
    with path.open("r+b") as raw:
        raw.seek(chunk.byte_offset + chunk.size // 2)
        raw.write(bytes(32))


def count_differently(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["Header"].attrs["NumPart_ThisFile"] = np.array([99, 0, 0, 0, 0, 0], "u4")


@pytest.mark.parametrize(
    ("damage", "error", "text"),
    [
        (cut, ambar.CorruptError, "restore it from a copy"),
        (remove, FileNotFoundError, "expected 2 files of the snapshot, of which 1 do not exist"),
        (change_time, ambar.CorruptError, r"expected Time = 0.25 as in snap.0.hdf5, found 0.5"),
        (
            drop_dataset,
            ambar.CorruptError,
            "no dataset PartType0/Density; use the files of one run",
        ),
        (scramble, ambar.CorruptError, "restore it from a copy"),
        (shorten, ambar.CorruptError, r"PartType0/Density: expected 50 rows"),
        (count_differently, ambar.CorruptError, r"expected \[100, 0, 0, 0, 0, 0\] particles"),
    ],
)
def test_incomplete_snapshots_are_refused(
    tmp_path: Path, damage: Callable[[Path], None], error: type[Exception], text: str
) -> None:
    parts = write_gadget(tmp_path / "snap.hdf5", particles({0: 100}), files=2, compression="gzip")
    damage(parts[1])
    with pytest.raises(error, match=text) as caught:
        ambar.convert(parts[0], tmp_path / "s.ambar")
    assert "snap." in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        path.name for path in parts if path.exists()
    )


def test_other_arguments_are_refused(tmp_path: Path) -> None:
    write_gadget(tmp_path / "snap_1.hdf5", particles({0: 50}))
    write_gadget(tmp_path / "snap_2.hdf5", particles({0: 50}))
    write_subfind(tmp_path / "fof_tab_1.hdf5", groups=5, subhalos=0)
    (tmp_path / "halos.txt").write_text("1 2 3\n")
    target = tmp_path / "s.ambar"
    with pytest.raises(ValueError, match="halos belong to one snapshot, found a run"):
        ambar.convert(tmp_path, target, halos=tmp_path / "fof_tab_1.hdf5")
    shutil.copy(tmp_path / "snap_2.hdf5", tmp_path / "other_2.hdf5")
    with pytest.raises(ValueError, match=r"of one run, found names that begin with other_ and sna"):
        ambar.convert(tmp_path, target)
    shutil.copy(tmp_path / "snap_2.hdf5", tmp_path / "last.hdf5")
    with pytest.raises(ValueError, match="expected a number at the end of the name"):
        ambar.convert([tmp_path / "snap_1.hdf5", tmp_path / "last.hdf5"], target)
    with pytest.raises(ValueError, match="convert it first"):
        ambar.open(tmp_path / "snap_1.hdf5")
    source = tmp_path / "snap_1.hdf5"
    with pytest.raises(KeyError, match="no component 'cells'"):
        ambar.convert(source, target, components="cells")
    with pytest.raises(KeyError, match="no field 'Mass_x'"):
        ambar.convert(source, target, fields=["Mass_x"])
    with pytest.raises(KeyError, match="error bound is given for 'gas/Temperature'"):
        ambar.convert(source, target, error_bound={"gas/Temperature": 1.0})
    with pytest.raises(KeyError, match="expected a catalogue of halos"):
        ambar.convert(source, target, halos=tmp_path / "halos.txt")
    with pytest.raises(KeyError, match="expected a catalogue of halos"):
        ambar.convert(source, target, halos=tmp_path / "snap_2.hdf5")
    with pytest.raises(ValueError, match="expected a snapshot, found a catalogue of halos"):
        ambar.convert(tmp_path / "fof_tab_1.hdf5", target)
    with h5py.File(tmp_path / "fof_tab_1.hdf5", "r+") as file:
        file["Header"].attrs["Time"] = 0.5
    with pytest.raises(ValueError, match=r"expected a catalogue of the time 0.25"):
        ambar.convert(source, target, halos=tmp_path / "fof_tab_1.hdf5")
    assert not target.exists()


def test_the_page_runs_as_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(folder / "gadget4.hdf5", "snap_010.hdf5")
    write_subfind(Path("fof_subhalo_tab_010.hdf5"))
    ambar.convert("snap_010.hdf5", "snap.ambar", halos="fof_subhalo_tab_010.hdf5", fsync=False)
    names = run_blocks(read_page("docs/howto/particle-snapshots"))
    assert names["hot"] > 0
    assert len(names["massive"]) > 0
    assert Path("gas.ambar").exists()


@pytest.mark.parametrize("bound", [1e-3, {"Density": 1.0}, {"velocity_*": 1.0}, {"*@8": 1.0}])
def test_error_bounds_name_a_species(folder: Path, tmp_path: Path, bound: Any) -> None:
    with pytest.raises(ValueError, match=r"such as 'gas/Density'"):
        ambar.convert(folder / "gadget4.hdf5", tmp_path / "s.ambar", error_bound=bound)
    assert not list(tmp_path.iterdir())


def test_datasets_of_unusual_names_and_places_are_converted_or_listed(tmp_path: Path) -> None:
    path, target = tmp_path / "snap.hdf5", tmp_path / "s.ambar"
    data = particles({0: 500, 4: 40}, masses=(0,))
    flags = np.arange(500) % 3 == 0
    write_gadget(path, data, code="eagle", mass=2.0)
    with h5py.File(path, "r+") as file:
        gas = file["PartType0"]
        gas["index"] = np.arange(500)
        gas["velocity_x"] = np.arange(500.0)
        gas["IsCold"] = flags
        gas["Dust/Density"] = np.arange(500.0)
        gas["Entropy"] = np.arange(500.0)
        gas["Entropy"].attrs.update(
            {"CGSConversionFactor": 3.0, "aexp-scale-exponent": -1.0, "h-scale-exponent": 0.0}
        )
        gas["Label"] = np.full(500, b"x", "S1")
        file["Tree/Nodes"] = np.arange(9)
        file["RuntimePars"] = h5py.Empty("f4")
        file.create_group("Solver").attrs["CourantFactor"] = 0.25
        file["PartType4"]["DynamicalMasses"] = np.arange(40.0)
        file["Header"].attrs["MassTable"] = np.zeros(6)
        file["Gas"] = h5py.SoftLink("/PartType0")
    report = ambar.convert(path, target, fields=None, fsync=False)
    assert set(report.left_out) == {"PartType0/Label", "Tree/Nodes", "RuntimePars"}
    snapshot = ambar.open_snapshot(target)
    info = info_of(snapshot)
    assert info.parameters["Solver"] == {"CourantFactor": 0.25}
    table = snapshot.species["gas"].read()
    ids = data["PartType0"]["ParticleIDs"]
    found, order = rows_by_id(table), rows_by_id({"id": ids})
    for name, values in [
        ("index_field", np.arange(500)),
        ("velocity_x_field", np.arange(500.0)),
        ("IsCold", flags),
        ("velocity_x", data["PartType0"]["Velocities"][:, 0]),
    ]:
        np.testing.assert_array_equal(table[name][found], values[order])
    assert "particles/gas/Dust_Density" not in info.field_units
    assert info.field_units["particles/gas/Entropy"] == f"{3.0 / A!r}*cgs"
    ambar.convert(path, target, fields=["mass"], mode="w", fsync=False)
    species = ambar.open_snapshot(target).species
    assert species["gas"].fields[3:] == ["Masses"]
    assert species["stars"].fields[3:] == ["DynamicalMasses"]
    with pytest.raises(ValueError, match="expected at least one component"):
        ambar.convert(path, target, components=[], mode="w")


def test_the_domain_does_not_depend_on_components(tmp_path: Path) -> None:
    data = particles({1: 500, 2: 50})
    data["PartType1"]["Coordinates"] -= BOX / 2
    # With Omega0, as in a parameter file that was left unchanged.
    write_gadget(tmp_path / "snap.hdf5", data, code="gadget2", cosmological=False)
    with h5py.File(tmp_path / "snap.hdf5", "r+") as file:
        file["Header"].attrs.update({"Time": 1.0, "Omega0": 0.3, "HubbleParam": 1.0})
    calls: list[tuple[int, int]] = []
    ambar.convert(
        tmp_path / "snap.hdf5",
        tmp_path / "a.ambar",
        progress=lambda done, total: calls.append((done, total)),
        fsync=False,
    )
    assert calls[-1][0] == calls[-1][1]
    assert sum(done == total for done, total in calls) == 1
    ambar.convert(tmp_path / "snap.hdf5", tmp_path / "b.ambar", components=["disk"], fsync=False)
    both, disk = (info_of(ambar.open_snapshot(tmp_path / f"{one}.ambar")) for one in "ab")
    assert (both.lower, both.upper, both.periodic) == (disk.lower, disk.upper, disk.periodic)
    assert both.lower[0] == data["PartType1"]["Coordinates"][:, 0].min()
    assert (both.aexp, both.time) == (None, 1.0)


def test_cosmology_without_densities_has_the_time_of_the_file(tmp_path: Path) -> None:
    write_gadget(tmp_path / "snap.hdf5", particles({1: 50}))
    with h5py.File(tmp_path / "snap.hdf5", "r+") as file:
        file["Parameters"].attrs["OmegaLambda"] = np.nan
    ambar.convert(tmp_path / "snap.hdf5", tmp_path / "s.ambar", fsync=False)
    assert info_of(ambar.open_snapshot(tmp_path / "s.ambar")).time == A


def test_files_beside_a_virtual_file_are_of_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    virtual, other = tmp_path / "snap.hdf5", tmp_path / "other.hdf5"
    parts = write_swift(virtual, particles({0: 200}), files=2, box=BOX)
    shutil.copy(parts[0], virtual)
    with h5py.File(virtual, "r+") as file:
        file["Header"].attrs["Virtual"] = np.array([1], "i4")
    write_swift(other, particles({0: 200}), box=BOX)
    with pytest.raises(ValueError, match=r"other.hdf5: expected one of the 2 files"):
        ambar.convert([virtual, other], tmp_path / "s.ambar")
    monkeypatch.chdir(tmp_path)
    for number, given in enumerate(([virtual, parts[0].name], [parts[0].name, virtual, parts[1]])):
        ambar.convert(given, tmp_path / f"{number}.ambar", fsync=False)
        assert len(ambar.open_snapshot(tmp_path / f"{number}.ambar").species["gas"]) == 200


def test_halos_of_rockstar_in_a_ramses_output_are_in_code_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = RAMSES_CASES / "stars_3d" / "output_00002"
    lines = write_rockstar(tmp_path / "out_0.list", halos=20)
    text = (tmp_path / "out_0.list").read_text()
    (tmp_path / "out_0.list").write_text(text.replace(f"#a = {A:.6f}", "#a = 1.000000"))
    target = tmp_path / "r.ambar"
    ambar.convert(source, target, halos=tmp_path / "out_0.list", fsync=False)
    snapshot = ambar.open_snapshot(target)
    table = snapshot.halos["rockstar"].read()
    order = np.argsort(table["id"])
    np.testing.assert_allclose(table.column("vx", "km/s")[order], lines[:, 11], rtol=1e-9)
    np.testing.assert_allclose(table.column("x", "Mpc")[order], lines[:, 8] / H, rtol=1e-9)
    masses = snapshot.halos["rockstar"].read(["id", "mass"]).column("mass", "Msol")
    np.testing.assert_allclose(masses[order], lines[:, 2] / H, rtol=1e-4)
    radii = table["rvir"][order] * snapshot.info.units.length("kpc")
    np.testing.assert_allclose(radii, lines[:, 4] / H, rtol=1e-9)
    (tmp_path / "out_0.list").write_text(text)
    with pytest.raises(ValueError, match="expected a catalogue of the time 1"):
        ambar.convert(source, tmp_path / "s.ambar", halos=tmp_path / "out_0.list")
    (tmp_path / "out_0.list").write_text(text.replace(f"#a = {A:.6f}", "#a = 1.000000"))
    # A failure of the second commit leaves the target unchanged.
    before = target.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr("ambar.formats.ramses.kind.write_halos", fail)
    modes: tuple[tuple[Path, Any], ...] = ((target, "w"), (tmp_path / "s.ambar", "w-"))
    for path, mode in modes:
        with pytest.raises(OSError, match="no space"):
            ambar.convert(source, path, halos=tmp_path / "out_0.list", mode=mode)
    assert target.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out_0.list", "r.ambar"]


def test_snapshots_of_a_run_become_a_series(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder of snapdir_NNN was an error of each file, or an empty collection."""
    run_folder, target = tmp_path / "run", tmp_path / "run.ambar"
    for number in (0, 1):
        folder = run_folder / f"snapdir_{number:03}"
        folder.mkdir(parents=True)
        rows = {0: 300, 4: 20} if number else {0: 300}
        write_gadget(folder / f"snap_{number:03}.hdf5", particles(rows), files=2)
        (run_folder / f"groups_{number:03}").mkdir()
    write_subfind(run_folder / "groups_001" / "fof_tab_001.hdf5", groups=5, subhalos=0)
    bounds = {"stars/Masses": 0.1}
    done = ambar.convert(run_folder, target, error_bound=bounds, components=["gas", "stars"])
    assert done.converted == ["snapdir_000", "snapdir_001"]
    series = ambar.open_series(target)
    assert series.outputs == [0, 1]
    assert [list(one.species) for one in series] == [["gas"], ["gas", "stars"]]
    single = ambar.convert(run_folder / "snapdir_001", tmp_path / "one.ambar", fsync=False)
    assert single.converted
    alone = ambar.open_snapshot(tmp_path / "one.ambar")
    for name, values in alone.species["gas"].read().items():
        np.testing.assert_array_equal(series[1].species["gas"].read()[name], values)
    assert series[1].info == alone.info
    # A later call adds what is new, and replaces what has changed.
    folder = run_folder / "snapdir_002"
    shutil.copytree(run_folder / "snapdir_001", folder)
    for part in folder.iterdir():
        part.rename(part.with_name(part.name.replace("001", "002")))
    os.utime(run_folder / "snapdir_000" / "snap_000.1.hdf5")
    cut(run_folder / "snapdir_001" / "snap_001.1.hdf5")
    options: dict[str, Any] = {
        "error_bound": bounds,
        "components": ["gas", "stars"],
        "mode": "a",
    }
    with pytest.raises(ValueError, match="expected components="):
        ambar.convert(run_folder, target, mode="a", error_bound=bounds)
    again = ambar.convert(run_folder, target, on_error="skip", **options)
    assert (again.converted, again.replaced) == (["snapdir_002"], ["snapdir_000"])
    assert list(again.failed) == ["snapdir_001"]
    assert ambar.open_series(target).outputs == [0, 1, 2]
    assert ambar.open_series(target)[1].info == alone.info
    done = ambar.convert(str(run_folder / "snapdir_*2"), target, **options)
    assert done.skipped == ["snapdir_002"]
    ambar.open_store(target).verify()
    code, out, _ = run(capsys, "info", run_folder / "snapdir_000")
    assert code == 0
    assert "gadget4" in out
    assert run(capsys, "info", run_folder)[0] == 0
    with pytest.raises(ValueError, match="convert it first"):
        ambar.open(run_folder)
