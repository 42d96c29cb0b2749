"""Cells at the surface of a region, counted by their centres, whole, or by the fraction inside."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.amrex_plotfiles import write_plotfile

AXIS = (1.0, -2.0, 0.5)
INNER, OUTER = ambar.Sphere("bc", 0.17), ambar.Sphere("bc", 0.33)
REGIONS: dict[str, tuple[ambar.Region, float]] = {
    "box": (ambar.Box((0.13, 0.24, 0.31), (0.72, 0.55, 0.9)), 0.59 * 0.31 * 0.59),
    "sphere": (OUTER, 4 / 3 * math.pi * 0.33**3),
    "shell": (ambar.SphericalShell("bc", 0.17, 0.33), 4 / 3 * math.pi * (0.33**3 - 0.17**3)),
    "difference": (OUTER - INNER, 4 / 3 * math.pi * (0.33**3 - 0.17**3)),
    "cylinder": (ambar.Cylinder("bc", 0.29, 0.37, axis=AXIS), math.pi * 0.29**2 * 0.37),
    "disc": (ambar.Cylinder("bc", 0.4, 0.07), math.pi * 0.4**2 * 0.07),
    "oriented": (ambar.OrientedBox("bc", (0.7, 0.33, 0.15), axis=AXIS), 0.7 * 0.33 * 0.15),
    "periodic": (ambar.Sphere((0.03, 0.5, 0.98), 0.27), 4 / 3 * math.pi * 0.27**3),
    "corner": (ambar.Box((-0.13, 0.24, 0.8), (0.22, 0.55, 1.1)), 0.35 * 0.31 * 0.3),
}


@pytest.mark.parametrize("name", REGIONS)
def test_volumes_are_those_of_regions(gravpart: ambar.Snapshot, name: str) -> None:
    amr, (region, expected) = gravpart.amr, REGIONS[name]
    found = {
        cut: amr.sum("volume", region=region, cut=cut) / amr.sum("volume")
        for cut in ("center", "whole", "fraction")
    }
    errors = {cut: abs(volume / expected - 1) for cut, volume in found.items()}
    assert errors["fraction"] < (1e-12 if name in ("box", "corner") else 1e-3), errors
    assert errors["fraction"] < errors["center"] / 3
    assert found["whole"] > expected
    assert found["whole"] >= found["center"]


@pytest.mark.parametrize("name", REGIONS)
def test_a_region_and_its_complement_are_everything(gravpart: ambar.Snapshot, name: str) -> None:
    amr, region = gravpart.amr, REGIONS[name][0]
    mass = [amr.sum("mass", region=part, cut="fraction") for part in (region, ~region)]
    assert sum(mass) == pytest.approx(amr.sum("mass"), rel=1e-12)
    bins: dict[str, Any] = {"statistic": "sum", "bins": 9, "range": (0, 1)}
    profiles = [
        amr.profile("radius", "mass", region=part, cut="fraction", **bins)
        for part in (region, ~region, None)
    ]
    one, other, all_of = (found["mass"] for found in profiles)
    np.testing.assert_allclose(one + other, all_of, rtol=1e-11)


def test_methods_agree(gravpart: ambar.Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    amr, region = gravpart.amr, ambar.Cylinder("bc", 0.3, 0.17, axis=AXIS)
    chosen: dict[str, Any] = {"region": region, "cut": "fraction"}
    mass, volume = amr.sum("mass", **chosen), amr.sum("volume", **chosen)
    assert amr.mean("density", **chosen) == pytest.approx(mass / volume)
    found = amr.statistics("mass", **chosen)["mass"]
    assert found.sum == pytest.approx(mass)
    assert amr.histogram("density", weight="mass", **chosen).sum() == pytest.approx(mass)
    assert amr.phase("density", "pressure", **chosen).sum() == pytest.approx(mass)
    image = amr.map("density", axis=AXIS, width=2.0, resolution=64, **chosen)
    assert float(image.sum()) * image.attrs["pixel_size"] ** 2 == pytest.approx(mass, rel=1e-9)
    part = amr.map("density", width=0.1, pixel_size=0.01, **chosen)
    whole = amr.map("density", width=1.0, pixel_size=0.01, **chosen)
    np.testing.assert_allclose(part, whole[45:55, 45:55], rtol=1e-9)
    cube = amr.velocity_cube("density", axis="z", bins=4, resolution=32, **chosen)
    assert float(cube.sum()) * cube.attrs["pixel_size"] ** 2 == pytest.approx(mass, rel=1e-9)
    median = amr.quantile("density", 0.5, **chosen)
    assert amr.min("density", **chosen) < median < amr.max("density", **chosen)
    momentum = amr.angular_momentum(specific=True, **chosen)
    np.testing.assert_allclose(momentum * mass, amr.angular_momentum(**chosen), rtol=1e-9)
    center = amr.center_of_mass(weight="volume", **chosen)
    np.testing.assert_allclose(center, 0.5, atol=1e-4)
    assert amr.sum("mass", threads=1, **chosen) == amr.sum("mass", threads=2, **chosen)
    monkeypatch.setattr("ambar.snapshot.analysis.batches.BATCH_BYTES", 1)
    assert amr.sum("mass", **chosen) == pytest.approx(mass, rel=1e-12)
    table = amr.read(["mass", "level"], **chosen)
    assert table.columns == ["mass", "level", "region_fraction"]
    assert (table["mass"] * table["region_fraction"]).sum() == pytest.approx(mass, rel=1e-12)
    coarse: dict[str, Any] = {"region": region, "cut": "whole", "levels": (0, 6)}
    read = amr.read("mass", **coarse)["mass"]
    assert read.sum() == pytest.approx(amr.sum("mass", **coarse), rel=1e-12)
    for cut in ("whole", "fraction"):
        assert amr.sum("mass", cut=cut) == pytest.approx(amr.sum("mass"))
    with pytest.raises(ambar.InvalidError, match="invalid cut 'half': must be one of 'center'"):
        amr.sum("mass", region=region, cut="half")  # type: ignore[arg-type]


def test_particles_are_points(gravpart: ambar.Snapshot) -> None:
    particles = gravpart.particles
    masses = {
        particles.sum("mass", region=OUTER, cut=cut) for cut in ("center", "whole", "fraction")
    }
    assert len(masses) == 1


def test_patches_with_cells_that_are_not_cubes(tmp_path: Path) -> None:
    amr = ambar.open_snapshot(write_plotfile(tmp_path / "plt00000")).amr
    for name in ("box", "sphere", "oriented", "difference"):
        region, expected = REGIONS[name]
        assert amr.sum("volume", region=region, cut="fraction") == pytest.approx(expected, 2e-3)
        both = [amr.sum("density", region=part, cut="fraction") for part in (region, ~region)]
        assert sum(both) == pytest.approx(amr.sum("density"))
        assert amr.sum("volume", region=region, cut="whole") > expected


def test_chunks_beside_a_region_are_read(gravpart: ambar.Snapshot) -> None:
    """A region in a single cell, away from its centre, selects this cell."""
    amr = gravpart.amr
    cells = amr.read(["x", "y", "z", "dx", "density"])
    for row in np.random.default_rng(1).integers(0, len(amr), 20):
        size = gravpart.info.boxlen
        place = [(cells[a][row] + 0.3 * cells["dx"][row]) / size for a in "xyz"]
        tiny = ambar.Sphere(place, 1e-4)
        assert amr.sum("density", region=tiny) == 0
        assert amr.max("density", region=tiny, cut="whole") == cells["density"][row]
