"""Small stores of every kind, in both containers, to damage and to read."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ambar
from campaigns.worker import ROOT
from tests.helpers import plotfiles

RAMSES = ROOT / "tests" / "data" / "ramses" / "sedov2d_small" / "output_00002"


def arrays(path: Path, directory: bool = False) -> None:
    """Write arrays of every type and codec, in three commits."""
    rng = np.random.default_rng(1)
    with ambar.create(path, directory=directory, fsync=False, profile="small") as writer:
        writer.create_group("g", {"units": "m", "levels": [1, 2, {"a": None}]})
        smooth = np.cumsum(rng.normal(size=(30, 40)), axis=1)
        writer.create_array("g/smooth", smooth, dims=("y", "x"), chunks=(10, 20), layout="grid")
        writer.create_array("g/bounded", smooth, error_bound=1e-3, chunks=(15, 40))
        writer.create_array("g/packed", smooth.astype("f4"), error_bound=1e-2, profile="fast")
        writer.create_array("g/integers", np.cumsum(rng.integers(0, 9, 3000)), chunks=(500,))
        writer.create_array("noise", rng.random(1200), chunks=(100,), profile="fast")
        writer.create_array("corners", _triangles(), layout="simplices")
        writer.create_array("flag", rng.random((3, 5)) < 0.5)
        writer.create_array("scalar", np.float32(1.5))
        writer.create_array("empty", np.zeros((0, 3), "i2"))
    with ambar.create(path, "a", fsync=False) as writer:
        writer.create_array("text", np.array(["alpha", "", "žluť"] * 40, object), chunks=(50,))
        writer.create_array("bytes", np.array([b"a", b"", b"\0\xff"] * 9, object))
        writer.create_array("fixed", np.array(["ab", "c"] * 20))
        writer.create_array("moments", np.arange(50).astype("M8[ms]"), attrs={"a": 1})
        writer.create_array("complex", rng.random(40) + 1j)
    with ambar.create(path, "a", fsync=False) as writer:
        writer.append("noise", rng.random(130))
        writer.remove("flag")


def _triangles() -> np.ndarray:
    y, x = np.mgrid[:9, :9]
    first = (y * 10 + x).ravel()
    return np.stack([first, first + 1, first + 10], axis=1)


def collection(path: Path, directory: bool = False) -> None:
    """Write a collection: regular, ragged and shared variables, equal and different attributes."""
    rng = np.random.default_rng(2)
    options: Any = {"directory": directory, "fsync": False, "ragged": ["time"]}
    with ambar.open_collection(path, "w-", **options) as made:
        for number in range(12):
            length = 5 + number % 3 if number < 8 else 6
            dims = ("time",) if number < 8 else ("x", "y")
            shape = (length,) if number < 8 else (2, 3)
            made.add(
                f"d{number}",
                {
                    "v": (dims, rng.random(shape), {"units": "K", "number": number}),
                    "when": (dims[:1], np.arange(shape[0]).astype("M8[s]")),
                    "name": (("id",), np.array(["a", "b"], object)),
                },
            )
    with ambar.open_collection(path, "a", fsync=False) as made:
        made.remove("d3")
        made.rename("d4", "other")


def snapshot(path: Path, directory: bool = False) -> None:
    """Write a snapshot of RAMSES."""
    _converted(RAMSES, path, directory)


def plotfile(path: Path, directory: bool = False) -> None:
    """Write a snapshot of a plotfile of AMReX."""
    source = path.with_name(f"{path.name}-source")
    plotfiles.write(source)
    _converted(source, path, directory)
    shutil.rmtree(source)


def series(path: Path, directory: bool = False) -> None:
    """Write a series of snapshots."""
    source = path.with_name(f"{path.name}-source")
    for number in (1, 2):
        folder = source / f"output_{number:05d}"
        shutil.copytree(ROOT / f"tests/data/ramses/sedov3d_small/{folder.name}", folder)
    _converted(source, path, directory)
    shutil.rmtree(source)


def _converted(source: Path, path: Path, directory: bool) -> None:
    ambar.convert(source, path, fsync=False)
    if directory:
        _as_directory(path)


def mesh(path: Path, directory: bool = False) -> None:
    """Write a mesh of several blocks."""
    import pyvista as pv

    blocks = pv.MultiBlock()
    for number in range(2):
        block = pv.ImageData(dimensions=(6, 5, 4 + number)).to_tetrahedra()
        block.clear_data()
        block["pressure"] = np.sqrt(np.arange(block.n_points, dtype="f8"))
        block.cell_data["region"] = np.arange(block.n_cells)
        block.field_data["title"] = ["of the tests"]
        blocks.append(block, f"block {number}")
    blocks.append(pv.Sphere(theta_resolution=6, phi_resolution=6), "sphere")
    ambar.write_mesh(blocks, path, fsync=False, user_dict={"a": [1, 2]})
    if directory:
        _as_directory(path)


def mesh_series(path: Path, directory: bool = False) -> None:
    """Write meshes of three time steps."""
    with ambar.open_mesh_series(path, "w-", fsync=False) as steps:
        for number in range(3):
            steps.add(step(number), 0.5 * number)
    if directory:
        _as_directory(path)


def step(number: int) -> Any:
    """Return the mesh of a time step."""
    import pyvista as pv

    made = pv.ImageData(dimensions=(8, 7, 6)).to_tetrahedra()
    made.clear_data()
    made["pressure"] = np.random.default_rng(number).random(made.n_points)
    made["drift"] = np.arange(made.n_points) + 0.25 * number
    return made


KINDS: dict[str, Callable[[Path, bool], None]] = {
    "arrays": arrays,
    "collection": collection,
    "snapshot": snapshot,
    "plotfile": plotfile,
    "series": series,
    "mesh": mesh,
    "mesh-series": mesh_series,
}


def write_all(folder: Path) -> dict[str, Path]:
    """Write a store of every kind in both containers; return the paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    made = {}
    for kind, write in KINDS.items():
        for directory in (False, True):
            name = f"{kind}-{'directory' if directory else 'zip'}"
            made[name] = folder / f"{name}.ambar"
            write(made[name], directory)
    return made


def _as_directory(path: Path) -> None:
    """Convert a store in one file to a directory store of the same name."""
    from campaigns import seal

    image = seal.read(path)
    path.unlink()
    image.directory = True
    seal.write(path, image)


def digest(values: Any) -> str:
    """Return a digest of an array: its type, shape and values, bit for bit."""
    found = np.asarray(values)
    content = repr(found.tolist()).encode() if found.dtype.kind == "O" else found.tobytes()
    return hashlib.sha256(f"{found.dtype.str}{found.shape}".encode() + content).hexdigest()


def content(path: Path) -> dict[str, str]:
    """Return a digest of every array and of all attributes of a store's last commit."""
    store = ambar.Store._open(path)
    found = {array: digest(store[array].read()) for array in store}
    for group in (*store.groups, *store):
        found[f"{group} attributes"] = repr(sorted(store[group].attrs.items()))
    return found
