"""Cylinders, oriented boxes and combinations select the cells and particles that NumPy selects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers.paths import RAMSES
from tests.helpers.sample_outputs import output

Inside = Callable[[np.ndarray, float], np.ndarray]
AXIS = np.array([1.0, -2.0, 0.5])
TOWARDS = np.array([0.0, 1.0, 1.0])


def _from_center(points: np.ndarray, size: float) -> np.ndarray:
    """Vectors from the middle of the box, in fractions of it."""
    return points / size - 0.5


def _cylinder(low: float, high: float, height: float, axis: np.ndarray) -> Inside:
    unit = axis / np.linalg.norm(axis)

    def inside(points: np.ndarray, size: float) -> np.ndarray:
        d = _from_center(points, size)
        along = d @ unit
        across = np.linalg.norm(d - along[:, None] * unit, axis=1)
        return (np.abs(along) <= height / 2) & (across > low) & (across <= high)

    return inside


def _oriented(sides: tuple[float, ...]) -> Inside:
    first = AXIS / np.linalg.norm(AXIS)
    second = TOWARDS - (TOWARDS @ first) * first
    second /= np.linalg.norm(second)
    axes = np.array([first, second, np.cross(first, second)])

    def inside(points: np.ndarray, size: float) -> np.ndarray:
        along = _from_center(points, size) @ axes.T
        half = np.array(sides) / 2
        return ((-half <= along) & (along < half)).all(axis=1)

    return inside


def _ball(radius: float) -> Inside:
    def inside(points: np.ndarray, size: float) -> np.ndarray:
        return np.linalg.norm(_from_center(points, size), axis=1) <= radius

    return inside


Z = np.array([0.0, 0.0, 1.0])
REGIONS: dict[str, tuple[ambar.Region, Inside]] = {
    "cylinder": (ambar.Cylinder("bc", 0.3, 0.2), _cylinder(-1, 0.3, 0.2, Z)),
    "tilted": (ambar.Cylinder("bc", 0.2, 0.5, axis=AXIS), _cylinder(-1, 0.2, 0.5, AXIS)),
    "long": (ambar.Cylinder("bc", 0.1, axis="y"), _cylinder(-1, 0.1, 9, np.array([0, 1, 0]))),
    "shell": (
        ambar.CylindricalShell("bc", 0.1, 0.3, 0.4, axis=AXIS),
        _cylinder(0.1, 0.3, 0.4, AXIS),
    ),
    "bar": (
        ambar.OrientedBox("bc", (0.6, 0.2, 0.1), axis=AXIS, towards=TOWARDS),
        _oriented((0.6, 0.2, 0.1)),
    ),
    "both": (
        ambar.Sphere("bc", 0.3) & ambar.Cylinder("bc", 0.2, 0.3),
        lambda p, s: _ball(0.3)(p, s) & _cylinder(-1, 0.2, 0.3, Z)(p, s),
    ),
    "either": (
        ambar.Sphere("bc", 0.1) | ambar.Cylinder("bc", 0.05, axis=AXIS, height=0.4),
        lambda p, s: _ball(0.1)(p, s) | _cylinder(-1, 0.05, 0.4, AXIS)(p, s),
    ),
    "difference": (
        ambar.Cylinder("bc", 0.4, 0.3) - ambar.Sphere("bc", 0.2),
        lambda p, s: _cylinder(-1, 0.4, 0.3, Z)(p, s) & ~_ball(0.2)(p, s),
    ),
    "complement": (~ambar.Sphere("bc", 0.4), lambda p, s: ~_ball(0.4)(p, s)),
}


@pytest.fixture(scope="module", params=["store", "files"])
def snapshot(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ambar.Snapshot:
    if request.param == "files":
        return ambar.open_snapshot(output("gravpart"))
    path = tmp_path_factory.mktemp("regions") / "x.ambar"
    ambar.convert(output("gravpart"), path)
    return ambar.open_snapshot(path)


@pytest.mark.parametrize("name", REGIONS)
def test_cells_and_particles_are_those_inside(snapshot: ambar.Snapshot, name: str) -> None:
    region, inside = REGIONS[name]
    for rows, columns in (
        (snapshot.amr, ["x", "y", "z"]),
        (snapshot.particles, ["position_x", "position_y", "position_z"]),
    ):
        whole = rows.read(columns)
        points = np.stack([whole[column] for column in columns], axis=1)
        expected = points[inside(points, snapshot.info.boxlen)]
        part = rows.read(columns, region=region)
        found = np.stack([part[column] for column in columns], axis=1)
        assert 0 < len(expected) < len(points)
        order = [np.lexsort(p.T) for p in (found, expected)]
        np.testing.assert_array_equal(found[order[0]], expected[order[1]])


def test_regions_are_pruned_by_chunk(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    # The second of two chunks begins in the middle of the box.
    small = ambar.Cylinder((0.1, 0.1, 0.1), 0.02, 0.02, axis=AXIS, unit="code")
    assert amr.chunks_touched(region=small) == 1 < amr.chunk_count
    nowhere = ambar.Sphere((0.2, 0.2, 0.2), 0.05) & ambar.Sphere((0.8, 0.8, 0.8), 0.05)
    assert len(amr.read("x", region=nowhere)) == 0


def test_regions_cross_periodic_faces(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    inside = amr.read("level", region=ambar.Cylinder((0.5, 0.5, 0.5), 0.1, 0.2))
    across = amr.read(["x", "y"], region=ambar.Cylinder((0.0, 0.0, 0.5), 0.1, 0.2))
    assert len(inside)
    assert len(across)
    corners = {
        (bool(x > 0.5), bool(y > 0.5)) for x, y in zip(across["x"], across["y"], strict=True)
    }
    assert len(corners) == 4


def test_regions_far_from_a_periodic_box_are_errors(gravpart: ambar.Snapshot) -> None:
    """Their unit is probably another one; the distance to the nearest image would be short."""
    near = ambar.Sphere((1.2, 0.5, 0.5), 0.3)
    same = ambar.Sphere((0.2, 0.5, 0.5), 0.3)
    assert len(gravpart.amr.read("x", region=near)) == len(gravpart.amr.read("x", region=same))
    for region in (
        ambar.Sphere((2.1, 0.5, 0.5), 3),
        ambar.Sphere((0.5, -1.1, 0.5), 0.1) | ambar.Sphere("bc", 0.1),
        ambar.Cylinder((500, 500, 500), 1000),
        ambar.Box((40, 0, 0), (41, 1, 1)),
    ):
        with pytest.raises(ValueError, match="more than a side of the periodic box away.*unit"):
            gravpart.amr.read("x", region=region)
    around = ambar.Box((-40, 0, 0), (60, 1, 1), unit="code")
    assert len(gravpart.amr.read("x", region=around)) == len(gravpart.amr)


def test_boxes_of_coordinates_are_not_fractions(
    gravpart: ambar.Snapshot, stores: dict[str, Path], tmp_path: Path
) -> None:
    wrong = ambar.Box((0, 0, 0), (6, 1, 1))
    calls: list[Callable[[], object]] = [
        lambda: gravpart.amr.read("x", region=wrong),
        lambda: gravpart.amr.grid("density", level=4, region=wrong),
        lambda: ambar.convert(stores["gravpart"], tmp_path / "x.ambar", region=wrong),
    ]
    for call in calls:
        with pytest.raises(ValueError, match='region: .* in x, from 0 to 1, .*0:6.*unit="code"'):
            call()
    for region in (
        ambar.Box((None, 0, 0), (6, 1, 1)),
        ambar.Box((-3, -3, -3), (3, 3, 3), center="bc"),
        ambar.Box((-0.2, 0, 0), (0.8, 1, 1)),
        ambar.Box((0, 0, 0), (1e30, 1e30, 1e30), unit="cm"),
    ):
        assert len(gravpart.amr.read("x", region=region)) == len(gravpart.amr)
    # A side of 1 is as long as the box in x, also along shorter sides.
    flat = ambar.AmrexInfo(ndim=2, time=0.0, lower=(0.0, 0.0), upper=(4.0, 1.0), levels=())
    assert ambar.Box((0, 0), (1, 1)).corners(flat) == ((0, 0), (4, 4))
    tall = ambar.AmrexInfo(ndim=2, time=0.0, lower=(0.0, 0.0), upper=(1.0, 4.0), levels=())
    assert ambar.Box((0, 0), (1, 4)).corners(tall) == ((0, 0), (1, 4))
    with pytest.raises(ValueError, match="of the side of the box in x, from 0 to 4, found 0:5"):
        ambar.Box((0, 0), (1, 5)).corners(tall)


def test_the_text_of_a_region_is_an_expression() -> None:
    ball = ambar.Sphere(np.array([0.1, 0.2, 0.3]), float(np.float32(0.25)), unit="kpc")
    box = ambar.Box((None, 0, np.float64(0.5)), (1, 1, None), center=("bc", 0.5, "bc"))
    slab = ambar.OrientedBox("bc", np.ones(3), axis=(1, 1, 0))
    names = {name: getattr(ambar, name) for name in ("Box", "OrientedBox", "Sphere")}
    for region in (ball, box, slab, ball - box, ~(ball & box) | slab):
        text = repr(region)
        assert repr(eval(text, names)) == text  # noqa: S307 - of this test


def test_invalid_regions_are_errors(gravpart: ambar.Snapshot) -> None:
    for region in (
        ambar.Cylinder("bc", -1),
        ambar.Cylinder("bc", 0.1, -1),
        ambar.Cylinder("bc", 0.1, axis="w"),
        ambar.Cylinder("bc", 0.1, axis=(0, 0, 0)),
        ambar.CylindricalShell("bc", 0.2, 0.1),
        ambar.OrientedBox("bc", (1, 1)),
        ambar.OrientedBox("bc", (1, 1, 1), axis="x", towards="x"),
    ):
        with pytest.raises(ValueError, match="expected|invalid"):
            gravpart.amr.read("x", region=region)
    flat = ambar.open_snapshot(RAMSES / "sedov2d_small" / "output_00002")
    with pytest.raises(ValueError, match="three dimensions"):
        flat.amr.read("x", region=ambar.Cylinder("bc", 0.1))
    with pytest.raises(TypeError):
        ambar.Sphere("bc", 0.1) & 3  # type: ignore[operator]
