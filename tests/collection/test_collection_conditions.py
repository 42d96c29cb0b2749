"""Conditions on datasets select the rows that pandas selects from a table of the same columns."""

from __future__ import annotations

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
        found[f"d{number}"] = xr.Dataset(variables, attrs=attributes)
    return found


@pytest.fixture(scope="module")
def fleet(
    tmp_path_factory: pytest.TempPathFactory, datasets: dict[str, xr.Dataset]
) -> ambar.Collection:
    """The datasets in a store."""
    return written(tmp_path_factory.mktemp("fleet") / "fleet.ambar", datasets)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_equal_pandas(
    fleet: ambar.Collection, datasets: dict[str, xr.Dataset], condition: str
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
    if "station !=" in condition:  # a missing value is no other string
        query += " and station == station"
    expected = table.query(query, engine="python")["name"].tolist()
    assert 0 < len(expected) < 20
    assert fleet.choose(condition) == expected
    assert fleet.read("salinity", condition).names == expected


def test_missing_values_make_comparisons_false(fleet: ambar.Collection) -> None:
    with_station = [f"d{number}" for number in (0, 5, 10, 15)]
    assert fleet.choose("station in ['Kiel', 'Brest']") == with_station
    assert fleet.choose("station != 'nowhere'") == with_station
    assert "d7" not in fleet.choose("temperature.max < inf")
    assert "d7" not in fleet.choose("temperature.max * 0 == 0")
    assert "d7" in fleet.choose("not temperature.max < inf")


@pytest.mark.parametrize(
    ("condition", "error", "message"),
    [
        ("cycle % 2 == 0", ValueError, "character 7"),
        ("platform = 'argo'", ValueError, "write == for equality"),
        ("platform > 3", None, ""),
        ("cycle == 'argo'", ValueError, "found a string"),
        ("platform + 1 > 3", ValueError, "contains strings"),
        ("cycle > 3 km", ValueError, 'found the unit "km"'),
        ("deployment == 3", KeyError, "deployment"),
        ("oxygen.max > 3", KeyError, "oxygen"),
        ("temperature.mean > 3", KeyError, "statistic 'mean'"),
    ],
)
def test_invalid_conditions_say_why(
    fleet: ambar.Collection, condition: str, error: type[Exception] | None, message: str
) -> None:
    if error is None:
        assert fleet.choose(condition) == []
        return
    with pytest.raises(error, match=message):
        fleet.choose(condition)
