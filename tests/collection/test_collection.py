"""Collections hold what was added, against xarray and NumPy, whatever the shapes and types."""

from __future__ import annotations

import itertools
import pickle
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
import zarr

import ambar
from tests.helpers.profiles import profile, written

ISEL = {"depth": slice(0, 5), "time": slice(2, None, 3)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "profiles.ambar"


def test_datasets_come_back_identical(path: Path) -> None:
    datasets = {f"d{n}": profile(n) for n in range(40)}
    profiles = written(path, datasets)
    assert profiles.names == list(datasets)
    assert len(profiles) == 40
    assert "d7" in profiles
    assert "x" not in profiles
    assert list(profiles) == list(datasets)
    assert len(profiles.families) == 1
    for name, dataset in datasets.items():
        xr.testing.assert_identical(profiles[name].load(), dataset)
        xr.testing.assert_identical(profiles.load(name), dataset)
        assert profiles[name].attrs == dataset.attrs
    text, page = repr(profiles), profiles._repr_html_()
    for part in ("Datasets:    40", "Attributes:  ", "temperature  (depth: 12, time: 9)  float32"):
        assert part in text
    assert "<td" in page
    assert "d19" in page
    assert "d20" not in page


@pytest.mark.parametrize(
    "choice",
    [
        None,
        slice(5, 30, 4),
        ["d9", "d2", "d2"],
        [3, -1],
        np.arange(40) % 7 == 0,
        'platform == "argo" and temperature.max > 18',
        [],
    ],
    ids=["all", "slice", "names", "positions", "mask", "condition", "none"],
)
def test_bulk_reads_equal_stacking(path: Path, choice: Any) -> None:
    datasets = {f"d{n}": profile(n) for n in range(40)}
    profiles = written(path, datasets)
    got = profiles.read(["temperature", "count", "depth", "quality"], choice, isel=ISEL)
    if isinstance(choice, str):
        expected = [
            n for n, d in datasets.items() if d.platform == "argo" and d.temperature.max() > 18
        ]
        assert 0 < len(expected) < 20
    else:
        names = np.array(list(datasets))
        key: Any = slice(None) if choice is None else choice
        named = isinstance(key, list) and key and isinstance(key[0], str)
        expected = (
            key if named else names[key if len(np.shape(key)) != 1 or len(key) else []].tolist()
        )
    assert got.names == expected
    for variable, values in got.items():
        assert isinstance(values, np.ndarray)
        assert not got.missing[variable].any()
        parts = [datasets[name][variable] for name in expected]
        known = [
            part.isel({k: v for k, v in ISEL.items() if k in part.dims}).values for part in parts
        ]
        if known:
            np.testing.assert_array_equal(values, np.stack(known))
            assert values.dtype == known[0].dtype
        else:
            assert len(values) == 0


def test_indices_labels_and_memory_of_the_caller(path: Path) -> None:
    datasets = {f"d{n}": profile(n) for n in range(10)}
    profiles = written(path, datasets)
    whole = np.stack([d.temperature.values for d in datasets.values()])
    cases: list[tuple[dict[str, Any], Any]] = [
        ({"depth": 3}, np.s_[:, 3]),
        ({"depth": -1, "time": [4, 0, -2]}, np.s_[:, -1, [4, 0, -2]]),
        ({"time": slice(None, None, -2)}, np.s_[:, :, ::-2]),
        ({"depth": np.arange(12) > 7}, np.s_[:, 8:]),
    ]
    for isel, key in cases:
        got = profiles.read("temperature", isel=isel)["temperature"]
        np.testing.assert_array_equal(got, whole[key])
    sel = {"depth": slice(100, 300), "time": "2020-01-01T03"}
    expected = np.stack(
        [
            d.temperature.sel(depth=slice(100, 300), time="2020-01-01T03").values
            for d in datasets.values()
        ]
    )
    np.testing.assert_array_equal(
        profiles.read("temperature", sel=sel)["temperature"], expected.reshape(len(datasets), -1)
    )
    out = np.empty((10, 12), "f4")
    got = profiles.read("temperature", isel={"time": 0}, out=out)["temperature"]
    assert got is out
    np.testing.assert_array_equal(out, whole[:, :, 0])
    with pytest.raises(ValueError, match="no variable read has a dimension 'x'"):
        profiles.read("temperature", isel={"x": 0})
    with pytest.raises(ValueError, match="out="):
        profiles.read("temperature", out=np.empty(3))
    with pytest.raises(IndexError):
        profiles.read("temperature", isel={"depth": 12})
    with pytest.raises(KeyError, match="profiles.ambar: no variable 'wind'"):
        profiles.read("wind")
    with pytest.raises(KeyError, match="profiles.ambar: no dataset 'd10'"):
        profiles.read("temperature", ["d10"])
    with pytest.raises(KeyError, match="no label"):
        profiles.read("temperature", sel={"depth": 1.0})
    for bad in ["temperature.max +", "temperature.max", "__import__('os')", "id < (lambda: 1)"]:
        with pytest.raises(ValueError, match="invalid condition at character"):
            profiles.read("temperature", bad)
    with pytest.raises(KeyError, match="statistic 'mean' of 'temperature' does not exist"):
        profiles.read("temperature", "temperature.mean > 1")


def test_coordinates_that_differ_are_kept_by_dataset(path: Path) -> None:
    datasets = {f"d{n}": profile(n) for n in range(6)}
    datasets["late"] = profile(6).assign_coords(time=datasets["d0"].time + np.timedelta64(4, "h"))
    with ambar.open_collection(path, "w-", fsync=False) as profiles:
        profiles.add_many(itertools.islice(datasets.items(), 6))
    with ambar.open_collection(path, "a", fsync=False) as profiles:
        profiles.add("late", datasets["late"])
    profiles = ambar.open_collection(path)
    assert len(profiles.families) == 1
    for name, dataset in datasets.items():
        xr.testing.assert_identical(profiles[name].load(), dataset)
    got = profiles.read("temperature", sel={"time": slice("2020-01-01T05", "2020-01-01T09")})
    values = got["temperature"]
    assert isinstance(values, ambar.RaggedArray)
    for part, dataset in zip(values, datasets.values(), strict=True):
        wanted = dataset.temperature.sel(time=slice("2020-01-01T05", "2020-01-01T09"))
        np.testing.assert_array_equal(part.reshape(wanted.shape), wanted)


def test_labels_apply_to_datasets_that_have_the_variable(path: Path) -> None:
    model = {
        f"m{n}": xr.Dataset(
            {"tas": (("time", "lat"), np.full((5, 3), float(n)))},
            {"time": np.arange(5), "lat": [-45.0, 0.0, 45.0]},
        )
        for n in range(2)
    }
    # Buoys have a ragged time, and a dimension without labels.
    buoys = {
        f"b{n}": xr.Dataset({"sst": (("time", "lat"), np.ones((n + 1, 2)))}, {"time": range(n + 1)})
        for n in range(2)
    }
    mixed = written(path, {**buoys, **model})
    got = mixed.read("tas", sel={"lat": 45.0, "time": slice(1, 2)})
    assert got.missing["tas"].tolist() == [True, True, False, False]
    np.testing.assert_array_equal(got["tas"][2:], [[0, 0], [1, 1]])
    expected = "'lat' has no coordinate of labels in the dataset 'b0' and 1 more; use isel="
    with pytest.raises(ambar.InvalidError, match=expected):
        mixed.read("sst", sel={"lat": 1})
    with pytest.raises(ambar.InvalidError, match="'lat' has no coordinate.* in the dataset 'b1';"):
        mixed.read(["tas", "sst"], ["m0", "b1"], sel={"lat": 45.0})


def test_shapes_side_by_side_and_ragged_profiles(path: Path) -> None:
    rng = np.random.default_rng(1)
    lengths = [5, 5, 8, 0, 3, 8, 100]
    datasets = {
        f"d{n}": xr.Dataset(
            {
                "t": ("obs", rng.normal(size=length)),
                "uv": (("obs", "part"), rng.normal(size=(length, 2)).astype("f4")),
                "name": ("obs", np.array([f"é{i}" for i in range(length)], Any)),
                "station": ((), f"s{n}"),
            },
            {"obs": np.arange(length) * 10},
        )
        for n, length in enumerate(lengths)
    }
    profiles = written(path, datasets)
    assert [family.ragged for family in profiles.families] == [("obs",)]
    for name, dataset in datasets.items():
        xr.testing.assert_identical(profiles[name].load(), dataset)
        xr.testing.assert_identical(profiles.load(name), dataset)
    got = profiles.read(["t", "uv", "station"], isel={"obs": slice(1, None, 2)})
    for variable in ("t", "uv"):
        values = got[variable]
        assert isinstance(values, ambar.RaggedArray)
        assert values.counts.tolist() == [len(range(1, n, 2)) for n in lengths]
        for part, dataset in zip(values, datasets.values(), strict=True):
            np.testing.assert_array_equal(part, dataset[variable][1::2])
    assert np.asarray(got["station"]).tolist() == [f"s{n}" for n in range(len(lengths))]
    same = profiles.read("t", ["d0", "d1"])["t"]
    np.testing.assert_array_equal(same, [datasets["d0"].t, datasets["d1"].t])
    last = profiles.read("t", ["d2", "d6"], isel={"obs": -1})["t"]
    np.testing.assert_array_equal(last, [datasets["d2"].t[-1], datasets["d6"].t[-1]])
    with pytest.raises(IndexError, match="out of range of dimension 'obs' of 1 datasets"):
        profiles.read("t", ["d3", "d2"], isel={"obs": 0})
    expected = r"the ragged 'obs' in the dataset 'd0' and 6 more; use isel=.*\.sel\(obs="
    with pytest.raises(ambar.InvalidError, match=expected):
        profiles.read("t", sel={"obs": 10})
    # The whole is a contiguous ragged array, as CF has it.
    whole = profiles.to_xarray(["d2", "d4", "d6"])
    assert whole.obs_count.attrs["sample_dimension"] == "obs"
    assert whole.obs_count.values.tolist() == [8, 3, 100]
    np.testing.assert_array_equal(whole.t[8:11], datasets["d4"].t)
    assert profiles.to_xarray().obs_count.values.tolist() == lengths
    with ambar.open_collection(path, "a", fsync=False) as more:
        more.add("other", {"t": ("obs", [1, 2])})
        more.add("wind", {"wind": ("obs", [1, 2])})
    several = ambar.open_collection(path)
    with pytest.raises(ValueError, match=r"3 families: d0, d1 and \d+ more \(t.*wind \(wind\)"):
        several.to_xarray()
    with pytest.raises(ValueError, match=r"to_xarray\('wind.count > 0'\)"):
        several.to_xarray(["wind", "other"])
    assert several.to_xarray("wind.count > 0").dataset.values.tolist() == ["wind"]
    with pytest.raises(ValueError, match="found no dataset"):
        several.to_xarray("wind.count > 9")


def test_dates_at_the_ends_of_slices_are_whole_as_in_pandas(path: Path) -> None:
    """A date at the end of a slice was its beginning, so that its other hours were missing."""
    hours = np.datetime64("2024-01-01", "ns") + np.arange(40) * np.timedelta64(5, "h")
    up = xr.Dataset({"v": ("time", np.arange(40))}, {"time": hours})
    profiles = written(path, {"up": up, "down": up.isel(time=slice(None, None, -1))})
    for first, last in [
        ("2024-01-02", "2024-01-03"),
        (None, "2024-01-02"),
        ("2024-01-02", None),
        ("2024-01", "2024-01"),
        ("2024-01-02T05", "2024-01-02T11"),
        ("2024-01-02T01:00:00", "2024-01-02T01:00:00"),
        (np.datetime64("2024-01-02T01"), np.datetime64("2024-01-03")),
    ]:
        for name, ends in (("up", slice(first, last)), ("down", slice(last, first))):
            got = profiles.read("v", [name], sel={"time": ends})["v"][0]
            expected = up.v.sel(time=slice(first, last)).values
            np.testing.assert_array_equal(got, expected[:: 1 if name == "up" else -1])
    assert profiles.read("v", sel={"time": "2024-01-01"})["v"].tolist() == [0, 0]
    wrong: list[Any] = [
        slice("2024", "9999"),
        slice("1000", None),
        np.datetime64("9999"),
        slice(None, date(9999, 1, 1)),
        datetime(1, 1, 1),
    ]
    for label in wrong:
        with pytest.raises(ValueError, match=r"is out of the range of datetime64\[ns\]"):
            profiles.read("v", sel={"time": label})
    unreadable: list[Any] = [slice(None, "January"), "2024-13", ["x"], b"2024-x", object()]
    for label in unreadable:
        with pytest.raises(ValueError, match="sel=: expected a (date such as|label of datetime64)"):
            profiles.read("v", sel={"time": label})


def test_labels_have_nanoseconds(path: Path) -> None:
    times = np.datetime64("2024-01-01", "ns") + np.arange(3) * np.timedelta64(333, "ns")
    profiles = written(path, {"a": xr.Dataset({"v": ("time", [0, 1, 2])}, {"time": times})})
    assert profiles.read("v", sel={"time": pd.Timestamp(times[1])})["v"].tolist() == [1]


@pytest.mark.parametrize(
    ("unit", "label", "exact"),
    [
        ("D", "2024-01-02T06", "2024-01-02"),
        ("D", np.datetime64("2024-01-02T06", "ns"), np.datetime64("2024-01-02T00", "ns")),
        ("D", datetime(2024, 1, 2, 6), datetime(2024, 1, 2)),
        ("D", pd.Timestamp("2024-01-02T00:00:00.000000001"), pd.Timestamp("2024-01-02")),
        ("s", "2024-01-02T00:00:00.5", "2024-01-02T00:00:00.000"),
        ("s", pd.Timestamp("2024-01-02T00:00:00.5"), pd.Timestamp("2024-01-02")),
    ],
)
def test_labels_finer_than_the_unit_of_times(path: Path, unit: str, label: Any, exact: Any) -> None:
    """They were rounded down, so that they were equal to the time before them."""
    # The year 1000 is out of the range of the nanoseconds of some labels.
    days = ["1000-01-01", "2024-01-01", "2024-01-02", "2024-01-03"]
    times = np.array(days, f"M8[{unit}]")
    with ambar.open_collection(path, "w-", fsync=False) as collection:
        for name, step in (("up", 1), ("down", -1)):
            values = {"v": ("time", np.arange(4)[::step]), "time": ("time", times[::step])}
            collection.add(name, values)
    profiles = ambar.open_collection(path)

    def read(name: str, label: Any) -> Any:
        return profiles.read("v", [name], sel={"time": label})["v"][0].tolist()

    assert profiles.load("up").time.dtype == times.dtype
    for labels in (label, [exact, label]):
        with pytest.raises(KeyError, match="'time' has no label"):
            read("up", labels)
    assert read("up", exact) == 2
    assert read("up", slice(label, None)) == [3]
    assert read("up", slice(None, label)) == [0, 1, 2]
    assert read("up", slice(label, label)) == []
    assert read("up", slice(exact, label)) == [2]
    assert read("down", slice(None, label)) == [3]
    assert read("down", slice(label, None)) == [2, 1, 0]


@pytest.mark.parametrize(
    "label", [np.timedelta64(90, "m"), timedelta(minutes=90), pd.Timedelta(3600 * 10**9 + 1, "ns")]
)
def test_labels_finer_than_the_unit_of_durations(path: Path, label: Any) -> None:
    leads = np.arange(-1, 3).astype("m8[h]")
    written(path, {})
    with ambar.open_collection(path, "a", fsync=False) as collection:
        collection.add("a", {"v": ("lead", np.arange(4)), "lead": ("lead", leads)})
    profiles = ambar.open_collection(path)

    def read(label: Any) -> Any:
        return profiles.read("v", sel={"lead": label})["v"][0].tolist()

    with pytest.raises(KeyError, match="'lead' has no label"):
        read(label)
    assert read(np.timedelta64(60, "m")) == 2
    assert read(slice(label, None)) == [3]
    assert read(slice(None, label)) == [0, 1, 2]
    assert read(slice(-label, label)) == [0, 1, 2]
    with pytest.raises(ambar.InvalidError, match="expected a duration of less than 292,000 years"):
        read(slice(None, timedelta.max))


def test_strings_are_invalid_labels_of_numbers(path: Path) -> None:
    """NumPy compared the numbers as strings, and slices selected nothing."""
    profiles = written(path, {"a": profile(0)})
    labels: list[Any] = [slice("1", "3"), "1", ["1"], slice(None, "3")]
    for label in labels:
        with pytest.raises(ValueError, match="sel=: expected a number as a label, found '"):
            profiles.read("temperature", sel={"depth": label})


def test_wrong_types_of_selections(path: Path) -> None:
    profiles = written(path, {name: xr.Dataset({v: ("x", [1])}) for name, v in ("au", "bv")})
    for variables in (3, [3], b"u"):
        for method in (profiles.read, profiles.to_dataframe):
            with pytest.raises(TypeError, match="invalid variables: .*expected a name, or a list"):
                method(variables)  # type: ignore[arg-type]
    for datasets in (3, 1.5, object(), {3: 4.0}.values(), [[0]]):
        with pytest.raises(ValueError, match="datasets: expected names, positions, a slice"):
            profiles.read("u", datasets)
    assert profiles.read("v", iter(["b"])).names == ["b"]
    expected = "expected selected datasets with the variable 'v', found none"
    with pytest.raises(KeyError, match=expected):
        profiles.read("v", ["a"])


def test_variables_by_default_are_those_of_the_selected_datasets(path: Path) -> None:
    """A selection of one family raised an error for the variables of the other ones."""
    datasets = {
        name: xr.Dataset({variable: ("x", [1])} | {"w": ("x", [2])})
        for name, variable in (("a", "u"), ("b", "v"))
    }
    profiles = written(path, datasets)
    assert list(profiles.read()) == ["u", "w", "v"] == list(profiles.read(datasets=[]))
    assert list(profiles.read(datasets=["b"])) == ["v", "w"]
    assert profiles.read(datasets="v.count > 0")["w"].tolist() == [[2]]
    with ambar.open_collection(path, "a", fsync=False) as collection:
        collection.remove("a")
    assert list(ambar.open_collection(path).read()) == ["v", "w"]


def test_an_attribute_may_be_named_dataset(path: Path) -> None:
    """Its values were in the column of the names of the datasets."""
    profiles = written(path, {"a": xr.Dataset({"u": ("x", [1])}, attrs={"dataset": "ERA5"})})
    assert profiles.read("u", 'dataset == "ERA5"').names == ["a"]
    table = profiles.attrs_table().to_pandas()
    assert table.to_dict("list") == {"dataset": ["a"], "attrs.dataset": ["ERA5"]}
    both = xr.Dataset({"u": ("x", [1])}, attrs={"dataset": "ERA5", "attrs.dataset": "land"})
    profiles = written(path.with_name("both.ambar"), {"a": both})
    assert profiles.attrs_table().to_pandas().to_dict("list") == {
        "dataset": ["a"],
        "attrs.attrs.dataset": ["ERA5"],
        "attrs.dataset": ["land"],
    }


def test_two_dimensional_shapes_side_by_side(path: Path) -> None:
    datasets = {f"d{n}": profile(n, depth=12 if n % 3 else 7) for n in range(9)}
    profiles = written(path, datasets)
    got = profiles.read("temperature", isel={"depth": slice(0, 20, 2)})["temperature"]
    assert isinstance(got, ambar.RaggedArray)
    for part, dataset in zip(got, datasets.values(), strict=True):
        np.testing.assert_array_equal(part, dataset.temperature[::2])
    stacked = profiles.read("temperature", isel={"depth": slice(0, 5)})["temperature"]
    assert np.shape(stacked) == (9, 5, 9)
    grids = {f"g{n}": xr.Dataset({"v": (("y", "x"), np.full((n + 1, 4 - n), n))}) for n in range(3)}
    other = written(path.with_name("grids.ambar"), grids)
    values = other.read("v")["v"]
    assert isinstance(values, ambar.RaggedArray)
    for n, part in enumerate(values):
        np.testing.assert_array_equal(part, grids[f"g{n}"].v)


def test_variables_that_some_lack(path: Path) -> None:
    extra: dict[str, Any] = {"salinity": ("time", np.arange(9.0)), "flag": ("time", np.arange(9))}
    datasets = {f"d{n}": profile(n, **(extra if n % 2 else {})) for n in range(6)}
    profiles = written(path, datasets)
    got = profiles.read(["salinity", "flag", "temperature"])
    assert got.missing["salinity"].tolist() == [True, False] * 3
    assert np.isnan(got["salinity"][::2]).all()
    assert (got["flag"][::2] == 0).all()
    np.testing.assert_array_equal(got["salinity"][1], np.arange(9.0))
    assert not got.missing["temperature"].any()
    assert len(profiles.stats("salinity")) == 3
    assert profiles.schema.differences[0] == "salinity: missing in 3 of 6 datasets"
    with pytest.raises(ambar.NotFoundError, match="no variable 'salt'; "):
        profiles.schema["salt"]
    assert profiles.read("flag", "salinity.max > 0").names == ["d1", "d3", "d5"]


def test_summaries_describe_the_largest_family(path: Path) -> None:
    """The unit was that of the last family, beside the type of the first one."""
    numbers = ("time", np.arange(3.0), {"units": "days since 2000-01-01", "calendar": "360_day"})
    with ambar.open_collection(path, "w-", ragged=["time"], fsync=False) as profiles:
        profiles.add("empty", {"time": ("time", np.zeros(0, "M8[s]"))})
        for length in (2, 3):
            profiles.add(f"d{length}", {"time": ("time", np.zeros(length, "M8[ns]"))})
        profiles.add("model", {"time": numbers})
    profiles = ambar.open_collection(path)
    assert profiles.schema.summary("time") == ("(time: *)", "datetime64[ns]")
    assert "datetime64[ns]  " in repr(profiles)
    assert "days since" not in repr(profiles)
    with ambar.open_collection(path, "a", fsync=False) as profiles:
        profiles.add("plane", {"time": (("y", "x"), np.zeros((1, 2), "M8[ns]"))})
    profiles = ambar.open_collection(path)
    assert "time: shape (*,) in 4, (1, 2) in 1" in profiles.schema.differences
    with pytest.raises(
        ValueError, match=r"empty \(time: datetime64\[s\] instead of datetime64\[ns"
    ):
        profiles.to_xarray(["empty", "d2", "d3"])


def test_differences_keep_names_of_dimensions(path: Path) -> None:
    """The dimension "None" was printed as "*", which is for different lengths."""
    datasets = {dim: xr.Dataset({"v": ((dim, "x"), [[1]])}) for dim in ("None", "y")}
    profiles = written(path, datasets)
    expected = "v: dims ('None', 'x') in 1, ('y', 'x') in 1"
    assert profiles.schema.differences == [expected]


def test_a_collection_without_values_to_draw(path: Path) -> None:
    """Drawing it raised ZeroDivisionError."""
    pytest.importorskip("matplotlib")
    profiles = written(path, {"a": xr.Dataset({"s": ((), "text")})})
    with pytest.raises(ValueError, match="expected positions of datasets, or numbers along a dim"):
        profiles.plot()


@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False, True]),
        np.array([1, -2, 3], "i1"),
        np.array([2**63, 1, 2], "u8"),
        np.array([1.5, np.nan, -0.0], "f2"),
        np.array([1 + 2j, np.nan, 3], "c8"),
        np.array([1, 2, 3], "c16"),
        np.array(["2020-01-01", "NaT", "1999-12-31"], "M8[ns]"),
        np.array([1, 2, 3], "m8[s]"),
        np.array(["a", "", "žluť"], Any),
        np.array(["ab", "c", ""]),
        np.array([b"\x00x", b"", b"y"], Any),
        np.array([1, 2, 3], ">f8"),
    ],
    ids=lambda values: values.dtype.str,
)
def test_every_type(path: Path, values: np.ndarray) -> None:
    datasets = {
        f"d{n}": xr.Dataset({"v": ("x", np.roll(values, n)), "s": ((), values[n])})
        for n in range(3)
    }
    profiles = written(path, datasets)
    for name, dataset in datasets.items():
        found = profiles.load(name)
        np.testing.assert_array_equal(found.v.values, dataset.v.values)
        np.testing.assert_array_equal(found.s.values, dataset.s.values)
        if values.dtype.kind not in "U" and values.dtype.isnative:
            assert found.v.dtype == dataset.v.dtype
    got = profiles.read("v", isel={"x": slice(1, None)})["v"]
    np.testing.assert_array_equal(got, np.stack([np.roll(values, n)[1:] for n in range(3)]))


def test_attributes_that_are_equal_and_not_the_same(path: Path) -> None:
    marked = [{"float": "x"}, {"float": "nan"}, {"dict": {"datetime64": 1}}, {"a": {"dict": 2}}]
    attributes = [1, True, 1.0, 0, False, -0.0, "1", [1, True], [True, 1.0], *marked]
    for constant in (False, True):
        where = path.with_name(f"{constant}.ambar")
        datasets = {
            f"d{n}": xr.Dataset({"v": ("x", [1])}, attrs={"a": value})
            for n, value in enumerate(attributes[-1:] * 3 if constant else attributes)
        }
        profiles = written(where, datasets)
        for name, dataset in datasets.items():
            assert repr(profiles[name].attrs) == repr(dataset.attrs)


def test_attributes_of_any_type(path: Path) -> None:
    attributes: list[dict[str, Any]] = [
        {"a": 1, "b": [1, 2], "t": np.datetime64("2020-01-01T00:00:01.5"), "n": float("nan")},
        {"a": "text", "b": {"c": None}, "when": np.timedelta64(3, "h")},
        {"a": 2.5, "array": np.arange(3), "yes": True},
    ]
    datasets = {
        f"d{n}": xr.Dataset({"v": ("x", [n], {"units": "K", "serial": n})}, attrs=attrs)
        for n, attrs in enumerate(attributes)
    }
    profiles = written(path, datasets)
    assert profiles["d0"].attrs["t"] == attributes[0]["t"]
    assert np.isnan(profiles["d0"].attrs["n"])
    assert profiles["d1"].attrs == attributes[1]
    assert profiles["d2"].attrs == {"a": 2.5, "array": [0, 1, 2], "yes": True}
    assert profiles["d2"].v.attrs == {"units": "K", "serial": 2}
    columns = profiles.attrs
    assert columns["a"].tolist() == [1, "text", 2.5]
    assert columns["yes"].tolist() == [None, None, True]
    table = profiles.attrs_table()
    assert table["dataset"].tolist() == ["d0", "d1", "d2"]
    import pyarrow as pa

    assert pa.table(table).column("a").to_pylist() == ["1", "text", "2.5"]
    assert profiles.read("v", 'a == "text" or yes == True').names == ["d1", "d2"]
    assert profiles.read("v", "a in [1, 2.5]").names == ["d0", "d2"]
    with pytest.raises(ValueError, match="expected strings, numbers"):
        written(path.with_name("x.ambar"), {"d": xr.Dataset(attrs={"f": object()})})
    with pytest.raises(ValueError, match='the name "ambar" is reserved'):
        written(path.with_name("x.ambar"), {"d": xr.Dataset(attrs={"ambar": 1})})


def test_statistics_need_no_values(path: Path) -> None:
    datasets = {f"d{n}": profile(n) for n in range(5)}
    datasets["d2"]["temperature"][0, :2] = np.nan
    datasets["d3"]["temperature"][:] = np.nan
    table = written(path, datasets).stats("temperature")
    assert table["dataset"].tolist() == list(datasets)
    assert table["nulls"].tolist() == [0, 0, 2, 108, 0]
    assert table["count"].tolist() == [108] * 5
    for name, values in {"min": xr.Dataset.min, "max": xr.Dataset.max}.items():
        known = [values(d).temperature.item() for d in datasets.values()]
        np.testing.assert_array_equal(table[name], known)
    times = ambar.open_collection(path).stats("time")
    assert times["min"][0] == datasets["d0"].time.values[0]


def test_types_that_differ(path: Path) -> None:
    def one(dtype: str) -> xr.Dataset:
        return xr.Dataset({"v": ("x", np.arange(3).astype(dtype))})

    kept = written(path, {"a": one("f4"), "b": one("f8"), "c": one("i2")})
    assert len(kept.families) == 3
    found = kept.read("v")["v"]
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float64
    cast = written(path.with_name("c.ambar"), {"a": one("f4"), "b": one("f8")}, on_mismatch="cast")
    assert len(cast.families) == 1
    assert cast.load("b").v.dtype == np.float32
    for first, value in (("i2", 70_000), ("u1", -1), ("f4", 1e300), ("i4", 0.5)):
        datasets = {"a": one(first), "b": xr.Dataset({"v": ("x", np.array([1, value]))})}
        with pytest.raises(ValueError, match="cannot represent"):
            written(path.with_name(f"{first}.ambar"), datasets, on_mismatch="cast")
    many = {f"d{n}": one("i8") if n != 300 else one("i8") + 70_000 for n in range(500)}
    with ambar.open_collection(path.with_name("m.ambar"), "w-", on_mismatch="cast") as collection:
        collection.add("a", one("i2"))
        with pytest.raises(ValueError, match="dataset 'd300': v has values of int64 that int16"):
            collection.add_many(many)
    with pytest.raises(ValueError, match=r"v has dtype float64, expected float32"):
        written(path.with_name("r.ambar"), {"a": one("f4"), "b": one("f8")}, on_mismatch="raise")
    with pytest.raises(ValueError, match="on_mismatch"):
        ambar.open_collection(path.with_name("o.ambar"), "w-", on_mismatch="guess")  # type: ignore[arg-type]


def test_an_error_bound_and_chunks(path: Path) -> None:
    datasets = {f"d{n}": profile(n) for n in range(30)}
    encoding = {"temperature": {"error_bound": 0.05, "chunks": (12, 3)}}
    profiles = written(path, datasets, encoding=encoding)
    got = profiles.read("temperature")["temperature"]
    known = np.stack([d.temperature.values for d in datasets.values()])
    assert 0 < np.abs(got - known).max() <= 0.05
    array = profiles.store["f0/temperature"]
    assert array.error_bound == 0.05
    assert array.chunks[1:] == (12, 3)
    with pytest.raises(ValueError, match="unknown"):
        ambar.open_collection(path, "w-", encoding={"t": {"zlib": True}})


def test_all_as_one_dataset_and_dask(path: Path) -> None:
    datasets = {f"d{n}": profile(n) for n in range(20)}
    profiles = written(path, datasets)
    whole = profiles.to_xarray()
    assert whole.sizes == {"dataset": 20, "depth": 12, "time": 9}
    assert whole.attrs == {"project": "deep"}
    expected = np.stack([d.temperature.values for d in datasets.values()])
    np.testing.assert_array_equal(whole.temperature, expected)
    np.testing.assert_array_equal(whole.temperature.sel(dataset="d7"), expected[7])
    np.testing.assert_array_equal(whole.temperature[[5, 2], 3, ::2], expected[[5, 2], 3, ::2])
    some = profiles.to_xarray(["d9", "d1", "d4"])
    np.testing.assert_array_equal(some.temperature[1:], expected[[1, 4]])
    assert pickle.loads(pickle.dumps(profiles["d3"])).identical(datasets["d3"])
    lazy = whole.chunk(dataset=6, time=4)
    for scheduler in ("threads", "processes"):
        mean = lazy.temperature.mean("dataset").compute(scheduler=scheduler)
        np.testing.assert_allclose(mean, expected.mean(0), rtol=1e-5)
    frame = profiles.to_dataframe(datasets=["d2", "d3"])
    assert len(frame) == 2 * 12 * 9
    assert frame["dataset"].unique().tolist() == ["d2", "d3"]


def test_dask_distributed_workers_read_by_themselves(path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    datasets = {f"d{n}": profile(n) for n in range(8)}
    profiles = written(path, datasets)
    expected = np.stack([d.temperature.values for d in datasets.values()])
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        total = profiles.to_xarray().chunk(dataset=4).temperature.sum("depth").compute()
    np.testing.assert_allclose(total, expected.sum(1), rtol=1e-5)


def test_mappings_of_arrays_are_taken_too(path: Path) -> None:
    with ambar.open_collection(path, "w-", fsync=False) as profiles:
        profiles.add("a", {"x": [1, 2, 3], "y": ("x", np.ones(3), {"units": "m"}), "z": 4.0})
        with pytest.raises(ValueError, match="a dimension has|dimension 'x' has length"):
            profiles.add("b", {"x": ("x", [1, 2]), "y": ("x", [1, 2, 3])})
        with pytest.raises(ValueError, match="string that is not empty"):
            profiles.add("", {"x": [1]})
        with pytest.raises(ValueError, match="dimension name 'dataset' is reserved"):
            profiles.add("c", {"x": ("dataset", [1])})
    found = ambar.open_collection(path)["a"]
    assert found.y.attrs == {"units": "m"}
    assert found.z.item() == 4.0


def test_other_readers_see_plain_zarr(path: Path) -> None:
    datasets = {f"d{n}": profile(n) for n in range(7)}
    written(path, datasets)
    store = zarr.storage.ZipStore(path, mode="r")
    family = xr.open_zarr(store, group="f0", consolidated=False)
    expected = np.stack([d.temperature.values for d in datasets.values()])
    np.testing.assert_array_equal(family.temperature, expected)
    np.testing.assert_array_equal(family.time, datasets["d0"].time)
    names = zarr.open_array(store, path="datasets/name", mode="r")[:]
    assert np.asarray(names).tolist() == list(datasets)


def test_ragged_datasets_have_their_own_sizes(path: Path) -> None:
    """Every dataset loaded after the first of a ragged family had the first one's sizes."""
    lengths = {"a": 7, "b": 3, "c": 0}
    with ambar.open_collection(path, "w-", ragged=["z"], fsync=False) as profiles:
        for name, length in lengths.items():
            profiles.add(name, {"t": ("z", np.arange(float(length))), "lat": ((), 1.0)})
    profiles = ambar.open_collection(path)
    for name, length in lengths.items():
        for found in (profiles.load(name), profiles[name]):
            assert dict(found.sizes) == {"z": length}
            assert found.isel(z=slice(0, 2)).sizes["z"] == min(length, 2)
    frame = profiles.to_dataframe()
    assert frame.groupby("dataset").size().to_dict() == {"a": 7, "b": 3}
    assert frame.t.tolist() == [*range(7), *range(3)]


def test_tables_of_datasets_that_differ(path: Path) -> None:
    """Scalars alone, or no variables, raised xarray's error, which named no dataset."""
    with ambar.open_collection(path, "w-", fsync=False) as profiles:
        profiles.add("grid", {"u": (("x", "y"), np.arange(4.0).reshape(2, 2)), "t": ("z", [1.0])})
        profiles.add("scalars", {"lat": ((), 2.5)})
        profiles.add("nothing", {})
        profiles.add("long", {name: (name, np.zeros(2**21, "i1")) for name in "abc"})
    profiles = ambar.open_collection(path)
    frame = profiles.to_dataframe(datasets=["grid", "scalars", "nothing"])
    assert frame.dataset.tolist() == ["grid"] * 4 + ["scalars", "nothing"]
    assert frame.u.tolist()[:4] == [0.0, 1.0, 2.0, 3.0]
    assert frame.lat.tolist()[4] == 2.5
    columns = ["dataset", "x", "y", "u"]
    for variables in ("u", ["u"]):
        for datasets in (["grid"], [0], slice(1), np.arange(4) == 0):
            frame = profiles.to_dataframe(variables, datasets)
            assert (frame.columns.tolist(), len(frame)) == (columns, 4)
    assert profiles.to_dataframe("u", "u.max > 2").dataset.tolist() == ["grid"] * 4
    nothing = profiles.to_dataframe("u", "u.max > 9")
    assert (nothing.columns.tolist(), len(nothing)) == (columns, 0)
    for variables in ("lat", ["lat"]):
        nothing = profiles.to_dataframe(variables, [])
        assert dict(nothing.dtypes.map(str))["lat"] == "float64"
        assert (nothing.columns.tolist(), len(nothing)) == (["dataset", "lat"], 0)
    nothing = profiles.to_dataframe(["lat", "u"], [])
    assert (nothing.columns.tolist(), len(nothing)) == ([*columns, "lat"], 0)
    with pytest.raises(ValueError, match=r"dataset 'long': .*choose some with variables"):
        profiles.to_dataframe(datasets=["long"])
    with pytest.raises(KeyError, match="no variable 'w'"):
        profiles.to_dataframe(variables=["w"])


def test_names_in_brackets_alone(path: Path) -> None:
    with ambar.open_collection(path, "w-", fsync=False) as profiles:
        profiles.add("a", {"t": ("z", [1.0])})
    profiles = ambar.open_collection(path)
    for key in (0, np.int64(0), slice(0, 1), ["a"]):
        for get in (profiles.__getitem__, profiles.load):
            with pytest.raises(TypeError, match=r"expected the name of a dataset, found .*read"):
                get(key)  # type: ignore[arg-type]
    assert 0 not in profiles


def test_empty_selections_and_dims_of_families_that_differ(path: Path) -> None:
    """Ragged variables of several types raised NumPy's error for an empty selection."""
    with ambar.open_collection(path, "w-", ragged=["z"], fsync=False) as profiles:
        for name, dtype in (("a", "f4"), ("b", "f8")):
            profiles.add(
                name, {"t": ("z", np.ones(3, dtype)), "u": (("z", "k"), np.ones((3, 2), dtype))}
            )
        profiles.add("plane", {"t": (("y", "x"), np.ones((2, 2), "f4"))})
        profiles.add("led", {"led": (("n", "z"), np.ones((1, 3), "f4"))})
    profiles = ambar.open_collection(path)
    selections: list[Any] = [[], "t.max > 3", slice(0, 0)]
    for datasets in selections:
        data = profiles.read(["t", "u"], datasets)
        assert data.names == []
        for name, shape in (("t", (0,)), ("u", (0, 2))):
            assert isinstance(data[name], ambar.RaggedArray)
            assert len(data[name]) == 0
            assert (data[name].values.shape, data[name].values.dtype) == (shape, "f8")
        for isel, stack in ((None, False), (None, True), ({"n": 0}, False), ({"n": 0}, True)):
            found = profiles.read("led", datasets, isel=isel, stack=stack)["led"]
            assert (len(found), found.values.dtype) == (0, "f4")
    expected = r"'t' has different numbers of dimensions: \(z\) in 'b', \(y, x\) in 'plane'; select"
    with pytest.raises(ValueError, match=expected):
        profiles.read("t", ["b", "plane"])
    with pytest.raises(
        ValueError, match=r"2 families: a \(t, u\); b \(t: float64 instead of float32, u"
    ):
        profiles.to_xarray(["a", "b"])
    assert [len(part) for part in profiles.read("t", isel={"y": 0})["t"]] == [3, 3, 2, 0]


def test_single_strings_come_back(path: Path) -> None:
    """NumPy dropped trailing NULs of strings without dimensions, and missing ones became empty."""
    with ambar.open_collection(path, "w-", fsync=False) as collection:
        for name, value in (("a", "x\0"), ("b", None), ("c", "y")):
            collection.add(name, {"s": ((), np.array(value, object))})
    collection = ambar.open_collection(path)
    for read in (collection.load, collection.__getitem__):
        found = [read(name).s.values.item() for name in collection]
        assert found[::2] == ["x\0", "y"]
        assert np.isnan(found[1])
