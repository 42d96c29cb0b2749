"""Divergence and vorticity equal those of analytical fields."""

from __future__ import annotations

import numpy as np
import pytest

import ambar
from ambar.snapshot.derived.neighbours import Neighbours, fields_of_gradients


def tree(seed: int, levels: tuple[int, int], ndim: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Return level and index of leaf cells of a random tree, with jumps of several levels."""
    rng = np.random.default_rng(seed)
    low, high = levels
    side = 1 << low
    index = np.stack(np.meshgrid(*[np.arange(side)] * ndim, indexing="ij")).reshape(ndim, -1)
    leaves = []
    corners = np.stack(np.meshgrid(*[[0, 1]] * ndim, indexing="ij")).reshape(ndim, 1, -1)
    for level in range(low, high + 1):
        refined = rng.random(index.shape[1]) < (0.3 if level < high else 0.0)
        leaves.append((np.full((~refined).sum(), level), index[:, ~refined]))
        index = (2 * index[:, refined, None] + corners).reshape(ndim, -1)
    levels_of = np.concatenate([level for level, _ in leaves])
    places = np.concatenate([place for _, place in leaves], axis=1)
    order = rng.permutation(len(levels_of))
    return levels_of[order], places[:, order]


def centres(level: np.ndarray, index: np.ndarray) -> np.ndarray:
    return (index + 0.5) / 2.0**level


def test_linear_fields_are_exact() -> None:
    for ndim in (1, 2, 3):
        level, index = tree(1, (3, 6 if ndim < 3 else 5), ndim)
        place = centres(level, index)
        slope = np.array([2.0, -3.0, 0.5])[:ndim]
        field = slope @ place + 7
        neighbours = Neighbours(level, index, (1,) * ndim, (False,) * ndim)
        (gradient,) = neighbours.gradients([field], level, index)
        scale = 2.0 ** level.max()
        np.testing.assert_allclose(gradient * scale, np.repeat(slope[:, None], len(level), 1))


def test_uniform_grids_have_central_differences() -> None:
    level, index = tree(2, (4, 4))
    field = np.random.default_rng(3).normal(size=len(level))
    cube = np.empty((16,) * 3)
    cube[tuple(index)] = field
    neighbours = Neighbours(level, index, (1, 1, 1), (True, True, True))
    (gradient,) = neighbours.gradients([field], level, index)
    for axis in range(3):
        expected = (np.roll(cube, -1, axis) - np.roll(cube, 1, axis)) / 2
        np.testing.assert_allclose(gradient[axis], expected[tuple(index)], atol=1e-14)


def test_smooth_fields_converge() -> None:
    errors = []
    for low in (3, 4, 5):
        level, index = tree(4, (low, low + 1))
        x, y, z = 2 * np.pi * centres(level, index)
        velocity = [np.sin(x) * np.cos(y), np.sin(y) * np.cos(z), np.sin(z) * np.cos(x)]
        neighbours = Neighbours(level, index, (1, 1, 1), (True, True, True))
        scale = 2.0 ** level.max()
        parts = neighbours.gradients(velocity, level, index)
        gradients = {axis: part * scale for axis, part in zip("xyz", parts, strict=True)}
        names = ["velocity_divergence", "vorticity_x", "vorticity_z", "vorticity_magnitude"]
        found = fields_of_gradients(names, gradients)
        divergence = np.cos(x) * np.cos(y) + np.cos(y) * np.cos(z) + np.cos(z) * np.cos(x)
        curl = [np.sin(y) * np.sin(z), np.sin(z) * np.sin(x), np.sin(x) * np.sin(y)]
        expected = {
            "velocity_divergence": divergence * 2 * np.pi,
            "vorticity_x": curl[0] * 2 * np.pi,
            "vorticity_z": curl[2] * 2 * np.pi,
            "vorticity_magnitude": np.sqrt(np.sum(np.square(curl), axis=0)) * 2 * np.pi,
        }
        errors.append(
            [np.sqrt(np.mean((found[name] - values) ** 2)) for name, values in expected.items()]
        )
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert (ratios > 1.8).all()
    assert np.max(errors[-1]) < 0.3


def test_cells_of_a_run(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    names = ["velocity_divergence", "vorticity_magnitude", "vorticity_z", "level"]
    whole = amr.read([*names, "x"])
    assert np.isfinite(whole["vorticity_magnitude"]).all()
    region, where = ambar.Sphere("bc", 0.2), "rho > 1.5"
    part = amr.read(names, region=region, where=where)
    assert part.columns == names
    everything = amr.read([*names, "rho", "radius"], where=f"radius <= 0.2 and {where}")
    np.testing.assert_array_equal(part["vorticity_z"], everything["vorticity_z"])
    # Central differences of cells in the middle of their level, by yt's covering grid.
    level = amr.levels[0]
    cube = {axis: amr.grid(f"v{axis}", level=level).to_numpy() for axis in "xyz"}
    size = amr.cell_size(level)[0]
    slopes = [(np.roll(cube[a], -1, n) - np.roll(cube[a], 1, n)) / 2 for n, a in enumerate("xyz")]
    divergence = sum(slopes) / size
    cells = amr.read(["velocity_divergence", "ix", "iy", "iz"], levels=(level, level))
    found = cells["velocity_divergence"]
    expected = divergence[cells["ix"], cells["iy"], cells["iz"]]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    assert part.column("vorticity_z", "km/s/kpc") is not part["vorticity_z"]
    with pytest.raises(KeyError, match="only as a requested field of Amr.read"):
        amr.project("velocity_divergence")
    assert "vorticity_x" in amr.derived_fields
    assert ambar.fields.available(amr)["vorticity_x"] == "code"
    with pytest.raises(ambar.InvalidError, match="choose another name"):
        ambar.fields.add("vorticity_x", "rho")
