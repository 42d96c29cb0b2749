"""The meshes of the study: zvtk's grid of tetrahedra, PyVista's examples, fields, a Delaunay mesh.

The grid with random values is that of zvtk's own benchmark (benchmark-single-ds.py of
0.1.1), so that its published figures and these speak of the same work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import ambar

Values = np.ndarray[Any, np.dtype[Any]]
GRIDS = {"random": "grid, random values", "smooth": "grid, smooth values"}
FIELD_SIDE = 128
"""Points a side of the images."""
STEP_POINTS = 100_000
"""Points of the Delaunay mesh that has time steps, at most: a hundred files of it are written."""
CLUSTERS = 200
SLOPE = 3.0
"""Of the smooth field's amplitudes over wave numbers."""
EXAMPLE = "example "


@dataclass(frozen=True)
class Sizes:
    """How large the meshes are whose size can be chosen, and where those lie that are kept."""

    n: int
    """Points a side of the grid of tetrahedra."""
    points: int
    """Of the Delaunay mesh."""
    folder: str
    """Where `prepare` keeps what takes long to make."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `Sizes(**...)` takes."""
        return asdict(self)


def grid(values: str, n: int) -> Any:
    """Return n^3 points of a lattice, each cube of them cut into five tetrahedra.

    Float64 values on points ("pdata") and cells ("cdata") are drawn from a uniform distribution,
    or smooth functions of the place.
    """
    import pyvista as pv

    mesh: Any = pv.ImageData(dimensions=(n, n, n)).to_tetrahedra()
    mesh.clear_data()  # of the numbers of the cubes, which newer PyVistas add
    if values == "random":
        generator = np.random.default_rng(42)
        mesh.point_data["pdata"] = generator.random(mesh.n_points)
        mesh.cell_data["cdata"] = generator.random(mesh.n_cells)
    else:
        mesh.point_data["pdata"] = smooth(mesh.points / n)
        corners = mesh.cell_connectivity.reshape(-1, 4)
        mesh.cell_data["cdata"] = smooth(mesh.points[corners].mean(axis=1) / n)
    return mesh


def smooth(places: Values) -> Values:
    """Return float64 values of a few waves and a bump at places (n, 3) in the unit cube."""
    x, y, z = places.astype(np.float64).T
    waves: Values = np.sin(9 * x + 2 * y) * np.cos(7 * y) + 0.3 * np.sin(23 * z + 5 * x)
    bump = 2 * np.exp(-30 * ((x - 0.4) ** 2 + (y - 0.5) ** 2 + (z - 0.6) ** 2))
    waves += bump
    return waves


def wavelet() -> Any:
    """Return VTK's wavelet, float32 on an image."""
    import pyvista as pv

    half = FIELD_SIDE // 2
    return pv.Wavelet(extent=(-half, half - 1) * 3)


def field() -> Any:
    """Return a smooth random float32 field on an image: waves of all lengths down to 16 cells."""
    import pyvista as pv

    side = FIELD_SIDE
    generator = np.random.default_rng(1)
    whole, half = np.fft.fftfreq(side, 1 / side), np.fft.rfftfreq(side, 1 / side)
    squares = whole[:, None, None] ** 2 + whole[None, :, None] ** 2 + half[None, None, :] ** 2
    squares[0, 0, 0] = np.inf
    amplitudes = squares ** (-SLOPE / 2) * np.exp(-squares / (side / 8) ** 2)
    phases = np.exp(2j * np.pi * generator.random(squares.shape))
    values = np.fft.irfftn(amplitudes * phases, s=(side,) * 3, axes=(0, 1, 2))
    mesh: Any = pv.ImageData(dimensions=(side,) * 3)
    mesh.point_data["field"] = (values / values.std()).astype(np.float32).ravel()
    return mesh


def scan() -> Any:
    """Return a closed surface of triangles as of a scanner: float32 points with noise, and normals.

    Its triangles come in the order in which VTK's contour filter finds them.
    """
    import pyvista as pv

    side = 2 * FIELD_SIDE
    axis = np.linspace(-1, 1, side)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    bumps = 0.05 * np.sin(9 * x) * np.cos(11 * y + 3 * z)
    image: Any = pv.ImageData(dimensions=(side,) * 3, spacing=(2 / side,) * 3)
    image.point_data["distance"] = (np.hypot(np.hypot(x, y), z) - 0.8 + bumps).ravel(order="F")
    mesh: Any = image.contour([0.0], scalars="distance")
    mesh.clear_data()
    noise = np.random.default_rng(4).normal(0, 1e-4, mesh.points.shape)
    mesh.points = (mesh.points + noise).astype(np.float32)
    return mesh.compute_normals(cell_normals=False, split_vertices=False)


def voxels() -> Any:
    """Return the cubes of an image in which a smooth field is positive, with it and a material."""
    import pyvista as pv

    image: Any = pv.ImageData(dimensions=(FIELD_SIDE,) * 3)
    values = np.asarray(field().point_data["field"])
    image.point_data["field"] = values
    image.cell_data["material"] = (4 * np.abs(values[: image.n_cells])).astype(np.uint8)
    return image.threshold(0.0, scalars="field")


def hexahedra() -> Any:
    """Return hexahedra with a velocity; points are those of a lattice, displaced at random."""
    import pyvista as pv

    side = FIELD_SIDE // 2
    mesh: Any = pv.ImageData(dimensions=(side,) * 3).cast_to_unstructured_grid()
    jitter = np.random.default_rng(5).uniform(-0.3, 0.3, mesh.points.shape)
    mesh.points = mesh.points.astype(np.float64) + jitter
    waves = smooth(mesh.points / side)
    velocity = np.stack([np.cos(3 * mesh.points[:, axis] / side) * waves for axis in range(3)], 1)
    mesh.point_data["velocity"] = velocity
    return mesh


def clusters(points: int) -> Values:
    """Return places (points, 3) in clusters, 0.001 to 0.1 wide, along a Morton curve."""
    generator = np.random.default_rng(0)
    centres = generator.random((CLUSTERS, 3))
    widths = 10 ** generator.uniform(-3, -1, CLUSTERS)
    of = generator.integers(0, CLUSTERS, points)
    places = centres[of] + widths[of, None] * generator.standard_normal((points, 3))
    return places[np.argsort(_morton(places), kind="stable")]


def _morton(places: Values) -> Values:
    """Return the numbers of places along the Morton curve through their bounding box."""
    span = np.maximum(np.ptp(places, axis=0), np.finfo(np.float64).tiny)
    lattice = ((places - places.min(axis=0)) / span * (2**21 - 1)).astype(np.uint64)
    spread = (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    )
    found = np.zeros(len(places), np.uint64)
    for axis in range(3):
        bits = lattice[:, axis]
        for shift, mask in spread:
            bits = (bits | (bits << np.uint64(shift))) & np.uint64(mask)
        found |= bits << np.uint64(axis)
    return found


def prepare(sizes: Sizes) -> None:
    """Make the Delaunay mesh and keep its arrays, as every process would need minutes for it."""
    import pyvista as pv

    made: Any = pv.PolyData(clusters(sizes.points)).delaunay_3d(tol=1e-9)
    np.save(_kept(sizes, "points"), made.points)
    np.save(_kept(sizes, "corners"), made.cell_connectivity.reshape(-1, 4))


def forget(sizes: Sizes) -> None:
    """Delete what `prepare` keeps."""
    for name in ("points", "corners"):
        _kept(sizes, name).unlink(missing_ok=True)


def _kept(sizes: Sizes, name: str) -> Path:
    return Path(sizes.folder) / f"delaunay-{sizes.points}-{name}.npy"


def delaunay(sizes: Sizes, *, shuffled: bool = False) -> Any:
    """Return tetrahedra among clustered points, with float32 values on points and int32 on cells.

    Points come along a Morton curve and cells as VTK finds them; shuffled: both in any order.
    """
    import pyvista as pv

    points, corners = np.load(_kept(sizes, "points")), np.load(_kept(sizes, "corners"))
    if shuffled:
        generator = np.random.default_rng(3)
        order = generator.permutation(len(points))
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        points, corners = points[order], place[generator.permutation(corners)]
    mesh: Any = pv.UnstructuredGrid({pv.CellType.TETRA: corners}, points)
    waves = smooth(points)
    mesh.point_data["pressure"] = waves.astype(np.float32)
    velocity = np.stack([np.cos(3 * points[:, axis]) * waves for axis in range(3)], axis=1)
    mesh.point_data["velocity"] = velocity.astype(np.float32)
    centres = points[corners].mean(axis=1)
    mesh.cell_data["region"] = (4 * centres).astype(np.int32).sum(axis=1, dtype=np.int32)
    return mesh


def of_steps(sizes: Sizes) -> Sizes:
    """Return the sizes with the points of the mesh that has time steps."""
    return replace(sizes, points=min(sizes.points, STEP_POINTS))


def step(mesh: Any, number: int) -> None:
    """Make a Delaunay mesh that of a time step: the waves of its pressure go on, all else stays."""
    shift = np.array([0.01 * number, 0, 0])
    mesh.point_data["pressure"] = smooth(mesh.points - shift).astype(np.float32)


def examples() -> list[str]:
    """Return the functions of `pyvista.examples` that load what comes with PyVista."""
    found = import_module("pyvista.examples.examples")
    return [
        name
        for name in dir(found)
        if name.startswith("load_") and not name.endswith("_texture")  # no data object
    ]


MADE: dict[str, Callable[[Sizes], Any]] = {
    GRIDS["random"]: lambda sizes: grid("random", sizes.n),
    GRIDS["smooth"]: lambda sizes: grid("smooth", sizes.n),
    "wavelet": lambda _: wavelet(),
    "smooth field": lambda _: field(),
    "surface scan": lambda _: scan(),
    "voxels": lambda _: voxels(),
    "jittered hexahedra": lambda _: hexahedra(),
    "Delaunay": delaunay,
    "Delaunay shuffled": lambda sizes: delaunay(sizes, shuffled=True),
}
DELAUNAY = ("Delaunay", "Delaunay shuffled")
"""Those that need `prepare`."""
STEPS = "Delaunay, time steps"
"""The mesh that `step` changes; it needs `prepare` with `of_steps` of the sizes."""


def make(name: str, sizes: Sizes) -> Any:
    """Return a mesh by its name: a PyVista object.

    Raises
    ------
    KeyError
        If the mesh does not exist.
    """
    if name in MADE:
        return MADE[name](sizes)
    if name == STEPS:
        return delaunay(of_steps(sizes))
    if name.startswith(EXAMPLE):
        return getattr(import_module("pyvista.examples.examples"), "load_" + name[len(EXAMPLE) :])()
    raise ambar.NotFoundError(f"no mesh {name!r}; available: {', '.join(MADE)}, {EXAMPLE}NAME")


def real() -> list[str]:
    """Return the names of the meshes other than grids of tetrahedra."""
    bundled = [EXAMPLE + name.removeprefix("load_") for name in examples()]
    return [name for name in MADE if name not in GRIDS.values()] + bundled
