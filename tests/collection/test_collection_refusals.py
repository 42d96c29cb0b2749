"""What a collection cannot hold is refused when it is added, and harms nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ambar
from ambar.collection.write.family_writer import FamilyWriter

has_longdouble = pytest.mark.skipif(
    np.dtype("longdouble").itemsize == 8, reason="NumPy's longdouble is float64 here"
)


def good(number: int) -> xr.Dataset:
    return xr.Dataset({"v": ("x", np.arange(4.0) + number)}, attrs={"number": number})


def _arrays() -> np.ndarray:
    values = np.empty(2, object)
    values[:] = [np.zeros(3, "f4"), [1.0]]
    return values


def _multi_index() -> xr.Dataset:
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["k", "n"])
    return xr.Dataset(coords=xr.Coordinates.from_pandas_multiindex(index, "row"))


def _surrogate() -> np.ndarray:
    values = np.array(["a", "b"], object)
    values[1] = "\udcff"
    return values


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"attributes": [1]}, "'attributes' is not a valid name of a variable"),
        ({"statistics": [1]}, "'statistics' is not a valid name of a variable"),
        ({"dataset": [1]}, "'dataset' is not a valid name of a variable"),
        ({"a/b": [1]}, "'a/b' is not a valid name of a variable"),
        ({"..": [1]}, "'..' is not a valid name of a variable"),
        ({"v": np.array(["a", 1.5], object)}, "v has objects of float, str"),
        ({"v": np.array([b"a", "b"], object)}, "v has objects of bytes, str"),
        ({"v": ("x", _arrays())}, r"v has objects that are arrays \(list, ndarray of float32\)"),
        (_multi_index(), r"row has objects that are tuples, as a MultiIndex .* reset_index\(\)"),
        ({"v": ("x", _surrogate())}, "v has a string that is not valid Unicode"),
        ({"v": ("x", [1], {"a": object()})}, "v: attribute 'a': expected strings, .* found object"),
        ({"v": ("x", [1], {"a": ["\udcff"]})}, "v: attribute 'a': .* surrogates not allowed"),
        ({"v": ("x", [1], {"ambar": 1})}, "v: attribute 'ambar': the name \"ambar\" is reserved"),
        ({"v": ("x", [1], {1: "a", "1": "b"})}, "v: attribute '1': another attribute is named"),
        ({"v": np.zeros(2, [("a", "i4")])}, "v has dtype"),
        pytest.param({"v": np.zeros(2, "longdouble")}, "v has dtype .*float", marks=has_longdouble),
        pytest.param(
            {"v": np.zeros(2, "clongdouble")}, "v has dtype complex", marks=has_longdouble
        ),
        ({"v": xr.DataArray([1], dims="x")}, "v: expected an array, found an object of DataArray"),
        ({"v": xr.Variable("x", [1])}, "v: expected an array, found an object of Variable"),
        (
            xr.DataArray([1], dims="x"),
            "expected an xarray.Dataset, .* found an object of DataArray",
        ),
        (1, "expected an xarray.Dataset, or a mapping .*, found an object of int"),
        ({"v": np.ma.masked_array([1, 2], [False, True])}, "v: expected values without a mask"),
        (
            {"v": ("x", np.ma.masked_array([1.0, 2.0], [False, True]))},
            "v: expected values without a mask",
        ),
        ({"v": (("x", "x"), np.ones((2, 2)))}, r"v has a repeated dimension, \('x', 'x'\)"),
        (
            {"v": ("x", np.zeros(2, "M8[s]"), {"units": "days since 1900-01-01"})},
            "the times v have the attributes \\['units'\\]",
        ),
    ],
)
def test_a_bad_dataset_is_refused_and_the_rest_is_kept(
    tmp_path: Path, bad: dict[str, Any], message: str
) -> None:
    path = tmp_path / "x.ambar"
    with ambar.open_collection(path, "w-", fsync=False) as profiles:
        profiles.add("d0", good(0))
        with pytest.raises((ValueError, ambar.UnsupportedError), match=message) as error:
            profiles.add("bad", bad)
        assert "dataset 'bad'" in str(error.value)
        with pytest.raises((ValueError, ambar.UnsupportedError), match=message):
            profiles.add_many({"bad": bad})
        profiles.add("d1", good(1))
    profiles = ambar.open_collection(path)
    assert profiles.names == ["d0", "d1"]
    for number in range(2):
        xr.testing.assert_identical(profiles.load(f"d{number}"), good(number))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"error_bound": "x"}, "invalid error bound: .x.; expected a number"),
        ({"error_bound": -1}, "invalid error bound"),
        ({"error_bound": [1]}, "invalid error bound"),
        ({"error_bound": "1e-3 of range"}, "of 'v', .* depends on the value range of all datasets"),
        ({"chunks": (0,)}, "encoding of v: invalid chunks: .*expected lengths of at least 1"),
        ({"chunks": "a"}, "encoding of v: invalid chunks: 'a'"),
        ({"chunks": 3}, "encoding of v: invalid chunks: 3"),
        ({"profile": "x"}, "invalid profile of v 'x': must be one of 'fast'"),
        (3, "invalid encoding: expected options by variable, .* found {'v': 3}"),
    ],
)
def test_invalid_encodings_are_refused_before_datasets_are_added(
    options: Any, message: str, tmp_path: Path
) -> None:
    """They were errors of the commit, which discarded all changes."""
    with pytest.raises(ValueError, match=message):
        ambar.open_collection(tmp_path / "x.ambar", "w-", encoding={"v": options})
    with pytest.raises(ValueError, match="invalid encoding: .*, found 3"):
        ambar.open_collection(tmp_path / "x.ambar", "w-", encoding=3)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_one_name_of_a_ragged_dimension(tmp_path: Path) -> None:
    """A string was a list of its characters."""
    made = ambar.open_collection(tmp_path / "x.ambar", "w-", ragged="obs")
    assert made.settings["ragged"] == ["obs"]
    made.close()


def test_names_that_are_invalid_unicode(tmp_path: Path) -> None:
    profiles = ambar.open_collection(tmp_path / "x.ambar", "w-", fsync=False)
    with pytest.raises(ValueError, match="a dataset's name"):
        profiles.add("\udcff", good(0))
    profiles.close()


def test_a_variable_named_as_the_counts_of_a_ragged_family(tmp_path: Path) -> None:
    datasets = {
        f"d{n}": xr.Dataset({"obs_count": ("obs", np.arange(n)), "t": ("obs", np.ones(n))})
        for n in (3, 1, 2)
    }
    path = tmp_path / "x.ambar"
    with ambar.open_collection(path, "w-", fsync=False, ragged=["obs"]) as profiles:
        profiles.add_many(datasets.items())
    profiles = ambar.open_collection(path)
    for name, dataset in datasets.items():
        xr.testing.assert_identical(profiles.load(name), dataset)
    assert profiles.to_xarray()["obs_count_"].values.tolist() == [3, 1, 2]


def test_an_error_of_writing_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left")

    path = tmp_path / "x.ambar"
    with ambar.open_collection(path, "w-", fsync=False) as profiles:
        profiles.add("d0", good(0))
        profiles.commit()
        with monkeypatch.context() as patch:
            patch.setattr(FamilyWriter, "_write_variable", full)
            profiles.add("d1", good(1))
            with pytest.raises(OSError, match="no space"):
                profiles.commit()
        # Going on would put the next datasets where those that were lost should be.
        with pytest.raises(OSError, match="no space"):
            profiles.commit()
        with pytest.raises(OSError, match="no space"):
            profiles.add("d2", good(2))
        profiles.close()
    profiles = ambar.open_collection(path)
    assert profiles.names == ["d0"]
    xr.testing.assert_identical(profiles.load("d0"), good(0))


@pytest.mark.parametrize(
    ("encoding", "message"),
    [
        ({"flag": {"error_bound": 0.1}}, "encoding of flag: an error bound needs float32"),
        ({"flag": {"chunks": (2, 2)}}, r"encoding of flag: expected chunks .*, found \(2, 2\)"),
    ],
)
def test_an_encoding_that_a_variable_cannot_have(
    tmp_path: Path, encoding: Any, message: str
) -> None:
    path = tmp_path / "x.ambar"
    with ambar.open_collection(path, "w-", fsync=False, encoding=encoding) as profiles:
        with pytest.raises(ValueError, match=message):
            profiles.add("bad", {"flag": ("x", np.arange(3))})
        profiles.add("d0", good(0))
    assert ambar.open_collection(path).names == ["d0"]


def test_a_refused_dataset_leaves_no_dtype_behind(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    with ambar.open_collection(path, "w-", fsync=False, on_mismatch="raise") as profiles:
        profiles.add("d0", good(0))
        with pytest.raises(ValueError, match="v has dtype float32, expected float64"):
            profiles.add("bad", {"w": np.zeros(4, "f4"), "v": np.zeros(4, "f4")})
        profiles.add("d1", {"w": np.zeros(3, "f8")})
    assert ambar.open_collection(path).names == ["d0", "d1"]


def test_the_order_of_variables_makes_no_family(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    first = {"a": ("x", [1, 2]), "b": (("y", "x"), [[3, 4]])}
    with ambar.open_collection(path, "w-", fsync=False) as profiles:
        profiles.add("d0", first)
        profiles.add("d1", dict(reversed(first.items())))
    profiles = ambar.open_collection(path)
    assert len(profiles.families) == 1
    xr.testing.assert_identical(profiles.load("d0"), profiles.load("d1"))


@pytest.mark.parametrize("threads", [-1, 0])
def test_numbers_of_threads_are_checked_before_values_are_read(
    threads: int, tmp_path: Path
) -> None:
    """They were ignored until values were read, and by exports."""
    path = tmp_path / "x.ambar"
    with ambar.open_collection(path, "w-") as collection:
        collection.add("a", {"v": ("x", np.arange(3.0))})
    expected = pytest.raises(ambar.InvalidError, match=r"threads: .*; expected an integer from 1")
    with expected:
        ambar.open_collection(path, threads=threads)
    with expected:
        ambar.export(path, tmp_path / "out", threads=threads)
    assert not (tmp_path / "out").exists()
