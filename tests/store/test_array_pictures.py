"""Pictures of plain arrays and collections: axes by coordinates, slices, errors, movies."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.command_line import run
from tests.helpers.profiles import profile, written

xr = pytest.importorskip("xarray")
pytest.importorskip("matplotlib")

from matplotlib.figure import Figure  # noqa: E402

import ambar.xarray  # noqa: E402
from ambar.figures.panels import Line, LinePanel, PointPanel, draw_grid  # noqa: E402
from ambar.pictures import arrays, collection, positions  # noqa: E402
from ambar.pictures.options import ArraysPlot, CollectionPlot  # noqa: E402


@pytest.fixture
def ocean(tmp_path: Path) -> Path:
    """A field over time, depth and descending latitudes, with a value missing."""
    rng = np.random.default_rng(3)
    values = rng.normal(10, 4, (4, 5, 8)).astype("f4")
    values[0, 0, 0] = np.nan
    dataset = xr.Dataset(
        {
            "temp": (("time", "depth", "lat"), values, {"units": "degC", "long_name": "warmth"}),
            "mean": ("time", values[1:].mean((1, 2), where=True).repeat(2)[:4], {"units": "K"}),
            "name": ("time", list("abcd")),
        },
        {
            "time": np.arange("2020-01-01", "2020-01-05", dtype="M8[D]").astype("M8[ns]"),
            "depth": ("depth", [0.0, 10, 30, 70, 150], {"units": "m"}),
            "lat": ("lat", np.linspace(70, 0, 8), {"units": "degrees_north"}),
        },
    )
    dataset.ambar.write(tmp_path / "ocean.ambar")
    return tmp_path / "ocean.ambar"


def test_images_are_at_their_coordinates(ocean: Path) -> None:
    """Depths increase downwards, latitudes to the right; the largest array is drawn."""
    values = xr.open_dataset(ocean)["temp"].values
    figure: Any = arrays.draw(ambar.open_store(ocean), ArraysPlot(path="x", output=2))
    axes = figure.axes[0]
    left, right = axes.get_xlim()
    bottom, top = axes.get_ylim()
    assert (left, right) == (-5, 75)
    assert bottom > 150
    assert top < 0
    mesh = axes.collections[0]  # depths are uneven
    np.testing.assert_array_equal(np.asarray(mesh.get_array()).reshape(5, 8), values[2, ::-1, ::-1])
    assert axes.get_title() == "time = 2020-01-03 00:00 (3 of 4)"
    assert axes.child_axes[0].get_ylabel() == "warmth [$\\mathrm{degC}$]"
    assert axes.get_ylabel() == "depth [$\\mathrm{m}$]"


def test_lines_errors_and_movies(ocean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ambar.open_store(ocean)
    figure: Any = arrays.draw(store, ArraysPlot(path="x", fields=("mean",)))
    assert len(figure.axes[0].lines[0].get_xdata()) == 4
    with pytest.raises(KeyError, match="no array 'nothing'"):
        arrays.draw(store, ArraysPlot(path="x", fields=("nothing",)))
    with pytest.raises(
        ValueError, match="expected numbers in the array 'name', found <U1 of shape"
    ):
        arrays.draw(store, ArraysPlot(path="x", fields=("name",)))
    with pytest.raises(ValueError, match="invalid index 9 along 'time'; expected 0 to 3"):
        arrays.draw(store, ArraysPlot(path="x", output=9))
    with pytest.raises(ValueError, match="three or more dimensions for an output, found 'mean'"):
        arrays.draw(store, ArraysPlot(path="x", fields=("mean",), output=1))
    movie = ocean.with_name("movie.gif")
    assert run(capsys, "plot", ocean, "--movie", movie, "--dpi", 50)[0] == 0
    from PIL import Image

    with Image.open(movie) as frames:
        assert getattr(frames, "n_frames", 1) == 4
    code, _, error = run(capsys, "plot", ocean, "-f", "mean", "--movie", ocean.with_name("m.mp4"))
    assert (code, "expected an array of three dimensions for a movie" in error) == (2, True)
    code, _, error = run(capsys, "plot", ocean, "--movie", ocean.with_name("m.avi"))
    assert (code, "invalid format of a movie '.avi'" in error) == (2, True)
    assert sorted(file.name for file in ocean.parent.iterdir()) == ["movie.gif", "ocean.ambar"]


def test_movies_play(ocean: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reader = pytest.importorskip("imageio_ffmpeg")
    movie = ocean.with_name("movie.mp4")
    assert run(capsys, "plot", ocean, "--movie", movie, "--dpi", 50, "--rate", 5)[0] == 0
    frames = reader.read_frames(str(movie))
    about = next(frames)
    assert about["fps"] == 5
    assert len(list(frames)) == 4


def test_versions_of_an_array_are_compared(tmp_path: Path) -> None:
    y, x = np.mgrid[0:60, 0:80] / 10
    dataset = xr.Dataset({"wave": (("y", "x"), np.sin(x * y))})
    dataset.ambar.write(tmp_path / "a.ambar")
    dataset.ambar.write(tmp_path / "b.ambar", encoding={"wave": {"error_bound": 0.02}})
    other = ambar.open_store(tmp_path / "b.ambar")
    request = ArraysPlot(path="x", against=other)
    figure: Any = arrays.draw(ambar.open_store(tmp_path / "a.ambar"), request)
    first, second, error = (axes.images[0] for axes in figure.axes)
    np.testing.assert_allclose(error.get_array(), second.get_array() - first.get_array())
    assert error.get_clim() == (-0.02, 0.02)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:2] == ["a.ambar", "b.ambar"]
    assert titles[2].endswith("bound 0.02")
    few: Any = arrays.draw(ambar.open_store(tmp_path / "a.ambar"), replace(request, resolution=9))
    assert few.axes[2].get_title().startswith("largest error shown ")


def test_the_middle_of_a_volume_is_drawn(tmp_path: Path) -> None:
    """The first plane, at a side of the volume, is often empty."""
    values = np.random.default_rng(3).random((3, 9, 6, 7))
    dataset = xr.Dataset(
        {"rho": (("z", "y", "x"), values[0]), "T": (("time", "z", "y", "x"), values)},
        {"z": np.linspace(0, 1, 9)},
    )
    dataset["sea"] = ("depth", "y", "x"), values[1]
    dataset.ambar.write(tmp_path / "a.ambar")
    store = ambar.open_store(tmp_path / "a.ambar")
    request = ArraysPlot(path="x", fields=("rho", "T", "sea"))
    figure: Any = arrays.draw(store, request)
    titles = ["z = 0.5 (5 of 9)", "z = 0.5 (5 of 9), time 1 of 3", "depth 1 of 9"]
    assert [axes.get_title() for axes in figure.axes] == titles
    np.testing.assert_array_equal(figure.axes[1].images[0].get_array(), values[0, 4])
    assert figure.axes[0].images[0].get_array().max() == values[0, 4].max()
    chosen: Any = arrays.draw(store, replace(request, fields=("rho",), output=0))
    assert chosen.axes[0].get_title() == "z = 0 (1 of 9)"
    dataset.ambar.write(tmp_path / "b.ambar")
    other = ambar.open_store(tmp_path / "b.ambar")
    both: Any = arrays.draw(store, replace(request, fields=("rho",), against=other))
    assert [axes.get_title() for axes in both.axes[:2]] == [f"a.ambar, {titles[0]}", "b.ambar"]


@pytest.mark.parametrize(
    ("dim", "attrs", "index"),
    [
        *((dim, {}, 4) for dim in ("z", "k", "Latitude")),
        *((dim, {}, 0) for dim in ("ocean_time", "number", "channel", "month", "wave", "lev")),
        ("r", {"units": "kpc"}, 4),
        ("rows", {"units": "degrees_north"}, 4),
        ("eta", {"axis": "Z"}, 4),
        ("eta", {"axis": "Z", "positive": "down", "units": "m"}, 0),
        ("month", {"units": "1", "axis": "T"}, 0),
        ("wavelength", {"units": "nm"}, 0),
    ],
)
def test_sides_of_volumes(dim: str, attrs: dict[str, str], index: int, tmp_path: Path) -> None:
    """Of other dimensions, the first index is drawn."""
    dataset = xr.Dataset({"q": ((dim, "y", "x"), np.random.default_rng(3).random((9, 3, 4)))})
    if attrs:
        dataset[dim] = dim, np.arange(9.0), attrs
    dataset.ambar.write(tmp_path / "a.ambar")
    figure: Any = arrays.draw(ambar.open_store(tmp_path / "a.ambar"), ArraysPlot(path="x"))
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), dataset["q"][index])


def test_dimensions_without_names(tmp_path: Path) -> None:
    """Three are a volume. A movie of four has a frame for each index of the first one."""
    values = np.random.default_rng(3).random((2, 9, 3, 4))
    with ambar.create(tmp_path / "a.ambar") as writer:
        writer.create_array("three", values[1])
        writer.create_array("four", values)
    store = ambar.open_store(tmp_path / "a.ambar")

    def shown(name: str, output: int | None = None) -> np.ndarray:
        figure: Any = arrays.draw(store, ArraysPlot(path="x", fields=(name,), output=output))
        return np.asarray(figure.axes[0].images[0].get_array())

    np.testing.assert_array_equal(shown("three"), values[1, 4])
    np.testing.assert_array_equal(shown("three", -2), values[1, 7])
    np.testing.assert_array_equal(shown("four"), values[0, 0])
    np.testing.assert_array_equal(shown("four", 1), values[1, 0])
    for wrong in (9, -10):
        with pytest.raises(ValueError, match=f"invalid index {wrong} along .*; expected 0 to 8"):
            shown("three", wrong)
    frames = list(arrays._frames(store, ArraysPlot(path="x", fields=("four",))))
    for frame, drawn in zip(frames, values[:, 0], strict=True):
        np.testing.assert_array_equal(frame.axes[0].images[0].get_array(), drawn)


def test_collections_have_positions_and_profiles(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)

    def cast(number: int) -> Any:
        here = {"lon": ((), rng.uniform(0, 20)), "lat": ((), rng.uniform(-60, 0))}
        return profile(number).isel(time=0, drop=True).assign(here)

    casts = {f"p{number}": cast(number) for number in range(60)}
    stored = written(tmp_path / "casts.ambar", casts)
    figure: Any = collection.draw(stored, CollectionPlot(path="x"))
    where, profiles = figure.axes
    positions = where.collections[0].get_offsets()
    np.testing.assert_allclose(positions[:, 0], [one["lon"] for one in casts.values()])
    largest = [float(one["temperature"].max()) for one in casts.values()]
    np.testing.assert_allclose(where.collections[0].get_array(), largest, rtol=1e-6)
    assert len(profiles.lines) == 40
    assert profiles.get_title() == "40 of 60"
    first = profiles.lines[0]
    np.testing.assert_array_equal(first.get_xdata(), casts["p0"]["temperature"])
    np.testing.assert_array_equal(first.get_ydata(), casts["p0"]["depth"])
    assert profiles.yaxis_inverted()
    assert figure.get_suptitle() == "60 datasets"
    world = PointPanel(
        x=np.array([-180.0, 180]), y=np.array([-85.0, 80]), is_equal=True, y_range=(-90, 90)
    )
    axes = draw_grid([[world]]).axes[0]
    assert axes.get_ylim() == (-90, 90)
    some: Any = collection.draw(stored, CollectionPlot(path="x", where="platform == 'argo'"))
    assert some.get_suptitle() == "30 datasets"
    with pytest.raises(ValueError, match="found none under the condition"):
        collection.draw(stored, CollectionPlot(path="x", where="platform == 'none'"))
    with pytest.raises(KeyError, match="no variable 'salt'"):
        collection.draw(stored, CollectionPlot(path="x", fields=("salt",)))


def test_steps_of_a_running_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The last step by default; outputs and movies are steps, and names are those inside a step."""
    pytest.importorskip("mpi4py")
    import ambar.mpi

    with ambar.mpi.create(tmp_path / "wave.ambar") as writer:
        for number in range(3):
            with writer.step(time=0.1 * number) as path:
                for name, shape in {"little": (2, 2), "height": (4, 5)}.items():
                    writer.create_array(f"{path}/{name}", shape=shape, dtype="f8")
                    writer.write_region(f"{path}/{name}", np.full(shape, float(number)), (0, 0))
    store = ambar.open_store(tmp_path / "wave.ambar")

    def shown(**options: Any) -> tuple[str, float]:
        figure: Any = arrays.draw(store, ArraysPlot(path="x", **options))
        axes = figure.axes[0]
        return axes.get_title(), float(axes.images[0].get_array().max())

    assert shown() == ("step 2, time 0.2", 2)
    assert shown(output=1, fields=("height",)) == ("step 1, time 0.1", 1)
    assert shown(fields=("step_000000/little",)) == ("", 0)
    with pytest.raises(IndexError, match="expected the position of one of 3 steps"):
        shown(output=3)
    with pytest.raises(KeyError, match="no array 'hight' in step 2; did you mean 'height'"):
        shown(fields=("hight",))
    folder = tmp_path / "movie"
    assert run(capsys, "plot", store.location, "--movie", folder, "--dpi", 20)[0] == 0
    assert len(list(folder.iterdir())) == 3


def test_grids_of_a_collection_are_maps(tmp_path: Path) -> None:
    """They were drawn as a point, at the middle of their coordinates, and as a line of a corner."""
    lat, lon = np.linspace(-10, 10, 4), np.linspace(0, 30, 5)
    values = np.arange(40.0).reshape(2, 4, 5)
    dataset = xr.Dataset(
        {"sst": (("time", "lat", "lon"), values, {"units": "degC"})},
        {"time": np.array(["2024-01-01", "2024-01-02"], "M8[ns]"), "lat": lat, "lon": lon},
    )
    stored = written(tmp_path / "model.ambar", {"first": dataset, "second": dataset + 1})
    figure: Any = collection.draw(stored, CollectionPlot(path="x"))
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.images[0].get_array(), values[0])
    assert axes.get_title() == "first (1 of 2), time = 2024-01-01 00:00 (1 of 2)"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("lon", "lat")
    values[0] = np.nan
    gaps = {"later": dataset, "never": dataset.isel(time=[0]).assign_attrs(empty=1)}
    stored = written(tmp_path / "gaps.ambar", gaps)
    (axes,) = collection.draw(stored, CollectionPlot(path="x")).axes
    np.testing.assert_array_equal(axes.images[0].get_array(), values[1])
    assert axes.get_title() == "later (1 of 2), time = 2024-01-02 00:00 (2 of 2)"
    with pytest.raises(ambar.InvalidError, match="'sst' to draw, found only missing ones in .*'ne"):
        collection.draw(stored, CollectionPlot(path="x", where="empty == 1"))


def test_empty_variables_of_a_collection(tmp_path: Path) -> None:
    """They had only missing values according to the error, or were an IndexError of xarray."""
    grid = xr.Dataset(
        {"sst": (("time", "lat", "lon"), np.zeros((0, 4, 5)))},
        {"lat": np.linspace(-10, 10, 4), "lon": np.linspace(0, 30, 5)},
    )
    bins = xr.Dataset({"sst": (("depth", "bin"), np.zeros((3, 0)))})
    for number, (dataset, dim) in enumerate([(grid, "time"), (bins, "bin")]):
        stored = written(tmp_path / f"{number}.ambar", {"first": dataset})
        expected = f"values of 'sst' to draw, found the length 0 of its dimension '{dim}' in .*'fir"
        with pytest.raises(ambar.InvalidError, match=expected):
            collection.draw(stored, CollectionPlot(path="x"))
    profiles = {"first": bins, "second": xr.Dataset({"sst": ("depth", np.arange(3.0))})}
    stored = written(tmp_path / "profiles.ambar", profiles)
    figure: Any = collection.draw(stored, CollectionPlot(path="x", fields=("sst",)))
    assert [line.get_ydata().tolist() for line in figure.axes[0].lines] == [[0, 1, 2]]


def test_dates_of_a_few_days_are_drawn_without_warnings(tmp_path: Path) -> None:
    days = Line(x=np.arange(19723.0, 19727.5, 0.5), y=np.zeros(9))
    panel = LinePanel(lines=[days], x_label=" ", are_dates=(True, False))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_grid([[panel]]).savefig(tmp_path / "days.png")


@pytest.mark.parametrize("mark", ["vertical", "horizontal", "sloped"])
def test_lines_across_the_axes_do_not_change_their_scale(mark: str) -> None:
    """The ends of a vertical line, 0 and 1, were values: the axis was linear."""
    axes = Figure().subplots()
    if mark == "vertical":
        axes.axvline(2.0)
    elif mark == "horizontal":
        axes.axhline(-1.0)
    else:
        axes.axline((0.0, 1.0), slope=1.0)
    x = np.arange(1.0, 5.0)
    draw_grid([[LinePanel(lines=[Line(x=x, y=10**x)], is_log=(False, None))]], on=axes)
    assert axes.get_yscale() == "log"
    draw_grid([[LinePanel(lines=[Line(x=x, y=-x)], is_log=(False, None))]], on=axes)
    assert axes.get_yscale() == "linear"


@pytest.mark.parametrize(
    ("shape", "x", "y", "is_equal"),
    [
        ((1000, 4000), (-2, 3998), (-0.5, 999.5), True),
        ((1000, 3000), (-1.5, 2998.5), (-0.5, 999.5), True),
        ((3, 3000, 700), (-0.5, 699.5), (-1.5, 2998.5), False),
    ],
)
def test_axes_of_large_arrays_are_indices_of_the_array(
    shape: tuple[int, ...],
    x: tuple[float, float],
    y: tuple[float, float],
    is_equal: bool,
    tmp_path: Path,
) -> None:
    """They were indices of the values that a reduced picture has: 0 to 1000 of 4000."""
    values = np.broadcast_to(np.arange(shape[-1], dtype="f4"), shape)
    with ambar.create(tmp_path / "a.ambar") as writer:
        writer.create_array("a", values, dims=("t", "y", "x")[-len(shape) :])
    figure: Any = arrays.draw(ambar.open_store(tmp_path / "a.ambar"), ArraysPlot(path="x"))
    axes = figure.axes[0]
    assert (axes.get_xlim(), axes.get_ylim()) == (x, y)
    assert (axes.get_aspect() == 1) == is_equal


def test_dates_and_numbers_have_axes_of_their_own(tmp_path: Path) -> None:
    """Undecoded days of other calendars were drawn at 1970, beside the dates of datasets."""
    values = ("time", np.arange(5.0), {"units": "mm"})
    days = ("time", np.arange(5.0), {"units": "days since 1850-01-01", "calendar": "noleap"})
    dates = ("time", np.datetime64("1850-01-01", "ns") + np.arange(5) * np.timedelta64(1, "D"))
    raw, decoded = (xr.Dataset({"pr": values}, {"time": time}) for time in (days, dates))
    stored = written(tmp_path / "a.ambar", {"a": raw, "b": decoded, "c": raw})
    figure: Any = collection.draw(stored, CollectionPlot(path="x"))
    numbers, times = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["2 of 3", "1 of 3"]
    assert numbers.get_xlabel() == "time [days since 1850-01-01]"
    np.testing.assert_array_equal(numbers.lines[1].get_xdata(), np.arange(5))
    assert times.lines[0].get_xdata()[0] == (dates[1][0] - np.datetime64(0, "ns")) / np.timedelta64(
        1, "D"
    )


def test_coordinates_of_grids_are_not_positions(tmp_path: Path) -> None:
    """Grids were points at their middle, and a variable along latitudes was drawn."""
    grid = xr.Dataset(
        {
            "u8": ("lat", np.arange(4.0)),
            "mask": (("lat", "lon"), np.ones((4, 5))),
            "tas": (("time", "lat", "lon"), np.arange(60.0).reshape(3, 4, 5)),
        },
        {"time": np.arange(3.0), "lat": np.linspace(-10, 10, 4), "lon": np.linspace(0, 30, 5)},
    )
    stored = written(tmp_path / "a.ambar", {"a": grid, "b": grid + 1})
    assert positions.position_names(stored) is None
    figure: Any = collection.draw(stored, CollectionPlot(path="x"))
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.images[0].get_array(), grid["tas"][0])
    (lines,) = collection.draw(stored, CollectionPlot(path="x", fields=("u8",))).axes
    assert len(lines.lines) == 2


def test_tracks_are_at_the_middle_of_their_range(tmp_path: Path) -> None:
    track = xr.Dataset({"q": ("n", np.arange(2.0)), "lon": ("n", [0.0, 9]), "lat": ("n", [1.0, 3])})
    tracks = written(tmp_path / "a.ambar", {"a": track, "b": track.assign(lon=track.lat)})
    assert positions.coordinate_of(tracks, "lon").tolist() == [4.5, 2]
    where, lines = collection.draw(tracks, CollectionPlot(path="x")).axes
    np.testing.assert_array_equal(where.collections[0].get_offsets(), [[4.5, 2], [2, 2]])
    assert len(lines.lines) == 2


def test_more_axes_than_panels_are_in_the_title(tmp_path: Path) -> None:
    def year(number: int) -> Any:
        units = {"units": f"days since {2000 + number}-01-01", "calendar": "noleap"}
        return xr.Dataset(
            {"pr": ("time", np.arange(5.0))}, {"time": ("time", np.arange(5.0), units)}
        )

    stored = written(tmp_path / "a.ambar", {f"y{number}": year(number) for number in range(10)})
    figure: Any = collection.draw(stored, CollectionPlot(path="x"))
    assert len(figure.axes) == 3
    assert figure.get_suptitle() == "10 datasets, pr along 3 of 10 different axes"
    plain: Any = collection.draw(stored, CollectionPlot(path="x", title=False))
    assert not plain.get_suptitle()


def test_labels_of_pictures_fit() -> None:
    """Those of a bar in two lines were cut off, and long numbers of ticks ran into each other."""
    y = np.linspace(0, 0.02, 60)
    attrs = {"long_name": "density, integrated along the line of sight", "units": "code"}
    coords = {"z": 1.25 * y, "y": y}
    values = np.random.default_rng(3).random((60, 60))
    one = xr.DataArray(values, coords, ("z", "y"), "rho", attrs)
    figure = one.ambar.plot().figure
    figure.draw_without_rendering()
    drawn, sides = figure.get_tightbbox(), figure.get_size_inches()
    assert min(drawn.x0, drawn.y0, sides[0] - drawn.x1, sides[1] - drawn.y1) > 0
    many = one.to_dataset().assign(a=one, b=one).assign_coords(z=5 * y).ambar.plot()
    many[0].figure.draw_without_rendering()
    for axes in many:
        ends = [text.get_window_extent() for text in axes.get_xticklabels() if text.get_text()]
        shown = [end for end in ends if axes.bbox.x0 <= (end.x0 + end.x1) / 2 <= axes.bbox.x1 + 1]
        assert len(shown) >= 2
        assert all(a.x1 < b.x0 for a, b in itertools.pairwise(shown))


def test_nearly_constant_values_say_so() -> None:
    values = 9.6065e-3 * (1 + 1e-6 * np.random.default_rng(3).random((6, 8)))
    axes = xr.DataArray(values, dims=("y", "x"), name="p", attrs={"units": "Pa"}).ambar.plot()
    text = axes.child_axes[0].get_ylabel()
    assert text.endswith("\nrelative range 1e-06")


def test_dates_of_other_calendars_have_their_units(tmp_path: Path) -> None:
    pytest.importorskip("cftime")
    units = {"units": "days since 1850-01-01", "calendar": "noleap"}
    raw = xr.Dataset(
        {"pr": ("time", np.arange(5.0) ** 2)}, {"time": ("time", np.arange(5.0), units)}
    )
    raw.ambar.write(tmp_path / "a.ambar")
    figure: Any = arrays.draw(ambar.open_store(tmp_path / "a.ambar"), ArraysPlot(path="x"))
    assert figure.axes[0].get_xlabel() == "time [days since 1850-01-01]"
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_xdata(), np.arange(5))
    times = xr.date_range("2001-02-27", periods=5, freq="D", calendar="noleap", use_cftime=True)
    made = xr.DataArray(np.arange(5.0), {"time": times}, ("time",), "pr")
    axes = made.ambar.plot()
    assert axes.get_xlabel() == "time [days since 2001-02-27]"
    np.testing.assert_array_equal(axes.lines[0].get_xdata(), np.arange(5))
    with pytest.raises(ValueError, match="0 finite values"):
        made[:0].ambar.plot()


@pytest.mark.parametrize("attrs", [{}, {"units": "m"}])
def test_coordinates_without_a_width(attrs: dict[str, str]) -> None:
    """0.5 is less than the distance of large numbers in float64."""
    coords = {"y": ("y", np.arange(3.0), attrs), "x": ("x", [1e300], attrs)}
    axes = xr.DataArray(np.ones((3, 1)), coords, ("y", "x"), "q").ambar.plot()
    axes.figure.draw_without_rendering()
