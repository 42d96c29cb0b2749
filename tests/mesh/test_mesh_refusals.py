"""What cannot be a mesh is refused: when it is written, and when it is read."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.mesh.write import write_group

pytest.importorskip("pyvista")


from vtkmodules import vtkCommonCore, vtkCommonDataModel

from tests.helpers.mesh.descriptions import HOSTILE, changed_at, leaves, plain, together
from tests.helpers.mesh.samples import DATASETS, OTHERS


def _far_corner() -> Any:
    mesh = DATASETS["tetrahedra"]().copy()
    mesh.GetCells().GetConnectivityArray().SetValue(5, mesh.n_points)
    return mesh


def _negative_corner() -> Any:
    mesh = DATASETS["poly"]()
    mesh.GetPolys().GetConnectivityArray().SetValue(0, -1)
    return mesh


def _short_array() -> Any:
    mesh = DATASETS["image"]()
    array = vtkCommonCore.vtkFloatArray()
    array.SetName("short")
    array.SetNumberOfTuples(3)
    mesh.GetPointData().AddArray(array)
    return mesh


def _inverted_extent() -> Any:
    mesh = vtkCommonDataModel.vtkStructuredGrid()
    mesh.SetExtent(5, 1, 0, 3, 0, 3)
    return mesh


def _variants() -> Any:
    mesh = vtkCommonDataModel.vtkTable()
    array: Any = vtkCommonCore.vtkVariantArray()
    array.SetName("any")
    array.InsertNextValue(1)
    mesh.AddColumn(array)
    return mesh


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (_far_corner, ValueError, "/cells: a cell refers to point 2184 of 2184: repair"),
        (_negative_corner, ValueError, "/polygons: a cell refers to point -1 of 12"),
        (_short_array, ValueError, "/point_data array 'short' has 3 tuples, the mesh 60"),
        (_inverted_extent, ValueError, r"extent \[5, 1, .* that VTK does not support; an empty"),
        (_variants, ambar.UnsupportedError, "/row_data array 'any': expected .* vtkVariantArray"),
        (
            vtkCommonDataModel.vtkMolecule,
            ambar.UnsupportedError,
            "a vtkMolecule cannot be",
        ),
        (lambda: None, ValueError, "found None"),
        (lambda: np.zeros(3), ValueError, "expected a VTK object, found a ndarray"),
    ],
)
def test_what_cannot_be_written(
    make: Callable[[], Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        ambar.write_mesh(make(), tmp_path / "x.ambar")
    assert list(tmp_path.iterdir()) == []


def test_an_invalid_error_bound_is_refused_without_an_array_that_it_applies_to(
    tmp_path: Path,
) -> None:
    mesh = DATASETS["image"]()
    for bound in ("1e-3 of rnage", {"scalars": "1e-3 of rnage"}, {"missing": -1.0}):
        with pytest.raises(ambar.InvalidError, match="invalid error bound"):
            ambar.write_mesh(mesh, tmp_path / "x.ambar", error_bound=bound)
        with (
            ambar.create(tmp_path / "y.ambar", "w", fsync=False) as writer,
            pytest.raises(ambar.InvalidError, match="invalid error bound"),
        ):
            write_group(writer, "", mesh, error_bound=bound)
    assert not (tmp_path / "x.ambar").exists()


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("image", changed_at("extent", [0, 1]), r"extent is \[0, 1\], not 6 integers"),
        ("image", changed_at("spacing", [1, 2, "x"]), "spacing is .* not 3 numbers"),
        ("image", changed_at("extent", 1, -3), r"extent \[-1, -3, .* that VTK does not support"),
        ("structured", changed_at("extent", 1, 5), "points are 60, the extent has 72"),
        ("rectilinear", changed_at("extent", [0, 3, 1, 4, -1, 0]), "x coordinates are not 4"),
        (
            "tetrahedra",
            changed_at("cells", "corners", "at", "nowhere"),
            "array 'nowhere' that does not exist",
        ),
        ("tetrahedra", changed_at("cells", "storage", 32), "corners have dtype int64, not int32"),
        ("tetrahedra", changed_at("types", 300), "types are 300"),
        ("tetrahedra", changed_at("points", "lattice", []), "expected three axes of a lattice"),
        (
            "poly",
            changed_at("points", "at", [9, 0, 4, 3]),
            "pack 9 of small arrays, which does not exist",
        ),
        (
            "poly",
            changed_at("points", "at", [0, 10, 12, 3]),
            "ends at 46, after the end of its pack 0",
        ),
        ("poly", changed_at("points", "at", [0, 0, 4, 3]), "a cell refers to 6 of 4"),
        ("poly", changed_at("packed", 0, "codecs", "gzip"), "a pack of small arrays .* is damaged"),
        ("poly", changed_at("packed", 0, "shape", [2**40]), "a pack of small arrays .* is damaged"),
        ("quadratic", changed_at("cells", "sizes", "of_types", "24", 9), "of 9 corners|sizes"),
        ("mixed", changed_at("cells", "sizes", "at", [0, 0, 3]), "sizes"),
        ("polyhedra", changed_at("cell_faces", None), "faces are of 0 cells, not 3"),
        ("poly", changed_at("user_dict", True), "'bool' object is not iterable"),
    ],
)
def test_descriptions_that_do_not_fit(
    name: str, change: Callable[[Any], None], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.ambar"
    ambar.write_mesh({**DATASETS, **OTHERS}[name](), path, fsync=False)
    about, streams = plain(ambar.open_store(path))
    change(about)
    with ambar.create(path, "a", fsync=False) as writer:
        writer._create_group("", {"ambar": together(about, streams)})
    with pytest.raises(ambar.CorruptError, match=rf"x.ambar: .*({message})"):
        ambar.read_mesh(path)


def test_newer_versions_and_other_types_are_unsupported(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    for change, message in (
        (changed_at("version", 2), "/m is a mesh of version 2; this version of ambar reads 1"),
        (
            changed_at("type", "Graph"),
            "has type 'Graph', which this version of ambar does not support",
        ),
    ):
        with ambar.create(path, "w", fsync=False) as writer:
            write_group(writer, "m", DATASETS["poly"]())
        about, streams = plain(ambar.open_store(path), "m")
        change(about)
        with ambar.create(path, "a", fsync=False) as writer:
            writer._create_group("m", {"ambar": together(about, streams)})
        with pytest.raises(ambar.UnsupportedError, match=message):
            ambar.Mesh(ambar.open_store(path), "m").read()


@pytest.mark.parametrize("name", [*DATASETS, *OTHERS])
def test_no_description_crashes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.ambar"
    ambar.write_mesh({**DATASETS, **OTHERS}[name](), path, fsync=False)
    store = ambar.open_store(path)
    about, streams = plain(store)
    rng = np.random.default_rng(0)
    ways = list(leaves(about))
    chosen = [ways[i] for i in rng.permutation(len(ways))[:12]]
    refused = 0
    for way in chosen:
        for value in HOSTILE:
            changed = copy.deepcopy(about)
            changed_at(*way, value)(changed)
            changed = together(changed, streams)
            monkeypatch.setattr(store, "_ambar_attributes", lambda _, a=changed: a)
            store._cache.clear()
            try:
                mesh = ambar.Mesh(store).read(wrap=False)
            except ambar.AmbarError:
                refused += 1
                continue
            if isinstance(mesh, vtkCommonDataModel.vtkDataSet):
                mesh.GetBounds()
    assert refused > len(chosen)


@pytest.mark.parametrize("name", ["wing.vtu", "wing.VTU", "flow.pvd"])
def test_files_of_meshes_are_converted_before_they_are_opened(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("<VTKFile/>")
    for opener in (ambar.open, ambar.open_mesh):
        with pytest.raises(ValueError, match=f"{name}: expected a store.*; convert it first"):
            opener(tmp_path / name)
    (tmp_path / "cut.ambar").write_bytes(b"PK")
    with pytest.raises(ambar.CorruptError, match="cut short"):
        ambar.open(tmp_path / "cut.ambar")
    with pytest.raises(FileNotFoundError):
        ambar.open(tmp_path / "absent.vtu")
