"""Collections that change, are broken off or are damaged: nothing is lost, or silently wrong."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ambar
from ambar.cli.maintenance import verify
from tests.helpers.profiles import profile, written


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "profiles.ambar"


def test_what_was_added_may_change_afterwards(path: Path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    attributes: dict[str, Any] = {"list": [1], "array": np.arange(2)}
    with ambar.open_collection(path, "w-", fsync=False) as profiles:
        for number in range(3):
            values[:] = number
            attributes["list"][:] = [number]
            attributes["array"][:] = number
            profiles.add(f"d{number}", xr.Dataset({"v": (("x", "y"), values.T, attributes)}))
            profiles.add(f"m{number}", {"v": (("x", "y"), values, attributes)})
    profiles = ambar.open_collection(path)
    for name in profiles:
        number = int(name[1:])
        assert (profiles[name].v.values == number).all()
        assert profiles[name].v.attrs == {"list": [number], "array": [number, number]}


def test_coordinates_are_shared_only_where_every_bit_is_the_same(path: Path) -> None:
    nan = np.array([0x7FF8000000000000, 0x7FF8000000000001], "u8").view("f8")
    places = {"a": [0.0, nan[0]], "b": [-0.0, nan[0]], "c": [0.0, nan[1]]}
    datasets = {
        name: xr.Dataset({"v": ("x", [1, 2])}, {"x": np.array(where)})
        for name, where in places.items()
    }
    profiles = written(path, datasets)
    for name, where in places.items():
        assert profiles[name].x.values.tobytes() == np.array(where).tobytes()


def test_lazy_datasets_stay_with_their_commit(path: Path) -> None:
    """A lazy dataset read from whatever commit was the last: another dataset's values, or none."""
    written(path, {f"d{n}": profile(n) for n in range(4)})
    reader = ambar.open_collection(path)
    lazy, together = reader["d3"], reader.to_xarray()
    pickled = pickle.dumps(lazy)
    with ambar.open_collection(path, "a", fsync=False) as profiles:
        own = profiles["d3"]
        profiles.remove(["d0", "d1"])
        profiles.replace("d3", profile(33))
        profiles.commit()
        assert profiles["d3"].load().identical(profile(33))
        assert own.load().identical(profile(3))
    ambar.compact(path)
    assert lazy.load().identical(profile(3))
    assert pickle.loads(pickled).load().identical(profile(3))  # this process has it open
    np.testing.assert_array_equal(together.temperature[3], profile(3).temperature)
    with (
        multiprocessing.get_context("spawn").Pool(1) as pool,
        pytest.raises(ValueError, match="open it again"),
    ):
        pool.apply(load_pickled, [pickled])


def load_pickled(pickled: bytes) -> xr.Dataset:
    return pickle.loads(pickled).load()


def test_datasets_are_removed_renamed_replaced_and_grow(path: Path) -> None:
    model = {f"d{n}": profile(n) for n in range(8)}
    written(path, model)
    with ambar.open_collection(path, "a", fsync=False) as profiles:
        profiles.remove(["d1", "d4"])
        profiles.rename("d2", "two")
        profiles.replace("d3", profile(33))
        more = profile(5).isel(time=slice(0, 2))
        more["time"] = model["d5"].time.values[-1] + np.arange(1, 3) * np.timedelta64(1, "h")
        with pytest.raises(ValueError, match="call commit"):
            profiles.load("d5")
        profiles.commit()
        profiles.extend("d5", more, "time")
        profiles.add("new", profile(9))
        with pytest.raises(ValueError, match="already"):
            profiles.add("new", profile(9))
        with pytest.raises(KeyError, match="'d1'"):
            profiles.remove("d1")
        with pytest.raises(ValueError, match="already"):
            profiles.rename("d0", "two")
    del model["d1"], model["d4"]
    model = {"two" if name == "d2" else name: dataset for name, dataset in model.items()}
    model["d3"], model["new"] = profile(33), profile(9)
    model["d5"] = xr.concat([model["d5"], more], "time", data_vars="minimal").assign_attrs(
        model["d5"].attrs
    )
    profiles = ambar.open_collection(path)
    assert profiles.names == list(model)
    for name, dataset in model.items():
        xr.testing.assert_identical(profiles[name].load(), dataset)
    with pytest.raises(ValueError, match="open for reading"):
        profiles.add("x", profile(1))
    report = ambar.open_store(path).verify()
    assert report["chunks"] > 0


def test_stores_of_other_kinds_are_refused(path: Path) -> None:
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", [1])
    with pytest.raises(ValueError, match="expected a collection"):
        ambar.open_collection(path)
    with pytest.raises(FileNotFoundError):
        ambar.open_collection(path.with_name("nothing.ambar"))
    with pytest.raises(ValueError, match="expected a collection"):
        ambar.open_collection(path, "a")
    with pytest.raises(ValueError, match="invalid mode 'x'"):
        ambar.open_collection(path, "x")  # type: ignore[arg-type]
    assert list(ambar.open_store(path)) == ["a"]


def test_modes(path: Path) -> None:
    with ambar.open_collection(path, "a", ragged=["depth"], fsync=False) as profiles:
        assert not path.exists()
        profiles.add("a", profile(1))
    with pytest.raises(FileExistsError, match='mode="w"'):
        ambar.open_collection(path, "w-")
    with pytest.raises(ValueError, match=r"created with ragged=\['depth'\]"):
        ambar.open_collection(path, "a", ragged=["time"])
    with pytest.raises(ValueError, match="ragged, directory applies to new ones"):
        ambar.open_collection(path, ragged=["time"], directory=True)
    with ambar.open_collection(path, "a", ragged=["depth"], fsync=False) as profiles:
        profiles.add("b", profile(2))
    assert ambar.open_collection(path).names == ["a", "b"]
    with pytest.raises(RuntimeError), ambar.open_collection(path, "w", fsync=False) as profiles:
        profiles.add("c", profile(3))
        raise RuntimeError
    assert ambar.open_collection(path).names == ["a", "b"]
    with ambar.open_collection(path, "w", fsync=False) as profiles:
        profiles.add("c", profile(3))
    profiles = ambar.open_collection(path)
    assert profiles.names == ["c"]
    assert profiles.settings["ragged"] == []
    folder = path.with_name("folder.ambar")
    for name in ("a", "b"):
        with ambar.open_collection(folder, "a", directory=True, fsync=False) as profiles:
            profiles.add(name, profile(1))
    assert folder.is_dir()
    assert ambar.open_collection(folder).names == ["a", "b"]


def test_an_exception_commits_nothing(path: Path) -> None:
    written(path, {"a": profile(1)})
    with pytest.raises(RuntimeError), ambar.open_collection(path, "a") as profiles:
        profiles.add("b", profile(2))
        raise RuntimeError
    assert ambar.open_collection(path).names == ["a"]


def test_an_empty_collection(path: Path) -> None:
    profiles = written(path, {})
    assert len(profiles) == 0
    assert profiles.variables == []
    with ambar.open_collection(path, "a", fsync=False) as again:
        again.add("a", profile(1))
    xr.testing.assert_identical(ambar.open_collection(path).load("a"), profile(1))


def _add_for_ever(path: str, ready: Any) -> None:
    profiles = ambar.open_collection(path, "a", fsync=False)
    for number in itertools.count(5):
        profiles.add(f"d{number}", profile(number))
        if number % 5 == 0:
            profiles.commit()
            ready.put(number)


def test_a_killed_writer_loses_nothing_committed(path: Path) -> None:
    written(path, {f"d{n}": profile(n) for n in range(5)})
    context = multiprocessing.get_context("spawn")
    ready = context.Queue()
    writer = context.Process(target=_add_for_ever, args=(str(path), ready))
    writer.start()
    committed = [ready.get(timeout=300) for _ in range(4)][-1]
    time.sleep(0.01)
    assert writer.pid is not None
    writer.kill()
    writer.join()
    assert writer.exitcode == -signal.SIGKILL
    profiles = ambar.open_collection(path)
    assert len(profiles) > committed
    for name in profiles.names:
        xr.testing.assert_identical(profiles.load(name), profile(int(name[1:])))
    with ambar.open_collection(path, "a", fsync=False) as profiles:
        profiles.add("after", profile(1))
    xr.testing.assert_identical(ambar.open_collection(path).load("after"), profile(1))


PLACE_USES: list[Callable[[ambar.Collection], Any]] = [
    lambda found: found["c"],
    lambda found: found.read("temperature"),
    lambda found: found.families,
]


@pytest.mark.parametrize(
    ("node", "values"),
    [
        ("datasets/name", np.array(["a", "b"], object)),
        ("datasets/name", np.arange(3)),
        ("datasets/place", np.zeros((3, 2), "i4")),
        ("datasets/index", np.zeros((2, 2), "u4")),
    ],
)
def test_shapes_of_a_catalogue_that_contradict_each_other(
    path: Path, node: str, values: np.ndarray
) -> None:
    written(path, {name: profile(n) for n, name in enumerate("abc")})
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array(node, values)
    with pytest.raises(ambar.CorruptError, match=f"/{node}"):
        ambar.open_collection(path)


@pytest.mark.parametrize(
    ("node", "values", "uses"),
    [
        ("datasets/name", np.array(["a", "a", "c"], object), [lambda found: found.names]),
        ("datasets/place", np.array([[0, 0], [0, 1], [1, 0]], "u4"), PLACE_USES),
        ("datasets/place", np.array([[0, 0], [0, 1], [0, 3]], "u4"), PLACE_USES),
        ("datasets/index", np.array([[0, 0], [0, 1], [0, 2]], "u4"), []),
        ("datasets/index", np.array([[2, 0], [1, 1], [0, 2]], "u4"), []),
    ],
)
def test_values_of_a_catalogue_that_contradict_each_other(
    path: Path, node: str, values: np.ndarray, uses: list[Callable[[ambar.Collection], Any]]
) -> None:
    """Opening reads no values; what uses them, `Collection.verify` and `ambar verify` raise."""
    written(path, {name: profile(n) for n, name in enumerate("abc")})
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array(node, values)
    for use in (*uses, ambar.Collection.verify, lambda _: verify(str(path))):
        with pytest.raises(ambar.CorruptError, match=f"/{node}"):
            use(ambar.open_collection(path))


def test_families_of_no_sense_or_a_newer_version(path: Path) -> None:
    profiles = written(path, {"a": profile(1)})
    about = profiles._families[0].group_attributes()
    for change, error in [
        ({"version": 2}, ambar.UnsupportedError),
        ({"sizes": None}, ambar.CorruptError),
        ({"variables": {"t": {}}}, ambar.CorruptError),
        ({"sizes": {}}, ambar.CorruptError),
        ({"ragged": None}, ambar.CorruptError),
        ({"ragged": ["depth", "time"]}, ambar.CorruptError),
        ({"ragged": ["time"]}, ambar.CorruptError),
    ]:
        with ambar.create(path, "a", fsync=False) as writer:
            writer._create_group("f0", {"ambar": about["ambar"] | change})
        with pytest.raises(error, match="/f0"):
            ambar.open_collection(path)


@pytest.mark.parametrize(
    "text", ['{"a', '{"float": 3}', '{"timedelta64": 1}', '"\\ud800', "[" * 99_999]
)
def test_damaged_attributes(path: Path, text: str) -> None:
    written(path, {name: profile(n) for n, name in enumerate("abc")})
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array("f0/attributes/0", np.array([text] * 3, Any))
    profiles = ambar.open_collection(path)
    with pytest.raises(ambar.CorruptError, match="/f0/attributes/0"):
        profiles.load("b")
    with pytest.raises(ambar.CorruptError, match="/f0/attributes/0"):
        dict(profiles.attrs)
