"""Merges of stores: all steps, datasets and arrays, with the same chunks; conflicts are listed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.paths import RAMSES
from tests.helpers.sample_outputs import output
from tests.helpers.store_chunks import are_equal, chunks

zarr = pytest.importorskip("zarr")


def test_outputs_of_series(tmp_path: Path) -> None:
    run = tmp_path / "run.ambar"
    ambar.convert(output("sedov").parent, run, fsync=False)
    first, second = tmp_path / "first.ambar", tmp_path / "second.ambar"
    ambar.convert(run, first, steps=0, fsync=False)
    ambar.convert(output("sedov"), second, profile="small", fsync=False)  # a single output
    both = tmp_path / "both.ambar"
    ambar.merge([second, first], both, fsync=False)
    assert ambar.open_series(both).outputs == [1, 2]
    assert chunks(both, "output_00001/") == chunks(run, "output_00001/")
    assert chunks(both, "output_00002/") == chunks(second)
    ambar.open_store(both).verify()
    with pytest.raises(ValueError, match=r"different outputs.*found 1 .*: output_00002 \(again in"):
        ambar.merge([run, second], tmp_path / "y.ambar")
    assert not (tmp_path / "y.ambar").exists()
    for on_conflict, kept in (("skip", run), ("replace", both)):
        done = ambar.merge([run, second], both, mode="w", on_conflict=on_conflict, fsync=False)  # type: ignore[arg-type]
        names = (done.skipped, done.replaced)
        assert names == ((["output_00002"], []) if kept is run else ([], ["output_00002"]))
        assert done.converted == ["output_00001", "output_00002"]
        assert "of 1 in several stores: output_00002" in str(done)
        (commit,) = ambar.log(both)
        assert commit.message == "merged run.ambar, second.ambar"
        name = "output_00002/"
        expected = chunks(kept, name) if on_conflict == "skip" else chunks(second)
        assert chunks(both, name) == expected
    # Into an existing store.
    ambar.convert(run, both, mode="w", steps=1, fsync=False)
    ambar.merge([first], both, mode="a", fsync=False)
    assert are_equal(run, both)
    assert ambar.log(both)[-1].message == "copied from run.ambar"
    before = both.read_bytes()
    with pytest.raises(ValueError, match="different outputs"):
        ambar.merge([first], both, mode="a")
    assert both.read_bytes() == before
    ambar.merge([second], both, mode="a", on_conflict="replace", fsync=False)
    assert chunks(both, "output_00002/") == chunks(second)


def test_steps_of_meshes(tmp_path: Path) -> None:
    pv = pytest.importorskip("pyvista")
    random = np.random.default_rng(5)
    meshes, paths = [], []
    for part in range(3):
        paths.append(tmp_path / f"{part}.ambar")
        with ambar.open_mesh_series(paths[-1], "w-", fsync=False) as series:
            for step in range(3):
                mesh = pv.Sphere(theta_resolution=50, phi_resolution=50)
                mesh["noise"] = random.random(mesh.n_points)
                mesh["height"] = mesh.points[:, 2] * step
                meshes.append(mesh)
                series.add(mesh, 3.0 * part + step, user_dict={"step": len(meshes)})
    target = tmp_path / "all.ambar"

    def check(count: int) -> None:
        found = ambar.open_mesh_series(target)
        assert found.times == [float(step) for step in range(count)]
        for number, mesh in enumerate(found):
            read = mesh.read()
            np.testing.assert_array_equal(read.points, meshes[number].points)
            for name in ("noise", "height"):
                np.testing.assert_array_equal(read[name], meshes[number][name])
            assert mesh.user_dict == {"step": number + 1}
        ambar.open_store(target).verify()

    ambar.merge(paths[:2], target, fsync=False)
    check(6)
    # Arrays of several steps are stored once, and verbatim.
    assert target.stat().st_size < 1.1 * sum(path.stat().st_size for path in paths[:2])
    assert chunks(target, "parts/1/changing/") == chunks(paths[1], "changing/")
    ambar.merge(paths[2:], target, mode="a", fsync=False)
    check(9)
    meshes.append(meshes[0])
    with ambar.open_mesh_series(target, "a", fsync=False) as series:
        series.add(meshes[0], 9.0, user_dict={"step": 10})
    check(10)
    with pytest.raises(ValueError, match=r"0\.ambar: expected steps after time 5\.0"):
        ambar.merge([paths[1], paths[0]], tmp_path / "y.ambar")


def test_datasets_of_collections(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    random = np.random.default_rng(8)
    datasets: dict[str, Any] = {}
    paths = []
    for part, options in enumerate(({}, {"error_bound": 0.01}, {})):
        paths.append(tmp_path / f"{part}.ambar")
        encoding = {"t": options} if options else None
        with ambar.open_collection(paths[-1], "w-", encoding=encoding, fsync=False) as collection:
            for number in range(20):
                name = f"p{part}_{number}"
                datasets[name] = xr.Dataset(
                    {"t": ("depth", random.random(25))},
                    coords={"depth": np.arange(25.0)},
                    attrs={"part": part},
                )
                collection.add(name, datasets[name])
    target = tmp_path / "all.ambar"
    with pytest.raises(ValueError, match=r"expected the encoding .* of 't'"):
        ambar.merge([paths[1], _other(tmp_path)], target)
    ambar.merge(paths, target, fsync=False)
    found = ambar.open_collection(target)
    assert found.names == list(datasets)
    sources = [ambar.open_collection(path) for path in paths]
    for name in datasets:
        original = sources[int(name[1])][name].load()
        xr.testing.assert_identical(found[name].load(), original)
    for number, path in enumerate(paths):
        assert chunks(target, f"f{number}/") == chunks(path, "f0/")
    found._catalogue.verify()
    ambar.open_store(target).verify()
    np.testing.assert_array_equal(found.read("t")["t"][3], datasets["p0_3"].t)
    # It can be changed as any other collection.
    with ambar.open_collection(target, "a", fsync=False) as collection:
        collection.remove("p0_0")
        collection.add("new", datasets["p0_1"])
    xr.testing.assert_identical(ambar.open_collection(target)["new"].load(), datasets["p0_1"])
    with pytest.raises(ValueError, match=r"different names of datasets .*found 40 .*and 20 more"):
        ambar.merge([*paths, paths[0], paths[2]], tmp_path / "y.ambar")
    assert not (tmp_path / "y.ambar").exists()
    changed = tmp_path / "changed.ambar"
    with ambar.open_collection(changed, "w-", fsync=False) as collection:
        collection.add("p0_5", datasets["p0_6"])
    for on_conflict, kept in (("skip", "p0_5"), ("replace", "p0_6")):
        ambar.merge([paths[0], changed], target, mode="w", on_conflict=on_conflict, fsync=False)  # type: ignore[arg-type]
        found = ambar.open_collection(target)
        assert len(found) == 20
        xr.testing.assert_identical(found["p0_5"].load(), datasets[kept])
    ambar.merge([paths[2]], target, mode="a", fsync=False)
    assert len(ambar.open_collection(target)) == 40
    xr.testing.assert_identical(ambar.open_collection(target)["p2_7"].load(), datasets["p2_7"])


def _other(folder: Path) -> Path:
    path = folder / "other.ambar"
    encoding = {"t": {"error_bound": 0.5}}
    with ambar.open_collection(path, "w-", encoding=encoding, fsync=False) as collection:
        collection.add("other", {"t": np.arange(3.0)})
    return path


def test_arrays_and_groups(tmp_path: Path) -> None:
    a, b, target = tmp_path / "a.ambar", tmp_path / "b.ambar", tmp_path / "x.ambar"
    with ambar.create(a, fsync=False) as writer:
        writer.attrs.update(title="one", shared=1)
        writer.create_group("run", {"code": "solver"})
        writer.create_array("run/d", np.arange(5000.0), chunks=(500,))
    with ambar.create(b, fsync=False) as writer:
        writer.attrs.update(shared=1, more=2)
        writer.create_array("run/e", np.arange(7))
        writer.create_group("alone", {"note": "empty"})
    ambar.merge([a, b], target, fsync=False)
    found = ambar.open_store(target)
    assert list(found) == ["run/d", "run/e"]
    attributes = {name: value for name, value in found.attrs.items() if name != "ambar"}
    assert attributes == {"title": "one", "shared": 1, "more": 2}
    assert (found["run"].attrs, found["alone"].attrs) == ({"code": "solver"}, {"note": "empty"})
    assert chunks(target, "run/d") == chunks(a, "run/d")
    with zarr.storage.ZipStore(target, mode="r") as opened:
        np.testing.assert_array_equal(zarr.open_group(opened, mode="r")["run/e"][:], np.arange(7))
    with ambar.create(tmp_path / "c.ambar", fsync=False) as writer:
        writer.attrs["shared"] = 3
        writer.create_array("run/d", np.arange(3))
    with pytest.raises(ValueError, match=r"found 2 .*: run/d \(again.*the attribute 'shared' of /"):
        ambar.merge([a, b, tmp_path / "c.ambar"], tmp_path / "y.ambar")
    ambar.merge([tmp_path / "c.ambar"], target, mode="a", on_conflict="replace", fsync=False)
    found = ambar.open_store(target)
    assert (found["run/d"].shape, found.attrs["shared"], found.attrs["more"]) == ((3,), 3, 2)
    found.verify()
    with ambar.create(tmp_path / "d.ambar", fsync=False) as writer:
        writer.create_array("run", np.arange(3))
    with pytest.raises(ValueError, match=r"found 1 .*: run \(again in .*; rename one"):
        ambar.merge([a, tmp_path / "d.ambar"], tmp_path / "y.ambar", on_conflict="skip")
    assert not (tmp_path / "y.ambar").exists()


def test_refusals(stores: dict[str, Path], tmp_path: Path) -> None:
    plain, target = tmp_path / "plain.ambar", tmp_path / "y.ambar"
    with ambar.create(plain, fsync=False) as writer:
        writer.create_array("x", np.arange(3))
    with pytest.raises(ValueError, match="expected a store of the kind 'snapshot', as"):
        ambar.merge([stores["sedov"], plain], target)
    with pytest.raises(ValueError, match="expected another path than that of the source"):
        ambar.merge([stores["sedov"], plain], plain, mode="w")
    with pytest.raises(ValueError, match="expected at least one store"):
        ambar.merge([], target)
    with pytest.raises(ValueError, match="invalid on_conflict 'some'"):
        ambar.merge([plain], target, on_conflict="some")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        ambar.merge([plain, tmp_path / "none.ambar"], target)
    with pytest.raises(ValueError, match="expected a series of outputs to add to"):
        ambar.merge([stores["sedov"]], plain, mode="a")
    flat = tmp_path / "flat.ambar"
    ambar.convert(RAMSES / "sedov2d_small" / "output_00002", flat, fsync=False)
    with pytest.raises(ValueError, match="expected outputs of ramses in 3 dimensions"):
        ambar.merge([stores["sedov"], flat], target, on_conflict="skip")
    with pytest.raises(ValueError, match="expected a store of arrays to add to"):
        ambar.merge([plain], flat, mode="a")
    (tmp_path / "foreign.ambar").write_bytes(b"PK no store")
    with pytest.raises(ambar.CorruptError, match=r"foreign\.ambar"):
        ambar.merge([plain, tmp_path / "foreign.ambar"], target)
    assert not target.exists()


def test_other_files_are_not_overwritten(stores: dict[str, Path], tmp_path: Path) -> None:
    source, other = stores["gravpart"], tmp_path / "notes.txt"
    other.write_text("my notes")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("my notes")
    calls: list[Callable[[Path], object]] = [
        lambda target: ambar.convert(source, target, mode="w"),
        lambda target: ambar.convert(output("sedov"), target, mode="w"),
        lambda target: ambar.merge([source], target, mode="w"),
    ]
    for call in calls:
        with pytest.raises(FileExistsError, match="expected a store of ambar to replace"):
            call(other)
        with pytest.raises(ValueError, match="expected a file to replace, found a folder"):
            call(tmp_path / "folder")
    assert other.read_text() == "my notes"
    (tmp_path / "empty").touch()
    ambar.convert(source, tmp_path / "empty", mode="w", fsync=False)
    ambar.convert(source, tmp_path / "empty", mode="w", fsync=False)
