"""Arrays that change in a series are rows of one: unchanged, or as differences in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.mesh.storage.temporal_deltas import decode, predict, to_integers

pytest.importorskip("pyvista")

import pyvista as pv

PLACES = np.linspace(0, 6, 4000)
SPECIAL = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 5e-324, -1e308, 1e308, 1.5])


def waves(number: int, dtype: Any = np.float32) -> Any:
    random = np.random.default_rng(0).random(4000)  # the same in all steps
    return (random + np.sin(PLACES + 0.01 * number)).astype(dtype)


def written(path: Path, steps: list[dict[str, Any]]) -> ambar.MeshSeries:
    with ambar.open_mesh_series(path, "w", fsync=False) as series:
        for number, arrays in enumerate(steps):
            mesh = pv.PolyData(np.zeros((4000, 3)))
            for name, values in arrays.items():
                mesh[name] = values
            series.add(mesh, number)
    return ambar.open_mesh_series(path)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_differences_lose_nothing(dtype: Any, order: int) -> None:
    with np.errstate(over="ignore"):
        values = [np.roll(SPECIAL, n).astype(dtype) for n in (0, 1, 3)]
    ahead = predict(values[:2], np.dtype(dtype), order)
    back = decode(to_integers(values[2]) - ahead, ahead, np.dtype(dtype))
    assert back.tobytes() == values[2].tobytes()
    assert np.all(np.diff(to_integers(np.array([-np.inf, -2, -1e-9, 0, 1, np.inf], dtype))) > 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_goes_on_smoothly_is_stored_as_differences(dtype: Any, tmp_path: Path) -> None:
    steps = [{"p": waves(n, dtype), "v": np.stack([waves(3 * n, dtype)] * 3, 1)} for n in range(40)]
    series = written(tmp_path / "x.ambar", steps)
    store = series.store
    assert store["changing/0"].shape == (39, 4000)
    about = store["changing/0"].attrs["ambar"]["differences"]
    assert about["dtype"] == str(np.dtype(dtype))
    assert about["orders"].startswith("012")
    assert about["orders"][16::16] == "00"
    # In any order, also twice: what was read before must not matter.
    for number in [*range(40), 3, 39, 38, 17, 16, 15, 18, 0]:
        read = series[number].read()
        for name, values in steps[number].items():
            np.testing.assert_array_equal(read[name], values)
            read[name][:] = 0  # memory of its own
    assert {info.dtype for info in series[7].arrays} == {str(np.dtype(dtype))}
    assert {info.shape for info in series[7].arrays} == {(4000,), (4000, 3)}
    alone = store["step_000000/point_data/0"].stored_bytes
    assert store["changing/0"].stored_bytes < 39 * 0.9 * alone


def test_noise_is_stored_as_it_is(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    steps = [
        {"p": random.random(4000), "n": random.integers(0, 9, 4000), "b": waves(n) > 1}
        for n in range(5)
    ]
    series = written(tmp_path / "x.ambar", steps)
    values = series.store["changing/0"]
    assert values.dtype == np.float64
    assert "ambar" not in values.attrs
    np.testing.assert_array_equal(values[2], steps[3]["p"])
    for number, step in enumerate(steps):
        for name in step:
            np.testing.assert_array_equal(series[number].read()[name], step[name])


def test_steps_alike_are_described_once(tmp_path: Path) -> None:
    stays = waves(0)
    steps = [{"p": waves(n if n != 5 else 4), "stays": stays} for n in range(30)]
    series = written(tmp_path / "x.ambar", steps)
    about = series.store._ambar_attributes("step_000009")
    assert about["like"] == "step_000001"
    assert series.store._ambar_attributes("step_000005")["rows"] == [3]  # that of the step before
    usage = series.store.usage()
    assert usage["total"] - usage["live"] < 30 * 12_000
    np.testing.assert_array_equal(series[5].read()["p"], steps[4]["p"])


def test_a_jump_does_no_harm(tmp_path: Path) -> None:
    steps = [{"p": waves(n) if n < 9 else np.sin(PLACES * n).astype("f4")} for n in range(14)]
    series = written(tmp_path / "x.ambar", steps)
    assert "0" in series.store["changing/0"].attrs["ambar"]["differences"]["orders"][5:]
    for number, step in enumerate(steps):
        np.testing.assert_array_equal(series[number].read()["p"], step["p"])


@pytest.mark.parametrize(
    ("differences", "message"),
    [
        ({"dtype": "float32", "orders": "011"}, "has no row 3"),
        ({"dtype": "float32", "orders": ""}, "not those of differences"),
        ({"dtype": "float32", "orders": "01111"}, "not those of differences"),
        ({"dtype": "float32", "orders": "2111"}, "not those of differences"),
        ({"dtype": "float32", "orders": "0x11"}, "not those of differences"),
        ({"dtype": "float64", "orders": "0111"}, "not those of differences"),
        ({"dtype": "complex64", "orders": "0111"}, "not those of differences"),
        (3, "not those of differences"),
    ],
)
def test_damaged_differences_are_refused(differences: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    written(path, [{"p": waves(n)} for n in range(5)])
    with ambar.create(path, "a", fsync=False) as writer:
        writer._core.set_attributes("/changing/0", {"ambar": {"differences": differences}})
    with pytest.raises(ambar.CorruptError, match=message):
        ambar.open_mesh_series(path)[4].read()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [99]}, "has no row 99"),
        ({"rows": ["x"]}, "is not a reference to a row"),
        ({"rows": [1, 2]}, "2 rows for 1 arrays"),
        ({"rows": 1}, "which does not have one"),
        ({"like": "step_000003"}, "which does not have one"),
        ({"like": "nowhere"}, "which does not have one"),
        ({"like": []}, "which does not have one"),
    ],
)
def test_damaged_steps_are_refused(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    about = written(path, [{"p": waves(n)} for n in range(5)]).store._ambar_attributes(
        "step_000004"
    )
    with ambar.create(path, "a", fsync=False) as writer:
        writer._create_group("step_000004", {"ambar": {**about, **change}})
    with pytest.raises(ambar.CorruptError, match=message):
        ambar.open_mesh_series(path)[4].read()
