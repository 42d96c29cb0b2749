"""Files of NetCDF and Zarr stores become a collection."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ambar
from ambar.collection.files import export, source_reader
from ambar.collection.files.sources import find_sources, is_source, name_sources
from ambar.collection.storage import layout
from ambar.parallel.workers import Failure, Workers
from tests.helpers.command_line import run
from tests.helpers.netcdf_files import QUICK, needs_netcdf4, profile, same, write
from tests.helpers.sample_outputs import output
from tests.helpers.workers_here import WorkersHere


@pytest.fixture
def zarrs(tmp_path: Path) -> Path:
    """A folder of Zarr stores, which need no NetCDF library."""
    folder = tmp_path / "files"
    for number in range(5):
        write(profile(number), folder / f"p{number}.zarr")
    return folder


def test_few_small_files_are_read_by_one_process(
    zarrs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second process takes longer to start than the first one to read them all."""
    started: list[int] = []

    class Counted(WorkersHere):
        def __init__(self, processes: int) -> None:
            started.append(processes)
            super().__init__(processes)

    monkeypatch.setattr("ambar.collection.files.ingest.Workers", Counted)
    monkeypatch.setattr("ambar.parallel.workers.usable_cores", lambda: 2)
    for processes in (None, 2):
        ambar.ingest(zarrs, tmp_path / "x.ambar", mode="w", processes=processes, fsync=False)
    monkeypatch.setattr("ambar.collection.files.ingest._SMALL_BYTES", 100)
    ambar.ingest(zarrs, tmp_path / "x.ambar", mode="w", fsync=False)
    assert started == [1, 2, 2]


@pytest.mark.processes
@needs_netcdf4
def test_files_of_all_kinds_come_back_identical(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    suffixes = (".nc", ".nc4", ".h5", ".cdf", ".zarr")
    files = [write(profile(n), folder / f"p{n}{suffix}") for n, suffix in enumerate(suffixes)]
    files.append(write(profile(7), folder / "v2.zarr"))
    folder.joinpath("notes.txt").write_text("no data")
    folder.joinpath(".hidden.nc").write_bytes(b"")
    done = ambar.convert(folder, tmp_path / "x.ambar", fsync=False)
    assert isinstance(done, ambar.Ingest)
    assert done.failed == {}
    assert done.converted == ["p0", "p1", "p2", "p3", "p4", "v2"]
    assert done.stored_bytes == (tmp_path / "x.ambar").stat().st_size
    profiles = ambar.open(tmp_path / "x.ambar")
    assert isinstance(profiles, ambar.Collection)
    for name, file in zip(profiles.names, files, strict=True):
        same(profiles[name], file)
        same(profiles.load(name), file)
    ambar.export(tmp_path / "x.ambar", tmp_path / "out")
    for name, file in zip(profiles.names, files, strict=True):
        same(xr.load_dataset(tmp_path / "out" / f"{name}.nc"), file)


@needs_netcdf4
def test_packed_values_and_calendars(tmp_path: Path) -> None:
    packed = xr.Dataset({"t": ("x", np.array([1.5, np.nan, 2.5])), "n": ("x", [1, 2, 3])})
    packed.t.encoding.update(dtype="i2", scale_factor=0.5, add_offset=1.0, _FillValue=-99)
    write(packed, tmp_path / "files" / "packed.nc")
    times = xr.date_range("2000-01-29", periods=3, calendar="360_day", use_cftime=True)
    model = xr.Dataset({"t": ("time", np.arange(3.0))}, {"time": times})
    path = write(model, tmp_path / "files" / "model.nc")
    assert ambar.ingest(tmp_path / "files", tmp_path / "x.ambar", **QUICK).failed == {}
    profiles = ambar.open_collection(tmp_path / "x.ambar")
    same(profiles["packed"], tmp_path / "files" / "packed.nc")
    assert profiles["model"].time.attrs["calendar"] == "360_day"
    xr.testing.assert_identical(xr.decode_cf(profiles.load("model")), xr.load_dataset(path))
    ambar.export(tmp_path / "x.ambar", tmp_path / "out")
    xr.testing.assert_identical(
        xr.load_dataset(tmp_path / "out" / "model.nc"), xr.load_dataset(path)
    )


@needs_netcdf4
@pytest.mark.parametrize("unit", ["days", "months"])
def test_times_of_other_calendars_are_the_numbers_of_the_file(unit: str, tmp_path: Path) -> None:
    """Dates of cftime have microseconds, and cannot be encoded as months."""
    numbers = np.array([0.1, 1 / 3, 1e5 / 7, 2e5 / 3]) if unit == "days" else np.arange(4)
    attrs = {"units": f"{unit} since 1850-01-01", "calendar": "360_day", "bounds": "bounds"}
    times = xr.Variable("time", numbers, attrs)
    bounds = xr.Variable(("time", "side"), np.stack([times.values] * 2, 1))
    unchanged = xr.Dataset({"bounds": bounds}, {"time": times})
    encoding: dict[str, Any] = {"time": {"_FillValue": None}, "bounds": {"_FillValue": None}}
    unchanged.to_netcdf(tmp_path / "model.nc", engine="netcdf4", encoding=encoding)
    ambar.ingest(tmp_path / "model.nc", tmp_path / "x.ambar", **QUICK)
    found = ambar.open_collection(tmp_path / "x.ambar").load("model")
    xr.testing.assert_identical(found, unchanged)
    assert found.time.dtype == times.dtype
    xr.testing.assert_identical(xr.decode_cf(found), xr.load_dataset(tmp_path / "model.nc"))


@pytest.mark.processes
@needs_netcdf4
def test_broken_files_are_reported_and_the_others_are_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "files"
    for number in range(4):
        write(profile(number), folder / f"p{number}.nc")
    whole = (folder / "p0.nc").read_bytes()
    (folder / "cut.nc").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.nc").write_bytes(b"")
    (folder / "text.nc").write_text("no data")
    (folder / "hollow.zarr").mkdir()
    write(xr.Dataset({"v": ("dataset", [1])}), folder / "dim.nc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # xarray warns of repeated dimensions
        write(xr.Dataset({"v": (("x", "x"), np.eye(2))}), folder / "twice.nc")
    target = tmp_path / "x.ambar"
    code, out, err = run(capsys, "convert", folder, target, "--no-fsync", "--on-error", "skip")
    assert code == 1
    assert "4 datasets added" in out
    assert err.count("failed: ") == 6
    assert "Traceback" not in err
    assert ambar.open_collection(target).names == ["p0", "p1", "p2", "p3"]
    code, out, _ = run(
        capsys, "convert", folder, target, "--overwrite", "--json", "--on-error", "skip"
    )
    found = json.loads(out)
    assert code == 1
    assert found["converted"] == ["p0", "p1", "p2", "p3"]
    why = {Path(path).name: text for path, text in found["failed"].items()}
    assert why.keys() == {"cut.nc", "empty.nc", "text.nc", "hollow.zarr", "dim.nc", "twice.nc"}
    assert "expected a NetCDF or HDF5 file or a Zarr store" in why["text.nc"]
    assert "the first bytes b'no data'" in why["text.nc"]
    assert "the dimension name 'dataset' is reserved" in why["dim.nc"]
    assert "v has a repeated dimension, ('x', 'x')" in why["twice.nc"]
    code, _, err = run(capsys, "convert", folder / "twice.nc", tmp_path / "y.ambar")
    assert (code, "twice.nc: dataset 'twice': v has a repeated dimension" in err) == (2, True)


@needs_netcdf4
def test_files_of_other_programs_say_how_they_are_stored(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones(3))
    with pytest.raises(
        ambar.UnsupportedError, match=r"found an array of NumPy; store it .*create_array"
    ):
        ambar.convert(tmp_path / "x.npy", tmp_path / "x.ambar")
    plotfile = tmp_path / "files" / "plt00000.h5"
    plotfile.parent.mkdir()
    xr.Dataset({"data": ("x", [1.0])}).to_netcdf(plotfile, group="level_0", engine="netcdf4")
    with pytest.raises(ambar.UnsupportedError, match="is a plotfile of AMReX, convert it alone"):
        ambar.convert(tmp_path / "files", tmp_path / "x.ambar")


def _bad(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("no data")
    return path


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("on_error", ["stop", "skip"])
@pytest.mark.parametrize("convert", [ambar.ingest, ambar.convert])
def test_sources_that_all_fail_raise_and_leave_stores_alone(
    tmp_path: Path, zarrs: Path, on_error: Any, convert: Any
) -> None:
    """They returned a report like that of a success, and made no store."""
    bad = [_bad(zarrs, name) for name in ("a.nc", "b.nc")]
    target = tmp_path / "x.ambar"
    with pytest.raises(ambar.UnsupportedError, match=r"a\.nc: expected a NetCDF or HDF5 file"):
        convert(bad, target, on_error=on_error)
    assert not _contents(tmp_path)
    ambar.ingest(zarrs / "p0.zarr", target, **QUICK)
    before = _contents(tmp_path)
    for mode in ("w", "a"):
        with pytest.raises(ambar.UnsupportedError, match=r"a\.nc"):
            convert(bad, target, on_error=on_error, mode=mode)
        assert _contents(tmp_path) == before
    with pytest.raises(
        ambar.UnsupportedError, match=r"a\.nc: expected a NetCDF[^;]*; ambar also[^;]*$"
    ):
        convert(bad[:1], target, on_error=on_error, mode="w")


def test_a_source_that_fails_stops_or_is_skipped(
    tmp_path: Path, zarrs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others became a store that lacks it, which only the report said."""
    target = tmp_path / "x.ambar"
    bad = _bad(zarrs, "p2.nc")
    hint = r"p2\.nc: expected a NetCDF or HDF5 file.*on_error='skip'"
    with pytest.raises(ambar.UnsupportedError, match=hint):
        ambar.convert(zarrs, target)
    assert not target.exists()
    code, _, err = run(capsys, "convert", zarrs, target)
    assert (code, "p2.nc: expected a NetCDF" in err) == (4, True)
    assert not target.exists()
    ambar.ingest([zarrs / "p0.zarr"], target, **QUICK)
    before = _contents(tmp_path)
    for mode in ("w", "a"):
        with pytest.raises(ambar.UnsupportedError, match=hint):
            ambar.convert(zarrs, target, mode=mode)
        assert _contents(tmp_path) == before
    done = ambar.convert(zarrs, target, mode="a", on_error="skip")
    assert list(done.failed) == [str(bad)]
    assert (done.skipped, len(done.converted)) == (["p0"], 4)
    again = ambar.convert(zarrs, target, mode="a", on_error="skip")
    assert (list(again.failed), again.converted, len(again.skipped)) == ([str(bad)], [], 5)
    with pytest.raises(ValueError, match="invalid on_error 'both'"):
        ambar.ingest(zarrs, target, on_error="both", mode="w")  # type: ignore[arg-type]


@pytest.mark.processes
def test_errors_of_sources_have_the_types_that_reading_them_has(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    for number in range(3):
        write(profile(number), folder / f"p{number}.zarr")
    (folder / "p1.zarr" / "zarr.json").write_text("{")
    with pytest.raises(ambar.CorruptError, match=r"p1\.zarr: "):
        ambar.ingest(folder, tmp_path / "x.ambar", **QUICK)
    (folder / "a.nc").symlink_to(folder / "a.nc")  # a loop
    with pytest.raises(OSError, match="on_error") as found:
        ambar.ingest([folder, folder / "p0.zarr"], tmp_path / "x.ambar", **QUICK)
    assert found.value.filename == str(folder / "a.nc")


def test_what_is_committed_before_an_error_stays(
    tmp_path: Path, zarrs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ambar.collection.files.ingest.COMMIT_DATASETS", 2)
    _bad(zarrs, "p3a.nc")
    target = tmp_path / "x.ambar"
    with pytest.raises(ambar.UnsupportedError, match=r"p3a.*4 datasets are committed .*resume"):
        ambar.ingest(zarrs, target, **QUICK)
    assert ambar.open_collection(target).names == ["p0", "p1", "p2", "p3"]
    done = ambar.ingest(zarrs, target, mode="a", on_error="skip", **QUICK)
    assert (done.converted, len(done.skipped), len(done.failed)) == (["p4"], 4, 1)


def test_a_ragged_dimension_of_no_file_is_an_error(tmp_path: Path, zarrs: Path) -> None:
    """It was ignored."""
    with pytest.raises(ValueError, match="no file has a dimension 'dept'.*depth, time"):
        ambar.ingest(zarrs, tmp_path / "x.ambar", ragged=["dept"], **QUICK)
    assert not (tmp_path / "x.ambar").exists()


def test_an_error_bound_of_no_variable_is_an_error(
    tmp_path: Path,
    zarrs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was ignored, and the data became lossless."""
    monkeypatch.setattr("ambar.collection.files.ingest.COMMIT_DATASETS", 1)
    target = tmp_path / "x.ambar"
    for convert in (ambar.ingest, ambar.convert):
        with pytest.raises(KeyError, match=r"'temprature'.*did you mean 'temperature'\? av"):
            convert(zarrs, target, error_bound={"depth": 0.1, "temprature": 0.1}, **QUICK)
    with pytest.raises(KeyError, match=r"'temp\*'.*patterns do not apply"):
        ambar.ingest(zarrs, target, error_bound={"temp*": 0.1}, **QUICK)
    assert not target.exists()
    code, _, err = run(capsys, "convert", zarrs, target, "--error-bound", "temprature=0.1")
    assert (code, "did you mean 'temperature'?" in err, target.exists()) == (3, True, False)
    ambar.ingest(zarrs, target, **QUICK)
    before = _contents(tmp_path)
    with pytest.raises(KeyError, match="temprature"):
        ambar.ingest(zarrs, target, error_bound={"temprature": 0.1}, mode="w", **QUICK)
    assert _contents(tmp_path) == before


def test_the_variable_of_an_error_bound_may_be_in_any_file(tmp_path: Path, zarrs: Path) -> None:
    last = profile(9).rename(temperature="wind")
    write(last, zarrs / "p9.zarr")
    _bad(zarrs, "p1a.nc")
    target, bounds = tmp_path / "x.ambar", {"wind": 0.5, "temperature": 0.25}
    done = ambar.ingest(zarrs, target, error_bound=bounds, on_error="skip", **QUICK)
    assert (len(done.converted), len(done.failed)) == (6, 1)
    error = np.abs(ambar.open_collection(target).load("p9").wind.values - last.wind.values)
    assert 0 < error.max() <= 0.5
    # The store has both variables, and no new file has them.
    write(xr.Dataset({"count": ("time", [1])}), zarrs / "z.zarr")
    again = ambar.ingest(zarrs, target, error_bound=bounds, on_error="skip", mode="a", **QUICK)
    assert again.converted == ["z"]
    # `variables` leaves `temperature` out.
    with pytest.raises(KeyError, match="'temperature', but no file"):
        ambar.ingest(
            zarrs / "p9.zarr", target, variables=["wind"], error_bound=bounds, mode="w", **QUICK
        )


def test_a_report_of_one_dataset(tmp_path: Path, zarrs: Path) -> None:
    done = ambar.ingest(zarrs / "p0.zarr", tmp_path / "x.ambar", **QUICK)
    assert ": 1 dataset added; " in str(done)


@needs_netcdf4
@pytest.mark.parametrize("name", ["cut.nc", "cut.h5", "empty.nc", "empty.h5", "empty.bin"])
def test_a_file_that_is_cut_short_is_corrupt(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An OSError of HDF5 named no file, and an empty file was unsupported."""
    path, target = tmp_path / name, tmp_path / "x.ambar"
    whole = write(profile(0), tmp_path / "whole.nc").read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if name.startswith("cut") else b"")
    expected = f"{name}: " + (".*" if name.startswith("cut") else "the file is empty")
    expected += "; restore it from a copy$"
    for call in (ambar.open, lambda path: ambar.convert(path, target), ambar.open_snapshot):
        with pytest.raises(ambar.CorruptError, match=expected):
            call(path)
    with pytest.raises(ambar.CorruptError, match=expected):
        ambar.ingest(path, target, **QUICK)
    for command in (("convert", path, target), ("info", path)):
        code, _, err = run(capsys, *command)
        assert (code, str(path) in err, "restore it" in err) == (1, True, True)


def test_an_unknown_engine_is_an_invalid_argument(zarrs: Path, tmp_path: Path) -> None:
    """It was an error of damaged files."""
    with pytest.raises(ambar.InvalidError, match="invalid engine 'zar'; must be one of .*zarr"):
        ambar.ingest(zarrs, tmp_path / "x.ambar", engine="zar", **QUICK)


def test_ctrl_c_does_not_reach_processes() -> None:
    """They printed tracebacks while they started."""
    here = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with Workers(1) as workers:
        [(_, there)] = workers.map(signal.pthread_sigmask, [(signal.SIG_BLOCK, [])])
    assert signal.SIGINT in there
    assert signal.SIGINT not in here
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == here


@needs_netcdf4
@pytest.mark.parametrize(
    "version", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"]
)
@pytest.mark.parametrize("records", [(), ("record",), ("record", "other")])
def test_a_classic_file_that_was_cut_short_is_an_error(
    version: Any, records: tuple[str, ...], tmp_path: Path
) -> None:
    """After the end of the file libnetcdf reads zeros, without an error."""
    whole = tmp_path / "whole.nc"
    dataset = xr.Dataset({"fixed": ("x", np.arange(50.0))}, attrs={"title": "five!"})
    for name in records:
        dataset[name] = ("time", "y"), np.ones((7, 3), "i2")
    dataset.to_netcdf(
        whole, format=version, engine="netcdf4", unlimited_dims=["time"] * any(records)
    )
    content = whole.read_bytes()
    ambar.ingest(whole, tmp_path / "x.ambar", **QUICK)
    same(ambar.open_collection(tmp_path / "x.ambar")["whole"], whole)
    for length in (len(content) - 4, len(content) // 2, 40):
        whole.write_bytes(content[:length])
        with pytest.raises(ambar.CorruptError, match=r"whole.nc: expected .* found [\d,]+"):
            ambar.ingest(whole, tmp_path / "cut.ambar", **QUICK)


@needs_netcdf4
def test_errors_of_libraries_name_a_damaged_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A KeyError of h5py was a fault of ambar, if the file was converted alone."""
    path, target = tmp_path / "x.nc", tmp_path / "x.ambar"
    whole = bytearray(write(profile(0), path).read_bytes())
    at = whole.index(b"OHDR")  # the header of the root group
    whole[at + 8] ^= 0xFF
    path.write_bytes(whole)
    for command in (("convert", path, target), ("info", path)):
        code, _, err = run(capsys, *command)
        assert code == 1
        assert f"{path}: " in err
        assert "restore it from a copy" in err
    with pytest.raises(ambar.CorruptError, match=r"x\.nc: .*; restore it from a copy"):
        ambar.convert(path, target, fsync=False)


@needs_netcdf4
def test_paths_that_are_not_utf_8(tmp_path: Path) -> None:
    """A UnicodeEncodeError of the library, without advice."""
    folder = tmp_path / "files"
    write(profile(0), folder / "a.nc")
    try:
        (folder / "a.nc").rename(folder / "\udcff.nc")
    except OSError:
        pytest.skip("the file system has no such names")
    with pytest.raises(ValueError, match="the path is not valid UTF-8, .* rename it"):
        ambar.ingest(folder, tmp_path / "x.ambar", **QUICK)


@needs_netcdf4
@pytest.mark.parametrize(
    ("link", "error", "message"),
    [
        ("/", ambar.UnsupportedError, r"x\.h5: expected groups without cycles, found '/g/loop'"),
        (None, ambar.UnsupportedError, r"x\.h5: expected groups without cycles, found '/g/loop'"),
        ("/none", ambar.CorruptError, r"h5py opens it: remove links without a target"),
    ],
)
def test_links_that_netcdf_cannot_follow(
    tmp_path: Path, link: str | None, error: type[Exception], message: str
) -> None:
    """Libnetcdf follows a link to a group that contains it until memory is exhausted."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["v"] = np.arange(3)
        group = file.create_group("g")
        file["other"] = group
        group["loop"] = group if link is None else h5py.SoftLink(link)
    with pytest.raises(error, match=message):
        ambar.ingest(path, tmp_path / "x.ambar", **QUICK)


@needs_netcdf4
@pytest.mark.parametrize(
    ("depth", "is_linked_twice", "message"),
    [(1500, False, "at most 200 nested groups"), (20, True, "at most 20,000 groups")],
    ids=["deep", "a million paths"],
)
def test_groups_that_exhaust_netcdf_are_refused(
    tmp_path: Path, depth: int, is_linked_twice: bool, message: str
) -> None:
    """Each group contains the next one."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(depth):
            inner = group.create_group("a")
            if is_linked_twice:
                group["b"] = inner
            group = inner
        group["v"] = np.arange(3)
    with pytest.raises(ambar.UnsupportedError, match=message):
        ambar.ingest(path, tmp_path / "x.ambar", **QUICK)


def test_patterns_choose_variables_of_files_as_those_of_stores(tmp_path: Path) -> None:
    names = ("salinity", "temp", "temp_error", "flags[1]")
    dataset = xr.Dataset({name: ("depth", np.arange(2.0)) for name in names})
    write(dataset.assign_coords(depth=[0.0, 1.0]), tmp_path / "p0.zarr")
    stored = tmp_path / "all.ambar"
    ambar.ingest(tmp_path / "p0.zarr", stored, **QUICK)
    for number, source in enumerate((tmp_path / "p0.zarr", stored)):
        for pattern, expected in (
            ("temp*", ["depth", "temp", "temp_error"]),
            ("flags[1]", ["depth", "flags[1]"]),
        ):
            target = tmp_path / "x.ambar"
            ambar.convert(source, target, mode="w", fields=[pattern])
            assert sorted(ambar.open_collection(target).variables) == sorted(expected), number
        with pytest.raises(KeyError, match=r"no variable 'x\*'; available: .*salinity, temp"):
            ambar.convert(source, target, mode="w", fields=["x*"])


def test_an_error_that_all_files_have_has_no_hint_to_skip(tmp_path: Path, zarrs: Path) -> None:
    with pytest.raises(KeyError, match=r"p0\.zarr: no variable 'nosuch'; available: ") as found:
        ambar.ingest(zarrs, tmp_path / "x.ambar", variables=["nosuch"], **QUICK)
    assert "on_error" not in str(found.value)
    write(xr.Dataset({"wind": ("x", [1.0])}), zarrs / "p1a.zarr")
    with pytest.raises(KeyError, match=r"p1a\.zarr: no variable .*use on_error='skip'"):
        ambar.ingest(zarrs, tmp_path / "x.ambar", variables=["count"], **QUICK)


def test_times_that_cannot_be_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The error named an option that ambar did not have."""
    odd = xr.Dataset({"t": ("time", np.arange(3.0))}, {"time": ("time", [1, 2, 3])})
    odd.time.attrs["units"] = "days since the flood"
    path, target = write(odd, tmp_path / "odd.zarr"), tmp_path / "x.ambar"
    with pytest.raises(ambar.UnsupportedError, match=r"'time'.*decode_times=False"):
        ambar.ingest(path, target, **QUICK)
    ambar.ingest(path, target, decode_times=False, **QUICK)
    xr.testing.assert_identical(ambar.open_collection(target).load("odd"), odd)
    code, _, err = run(capsys, "convert", path, target, "--no-decode-times", "--overwrite")
    assert (code, err) == (0, "")


def test_a_task_that_kills_its_process_costs_nothing_else() -> None:
    with Workers(2) as workers:
        results = dict(workers.map(_maybe_die, [(n,) for n in range(12)]))
    assert isinstance(results[5,], Failure)
    assert results[5,].why == "the process that worked on it was killed by SIGSEGV"
    assert results[7,] == Failure("ValueError: two lines")
    for number in set(range(12)) - {5, 7}:
        assert results[number,] == number**2


def test_errors_that_libraries_derive_are_sent_as_python_has_them() -> None:
    """Some are made of other arguments than a text, and would end the process."""

    class OfTwoError(MemoryError):
        def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
            super().__init__(f"no room for {shape} of {dtype}")

    for name in ("x.nc", str(Path("x.nc").absolute())):
        named_error = ambar.CorruptError(f"{name}: damaged; restore it")
        assert str(Failure.of(named_error).raised_for("x.nc", "")) == "x.nc: damaged; restore it"
    sent = pickle.loads(pickle.dumps(Failure.of(OfTwoError((3,), "f8"))))
    found = sent.raised_for("x.nc", "; do this")
    assert (type(found), str(found)) == (MemoryError, "x.nc: no room for (3,) of f8; do this")
    found = Failure.of(PermissionError(13, "Permission denied", "y")).raised_for("x.nc", "")
    assert isinstance(found, PermissionError)
    assert found.filename == "x.nc"
    # NetCDF's own errors have numbers below zero.
    found = Failure.of(OSError(-101, "NetCDF: HDF error")).raised_for("x.nc", "")
    assert type(found) is ambar.CorruptError


def _maybe_die(number: int) -> int:
    if number == 5:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 7:
        raise ValueError("two\nlines")
    print("what libraries print goes elsewhere")  # noqa: T201 - that is the point
    return number**2


def large_file(path: Path, number: int, rows: int = 20) -> xr.Dataset:
    """Write a file of variables that are larger than the limits of `small_parts`."""
    rng = np.random.default_rng(number)
    walk = rng.normal(size=(rows, 50, 60)).cumsum(0)
    walk[rng.random(walk.shape) < 0.01] = np.nan
    names = ("time", "y", "x")
    content = xr.Dataset(
        {
            "walk": (names, walk.astype("f4"), {"units": "m"}),
            "packed": (names, np.round(walk, 1)),
            "count": (names, rng.integers(-9, 9, walk.shape)),
            "wave": (names, walk + 1j * rng.normal(size=walk.shape)),
            "small": ("time", np.arange(rows)),
        },
        {"time": np.arange(rows) * 0.5, "height": (names[1:], rng.normal(size=(50, 60)))},
        {"number": number},
    )
    content.packed.encoding.update(dtype="i2", scale_factor=0.1, _FillValue=-9999)
    write(content, path)
    return content


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_reader, "WHOLE", 8 << 10)
    monkeypatch.setattr(layout, "LARGEST_SHARD", 64 << 10)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("ragged", [(), ("time",)])
def test_large_variables_are_read_in_parts(tmp_path: Path, ragged: tuple[str, ...]) -> None:
    """Also into a collection that exists, and with an error bound."""
    folder, target = tmp_path / "files", tmp_path / "x.ambar"
    for number in range(3):
        large_file(folder / f"f{number}.zarr", number, 20 + number * len(ragged))
    done = ambar.ingest(folder / "f0.zarr", target, ragged=ragged, **QUICK)
    assert done.converted == ["f0"]
    done = ambar.ingest(folder, target, ragged=ragged, mode="a", **QUICK)
    assert done.converted == ["f1", "f2"]
    collection = ambar.open_collection(target)
    shards = collection.store["f0/walk"].shards
    assert shards is not None
    assert np.prod(shards) * 4 <= 64 << 10 or ragged
    assert len(collection.families) == 1
    for number in range(3):
        file = folder / f"f{number}.zarr"
        same(collection.load(f"f{number}"), file)
        content = xr.load_dataset(file)
        for name in ("walk", "packed", "count"):
            found = collection.stats(name).to_pandas().iloc[number]
            values = content[name].values
            assert (found["min"], found["max"]) == (np.nanmin(values), np.nanmax(values))
            assert found["nulls"] == np.isnan(values).sum()
    assert list(collection.stats("wave").to_pandas()) == ["dataset", "count", "nulls"]
    collection.verify()
    bounded = tmp_path / "bounded.ambar"
    ambar.ingest(folder, bounded, ragged=ragged, error_bound={"walk": 0.01}, **QUICK)
    for number in range(3):
        content = xr.load_dataset(folder / f"f{number}.zarr")
        found = ambar.open_collection(bounded).load(f"f{number}")
        assert np.nanmax(np.abs(found.walk.values - content.walk.values)) <= 0.01
        xr.testing.assert_equal(found.drop_vars("walk"), content.drop_vars("walk"))


@pytest.mark.usefixtures("small_parts")
def test_large_files_have_progress(tmp_path: Path) -> None:
    folder, target = tmp_path / "files", tmp_path / "x.ambar"
    for number in range(2):
        large_file(folder / f"f{number}.zarr", number, 20)
    calls: list[tuple[int, int]] = []
    ambar.ingest(folder, target, progress=lambda *call: calls.append(call), **QUICK)
    fractions = [done / total for done, total in calls]
    assert fractions == sorted(fractions)
    assert len(fractions) > 10
    assert {fraction > 0.5 for fraction in fractions} == {True, False}
    assert (calls[-1], calls.count((1, 2))) == ((2, 2), 1)

    def stop(*_: int) -> None:
        raise RuntimeError("stopped")

    with pytest.raises(RuntimeError, match="stopped"):
        ambar.ingest(folder, tmp_path / "y.ambar", progress=stop, **QUICK)
    assert not (tmp_path / "y.ambar").exists()


@pytest.mark.usefixtures("small_parts")
def test_a_large_variable_that_cannot_be_read_leaves_nothing(tmp_path: Path) -> None:
    folder, target = tmp_path / "files", tmp_path / "x.ambar"
    for number in range(3):
        large_file(folder / f"f{number}.zarr", number)
    chunks = sorted((folder / "f1.zarr" / "count" / "c").glob("*/*/*"))
    intact = chunks[-1].read_bytes()
    chunks[-1].write_bytes(b"damaged")
    with pytest.raises(ambar.CorruptError, match=r"f1\.zarr"):
        ambar.ingest(folder, target, **QUICK)
    assert not target.exists()
    done = ambar.ingest(folder, target, on_error="skip", **QUICK)
    assert (done.converted, list(done.failed)) == (["f0", "f2"], [str(folder / "f1.zarr")])
    collection = ambar.open_collection(target)
    assert collection.names == ["f0", "f2"]
    for name in collection.names:
        same(collection.load(name), folder / f"{name}.zarr")
    chunks[-1].write_bytes(intact)
    ambar.ingest(folder, target, mode="a", **QUICK)
    same(ambar.open_collection(target).load("f1"), folder / "f1.zarr")


@pytest.mark.usefixtures("small_parts")
def test_a_large_variable_becomes_the_dtype_of_the_others(tmp_path: Path) -> None:
    folder, target = tmp_path / "files", tmp_path / "x.ambar"
    content = large_file(folder / "f0.zarr", 0)
    write(content.assign(walk=content.walk.astype("f8") / 3), folder / "f1.zarr")
    ambar.ingest(folder, target, on_mismatch="cast", **QUICK)
    found = ambar.open_collection(target).load("f1").walk
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, (content.walk.values.astype("f8") / 3).astype("f4"))
    shutil.rmtree(folder / "f1.zarr")
    write(content.assign(walk=content.walk.astype("f8") * 1e300), folder / "f1.zarr")
    with pytest.raises(ValueError, match=r"f1\.zarr: walk has values of float64 that"):
        ambar.ingest(folder, target, mode="w", on_mismatch="cast", **QUICK)
    done = ambar.ingest(folder, target, mode="w", on_mismatch="cast", on_error="skip", **QUICK)
    assert (done.converted, len(done.failed)) == (["f0"], 1)


@needs_netcdf4
@pytest.mark.parametrize("ragged", [(), ("time",)])
def test_large_variables_are_exported_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ragged: tuple[str, ...]
) -> None:
    files = [tmp_path / "files" / f"f{n}.zarr" for n in range(2)]
    for number, file in enumerate(files):
        large_file(file, number, 20 + number * len(ragged))
    ambar.ingest(files, tmp_path / "x.ambar", ragged=ragged, **QUICK)
    collection = ambar.open_collection(tmp_path / "x.ambar")
    assert export._write_batch(collection._key, ["f0", "f1"], tmp_path / "whole", "netcdf") == {}
    monkeypatch.setattr(layout, "LARGEST_SHARD", 64 << 10)
    assert export._large(collection, "f1", "netcdf") == ["count", "packed", "walk"]
    assert export._write_batch(collection._key, ["f0", "f1"], tmp_path / "parts", "netcdf") == {}
    for file in files:
        found = xr.load_dataset(tmp_path / "parts" / f"{file.stem}.nc").drop_vars("wave")
        xr.testing.assert_identical(found, xr.load_dataset(file).drop_vars("wave"))
        raw, expected = (
            xr.load_dataset(tmp_path / folder / f"{file.stem}.nc", decode_cf=False).drop_vars(
                "wave"
            )
            for folder in ("parts", "whole")
        )
        xr.testing.assert_identical(raw, expected)


def test_names() -> None:
    names = name_sources(
        [Path("a/x.nc"), Path("b/x.nc"), Path("b/y.nc"), Path("b/x.nc4"), Path("c/z.1.nc")]
    )
    assert list(names) == ["a/x", "b/x.nc", "y", "b/x.nc4", "z.1"]
    assert list(name_sources([Path("/data/2024/x.nc")])) == ["x"]
    assert list(name_sources([Path("x.nc"), Path("sub/x.nc")])) == ["x", "sub/x"]


def test_names_that_collide(tmp_path: Path) -> None:
    for number, folder in enumerate(("a", "b/deep")):
        write(profile(number), tmp_path / folder / "x.zarr")
    write(profile(2), tmp_path / "a" / "y.zarr")
    target = tmp_path / "x.ambar"
    done = ambar.ingest([tmp_path / "a", tmp_path / "b"], target, **QUICK)
    assert done.converted == ["a/x", "y", "b/deep/x"]
    profiles = ambar.open_collection(target)
    same(profiles["b/deep/x"], tmp_path / "b" / "deep" / "x.zarr")
    ambar.export(target, tmp_path / "out", format="zarr")
    same(xr.open_zarr(tmp_path / "out" / "b" / "deep" / "x.zarr"), tmp_path / "b/deep/x.zarr")


def test_what_is_found_where(tmp_path: Path, zarrs: Path) -> None:
    assert [path.name for path in find_sources(zarrs)] == [f"p{n}.zarr" for n in range(5)]
    assert find_sources(zarrs / "p1.zarr") == [zarrs / "p1.zarr"]
    assert len(find_sources([str(zarrs / "*[12].zarr"), zarrs / "p1.zarr"])) == 2
    assert not is_source(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match="no matches"):
        find_sources(str(tmp_path / "*.nc"))
    with pytest.raises(FileNotFoundError):
        find_sources(tmp_path / "nothing")
    (tmp_path / "void").mkdir()
    with pytest.raises(FileNotFoundError, match="expected NetCDF files"):
        find_sources(tmp_path / "void")


def test_options(tmp_path: Path, zarrs: Path) -> None:
    target = tmp_path / "x.ambar"
    write(profile(9, depth=3), zarrs / "p9.zarr")
    wide = profile(8)
    wide["temperature"] = wide.temperature.astype("f8")
    write(wide, zarrs / "p8.zarr")
    calls: list[tuple[int, int]] = []
    done = ambar.ingest(
        zarrs,
        target,
        variables=["temperature", "wind"],
        error_bound={"temperature": 0.01},
        on_mismatch="cast",
        profile="small",
        progress=lambda done, total: calls.append((done, total)),
        **QUICK,
    )
    assert done.failed == {}
    assert calls == [(n, 7) for n in range(1, 8)]
    profiles = ambar.open_collection(target)
    assert profiles.variables == ["depth", "lat", "temperature", "time"]
    got = profiles.load("p8").temperature
    assert got.dtype == np.float32
    assert 0 < np.abs(got.values - profile(8).temperature.values).max() <= 0.0101
    with pytest.raises(ValueError, match="by variable"):
        ambar.ingest(zarrs, target, error_bound=0.01, mode="w")
    with pytest.raises(ValueError, match="value range of all datasets"):
        ambar.ingest(zarrs, target, error_bound={"temperature": "1e-3 of range"}, mode="w")
    with pytest.raises(ValueError, match="created with on_mismatch='cast'"):
        ambar.ingest(zarrs, target, mode="a", on_mismatch="raise")
    for count in (0, 1025, 2**70, True):
        expected = f"invalid processes: {count}; expected an integer from 1 to 1024, or None"
        with pytest.raises(ValueError, match=expected):
            ambar.ingest(zarrs, target, mode="w", processes=count)
    with pytest.raises(FileExistsError):
        ambar.ingest(zarrs, target)
    for on_error in ("stop", "skip"):
        with pytest.raises(KeyError, match=r"p0\.zarr: no variable 'wind'; available: "):
            ambar.ingest(zarrs, target, variables=["wind"], mode="w", on_error=on_error, **QUICK)
        # Nothing was taken in, so that the store that was to be replaced is unchanged.
        assert len(ambar.open_collection(target)) == 7


def test_ragged_dimensions_and_types_that_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    for number, length in enumerate((4, 0, 2)):
        write(xr.Dataset({"t": ("obs", np.arange(float(length)))}), folder / f"d{number}.zarr")
    write(xr.Dataset({"t": ("obs", np.arange(3))}), folder / "ints.zarr")
    target = tmp_path / "x.ambar"
    done = ambar.ingest(
        folder, target, ragged=["obs"], on_mismatch="raise", on_error="skip", **QUICK
    )
    assert list(done.failed) == [str(folder / "ints.zarr")]
    profiles = ambar.open_collection(target)
    assert [family.ragged for family in profiles.families] == [("obs",)]
    values = profiles.read("t")["t"]
    assert isinstance(values, ambar.RaggedArray)
    assert values.counts.tolist() == [4, 0, 2]


def test_resume_adds_what_is_lacking(
    tmp_path: Path, zarrs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "x.ambar"
    # There is nothing to resume yet.
    assert ambar.ingest(zarrs, target, mode="a", **QUICK).skipped == []
    before = target.stat().st_size
    code, out, _ = run(capsys, "convert", zarrs, target, "--resume")
    assert (code, "5 already there" in out) == (0, True)
    assert target.stat().st_size == before
    write(profile(11), zarrs / "p11.zarr")
    code, out, _ = run(capsys, "convert", zarrs, target, "--resume", "--json")
    found = json.loads(out)
    assert (code, found["converted"], len(found["skipped"])) == (0, ["p11"], 5)
    assert len(ambar.open_collection(target)) == 6
    # Which of the two is in is not known.
    write(profile(11), zarrs / "more" / "p11.zarr")
    write(profile(11), tmp_path / "other" / "p11.zarr")
    with pytest.raises(ValueError, match="has a dataset 'p11'"):
        ambar.ingest([zarrs, tmp_path / "other"], target, mode="a")


_SLOW = """
import sys, time
from ambar.collection.files import ingest
ingest.COMMIT_DATASETS = 5
ingest.ingest(sys.argv[1], sys.argv[2], processes=2, fsync=False,
              progress=lambda done, total: (print(done, flush=True), time.sleep(0.02)))
"""


def test_a_killed_run_is_gone_on_with(tmp_path: Path) -> None:
    folder, target = tmp_path / "files", tmp_path / "x.ambar"
    for number in range(40):
        write(profile(number), folder / f"p{number}.zarr")
    program = subprocess.Popen(
        [sys.executable, "-c", _SLOW, folder, target], stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    for line in program.stdout:
        if int(line) == 23:
            break
    program.kill()
    assert program.wait() == -signal.SIGKILL
    profiles = ambar.open_collection(target)
    assert 20 <= len(profiles) < 40
    kept = profiles.names
    done = ambar.ingest(folder, target, mode="a", **QUICK)
    assert done.skipped == kept
    assert done.failed == {}
    profiles = ambar.open_collection(target)
    assert sorted(profiles.names) == sorted(f"p{n}" for n in range(40))
    for name in profiles.names:
        same(profiles.load(name), folder / f"{name}.zarr")
    # The processes that read end when they have no one to read for.
    for _ in range(100):
        if not _readers_of(program.pid):
            break
        time.sleep(0.1)
    assert _readers_of(program.pid) == []


def _readers_of(parent: int) -> list[str]:
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = place.read_bytes()
            status = (place.parent / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if b"_serve(" in command and int(status[1]) == parent:
            found.append(command.decode())
    return found


def test_a_program_without_a_guard_of_main(tmp_path: Path, zarrs: Path) -> None:
    """`multiprocessing` would run the program again in each of its processes."""
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(f"""
            import ambar
            done = ambar.ingest({str(zarrs)!r}, {str(tmp_path / "x.ambar")!r}, processes=2)
            print(len(done.converted), done.failed)
        """)
    )
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "5 {}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["convert", "files", "x.ambar", "--levels", "3"], 2, "--levels does not apply"),
        (["convert", "files", "x.ambar", "--covered", "drop"], 2, "--covered does not apply"),
        (["convert", "files", "x.ambar", "--error-bound", "0.1"], 2, "VARIABLE=BOUND"),
        (["convert", "files", "x.ambar", "--on-mismatch", "guess"], 2, "family"),
        (["convert", "files", "nothing.nc", "x.ambar"], 3, "nothing.nc"),
        (["convert", "*.nc", "x.ambar"], 3, "*.nc"),
        (["convert", "OUTPUT", "x.ambar", "--ragged", "x"], 2, "--ragged does not apply"),
    ],
)
def test_exit_codes(
    arguments: list[str],
    code: int,
    message: str,
    zarrs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(zarrs.parent)
    places = {"OUTPUT": output("sedov")}
    found, _, err = run(capsys, *(places.get(argument, argument) for argument in arguments))
    assert found == code
    assert message in err
    assert not Path("x.ambar").exists()


def test_what_is_missing_is_named(
    tmp_path: Path, zarrs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ambar._util.optional.find_spec", {"xarray": 1}.get)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'ambar\[zarr\]'"):
        ambar.ingest(zarrs, tmp_path / "x.ambar")
    (tmp_path / "x.nc").write_bytes(b"CDF\x01")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'ambar\[netcdf\]'"):
        ambar.ingest(tmp_path / "x.nc", tmp_path / "x.ambar")


@needs_netcdf4
def test_files_without_variables_are_errors(tmp_path: Path) -> None:
    """Damaged files may look like empty datasets to xarray."""
    write(profile(0), tmp_path / "files" / "a.nc")
    xr.Dataset(attrs={"note": "lost"}).to_netcdf(tmp_path / "files" / "b.nc")
    with pytest.raises(ambar.CorruptError, match=r"b\.nc: expected variables, found none"):
        ambar.ingest(tmp_path / "files", tmp_path / "x.ambar", **QUICK)
    done = ambar.ingest(tmp_path / "files", tmp_path / "y.ambar", on_error="skip", **QUICK)
    assert (done.converted, list(done.failed)) == (["a"], [str(tmp_path / "files" / "b.nc")])


@needs_netcdf4
def test_groups_beside_variables_are_listed(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    for number, suffix in enumerate(("nc", "nc", "zarr", "cdf")):
        path = write(profile(number), folder / f"p{number}.{suffix}")
        extra = xr.Dataset({"q": ("x", np.arange(3))})
        if suffix == "nc":
            extra.to_netcdf(path, mode="a", group="quality/flags")
            xr.Dataset(attrs={"note": "no variables"}).to_netcdf(path, mode="a", group="empty")
        elif suffix == "zarr":
            extra.to_zarr(path, mode="a", group="more")
    done = ambar.ingest(folder, tmp_path / "x.ambar", **QUICK)
    assert done.converted == ["p0", "p1", "p2", "p3"]
    assert list(done.left_out) == ["the group 'quality'", "the group 'more'"]
    assert done.left_out["the group 'quality'"].startswith(f"of 2 files ({folder / 'p0.nc'}, ...)")
    assert "left out: the group 'more', of 1 file" in str(done)
    (folder / "p2.zarr" / "more" / "zarr.json").write_bytes(b"{")
    with pytest.raises(ambar.CorruptError, match=r"zarr.json: expected the metadata"):
        source_reader.groups_of(folder / "p2.zarr")
