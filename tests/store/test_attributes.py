"""Attributes as Python objects: what JSON can represent comes back, the rest is refused."""

from __future__ import annotations

import enum
import math
import re
import sys
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ambar
from ambar.store.nodes import _RESERVED_KINDS
from tests.helpers.paths import ROOT

DEEPEST = 100
"""Lists and mappings that may be nested, including the attributes themselves."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def written(path: Path, attrs: Any) -> Any:
    with ambar.create(path, "w", fsync=False) as writer:
        writer.create_group("group", attrs)
    return ambar.open_store(path)["group"].attrs


def nested(levels: int) -> dict[str, Any]:
    """Return a dictionary with lists in it; both count as levels."""
    value: list[Any] = []
    for _ in range(levels - 2):
        value = [value]
    return {"a": value}


@settings(deadline=None)
@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_values_come_back(tmp_path_factory: pytest.TempPathFactory, attrs: dict[str, Any]) -> None:
    found = written(tmp_path_factory.getbasetemp() / "values.ambar", attrs)
    assert found == attrs
    assert list(found) == list(attrs)
    assert repr(found) == repr(attrs)  # types, signs of zero and order included


class Color(enum.IntEnum):
    """A member is an integer."""

    RED = 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        (np.arange(6).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]),
        (np.array(2.5), 2.5),
        (np.array(["a", None], dtype=object), ["a", None]),
        (MappingProxyType({"b": (np.int64(1),)}), {"b": [1]}),
        (Color.RED, 3),
        (2**64 - 1, 2**64 - 1),
        (-(2**63), -(2**63)),
        (sys.float_info.max, sys.float_info.max),
        (5e-324, 5e-324),
        (-0.0, -0.0),
    ],
)
def test_other_types_become_those_of_json(tmp_path: Path, value: Any, expected: Any) -> None:
    found = written(tmp_path / "x.ambar", {"a": value})["a"]
    assert found == expected
    assert type(found) is type(expected)
    if isinstance(expected, float):
        assert math.copysign(1, found) == math.copysign(1, expected)


def test_floats_that_json_lacks_come_back(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "x.ambar"
    given = {"nan": math.nan, "limits": [-math.inf, 1.0, {"above": np.float32("inf")}]}
    read = {"nan": math.nan, "limits": [-math.inf, 1.0, {"above": math.inf}]}
    with ambar.create(path, fsync=False) as writer:
        writer.create_group("group", given)
        writer.create_array("x", [1.0], attrs=given)
        writer.attrs.update(given)
        assert repr(writer.attrs) == repr(read)
    ambar.convert(path, tmp_path / "copy.ambar", fsync=False)
    for store in (ambar.open_store(path), ambar.open_store(tmp_path / "copy.ambar")):
        for node in (store, store["group"], store["x"]):
            assert repr({name: node.attrs[name] for name in given}) == repr(read)
    theirs = zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
    assert theirs["x"].attrs["nan"] == {"float": "nan"}


LOOP: dict[str, Any] = {}
LOOP["a"] = [LOOP]
ITSELF = np.empty(1, dtype=object)
ITSELF[0] = ITSELF


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({1: 2}, "expected strings as names, found 1"),
        ({"a": {None: 2}}, '"a": expected strings as names, found None'),
        ({"a": LOOP}, "contains itself"),
        ({"a": ITSELF}, "contains itself"),
        ({"a": nested(DEEPEST)}, f"at most {DEEPEST} nested"),
        ({"a": 2**64}, "expected integers of 64 bits, found 18446744073709551616"),
        ({"a": -(2**63) - 1}, "expected integers of 64 bits, found -9223372036854775809"),
        ({"a": "\ud800"}, "lone surrogate"),
        ({"\udfff": 1}, "lone surrogate"),
        ({"a": b"x"}, "found bytes"),
        ({"a": {1, 2}}, "found set"),
        ({"a": 1j}, "found complex"),
        ({"a": np.complex128(1)}, "found complex"),
        ({"a": np.datetime64("2026-01-01")}, "found datetime64"),
        ({"a": np.datetime64("2026-01-01", "ns")}, "found datetime64"),
        ({"a": np.timedelta64("NaT")}, "found timedelta64"),
        ({"a": np.array(["2026-01-01", "NaT"], "M8[ns]")}, "found ndarray"),
        ({"a": np.longdouble(1)}, "found (longdouble|float128)"),
        ([("a", 1)], "expected a mapping, found list"),
    ],
)
def test_what_json_cannot_represent_is_refused(tmp_path: Path, attrs: Any, message: str) -> None:
    with pytest.raises(ambar.InvalidError, match=message):
        written(tmp_path / "x.ambar", attrs)


def test_the_deepest_attributes_are_read(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    path, attrs = tmp_path / "x.ambar", nested(DEEPEST)
    with ambar.create(path, fsync=False) as writer:
        writer.create_group("/", attrs)
        writer.create_array("array", [1.0], attrs=attrs)
    with ambar.create(path, "a", fsync=False) as writer:  # reads the metadata again
        writer.create_group("group", attrs)
    store = ambar.open_store(path)
    theirs = zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
    for group in (store, theirs):
        assert group.attrs["a"] == attrs["a"]
        assert dict(group["array"].attrs) == dict(group["group"].attrs) == attrs


def test_a_mapping_that_changes_meanwhile(tmp_path: Path) -> None:
    class Changing(np.ndarray):
        def tolist(self) -> Any:
            attrs["another"] = 1
            return super().tolist()

    attrs: dict[str, Any] = {"a": np.arange(2).view(Changing), "b": 2}
    assert written(tmp_path / "x.ambar", attrs) == {"a": [0, 1], "b": 2}


def test_a_writer_edits_attributes(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    path = tmp_path / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_group("run", {"code": "solver", "draft": True})
        writer.create_array("run/x", np.linspace(0, 1, 100), attrs={"unit": "m"}, error_bound=0.1)
        with pytest.raises(ambar.NotFoundError, match="node /missing does not exist"):
            writer["missing"]
        assert ("run/x" in writer, "missing" in writer, 3 in writer) == (True, False, False)
        anything: Any = writer
        with pytest.raises(TypeError, match="not iterable"):
            list(anything)
        assert repr(writer["run"]) == "<ambar.WriterNode> /run: {'code': 'solver', 'draft': True}"
    with ambar.create(path, "a", fsync=False) as writer:
        writer.attrs["title"] = "a run"
        run, x = writer["run"], writer["run/x/"]
        assert (run.path, x.path, writer["/"].path) == ("run", "run/x", "")
        del run.attrs["draft"]
        run.attrs.update({"steps": np.arange(2)}, code="other")
        x.attrs["unit"] = "cm"
        assert x.attrs == {"unit": "cm"}  # without the attributes that state the loss
        assert repr(run.attrs) == "{'code': 'other', 'steps': [0, 1]}"
        assert (len(run.attrs), "draft" in run.attrs, run.attrs.pop("code")) == (2, False, "other")
        assert ambar.open_store(path)["run"].attrs == {"code": "solver", "draft": True}
    store = ambar.open_store(path)
    theirs = zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
    assert store.attrs["title"] == theirs.attrs["title"] == "a run"
    assert store["run"].attrs == dict(theirs["run"].attrs) == {"steps": [0, 1]}
    assert store["run/x"].attrs == {"unit": "cm"}
    assert dict(theirs["run/x"].attrs) == {**store["run/x"].attrs, **store["run/x"].lossy_attrs}
    np.testing.assert_array_equal(store["run/x"][:], theirs["run/x"][:])


def test_an_invalid_change_changes_nothing(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_group("run", {"code": "solver", "b": 1})
        attrs = writer["run"].attrs
        with pytest.raises(ambar.InvalidError, match='"b": expected values that JSON'):
            attrs.update(a=1, b=1j)
        with pytest.raises(ambar.NotFoundError, match='"cod" does not exist; did you mean code'):
            del attrs["cod"]
        with pytest.raises(ambar.NotFoundError, match="attribute 'cod'.*did you mean 'code'"):
            attrs["cod"]
        assert attrs == {"code": "solver", "b": 1}
        assert list(attrs) == ["code", "b"]
        attrs.clear()
        attrs["c"] = None
        attrs.setdefault("c", 3)
        assert attrs == {"c": None}
        writer["run"].attrs = {"d": 4}
        assert attrs == {"d": 4}
        writer.remove("run")
        with pytest.raises(ambar.NotFoundError):
            attrs["d"] = 5
    with pytest.raises(ValueError, match="closed"):
        writer.attrs["e"] = 6


def test_the_kinds_of_the_format_are_reserved() -> None:
    text = (ROOT / "docs" / "format.md").read_text()
    [kinds] = re.findall(r"^\| `kind` \| (`snapshot`.*) \|$", text, re.MULTILINE)
    assert {*re.findall(r"`(\w+)`", kinds)} == _RESERVED_KINDS


def test_the_attribute_of_kinds_is_reserved(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("x", [1.0])
        with pytest.raises(ambar.InvalidError, match='"ambar" is reserved.*another name'):
            writer.attrs["ambar"] = {"kind": "mesh"}
        with pytest.raises(ambar.InvalidError, match="reserved"):
            writer["x"].attrs.update(ambar="mine")
        with pytest.raises(ambar.InvalidError, match="reserved"):
            writer.attrs = {"ambar": "mine"}
        with pytest.raises(ambar.InvalidError, match="reserved"):
            writer.create_group("/", {"ambar": "mine"})
        with pytest.raises(ambar.InvalidError, match="reserved"):
            writer.create_array("y", [1.0], attrs={"ambar": 1})
        for about in ({}, {"kind": "mesh", "version": 1}, {"kind": ["probe"]}):
            with pytest.raises(ambar.InvalidError, match="a kind of another package"):
                writer.create_group("group", {"ambar": about})
        writer.create_group("probe", {"ambar": {"kind": "probe", "version": 1}})
    store = ambar.open_store(tmp_path / "x.ambar")
    assert store.attrs == {"ambar": {"version": 1}}
    assert store["probe"].attrs == {"ambar": {"kind": "probe", "version": 1}}
