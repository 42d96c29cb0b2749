"""Errors of common mistakes say what was expected, what was found, and what to do."""

from __future__ import annotations

import importlib
import io
import pickle
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import pyvista as pv
import xarray as xr
import zarr

import ambar
import ambar.xarray
from ambar.__main__ import main
from ambar._util.user_warnings import warn
from tests.helpers import example_files
from tests.helpers.amrex_plotfiles import write_plotfile
from tests.helpers.command_line import run
from tests.helpers.paths import ROOT
from tests.helpers.sample_outputs import output

_FILE = io.BytesIO()
with h5py.File(_FILE, "w"):
    pass
HDF5 = _FILE.getvalue()
NO_FOLDER = "the folder to write to does not exist; create it first"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    example_files.make_inputs(folder)
    example_files.make_stores(folder)
    ambar.convert(folder / "sedov", folder / "sedov.ambar")
    return folder


@pytest.fixture(autouse=True)
def examples(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    example_files.copy(made, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# The classes


def test_the_table_of_errors_is_true() -> None:
    """Each class of the first table derives from AmbarError, none of the second one does."""
    page = (ROOT / "docs/reference/errors.md").read_text()
    own, _, builtin = page.partition("Built-in errors")
    names = re.compile(r"^\| (`.*?`) \|", re.MULTILINE)
    listed = [set(re.findall(r"`(\w+)`", " ".join(names.findall(part)))) for part in (own, builtin)]
    derived = {name for name in ambar.__all__ if name.endswith("Error") and name != "AmbarError"}
    assert listed[0] == {"AmbarError", *derived}
    assert all(issubclass(getattr(ambar, name), ambar.AmbarError) for name in derived)
    builtins = importlib.import_module("builtins")
    assert {"FileNotFoundError", "FileExistsError", "OSError", "IndexError"} <= listed[1]
    for name in listed[1]:
        assert not issubclass(getattr(builtins, name), ambar.AmbarError)


@pytest.mark.parametrize(
    ("name", "base"), [("InvalidError", ValueError), ("NotFoundError", KeyError)]
)
def test_tracebacks_show_public_names(name: str, base: type[Exception]) -> None:
    error = getattr(ambar, name)("what was found")
    assert (type(error).__module__, isinstance(error, base)) == ("ambar", True)
    assert str(error) == "what was found"
    assert type(pickle.loads(pickle.dumps(error))) is type(error)


# Files and folders that are not stores


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("x.h5", HDF5, "an HDF5 file"),
        ("x", HDF5, "an HDF5 file"),
        ("x.nc", HDF5, "a NetCDF file"),
        ("x", b"CDF\x01" + bytes(99), "a NetCDF file"),
        ("x.vtu", b"<?xml version='1.0'?>\n<VTKFile></VTKFile>", "a VTK file"),
        ("x", b"<?xml version='1.0'?>\n<VTKFile></VTKFile>", "a VTK file"),
        ("x", b"# vtk DataFile Version 5.1\n", "a VTK file"),
    ],
)
def test_files_of_other_programs(
    name: str, content: Any, what: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    expected = f"{path}: expected a store of ambar, found {what}; convert it first: ambar convert"
    for command in ("info", "ls", "verify"):
        code, _, err = run(capsys, command, path)
        assert (code, expected in err) == (2, True), err
    for opener in (ambar.open, ambar.open_store, ambar.open_collection):
        with pytest.raises(ValueError, match=re.escape(expected)):
            opener(path)


def test_outputs_that_are_not_stores(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    plotfile = write_plotfile(tmp_path / "plt00005")
    for path, what in ((output("gravpart"), "a RAMSES output"), (plotfile, "a plotfile of AMReX")):
        code, _, err = run(capsys, "verify", path)
        assert (code, f"found {what}; convert it first: ambar convert {path}" in err) == (2, True)


def test_warnings_name_the_line_of_the_caller() -> None:
    with pytest.warns(UserWarning, match="what was found") as found:
        warn("what was found")
    assert found[0].filename == __file__


def test_advice_quotes_paths_for_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "it's a run"
    folder.mkdir()
    (folder / "x.vtu").write_bytes(b"<VTKFile></VTKFile>")
    for path, source in ((folder / "x.vtu", folder / "x.vtu"), (folder, folder / "*.vtu")):
        command = f"ambar convert {shlex.quote(str(source))} out.ambar"
        with pytest.raises(ambar.InvalidError, match=re.escape(command)):
            ambar.open_store(path)


def test_an_empty_file(tmp_path: Path) -> None:
    for name in ("x.ambar", "x.nc"):
        path = tmp_path / name
        path.touch()
        with pytest.raises(ambar.CorruptError, match=r"the file is empty; restore it from a copy$"):
            ambar.open(path)


@pytest.mark.parametrize("file", ["Header", "Level_0/Cell_H", "DM/Level_0/Particle_H"])
def test_files_of_plotfiles(file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree("plt00200", tmp_path / "run" / "plt00200"))
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    if not (folder / file).exists():
        (folder / file).write_text("(1 0)")
    for command in (["info"], ["convert", "x.ambar"]):
        code, _, err = run(capsys, command[0], folder / file, *command[1:])
        assert code in (2, 4)
        assert f"found a file of the plotfile {folder}; give the folder" in err
    assert not Path("x.ambar").exists()


def test_folders(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="ambar convert profiles out.ambar"):
        ambar.open("profiles")
    Path("steps").mkdir()
    Path("steps/wing_0.vtu").touch()
    with pytest.raises(ValueError, match=r"wing_0.vtu; .*ambar convert 'steps/\*.vtu' out"):
        ambar.compare("run.ambar", "steps")
    Path("nothing").mkdir()
    with pytest.raises(KeyError, match=r"zarr.json.*RAMSES output.*plotfile.*an empty folder"):
        ambar.open("nothing")
    code, _, err = run(capsys, "ls", "output_00002")
    assert (code, "found a RAMSES output; convert it first" in err) == (2, True)
    Path("old.zarr").mkdir()
    Path("old.zarr/.zgroup").write_text('{"zarr_format": 2}', encoding="utf-8")
    with pytest.raises(ValueError, match="found a Zarr store of version 2; convert it first"):
        ambar.open("old.zarr")


def test_an_array_of_zarr_without_a_group(tmp_path: Path) -> None:
    """The advice was `ambar convert`, which needs a group."""
    folder, store = tmp_path / "old.zarr", tmp_path / "new.ambar"
    zarr.create_array(folder, data=np.arange(6), chunks=(3,), zarr_format=2)
    with pytest.raises(ambar.InvalidError, match="found a Zarr array of version 2; ") as found:
        ambar.open(folder)
    advice = "with ambar.create(store) as writer: writer.create_array(name, data=zarr.open_array("
    assert advice in str(found.value)
    with ambar.create(store) as writer:
        writer.create_array("x", data=zarr.open_array(folder)[...])
    assert ambar.open_store(store)["x"][:].tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("content", [9, 5000, b"nothing of the kind"])
def test_a_damaged_store_is_not_converted(content: Any, capsys: pytest.CaptureFixture[str]) -> None:
    store = Path("run.ambar").read_bytes()
    Path("cut.ambar").write_bytes(store[:content] if isinstance(content, int) else content)
    code, _, err = run(capsys, "convert", "cut.ambar", "out.ambar")
    assert (code, "cut short" in err, err.count("cut.ambar")) == (1, True, 1), err


# Targets


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{tmp_path}: expected a file to replace, found a folder"):
        ambar.convert("output_00002", tmp_path, mode="w")


@pytest.mark.parametrize(
    "write",
    [
        ambar.create,
        lambda target: ambar.create(target, "a"),
        lambda target: ambar.create(target, directory=True),
        lambda target: ambar.write_mesh(example_files.wing(), target),
        lambda target: ambar.open_mesh_series(target, "w-").add(example_files.wing(), 0.0),
        lambda target: ambar.open_collection(target, "w"),
        lambda target: ambar.ingest("profiles", target),
        xr.Dataset({"a": ("x", np.arange(3))}).ambar.write,
        lambda target: ambar.convert("output_00002", target),
        lambda target: ambar.convert("wing.vtu", target),
        lambda target: ambar.export("wing.ambar", target.with_suffix(".vtu"), mode="w"),
    ],
)
def test_the_folder_of_a_target_does_not_exist(write: Any, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=NO_FOLDER) as raised:
        write(tmp_path / "no" / "x.ambar")
    assert Path(raised.value.filename).parent == tmp_path / "no"
    assert Path(raised.value.filename).stem == "x"
    assert not Path("no").exists()


def test_export_to_a_folder_that_does_not_exist() -> None:
    with pytest.raises(FileNotFoundError, match=NO_FOLDER):
        ambar.export("wing.ambar", "no/x.vtu")


def test_a_path_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.ambar"
    assert (
        run(capsys, "info", path)[2]
        == f"error: {path}: No such file or directory; check the path\n"
    )
    with pytest.raises(FileNotFoundError) as raised:
        ambar.open(path)
    assert str(raised.value) == f"[Errno 2] No such file or directory: {str(path)!r}"


@pytest.mark.parametrize("source", ["profiles", "profiles/station_0040.nc", "sedov"])
def test_resume_with_a_store_of_another_kind(
    source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "convert", source, "run.ambar", "--resume")
    assert code == 2
    assert "found a store of the kind 'snapshot'" in err
    assert "choose another name, or replace the store with --overwrite" in err


# Arguments


@pytest.mark.parametrize("path", ["run.ambar", "output_00002", "plt00200"])
def test_invalid_regions_and_levels(path: str) -> None:
    snapshot = ambar.open_snapshot(path)
    reads: list[Any] = [snapshot.amr.read, snapshot.load, snapshot.amr.chunks_touched]
    for read in reads:
        with pytest.raises(TypeError, match=r"a region such as ambar.Box .* found \(0, 1\)"):
            read(region=(0, 1))
        for levels in (5, (5,), "ab"):
            with pytest.raises(TypeError, match=r"expected levels=\(lowest, highest\).* found "):
                read(levels=levels)
    with pytest.raises(TypeError, match="expected an integer as max_level, found 'a'"):
        snapshot.load(max_level="a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected levels=\(lowest, highest\)"):
        snapshot.amr.to_vtk(levels=5)  # type: ignore[arg-type]


def test_an_invalid_region_of_particles() -> None:
    particles = ambar.open_snapshot("run.ambar").particles
    with pytest.raises(TypeError, match=r"found \(0, 1\)"):
        particles.read(region=(0, 1))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("store", "count", "item"), [("steps.ambar", 3, "step"), ("sedov.ambar", 2, "output")]
)
def test_positions_in_series(store: str, count: int, item: str) -> None:
    series: Any = ambar.open(store)
    for wrong in (count, -count - 1):
        expected = f"one of {count} {item}s, from 0 to {count - 1} or from -{count} to -1; found"
        with pytest.raises(IndexError, match=f"{store}: .*{expected} {wrong}(; output.*)?$"):
            series[wrong]
    for index in ("a", 1.5, None):
        with pytest.raises(TypeError, match=f"{store}: expected the position of one {item}"):
            series[index]
    assert repr(series[np.int64(-1)]) == repr(series[count - 1])


# Names


def test_error_bounds_of_meshes(capsys: pytest.CaptureFixture[str]) -> None:
    mesh = example_files.wing()
    with pytest.raises(KeyError, match=r"did you mean pressure\? available: pressure"):
        ambar.write_mesh(mesh, "x.ambar", error_bound={"presure": 1e-3})
    code, _, err = run(capsys, "convert", "wing.vtu", "x.ambar", "--error-bound", "hh=1e-3")
    assert (code, "such an array does not exist; available: pressure" in err) == (3, True)
    rng = np.random.default_rng(1)
    mesh = pv.ImageData(dimensions=(20, 20, 20))
    for name in ("velocity_x", "velocity_y", "velocity_z", "p [Pa]"):
        mesh.point_data[name] = rng.random(mesh.n_points)
    bounds = {"velocity_*": 1e-2, "velocity_y": 1e-4, "*": 1e-6, "*_z": 1e-3}
    ambar.write_mesh(mesh, "x.ambar", error_bound=bounds)
    found = ambar.read_mesh("x.ambar")
    for name, bound in (("velocity_x", 1e-2), ("velocity_y", 1e-4), ("p [Pa]", 1e-6)):
        error = np.abs(found[name] - mesh[name]).max()
        assert bound / 10 < error <= bound, name


def test_unknown_variables_of_collections() -> None:
    collection = ambar.open_collection("profiles.ambar")
    expected = r"did you mean 'temperature'\? available: temperature"
    with pytest.raises(KeyError, match=expected):
        collection.read("temprature")
    with pytest.raises(KeyError, match=expected):
        collection.stats("temprature")
    with pytest.raises(KeyError, match=expected):
        collection.to_dataframe(variables=["temprature"])


@pytest.mark.parametrize("path", ["run.ambar", "output_00002", "plt00200"])
def test_unknown_fields(path: str) -> None:
    amr = ambar.open_snapshot(path).amr
    for read in (amr.read, amr.project, amr.slice, amr.dtype):
        with pytest.raises(
            KeyError, match=rf"{path}: column \"densty\" .* mean 'density'\? avail[^;]*$"
        ):
            read("densty")
    if not path.endswith("ambar"):
        with pytest.raises(KeyError, match=r"did you mean '?density'?\?"):
            ambar.convert(path, "x.ambar", fields=["densty"])


def test_unknown_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "ls", "run.ambar", "nosuch")
    assert (code, "array or group /nosuch does not exist; available: amr, particles" in err) == (
        3,
        True,
    )
    with pytest.raises(
        KeyError, match=r"/amr/densty does not exist; did you mean 'density'\? .* in /amr$"
    ):
        ambar.open_store("run.ambar")["amr/densty"]
    with ambar.create("mpi.ambar") as writer:  # as programs write steps with MPI
        times = [0.0, 2.0, 0.5, 1.0]
        about = {"version": 1, "kind": "series", "of": "arrays", "times": times}
        writer._create_group("", {"ambar": about})
        for number in range(4):
            writer.create_array(f"step_{number:06}/h", np.zeros(3))
    with pytest.raises(
        KeyError, match=r"/step_9/h does not exist; available: step_000000, step_000001"
    ):
        ambar.open_store("mpi.ambar")["step_9/h"]
    with pytest.raises(ValueError, match="found a Store of the kind 'step series'; use ambar.open"):
        ambar.open_series("mpi.ambar")
    code, _, err = run(capsys, "export", "mpi.ambar", "mpi.nc")
    assert (code, "found the kind 'step series'; write NetCDF with xarray" in err) == (4, True)
    assert "open_dataset('mpi.ambar', group='step_000000').to_netcdf('mpi.nc')" in err
    code, out, _ = run(capsys, "info", "mpi.ambar")
    assert (code, "0 to 2, earlier than before at step 2" in out) == (0, True)
    assert "step series" in out


def test_what_commands_cannot_do(capsys: pytest.CaptureFixture[str]) -> None:
    """The advice works as typed in the shell."""
    code, out, _ = run(capsys, "info", "sedov")
    assert (code, "output_00001" in out, "output_00002" in out) == (0, True, True)
    code, _, err = run(capsys, "plot", "run.ambar", "x.png", "-f", "particles/mass")
    assert (code, "ambar plot draws particles with --particles" in err) == (3, True)
    code, out, _ = run(capsys, "repair", "run.ambar")
    assert (code, "Damaged values cannot be repaired: `ambar verify`" in out) == (0, True)
    with pytest.raises(ValueError, match='kind .*; write mode="w"; options'):
        ambar.convert("output_00002", "x.ambar", overwrite=True)
    with pytest.raises(IndexError, match=r"output\(number\) returns the output of a number"):
        ambar.open_series("sedov.ambar")[9]
    with pytest.raises(KeyError, match=r"ambar.open_collection\(path\)\['station_0040'\]"):
        xr.open_dataset("profiles.ambar", group="station_0040")


def test_small_meshes_list_their_arrays(capsys: pytest.CaptureFixture[str]) -> None:
    """Their arrays are in the description of the mesh: `ambar ls` printed an empty table."""
    mesh = pv.UnstructuredGrid([8, *range(8)], [12], np.indices((2, 2, 2)).reshape(3, 8).T * 1.0)
    mesh["height"] = np.arange(8.0)
    ambar.write_mesh(mesh, "cube.ambar")
    code, out, _ = run(capsys, "ls", "cube.ambar")
    assert (code, "point/height" in out, "geometry/points" in out) == (0, True, True)
    code, _, err = run(capsys, "export", "cube.ambar", "cube.stl")
    assert (code, "surfaces only" in err, "extract_surface" in err) == (4, True, True)


# Interrupts


def test_an_interrupt_during_the_imports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "ambar.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "ambar.cli")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit) as done:
        main()
    assert (done.value.code, capsys.readouterr().err) == (130, "interrupted\n")
