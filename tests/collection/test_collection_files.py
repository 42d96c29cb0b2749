"""Collections become files again; what the commands say of them."""

from __future__ import annotations

import errno
import json
import pickle
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ambar
from ambar.collection.files.export import file_name
from tests.helpers.command_line import run
from tests.helpers.netcdf_files import QUICK, needs_netcdf4, profile, same, write
from tests.helpers.range_server import RangeServer
from tests.helpers.workers_here import WorkersHere


@pytest.fixture
def zarrs(tmp_path: Path) -> Path:
    """A folder of Zarr stores, which need no NetCDF library."""
    folder = tmp_path / "files"
    for number in range(5):
        write(profile(number), folder / f"p{number}.zarr")
    return folder


def test_an_export_removes_no_file_that_it_does_not_write(zarrs: Path, tmp_path: Path) -> None:
    store = tmp_path / "x.ambar"
    ambar.ingest(zarrs, store, **QUICK)
    files = sorted(zarrs.iterdir())
    zarr: Any = {"format": "zarr"}
    with pytest.raises(ValueError, match=r"selects none of 5; nothing is written"):
        ambar.export(store, zarrs, mode="w", datasets="temperature.max > 1e9", **zarr)
    with pytest.raises(ValueError, match=r"writes again, found p1.zarr and 3 more"):
        ambar.export(store, zarrs, mode="w", datasets=["p0"], **zarr)
    assert sorted(zarrs.iterdir()) == files
    assert len(ambar.export(store, zarrs, mode="w", **zarr).exported) == 5


@needs_netcdf4
def test_an_export_comes_back_identical(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, target = tmp_path / "files", tmp_path / "x.ambar"
    for number in range(20):
        write(profile(number, depth=5 if number % 3 else 4), folder / f"p{number}.nc")
    ambar.ingest(folder, target, **QUICK)
    done = ambar.export(target, tmp_path / "out")
    assert (len(done.exported), done.failed) == (20, {})
    for number in range(20):
        with xr.open_dataset(tmp_path / "out" / f"p{number}.nc") as exported:
            same(exported, folder / f"p{number}.nc")
    again = ambar.ingest(tmp_path / "out", tmp_path / "y.ambar", **QUICK)
    assert again.failed == {}
    code, out, _ = run(
        capsys, "export", target, tmp_path / "argo", "--where", 'platform == "argo"', "--json"
    )
    assert code == 0
    assert len(json.loads(out)["exported"]) == 10
    code, _, err = run(capsys, "export", target, tmp_path / "argo")
    assert (code, "the target already exists" in err) == (4, True)
    code, _, err = run(capsys, "export", target, tmp_path / "z", "--where", 'x == "argo"')
    assert (code, (tmp_path / "z").exists()) == (3, False)


VALUES = [
    np.array([True, False]),
    np.array([2**63, 1], "u8"),
    np.array([1.5, np.nan], "f2"),
    np.array([1 + 2j, np.nan], "c16"),
    np.array(["2020-01-01T01:02:03.123456789", "NaT"], "M8[ns]"),
    np.array([1, "NaT"], "m8[ns]"),
    np.array(["žluť", ""], object),
    np.array([b"x", b"yz"], object),
    np.array([], object),
]


@pytest.mark.parametrize("format", [pytest.param("netcdf", marks=needs_netcdf4), "zarr"])
def test_every_type_is_exported(tmp_path: Path, format: Any) -> None:  # noqa: A002
    target = tmp_path / "x.ambar"
    with ambar.open_collection(target, "w-", fsync=False) as profiles:
        profiles.add_many((f"d{n}", {"v": ("x", values)}) for n, values in enumerate(VALUES))
    assert ambar.export(target, tmp_path / "out", format=format).failed == {}
    for file, values in zip(sorted((tmp_path / "out").iterdir()), VALUES, strict=True):
        options = {"auto_complex": True} if values.dtype.kind == "c" and format == "netcdf" else {}
        found = xr.load_dataset(file, **options).v
        np.testing.assert_array_equal(found.values, values)
        if values.dtype.kind != "O":
            widened = "f4" if format == "netcdf" and values.dtype == "f2" else values.dtype
            assert found.dtype == widened


@needs_netcdf4
def test_attributes_that_netcdf_lacks(tmp_path: Path) -> None:
    attributes = {
        "flag": True, "nested": {"a": [1]}, "none": None, "mixed": ["a", 1], "texts": ["a", "b"],
        "numbers": [1, 2], "big": 2**63 + 1, "when": np.datetime64("2020-01-01"), "nan": np.nan,
    }  # fmt: skip
    target = tmp_path / "x.ambar"
    with ambar.open_collection(target, "w-", fsync=False) as profiles:
        profiles.add("d", xr.Dataset({"v": ("x", [1.0], attributes)}, attrs=attributes))
    done = ambar.export(target, tmp_path / "nc")
    assert done is not None
    assert done.failed == {}
    found = xr.load_dataset(tmp_path / "nc" / "d.nc")
    for attrs in (found.attrs, found.v.attrs):
        assert attrs["flag"] == 1
        assert json.loads(attrs["nested"]) == {"a": [1]}
        assert json.loads(attrs["none"]) is None
        assert json.loads(attrs["mixed"]) == ["a", 1]
        assert attrs["texts"] == ["a", "b"]
        assert attrs["numbers"].tolist() == [1, 2]
        assert attrs["big"] == 2**63 + 1
        assert attrs["when"] == "2020-01-01"
        assert np.isnan(attrs["nan"])
    ambar.export(target, tmp_path / "z", format="zarr")
    found = xr.load_dataset(tmp_path / "z" / "d.zarr")
    assert found.attrs["nested"] == {"a": [1]}
    assert found.attrs["nan"] == "nan"


def test_names_never_lead_out_of_the_folder(tmp_path: Path) -> None:
    assert file_name("a/b c.d", ".zarr") == "a/b c.d.zarr"
    hostile = ["../out", "/etc/x", "..", ".", "a//b", "a\x00b", "a%2Fb", "a\\b", "x/", "é"]
    names = [file_name(name, ".zarr") for name in hostile]
    assert len(set(names)) == len(hostile)
    for name in names:
        assert not {"", ".", ".."} & set(name.split("/"))
        assert "\x00" not in name
    target = tmp_path / "x.ambar"
    with ambar.open_collection(target, "w-", fsync=False) as profiles:
        profiles.add_many((name, profile(1)) for name in [*hostile, "l" * 300])
    (tmp_path / "a").mkdir()
    done = ambar.export(target, tmp_path / "a" / "out", format="zarr")
    assert done is not None
    # No file can have a name of 300 letters.
    assert list(done.failed) == ["l" * 300]
    assert len(list((tmp_path / "a" / "out").rglob("*.zarr"))) == len(hostile)
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["out"]
    assert not list(tmp_path.rglob(".ambar-*"))


@pytest.mark.processes
def test_long_names_that_differ_at_their_ends_are_exported_apart(tmp_path: Path) -> None:
    """Files being written were named by 200 letters: processes wrote into each other's."""
    target = tmp_path / "x.ambar"
    with ambar.open_collection(target, "w-", fsync=False) as profiles:
        for number in range(80):
            values = np.full(20_000, float(number))
            profiles.add(f"{'n' * 210}{number}", {"t": ("x", values)})
    done = ambar.export(target, tmp_path / "out", format="zarr", processes=2)
    assert done is not None
    assert done.failed == {}
    assert len(done.exported) == 80
    for number in range(80):
        found = xr.open_zarr(tmp_path / "out" / f"{'n' * 210}{number}.zarr").t.values
        assert (found == number).all()
    assert not list((tmp_path / "out").glob(".*"))


def test_exports_touch_no_file_of_another_dataset(tmp_path: Path) -> None:
    """Exporting "foo" removed "foo.zarr.partial", which may be the folder of other datasets."""
    target = tmp_path / "x.ambar"
    names = ["foo.zarr.partial/inner", "foo.zarr/inner", "foo"]
    with ambar.open_collection(target, "w-", fsync=False) as profiles:
        profiles.add_many((name, {"t": ("x", [float(n)])}) for n, name in enumerate(names))
    done = ambar.export(target, tmp_path / "out", format="zarr", processes=1)
    assert done is not None
    assert (done.exported, done.failed) == (names, {})
    for number, name in enumerate(names):
        place = tmp_path / "out" / file_name(name, ".zarr")
        assert xr.open_zarr(place).t.values.tolist() == [number]
        assert [path.name for path in place.iterdir() if path.is_dir()] == ["t"]


def test_what_the_commands_say_of_a_collection(
    tmp_path: Path, zarrs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "x.ambar"
    write(profile(9, depth=3).drop_vars("count"), zarrs / "p9.zarr")
    ambar.ingest(zarrs, target, **QUICK)
    code, out, _ = run(capsys, "info", target)
    assert code == 0
    for text in (
        "Datasets:    6",
        "temperature",
        "missing in 1 of 6",
        "platform",
        "crc32c",
    ):
        assert text in out
    _, out, _ = run(capsys, "info", target, "--json")
    found = json.loads(out)
    assert (found["kind"], found["datasets"]) == ("collection", 6)
    assert [family["datasets"] for family in found["families"]] == [5, 1]
    sizes = {variable["name"]: variable["raw_bytes"] for variable in found["variables"]}
    assert sizes["temperature"] == 4 * (5 * 6 * 4 + 3 * 4)
    code, out, _ = run(capsys, "ls", target, "--json")
    rows = json.loads(out)
    assert [row["name"] for row in rows] == [f"p{n}" for n in (0, 1, 2, 3, 4, 9)]
    assert rows[-1] == {"name": "p9", "family": 1, "sizes": {"depth": 3, "time": 4}}
    assert "f0/temperature" in run(capsys, "ls", target, "f0")[1]
    assert run(capsys, "verify", target)[0] == 0
    assert ambar.open_store(target).verify()["chunks"] > 0
    code, out, _ = run(capsys, "compare", target, target)
    assert (code, "temperature" in out) == (0, True)


def test_ls_lists_the_first_datasets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "x.ambar"
    with ambar.open_collection(target, "w-", fsync=False, ragged=["x"]) as profiles:
        profiles.add_many((f"d{n}", {"v": ("x", np.arange(n))}) for n in range(30))
    _, out, _ = run(capsys, "ls", target)
    assert "d19" in out
    assert "d20" not in out
    assert "10 more datasets" in out
    _, out, _ = run(capsys, "ls", target, "--all")
    assert "d29" in out
    _, out, _ = run(capsys, "ls", target, "--json")
    assert json.loads(out)[7]["sizes"] == {"x": 7}


def test_a_collection_at_a_url(
    tmp_path: Path, zarrs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ambar.ingest(zarrs, tmp_path / "x.ambar", **QUICK)
    here = ambar.open_collection(tmp_path / "x.ambar")
    with RangeServer(tmp_path) as server:
        url = f"{server.url}/x.ambar"
        there = ambar.open(url)
        assert isinstance(there, ambar.Collection)
        for found in (there["p3"], pickle.loads(pickle.dumps(there["p3"])), there.load("p3")):
            xr.testing.assert_identical(found.load(), here.load("p3"))
        assert ambar.open_collection(url).names == here.names
        assert "p3" in run(capsys, "ls", url)[1]
        assert "Datasets:    5" in run(capsys, "info", url)[1]
        done = ambar.export(url, tmp_path / "out", format="zarr")
        assert done is not None
        assert (done.failed, len(done.exported)) == ({}, 5)


def test_an_export_of_which_every_dataset_fails_raises(tmp_path: Path) -> None:
    """It returned a result, as if it had succeeded."""
    pytest.importorskip("netCDF4")
    with ambar.open_collection(tmp_path / "x.ambar", "w-", fsync=False) as made:
        made.add("l" * 300, {"v": ("t", np.arange(3.0))})
    with pytest.raises(ambar.AmbarError, match="none of 1 datasets could be written.*too long"):
        ambar.export(tmp_path / "x.ambar", tmp_path / "out", processes=1)


@needs_netcdf4
def test_strings_that_netcdf_would_cut_are_not_exported(tmp_path: Path) -> None:
    """NetCDF cuts strings at NUL characters, without an error."""
    with ambar.open_collection(tmp_path / "x.ambar", "w-", fsync=False) as made:
        made.add("plain", {"v": np.array(["a", "b"], object)})
        made.add("odd", {"v": np.array(["a\0b", "c"], object)})
    done = ambar.export(tmp_path / "x.ambar", tmp_path / "out", processes=1)
    assert done.exported == ["plain"]
    assert "v: expected strings without NUL characters" in done.failed["odd"]
    ambar.export(tmp_path / "x.ambar", tmp_path / "zarr", format="zarr", processes=1)
    assert xr.open_zarr(tmp_path / "zarr" / "odd.zarr").v.values.tolist() == ["a\0b", "c"]


@needs_netcdf4
def test_an_export_to_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error was of permission, and a retry failed because of the empty target."""
    with ambar.open_collection(tmp_path / "x.ambar", "w-", fsync=False) as made:
        made.add("a/small", {"v": np.arange(3.0)})
        made.add("a/large", {"v": np.arange(20_000.0)})
    target = tmp_path / "out"
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=9_000))
    with pytest.raises(ambar.AmbarError, match=r"expected 16,408 bytes of free space.*free some"):
        ambar.export(tmp_path / "x.ambar", target)
    assert [path.name for path in tmp_path.iterdir()] == ["x.ambar"]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=90_000))
    done = ambar.export(tmp_path / "x.ambar", target)
    assert (done.exported, list(done.failed)) == (["a/small"], ["a/large"])
    assert [path.name for path in (target / "a").iterdir()] == ["small.nc"]


@pytest.mark.parametrize("format", ["netcdf", "zarr"])
@needs_netcdf4
def test_a_disk_that_becomes_full_during_an_export(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    format: Any,  # noqa: A002
) -> None:
    with ambar.open_collection(tmp_path / "x.ambar", "w-", fsync=False) as made:
        made.add("p", {"v": np.arange(3.0)})
    free = iter([1 << 20, 0])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free)))

    def fail(*_: object, **__: object) -> None:
        if format == "netcdf":
            raise PermissionError(errno.EACCES, "Permission denied")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(xr.Dataset, f"to_{format}", fail)
    with pytest.raises(ambar.AmbarError, match=r"Errno 28.*free some.*p\."):
        ambar.export(tmp_path / "x.ambar", tmp_path / "out", format=format)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.ambar"]


@pytest.mark.parametrize("count", [0, 1])
def test_ctrl_c_during_an_export(
    tmp_path: Path,
    zarrs: Path,
    count: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It said nothing, and left an empty folder, because of which a retry failed."""
    ambar.ingest(zarrs, tmp_path / "x.ambar", **QUICK)

    class Interrupted(WorkersHere):
        def map(self, function: Any, tasks: Any, _: Any = None) -> Any:
            for path, names, *rest in tasks:
                if count:
                    yield (path, names), function(path, names[:count], *rest)
                raise KeyboardInterrupt

    monkeypatch.setattr("ambar.collection.files.export.Workers", Interrupted)
    target = tmp_path / "out"
    export = ("export", tmp_path / "x.ambar", target, "--format", "zarr")
    code, _, err = run(capsys, *export)
    assert (code, target.exists()) == (130, False)
    assert "out was not written" in err.replace("\n", "")
    target.mkdir()
    code, _, err = run(capsys, *export, "--overwrite")
    assert "out is unchanged" in err
    assert not list(target.iterdir())
