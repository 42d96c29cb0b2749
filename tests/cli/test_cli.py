"""The command line: what it prints, what it writes, its exit codes."""

from __future__ import annotations

import errno
import json
import os
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from typer.main import get_command

import ambar
import ambar.xarray
from ambar.cli import app, main
from ambar.snapshot.copies.stored_group import StoredGroup
from ambar.snapshot.field_rows import StoredFields
from ambar.store.error_bounds import parse_bounds
from tests.helpers import plotfiles
from tests.helpers.amrex_plotfiles import write_plotfile
from tests.helpers.command_line import run
from tests.helpers.paths import RAMSES
from tests.helpers.plotfile_writer import Plotfile
from tests.helpers.sample_outputs import CASES, amrex_sample, output


@pytest.fixture
def store(stores: dict[str, Path]) -> Path:
    return stores["gravpart"]


def test_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "run.ambar"
    code, out, _ = run(
        capsys, "convert", output("sedov"), target, "--profile", "small", "--fields", "rho,p",
        "--levels", "4:7", "--max-level", 7, "--no-fsync", "-t", 1,
    )  # fmt: skip
    assert code == 0
    assert "(a part of the source)" in out
    assert ambar.open_snapshot(target).amr.fields == ["density", "pressure"]
    code, _, err = run(capsys, "convert", output("sedov"), target)
    assert code == 4
    assert "run.ambar" in err
    code, out, _ = run(capsys, "convert", output("sedov"), target, "--overwrite", "--json")
    assert code == 0
    assert json.loads(out)["stored_bytes"] == target.stat().st_size


@pytest.mark.parametrize("option", ["--components", "--fields"])
@pytest.mark.parametrize("code", ["ramses", "amrex"])
def test_a_part_has_no_ratio_to_the_whole_source(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, option: str
) -> None:
    source, target = output("gravpart"), tmp_path / "part.ambar"
    part, name = {"--components": "hydro", "--fields": "density"}[option], "run.ambar"
    if code == "amrex":
        source, part = amrex_sample("advection_plt00006"), part.replace("hydro", "cells")
        part = part.replace("density", "phi")
    _, out, _ = run(capsys, "convert", source, target, option, part)
    assert "(a part of the source)" in out
    _, out, _ = run(capsys, "info", target)
    assert "smaller" not in out
    _, out, _ = run(capsys, "convert", source, target, option, part, "--overwrite", "--json")
    report = json.loads(out)
    assert (report["is_part"], report["ratio"]) == (True, None)
    # A part of a store, and all of the source.
    _, out, _ = run(capsys, "convert", target, tmp_path / "copy.ambar", option, part)
    assert "(a part of the source)" in out
    _, out, _ = run(capsys, "convert", source, tmp_path / name)
    assert "smaller)" in out
    _, out, _ = run(capsys, "info", tmp_path / name)
    assert "smaller than its source" in out


def test_convert_lists_what_it_skips(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Outputs that fail are listed at the end, and the exit code is not 0."""
    run_folder, target = tmp_path / "run", tmp_path / "run.ambar"
    shutil.copytree(RAMSES / CASES["sedov"], run_folder)
    shutil.move(run_folder / "output_00002", run_folder / "output_00003")
    (run_folder / "output_00002").mkdir()
    for file in (run_folder / "output_00003").iterdir():
        file.rename(file.with_name(file.name.replace("_00002.", "_00003.")))
    arguments = ["convert", run_folder, target, "--no-progress", "--resume"]
    code, out, err = run(capsys, *arguments, "--on-error", "skip")
    assert code == 1
    assert "smaller" in out
    assert "failed: output_00002: " in err
    assert ambar.open_series(target).outputs == [1, 3]
    code, out, _ = run(capsys, *arguments, "--on-error", "skip", "--json")
    assert code == 1
    assert list(json.loads(out)["failed"]) == ["output_00002"]
    assert run(capsys, *arguments)[0] == 3


def test_convert_reports_an_output_that_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_folder, target = tmp_path / "run", tmp_path / "run.ambar"
    shutil.copytree(RAMSES / CASES["sedov"], run_folder)
    assert run(capsys, "convert", run_folder, target)[0] == 0
    os.utime(run_folder / "output_00001" / "info_00001.txt", (1e9, 1e9))
    code, out, _ = run(capsys, "convert", run_folder, target, "--resume")
    assert code == 0
    assert "converted again: output_00001, its files have changed" in out


@pytest.mark.parametrize("committed", [0, 1])
def test_ctrl_c_says_what_the_store_has(
    committed: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C used to end the command without a word."""
    target = tmp_path / "run.ambar"
    converting = ambar.convert

    def interrupted(paths: list[Path], *arguments: Any, **options: Any) -> None:
        if committed:
            converting(paths, *arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr("ambar.io.convert.convert", interrupted)
    code, _, err = run(capsys, "convert", RAMSES / CASES["sedov"], target)
    assert code == 130
    assert "interrupted: " in err
    assert ("has all that was committed" in err) == bool(committed)
    assert ("was not written" in err) == (not committed)


def test_the_signal_of_batch_systems_ends_as_ctrl_c_without_temporary_files(tmp_path: Path) -> None:
    code = """
import os, signal, ambar.store.store
from ambar.__main__ import main
def write(*_, **__):
    with ambar.create("new.ambar") as writer:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
ambar.store.store.Store.verify = write
main()
"""
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("x", [1.0])
    command = [sys.executable, "-c", code, "verify", "x.ambar"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["x.ambar"]


def test_ctrl_c_of_any_command_is_reported(
    store: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ambar.store.store.Store.verify", interrupted)
    assert run(capsys, "verify", store)[::2] == (130, "interrupted\n")


def test_ctrl_c_before_the_command_begins(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing the libraries of the command line takes a while; it ended with a traceback."""

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ambar.cli.main", interrupted)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # the handlers of pytest remain
    with pytest.raises(SystemExit, match="130"):
        runpy.run_module("ambar", run_name="__main__")
    assert capsys.readouterr().err == "interrupted\n"


def test_a_picture_for_a_full_disk_is_named(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error had neither a file nor advice."""
    pytest.importorskip("matplotlib")

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fail)
    target = tmp_path / "x.png"
    code, _, err = run(capsys, "plot", store, target)
    assert (code, f"{target}: no space left on the disk; free some" in err) == (4, True)


def test_convert_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "run.ambar"
    code, _, _ = run(capsys, "convert", RAMSES / CASES["sedov"], target, "--no-progress")
    assert code == 0
    code, _, err = run(capsys, "convert", RAMSES / CASES["sedov"], target)
    assert (code, "already exists; choose another name" in err) == (4, True)
    code, _, err = run(capsys, "convert", output("sedov"), target, "--resume")
    assert (code, "is converted as a whole" in err) == (2, True)
    code, _, err = run(capsys, "convert", RAMSES, target, "--resume", "--overwrite")
    assert (code, "exclude each other" in err) == (2, True)
    code, out, _ = run(capsys, "convert", RAMSES / CASES["sedov"], target, "--resume")
    assert code == 0
    assert "2 already there" in out
    code, out, _ = run(capsys, "info", target)
    assert code == 0
    assert "output_00002" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["convert", "OUTPUT", "x", "--error-bound", "little"], 2, "of range"),
        (["convert", "/nothing/here", "x"], 3, "/nothing/here"),
        (["convert", "OUTPUT", "x", "--components", "dust"], 3, "dust"),
        (["convert", "OUTPUT", "x", "--levels", "seven"], 2, "LOWEST:HIGHEST"),
        (["convert", "OUTPUT", "x", "--fields", ","], 2, "',' has no names"),
        (["convert", "OUTPUT", "x", "--levels=1:300"], 2, "from 0 to 255"),
        (["convert", "OUTPUT", "x", "--max-level", 2**70], 2, "from 0 to 255"),
        (["convert", "STORE", "x", "--levels=-5:-1"], 2, "from 0 to 255"),
        (["convert", "STORE", "x", "--steps", "::0"], 2, "'::0' has the step 0"),
        (["watch", "STORE", "--interval", "1e400"], 2, "expected an interval from 0 to"),
        (["watch", "STORE", "--timeout", "nan"], 2, "expected an interval from 0 to"),
        (["convert", "OUTPUT", "x", "--profile", "tiny"], 2, "balanced"),
        (
            ["info", "/nothing/here"],
            3,
            "error: /nothing/here: No such file or directory; check",
        ),
        (["info"], 2, "Missing argument"),
        *(
            (words, 2, f"error: invalid {argument}: ''; expected a path or a URL")
            for argument, *words in (
                ["source", "convert", "", "x"],
                ["target", "convert", "OUTPUT", ""],
                ["store", "export", "", "x"],
                ["target", "export", "STORE", ""],
                ["sources", "merge", "STORE", "", "x"],
                ["target", "merge", "STORE", ""],
                ["path", "info", ""],
                ["path", "log", ""],
                ["path", "verify", ""],
                ["path", "repair", ""],
            )
        ),
        (["nonsense"], 2, "No such command"),
        (["plot", "STORE", "x.png", "--field", "vorticity"], 3, "density"),
        (["plot", "STORE", "x.png", "--axis", "w"], 2, "axis"),
        (["plot", "STORE", "x.xyz"], 2, "x.xyz: invalid format of a picture"),
        (["ls", "STORE", "nothing"], 3, "nothing"),
    ],
)
def test_exit_codes(
    arguments: list[Any],
    code: int,
    message: str,
    store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"OUTPUT": output("sedov"), "STORE": store}
    found, _, err = run(capsys, *(places.get(argument, argument) for argument in arguments))
    assert found == code
    assert message in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        main(["info", str(tmp_path / "nothing"), "--debug"])


def test_info_of_a_store(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "info", store)
    assert code == 0
    for text in ("snapshot", "density", "levels", "leaf cells", "crc32c", "smaller", "none:"):
        assert text in out
    code, out, _ = run(capsys, "info", store, "--json")
    found = json.loads(out)
    assert found["bytes"] == store.stat().st_size
    amr = next(group for group in found["groups"] if group["path"] == "amr")
    assert sum(amr["cells_per_level"].values()) == amr["cells"]
    assert {"path", "shape", "codecs", "stored_bytes"} <= set(found["arrays"][0])


def test_info_of_an_output(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "info", output("gravpart"))
    assert code == 0
    assert "RAMSES output" in out
    assert "hydro" in out
    code, out, _ = run(capsys, "info", output("gravpart"), "--json")
    found = json.loads(out)
    files = [file for file in output("gravpart").iterdir() if file.is_file()]
    assert found["bytes"] == sum(file.stat().st_size for file in files)
    assert found["files"]["amr"]["files"] == 3


def test_ls(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "ls", store, "particles")
    assert code == 0
    assert "particles/mass" in out
    assert "amr/density" not in out
    _, out, _ = run(capsys, "ls", store, "--json")
    assert "amr/density" in [row["path"] for row in json.loads(out)]


def test_names_in_tables_are_verbatim_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    collection, store = tmp_path / "c.ambar", tmp_path / "s.ambar"
    with ambar.open_collection(collection, "w") as writer:
        writer.add("two\nlines [bold]", {"x": np.arange(3.0)})
    with ambar.create(store) as writer:
        writer.create_array("x [bold]", np.arange(3.0))
    assert "\ntwo\\nlines [bold] " in run(capsys, "ls", collection)[1]
    for command in ("ls", "info"):
        assert "\nx [bold] " in run(capsys, command, store)[1]


def test_arrays_with_other_names_than_their_fields_are_listed_with_these(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    random = np.random.default_rng(3)
    Plotfile(
        ["density", "box"],
        (8, 8, 8),
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 1.0),
        [[((0, 0, 0), (7, 7, 7))]],
        lambda *_: random.random((2, 8, 8, 8)),
    ).write(tmp_path / "plt00000")
    ambar.convert(tmp_path / "plt00000", tmp_path / "x.ambar", error_bound=1e-3)
    _, out, _ = run(capsys, "info", tmp_path / "x.ambar")
    assert "amr/level_0/field_1 (box) " in out
    bounds = [line.split() for line in out.splitlines() if " 1e-3" in line]
    assert bounds == [["amr/density", "0.001", "1e-3"], ["amr/box", "0.001", "1e-3"]]


@pytest.mark.parametrize("arrays", [3, ["field_1"], {"box": ["field_1"]}])
def test_damaged_names_of_arrays(
    arrays: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They raised AttributeError or TypeError."""
    path = tmp_path / "x.ambar"
    fields = dict.fromkeys(["density", "box"], lambda *places: places[0])
    ambar.convert(write_plotfile(tmp_path / "plt", fields=fields), path)
    with ambar.create(path, "a") as writer:
        about = ambar.open_store(path)["amr"].attrs["ambar"]
        writer._core.set_attributes("/amr", {"ambar": {**about, "arrays": arrays}})
    expected = "x.ambar: /amr: 'arrays' must be an object of strings, found "
    code, _, err = run(capsys, "info", path)
    assert (code, expected in err) == (1, True)
    readers: list[Any] = [
        lambda: xr.open_dataset(path, engine="ambar", group="amr/level_0"),
        lambda: StoredFields(ambar.open_store(path), "amr"),
        lambda: StoredGroup(ambar.open_store(path), "amr"),
    ]
    for read in readers:
        with pytest.raises(ambar.CorruptError, match=expected):
            read()


def test_groups_of_other_packages_may_have_arrays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their attribute of that name was interpreted as the names of arrays of fields."""
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_group("g", {"ambar": {"kind": "other", "version": 1, "arrays": ["x"]}})
        writer.create_array("g/x", np.arange(3.0))
    assert xr.open_dataset(path, engine="ambar", group="g")["x"].values.tolist() == [0, 1, 2]
    code, out, _ = run(capsys, "info", path)
    assert (code, "\ng/x " in out) == (0, True)


def test_verify_finds_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("a", np.random.default_rng(1).random(100_000))
    code, out, _ = run(capsys, "verify", path)
    assert (code, "no damage" in out) == (0, True)
    assert run(capsys, "verify", path, "--json")[0] == 0
    damaged = bytearray(path.read_bytes())
    damaged[300_000] ^= 1
    path.write_bytes(damaged)
    code, _, err = run(capsys, "verify", path)
    assert code == 1
    assert "a" in err


def test_advice_on_files_that_no_command_can_read(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ambar log` advised a copy of a NetCDF file, and `ambar repair` advised itself."""
    cut = tmp_path / "cut.ambar"
    cut.write_bytes(store.read_bytes()[:100])
    code, _, err = run(capsys, "repair", cut)
    assert (code, err.rstrip().endswith("; restore the file from a copy")) == (1, True)
    foreign = tmp_path / "x.nc"
    foreign.write_bytes(b"CDF\x01" + bytes(100))
    for command in ("log", "repair"):
        code, _, err = run(capsys, command, foreign)
        assert (code, "found a NetCDF file; convert it first" in err) == (2, True)


def test_compact_and_repair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("a", np.random.default_rng(1).random(10_000))
    with ambar.create(path, "a") as writer:
        writer.create_array("a", np.zeros(10))
    assert "dead" in run(capsys, "info", path)[1]
    assert run(capsys, "compact", path)[0] == 0
    assert "dead" not in run(capsys, "info", path)[1]
    with path.open("ab") as file:
        file.write(b"left by a killed writer" * 10_000)
    size = path.stat().st_size
    assert run(capsys, "repair", path)[0] == 0
    assert path.stat().st_size < size - 200_000
    np.testing.assert_array_equal(ambar.open_store(path)["a"][:], np.zeros(10))


@pytest.mark.parametrize(
    "options",
    [
        ["--dpi", "50", "--no-title"],
        ["--slice", "0.5"],
        ["--width", "0.3", "--linear"],
        ["--limits", "1e-3:10"],
        ["--axis", "1,1,1", "--up", "x", "--resolution", "32"],
        ["--axis", "edgeon", "--center", "max:density", "--width", "0.3", "--depth", "0.3"],
        ["--field", "density**2", "--where", "rho > 1", "--resolution", "32"],
        ["--field", "vx", "--weight", "mass", "--statistic", "dispersion", "--resolution", "9"],
        ["--particles", "--axis", "faceon", "--resolution", "32"],
        ["--center", "com", "--width", "0.2", "--length-unit", "code"],
    ],
)
def test_plot(
    options: list[str], store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "picture.png"
    code, out, _ = run(capsys, "plot", store, target, *options)
    assert code == 0
    assert str(target) in out.replace("\n", "")
    assert target.read_bytes().startswith(b"\x89PNG")


def test_pictures_of_a_series_are_frames_of_a_movie(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    series = tmp_path / "run.ambar"
    ambar.convert(RAMSES / CASES["sedov"], series, fsync=False)
    frames = []
    for number in ambar.open_series(series).outputs:
        frame = tmp_path / f"frame_{number:04d}.png"
        options = ["--output", number, "--limits", "1e-3:10", "--axis", "1,1,1", "--no-title"]
        assert run(capsys, "plot", series, frame, *options, "--resolution", 32)[0] == 0
        frames.append(matplotlib.image.imread(frame))
    assert len(frames) == 2
    assert frames[0].shape == frames[1].shape
    assert (frames[0] != frames[1]).any()
    # The colour bar and the labels, at the right, do not move.
    assert (frames[0][:, -60:] == frames[1][:, -60:]).all()


def test_plot_writes_fits(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fits = pytest.importorskip("astropy.io.fits")
    target = tmp_path / "map.fits"
    options = ["--axis", "1,1,1", "--resolution", "16"]
    assert run(capsys, "plot", store, target, *options)[0] == 0
    expected = ambar.open_snapshot(store).amr.map("density", axis=(1, 1, 1), resolution=16)
    np.testing.assert_array_equal(fits.getdata(target), expected.to_numpy())
    assert run(capsys, "plot", store, target, "--slice", "0.5")[0] == 0
    assert fits.getheader(target)["AT"] == 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--axis", "1,a"], "'1,a' is not x, y, z, a direction such as 1,1,1, faceon or edgeon"),
        (["--axis", "1,1"], "expected 'x', 'y', 'z', or three numbers"),
        (["--center", "0.5;0.5"], "is not X,Y,Z, such as 0.5,0.5,0.5, or a name such as"),
        (["--center", "middle"], "invalid center 'middle'; expected numbers, 'bc', 'max:FIELD'"),
        (["--width", "-1"], "invalid width: -1.0; expected a length > 0"),
        (["--statistic", "maximum", "--slice", "0.5"], "expected the axis x, y or z for a slice"),
        (["--particles", "--level", "4"], "give a resolution, or leave the level out"),
        (["--up", "z", "--axis", "z"], "parallel to the axis"),
    ],
)
def test_invalid_options_of_plots_are_one_line(
    options: list[str], message: str, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    code, _, error = run(capsys, "plot", store, "x.png", *options)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1


def test_limits_of_colours(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    for limits, message in (("2:1", "invalid limits: 2.0:1.0"), ("1", "not LOW:HIGH")):
        code, _, error = run(capsys, "plot", store, "x.png", "--limits", limits)
        assert code == 2
        assert message in " ".join(error.split())


def test_plot_of_two_dimensions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    source, target = RAMSES / "sedov2d_small" / "output_00002", tmp_path / "picture.png"
    assert run(capsys, "plot", source, target)[0] == 0
    assert target.read_bytes().startswith(b"\x89PNG")
    part = ["--width", "0.3", "--center", "max:density"]
    assert run(capsys, "plot", source, target, *part)[0] == 0
    for options in (["--axis", "x"], ["--slice", "0.5"], [*part, "--weight", "density"]):
        code, _, error = run(capsys, "plot", source, target, *options)
        assert code == 2
        name = options[-2].removeprefix("--")
        text = " ".join(error.split())
        assert f"3 dimensions for {name}, found 2; leave these options out" in text


def test_pictures_without_values_are_not_written(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    for name in ("empty.png", "empty.fits"):
        code, _, error = run(capsys, "plot", store, tmp_path / name, "--where", "rho < -1")
        assert (code, error.count("\n")) == (2, 1)
        assert "found none under the condition 'rho < -1'" in error
    assert list(tmp_path.glob("empty*")) == []


def test_help_lists_components_on_narrow_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 80)
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(capsys, "convert", "--help")
    for name in ("gravity", "particles,", "sinks", "clumps", "dark_matter", "stars"):
        assert name in out.partition("--components  ")[2].partition("--fields")[0]


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "Exit codes" in out
    for command in get_command(app).commands:  # type: ignore[attr-defined]
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        assert f"$ ambar {command}" in out


def test_errors_are_json_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "info", tmp_path / "x.ambar", "--json")
    assert (code, json.loads(out)["exit_code"]) == (3, 3)
    assert json.loads(out)["error"] in err
    assert run(capsys, "info", tmp_path / "x.ambar")[1] == ""


def test_messages_name_options_of_the_command_line(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "convert", output("sedov"), store)
    assert (code, "or replace it with --overwrite" in err) == (4, True)
    code, _, err = run(capsys, "convert", output("sedov"), tmp_path / "x.ambar", "--reorder")
    assert (code, "--reorder does not apply to the kind 'RAMSES output'" in err) == (2, True)
    assert (
        "options of this kind: --components, --fields, --halos, --levels, --max-level, --on-error"
        in err
    )
    profiles = tmp_path / "profiles.ambar"
    with ambar.open_collection(profiles, "w-", fsync=False) as collection:
        collection.add("a", {"t": ("z", [1.0])})
    target = tmp_path / "target.ambar"
    ambar.convert(profiles, target, fsync=False)
    bounded = ("convert", profiles, target, "--resume", "--error-bound", "t=0.1")
    code, _, err = run(capsys, *bounded)
    assert (code, "leave --error-bound out to add to it" in err) == (2, True)
    code, _, err = run(capsys, "plot", profiles, "--slice", "0.5")
    kind = "--slice does not apply to the kind 'collection'; options of this kind: "
    assert (code, f"{kind}--field (-f), --dpi, --title, --colors (--cmap)," in err) == (2, True)
    code, _, err = run(capsys, "convert", output("sedov"), tmp_path / "no" / "x.ambar")
    assert (code, "the folder to write to does not exist; create it first" in err) == (3, True)
    (tmp_path / "empty").mkdir()
    code, _, err = run(capsys, "convert", tmp_path / "empty", tmp_path / "x.ambar")
    assert (code, "expected a RAMSES output" in err, "found an empty folder" in err) == (
        3,
        True,
        True,
    )


def test_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ambar", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("ambar ")


@pytest.mark.parametrize("command", ["info", "ls"])
def test_the_output_may_lack_characters(tmp_path: Path, command: str) -> None:
    """`ambar info` reported damaged attributes."""
    path = tmp_path / "x.ambar"
    xr.Dataset({"α³": ("x", [1.0, 2.0])}).ambar.write(path, fsync=False)
    done = subprocess.run(
        [sys.executable, "-m", "ambar", command, path],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert rb"\u03b1\xb3" in done.stdout


def test_changing_files_at_a_url_is_refused(
    capsys: pytest.CaptureFixture[str], store: Path
) -> None:
    """Pathlib makes "s3:/bucket" of "s3://bucket", which was interpreted as a folder."""
    commands = (
        ("export", store, "s3://bucket/x.vtkhdf"),
        ("compact", "s3://bucket/x.ambar"),
        ("repair", "s3://bucket/x.ambar"),
    )
    for command in commands:
        code, _, error = run(capsys, *command)
        assert code == 4, command
        assert "expected a path on this machine" in error


def stores_of_ambar(folder: Path, store: Path) -> list[Path]:
    """Return a store as a file, under another suffix, as a folder, and unpacked."""
    named = folder / "store.nc"
    shutil.copy(store, named)
    directory = folder / "folder.ambar"
    with ambar.create(directory, directory=True) as writer:
        writer.create_array("a", np.arange(3.0), dims=("x",))
    unpacked = folder / "unpacked.zarr"
    shutil.unpack_archive(store, unpacked, "zip")
    return [store, named, directory, unpacked]


def test_a_store_is_not_ingested(
    capsys: pytest.CaptureFixture[str], store: Path, tmp_path: Path
) -> None:
    """An empty store was written, "1 datasets taken in" printed, and the exit code was 0."""
    target = tmp_path / "out" / "y.ambar"
    target.parent.mkdir()
    for source in stores_of_ambar(tmp_path, store):
        with pytest.raises(ValueError, match=r"is a store of ambar already.*ambar\.convert"):
            ambar.ingest(source, target)
        with pytest.raises(ValueError, match="found both"):
            ambar.convert([source, tmp_path / "no.nc"], target)
        code, _, error = run(capsys, "convert", source, source)
        assert code == 2
        assert "choose another target" in error
    # Among other files, too, in a folder or by a glob.
    for among in (str(tmp_path / "*.ambar"), str(tmp_path)):
        with pytest.raises(ValueError, match="is a store of ambar already"):
            ambar.convert(among, target)
    assert list(target.parent.iterdir()) == []


def test_a_zip_of_zarr_is_no_store_of_ambar(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "x.zip"
    with zarr.storage.ZipStore(path, mode="w") as opened:
        group = zarr.create_group(opened, zarr_format=3)
        group.create_array("a", data=np.arange(3.0), dimension_names=["x"])
    with pytest.raises(ambar.UnsupportedError, match="expected a NetCDF"):
        ambar.ingest(path, tmp_path / "x.ambar")
    assert not ambar.ingest(path, tmp_path / "x.ambar", engine="ambar").failed
    profiles = ambar.open_collection(tmp_path / "x.ambar")
    np.testing.assert_array_equal(profiles["x"].a, np.arange(3.0))


def test_exports_replace_what_an_export_left(tmp_path: Path, store: Path) -> None:
    """There was no such option: a target had to be removed first."""
    plotfile, kept = tmp_path / "plt", tmp_path / "plt.ambar"
    plotfiles.write(plotfile)
    ambar.convert(plotfile, kept, fsync=False)
    netcdf = tmp_path / "x.nc"
    xr.Dataset({"v": ("x", [1.0, 2.0])}).to_netcdf(netcdf)
    profiles = tmp_path / "profiles.ambar"
    ambar.convert(netcdf, profiles)
    exports: list[tuple[Path, dict[str, Any]]] = [
        (kept, {}),
        (profiles, {}),
        (profiles, {"format": "zarr"}),
    ]
    for number, (source, options) in enumerate(exports):
        target = tmp_path / f"target{number}"
        done = ambar.export(source, target, **options)
        before = contents(target)
        with pytest.raises(FileExistsError):
            ambar.export(source, target, **options)
        for path in [target] if target.is_file() else target.rglob("*"):
            if path.is_file():
                path.write_bytes(b"old")
        if target.is_dir() and (target / "Header").exists():
            (target / "Header").write_text("HyperCLaw-V1.1\n1\n")
        again = ambar.export(source, target, mode="w", **options)
        assert contents(target).keys() == before.keys()
        assert b"old" not in contents(target).values()
        if done is not None:
            assert again is not None
            assert again.target == done.target == str(target)
    names = {path.name for path in tmp_path.iterdir()}
    assert not [name for name in names if name.startswith(".")]
    for target in (tmp_path, kept, tmp_path / "plt.ambar"):
        with pytest.raises(ValueError, match="would replace"):
            ambar.export(kept, target, mode="w")
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("work of years")
    with pytest.raises(ValueError, match="other files than those of an export"):
        ambar.export(kept, foreign, mode="w")
    # What fails leaves what was there.
    before = contents(tmp_path / "target0")
    with pytest.raises(ambar.UnsupportedError):
        ambar.export(store, tmp_path / "target0", mode="w")
    assert contents(tmp_path / "target0") == before


def contents(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.is_file()}


def test_a_bound_that_is_given_twice_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The last one counted."""
    code, _, error = run(
        capsys,
        *("convert", output("sedov"), tmp_path / "x.ambar"),
        *("--error-bound", "density=0.1,pressure=1,density=0.2"),
    )
    assert code == 2
    assert "'density' is given twice" in error


def test_bounds_are_parsed_field_by_field() -> None:
    found = parse_bounds("x=1@[0:1, :, :]=0, *=1e-3 of range")
    assert found == {"x=1@[0:1, :, :]": "0", "*": "1e-3 of range"}
    for text in ("1e-3 of range, Ey=2", "Ey=2, rho"):
        with pytest.raises(ambar.InvalidError, match=r"expected FIELD=BOUND.*found '(1e-3|rho)"):
            parse_bounds(text)


def test_messages_name_the_next_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    series = tmp_path / "run.ambar"
    ambar.convert(RAMSES / "sedov3d_small", series, fsync=False)
    code, _, error = run(capsys, "compare", series, series)
    assert code == 2
    assert "is a series of 2 outputs; choose one, for example --output 1" in " ".join(error.split())
    folder = RAMSES / "sedov3d_small"
    code, _, error = run(capsys, "compare", folder, series)
    assert code == 2
    assert "found a folder with 2 outputs of the kind 'RAMSES output'; choose one" in error
    assert f"ambar info {shlex.quote(str(folder))}" in error
    code, _, error = run(
        capsys, "plot", folder / "output_00002", tmp_path / "x.png", "-f", "densty"
    )
    assert code == 3
    assert "and derived fields, which the page 'Fields' of the documentation lists" in error
    with pytest.raises(ambar.InvalidError, match="found a Series; use ambar.open_series"):
        ambar.open_snapshot(series)
    options: dict[str, Any] = {"eror_bound": 1.0}
    with pytest.raises(ambar.InvalidError, match="did you mean error_bound"):
        ambar.convert(output("sedov"), tmp_path / "x.ambar", **options)


def test_a_region_has_fractions(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "x.ambar"
    for command in ("convert", "plot"):
        code, _, error = run(capsys, command, store, target, "--region", "0:6,0:1,0:1")
        assert code == 2
        text = " ".join(error.replace("│", " ").split())
        assert "invalid --region: expected fractions of the side of the box in x" in text
        assert "from 0 to 1, found 0:6" in text
    region = "-0.1:0.1,0:1,0.5:1.4"  # over faces of a periodic box
    assert run(capsys, "convert", store, target, "--region", region)[0] == 0


def test_parts_are_compared_with_parts(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [tmp_path / name for name in ("a.ambar", "b.ambar")]
    region = ["--region", "0:0.5,0:0.5,0:0.5"]
    bound = ["--error-bound", "density=1e-3 relative"]
    assert run(capsys, "convert", store, parts[0], *region, *bound)[0] == 0
    code, _, error = run(capsys, "compare", store, parts[0])
    assert code == 2
    assert "convert the same region or levels of the whole first" in error
    assert run(capsys, "convert", store, parts[1], *region)[0] == 0
    assert run(capsys, "compare", parts[1], parts[0])[0] == 0


def test_info_of_parts_and_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_folder, part, series = RAMSES / "sedov3d_small", tmp_path / "a.ambar", tmp_path / "b.ambar"
    ambar.convert(run_folder / "output_00002", part, levels=(5, 20), fsync=False)
    code, out, _ = run(capsys, "info", part)
    assert code == 0
    assert "5 (of the run: 4 to 7)" in out
    ambar.convert(run_folder, tmp_path / "c.ambar", fsync=False)
    ambar.convert(tmp_path / "c.ambar", series, steps=[1], fsync=False)
    ambar.convert(tmp_path / "c.ambar", series, mode="a", fsync=False)
    code, out, _ = run(capsys, "info", series)
    rows = [line.split()[0] for line in out.splitlines() if line.startswith("output_")]
    assert rows == ["output_00001", "output_00002"]


def test_colons_in_messages_are_not_emojis(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "passwd").write_text("root:x:0:0")
    code, _, err = run(capsys, "convert", tmp_path / "passwd", tmp_path / "x.ambar")
    assert code == 4
    assert "root:x:0" in err


def test_commands_say_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, "convert", "wing.stl", "--profile", "small")
    assert code == 2
    assert "Missing argument 'TARGET': the store to write, for example wing.ambar" in err
    (tmp_path / "obs").mkdir()
    xr.Dataset({"t": ("x", [1.0])}).to_netcdf("obs/a.nc", engine="scipy")
    code, _, err = run(capsys, "convert", "obs", "a.ambar", "--error-bound", 0.01)
    assert code == 2
    assert "expected VARIABLE=BOUND, such as temperature=0.01" in err
    code, _, err = run(capsys, "compare", "obs", "a.ambar")
    assert code == 2
    assert "obs: expected a store, a plotfile or a RAMSES output to compare" in err
    assert "ambar convert obs exact.ambar" in err
    assert run(capsys, "samples", "ramses")[0] == 0
    code, _, err = run(capsys, "samples", "ramses")
    assert code == 4
    assert "output_00002: the sample exists; remove it, or copy to another folder" in err
    assert "--folder PATH" in err
