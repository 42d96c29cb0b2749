"""Pictures of snapshots and series: what is drawn without options, labels, colours and errors."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import ambar
import ambar.xarray
from tests.helpers import plotfiles
from tests.helpers.command_line import run
from tests.helpers.paths import RAMSES
from tests.helpers.plotfile_writer import Plotfile
from tests.helpers.ramses_outputs import HYDRO, PARTICLES, Spec, write_output
from tests.helpers.sample_outputs import output
from tests.helpers.store_chunks import chunks

pytest.importorskip("matplotlib")

from ambar.figures.colors import color_scale
from ambar.figures.labels import unit_text
from ambar.figures.panels import ImagePanel, draw_grid
from ambar.snapshot.pictures import drawing, images
from ambar.snapshot.pictures.options import CellsPlot, SeriesPlot

CASES = RAMSES.parent / "ramses_cases"
TUBE = CASES / "tube_1d_walls" / "output_00002"
GALAXY = CASES / "stars_3d" / "output_00002"

draw: Any = drawing.draw


def plot(**options: Any) -> CellsPlot:
    return CellsPlot(path="x", **options)


def test_labels_are_those_of_papers() -> None:
    flat = ambar.open_snapshot(RAMSES / "sedov2d_small" / "output_00002")
    axes = draw(flat, plot(limits=(0.5, 2.0), level=5)).axes[0]
    assert axes.images[0].get_clim() == (0.5, 2.0)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x [code length]", "y [code length]")
    figure = draw(flat, plot(level=5, title=False))
    assert figure.axes[0].get_title() == figure.get_suptitle() == ""
    galaxy = ambar.open_snapshot(GALAXY)
    figure = draw(galaxy, plot(level=4))
    assert figure.get_suptitle() == "along z, time 187.1 kyr"
    picture: Any = figure.axes[0]
    assert picture.get_xlabel() == "x [$\\mathrm{pc}$]"
    assert picture.artists[0].txt_label.get_text() == "100 $\\mathrm{pc}$"
    surface = "surface density [$\\mathrm{M_\\odot\\,pc^{-2}}$]"
    assert picture.child_axes[0].get_ylabel() == surface
    for image in (
        galaxy.amr.map("density", unit="Msun/pc**2", resolution=8),
        galaxy.amr.project("density", level=4, unit="Msun/pc**2"),
    ):
        assert image.attrs["long_name"] == "surface density"
        assert image.ambar.plot().child_axes[0].get_ylabel() == surface
    figure = draw(galaxy, plot(axis="edgeon", length_unit="kpc", resolution=8))
    assert figure.axes[0].get_xlabel() == "right [$\\mathrm{kpc}$]"
    assert figure.get_suptitle().startswith("edge-on, time ")
    figure = draw(galaxy, plot(particles=True, axis=(1.0, 1.0, 0.0), resolution=8))
    assert figure.get_suptitle().startswith("along (1, 1, 0), time ")
    bar = figure.axes[0].child_axes[0]
    assert bar.get_ylabel() == "mass per area [$\\mathrm{M_\\odot\\,pc^{-2}}$]"
    assert plot().target_of("mass", "(1, 1, 0)").name == "x_mass_1-1-0.png"


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("km/s/kpc", "$\\mathrm{km\\,s^{-1}\\,kpc^{-1}}$"),
        ("1/cm**3", "$\\mathrm{cm^{-3}}$"),
        ("g/(cm*s**2)", "$\\mathrm{g\\,cm^{-1}\\,s^{-2}}$"),
        ("3.5e+21*K*cm", "$\\mathrm{3.5\\times 10^{21}\\,K\\,cm}$"),
        ("um", "$\\mathrm{\\mu m}$"),
        ("degrees_north", "$\\mathrm{degrees\\_north}$"),
        ("m s-1 $", "m s-1 \\$"),
        ("dimensionless", ""),
    ],
)
def test_units_are_written_as_in_papers(unit: str, text: str) -> None:
    assert unit_text(unit) == text


def test_fields_are_seen_as_is_usual(gravpart: ambar.Snapshot) -> None:
    """Densities are integrated, others averaged by density, or cut where there is no density."""
    amr = gravpart.amr
    found = images.image_of(gravpart, "density", plot(level=4))
    np.testing.assert_array_equal(found, amr.project("density", level=4))
    found = images.image_of(gravpart, "velocity_x", plot(level=4))
    np.testing.assert_array_equal(found, amr.project("velocity_x", level=4, weight="density"))
    found = images.image_of(gravpart, "density**2", plot(level=4))
    np.testing.assert_array_equal(found, amr.project("density**2", level=4))
    alone = gravpart.load(["velocity_x"])
    found = images.image_of(alone, "velocity_x", plot(level=4))
    np.testing.assert_array_equal(found, amr.slice("velocity_x", level=4))
    found = images.image_of(alone, "velocity_x", plot(level=4, center=(0.5, 0.5, 0.8)))
    np.testing.assert_array_equal(found, amr.slice("velocity_x", level=4, at=0.8))


def test_a_part_of_a_cell_is_drawn_where_it_is(gravpart: ambar.Snapshot) -> None:
    """The axes were those of a pixel of one unit."""
    request = plot(level=4, center=(0.3, 0.6, 0.5), width=1e-5, slice_at=0.5, length_unit="code")
    figure = draw(gravpart, request)
    left, right, bottom, top = figure.axes[0].images[0].get_extent()
    np.testing.assert_allclose([right - left, top - bottom], gravpart.amr.cell_size(4)[:2])
    assert left <= 0.3 <= right
    assert bottom <= 0.6 <= top


def test_particles_are_drawn_where_there_are_no_cells(tmp_path: Path) -> None:
    """Of several species the gas; masses are summed, other fields averaged."""
    h5py = pytest.importorskip("h5py")
    assert h5py
    from tests.helpers.particle_snapshots import particles, write_gadget

    write_gadget(tmp_path / "snap_003.hdf5", particles({0: 500, 1: 900}))
    ambar.convert(tmp_path / "snap_003.hdf5", tmp_path / "snap.ambar", fsync=False)
    snapshot = ambar.open_snapshot(tmp_path / "snap.ambar")
    figure = draw(snapshot, plot())
    assert figure.get_suptitle().startswith("gas, along z, redshift 3.00")
    gas = snapshot.species["gas"]
    found = images.image_of(snapshot, "u", plot(particles=True, species="gas", resolution=8))
    expected = gas.map("u", weight="mass", resolution=8)
    np.testing.assert_allclose(found, expected)


def test_parts_of_a_picture(gravpart: ambar.Snapshot) -> None:
    box = ambar.Box((0.25, 0.25, 0.0), (0.75, 0.5, 1.0))
    found = images.image_of(gravpart, "density", plot(region=box, slice_at=0.5, resolution=16))
    assert found.shape == (8, 16)
    ball = ambar.Sphere("bc", 0.3)
    whole = plot(region=ball, cut="whole", resolution=32)
    found = images.image_of(gravpart, "density", whole)
    expected = gravpart.amr.map("density", region=ball, cut="whole", resolution=32)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="leave one of them out"):
        images.image_of(gravpart, "density", plot(region=box, width=0.5))
    with pytest.raises(ValueError, match="a level or a resolution, found both"):
        images.image_of(gravpart, "density", plot(slice_at=0.5, level=4, resolution=8))


def test_borders_of_levels_are_drawn(gravpart: ambar.Snapshot) -> None:
    for options in ({"slice_at": 0.5}, {}, {"axis": (1.0, 1.0, 1.0), "resolution": 32}):
        figure = draw(gravpart, plot(levels=True, **options))
        borders = [
            one for one in figure.axes[0].collections if type(one).__name__ == "QuadContourSet"
        ]
        assert len(borders) == 1


def test_borders_of_levels_follow_the_edges_of_large_pixels() -> None:
    levels = np.pad(np.ones((2, 2)), 1)
    scale = color_scale(levels)
    panel = ImagePanel(values=levels, extent=(0, 4, 0, 4), scale=scale, levels=levels)
    (axes,) = draw_grid([[panel]]).axes
    (borders,) = (one for one in axes.collections if type(one).__name__ == "QuadContourSet")
    corners = np.asarray(borders.get_paths()[0].vertices)
    for corner in itertools.product((1, 3), repeat=2):
        assert np.hypot(*(corners - np.array(corner)).T).min() < 0.01


def test_labels_of_colour_bars_are_readable(gravpart: ambar.Snapshot) -> None:
    figure = draw(gravpart, plot(fields=("level",), statistic="maximum", resolution=16))
    bar = figure.axes[0].child_axes[0]
    assert all(float(tick).is_integer() for tick in bar.get_yticks())
    assert bar.get_ylabel() == "maximum of level"
    figure = draw(gravpart, plot(fields=("velocity_magnitude",), resolution=16))
    label = figure.axes[0].child_axes[0].get_ylabel()
    assert label == "mean velocity magnitude,\nweighted by density [code units]"


def test_one_dimension_is_a_line() -> None:
    snapshot = ambar.open_snapshot(TUBE)
    figure = draw(snapshot, plot(fields=("density", "pressure")))
    density, pressure = figure.axes
    x, y = density.lines[0].get_data()
    cells = snapshot.amr.read(["x", "dx", "density"])
    order = np.argsort(cells["x"])
    np.testing.assert_allclose((x[::2] + x[1::2]) / 2, cells["x"][order])
    np.testing.assert_array_equal(y[::2], cells["density"][order])
    assert (density.get_xlabel(), pressure.get_xlabel()) == ("", "x [code length]")
    part = draw(snapshot, plot(center=(0.5,), width=0.1)).axes[0]
    assert part.lines[0].get_xdata()[0] == pytest.approx(0.45, abs=0.01)
    with pytest.raises(ValueError, match="expected cells to draw, found none"):
        draw(snapshot, plot(where="density < 0"))


def test_a_series_is_a_row_with_equal_colours(tmp_path: Path) -> None:
    ambar.convert(RAMSES / "sedov3d_small", tmp_path / "run.ambar", fsync=False)
    series = ambar.open_series(tmp_path / "run.ambar")
    options: dict[str, Any] = {"path": "x", "fields": ("density", "pressure"), "level": 4}
    figure = draw(series, SeriesPlot(**options))
    assert len(figure.axes) == 4
    for row in (figure.axes[:2], figure.axes[2:]):
        assert len({axes.images[0].get_clim() for axes in row}) == 1
        assert [len(axes.child_axes) for axes in row] == [0, 1]
    assert len(draw(series, SeriesPlot(**options, output=2)).axes) == 2


def test_frames_of_a_movie_have_equal_colours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    options = ["--movie", tmp_path / "frames", "--dpi", 50, "-f", "pressure"]
    for _ in range(2):  # which replaces the frames
        assert run(capsys, "plot", RAMSES / "sedov3d_small", *options)[0] == 0
    first, second = (
        matplotlib.image.imread(file) for file in sorted((tmp_path / "frames").iterdir())
    )
    assert first.shape == second.shape
    assert (first != second).any()
    assert (first[:, -50:] == second[:, -50:]).all()  # the colour bar with its labels
    twice: Any = [ambar.open_snapshot(TUBE)] * 2
    tube = list(drawing.frames_of(twice, SeriesPlot(path="x")))
    assert len({one.axes[0].get_ylim() for one in tube}) == 1


def test_comparisons_end_at_the_bound(tmp_path: Path) -> None:
    pairs = {"sedov": output("sedov"), "tube": TUBE}
    for name, source in pairs.items():
        target = tmp_path / f"{name}.ambar"
        ambar.convert(source, target, error_bound={"density": 0.01}, fsync=False)
        original, other = ambar.open_snapshot(source), ambar.open_snapshot(target)
        figure = draw(original, plot(against=other))
        if name == "tube":
            line, *bounds = figure.axes[1].lines
            assert np.abs(line.get_ydata()).max() <= 0.01
            assert [one.get_ydata()[0] for one in bounds] == [-0.01, 0.01]
            continue
        first, second, error = figure.axes
        assert (first.get_title(), second.get_title()) == (source.name, "sedov.ambar")
        assert error.images[0].get_clim() == (-0.01, 0.01)
        a, b, difference = (axes.images[0].get_array() for axes in (first, second, error))
        np.testing.assert_allclose(difference, b - a)
        assert 0 < np.abs(difference).max() <= 0.01
        assert "bound 0.01" in error.get_title()


def test_bounds_are_in_the_unit_of_the_picture(tmp_path: Path) -> None:
    original = ambar.open_snapshot(GALAXY)
    ambar.convert(GALAXY, tmp_path / "x.ambar", error_bound={"density": 0.01}, fsync=False)
    figure = draw(original, plot(against=ambar.open_snapshot(tmp_path / "x.ambar")))
    error: Any = figure.axes[2].images[0]
    bound = 0.01 * original.info.units.factor("density", "g/cm3")
    assert error.get_clim() == pytest.approx((-bound, bound))
    assert bound / 100 < np.abs(error.get_array()).max() <= bound * (1 + 1e-9)


@pytest.mark.parametrize(
    ("values", "options", "expected"),
    [
        (np.linspace(1, 5, 50), {}, ("linear", 1, 5, "inferno")),
        (np.geomspace(1, 1e3, 5000), {}, ("log", 1.07, 993, "inferno")),
        (np.geomspace(1e-12, 1, 5000), {}, ("log", 9.73e-6, 0.973, "inferno")),
        (np.linspace(-2, 3, 50), {}, ("linear", -3, 3, "RdBu_r")),
        (np.linspace(-5, 30, 50), {}, ("linear", -5, 30, "inferno")),
        (np.linspace(-9, 30, 50), {"unit": "degC"}, ("linear", -9, 30, "inferno")),
        (np.linspace(-2, 3, 50), {"log": True}, ("symlog", -3, 3, "RdBu_r")),
        (np.linspace(-1, 1.01, 501) ** 91, {}, ("symlog", -2.47, 2.47, "RdBu_r")),
        (np.linspace(-1, 1.01, 501) ** 91, {"log": False}, ("linear", -2.47, 2.47, "RdBu_r")),
        (np.linspace(1, 5, 50), {"limits": (-1, 2)}, ("linear", -1, 2, "inferno")),
        (np.full(9, 4.0), {}, ("linear", 2, 6, "inferno")),
        (np.array([0.1, 0.1 * (1 + 4e-16)]), {}, ("linear", 0.05, 0.15, "inferno")),
        (np.array([1, 1 + 4e-7], np.float32), {}, ("linear", 0.5, 1.5, "inferno")),
        (np.array([1, 1 + 4e-7]), {}, ("linear", 1, 1 + 4e-7, "inferno")),
        (np.array([np.nan]), {"colors": "viridis"}, ("linear", 0, 1, "viridis")),
        (np.append(np.linspace(1, 2, 5000), 9.0), {}, ("linear", 1, 2, "inferno")),
    ],
)
def test_colours_suit_the_values(
    values: np.ndarray, options: dict[str, Any], expected: tuple[str, float, float, str]
) -> None:
    """Values of both signs had logarithmic colours, and negative ones none."""
    scale = color_scale(values, **options)
    assert (scale.kind, scale.colors) == (expected[0], expected[3])
    assert (scale.low, scale.high) == pytest.approx(expected[1:3], rel=0.01)
    ends: Any = scale.norm([scale.low, scale.high])
    assert ends.tolist() == [0, 1]
    places = np.linspace(max(scale.low, 1e-30) if scale.kind == "log" else scale.low, scale.high, 7)
    # Colours of rendered meshes are those of their colour bars.
    np.testing.assert_allclose(scale.fractions(places), np.clip(scale.norm(places), 0, 1))


def test_logarithmic_colours_leave_out_extremes(gravpart: ambar.Snapshot) -> None:
    """Maps along a diagonal have values close to 0 at the edges of the box."""
    options: dict[str, Any] = {"axis": (1.0, 1.0, 1.0), "resolution": 64}
    picture = draw(gravpart, plot(**options, log=True)).axes[0]
    shown: Any = picture.images[0].get_array()
    values = shown.compressed()
    low, high = picture.images[0].get_clim()
    assert values.min() < low < np.percentile(values, 2)
    assert np.percentile(values, 99) < high < values.max()
    given = draw(gravpart, plot(**options, limits=(1e-9, 1e3))).axes[0]
    assert given.images[0].get_clim() == (1e-9, 1e3)


def test_pictures_of_few_particles_have_few_pixels(
    gravpart: ambar.Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def shape(**options: Any) -> tuple[int, ...]:
        return images.image_of(gravpart, "mass", plot(particles=True, **options)).shape

    assert shape() == (64, 64)
    assert shape(resolution=16) == (16, 16)
    monkeypatch.setattr(images, "_PARTICLES_PER_PIXEL", len(gravpart.particles) / 256**2)
    assert shape() == (256, 256)
    half = gravpart.info.boxlen / 2
    assert shape(width=half, length_unit="code") == shape(width=0.5) == (128, 128)
    assert shape(where="position_x < 0.2") == (64, 64)


def test_a_species_is_chosen() -> None:
    several: Any = SimpleNamespace(species={"electrons": "e", "ions": "i"}, location="run")
    request = plot(particles=True)
    assert images.particles_of(several, replace(request, species="ions")) == "i"
    with pytest.raises(ValueError, match="choose one of electrons, ions with --species"):
        images.particles_of(several, request)
    with pytest.raises(ValueError, match="'dust' does not exist; available: electrons, ions"):
        images.particles_of(several, replace(request, species="dust"))


def test_a_slice_has_no_weight() -> None:
    snapshot = ambar.open_snapshot(output("sedov"))
    with pytest.raises(ValueError, match="a weight applies to projections"):
        images.image_of(snapshot, "p", plot(slice_at=0.5, weight="density"))


def test_objects_draw_themselves(gravpart: ambar.Snapshot) -> None:
    """On a figure of pyplot, or on given axes, in which several panels are refused."""
    from matplotlib import pyplot

    pyplot.close("all")  # figures of other tests
    axes = gravpart.plot("density", slice_at=0.5, level=4)
    assert pyplot.get_fignums() == [axes.figure.number]
    expected = gravpart.amr.slice("density", level=4)
    np.testing.assert_array_equal(axes.images[0].get_array(), expected)
    assert gravpart.plot(["density", "vx", "p"]).shape == (3,)
    _, given = pyplot.subplots(1, 2)
    assert gravpart.plot("vx", ax=given[1]) is given[1]
    assert (len(given[0].images), len(given[1].images)) == (0, 1)
    with pytest.raises(ValueError, match="one panel to draw on ax, found 2"):
        gravpart.plot(["density", "vx"], ax=given[0])
    with pytest.raises(ValueError, match="resolutoin does not apply.*did you mean resolution"):
        gravpart.plot(resolutoin=3)
    pyplot.close("all")


def test_results_draw_themselves(gravpart: ambar.Snapshot) -> None:
    """Xarray draws them right side up, and the accessor with colours and scales that suit them."""
    from matplotlib import pyplot

    image = gravpart.amr.slice("density", axis="y", level=4)
    drawn: Any = image.plot.pcolormesh()
    assert (drawn.axes.get_xlabel(), drawn.axes.get_ylabel()[0]) == ("x [code_length]", "z")
    np.testing.assert_array_equal(drawn.get_array().reshape(image.shape), image)
    pyplot.close("all")
    axes = image.ambar.plot(colors="viridis")
    np.testing.assert_array_equal(axes.images[0].get_array(), image)
    assert axes.images[0].norm.__class__.__name__ == "LogNorm"
    diagram = gravpart.amr.phase("density", "pressure", bins=(12, 9), log=(True, False))
    axes = diagram.ambar.plot()
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    found = np.asarray(axes.collections[0].get_array()).reshape(9, 12)
    np.testing.assert_array_equal(found[diagram > 0], diagram.values[diagram > 0])
    bins = gravpart.amr.histogram("density", bins=10)
    line = bins.ambar.plot(log=True).lines[0]
    np.testing.assert_array_equal(line.get_ydata()[::2], bins)
    assert line.get_xdata()[-1] == bins["density_upper"][-1]
    profiles = gravpart.amr.profile("radius", ["density", "pressure"], bins=8)
    axes = profiles["density"].ambar.plot()
    assert axes.get_legend() is None
    profiles["density"].ambar.plot(ax=axes, label="again")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["density", "again"]
    steep = profiles["density"] * 0 + 10.0 ** np.arange(8)
    for values, log, expected in (
        (steep, None, "log"),
        (steep, False, "linear"),
        (steep % 1e7, None, "linear"),  # has a bin of 0
        (steep[:3], None, "linear"),
        (steep.drop_vars(["radius_lower", "radius_upper"]), None, "linear"),
    ):
        assert values.ambar.plot(log=log).get_yscale() == expected
    axes = steep.ambar.plot()
    assert steep[:3].ambar.plot(ax=axes).get_yscale() == "log"
    assert steep.ambar.plot(limits=(1.0, 10.0)).get_yscale() == "linear"
    both = profiles.ambar.plot()
    assert [one.get_ylabel().split()[0] for one in both] == ["density", "pressure"]
    assert image.ambar.plot().get_title().startswith("y = 0.5, time 0.0012")
    with pytest.raises(ValueError, match=r"found the shape \(16, 16, 16\)"):
        gravpart.amr.grid("density", level=4).ambar.plot()
    pyplot.close("all")


def test_results_of_cosmological_runs_have_the_redshift(tmp_path: Path) -> None:
    """Their titles had the time in code units."""
    from matplotlib import pyplot

    plotfiles.write(tmp_path / "plt")
    (tmp_path / "plt" / "comoving_a").write_text("0.25\n")
    image = ambar.open_snapshot(tmp_path / "plt").amr.slice("density", axis="z")
    assert image.attrs["redshift"] == 3.0
    assert image.ambar.plot().get_title() == "z = 2.5, redshift 3.00"
    pyplot.close("all")


def test_arrays_draw_themselves_at_their_coordinates() -> None:
    """Descending latitudes increase upwards, and times are dates."""
    xr = pytest.importorskip("xarray")
    from matplotlib import pyplot

    times = np.arange("2020-01-01", "2020-01-04", dtype="M8[D]").astype("M8[ns]")
    latitudes = ("lat", [60.0, 0, -60], {"units": "degrees_north"})
    values = np.arange(9.0).reshape(3, 3)
    array = xr.DataArray(values, {"lat": latitudes, "time": times}, ("lat", "time"))
    axes = array.ambar.plot()
    assert axes.get_ylim() == (-90, 90)
    np.testing.assert_array_equal(axes.images[0].get_array(), values[::-1])
    for drawn in (axes, array[0].ambar.plot()):
        drawn.figure.canvas.draw()
        assert drawn.xaxis.get_offset_text().get_text().startswith("2020-Jan")
    pyplot.close("all")


def test_tables_draw_themselves(gravpart: ambar.Snapshot) -> None:
    from matplotlib import pyplot

    cells = gravpart.with_units(ambar.Units(3e21, 1e-24, 1e15)).amr.read(["x", "rho", "p"])
    axes = cells.plot.scatter("rho", "p", color="x", units={"x": "pc"}, log=False)
    points = axes.collections[0]
    np.testing.assert_array_equal(points.get_offsets(), np.stack([cells["rho"], cells["p"]], 1))
    np.testing.assert_array_equal(points.get_array(), cells.column("x", "pc"))
    assert axes.child_axes[0].get_ylabel() == "x [$\\mathrm{pc}$]"
    assert cells.plot.scatter("rho", "p", log=True).get_yscale() == "log"
    axes = cells.plot.line("x", "rho")
    assert (np.diff(np.asarray(axes.lines[0].get_xdata())) >= 0).all()
    assert axes.get_xscale() == "linear"  # positions
    assert len(cells.plot("rho", "p").collections) == len(cells.plot("rho").lines) == 1
    bars: Any = cells.plot.hist("rho", weight="p", bins=9, log=(True, False)).lines[0]
    assert bars.get_ydata()[::2].sum() == pytest.approx(cells["p"].sum())
    with pytest.raises(KeyError, match="no column 'nothing'"):
        cells.plot.hist("nothing")
    with pytest.raises(ValueError, match="expected rows to draw"):
        gravpart.amr.read(["x"], where="rho < 0").plot.hist("x")
    pyplot.close("all")


def test_folders_of_runs_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], amrex_run: Path
) -> None:
    """Without a conversion, as a series."""
    for run_folder, numbers in ((RAMSES / "sedov3d_small", [1, 2]), (amrex_run, [1, 2])):
        target = tmp_path / "run.png"
        assert run(capsys, "plot", run_folder, target, "--dpi", 40)[0] == 0
        assert run(capsys, "plot", run_folder, target, "--output", numbers[0])[0] == 0
        code, _, error = run(capsys, "plot", run_folder, target, "--output", 7)
        assert (code, f"no output 7; available: {numbers[0]}" in error) == (3, True)
    # A simulation is still writing its last output.
    running = shutil.copytree(amrex_run, tmp_path / "running")
    header = max(running.iterdir()) / "Header"
    header.write_bytes(header.read_bytes()[:100])
    code, _, error = run(capsys, "plot", running, target)
    assert (code, "warning: the last output is left out" in error) == (0, True)
    single = RAMSES / "sedov3d_small" / "output_00001"
    code, _, error = run(capsys, "plot", single, target, "--output", 1)
    assert (code, "expected a series for an output" in error) == (2, True)
    code, _, error = run(capsys, "plot", single, "--movie", target)
    assert (code, "expected a series for a movie" in error) == (2, True)


@pytest.fixture
def amrex_run(tmp_path: Path) -> Path:
    for name in ("plt00001", "plt00002"):
        plotfiles.write(tmp_path / "plotfiles" / name)
    return tmp_path / "plotfiles"


def test_bad_input_leaves_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unknown fields, damaged chunks, targets that cannot be written."""
    store = tmp_path / "run.ambar"
    ambar.convert(output("gravpart"), store, fsync=False)
    folder = tmp_path / "pictures"
    folder.mkdir()
    code, _, error = run(capsys, "plot", store, folder / "x.png", "-f", "density,vorticty")
    assert (code, "did you mean 'vorticity" in error or "vorticity" in error) == (3, True)
    code, _, error = run(capsys, "plot", store, folder / "no" / "x.png")
    assert (code, "the folder to write to does not exist" in error) == (3, True)
    code, _, error = run(capsys, "plot", store, folder / "x.png", "--cmap", "infern")
    assert (code, "close matches: inferno" in error) == (2, True)
    (folder / "taken.png").mkdir()
    (folder / "taken.png" / "notes.txt").touch()
    code, _, error = run(capsys, "plot", store, folder / "taken.png")
    assert (code, "taken.png" in error) == (2, True)
    chunk = max(chunks(store, "amr/density/").values(), key=len)
    data = store.read_bytes()
    assert data.count(chunk) == 1
    store.write_bytes(data.replace(chunk, chunk[:-9] + bytes(9)))
    code, _, error = run(capsys, "plot", store, folder / "x.png")
    assert (code, "checksum" in error or "damaged" in error) == (1, True)
    assert [file.name for file in folder.iterdir()] == ["taken.png"]


def test_curved_coordinates_have_their_form(tmp_path: Path) -> None:
    """Cells of spherical coordinates are at their places in planes of a radius and an angle."""
    yt = pytest.importorskip("yt")
    yt.set_log_level(50)
    values = np.random.default_rng(2).uniform(1, 2, (8, 6, 4))
    dataset = yt.load_uniform_grid(
        {("gas", "density"): (values, "g/cm**3")},
        values.shape,
        length_unit=(2.0, "au"),
        bbox=np.array([[1, 5], [0, np.pi], [0, 2 * np.pi]]),
        geometry="spherical",
    )
    ambar.convert(dataset, tmp_path / "ball.ambar", fsync=False)
    snapshot = ambar.open_snapshot(tmp_path / "ball.ambar")
    axes = draw(snapshot, plot()).axes[0]
    assert axes.get_xlabel() == "R [$\\mathrm{au}$]"
    assert axes.get_ylabel() == "z [$\\mathrm{au}$]"
    corners = axes.collections[0].get_coordinates()
    np.testing.assert_allclose(np.hypot(*corners[0].T), 2 * np.linspace(1, 5, 9), rtol=1e-6)
    np.testing.assert_allclose(corners[0, :, 0], 0, atol=1e-9)  # the axis is vertical
    found = np.asarray(axes.collections[0].get_array()).reshape(6, 8)
    np.testing.assert_allclose(found, values[:, :, 2].T)
    assert draw(snapshot, plot()).get_suptitle().startswith("$\\phi$ = 3.142 rad")
    axes = draw(snapshot, plot(slice_at=0.5, axis="y")).axes[0]
    assert axes.get_xlim() == pytest.approx((-10, 10))
    ring = draw(snapshot, plot(slice_at=0.5, axis="x")).axes[0]
    assert ring.get_xlabel() == "$\\theta$ [$\\mathrm{rad}$]"
    for integrate in (snapshot.amr.project, snapshot.amr.map):
        with pytest.raises(ValueError, match="expected Cartesian coordinates for an integral"):
            integrate("density", axis="z")


def test_fields_of_plasmas_are_cut_in_readable_lengths(tmp_path: Path) -> None:
    """The field "rho" is not a density of mass there, so that its mean would be meaningless."""
    pytest.importorskip("openpmd_api")
    from tests.helpers.openpmd_files import write_warpx

    source = write_warpx(tmp_path / "warpx_%T.h5", (100,))
    ambar.convert(source, tmp_path / "warpx.ambar", fsync=False)
    snapshot = ambar.open_snapshot(tmp_path / "warpx.ambar")
    figure = draw(snapshot, plot(fields=("rho", "E_x")))
    assert figure.get_suptitle() == "z = 0 $\\mathrm{\\mu m}$, time 10 fs"
    assert [axes.get_xlabel() for axes in figure.axes] == ["x [$\\mathrm{\\mu m}$]"] * 2
    assert figure.axes[1].child_axes[0].get_ylabel() == "E x [$\\mathrm{V\\,m^{-1}}$]"


def test_plotfiles_get_units_and_charges_are_cut(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A field "rho" with negative values is not a density of mass, which is integrated."""
    boxes: Any = [[((0, 0, 0), (3, 3, 3))]]
    for name, sign in (("charge", -1.0), ("gas", 1.0)):
        values = np.full((2, 4, 4, 4), sign)
        plotfile = Plotfile(
            names=["Ey", "rho"],
            shape=(4, 4, 4),
            lower=(0.0, 0.0, 0.0),
            upper=(1.0, 1.0, 1.0),
            boxes=boxes,
            values=lambda *_, values=values: values,
        )
        plotfile.write(tmp_path / f"{name}_00000")
    charge, gas = (ambar.open_snapshot(tmp_path / f"{name}_00000") for name in ("charge", "gas"))
    assert images.with_usual_view(gas, "rho", plot()).slice_at is None
    assert images.with_usual_view(charge, "rho", plot()).slice_at == 0.5
    assert images.with_usual_view(charge, "Ey", plot()).weight is None
    command: tuple[Any, ...] = ("plot", tmp_path / "gas_00000", tmp_path / "gas.png", "--dpi", 20)
    command = (*command, "--width", 0.5, "--length-unit", "Mpc")
    code, _, error = run(capsys, *command)
    assert (code, "--code-units: Nyx, WarpX, SI or cgs" in error) == (4, True)
    assert run(capsys, *command, "--code-units", "Nyx")[0] == 0
    code, _, error = run(capsys, *command, "--width", "20pc")
    assert (code, "write 20 --length-unit pc" in " ".join(error.replace("│", "").split())) == (
        2,
        True,
    )
    with pytest.raises(ValueError, match="--where does not apply with --against"):
        draw(gas, plot(against=gas, where="rho > 0"))
    figure = draw(gas, plot(code_units="Nyx"))
    assert figure.axes[0].get_xlabel() == "x [$\\mathrm{Mpc}$]"


def test_particles_of_two_dimensions(tmp_path: Path) -> None:
    truth = write_output(tmp_path, Spec(ndim=2, hydro=HYDRO[:4], particles=PARTICLES))
    particles = ambar.open_snapshot(truth.folder).particles
    rows = particles.read(["x", "y", "mass"])
    image = particles.map("mass", method="nearest", resolution=16)
    size = image.attrs["pixel_size"]
    edges = np.linspace(0, 16 * size, 17)
    expected = np.histogram2d(rows["y"], rows["x"], (edges, edges), weights=rows["mass"])[0]
    np.testing.assert_allclose(image.fillna(0) * size**2, expected, rtol=1e-12, atol=1e-15)
    whole = particles.map("mass", resolution=16)
    assert float(whole.sum()) * size**2 == pytest.approx(float(rows["mass"].sum()))
    with pytest.raises(ValueError, match="seen along z; leave axis, up and depth out"):
        particles.map("mass", axis="x")


@pytest.mark.parametrize("name", ["sedov", "tube"])
def test_bounds_near_the_largest_number(name: str, tmp_path: Path) -> None:
    """The colours of errors ended at the bound, whose multiples are infinite in matplotlib."""
    once, twice = tmp_path / "once.ambar", tmp_path / "twice.ambar"
    source = output("sedov") if name == "sedov" else TUBE
    ambar.convert(source, once, error_bound={"density": 1e308})
    original, other = map(ambar.open_snapshot, (source, once))
    figure = draw(original, plot(against=other))
    figure.canvas.draw()
    if name == "sedov":
        assert figure.axes[2].images[0].get_clim() == (-1e300, 1e300)
    with pytest.raises(ambar.InvalidError, match="density has the error bound .* the largest num"):
        ambar.convert(once, twice, error_bound={"density": 1e308})
    assert not twice.exists()


def test_widths_of_many_boxes_have_a_warning(gravpart: ambar.Snapshot) -> None:
    """300, meant in pc, showed the whole box, so that the center seemed to be ignored."""
    options: dict[str, Any] = {"slice_at": 0.5, "center": "max:density"}
    with pytest.warns(UserWarning, match="the width 300 box is 300 times the box; ") as caught:
        draw(gravpart, plot(width=300.0, fields=("density", "pressure"), **options))
    assert len(caught) == 1
    twice: Any = [gravpart] * 2
    with pytest.warns(UserWarning, match=r"the width 1e\+09 pc is .* times the box") as caught:
        list(drawing.frames_of(twice, SeriesPlot(path="x", width=1e9, length_unit="pc")))
    assert len(caught) == 1


def test_plots_of_results_have_the_labels_of_pictures(gravpart: ambar.Snapshot) -> None:
    from matplotlib.text import Text

    amr = gravpart.amr
    options: dict[str, Any] = {"weight": "density", "resolution": 8}
    for image, text in (
        (amr.map("vz", **options), "mean vz, weighted by density [code units]"),
        (
            amr.map("vz", statistic="dispersion", **options),
            "dispersion of vz, weighted by density [code units]",
        ),
        (amr.map("level", statistic="maximum", resolution=8), "maximum of level"),
        (amr.project("vx", weight="density", level=4), "mean vx, weighted by density [code units]"),
        (amr.slice("vx", level=4), "vx [code units]"),
    ):
        found = image.ambar.plot().figure.findobj(Text)
        assert text in {one.get_text().replace("\n", " ") for one in found}
