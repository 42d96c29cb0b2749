"""Stores whose attributes or arrays contradict each other, under checksums that fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import ambar
from ambar.cli.info import ls
from ambar.kinds.registry import overview
from ambar.mesh.storage.description import blocks_of
from ambar.snapshot.amrex_info import AmrexInfo
from ambar.snapshot.run_info import RamsesInfo
from campaigns import seal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    options: Any = {"fsync": False, "ragged": ["t"]}
    with ambar.open_collection(tmp_path / "x.ambar", "w-", **options) as made:
        for number in range(4):
            values = np.arange(3.0 + number % 2)
            made.add(f"d{number}", {"v": ("t", values, {"n": number}), "w": ("k", [1, number])})
    return tmp_path / "x.ambar"


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the root's document and repair its checksum."""
    image = seal.read(path)
    root = image.root
    change(root)
    seal.set_root(image, root)
    seal.write(path, image)


def family(root: dict[str, Any]) -> dict[str, Any]:
    nodes = root["consolidated_metadata"]["metadata"]
    found: dict[str, Any] = nodes["f0"]["attributes"]["ambar"]
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda root: root["attributes"]["ambar"].pop("families"),
        lambda root: root["attributes"]["ambar"].update(families="two"),
        lambda root: root["attributes"]["ambar"].update(families=[1]),
        lambda root: root["attributes"]["ambar"].pop("ragged"),
        lambda root: root["attributes"]["ambar"].update(encoding=[1]),
        lambda root: family(root).update(version="1"),
        lambda root: family(root).update(ragged="t"),
        lambda root: family(root).update(rows=-1),
        lambda root: family(root).update(sizes={"k": "2"}),
        lambda root: family(root).update(attributes=[["x", "n"]]),
        lambda root: family(root).update(attributes=[[{}, "n"]]),
        lambda root: family(root)["variables"]["w"].update(dims=[["k"]]),
        lambda root: family(root)["variables"]["w"].update(dims=["k", "unknown"]),
        lambda root: family(root)["variables"]["w"].update(dtype="no type"),
        lambda root: family(root)["variables"]["w"].update(times="centuries"),
        lambda root: family(root)["variables"].update(w=7),
    ],
)
def test_attributes_of_another_type_are_damage(path: Path, change: Callable[[Any], Any]) -> None:
    """They raised KeyError, TypeError or ValueError, when opened or later."""
    changed(path, change)
    with pytest.raises(ambar.CorruptError, match=r"x\.ambar.*/"):
        ambar.open_collection(path)


@pytest.mark.parametrize(
    ("array", "values"),
    [
        ("f0/w", np.zeros((1, 2), "i8")),
        ("f0/w", np.zeros((4, 3), "i8")),
        ("f0/w", np.zeros((4, 2), "f4")),
        ("f0/w", np.zeros(4, "i8")),
        ("f0/v", np.zeros(5)),
        ("f0/t_count", np.array([2**62] * 4)),
        ("f0/t_count", np.array([2**62, 0, 0, 0])),
        ("f0/t_count", np.array([3.0] * 4)),
        ("f0/t_count", np.array([3])),
        ("f0/statistics/w_counts", np.zeros((1, 2), "i8")),
        ("f0/attributes/0", np.array(["1"], object)),
        ("f0/attributes/0", np.arange(4)),
    ],
)
def test_arrays_that_do_not_fit_their_family_are_damage(
    path: Path, array: str, values: np.ndarray
) -> None:
    """Reading raised IndexError or ValueError, gave other shapes or types, or crashed."""
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array(array, values)
    collection = ambar.open_collection(path)
    with pytest.raises(ambar.CorruptError, match=array if array[-5:] != "count" else "/f0/"):
        for variable in ("v", "w"):
            collection.read(variable)
            collection.stats(variable)
            for number in range(4):
                collection.load(f"d{number}")


@pytest.mark.parametrize("said", [{"hydro": ["density", 3]}, {"hydro": 3}, [["hydro", []]]])
def test_components_of_a_snapshot_that_are_not_names_are_damage(
    said: Any, stores: dict[str, Path], tmp_path: Path
) -> None:
    """Printing a snapshot raised TypeError."""
    image = seal.read(stores["sedov"])
    seal.write(tmp_path / "x.ambar", image)
    changed(tmp_path / "x.ambar", lambda root: root["attributes"]["ambar"].update(components=said))
    with pytest.raises(ambar.CorruptError, match=r"x\.ambar.*expected|must be"):
        repr(ambar.open(tmp_path / "x.ambar"))


def test_a_catalogue_of_more_names_than_bytes_is_damage(path: Path) -> None:
    """It was read chunk by chunk, into memory for as many names as its shape declares."""

    def change(root: dict[str, Any]) -> None:
        nodes = root["consolidated_metadata"]["metadata"]
        nodes["datasets/name"]["shape"] = [2**36]
        nodes["datasets/place"]["shape"] = [2**36, 2]

    changed(path, change)
    with pytest.raises(ambar.CorruptError, match=r"string\(68719476736,\) of .* /datasets/name"):
        ambar.open_collection(path)


def test_a_kind_that_is_not_a_string_is_damage(tmp_path: Path) -> None:
    """`ambar info` raised TypeError, `ambar ls` an error of rich."""
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer._create_group("g", {"ambar": {"kind": ["a"]}})
    with pytest.raises(ambar.CorruptError, match="/g: 'kind' must be a string"):
        ls(str(tmp_path / "x.ambar"))
    changed(tmp_path / "x.ambar", lambda root: root["attributes"]["ambar"].update(kind={"a": 1}))
    with pytest.raises(ambar.CorruptError, match="'kind' must be a string"):
        overview(tmp_path / "x.ambar")


@pytest.mark.parametrize("codecs", [[5], ["bytes", 7]])
def test_references_of_metadata_that_are_not_an_array_s(codecs: Any, tmp_path: Path) -> None:
    """They raised TypeError where a codec was a name alone, or a number."""
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("a", np.arange(3))

    def change(root: dict[str, Any]) -> None:
        root["consolidated_metadata"]["metadata"]["a"]["codecs"] = codecs

    changed(tmp_path / "x.ambar", change)
    with pytest.raises(ambar.AmbarError):
        ambar.references(tmp_path / "x.ambar")


@pytest.mark.parametrize("values", [np.arange(4), np.array([["a"] * 4], object)])
def test_names_that_are_not_strings_are_damage(path: Path, values: np.ndarray) -> None:
    """A catalogue of numbers was opened; one of two dimensions raised TypeError."""
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array("datasets/name", values)
    with pytest.raises(ambar.CorruptError, match="datasets/name"):
        ambar.open_collection(path)


def test_a_variable_with_several_numbers_of_dimensions_is_refused(tmp_path: Path) -> None:
    """Reading it raised NumPy's error about an inhomogeneous shape."""
    with ambar.open_collection(tmp_path / "x.ambar", "w-", fsync=False) as made:
        made.add("a", {"v": ("x", [1.0, 2.0])})
        made.add("b", {"v": (("x", "y"), [[1.0], [2.0]])})
    collection = ambar.open_collection(tmp_path / "x.ambar")
    with pytest.raises(ValueError, match="different numbers of dimensions"):
        collection.read("v")
    assert np.shape(collection.read("v", ["b"])["v"]) == (1, 2, 1)


def test_a_group_of_conflicting_sizes_is_an_error_of_ambar(tmp_path: Path) -> None:
    """The error was xarray's own, which names neither the store nor the group."""
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("g/a", np.arange(3), dims=("x",))
        writer.create_array("g/b", np.arange(4), dims=("x",))
    with pytest.raises(ValueError, match=r"x\.ambar.*group /g: conflicting sizes"):
        xr.open_dataset(tmp_path / "x.ambar", engine="ambar", group="g")


def test_a_tree_whose_groups_do_not_fit_together_is_refused(tmp_path: Path) -> None:
    """The error was xarray's own, which does not name the store."""
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("g/a", np.arange(3), dims=("x",))
        writer.create_array("g/h/b", np.arange(4), dims=("x",))
    with pytest.raises(ValueError, match=r"x\.ambar: expected groups with the dimensions"):
        xr.open_datatree(tmp_path / "x.ambar", engine="ambar")
    groups = xr.open_groups(tmp_path / "x.ambar", engine="ambar")
    assert groups["/g/h"]["b"].shape == (4,)


def test_a_variable_of_numbers_and_of_times_is_refused(tmp_path: Path) -> None:
    """Reading it raised NumPy's DTypePromotionError."""
    with ambar.open_collection(tmp_path / "x.ambar", "w-", fsync=False) as made:
        made.add("a", {"v": ("x", [1, 2])})
        made.add("b", {"v": ("x", np.array([3, 4], "M8[s]"))})
    collection = ambar.open_collection(tmp_path / "x.ambar")
    with pytest.raises(ValueError, match=r"'v': .*datetime64\[s\], int64"):
        collection.read("v")
    with pytest.raises(ValueError, match=r"'v': .*datetime64\[s\], int64"):
        collection.stats("v")
    assert np.asarray(collection.read("v", ["a"])["v"]).tolist() == [[1, 2]]


def test_plotfiles_with_corners_of_other_dimensions_are_refused() -> None:
    level = {"lo": [0, 0], "hi": [3, 3], "cell_size": [1, 1], "ratio": [2, 2], "boxes": 1}
    values = {"ndim": 2, "time": 0, "lower": [0, 0], "upper": [1, 1]}
    good = {**values, "levels": [{**level, "cells": 16}]}
    assert AmrexInfo.from_dict(good).box_size == (1, 1)
    for bad in (
        {**good, "upper": [1]},
        {**good, "levels": [{**level, "cells": 16, "hi": [3, 3, 3]}]},
    ):
        with pytest.raises(ValueError, match="expected 2 numbers in"):
            AmrexInfo.from_dict(bad)


def test_information_of_a_block_that_is_not_a_list_is_ignored() -> None:
    """Listing the arrays raised TypeError."""
    described = {"blocks": [{"block": {"type": "x"}, "info": 7}]}
    assert blocks_of(described) == [(None, {"type": "x"})]


@pytest.mark.parametrize("aexp", [0, 0.0, -0.0])
def test_plotfiles_whose_expansion_factor_is_0_have_an_infinite_redshift(aexp: float) -> None:
    """Printing the snapshot raised ZeroDivisionError."""
    values = {"ndim": 2, "time": 0, "lower": [0, 0], "upper": [1, 1], "levels": [], "aexp": aexp}
    info = AmrexInfo.from_dict(values)
    assert info.redshift == math.inf
    assert ("aexp", f"{aexp:.6g} (redshift inf)") in info.summary()


@pytest.mark.parametrize(
    "changed",
    [
        {"aexp": 0.0},
        {"aexp": -1.0},
        {"aexp": math.nan},
        {"aexp": 1e300},
        {"H0": 0},
        {"time": 10**400},
        {"root": (0, 1, 1)},
        {"boxlen": 0.0},
        {"unit_l": 0.0},
        {"unit_d": -1.0},
        {"unit_t": math.inf},
    ],
)
def test_run_information_that_gives_no_age_is_refused(changed: dict[str, Any]) -> None:
    """Printing the snapshot raised ZeroDivisionError, OverflowError or TypeError."""
    values = {"ndim": 3, "boxlen": 1.0, "time": -1.0, "cosmological": True, "aexp": 0.5, "H0": 70.0}
    values["unit_l"] = 3e24
    assert "redshift 1" in str(RamsesInfo.from_dict(values))
    with pytest.raises(ValueError, match="in the run information"):
        RamsesInfo.from_dict({**values, **changed})
