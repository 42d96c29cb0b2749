"""Maps, cubes and deposited particles have the values of NumPy and analytical ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.sample_outputs import output

DIRECTION = np.array([0.3, -0.8, 0.5]) / np.linalg.norm([0.3, -0.8, 0.5])
BALL = ambar.Sphere((0.47, 0.52, 0.55), 0.31)
CUT = ambar.Box((0.13, 0.2, 0.31), (0.77, 0.81, 0.66))
CONDITION = "density > 0.5 and rho * vx**2 < 3"
SIDE = 16
"""Pixels that contain whole cells."""


def histogram(cells: ambar.Table, weights: np.ndarray) -> np.ndarray:
    """Return sums over the cells in each pixel of a map along z."""
    edges = np.linspace(0, 1, SIDE + 1)
    return np.histogram2d(cells["y"], cells["x"], (edges, edges), weights=weights)[0]


@pytest.mark.parametrize("region", [None, BALL, CUT, BALL - CUT], ids=str)
@pytest.mark.parametrize("where", [None, CONDITION])
def test_selected_cells_equal_numpy(
    region: ambar.Region | None, where: str | None, gravpart: ambar.Snapshot
) -> None:
    """No cell is rounded to pixels or cut: its centre decides."""
    amr = gravpart.amr
    selection: dict[str, Any] = {"region": region, "where": where}
    cells = amr.read(["x", "y", "density", "vz", "volume", "mass"], **selection)
    mass, volume = histogram(cells, cells["mass"]), histogram(cells, cells["volume"])
    covered = volume > 0
    image = amr.map("density", resolution=SIDE, **selection)
    np.testing.assert_array_equal(np.isfinite(image), covered)
    np.testing.assert_allclose(image.fillna(0) / SIDE**2, mass, rtol=1e-10, atol=1e-14)
    for weight, weights in (("mass", cells["mass"]), ("volume", cells["volume"])):
        total = histogram(cells, weights)[covered]
        mean = histogram(cells, weights * cells["vz"])[covered] / total
        square = histogram(cells, weights * cells["vz"] ** 2)[covered] / total
        options: dict[str, Any] = {"weight": weight, "resolution": SIDE, **selection}
        found = amr.map("vz", **options).to_numpy()[covered]
        np.testing.assert_allclose(found, mean, rtol=1e-9, atol=1e-12)
        found = amr.map("vz", statistic="dispersion", **options).to_numpy()[covered]
        np.testing.assert_allclose(found**2, square - mean**2, rtol=1e-8, atol=1e-10)
    largest = np.full((SIDE, SIDE), np.nan)
    pixels = [(cells[axis] * SIDE).astype(int) for axis in "yx"]
    np.fmax.at(largest, tuple(pixels), cells["vz"])
    found = amr.map("vz", statistic="maximum", resolution=SIDE, **selection)
    np.testing.assert_array_equal(found, largest)


def test_fields_and_pixels_of_one_pass(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    options: dict[str, Any] = {"axis": DIRECTION, "width": (0.6, 0.4), "weight": "mass"}
    both = amr.map(["vx", "temperature"], resolution=30, **options)
    for field in both:
        alone = amr.map(field, resolution=30, **options)
        np.testing.assert_allclose(both[field], alone, rtol=1e-12)
        by_size = amr.map(field, pixel_size=0.02, **options)
        assert by_size.shape == (20, 30)
        np.testing.assert_allclose(by_size, alone, rtol=1e-9)


def test_cubes_equal_numpy(gravpart: ambar.Snapshot) -> None:
    cells = gravpart.amr.read(["x", "y", "vz", "mass"], where=CONDITION)
    cube = gravpart.amr.velocity_cube(
        "density", axis="z", bins=12, range=(-1, 1), resolution=SIDE, where=CONDITION
    )
    edges = np.linspace(0, 1, SIDE + 1)
    points = np.stack([cells["vz"], cells["y"], cells["x"]], 1)
    bins = (np.linspace(-1, 1, 13), edges, edges)
    expected, _ = np.histogramdd(points, bins, weights=cells["mass"])
    np.testing.assert_allclose(cube / SIDE**2, expected, rtol=1e-10, atol=1e-14)
    assert expected.any()


def overlaps(
    cells: ambar.Table, axis: str, middle: float, depth: float, period: float = 1.0
) -> np.ndarray:
    """Return the fraction of each cell in a slab, and in its images in a periodic box."""
    low, high = (cells[axis] + sign * cells["dx"] / 2 for sign in (-1, 1))
    ends = [(middle - depth / 2 + n * period, middle + depth / 2 + n * period) for n in (-1, 0, 1)]
    parts = [np.minimum(high, end) - np.maximum(low, start) for start, end in ends]
    return np.asarray(sum(np.maximum(part, 0) for part in parts) / cells["dx"])


@pytest.mark.parametrize("axis", ["x", "y", "z"])
@pytest.mark.parametrize(("middle", "depth"), [(0.5, 0.1), (0.21, 0.01), (0.03, 0.3), (0.47, 0.96)])
def test_cells_count_by_their_overlap_with_the_depth(
    axis: Any, middle: float, depth: float, gravpart: ambar.Snapshot
) -> None:
    amr = gravpart.amr
    center = [middle if name == axis else 0.5 for name in "xyz"]
    view: dict[str, Any] = {"axis": axis, "center": center, "depth": depth, "resolution": SIDE}
    cells = amr.read(["x", "y", "z", "dx", "density", "vz", "volume"], where=CONDITION)
    volume = cells["volume"] * overlaps(cells, axis, middle, depth)
    image = amr.map("density", where=CONDITION, **view)
    dims = [str(dim) for dim in image.dims]
    edges = np.linspace(0, 1, SIDE + 1)

    def summed(weights: np.ndarray) -> np.ndarray:
        return np.histogram2d(cells[dims[0]], cells[dims[1]], (edges, edges), weights=weights)[0]

    covered = summed(volume) > 0
    np.testing.assert_array_equal(np.isfinite(image), covered)
    mass = summed(volume * cells["density"])
    np.testing.assert_allclose(image.fillna(0) / SIDE**2, mass, rtol=1e-9, atol=1e-14)
    mean = summed(volume * cells["vz"])[covered] / summed(volume)[covered]
    square = summed(volume * cells["vz"] ** 2)[covered] / summed(volume)[covered]
    view |= {"weight": "volume", "where": CONDITION}
    np.testing.assert_allclose(amr.map("vz", **view).to_numpy()[covered], mean, rtol=1e-8)
    spread = amr.map("vz", statistic="dispersion", **view).to_numpy()[covered]
    np.testing.assert_allclose(spread**2, square - mean**2, rtol=1e-7, atol=1e-10)
    largest = np.full((SIDE, SIDE), np.nan)
    inside = volume > 0
    pixels = tuple((cells[dim][inside] * SIDE).astype(int) for dim in dims)
    np.fmax.at(largest, pixels, cells["vz"][inside])
    found = amr.map("vz", statistic="maximum", **{**view, "weight": None})
    np.testing.assert_array_equal(found, largest)


@pytest.mark.parametrize("depth", [0.1, 0.04, 1e-3])
def test_thin_slabs_are_boxes(depth: float, gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    slab = ambar.Box((None, None, 0.2 - depth / 2), (None, None, 0.2 + depth / 2))
    expected = amr.map("density", region=slab, cut="fraction", resolution=64)
    options: dict[str, Any] = {"center": (0.5, 0.5, 0.2), "depth": depth, "resolution": 64}
    image = amr.map("density", **options)
    np.testing.assert_allclose(image, expected, rtol=1e-10)
    half = ambar.Box((None, 0.21, None), (None, None, None))
    found = amr.map("density", region=half, cut="fraction", **options)
    mass = float(found.sum() / amr.map("density", region=half, cut="whole", **options).sum())
    assert 0.9 < mass < 1  # half of the cells of the row at y = 0.21
    cut = amr.map("density", region=slab & half, cut="fraction", resolution=64)
    if depth > 0.05:  # thinner ones are sampled where both faces cut a cell
        np.testing.assert_allclose(found.sum(), cut.sum(), rtol=1e-3)
    cube = amr.velocity_cube("density", bins=5, **options)
    np.testing.assert_allclose(cube.sum("velocity"), image, rtol=1e-9)


@pytest.mark.parametrize("axis", [DIRECTION, (0, 1, 1), (1, 1, 1e-3)], ids=str)
@pytest.mark.parametrize("depth", [0.4, 0.01, 1e-4])
def test_tilted_slabs_have_their_volume(axis: Any, depth: float, gravpart: ambar.Snapshot) -> None:
    """The integral of 1 over a map is the volume of the slab in the box."""
    image = gravpart.amr.map("1 + 0 * density", axis=axis, width=2.0, depth=depth, resolution=64)
    sight = np.asarray(axis) / np.linalg.norm(axis)
    points = (np.arange(1500) + 0.5) / 1500 - 0.5
    x, z = np.meshgrid(points, points)
    across = sight[0] * x + sight[2] * z
    low, high = np.sort([(-depth / 2 - across) / sight[1], (depth / 2 - across) / sight[1]], axis=0)
    length = np.maximum(np.minimum(high, 0.5) - np.maximum(low, -0.5), 0)
    volume = float(image.sum()) * image.attrs["pixel_size"] ** 2
    assert volume == pytest.approx(float(length.mean()), rel=2e-3)
    assert np.isfinite(image[24:40, 24:40]).all()  # the middle of the box is in the slab


def rays(image: Any, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows and columns of pixels, and where `count`**2 rays in each of them begin."""
    up, sight = (np.array(image.attrs[name]) for name in ("up", "axis"))
    right = np.cross(up, sight)
    numbers = np.random.default_rng(4).integers(0, image.sizes["right"], (40, 2))
    offsets = ((np.arange(count) + 0.5) / count - 0.5) * image.attrs["pixel_size"]
    a, b = np.meshgrid(offsets, offsets, indexing="ij")
    x = image["right"].to_numpy()[numbers[:, 0], None] + a.ravel()
    y = image["up"].to_numpy()[numbers[:, 1], None] + b.ravel()
    return numbers[:, ::-1], x[..., None] * right + y[..., None] * up, sight


def test_lengths_through_the_box_are_analytical(gravpart: ambar.Snapshot) -> None:
    """The integral of 1 is the length of the line of sight in the box."""
    image = gravpart.amr.map("1 + 0 * density", axis=DIRECTION, width=2.0, resolution=64)
    pixels, starts, sight = rays(image, 16)
    enters, leaves = np.sort([(-0.5 - starts) / sight, (0.5 - starts) / sight], axis=0)
    length = np.maximum(leaves.min(-1) - enters.max(-1), 0).mean(-1)
    found = image.fillna(0).to_numpy()[tuple(pixels.T)]
    np.testing.assert_allclose(found, length, atol=0.02)
    assert float(image.sum()) * image.attrs["pixel_size"] ** 2 == pytest.approx(1)
    assert (length > 0).sum() > 5


def test_tilted_maps_equal_sampled_rays(gravpart: ambar.Snapshot) -> None:
    """Means along many rays through the finest grid."""
    amr = gravpart.amr
    level = amr.levels[1]
    grid = amr.grid("density", level=level).to_numpy()
    image = amr.map("density", axis=DIRECTION, width=0.5, resolution=20)
    pixels, starts, sight = rays(image, 8)
    steps = (np.arange(1500) + 0.5) / 1500 * 1.8 - 0.9
    points = 0.5 + starts[..., None, :] + steps[:, None] * sight
    inside = ((points >= 0) & (points < 1)).all(-1)
    x, y, z = (np.clip(points[..., n] * 2**level, 0, 2**level - 1).astype(int) for n in range(3))
    expected = (np.where(inside, grid[x, y, z], 0).sum(-1) * (steps[1] - steps[0])).mean(-1)
    np.testing.assert_allclose(image.to_numpy()[tuple(pixels.T)], expected, rtol=0.03)


def test_clouds_of_particles_equal_numpy(gravpart: ambar.Snapshot) -> None:
    """Each particle is a square of a pixel: cloud in cell."""
    rows = gravpart.particles.read(["x", "y", "mass"])
    image = gravpart.particles.map("mass", method="cloud", resolution=32)
    expected = np.zeros((34, 34))
    x, y = (rows[axis] * 32 + 0.5 for axis in "xy")
    i, j = np.floor(x).astype(int), np.floor(y).astype(int)
    for a in (0, 1):
        for b in (0, 1):
            share = np.abs(1 - a - (x - i)) * np.abs(1 - b - (y - j))
            np.add.at(expected, (j + b, i + a), rows["mass"] * share)
    # Without what crosses the faces of the box.
    inner = expected[2:-2, 2:-2]
    found = image.fillna(0).to_numpy()[1:-1, 1:-1] * image.attrs["pixel_size"] ** 2
    np.testing.assert_allclose(found, inner, rtol=1e-10, atol=1e-16)


def test_splines_of_particles_end_at_their_radius() -> None:
    """The sum is the mass, and the map is symmetric around the particle."""
    particles = ambar.open_snapshot(output("gravpart")).particles
    one = particles.read(["x", "y", "z", "identity", "mass"], region=ambar.Sphere("bc", 0.2))
    center = [float(one[axis][0]) for axis in "xyz"]
    image = particles.map(
        "mass",
        method="spline",
        radius=0.1,
        center=center,
        width=0.3,
        resolution=31,
        where=f"identity == {int(one['identity'][0])}",
    )
    distance = np.hypot(image["x"] - center[0], image["y"] - center[1])
    size = image.attrs["pixel_size"]
    assert not np.asarray(image.where(distance > 0.1 + size).fillna(0)).any()
    assert np.asarray(image.where(distance < 0.1 - size) > 0).sum() > 200
    assert float(image.sum()) * size**2 == pytest.approx(float(one["mass"][0]))
    values = image.fillna(0).to_numpy()
    for mirrored in (values[::-1], values[:, ::-1], values.T):
        np.testing.assert_allclose(values, mirrored, rtol=1e-9, atol=1e-12 * values.max())


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
def test_oblique_maps_are_those_of_yt(stores: dict[str, Path]) -> None:
    """Rays of yt begin at corners of pixels, and its integrals are scaled with the width."""
    yt = pytest.importorskip("yt")
    yt.set_log_level(40)
    dataset = yt.load(str(output("gravpart") / "info_00002.txt"))
    sight, up, width = [1, 1, 1], [0, 0, 1], dataset.arr([0.5] * 3, "code_length")
    theirs = yt.off_axis_projection(
        dataset, [0.5] * 3, sight, width, 256, ("gas", "density"), north_vector=up
    )
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    ours = amr.map("density", axis=sight, up=up, width=0.5, resolution=256)
    assert np.corrcoef(np.asarray(theirs).T.ravel(), ours.values.ravel())[0, 1] > 0.985
    turned = np.asarray(theirs).ravel()
    assert np.corrcoef(turned, ours.values.ravel())[0, 1] < 0.9
