"""Maps along any direction: exact along axes, conserving along others, and of particles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers import plotfiles
from tests.helpers.paths import RAMSES
from tests.helpers.sample_outputs import output

TILTED = (0.3, -0.8, 0.5)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_maps_along_axes_equal_projections(gravpart: ambar.Snapshot, axis: str) -> None:
    amr = gravpart.amr
    level = amr.levels[0]
    found = amr.map("density", axis=axis, resolution=2**level)
    expected = amr.project("density", axis=axis, level=level)
    assert found.dims == expected.dims
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    for dim in found.dims:
        np.testing.assert_allclose(found[dim], expected[dim], rtol=1e-12)
    found = amr.map("velocity_x", axis=axis, resolution=2**level, weight="density")
    expected = amr.project("velocity_x", axis=axis, level=level, weight="density")
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def _mass(amr: ambar.Amr, **selection: Any) -> float:
    cells = amr.read(["density", "dx"], **selection)
    return float((cells["density"] * cells["dx"] ** amr.ndim).sum())


@pytest.mark.parametrize("axis", ["z", TILTED, (0, 0, -1)])
@pytest.mark.parametrize("resolution", [16, 200])
def test_maps_contain_all_mass(gravpart: ambar.Snapshot, axis: Any, resolution: int) -> None:
    amr = gravpart.amr
    # Wider than the box, so that no corner is cut off.
    image = amr.map("density", axis=axis, width=2.0, resolution=resolution)
    total = float(np.nansum(image)) * image.attrs["pixel_size"] ** 2
    assert total == pytest.approx(_mass(amr), rel=1e-10)


def test_a_rotated_map_has_the_same_moments(gravpart: ambar.Snapshot) -> None:
    """The center of mass in the map is the projected center of mass."""
    amr = gravpart.amr
    image = amr.map("density", axis=TILTED, width=2.0, resolution=300)
    cells = amr.read(["x", "y", "z", "dx", "density"])
    mass = cells["density"] * cells["dx"] ** 3
    center = np.array([(cells[axis] * mass).sum() for axis in "xyz"]) / mass.sum()
    sight = np.array(TILTED) / np.linalg.norm(TILTED)
    up = np.array([0.0, 0.0, 1.0]) - sight[2] * sight
    up /= np.linalg.norm(up)
    right = np.cross(up, sight)
    offset = center - 0.5 * gravpart.info.boxlen
    values = image.fillna(0)
    for dim, direction in (("right", right), ("up", up)):
        found = float((values * image[dim]).sum() / values.sum())
        assert found == pytest.approx(float(direction @ offset), abs=1e-3 * gravpart.info.boxlen)


def test_several_fields_and_statistics(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    options: dict[str, Any] = {"axis": TILTED, "width": 0.5, "resolution": 40, "weight": "density"}
    means = amr.map(["velocity_x", "pressure"], **options)
    assert list(means.data_vars) == ["velocity_x", "pressure"]
    squares = amr.map("velocity_x", **options, statistic="dispersion")
    assert float(squares.min()) >= 0
    assert float(squares.max()) < float(np.abs(means["velocity_x"]).max() + squares.max() + 1)
    levels = amr.map("level", axis=TILTED, resolution=50, statistic="maximum")
    assert set(np.unique(levels.to_numpy()[np.isfinite(levels)])) <= set(range(20))
    assert float(levels.max()) == amr.levels[1]


def test_each_field_has_its_unit(stores: dict[str, Path]) -> None:
    units = ambar.Units(unit_l=3.08567758128e21, unit_d=1e-24, unit_t=1e15)
    snapshot = ambar.open_snapshot(stores["gravpart"]).with_units(units)
    in_code = snapshot.amr.map(["density", "vx"], resolution=8)
    found = snapshot.amr.map(["density", "vx"], resolution=8, unit={"rho": "g/cm2"})
    assert [found[name].attrs["units"] for name in found] == ["g/cm**2", "code"]
    factor = units.unit_d * units.unit_l
    np.testing.assert_allclose(found["density"], in_code["density"] * factor)
    np.testing.assert_array_equal(found["vx"], in_code["vx"])
    stars = snapshot.particles.map(["mass"], resolution=8, unit={"mass": "Msol/pc2"})
    assert stars["mass"].attrs["units"] == "Msun/pc**2"
    with pytest.raises(ValueError, match="invalid key 'pressure' of units; expected one of"):
        snapshot.amr.map(["density"], resolution=8, unit={"pressure": "Ba"})


def test_weights_are_those_of_statistics(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    by_density = amr.map("vx", weight="density", resolution=16)
    for weight in ("mass", "cell_mass"):
        np.testing.assert_array_equal(amr.map("vx", weight=weight, resolution=16), by_density)
        projected = amr.project("vx", weight=weight, level=4)
        np.testing.assert_allclose(projected, by_density, rtol=1e-9, atol=1e-12)
    one = amr.map("vx", weight="mass", resolution=1)
    assert float(one[0, 0]) == pytest.approx(amr.mean("vx", weight="cell_mass"), rel=1e-9)
    volumes = [amr.map("density", weight=w, resolution=8) for w in ("volume", "cell_volume")]
    np.testing.assert_array_equal(*volumes)


def test_periodic_maps_lose_nothing_at_their_edges(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    for center in ((0.53, 0.5, 0.41), (1.21, -0.3, 0.5)):
        image = amr.map("density", center=center, width=1.0, resolution=50)
        assert not np.isnan(image).any()
        total = float(image.sum()) * image.attrs["pixel_size"] ** 2
        assert total == pytest.approx(_mass(amr), rel=1e-10)


def test_dispersions_keep_their_precision(gravpart: ambar.Snapshot) -> None:
    spread = gravpart.amr.map(
        "1e6 + 0 * vx", weight="density", statistic="dispersion", resolution=8
    )
    assert float(np.nanmax(spread)) == 0


def test_centers_are_those_of_statistics(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    peak = amr.argmax("density").position
    image = amr.map("density", center="max:density", width=0.2, resolution=8)
    np.testing.assert_array_equal(image, amr.map("density", center=peak, width=0.2, resolution=8))


def test_orientations_take_all_centers(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    peak = np.array(amr.find_center("max:density"))
    for center in (peak, tuple(peak), "max:density"):
        image = amr.map("density", axis="edgeon", center=center, width=0.3, resolution=8)
        assert image.dims == ("up", "right")
        # Rays are parallel to no face of cells.
        assert np.abs(image.attrs["axis"]).min() > 1e-3
    stars = gravpart.particles.map("mass", axis="faceon", width=0.5, resolution=8)
    assert np.isfinite(stars.sum())


def test_coordinates_are_in_the_unit_of_lengths(stores: dict[str, Path]) -> None:
    snapshot = ambar.open_snapshot(stores["gravpart"])
    units = ambar.Units(unit_l=3.08567758128e21, unit_d=1e-24, unit_t=1e15)
    amr = snapshot.with_units(units).amr
    image = amr.map("density", axis=TILTED, width=0.5, length_unit="kpc", resolution=8)
    assert image["right"].attrs["units"] == "kpc"
    assert image.attrs["length_unit"] == "kpc"
    assert float(image["right"][-1] - image["right"][0]) == pytest.approx(0.5 * 7 / 8)


def test_diagonal_maps_have_no_moire(gravpart: ambar.Snapshot) -> None:
    """The integral of 1 is the chord through the box, which is smooth."""
    for axis in ((1, 1, 0), (0.8, 0.0, 0.6)):
        image = gravpart.amr.map("1 + 0 * density", axis=axis, width=0.5, resolution=77)
        rows = np.diff(image.to_numpy(), axis=0) / image.to_numpy()[1:]
        columns = np.diff(image.to_numpy(), axis=1) / image.to_numpy()[:, 1:]
        assert max(np.abs(rows).max(), np.abs(columns).max()) < 0.02


def test_maps_follow_the_frame(gravpart: ambar.Snapshot) -> None:
    view = gravpart.amr.about((0.4, 0.5, 0.6), axis=TILTED, velocity=(0.3, 0.0, 0.1))
    image = view.map("density", width=0.3, resolution=8)
    expected = gravpart.amr.map(
        "density", axis=TILTED, center=(0.4, 0.5, 0.6), width=0.3, resolution=8
    )
    np.testing.assert_allclose(image, expected, rtol=1e-9)
    moved = view.velocity_cube("density", resolution=4, bins=5)
    plain = gravpart.amr.velocity_cube(
        "density", axis=TILTED, center=(0.4, 0.5, 0.6), resolution=4, bins=5
    )
    shift = float(np.array(TILTED) / np.linalg.norm(TILTED) @ np.array((0.3, 0.0, 0.1)))
    np.testing.assert_allclose(moved.velocity, plain.velocity - shift, atol=1e-12)


def test_selections_apply(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    ball = ambar.Sphere("bc", 0.3)
    image = amr.map(
        "density", axis=TILTED, width=2.0, resolution=64, region=ball, where="density > 1"
    )
    total = float(np.nansum(image)) * image.attrs["pixel_size"] ** 2
    assert total == pytest.approx(_mass(amr, region=ball, where="density > 1"), rel=1e-10)
    assert np.isnan(image[0, 0])


def test_plotfiles_have_maps(tmp_path: Path) -> None:
    plotfiles.write(tmp_path / "plt00200")
    amr = ambar.open_snapshot(tmp_path / "plt00200").amr
    fields = amr.fields[:2]
    images = amr.map(fields, axis=TILTED, width=3.0, resolution=64)
    cells = amr.read([*fields, "dx"])
    for field in fields:
        total = float(images[field].sum()) * images[field].attrs["pixel_size"] ** 2
        assert total == pytest.approx(float((cells[field] * cells["dx"] ** 3).sum()), rel=1e-9)


@pytest.mark.parametrize("method", ["nearest", "cloud", "spline"])
def test_particles_are_deposited_once(gravpart: ambar.Snapshot, method: Any) -> None:
    particles = gravpart.particles
    options: dict[str, Any] = {"radius": 0.05} if method == "spline" else {}
    image = particles.map("mass", axis=TILTED, width=2.5, resolution=128, method=method, **options)
    total = float(np.nansum(image)) * image.attrs["pixel_size"] ** 2
    assert total == pytest.approx(float(particles.read("mass")["mass"].sum()), rel=1e-10)


@pytest.mark.parametrize("method", ["cloud", "spline"])
@pytest.mark.parametrize("axis", ["x", "z"])
def test_particles_continue_beyond_periodic_faces(
    gravpart: ambar.Snapshot, method: Any, axis: str
) -> None:
    particles = gravpart.particles
    for resolution in (32, 50):
        radius = 0.1 if method == "spline" else None
        image = particles.map(
            "mass", axis=axis, method=method, radius=radius, resolution=resolution
        )
        total = float(image.sum()) * image.attrs["pixel_size"] ** 2
        assert total == pytest.approx(particles.sum("mass"), rel=1e-12)


def test_nearest_particles_equal_a_histogram(gravpart: ambar.Snapshot) -> None:
    particles = gravpart.particles
    image = particles.map("mass", axis="z", resolution=32, method="nearest")
    rows = particles.read(["position_x", "position_y", "mass"])
    edges = np.linspace(0, gravpart.info.boxlen, 33)
    expected, _, _ = np.histogram2d(
        rows["position_x"], rows["position_y"], bins=(edges, edges), weights=rows["mass"]
    )
    area = image.attrs["pixel_size"] ** 2
    np.testing.assert_allclose(image.fillna(0) * area, expected.T, rtol=1e-12, atol=1e-15)


def test_cubes_of_velocity_sum_to_the_map(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    cube = amr.velocity_cube("density", axis=TILTED, resolution=24, bins=20)
    assert cube.dims == ("velocity", "up", "right")
    assert cube.sizes["velocity"] == 20
    image = amr.map("density", axis=TILTED, resolution=24)
    np.testing.assert_allclose(cube.sum("velocity"), image.fillna(0), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    ("name", "vector"), [("x", (1, 0, 0)), ("y", (0, -1, 0)), ("z", (0, 0, 1))]
)
def test_named_axes_are_vectors_to_the_viewer(
    name: Any, vector: Any, gravpart: ambar.Snapshot, tmp_path: Path
) -> None:
    amr = gravpart.amr
    up = "y" if name == "z" else "z"
    named = amr.map("density", axis=name, resolution=16)
    for other in ({"axis": vector, "up": up}, {"axis": name, "up": up}):
        np.testing.assert_allclose(named, amr.map("density", resolution=16, **other), rtol=1e-12)
    right, above = (np.eye(3)["xyz".index(str(dim))] for dim in named.dims[::-1])
    np.testing.assert_array_equal(np.cross(right, above), named.attrs["axis"])
    assert named.attrs["axis"] == list(vector)
    options: dict[str, Any] = {"bins": 6, "resolution": 16, "velocity_unit": "code"}
    cube = amr.velocity_cube("density", axis=name, **options)
    expected = amr.velocity_cube("density", axis=vector, up=up, **options)
    np.testing.assert_allclose(cube, expected, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(cube.velocity, expected.velocity)
    mean = float((cube * cube.velocity).sum() / cube.sum())
    along = sum(c * amr.mean(f"v{a}", weight="mass") for c, a in zip(vector, "xyz", strict=True))
    assert mean == pytest.approx(along, abs=float(cube.attrs["velocity_step"]))
    fits = pytest.importorskip("astropy.io.fits")
    ambar.write_fits(cube, tmp_path / "cube.fits")
    header = fits.getheader(tmp_path / "cube.fits")
    assert [header[f"SIGHT{n}"] for n in (1, 2, 3)] == list(vector)
    particles = gravpart.particles
    np.testing.assert_allclose(
        particles.map("mass", axis=name, resolution=16),
        particles.map("mass", axis=vector, up=up, resolution=16),
    )


def test_faceon_and_edgeon_follow_the_angular_momentum(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    face = np.array(amr.map("density", axis="faceon", resolution=16).attrs["axis"])
    edge = np.array(amr.map("density", axis="edgeon", resolution=16).attrs["axis"])
    cells = amr.read(["x", "y", "z", "vx", "vy", "vz", "density", "dx"])
    mass = cells["density"] * cells["dx"] ** 3
    points = np.stack([cells[a] for a in "xyz"], 1) - 0.5 * gravpart.info.boxlen
    speeds = np.stack([cells[f"v{a}"] for a in "xyz"], 1)
    speeds = speeds - (speeds * mass[:, None]).sum(0) / mass.sum()
    momentum = (np.cross(points, speeds) * mass[:, None]).sum(0)
    np.testing.assert_allclose(face, momentum / np.linalg.norm(momentum), atol=1e-8)
    assert abs(float(face @ edge)) < 1e-12


def test_without_astropy_the_error_names_the_extra(
    gravpart: ambar.Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = gravpart.amr.map("density", resolution=4)
    monkeypatch.setattr("ambar._util.optional.find_spec", lambda _: None)
    with pytest.raises(ImportError, match=r"writing FITS needs astropy.*'ambar\[fits\]'"):
        ambar.write_fits(image, tmp_path / "map.fits")


def test_invalid_maps_are_errors(gravpart: ambar.Snapshot) -> None:
    amr = gravpart.amr
    for options in (
        {"axis": "w"},
        {"axis": (0, 0, 0)},
        {"axis": "z", "up": "z"},
        {"width": 0},
        {"depth": -1},
        {"resolution": 0},
        {"pixel_size": -1},
        {"pixel_size": 0.1, "resolution": 3},
        {"width": "x"},
        {"statistic": "median"},
        {"statistic": "integral", "weight": "density"},
    ):
        with pytest.raises(ValueError, match="invalid|no weight|expected"):
            amr.map("density", **options)
    with pytest.raises(KeyError):
        amr.map("nothing")
    with pytest.raises(ambar.LimitError):
        amr.map("density", resolution=1 << 19)
    with pytest.raises(ambar.LimitError):
        amr.velocity_cube("density", bins=10**7)
    flat = ambar.open_snapshot(RAMSES / "sedov2d_small" / "output_00002")
    with pytest.raises(ValueError, match="three dimensions.*use grid, with a Box as the region"):
        flat.amr.map("density", axis="x")
    for method in (flat.amr.slice, flat.amr.project):
        with pytest.raises(ValueError, match="three dimensions for the axis 'z', found"):
            method("density")
        with pytest.raises(ValueError, match="invalid axis 'w'; must be one of x, y; grid"):
            method("density", axis="w")
    tube = ambar.open_snapshot(RAMSES.parent / "ramses_cases" / "tube_1d_walls" / "output_00002")
    with pytest.raises(ValueError, match="of two or three dimensions for the axis 'x', found 1"):
        tube.amr.slice("density", axis="x")
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"resolution": (16, 8)}, r"resolution: expected an integer.*found \(16, 8\)"),
        ({"pixel_size": "x"}, "pixel_size: expected a number, found 'x'"),
        ({"depth": "x"}, "depth: expected a number, found 'x'"),
        ({"center": 3}, "center: expected 'bc' or 3 numbers, found 3"),
        ({"unit": 3}, "unit: expected a string.*found 3"),
    )
    for arguments, why in wrong:
        with pytest.raises(TypeError, match=why):
            amr.map("density", **arguments)
    cube: Any = amr.velocity_cube
    with pytest.raises(TypeError, match=r"bins: expected an integer, found 3\.5"):
        cube("density", bins=3.5)
    with pytest.raises(ValueError, match="range: 3; expected two numbers"):
        cube("density", range=3)


def test_a_grid_that_exceeds_the_memory_names_its_size_and_the_levels() -> None:
    amr = ambar.open_snapshot(output("sedov")).amr
    with pytest.raises(
        ambar.LimitError, match="level 20 has 1,048,576 x 1,048,576.* cells, the data have"
    ):
        amr.grid("density", level=20)
