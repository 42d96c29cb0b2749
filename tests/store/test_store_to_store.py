"""Stores from stores: chunks are copied verbatim, or encoded again with the same values."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers import plotfiles
from tests.helpers.command_line import run
from tests.helpers.range_server import RangeServer
from tests.helpers.sample_outputs import output
from tests.helpers.store_chunks import are_equal, chunks

zarr = pytest.importorskip("zarr")
pytest.importorskip("numcodecs")
pytest.importorskip("pcodec")


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    """Return all arrays as zarr-python reads them."""
    from ambar.codecs.zarr_python import AmbarCodec

    zarr.registry.register_codec("ambar", AmbarCodec)
    with zarr.storage.ZipStore(path, mode="r") as opened:
        group = zarr.open_group(opened, mode="r")
        found = dict(group.members(max_depth=None))
        return {
            name: np.asarray(node[...]) for name, node in found.items() if hasattr(node, "shape")
        }


def assert_same_values(path: Path, source: Path, names: Iterable[str] | None = None) -> None:
    """Check that arrays equal those of the source bit for bit, for zarr-python and for ambar."""
    found, expected = arrays_of(path), arrays_of(source)
    assert set(found) == (set(expected) if names is None else set(names))
    for name, values in found.items():
        assert values.dtype == expected[name].dtype, name
        if values.dtype.kind in "OT":
            assert values.tolist() == expected[name].tolist(), name
        else:
            assert values.tobytes() == expected[name].tobytes(), name
    ambar.open_store(path).verify()


def assert_same_cells(path: Path, source: Path, **selection: Any) -> None:
    """Check that the cells of a snapshot are those of a selection of the source."""
    made, original = ambar.open_snapshot(path).amr, ambar.open_snapshot(source).amr
    names = [*made.fields, "level", "ix", "iy", "iz"]
    found, expected = made.read(names), original.read(names, **selection)
    assert len(found) == len(expected) > 0
    for name in names:
        assert np.asarray(found[name]).tobytes() == np.asarray(expected[name]).tobytes(), name
    ambar.open_store(path).verify()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with arrays of all shapes of chunks, types and codecs."""
    path = tmp_path_factory.mktemp("plain") / "plain.ambar"
    random = np.random.default_rng(3)
    smooth = np.sin(np.linspace(0, 30, 300 * 400)).reshape(300, 400)
    with ambar.create(path, fsync=False) as writer:
        writer.attrs["title"] = "a run"
        writer.create_group("run", {"code": "solver"})
        writer.create_array(
            "run/d", smooth, dims=("y", "x"), chunks=(10, 50), shards=(20, 100), attrs={"unit": "g"}
        )
        writer.create_array("run/names", np.array(["a", "bb", ""], object))
        writer.create_array("run/bounded", random.random(5000), error_bound=0.01)
        writer.create_array("empty", np.zeros((0, 3), "i4"))
        writer.create_array("time", np.array(["2020-01-01", "NaT"], "M8[s]"))
        writer.create_array("single", np.array(3.5))
        writer.create_array("large", random.integers(0, 9, (300, 4000)), chunks=(50, 400))
    return path


def test_a_copy_has_the_same_chunks(plain: Path, tmp_path: Path) -> None:
    with ambar.create(plain.parent / "grown.ambar", fsync=False) as writer:
        writer.create_array("x", np.arange(9))
        writer.commit()
        writer.create_array("x", np.arange(10))
    for source in (plain, plain.parent / "grown.ambar"):
        target = tmp_path / source.name
        done = ambar.convert(source, target, fsync=False)
        assert chunks(target) == chunks(source)
        assert are_equal(source, target)
        assert_same_values(target, source)
        assert (done.source_bytes, done.stored_bytes) == (
            source.stat().st_size,
            target.stat().st_size,
        )
    some = tmp_path / "some.ambar"
    ambar.convert(plain, some, fields=["run/*", "single"], fsync=False)
    kept = [name for name in arrays_of(plain) if name.startswith("run/") or name == "single"]
    assert_same_values(some, plain, kept)
    assert chunks(some, "run/") == chunks(plain, "run/")
    opened = ambar.open_store(some)
    assert (opened.attrs["title"], opened["run"].attrs) == ("a run", {"code": "solver"})
    assert opened["run/d"].attrs == {"unit": "g"}


@pytest.mark.parametrize("profile", ["small", "raw"])
def test_a_profile_encodes_lossless_arrays_again(
    plain: Path, tmp_path: Path, profile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "x.ambar"
    monkeypatch.setattr("ambar.store.copies.copier._WINDOW", 1 << 20)
    ambar.convert(plain, target, profile=profile, fsync=False)
    assert_same_values(target, plain)
    made, original = ambar.open_store(target), ambar.open_store(plain)
    assert made["run/d"].codecs != original["run/d"].codecs
    for name in original:
        a, b = made[name], original[name]
        assert (a.dims, a.chunks, a.attrs, a.shape) == (b.dims, b.chunks, b.attrs, b.shape)
    # Values within a bound would change again.
    assert chunks(target, "run/bounded") == chunks(plain, "run/bounded")


def test_bounds_of_arrays_hold_and_do_not_add(plain: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.ambar"
    ambar.convert(plain, target, error_bound={"run/d": 1e-3}, fsync=False)
    made, original = ambar.open_store(target)["run/d"], ambar.open_store(plain)["run/d"]
    assert made.error_bound == 1e-3
    assert 0 < np.abs(made[:] - original[:]).max() <= 1e-3
    assert chunks(target, "large") == chunks(plain, "large")
    for bound in (0.1, {"run/bounded": 0.1}):
        with pytest.raises(ValueError, match=r"bounded has the error bound 0\.01, and a second"):
            ambar.convert(plain, tmp_path / "y.ambar", error_bound=bound)
    with pytest.raises(KeyError, match="no array 'none'; available"):
        ambar.convert(plain, tmp_path / "y.ambar", error_bound={"none": 0.1})
    assert sorted(tmp_path.iterdir()) == [target]


def test_forms_of_a_store_and_its_url(plain: Path, stores: dict[str, Path], tmp_path: Path) -> None:
    folder, unpacked, named = tmp_path / "d.ambar", tmp_path / "u.zarr", tmp_path / "store.nc"
    shutil.unpack_archive(stores["sedov"], unpacked, "zip")
    shutil.copy(plain, named)
    with ambar.create(folder, directory=True, fsync=False) as writer:
        values = np.arange(5000.0)
        writer.create_array("a", values, chunks=(500,))
    for source, original in ((unpacked, stores["sedov"]), (named, plain)):
        target = tmp_path / f"{source.stem}.ambar"
        ambar.convert(source, target, fsync=False)
        assert_same_values(target, original)
    ambar.convert(folder, tmp_path / "file.ambar", fsync=False)
    np.testing.assert_array_equal(ambar.open_store(tmp_path / "file.ambar")["a"][:], values)
    with RangeServer(plain.parent) as server:
        signed = f"{server.url}/plain.ambar?Signature=secret"
        ambar.convert(signed, tmp_path / "remote.ambar", fsync=False)
    assert_same_values(tmp_path / "remote.ambar", plain)
    assert ambar.log(tmp_path / "remote.ambar")[0].message == "copied from plain.ambar"
    assert b"secret" not in (tmp_path / "remote.ambar").read_bytes()


@pytest.mark.parametrize("profile", [None, "small"])
def test_fields_and_components_of_a_snapshot(
    stores: dict[str, Path], tmp_path: Path, profile: Any
) -> None:
    source, target = stores["gravpart"], tmp_path / "x.ambar"
    ambar.convert(source, target, profile=profile, fsync=False)
    assert_same_values(target, source)
    ambar.convert(
        source, target, mode="w", fields=["rho", "particles/mass"], profile=profile, fsync=False
    )
    assert_same_cells(target, source)
    found = ambar.open_snapshot(target)
    columns = ["position_x", "position_y", "position_z", "mass"]
    assert found.components == {"hydro": ["density"], "particles": columns}
    assert found.particles.fields == columns
    assert ambar.compare(source, target).held
    # Ranges of chunks prune as before.
    where, whole = "density > 2", ambar.open_snapshot(source).amr
    assert len(found.amr.read(["rho"], where=where)) == len(whole.read(["rho"], where=where))
    if profile is None:
        for name in ("amr/density", "amr/level", "particles/mass"):
            assert chunks(target, name) == chunks(source, name)
    ambar.convert(source, target, mode="w", components="gravity", fsync=False)
    assert list(ambar.open_snapshot(target).components) == ["gravity"]
    assert_same_cells(target, source)


def test_regions_and_levels_of_a_snapshot(stores: dict[str, Path], tmp_path: Path) -> None:
    source, target = stores["gravpart"], tmp_path / "x.ambar"
    selections: list[dict[str, Any]] = [
        {"region": ambar.Box((0.3, 0.3, 0.3), (0.7, 0.6, 0.7))},
        {"region": ambar.Sphere("bc", 0.2), "levels": (5, 5)},
        {"levels": (4, 5)},
    ]
    for selection in selections:
        ambar.convert(source, target, mode="w", fsync=False, **selection)
        assert_same_cells(target, source, **selection)
        region = selection.get("region")
        made, original = ambar.open_snapshot(target), ambar.open_snapshot(source)
        kept = original.particles.read(["mass", "id"], region=region)
        found = made.particles.read(["mass", "id"])
        np.testing.assert_array_equal(np.asarray(found["id"]), np.asarray(kept["id"]))
    # The size of the whole source says nothing about the part.
    assert "bytes" not in ambar.open_store(target).attrs["ambar"]["source"]
    with pytest.raises(ValueError, match="no cell is selected"):
        ambar.convert(source, tmp_path / "y.ambar", levels=(9, 9))
    assert sorted(tmp_path.iterdir()) == [target]


def test_info_and_xarray_state_the_sum_of_bounds(
    stores: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    xr = pytest.importorskip("xarray")
    once, twice, part = (tmp_path / f"{name}.ambar" for name in ("once", "twice", "part"))
    ambar.convert(
        stores["gravpart"],
        once,
        error_bound={"density": "1e-3 relative", "pressure": "60 dB"},
        fsync=False,
    )
    ambar.convert(once, twice, error_bound={"density": "1e-2 relative"}, fsync=False)
    region = ambar.Box((0, 0, 0), (0.5, 0.5, 0.5))
    with pytest.warns(UserWarning, match="without further loss"):
        ambar.convert(twice, part, region=region, fsync=False)
    for path in (twice, part):
        code, out, _ = run(capsys, "info", path)
        assert code == 0
        table = out[out.index("error bound of  to the original values  given bound") :]
        lines = [line.split() for line in table.splitlines()[1:3]]
        assert lines[0] == ["amr/density", "0.01101", "relative", "-"]
        assert (lines[1][0], lines[1][-2:]) == ("amr/pressure", ["60", "dB"])
        attributes = xr.open_dataset(path, engine="ambar", group="amr")["density"].attrs
        assert attributes["lossy_compression_maximum_relative_error"] == pytest.approx(0.01101)
    attributes = xr.open_dataset(once, engine="ambar", group="amr")["density"].attrs
    assert attributes["lossy_compression_maximum_relative_error"] == 1e-3
    # Exact copies of fields with bounds of levels keep the loss, too.
    plotfiles.write(tmp_path / "plt")
    for group, source in {"amr": stores["gravpart"], "amr/level_0": tmp_path / "plt"}.items():
        bounds = {"density": 1e-3, "density@1:": 1e-4}
        ambar.convert(source, once, mode="w", error_bound=bounds, fsync=False)
        with pytest.warns(UserWarning, match="without further loss"):
            ambar.convert(once, part, mode="w", region=region, fsync=False)
        stated = ambar.open_store(part)["amr"].attrs["ambar"]["error_bounds"]["density"]
        attributes = xr.open_dataset(part, engine="ambar", group=group)["density"].attrs
        assert attributes["lossy_compression_maximum_absolute_error"] == stated


def test_unknown_bounds_list_columns_with_their_owners(
    stores: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(KeyError, match=r"did you mean particles/mass\? available: .*density, .*"):
        ambar.convert(stores["gravpart"], tmp_path / "x.ambar", error_bound={"particles/mas": 1e-3})


def test_bounds_of_a_snapshot_add_up(stores: dict[str, Path], tmp_path: Path) -> None:
    source, once, twice = stores["gravpart"], tmp_path / "once.ambar", tmp_path / "twice.ambar"
    ambar.convert(source, once, error_bound={"density": 1e-2, "particles/mass": 1e-6}, fsync=False)
    # Only the bounded field is encoded again.
    assert chunks(once, "amr/pressure") == chunks(source, "amr/pressure")
    assert chunks(once, "amr/density") != chunks(source, "amr/density")
    ambar.convert(once, twice, error_bound={"density": 5e-2}, fsync=False)
    assert chunks(twice, "particles/") == chunks(once, "particles/")
    for path, bound in ((once, 1e-2), (twice, 6e-2)):
        found = ambar.compare(source, path)
        assert found.held
        stated = ambar.open_store(path)["amr"].attrs["ambar"]["error_bounds"]
        assert stated == {"density": pytest.approx(bound)}
        errors = np.asarray(ambar.open_snapshot(path).amr.read("rho")["rho"]) - np.asarray(
            ambar.open_snapshot(source).amr.read("rho")["rho"]
        )
        assert 0 < np.abs(errors).max() <= bound
    # A part of bounded values is stored without further loss, and states it.
    region = ambar.Box((0, 0, 0), (0.5, 0.5, 0.5))
    with pytest.warns(UserWarning, match="part of density is stored without further loss"):
        ambar.convert(once, tmp_path / "part.ambar", region=region, fields="density", fsync=False)
    assert_same_cells(tmp_path / "part.ambar", once, region=region)
    part = ambar.open_store(tmp_path / "part.ambar")["amr"].attrs["ambar"]
    assert part["error_bounds"] == {"density": 1e-2}
    # Relative bounds add up, too, here of a part.
    relative, parts = {"density": "0.01 relative"}, tmp_path / "parts.ambar"
    ambar.convert(source, twice, mode="w", error_bound=relative, fsync=False)
    ambar.convert(twice, parts, region=region, error_bound=relative, fsync=False)
    stated = ambar.open_store(parts)["amr"].attrs["ambar"]["error_bounds"]
    assert stated == {"density": "0.0201 relative"}
    exact, lossy = (
        np.asarray(ambar.open_snapshot(path).amr.read("rho", region=region)["rho"])
        for path in (source, parts)
    )
    assert 0.01 < np.max(np.abs(lossy / exact - 1)) <= 0.0201
    with pytest.raises(ValueError, match="density has the error bound '1e-2 relative', and a sec"):
        ambar.convert(twice, tmp_path / "y.ambar", error_bound={"density": 0.01})
    with pytest.raises(ValueError, match=r"density has the error bound 0\.01, and a second one"):
        ambar.convert(once, tmp_path / "y.ambar", error_bound={"density": "1e-3 relative"})
    with pytest.raises(KeyError, match="nothing"):
        ambar.convert(once, tmp_path / "y.ambar", error_bound={"nothing": 0.1})
    assert not (tmp_path / "y.ambar").exists()


def test_plotfiles_are_exported_from_copies(tmp_path: Path) -> None:
    plotfiles.write(tmp_path / "plt")
    source = tmp_path / "plt.ambar"
    ambar.convert(tmp_path / "plt", source, fsync=False)
    fields = ambar.open_snapshot(source).amr.fields

    def files(folder: Path) -> dict[str, bytes]:
        found = (path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in found}

    every: list[dict[str, Any]] = [{}, {"profile": "small"}]
    for number, options in enumerate(every):
        target = tmp_path / f"{number}.ambar"
        ambar.convert(source, target, fsync=False, **options)
        assert_same_values(target, source)
        ambar.export(target, tmp_path / f"plt{number}")
        assert files(tmp_path / f"plt{number}") == files(tmp_path / "plt")
    some = tmp_path / "some.ambar"
    ambar.convert(source, some, fields=fields[-1:], fsync=False)
    assert_same_cells(some, source)
    assert chunks(some, f"amr/level_0/{fields[-1]}") == chunks(source, f"amr/level_0/{fields[-1]}")
    ambar.export(some, tmp_path / "some")
    assert ambar.open_snapshot(tmp_path / "some").amr.fields == fields[-1:]
    bounded = tmp_path / "bounded.ambar"
    ambar.convert(source, bounded, error_bound="1e-3 of range", fsync=False)
    assert ambar.compare(source, bounded).held
    ambar.export(bounded, tmp_path / "bounded")


def test_steps_of_a_series(tmp_path: Path) -> None:
    source, target = tmp_path / "run.ambar", tmp_path / "last.ambar"
    ambar.convert(output("sedov").parent, source, fsync=False)
    done = ambar.convert(source, target, steps=-1, fields="rho", fsync=False)
    assert done.converted == ["output_00002"]
    assert ambar.open_series(target)[0].components == {"hydro": ["density"]}
    name = "output_00002/amr/density"
    assert chunks(target, name) == chunks(source, name)
    ambar.convert(source, target, mode="w", steps=slice(1, None), fsync=False)
    done = ambar.convert(source, target, mode="a", fsync=False)
    assert (done.converted, done.skipped) == (["output_00001"], ["output_00002"])
    assert are_equal(source, target)
    with pytest.raises(IndexError, match="position of one of 2 steps"):
        ambar.convert(source, tmp_path / "y.ambar", steps=2)
    with pytest.raises(ValueError, match="found 2:, which selects none"):
        ambar.convert(source, tmp_path / "y.ambar", steps=slice(2, None))


def test_nodes_beside_steps_of_arrays_are_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, whole, part = (tmp_path / f"{name}.ambar" for name in ("s", "whole", "part"))
    with ambar.create(path) as writer:
        writer.create_array("mesh/x", np.arange(4.0))
        writer.create_group("empty", {"note": "kept"})
        for number in range(3):
            writer.create_array(f"step_{number:06d}/u", np.full(4, float(number)))
        writer._create_group(
            "",
            {"ambar": {"version": 1, "kind": "series", "of": "arrays", "times": [0.0, 1.0, 2.0]}},
        )
    ambar.convert(path, whole)
    assert are_equal(path, whole)
    ambar.convert(path, part, steps=[2])
    found = ambar.open_store(part)
    assert sorted(found) == ["mesh/x", "step_000000/u"]
    assert found["step_000000/u"][0] == 2.0
    assert found["empty"].attrs["note"] == "kept"
    printed = run(capsys, "info", path)[1].split()
    assert printed[printed.index("steps") :][:6] == ["steps", "3", "times", "0", "to", "2"]


def test_one_bound_for_all_fields_of_a_snapshot(stores: dict[str, Path], tmp_path: Path) -> None:
    ambar.convert(stores["gravpart"], tmp_path / "x.ambar", error_bound="1e-3 of range")
    assert ambar.compare(stores["gravpart"], tmp_path / "x.ambar").held


def test_snapshots_of_particles_and_halos(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    from tests.helpers.particle_snapshots import particles, write_gadget, write_subfind

    write_gadget(tmp_path / "snap.hdf5", particles({0: 3000, 1: 2000}))
    write_subfind(tmp_path / "fof.hdf5")
    source, target = tmp_path / "snap.ambar", tmp_path / "x.ambar"
    ambar.convert(tmp_path / "snap.hdf5", source, halos=tmp_path / "fof.hdf5", fsync=False)
    ambar.convert(source, target, profile="small", fsync=False)
    assert_same_values(target, source)
    original = ambar.open_snapshot(source)
    ambar.convert(source, target, mode="w", fields=["gas/mass"], fsync=False)
    found = ambar.open_snapshot(target)
    columns = ["position_x", "position_y", "position_z", "Masses"]
    assert found.components == {"particles/gas": columns}
    np.testing.assert_array_equal(
        found.species["gas"].read(["mass", "x"])["mass"],
        original.species["gas"].read(["mass", "x"])["mass"],
    )
    region = ambar.Box((0, 0, 0), (0.5, 0.6, 0.7))
    ambar.convert(source, target, mode="w", region=region, fsync=False)
    found = ambar.open_snapshot(target)
    for name, tables in (("species", original.species), ("halos", original.halos)):
        for key, table in tables.items():
            expected, rows = table.read(["x"], region=region), getattr(found, name)[key].read(["x"])
            assert 0 < len(rows) < len(table.read(["x"]))
            np.testing.assert_array_equal(rows["x"], expected["x"])
    ambar.open_store(target).verify()


def test_openpmd_is_exported_from_copies(tmp_path: Path) -> None:
    pytest.importorskip("openpmd_api")
    from tests.helpers.openpmd_files import assert_equal, contents, write_warpx

    files = write_warpx(tmp_path / "openpmd_%06T.h5")
    source, target = tmp_path / "run.ambar", tmp_path / "x.ambar"
    ambar.convert(files, source, fsync=False)
    ambar.convert(source, target, steps=-1, profile="small", fsync=False)
    ambar.export(target, tmp_path / "again")
    assert [path.name for path in (tmp_path / "again").iterdir()] == ["openpmd_000200.h5"]
    ambar.convert(source, target, mode="a", fsync=False)
    ambar.export(target, tmp_path / "both")
    assert_equal(contents(files), contents(tmp_path / "both" / "openpmd_%06T.h5"))
    ambar.convert(source, target, mode="w", components="cells", fsync=False)
    with pytest.raises(ambar.UnsupportedError, match="plotfile|openPMD"):
        ambar.export(target, tmp_path / "none", format="openpmd")


def test_meshes_and_their_steps(tmp_path: Path) -> None:
    pv = pytest.importorskip("pyvista")
    random = np.random.default_rng(5)
    meshes = []
    for step in range(5):
        mesh = pv.Sphere(theta_resolution=60, phi_resolution=60)
        mesh["noise"] = random.random(mesh.n_points)
        mesh["height"] = mesh.points[:, 2] * (step + 1)
        mesh.cell_data["number"] = np.arange(mesh.n_cells) * 1.5 + step
        meshes.append(mesh)

    def check(found: Any, expected: Any, names: set[str]) -> None:
        read = found.read()
        np.testing.assert_array_equal(read.points, expected.points)
        np.testing.assert_array_equal(read.faces, expected.faces)
        for of in ("point_data", "cell_data"):
            kept = names & set(getattr(expected, of).keys())
            assert set(getattr(read, of).keys()) == kept
            for name in kept:
                np.testing.assert_array_equal(
                    getattr(read, of)[name], getattr(expected, of)[name], err_msg=name
                )

    every = {"Normals", "noise", "height", "number"}
    one, series = tmp_path / "one.ambar", tmp_path / "series.ambar"
    ambar.write_mesh(meshes[0], one, user_dict={"a": 1}, fsync=False)
    with ambar.open_mesh_series(series, "w-", fsync=False) as writer:
        for step, mesh in enumerate(meshes):
            writer.add(mesh, float(step), user_dict={"step": step})
    target = tmp_path / "x.ambar"
    for options, names in (
        ({}, every),
        ({"profile": "small"}, every),
        ({"fields": ["height", "num*"]}, {"height", "number"}),
    ):
        ambar.convert(one, target, mode="w", fsync=False, **options)
        check(ambar.open_mesh(target), meshes[0], names)
        assert ambar.open_mesh(target).user_dict == {"a": 1}
        ambar.open_store(target).verify()
    size = series.stat().st_size
    for steps, names in (
        (slice(None, 3), every),
        ([4, 1], every),
        (-1, {"noise"}),
        (None, {"height"}),
    ):
        fields = None if names is every else sorted(names)
        ambar.convert(series, target, mode="w", steps=steps, fields=fields, fsync=False)
        numbers = [0, 1, 2] if steps == slice(None, 3) else [1, 4] if steps == [4, 1] else [4]
        numbers = list(range(5)) if steps is None else numbers
        found = ambar.open_mesh_series(target)
        assert found.times == [float(number) for number in numbers]
        for mesh, number in zip(found, numbers, strict=True):
            check(mesh, meshes[number], names)
            assert mesh.user_dict == {"step": number}
        # Rows of other steps are left out.
        assert target.stat().st_size < size * 0.9
        ambar.open_store(target).verify()
    with pytest.raises(ambar.UnsupportedError, match="no error bound for a store of meshes"):
        ambar.convert(series, tmp_path / "y.ambar", error_bound=0.1)


def test_datasets_of_a_collection(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    random = np.random.default_rng(8)
    source, target = tmp_path / "c.ambar", tmp_path / "x.ambar"
    datasets = {}
    for number in range(30):
        depth = 30 if number < 20 else 7
        datasets[f"d{number}"] = xr.Dataset(
            {
                "t": ("depth", random.random(depth, np.float32), {"units": "K"}),
                "s": ("depth", random.random(depth)),
            },
            coords={"depth": np.arange(depth, dtype=float)},
            attrs={"platform": "argo" if number % 2 else "glider"},
        )
    encoding = {"s": {"error_bound": 0.01}}
    with ambar.open_collection(source, "w-", encoding=encoding, fsync=False) as collection:
        collection.add_many(datasets)
    original = ambar.open_collection(source)
    argo = original.choose('platform == "argo"')
    for options, names, fields in (
        ({}, list(datasets), ["t", "s"]),
        ({"profile": "small"}, list(datasets), ["t", "s"]),
        ({"datasets": 'platform == "argo"'}, argo, ["t", "s"]),
        ({"datasets": [f"d{n}" for n in range(20)]}, [f"d{n}" for n in range(20)], ["t", "s"]),
        ({"fields": ["t"]}, list(datasets), ["t"]),
    ):
        ambar.convert(source, target, mode="w", fsync=False, **options)
        found = ambar.open_collection(target)
        assert found.names == names
        for name in names:
            expected = original[name].load()[fields]
            if "s" in fields and "lossy_compression" in found[name].s.attrs:
                assert found[name].s.attrs["lossy_compression_error_bound"] == "1e-2"
                found_here = found[name].load()
                found_here.s.attrs = {}
                xr.testing.assert_identical(found_here, expected)
            else:
                xr.testing.assert_identical(found[name].load(), expected)
        found._catalogue.verify()
        ambar.open_store(target).verify()
        if names == [f"d{n}" for n in range(20)]:  # a complete family
            assert chunks(target, "f0/s") == chunks(source, "f0/s")
    done = ambar.convert(source, target, mode="w", datasets=["d3"], fsync=False)
    assert done.converted == ["d3"]
    done = ambar.convert(source, target, mode="a", fsync=False)
    assert (len(done.converted), done.skipped) == (29, ["d3"])
    ambar.convert(source, target, mode="w", error_bound={"t": 0.01}, fsync=False)
    found = ambar.open_collection(target)
    assert all(
        np.abs(found[name].t.values - datasets[name].t.values).max() <= 0.0101 for name in datasets
    )
    with pytest.raises(ValueError, match="found none that match"):
        ambar.convert(source, tmp_path / "y.ambar", datasets='platform == "none"')
    with pytest.raises(ValueError, match=r"was created with encoding=.*leave encoding \(err"):
        ambar.convert(source, target, mode="a", error_bound={"t": 0.1})
    with pytest.raises(ValueError, match="s has the error bound '1e-2', and a second one"):
        ambar.convert(source, tmp_path / "y.ambar", error_bound={"s": 0.1})
    with ambar.open_collection(tmp_path / "exact.ambar", "w-", fsync=False) as collection:
        collection.add_many({"e0": datasets["d0"], "e1": datasets["d1"]})
    ambar.merge([source, tmp_path / "exact.ambar"], tmp_path / "both.ambar", fsync=False)
    ambar.convert(tmp_path / "both.ambar", target, mode="w", datasets=["d0", "e0"], fsync=False)
    stated = ambar.open_collection(target)
    assert "lossy_compression" in stated["d0"].s.attrs
    xr.testing.assert_identical(stated["e0"].load(), datasets["d0"])


def test_damage_is_named_and_leaves_nothing(plain: Path, tmp_path: Path) -> None:
    damaged, target = tmp_path / "damaged.ambar", tmp_path / "y.ambar"
    shutil.copy(plain, damaged)
    chunk = ambar.open_store(plain)._core.array("/large").chunk_ranges()[3]
    with damaged.open("r+b") as file:
        file.seek(chunk.offset + 9)
        file.write(b"\xff\x00\xff")
    for profile in (None, "small"):
        with pytest.raises(ambar.CorruptError, match=r"damaged\.ambar.*large"):
            ambar.convert(damaged, target, profile=profile)
        assert sorted(tmp_path.iterdir()) == [damaged]
    # Arrays without damage can be saved.
    ambar.convert(damaged, target, fields=["run/*", "single"], fsync=False)
    assert_same_values(target, plain, ["run/d", "run/names", "run/bounded", "single"])
    damaged.write_bytes(plain.read_bytes()[:5000])
    with pytest.raises(ambar.CorruptError, match=r"damaged\.ambar"):
        ambar.convert(damaged, tmp_path / "z.ambar")


def test_refusals(plain: Path, stores: dict[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "y.ambar"
    for mode in ("w-", "w", "a"):
        with pytest.raises(ValueError, match="expected another path than that of the source"):
            ambar.convert(plain, plain, mode=mode)
    with pytest.raises(ValueError, match="expected another path than that of the source"):
        ambar.convert(plain, plain.parent / "." / plain.name, mode="w")
    with pytest.raises(ValueError, match=r"expected one store to convert, found 2; ambar\.merge"):
        ambar.convert([plain, plain], target)
    with pytest.raises(ValueError, match="found both"):
        ambar.convert([plain, output("sedov")], target)
    with pytest.raises(ValueError, match="levels does not apply to the kind 'arrays'"):
        ambar.convert(plain, target, levels=(1, 2))
    with pytest.raises(ValueError, match="steps does not apply to the kind 'snapshot'"):
        ambar.convert(stores["sedov"], target, steps=1)
    with pytest.raises(ValueError, match="covered does not apply"):
        ambar.convert(stores["sedov"], target, covered="drop")
    with pytest.raises(ValueError, match="expected a series for steps="):
        ambar.convert(plain, target, steps=1)
    with pytest.raises(KeyError, match="no component or field 'none'"):
        ambar.convert(stores["sedov"], target, fields=["none"])
    with pytest.raises(FileExistsError, match="the target already exists"):
        ambar.convert(plain, stores["sedov"])
    with pytest.raises(ValueError, match="converted as a whole"):
        ambar.convert(plain, stores["sedov"], mode="a")
    with pytest.raises(FileNotFoundError):
        ambar.convert(tmp_path / "none.ambar", target)
    (tmp_path / "foreign.ambar").write_bytes(b"no store")
    with pytest.raises(ambar.CorruptError, match=r"foreign\.ambar"):
        ambar.convert(tmp_path / "foreign.ambar", target)
    assert not target.exists()


def _limited(function: Callable[[], object], size: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with pytest.raises(OSError, match=r"y\.ambar"):
            function()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_interruptions_leave_no_target(plain: Path, tmp_path: Path) -> None:
    target = tmp_path / "y.ambar"

    def interrupted(*_: int) -> None:
        raise KeyboardInterrupt

    _limited(lambda: ambar.convert(plain, target), 1 << 18)
    for profile in (None, "raw"):
        options: dict[str, Any] = {"profile": profile, "progress": interrupted}
        with pytest.raises(KeyboardInterrupt):
            ambar.convert(plain, target, **options)
    assert list(tmp_path.iterdir()) == []
    ambar.convert(plain, target, fields="single", fsync=False)
    before = target.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        ambar.convert(plain, target, mode="w", progress=interrupted)
    _limited(lambda: ambar.merge([plain], target, mode="w"), 1 << 18)
    assert target.read_bytes() == before
    target.unlink()
    program = f"""
        import os, signal
        import ambar

        def kill(done, total):
            if done > 0:
                os.kill(os.getpid(), signal.SIGKILL)

        ambar.convert({str(plain)!r}, {str(target)!r}, progress=kill)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], check=False, env=os.environ.copy()
    )
    assert done.returncode == -signal.SIGKILL
    assert not target.exists()
    ambar.convert(plain, target, fsync=False)
    assert_same_values(target, plain)


def test_the_command_line(
    capsys: pytest.CaptureFixture[str], stores: dict[str, Path], tmp_path: Path
) -> None:
    target, run_store = tmp_path / "x.ambar", tmp_path / "run.ambar"
    source = stores["gravpart"]
    region = "0.3:0.7,0.3:0.6,0.3:0.7"
    code, printed, _ = run(capsys, "convert", source, target, "--region", region, "--fields", "rho")
    assert (code, printed.startswith(f"{target}: ")) == (0, True)
    assert_same_cells(target, source, region=ambar.Box((0.3, 0.3, 0.3), (0.7, 0.6, 0.7)))
    run(capsys, "convert", output("sedov").parent, run_store)
    for number, steps in enumerate(("0", "1:")):
        code, *_ = run(capsys, "convert", run_store, tmp_path / f"{number}.ambar", "--steps", steps)
        assert code == 0
    parts = [tmp_path / "0.ambar", tmp_path / "1.ambar"]
    code, *_ = run(capsys, "merge", *parts, tmp_path / "both.ambar")
    assert code == 0
    assert are_equal(run_store, tmp_path / "both.ambar")
    for arguments, expected in (
        (("convert", source, source), "choose another target"),
        (("convert", source, tmp_path / "y.ambar", "--where", "a"), "--where does not apply"),
        (("convert", run_store, tmp_path / "y.ambar", "--steps", "a"), "is not a range"),
        (("convert", source, tmp_path / "y.ambar", "--region", "0.3"), "is not X0:X1"),
        (("merge", *parts, parts[0], tmp_path / "y.ambar"), "--on-conflict skip"),
        (("merge", parts[0]), "expected stores and a target"),
        (("convert", run_store, tmp_path / "y.ambar", "--steps", "7"), "one of 2 steps"),
    ):
        code, _, error = run(capsys, *arguments)
        assert (code, expected in error) == (2, True), error
