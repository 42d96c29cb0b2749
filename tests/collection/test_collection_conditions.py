"""Conditions on datasets select the rows that pandas selects from a table of the same columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ambar
from tests.helpers.profiles import written

# Conditions in the grammar of pandas as well, with "_" in place of "." in names.
CONDITIONS = [
    "platform == 'argo' and temperature.max > 24",
    "'argo' < platform or cycle in [0, 3, 4]",
    "platform not in ('argo', 'ship') and not cycle > 13",
    "temperature.max - temperature.min > 12",
    "0.5 * (temperature.max + temperature.min) <= salinity.min",
    "2 <= drift < cycle / 2 + 1",
    "drift != drift",
    "temperature.count == 6 and salinity.nulls == 0",
    "station == 'Kiel'",
    "station != 'Kiel' and cycle > 2",
]


@pytest.fixture(scope="module")
def datasets() -> dict[str, xr.Dataset]:
    """Twenty datasets; some lack an attribute, one lacks a variable."""
    random = np.random.default_rng(3)
    found = {}
    for number in range(20):
        values = random.normal(20, 5, 6).astype("f4")
        variables = {"salinity": ("depth", values + 10), "temperature": ("depth", values)}
        if number == 7:
            del variables["temperature"]
        attributes = {
            "platform": ["argo", "glider", "ship"][number % 3],
            "cycle": number,
            "drift": 0.5 * number if number % 4 else float("nan"),
        }
        if number % 5 == 0:
            attributes["station"] = "Kiel" if number % 2 else "Brest"
            attributes["launch"] = np.datetime64("2020-01-01")
            attributes["sensors"] = ["CTD", "O2"]
            variables["depth"] = ("depth", np.arange(6).astype("m8[ns]"))
        found[f"d{number}"] = xr.Dataset(variables, attrs=attributes)
    return found


@pytest.fixture(scope="module")
def profiles(
    tmp_path_factory: pytest.TempPathFactory, datasets: dict[str, xr.Dataset]
) -> ambar.Collection:
    """The datasets in a store."""
    return written(tmp_path_factory.mktemp("profiles") / "profiles.ambar", datasets)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_equal_pandas(
    profiles: ambar.Collection, datasets: dict[str, xr.Dataset], condition: str
) -> None:
    rows = []
    for name, dataset in datasets.items():
        row = {"name": name, "station": None, **dataset.attrs}
        for variable in ("temperature", "salinity"):
            values = dataset.get(variable)
            if values is not None:
                row |= {f"{variable}_min": values.values.min(), f"{variable}_nulls": 0}
                row |= {f"{variable}_max": values.values.max(), f"{variable}_count": values.size}
        rows.append(row)
    table = pd.DataFrame(rows)
    query = condition.replace("temperature.", "temperature_").replace("salinity.", "salinity_")
    if "station !=" in condition:  # a missing value does not equal another string
        query += " and station == station"
    expected = table.query(query, engine="python")["name"].tolist()
    assert 0 < len(expected) < 20
    assert profiles.choose(condition) == expected
    assert profiles.read("salinity", condition).names == expected


def test_variables_are_compared_by_statistics(profiles: ambar.Collection, tmp_path: Path) -> None:
    with pytest.raises(ambar.InvalidError, match="write temperature.min or temperature.max"):
        profiles.choose("temperature > 20")
    strings = written(tmp_path / "x.ambar", {"a": xr.Dataset({"flags": ("x", ["good", "bad"])})})
    with pytest.raises(ambar.InvalidError, match="keep it as an attribute of each dataset"):
        strings.choose("flags == 'good'")


def test_variables_of_one_value_are_compared(tmp_path: Path) -> None:
    """Names of stations are often scalars, or arrays with a dimension of length 1."""
    casts = {
        "a": xr.Dataset({"station": "Kiel", "year": 1999, "code": np.array(b"KI")}),
        "b": xr.Dataset({"station": ("profile", ["Brest"]), "year": 2004.5}),
        "c": xr.Dataset({"station": "Brest", "year": 2**53 + 1, "code": np.array(b"BR")}),
        "d": xr.Dataset({"station": ((), np.array(None, object)), "code": np.array(b"\xff")}),
        "e": xr.Dataset({"depth": ("x", [1.0, 2.0])}),
    }
    found = written(tmp_path / "x.ambar", casts)
    assert found.choose("station == 'Brest'") == ["b", "c"]
    assert found.choose("station != 'Brest'") == ["a"]
    assert found.choose("station in ['Kiel', 'Oslo'] or year == 9007199254740993") == ["a", "c"]
    assert found.choose("year > 2000 and station > 'A'") == ["b", "c"]
    with pytest.raises(ambar.InvalidError, match="contains bytes values"):
        found.choose("code == 'KI'")
    with ambar.open_collection(tmp_path / "x.ambar", "a", fsync=False) as changing:
        changing.remove("d")
    assert ambar.open_collection(tmp_path / "x.ambar").choose("code == 'KI'") == ["a"]


def test_times_are_compared_with_dates(tmp_path: Path) -> None:
    """Strings of dates in other comparisons of the condition are unchanged."""
    days = np.datetime64("2020-01-31", "ns") + np.array([0, 24, 36]) * np.timedelta64(1, "h")
    datasets = {
        f"d{number}": xr.Dataset(
            {"time": ("time", [day, day + np.timedelta64(1, "D")]), "launched": day},
            attrs={"launch": day, "name": str(day)[:10]},
        )
        for number, day in enumerate(days)
    }
    datasets |= {"none": xr.Dataset(attrs={"name": "2020-02-01"})}
    datasets |= {"nat": xr.Dataset({"time": ("time", np.array(["NaT"], "M8[ns]"))})}
    found = written(tmp_path / "x.ambar", datasets)
    for name in ("launch", "launched", "time.min"):
        assert found.choose(f"{name} > '2020-02-01'") == ["d2"]
        assert found.choose(f"'2020-01-31T12' < {name} <= \"2020-02-01T12:00Z\"") == ["d1", "d2"]
        assert found.choose(f"{name} in ['2020-01-31', '2020-02']") == ["d0", "d1"]
        assert found.choose(f"{name} not in ['2020-01-31']") == ["d1", "d2"]
    chosen = found.choose("name == '2020-02-01' and not (launch > '2020-02-01')")
    assert chosen == ["d1", "none"]


def test_missing_values_make_comparisons_false(profiles: ambar.Collection) -> None:
    with_station = [f"d{number}" for number in (0, 5, 10, 15)]
    assert profiles.choose("station in ['Kiel', 'Brest']") == with_station
    assert profiles.choose("station != 'nowhere'") == with_station
    assert "d7" not in profiles.choose("temperature.max < inf")
    assert "d7" not in profiles.choose("temperature.max * 0 == 0")
    assert "d7" not in profiles.choose("temperature.max + 0 != 7")
    assert "d7" not in profiles.choose("temperature.max + 0 not in [7]")
    assert "d7" not in profiles.choose("temperature.max ** 0 == 1")
    assert "d7" in profiles.choose("not temperature.max < inf")


def test_datasets_without_values_have_no_range(tmp_path: Path) -> None:
    """Ranges of empty variables of integers counted as 0."""
    datasets = {
        "full": xr.Dataset({"n": ("x", [0, 2]), "v": ("x", [1.0, 2.0]), "id": ("y", [2**53 + 1])}),
        "empty": xr.Dataset({"n": ("x", np.empty(0, int)), "v": ("x", np.empty(0))}),
        "nan": xr.Dataset({"v": ("x", [np.nan]), "id": ("y", np.empty(0, int))}),
        "float": xr.Dataset({"id": ("y", [0.5])}),
    }
    found = written(tmp_path / "x.ambar", datasets)
    assert found.choose("n.min <= 0") == ["full"]
    assert found.choose("n.max != 7") == ["full"]
    assert found.choose("v.min != 7") == ["full"]
    assert found.choose("n.count == 0") == ["empty"]
    assert found.choose("id.max == 9007199254740993") == ["full"]
    np.testing.assert_array_equal(found.stats("n")["min"], [0, np.nan])
    np.testing.assert_array_equal(found.stats("v")["max"], [2, np.nan, np.nan])
    assert found.stats("id")["max"].tolist() == [2**53 + 1, None, 0.5]


@pytest.mark.parametrize(
    "values",
    [
        [2**53 + 1, 0.5],
        [2**63, -1],
        [2**63 + 1, -1],
        [2**64 - 1, 1.5, float("nan")],
        [3, 0.5, None],
        [2**53, 0.5],
    ],
)
def test_columns_of_attributes_are_exact(tmp_path: Path, values: list[Any]) -> None:
    """Integers beside floats, and unsigned ones beside negative ones, were rounded to float64."""
    datasets = {
        f"d{at}": xr.Dataset(attrs={} if value is None else {"id": value})
        for at, value in enumerate(values)
    }
    found = written(tmp_path / "x.ambar", datasets)
    for column, value in zip(found.attrs["id"].tolist(), values, strict=True):
        assert column == value or value != value  # noqa: PLR0124 - NaN
    assert found.choose(f"id == {values[0]}") == ["d0"]
    assert found.choose(f"id == {values[0] - 1}") == []


def test_columns_are_equal_only_to_themselves(profiles: ambar.Collection) -> None:
    """Comparing the arrays raised that their truth value is ambiguous."""
    columns, data = profiles.attrs, profiles.read("salinity")
    assert columns == columns  # noqa: PLR0124
    assert columns != profiles.attrs
    assert data == data  # noqa: PLR0124
    assert data != profiles.read("salinity")
    assert len({columns, data}) == 2


@pytest.mark.parametrize(
    ("condition", "error", "message"),
    [
        ("cycle % 2 == 0", ValueError, "character 7"),
        ("platform = 'argo'", ValueError, "write == for equality"),
        ("platform > 3", ValueError, "contains strings; expected a comparison with strings"),
        ("platform in [1, 2]", ValueError, "contains strings; expected a comparison with strings"),
        ("station != 3", ValueError, "contains strings; expected a comparison with strings"),
        (
            "depth.max > 3",
            ValueError,
            "contains timedelta64.ns. values; expected numbers",
        ),
        ("launch > 3", ValueError, 'contains times, which .* such as launch > "2023-01-01"; found'),
        ("launch > 'soon'", ValueError, "expected a date in UTC .* found 'soon'"),
        ("launch > '2020T00+01'", ValueError, "expected a date in UTC"),
        ("launch != 3", ValueError, "contains times, .* with dates in quotes only"),
        ("sensors == 'CTD'", ValueError, "contains list values; expected numbers or strings"),
        ("cycle == 'argo'", ValueError, "found a string"),
        ("platform + 1 > 3", ValueError, "contains strings"),
        ("cycle > 3 km", ValueError, 'found the unit "km"'),
        ("deployment == 3", KeyError, "deployment"),
        ("oxygen.max > 3", KeyError, "oxygen"),
        ("temperature.mean > 3", KeyError, "statistic 'mean'"),
    ],
)
def test_invalid_conditions_say_why(
    profiles: ambar.Collection, condition: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        profiles.choose(condition)
