"""What cannot be a mesh is refused: when it is written, and when it is read."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.mesh import get_mesh, put_mesh

pv = pytest.importorskip("pyvista")

from vtkmodules import vtkCommonCore, vtkCommonDataModel  # noqa: E402

from mesh_descriptions import plain, together  # noqa: E402
from mesh_samples import DATASETS, OTHERS  # noqa: E402


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


def _variants() -> Any:
    mesh = vtkCommonDataModel.vtkTable()
    array = vtkCommonCore.vtkVariantArray()
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
        (_variants, ambar.UnsupportedError, "/row_data array 'any': values of vtkVariantArray"),
        (
            vtkCommonDataModel.vtkMolecule,
            ambar.UnsupportedError,
            "a vtkMolecule cannot be",
        ),
        (lambda: None, ValueError, "not None"),
        (lambda: np.zeros(3), ValueError, "a mesh is a VTK object, not a ndarray"),
    ],
)
def test_what_cannot_be_written(
    make: Callable[[], Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        ambar.write_mesh(make(), tmp_path / "x.ambar")
    assert list(tmp_path.iterdir()) == []


def _set(*steps: Any) -> Callable[[dict[str, Any]], None]:
    """Return what sets the value of a description at the steps before the last."""

    def change(described: Any) -> None:
        *way, last, value = steps
        for step in way:
            described = described[step]
        described[last] = value

    return change


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("image", _set("extent", [0, 1]), r"extent is \[0, 1\], not 6 whole numbers"),
        ("image", _set("spacing", [1, 2, "x"]), "spacing is .* not 3 numbers"),
        ("structured", _set("extent", 1, 5), "points are 60, the extent has 72"),
        ("rectilinear", _set("extent", [0, 3, 1, 4, -1, 0]), "x coordinates are not 4"),
        ("tetrahedra", _set("cells", "corners", "at", "nowhere"), "array 'nowhere' that there is"),
        ("tetrahedra", _set("cells", "storage", 32), "corners have dtype int64, not int32"),
        ("tetrahedra", _set("types", 300), "types are 300"),
        ("tetrahedra", _set("points", "lattice", []), "a lattice has three axes"),
        ("poly", _set("points", "at", [9, 0, 4, 3]), "there is no pack 9"),
        ("poly", _set("points", "at", [0, 10, 12, 3]), "ends at 46, behind its pack 0"),
        ("poly", _set("points", "at", [0, 0, 4, 3]), "a cell refers to 6 of 4"),
        ("poly", _set("packed", 0, "codecs", "gzip"), "a pack of small arrays .* is damaged"),
        ("poly", _set("packed", 0, "shape", [2**40]), "a pack of small arrays .* is damaged"),
        ("quadratic", _set("cells", "sizes", "of_types", "24", 9), "of 9 corners|sizes"),
        ("mixed", _set("cells", "sizes", "at", [0, 0, 3]), "sizes"),
        ("polyhedra", _set("cell_faces", None), "faces are of 0 cells, not 3"),
        ("hyper_trees", _set("branch_factor", 7), "branch factor is 7, not 2 or 3"),
        ("hyper_trees", _set("extent", [0, 2, 0, 2, 0, 2]), "coordinates are not 3"),
    ],
)
def test_descriptions_that_do_not_fit(
    name: str, change: Callable[[Any], None], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.ambar"
    ambar.write_mesh({**DATASETS, **OTHERS}[name](), path, durability="none")
    about, streams = plain(ambar.open(path).store)
    change(about)
    with ambar.append(path, durability="none") as writer:
        writer.set_attributes("", {"ambar": together(about, streams)})
    with pytest.raises(ambar.CorruptError, match=rf"x.ambar: mesh /: .*({message})"):
        ambar.read_mesh(path)


def test_newer_versions_and_other_types_are_unsupported(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    for change, message in (
        (_set("version", 2), "/m is a mesh of version 2; this version of ambar reads 1"),
        (_set("type", "Graph"), "is of type 'Graph', which this version of ambar does not know"),
    ):
        with ambar.create(path, durability="none", overwrite=True) as writer:
            put_mesh(writer, "m", DATASETS["poly"]())
        about, streams = plain(ambar.open(path), "m")
        change(about)
        with ambar.append(path, durability="none") as writer:
            writer.set_attributes("m", {"ambar": together(about, streams)})
        with pytest.raises(ambar.UnsupportedError, match=message):
            get_mesh(ambar.open(path), "m")


def _leaves(described: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = described.items() if isinstance(described, dict) else enumerate(described)
    for key, value in items:
        yield (*way, key)
        if isinstance(value, (dict, list)):
            yield from _leaves(value, (*way, key))


HOSTILE = [None, -1, 3, 2**40, 2**70, 1e308, "x", "/", [], {}, [1], {"at": "x"}, True]


@pytest.mark.parametrize("name", [*DATASETS, *OTHERS])
def test_no_description_crashes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.ambar"
    ambar.write_mesh({**DATASETS, **OTHERS}[name](), path, durability="none")
    store = ambar.open(path).store
    about, streams = plain(store)
    rng = np.random.default_rng(0)
    ways = list(_leaves(about))
    chosen = [ways[i] for i in rng.permutation(len(ways))[:30]]
    refused = 0
    for way in chosen:
        for value in HOSTILE:
            changed = copy.deepcopy(about)
            _set(*way, value)(changed)
            changed = together(changed, streams)
            monkeypatch.setattr(store, "ambar_attributes", lambda _, a=changed: a)
            store.kept.clear()
            try:
                mesh = get_mesh(store, "", wrap=False)
            except ambar.AmbarError:
                refused += 1
                continue
            if isinstance(mesh, vtkCommonDataModel.vtkDataSet):
                mesh.GetBounds()
    assert refused > len(chosen)
