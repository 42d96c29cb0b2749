"""Datasets whose lengths differ along one dimension or several; missing strings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ambar
from tests.helpers.argo_files import argo, decoded_bytes, write_files
from tests.helpers.netcdf_files import needs_netcdf4
from tests.helpers.range_server import RangeServer

NAN = float("nan")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "profiles.ambar"


def written(path: Path, datasets: dict[str, Any], **options: Any) -> ambar.Collection:
    with ambar.open_collection(path, "w-", fsync=False, **options) as profiles:
        profiles.add_many(datasets.items())
    return ambar.open_collection(path)


def profile(number: int, levels: int, history: int = 2) -> xr.Dataset:
    """A profile as Argo's: `N_PROF`, of length 1, before `N_LEVELS`."""
    rng = np.random.default_rng(number)
    flags = rng.choice(np.array([b"1", b"4", NAN], object), (1, levels))
    return xr.Dataset(
        {
            "TEMP": (("N_PROF", "N_LEVELS"), rng.normal(size=(1, levels)).astype("f4")),
            "TEMP_QC": (("N_PROF", "N_LEVELS"), flags),
            "BINS": (("N_PROF", "N_LEVELS", "BIN"), rng.normal(size=(1, levels, 2))),
            "LATITUDE": ("N_PROF", [float(number)]),
            "ACTION": (("N_HISTORY", "N_PROF"), np.full((history, 1), "IP", object)),
        },
        attrs={"id": number},
    )


def test_argo_profiles_are_one_small_family(tmp_path: Path) -> None:
    """A leading `N_PROF` kept `N_LEVELS` from being ragged: each length was a family of its own."""
    datasets = {f"p{number}": argo(number) for number in range(60)}
    profiles = written(tmp_path / "x.ambar", datasets)
    assert [family.ragged for family in profiles.families] == [("N_HISTORY", "N_LEVELS")]
    decoded = sum(map(decoded_bytes, datasets.values()))
    assert (tmp_path / "x.ambar").stat().st_size < 3 * decoded
    for name, dataset in datasets.items():
        xr.testing.assert_identical(profiles.load(name), dataset)
    with RangeServer(tmp_path) as server:
        remote = ambar.open_collection(f"{server.url}/x.ambar")
        server.take()
        values = remote.read("TEMP")["TEMP"]
        assert len(server.take()) <= 6
    for found, dataset in zip(values, datasets.values(), strict=True):
        np.testing.assert_array_equal(found, dataset.TEMP)


@needs_netcdf4
def test_argo_files_are_ingested_unchanged(tmp_path: Path) -> None:
    """Flags of one letter with a fill value were refused as objects of bytes and floats."""
    files = write_files(tmp_path / "files", 24)
    done = ambar.ingest(tmp_path / "files", tmp_path / "x.ambar", ragged=["N_LEVELS"], processes=1)
    assert done.failed == {}
    profiles = ambar.open_collection(tmp_path / "x.ambar")
    assert [family.ragged for family in profiles.families] == [("N_HISTORY", "N_LEVELS")]
    for file in files:
        expected = xr.load_dataset(file)
        for found in (profiles.load(file.stem), profiles[file.stem].load()):
            xr.testing.assert_identical(found, expected)
            assert repr(found.TEMP_QC.values.tolist()) == repr(expected.TEMP_QC.values.tolist())


def test_reading_along_several_ragged_dimensions(path: Path) -> None:
    lengths = [(5, 2), (3, 2), (5, 0), (0, 4), (8, 1), (3, 2)]
    datasets = {f"p{n}": profile(n, *pair) for n, pair in enumerate(lengths)}
    profiles = written(path, datasets)
    (family,) = profiles._families
    assert family.ragged == ("N_LEVELS", "N_HISTORY")
    for name, dataset in datasets.items():
        xr.testing.assert_identical(profiles.load(name), dataset)
        xr.testing.assert_identical(profiles[name].load(), dataset)
        part = {"N_PROF": 0, "N_LEVELS": slice(1, 3), "N_HISTORY": slice(0, 1)}
        xr.testing.assert_identical(profiles[name].isel(part).load(), dataset.isel(part))
        part = {"N_PROF": [0, 0], "N_LEVELS": slice(None, None, 2), "BIN": -1}
        xr.testing.assert_identical(profiles[name].isel(part).load(), dataset.isel(part))
    cases: list[dict[str, Any]] = [
        {},
        {"N_PROF": 0},
        {"N_PROF": slice(0, 1), "N_LEVELS": slice(1, 3)},
        {"N_PROF": slice(0, 0)},
        {"N_PROF": [0, 0]},
        {"N_PROF": -1, "N_LEVELS": slice(None, 3, 2), "N_HISTORY": slice(-1, None)},
    ]
    for isel in cases:
        names = ["TEMP", "BINS", "TEMP_QC", "LATITUDE", "ACTION"]
        wanted = [name for name in names if set(isel) <= set(datasets["p0"][name].dims)] or names
        for stack in (True, False):
            bulk = profiles.read(wanted, isel=isel, stack=stack)
            for name in wanted:
                for dataset, found in zip(datasets.values(), bulk[name], strict=True):
                    part = {dim: key for dim, key in isel.items() if dim in dataset[name].dims}
                    expected = dataset[name].isel(part).values
                    assert np.shape(found) == expected.shape
                    assert repr(np.asarray(found).tolist()) == repr(expected.tolist())
    part = {"N_LEVELS": [2, 0]}
    assert isinstance(profiles.read("BINS", ["p1", "p5"], isel=part)["BINS"], ambar.RaggedArray)
    same = profiles.read("BINS", ["p1", "p5"], isel=part, stack=True)["BINS"]
    assert isinstance(same, np.ndarray)
    assert same.shape == (2, 1, 2, 2)
    last = profiles.read("BINS", ["p1", "p4"], isel={"N_LEVELS": -1})["BINS"]
    expected_last = [datasets[name].BINS.values[:, -1] for name in ("p1", "p4")]
    np.testing.assert_array_equal(last, expected_last)
    with pytest.raises(IndexError):
        profiles.read("TEMP", isel={"N_PROF": 1})


def test_several_ragged_dimensions_as_one_dataset(path: Path) -> None:
    datasets = {f"p{n}": profile(n, 3 + n, n) for n in range(4)}
    whole = written(path, datasets).to_xarray()
    assert whole.sizes == {"N_LEVELS": 18, "N_HISTORY": 6, "N_PROF": 1, "BIN": 2, "dataset": 4}
    assert whole.N_LEVELS_count.values.tolist() == [3, 4, 5, 6]
    assert whole.N_HISTORY_count.attrs == {"sample_dimension": "N_HISTORY"}
    expected = np.concatenate([dataset.TEMP.values[0] for dataset in datasets.values()])
    np.testing.assert_array_equal(whole.TEMP, expected)


def test_lengths_met_later_become_ragged_in_few_families(path: Path) -> None:
    """Committed datasets stay unchanged; later datasets share one family that is ragged."""
    datasets = {f"p{n}": profile(n, 4, 2) for n in range(3)}
    written(path, datasets)
    more = {f"q{n}": profile(n, 3 + n % 5, 1 + n % 3) for n in range(30)}
    for part in (dict(list(more.items())[:7]), dict(list(more.items())[7:])):
        with ambar.open_collection(path, "a", fsync=False) as profiles:
            profiles.add_many(part.items())
    profiles = ambar.open_collection(path)
    assert len(profiles.families) <= 3
    for name, dataset in (datasets | more).items():
        xr.testing.assert_identical(profiles.load(name), dataset)
    with ambar.open_collection(path, "a", fsync=False) as profiles:
        profiles.extend("q3", more["q3"].isel(N_LEVELS=slice(0, 2)), "N_LEVELS")
    grown = ambar.open_collection(path).load("q3")
    both = [more["q3"].TEMP, more["q3"].TEMP[:, :2]]
    np.testing.assert_array_equal(grown.TEMP, np.concatenate(both, 1))


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        (
            {"t": (("N_PROF", "N_LEVELS"), np.zeros((2, 3)))},
            "t has the dimension 'N_PROF' of length 2 before 'N_LEVELS'",
        ),
        (
            {"t": (("N_LEVELS", "N_HISTORY"), np.zeros((2, 3)))},
            r"'N_LEVELS' and 'N_HISTORY' are both dimensions of t",
        ),
    ],
)
def test_a_dimension_that_cannot_be_ragged_is_an_error(
    path: Path, variables: Any, why: str
) -> None:
    """`ragged` was ignored for such datasets, which became a family for each shape."""
    with ambar.open_collection(path, "w-", fsync=False, ragged=["N_LEVELS", "N_HISTORY"]) as c:
        with pytest.raises(ValueError, match=f"dataset 'bad': ragged=.*{why}"):
            c.add("bad", variables)
        c.add("good", {"t": ("N_LEVELS", np.zeros(3))})
    assert ambar.open_collection(path).names == ["good"]


def test_two_lengths_of_one_variable_make_families_by_shape(path: Path) -> None:
    datasets = {f"d{n}": {"t": (("x", "y"), np.full((n + 1, n + 2), n))} for n in range(3)}
    profiles = written(path, datasets)
    assert [family.ragged for family in profiles.families] == [()] * 3
    for n in range(3):
        assert (profiles.load(f"d{n}").t.values == np.full((n + 1, n + 2), n)).all()


def _objects(*values: Any) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


@pytest.mark.parametrize(
    ("values", "nulls"),
    [
        (_objects(b"1", NAN, b" ", b"4"), 1),
        (_objects(NAN, b"1", b"", NAN), 2),
        (_objects("a", None, "", "é"), 1),
        (_objects("\0", None, "\0\0a", "a\0"), 1),
        (_objects(b"\0", b"\0\0", NAN, b"\0x"), 1),
        (_objects("\0", "\0a", "b", ""), 0),
        (_objects(None, NAN, None, NAN), 4),
        (_objects("a", pd.NA, "b", pd.NA), 2),
        (_objects(pd.NA, b"a", NAN, None), 3),
    ],
)
def test_missing_strings_are_read_as_nan(path: Path, values: np.ndarray, nulls: int) -> None:
    """Objects with None or NaN among them were refused."""
    other = values[::-1].copy()
    datasets = {"a": {"q": ("x", values)}, "b": {"q": ("x", other)}, "c": {"q": ("x", other[:1])}}
    profiles = written(path, datasets)
    for name, (_, given) in ((name, dataset["q"]) for name, dataset in datasets.items()):
        expected = [NAN if pd.isna(v) else v for v in given]
        for found in (
            profiles.load(name).q,
            profiles[name].q[:],
            profiles.read("q", [name])["q"][0],
        ):
            assert repr(np.asarray(found).tolist()) == repr(expected)
    assert profiles.stats("q")["nulls"].tolist()[:2] == [nulls, nulls]


def test_texts_of_which_none_is_present_take_the_type_of_others(path: Path) -> None:
    """Datasets without a flag, or without values, were of another type and so another family."""
    flags = xr.Variable("x", _objects(NAN, NAN), encoding={"dtype": np.dtype("S1")})
    datasets = {
        "first": xr.Dataset({"q": flags}),
        "some": xr.Dataset({"q": ("x", _objects(b"1", NAN))}),
        "none": {"q": ("x", _objects(None, None))},
        "empty": {"q": ("x", np.empty(0, "S1"))},
    }
    profiles = written(path, datasets)
    (family,) = profiles._families
    assert family.columns["q"].type_name == "bytes"
    assert repr([profiles.load(name).q.values.tolist() for name in profiles.names]) == repr(
        [[NAN, NAN], [b"1", NAN], [NAN, NAN], []]
    )


def test_coordinates_with_missing_strings(path: Path) -> None:
    names = xr.DataArray(_objects("a", None, "c"), dims="x")
    datasets = {n: xr.Dataset({"v": ("x", [1, 2, 3])}, {"name": names}) for n in ("a", "b")}
    profiles = written(path, datasets)
    assert profiles._families[0].columns["name"].shared
    for name, dataset in datasets.items():
        xr.testing.assert_identical(profiles.load(name), dataset)
    xr.testing.assert_equal(profiles.to_xarray().name, names.assign_coords(name=names))


def test_commits_of_bytes_without_values(path: Path) -> None:
    written(path, {"a": xr.Dataset({"v": ("x", np.array([b"q"]))})}, ragged=["x"])
    with ambar.open_collection(path, "a", fsync=False) as profiles:
        profiles.add("b", xr.Dataset({"v": ("x", np.array([], "S1"))}))
    found = ambar.open_collection(path)
    assert found.load("b").v.shape == (0,)
    assert list(map(len, found.read("v", isel={"x": []})["v"])) == [0, 0]


def test_selections_of_datasets_without_the_variable(path: Path) -> None:
    found = written(path, {"a": {"v": ("x", [1.0])}, "b": {"w": ("x", [1.0])}})
    with pytest.raises(KeyError, match="with the variable 'v', found none"):
        found.read("v", ["b"], isel={"x": slice(0, 1)})


def test_repeated_labels_are_refused(path: Path) -> None:
    dataset = xr.Dataset({"v": ("x", [1.0, 2.0, 3.0])}, coords={"x": [0.0, 0.0, 1.0]})
    found = written(path, {"a": dataset})
    for label in (0.0, [1.0, 0.0]):
        with pytest.raises(ValueError, match=r"'x' has the label 0\.0 repeatedly; use isel="):
            found.read("v", sel={"x": label})
    assert found.read("v", sel={"x": 1.0})["v"] == [3.0]
