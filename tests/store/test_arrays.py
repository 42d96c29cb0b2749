"""Arrays of all types, written and read back, in whole and in part."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import ambar
from ambar._util.arguments import WriteMode
from ambar.store.writer import Profile
from tests.helpers.array_samples import samples

RANDOM = np.random.default_rng(7)


def same(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype.newbyteorder("=")
    if expected.dtype.kind == "O":
        assert found.tolist() == expected.tolist()
    else:
        assert found.tobytes() == expected.astype(found.dtype).tobytes()


SAMPLES = samples()


@pytest.fixture(scope="module", params=["file", "directory"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ambar.Store:
    path = tmp_path_factory.mktemp("arrays") / "a b.ambar"
    with ambar.create(path, directory=request.param == "directory") as writer:
        for name, values in SAMPLES.items():
            writer.create_array(f"group/{name}", values, attrs={"name": name})
    opened = ambar.open(path)
    assert isinstance(opened, ambar.Store)
    return opened


@pytest.mark.parametrize("name", SAMPLES)
def test_every_type_comes_back(store: ambar.Store, name: str) -> None:
    array = store[f"group/{name}"]
    assert array.attrs == {"name": name}
    assert array.shape == SAMPLES[name].shape
    same(np.asarray(array), SAMPLES[name])


@pytest.mark.parametrize("profile", ["fast", "balanced", "small"])
def test_every_profile_is_lossless(profile: Profile, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, profile=profile, fsync=False) as writer:
        for name, values in SAMPLES.items():
            writer.create_array(name, values)
    store = ambar.open_store(path)
    assert sorted(store) == sorted(SAMPLES)
    for name, values in SAMPLES.items():
        same(store[name].read(), values)


KEYS = [
    ...,
    (slice(None), 3),
    (5, slice(None)),
    (-1, -1),
    (slice(3, 30, 4), slice(None, None, -1)),
    (slice(30, 3, -7), slice(2, 5)),
    (slice(5, 5), ...),
    (..., slice(-4, None)),
    slice(10**9),
    slice(None, -1, -2),
    slice(40, 60, -1),
    7,
    np.array([1, 36], "u1"),
    np.array([1, -1], "i1"),
    np.array([], int),
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_is_numpys(key: Any, tmp_path: Path) -> None:
    values = np.arange(37 * 11).reshape(37, 11)
    texts = values.astype(str).astype(object)
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("numbers", values, chunks=(8, 4))
        writer.create_array("texts", texts, chunks=(8, 4))
    store = ambar.open(tmp_path / "x.ambar")
    assert isinstance(store, ambar.Store)
    np.testing.assert_array_equal(store["numbers"][key], values[key])
    np.testing.assert_array_equal(store["texts"][key], texts[key])


def test_nothing_is_appended_to_bytes(tmp_path: Path) -> None:
    """Objects without values do not say whether they are strings or bytes."""
    empty = np.array([], object)
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("x", shape=(1,), dtype=bytes)
        writer.append("x", empty)
        writer.write_region("x", empty, (0,))
        writer.append("x", np.array([b"a"], object))
        with pytest.raises(ValueError, match="expected values of bytes, found values of string"):
            writer.append("x", np.array(["a"], object))
    assert ambar.open_store(tmp_path / "x.ambar")["x"][:].tolist() == [b"", b"a"]


def test_indices_outside_are_errors(store: ambar.Store) -> None:
    array = store["group/int32"]
    with pytest.raises(IndexError):
        array[37]
    with pytest.raises(ValueError):
        array[1, 2, 3]
    with pytest.raises(ValueError, match="indices are integers"):
        array[[1.5, 2.5]]
    with pytest.raises(ValueError, match="not 'x'"):
        array["x"]
    with pytest.raises(IndexError, match="a mask of 3"):
        array[[True, False, True]]
    for key in (True, np.zeros((2, 2), int), 1.5):
        with pytest.raises(ValueError, match=r"is indexed with integers, lists of them, slices"):
            array[key]
    with pytest.raises(KeyError):
        store["group/nothing"]
    with pytest.raises(TypeError, match="expected the path of a group or array, a str, found 5"):
        store[5]  # type: ignore[index]


def test_reading_into_an_array(store: ambar.Store) -> None:
    array = store["group/large"]
    out = np.empty((10, 300))
    assert array.read(slice(90, 100), out=out) is out
    np.testing.assert_array_equal(out, array[90:100])
    row = np.empty(300)
    array.read(5, out=row)
    np.testing.assert_array_equal(row, array[5])
    moments = np.empty(5, "M8[ns]")
    store["group/nanoseconds"].read(out=moments)
    np.testing.assert_array_equal(moments, np.arange(5).astype("M8[ns]"))
    for wrong in (
        np.empty((10, 300), np.float32),
        np.empty((300, 10)),
        np.empty((10, 600))[:, ::2],
    ):
        with pytest.raises(ValueError):
            array.read(slice(90, 100), out=wrong)
    other: Any
    for other in ([], "x"):
        with pytest.raises(TypeError, match=r"expected an ndarray as out=, found"):
            array.read(out=other)
    assert array.read(5, downsample=2**70).tolist() == [array[5, 0]]


def test_metadata_of_arrays(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "x.ambar") as writer:
        writer.create_group(
            "g", {"when": np.float64(1.5), "names": ["a", "b"], "nested": {"x": None}}
        )
        writer.create_array("g/a", np.zeros((100, 10)), dims=("row", None), chunks=(50, 10))
    store = ambar.open_store(tmp_path / "x.ambar")
    array = store["g/a"]
    assert store["g"].attrs == {"when": 1.5, "names": ["a", "b"], "nested": {"x": None}}
    assert array.dims == ("row", None)
    assert array.chunks == (50, 10)
    assert array.nbytes == 8000
    assert 0 < array.stored_bytes < 1000
    assert "crc32c" in array.codecs
    assert sorted(store.groups) == ["", "g"]
    assert "g/a" in store
    assert "g" in store
    assert "x" not in store
    assert list(store) == ["g/a"]


def test_columns_that_begin_empty_have_chunks_of_many_rows(tmp_path: Path) -> None:
    path, values = tmp_path / "x.ambar", np.sin(np.arange(40_000) * 0.01).reshape(-1, 2)
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", shape=(0,), dtype="f8")
        writer.create_array("bounded", shape=(0, 2), dtype="f8", error_bound=1e-3)
        writer.append("a", values[:, 0])
        writer.append("bounded", values)
    store = ambar.open_store(path)
    assert store["a"].chunks == (32_768,)
    np.testing.assert_array_equal(store["a"][:], values[:, 0])
    assert float(abs(store["bounded"][:] - values).max()) <= 1e-3
    assert path.stat().st_size < values.nbytes / 2


def test_appending_replacing_and_removing(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("a", np.arange(1000))
        writer.create_array("b", np.arange(10))
    before = ambar.open_store(path)
    with ambar.create(path, "a") as writer:
        writer.create_array("a", np.arange(1000) * 2)
        writer.remove("b")
        writer.create_array("c/d", np.ones(3))
    np.testing.assert_array_equal(before["a"][:], np.arange(1000))
    after = ambar.open_store(path)
    np.testing.assert_array_equal(after["a"][:], np.arange(1000) * 2)
    assert sorted(after) == ["a", "c/d"]
    assert after.usage()["dead"] > 0
    size = path.stat().st_size
    ambar.compact(path)
    assert path.stat().st_size < size
    np.testing.assert_array_equal(ambar.open_store(path)["c/d"][:], np.ones(3))


def test_an_exception_commits_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with pytest.raises(ZeroDivisionError), ambar.create(path) as writer:
        writer.create_array("a", np.arange(10))
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with ambar.create(path) as writer:
        writer.create_array("a", np.arange(10))
    with pytest.raises(ZeroDivisionError), ambar.create(path, "a") as writer:
        writer.remove("a")
        raise ZeroDivisionError
    np.testing.assert_array_equal(ambar.open_store(path)["a"][:], np.arange(10))


def test_writers_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("a", np.arange(10))
    with pytest.raises(FileExistsError):
        ambar.create(path)
    with ambar.create(path, "a"), pytest.raises(ambar.BusyError):
        ambar.create(path, "a")


def test_modes_create_replace_and_change(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    steps: list[tuple[WriteMode, set[str] | None]] = [
        ("a", {"a"}),
        ("a", {"a", "b"}),
        ("w", {"c"}),
        ("w-", None),
    ]
    for mode, expected in steps:
        name = {"w": "c"}.get(mode, "b" if path.exists() else "a")
        if expected is None:
            with pytest.raises(FileExistsError):
                ambar.create(path, mode)
            continue
        with ambar.create(path, mode, fsync=False) as writer:
            writer.create_array(name, np.arange(3))
        assert set(ambar.open_store(path)) == expected
    with pytest.raises(ValueError, match=r"invalid mode 'append': must be one of 'w-', 'w', 'a'"):
        ambar.create(path, "append")  # type: ignore[arg-type]


def test_arrays_have_data_or_a_shape_and_dtype(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        cases: list[tuple[dict[str, Any], str]] = [
            ({"shape": (3,)}, "expected data, or shape and dtype, found shape=.*dtype=None"),
            ({"data": [1.0], "dtype": "f4"}, "data determine them, found .* dtype='f4'"),
            ({"data": [1.0], "layout": "mesh"}, "must be one of 'grid', 'whole', 'simplices'"),
            ({"shape": (3,), "dtype": "f4", "layout": "grid"}, "applies to arrays with data"),
        ]
        for arguments, message in cases:
            with pytest.raises(ValueError, match=message):
                writer.create_array("a", **arguments)


def test_values_outside_the_range_of_an_error_bound_are_refused(tmp_path: Path) -> None:
    about: dict[str, Any] = {"error_bound": "0.02 of range", "value_range": (0.0, 10.0)}
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("a", shape=(4,), dtype="f8", **about)
        writer.write_region("a", [0.0, 10.0, np.nan], (0,))
        for write in (
            lambda: writer.write_region("a", [10.5], (3,)),
            lambda: writer.append("a", [1.0], [np.inf, -1.0]),
            lambda: writer.create_array("b", [1.0, 11.0], **about),
        ):
            with pytest.raises(ValueError, match=r"expected values from 0.0 to 10.0, .* found"):
                write()
        writer.create_array("c", np.linspace(0, 5, 50), **about)
        writer.create_array("d", shape=(1,), dtype="f8", error_bound=0.1, value_range=(0, 1))
        writer.write_region("d", [2.0], (0,))
        with pytest.raises(ValueError, match="found values of int8|dtype"):
            writer.append("a", np.array([1], "i1"))
        writer.remove("a")
        with pytest.raises(KeyError):
            writer.append("a", [5000.0])
        writer.create_array("a", shape=(3,), dtype="f8", **about)
        for wrong in ((1, 0), (0, 1, 2), (0, np.nan)):
            with pytest.raises(ValueError, match=r"invalid value_range: .* expected \(lowest"):
                writer.create_array("e", [0.5], error_bound="1e-3 of range", value_range=wrong)
    store = ambar.open_store(tmp_path / "x.ambar")
    assert store["a"].error_bound == store["c"].error_bound == 0.2
    assert store["a"].shape == (3,)
    assert set(store) == {"a", "c", "d"}


def test_mode_a_creates_a_store_or_changes_it(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    for name in ("a", "b"):
        with ambar.create(path, "a", fsync=False) as writer:
            writer.create_array(name, np.arange(3))
    assert set(ambar.open_store(path)) == {"a", "b"}
    with pytest.raises(FileExistsError, match='or replace it with mode="w"'):
        ambar.create(path)


def test_what_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "x.ambar") as writer:
        for values, message in (
            (np.array([b"a", None], dtype=object), "found objects of NoneType, bytes"),
            (np.array([datetime.date(2024, 1, 1)], dtype=object), "found objects of date"),
            (np.zeros(3, np.longdouble), "values of dtype"),
            (np.zeros(3, [("a", "f8")]), "values of dtype"),
        ):
            with pytest.raises(ambar.UnsupportedError, match=f"^a: .*{message}"):
                writer.create_array("a", values)
        with pytest.raises(ValueError, match="a: expected strings that UTF-8 can encode"):
            writer.create_array("a", np.array(["\ud800"], dtype=object))
        with pytest.raises(ValueError, match=r"a: expected a name .* give dims=\('x',\)"):
            writer.create_array("a", np.zeros(3), dims="x")
        with pytest.raises(ValueError, match="larger than all numbers"):
            writer.create_array("a", np.zeros(3), error_bound=10**400)
        with pytest.raises(ValueError, match="a: error bounds apply to float32 and float64"):
            writer.create_array("a", shape=(3,), dtype="i4", error_bound=0.1)
        for number in (2**64, -(2**63) - 1):  # would be rounded to float64
            with pytest.raises(ValueError, match="integers of 64 bits"):
                writer.create_group("g", {"x": [number]})
        with pytest.raises(ValueError):
            writer.create_array("a", np.zeros((3, 3)), dims=("x",))
        for more in ({"data": np.zeros((3, 3))}, {"shape": (3, 3), "dtype": "f8"}):
            with pytest.raises(ValueError, match=r"a: repeated dimension in dims=\('x', 'x'\)"):
                writer.create_array("a", dims=("x", "x"), **more)
            writer.create_array("b", dims=(None, None), **more)
        for path in ("../a", "a//b", "a\0b", ""):
            with pytest.raises(ValueError):
                writer.create_array(path, np.zeros(3))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("u1", 255),
        ("i2", -32_768),
        ("u8", 2**64 - 1),
        ("bool", 1),
        ("i4", 7.0),
        ("f4", 0.1),  # of which digits are lost
        ("f4", np.nan),
        ("f8", -np.inf),
        ("c8", 0.1 + 2j),
        ("U3", "abc"),
        ("M8[s]", np.datetime64("2024-01-01")),
        ("M8[s]", np.datetime64("NaT")),
        ("m8[ns]", np.timedelta64(5, "s")),
        ("f8", 2**63),
        ("i8", -(2.0**63)),
        ("c8", 2),
    ],
)
def test_fill_values_are_those_given(tmp_path: Path, dtype: str, value: Any) -> None:
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("x", shape=(2,), dtype=dtype, fill_value=value)
    expected = np.full(2, value, dtype)
    np.testing.assert_array_equal(ambar.open_store(tmp_path / "x.ambar")["x"][:], expected)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("u1", -1),
        ("u1", 256),
        ("i2", 70_000),
        ("i4", 1.5),
        ("i4", np.nan),
        ("i8", 2**63),
        ("i8", 2**70),
        ("i4", [1, 2]),
        ("bool", 2),
        ("f4", 1e300),
        ("f8", "nan"),
        ("f8", 1j),
        ("U3", "abcd"),
        ("M8[s]", np.datetime64("2024-01-01T00:00:00.5")),
        ("M8[s]", "tomorrow"),
        ("M8[ns]", np.datetime64("3000-01-01")),
        ("m8[ps]", np.timedelta64(10**6, "D")),
        ("f4", 2**24 + 1),
        ("f8", 2**63 - 1),
        ("i8", 2.0**63),
        ("c8", complex(1e300, 0)),
    ],
)
def test_fill_values_of_other_types_are_errors(tmp_path: Path, dtype: str, value: Any) -> None:
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        with pytest.raises(ValueError, match=r"^.*x: expected a fill_value of .*, found "):
            writer.create_array("x", shape=(2,), dtype=dtype, fill_value=value)
        with pytest.raises(ValueError, match="fill_value"):
            writer.create_array("x", np.zeros(2, dtype), fill_value=value)


@pytest.mark.parametrize("length", [-1, 2**70, 1.5])
def test_lengths_are_integers_that_are_not_negative(tmp_path: Path, length: Any) -> None:
    """An OverflowError or a TypeError without the argument."""
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("x", np.zeros(4))
        for name, call in (
            ("chunks", lambda: writer.create_array("y", np.zeros(4), chunks=(length,))),
            ("shards", lambda: writer.create_array("y", np.zeros(4), shards=(length,))),
            ("shape", lambda: writer.create_array("y", shape=(length,), dtype="f8")),
            ("start", lambda: writer.write_region("x", np.zeros(1), (length,))),
        ):
            with pytest.raises(ValueError, match=f"invalid {name}: .*; expected a sequence of int"):
                call()
        for path in (5, None):
            with pytest.raises(TypeError, match="expected the path of a group or array, a str"):
                writer.create_array(path, np.zeros(4))  # type: ignore[arg-type]


def test_masked_values_are_refused(tmp_path: Path) -> None:
    """The values below the mask were stored, and the mask was lost."""
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("x", np.ma.masked_array([1.0, 2.0, 3.0]))  # no value is masked
        writer.create_array("y", masked.filled(np.nan))
        for write in (
            lambda: writer.create_array("z", masked),
            lambda: writer.write_region("x", masked, (0,)),
            lambda: writer.append("x", masked),
        ):
            with pytest.raises(ValueError, match=r"1 masked values; .* values\.filled\(\.\.\.\)"):
                write()
    assert ambar.open_store(tmp_path / "x.ambar")["x"][:].tolist() == [1, 2, 3]


def test_one_flipped_bit_is_found(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("a", RANDOM.random(50_000))
    report = ambar.open_store(path).verify()
    assert report["chunks"] >= 1
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 4
    path.write_bytes(damaged)
    store = ambar.open_store(path)
    with pytest.raises(ambar.CorruptError, match="a"):
        store.verify()
    with pytest.raises(ambar.CorruptError, match="a"):
        store["a"][:]


def test_arrays_are_written_in_parts(tmp_path: Path) -> None:
    """Regions, rows at the end and lists of indices, against NumPy."""
    rng = np.random.default_rng(3)
    model = np.full((12, 10), np.nan, "f4")
    times: list[np.datetime64] = []
    texts: list[str] = []
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array(
            "a", shape=(12, 10), dtype="f4", chunks=(5, 4), shards=(5, 8), fill_value=np.nan
        )
        writer.create_array(
            "t", shape=(0,), dtype="M8[s]", dims=("time",), chunks=(4,), shards=(8,)
        )
        writer.create_array("name", shape=(0,), dtype=str, chunks=(4,), shards=(8,))
    for _ in range(6):
        with ambar.create(path, "a", fsync=False) as writer:
            y, x = int(rng.integers(0, 12)), int(rng.integers(0, 10))
            part = rng.normal(size=(rng.integers(0, 13 - y), rng.integers(0, 11 - x))).astype("f4")
            model[y : y + part.shape[0], x : x + part.shape[1]] = part
            writer.write_region("a", part, (y, x))
            new = np.arange(5).astype("M8[s]") + len(times)
            writer.append("t", new[:2], new[2:])
            times.extend(new)
            names = [f"é{len(texts) + i}" for i in range(3)]
            writer.append("name", np.array(names, Any))
            texts.extend(names)
    store = ambar.open_store(path)
    np.testing.assert_array_equal(store["a"][...], model)
    np.testing.assert_array_equal(store["t"][...], np.array(times))
    assert store["name"][...].tolist() == texts
    rows = [7, 2, -1, 2]
    np.testing.assert_array_equal(store["a"][rows, 1:9:3], model[np.ix_(rows, range(1, 9, 3))])
    mask = rng.random(10) > 0.5
    np.testing.assert_array_equal(store["a"][rows, mask], model[rows][:, mask])
    assert store["name"][[5, 0]].tolist() == [texts[5], texts[0]]
    with pytest.raises(IndexError, match="index 12 is outside"):
        store["a"][[12]]
    with ambar.create(path, "a", fsync=False) as writer:
        with pytest.raises(ValueError, match="is outside of"):
            writer.write_region("a", model, (1, 0))
        found = r"expected rows of one dtype, found datetime64\[s\], int64"
        with pytest.raises(ValueError, match=found):
            writer.append("t", new, np.arange(3))
        with pytest.raises(KeyError):
            writer.append("b", new)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a", np.array([7, 8])),
        ("a", np.array([7, 8], "f4")),
        ("a", np.array([7, 8], "M8[s]")),
        ("t", np.array([7, 8], "M8[ns]")),
        ("t", np.array([7, 8])),
        ("name", np.array(["x", "y"])),
    ],
)
def test_values_of_another_dtype_are_refused(tmp_path: Path, name: str, data: np.ndarray) -> None:
    path = tmp_path / "x.ambar"
    arrays = {
        "a": np.zeros(4),
        "t": np.array([1, 2, 3, 4], "M8[s]"),
        "name": np.array(["a", "b", "c", "d"], Any),
    }
    with ambar.create(path, fsync=False) as writer:
        for key, values in arrays.items():
            writer.create_array(key, values)
    with ambar.create(path, "a", fsync=False) as writer:
        for path_of_array in (name, f"/{name}"):
            with pytest.raises(ValueError, match=f"^{name}: expected values of"):
                writer.write_region(path_of_array, data, (0,))
            with pytest.raises(ValueError, match=f"^{name}: expected values of"):
                writer.append(path_of_array, data)
            with pytest.raises(ValueError, match=f"^{name}: expected rows of one shape"):
                writer.append(path_of_array, data[0])
    for key, values in arrays.items():
        np.testing.assert_array_equal(ambar.open_store(path)[key][...], values)


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", np.zeros((2, 3)))
        writer.create_array("one", np.zeros(()))
        for data in (np.zeros((1, 3, 1)), np.zeros(3), np.zeros((3, 1)), np.float64(1)):
            with pytest.raises(ValueError, match="a: expected rows of"):
                writer.append("a", data)
        with pytest.raises(ValueError, match="a: expected rows of one shape"):
            writer.append("a", np.zeros((1, 3)), np.zeros((1, 2)))
        with pytest.raises(ValueError, match="one: "):
            writer.append("one", np.zeros(1))
    assert ambar.open_store(path)["a"].shape == (2, 3)


@pytest.mark.parametrize("shape", [(0,), (4,)])
def test_first_region_after_a_commit_keeps_stored_chunks_readable(
    tmp_path: Path, shape: tuple[int]
) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_array("a", shape=shape, dtype="i4")
        writer.commit()
        writer.append("a", np.arange(3, dtype="i4"))
    expected = [*[0] * shape[0], 0, 1, 2]
    assert ambar.open_store(path)["a"][...].tolist() == expected


def test_numbers_and_lists_are_written_in_the_dtype_of_the_array(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        for name, dtype in {"f": "f4", "i": "u1", "c": "c16", "t": "M8[s]"}.items():
            writer.create_array(name, shape=(0,), dtype=dtype)
        writer.create_array("s", shape=(0,), dtype=str)
        writer.append("f", [1, 2], [0.1])
        writer.append("i", [255.0], (0,))
        writer.append("c", [1])
        writer.append("s", ["é", "ab"])
        writer.append("t", [np.datetime64("2026-01-01")])
        writer.create_array("0", shape=(), dtype="f8")
        writer.write_region("0", 3, ())
        doubles = np.ones(1, "f8")
        for name, wrong in (("i", [256]), ("i", [0.5]), ("f", [2**24 + 1]), ("f", doubles)):
            with pytest.raises(ValueError, match=f"{name}: expected values of"):
                writer.append(name, wrong)
    store = ambar.open_store(path)
    np.testing.assert_array_equal(store["f"][...], np.array([1, 2, 0.1], "f4"))
    assert store["i"][...].tolist() == [255, 0]
    assert store["c"][...].tolist() == [1]
    assert store["s"][...].tolist() == ["é", "ab"]
    assert store["t"][...].tolist() == [np.datetime64("2026-01-01", "s").item()]
    assert store["0"][...] == 3


def test_the_type_of_profiles_has_all_profiles(tmp_path: Path) -> None:
    profiles = get_args(Profile)
    for profile in profiles:
        with ambar.create(tmp_path / "x.ambar", "w", profile=profile, fsync=False) as writer:
            writer.create_array("x", np.arange(100))
    with pytest.raises(ValueError, match="invalid profile") as error:
        ambar.create(tmp_path / "y.ambar", profile="none")  # type: ignore[arg-type]
    assert all(f'"{profile}"' in str(error.value) for profile in profiles)
    assert str(error.value).count('"') == 2 * (len(profiles) + 1)
