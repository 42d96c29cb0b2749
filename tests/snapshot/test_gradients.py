"""Divergence and vorticity equal those of analytical fields."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar.snapshot.derived.neighbours import Neighbours, fields_of_gradients
from tests.helpers.amrex_plotfiles import write_plotfile


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


def gradients(
    fields: list[np.ndarray], level: np.ndarray, index: np.ndarray, *, periodic: bool
) -> list[np.ndarray]:
    """Return gradients in a unit box."""
    ndim, finest = len(index), int(level.max())
    shift = finest - level
    corner = index << shift
    neighbours = Neighbours(fields, corner, shift, [1 << finest] * ndim, (periodic,) * ndim)
    return [part * 2.0**finest for part in neighbours.gradients(corner, shift)]


def test_linear_fields_are_exact() -> None:
    for ndim in (1, 2, 3):
        level, index = tree(1, (3, 6 if ndim < 3 else 5), ndim)
        place = centres(level, index)
        slope = np.array([2.0, -3.0, 0.5])[:ndim]
        field = slope @ place + 7
        (gradient,) = gradients([field], level, index, periodic=False)
        np.testing.assert_allclose(gradient, np.repeat(slope[:, None], len(level), 1))


def test_uniform_grids_have_central_differences() -> None:
    level, index = tree(2, (4, 4))
    field = np.random.default_rng(3).normal(size=len(level))
    cube = np.empty((16,) * 3)
    cube[tuple(index)] = field
    (gradient,) = gradients([field], level, index, periodic=True)
    for axis in range(3):
        expected = (np.roll(cube, -1, axis) - np.roll(cube, 1, axis)) * 8
        np.testing.assert_allclose(gradient[axis], expected[tuple(index)], atol=1e-13)


def test_smooth_fields_converge() -> None:
    errors = []
    for low in (3, 4, 5):
        level, index = tree(4, (low, low + 1))
        x, y, z = 2 * np.pi * centres(level, index)
        velocity = [np.sin(x) * np.cos(y), np.sin(y) * np.cos(z), np.sin(z) * np.cos(x)]
        parts = gradients(velocity, level, index, periodic=True)
        names = ["velocity_divergence", "vorticity_x", "vorticity_z", "vorticity_magnitude"]
        found = fields_of_gradients(names, dict(zip("xyz", parts, strict=True)))
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
    units = amr.info.units
    factor = units.velocity("km/s") / units.length("kpc")
    np.testing.assert_allclose(part.column("vorticity_z", "km/s/kpc"), part["vorticity_z"] * factor)
    assert "vorticity_x" in amr.derived_fields
    assert ambar.fields.available(amr)["vorticity_x"] == "code"
    with pytest.raises(ambar.InvalidError, match="another name"):
        ambar.fields.add("vorticity_x", "rho")


def test_gradients_are_fields_everywhere(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    cells = amr.read(["velocity_divergence", "vorticity_magnitude", "density", "volume"])
    divergence, volume = cells["velocity_divergence"], cells["volume"]
    converging = amr.read("density", where="velocity_divergence < 0 and density > 1")
    expected = cells["density"][(divergence < 0) & (cells["density"] > 1)]
    np.testing.assert_array_equal(converging["density"], expected)
    mean = amr.mean("vorticity_magnitude", threads=1)
    assert mean == pytest.approx((cells["vorticity_magnitude"] * volume).sum() / volume.sum())
    assert mean == amr.mean("vorticity_magnitude", threads=2)
    assert amr.max("abs(velocity_divergence)") == np.abs(divergence).max()
    assert amr.argmax("vorticity_magnitude").value == cells["vorticity_magnitude"].max()
    profile = amr.profile("radius", "velocity_divergence", bins=8)
    total = (profile["velocity_divergence"] * profile["weight_sum"]).sum()
    scale = (np.abs(divergence) * volume).sum()
    assert float(total) == pytest.approx((divergence * volume).sum(), abs=1e-12 * scale)
    level = amr.levels[0]
    image = amr.project("vorticity_magnitude", level=level)
    size = amr.cell_size(level)[0]
    whole = (cells["vorticity_magnitude"] * volume).sum()
    assert float(image.sum()) * size**2 == pytest.approx(whole)
    other = amr.map("vorticity_magnitude", axis="z", resolution=2**level)
    np.testing.assert_allclose(image, other, rtol=1e-10)
    assert np.isfinite(amr.slice("velocity_divergence", level=level)).all()
    density = amr.profile("density", "velocity_divergence", where="velocity_divergence < 0")
    assert not (density["velocity_divergence"] > 0).any()
    lazy = gravpart.amr.to_xarray(["vorticity_magnitude"])["vorticity_magnitude"]
    np.testing.assert_array_equal(lazy, cells["vorticity_magnitude"])


def test_patches_have_gradients(tmp_path: Path) -> None:
    """A linear velocity has an exact divergence and curl on all levels, also at faces."""
    slopes = np.array([[2.0, -1.0, 0.5], [0.25, 3.0, -2.0], [1.5, 0.75, -4.0]])
    velocity = {
        f"{axis}vel": lambda x, y, z, a=row: a[0] * x + a[1] * y + a[2] * z
        for axis, row in zip("xyz", slopes, strict=True)
    }
    amr = ambar.open_snapshot(write_plotfile(tmp_path / "plt00000", fields=velocity)).amr
    names = ["velocity_divergence", "vorticity_x", "vorticity_y", "vorticity_z", "level"]
    cells = amr.read(names)
    assert set(cells["level"]) == {0, 1}
    np.testing.assert_allclose(cells["velocity_divergence"], np.trace(slopes))
    curl = (slopes[2, 1] - slopes[1, 2], slopes[0, 2] - slopes[2, 0], slopes[1, 0] - slopes[0, 1])
    for name, expected in zip(names[1:4], curl, strict=True):
        np.testing.assert_allclose(cells[name], expected)
    assert amr.mean("velocity_divergence") == pytest.approx(np.trace(slopes))
    coarse = amr.grid("velocity_divergence", level=0)
    np.testing.assert_allclose(coarse, np.trace(slopes))
