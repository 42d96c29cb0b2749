"""Pictures of meshes: planes with axes, surfaces, volumes, points, tables, series and errors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.rendering import skip_without_rendering

pv = pytest.importorskip("pyvista")
pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _rendering() -> None:
    skip_without_rendering()


def picture(mesh: Any, path: Path, **options: Any) -> Any:
    from ambar.mesh.drawing import MeshPlot, draw

    ambar.write_mesh(mesh, path, mode="w", fsync=False)
    return draw(ambar.open_mesh(path), MeshPlot(path="x", **options))


def colours(figure: Any) -> np.ndarray:
    shown: np.ndarray = np.asarray(figure.axes[0].images[0].get_array())
    return shown


def test_a_plane_is_at_its_coordinates_with_its_colours(tmp_path: Path) -> None:
    plane = pv.Plane(center=(3, 1, 0), i_size=4, j_size=2, i_resolution=2, j_resolution=1)
    plane.clear_data()
    plane.cell_data["half"] = np.array([0.0, 1.0])
    figure = picture(plane, tmp_path / "plane.ambar", colors="gray")
    axes = figure.axes[0]
    assert axes.images[0].get_extent() == [1.0, 5.0, 0.0, 2.0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x", "y")
    pixels = colours(figure)
    assert pixels.shape == (500, 1000, 3)
    assert (pixels[50:-50, 50:450] < 3).all()
    assert (pixels[50:-50, 550:950] > 252).all()
    assert axes.child_axes[0].get_ylabel() == "half"


@pytest.mark.parametrize(
    ("limits", "labels"),
    [
        ((0.9, 70), ["1", "2", "5", "10", "20", "50"]),
        ((2, 70), ["2", "5", "10", "20", "50"]),
        ((24, 64), ["30", "40", "50", "60"]),
        ((64, 68), ["64", "65", "66", "67", "68"]),
        ((0.1, 4000), ["0.1", "1", "10", "100", "1000"]),
        ((2e4, 7e7), ["10^5", "10^6", "10^7"]),
        (
            (3e6, 7e6),
            ["3\\times10^6", "4\\times10^6", "5\\times10^6", "6\\times10^6", "7\\times10^6"],
        ),
    ],
)
def test_logarithmic_bars_have_numbers(
    limits: tuple[float, float], labels: list[str], tmp_path: Path
) -> None:
    """Bars of integers had ticks without numbers."""
    plane = pv.Plane(i_resolution=8, j_resolution=1)
    plane.clear_data()
    plane.cell_data["p"] = np.arange(8.0) * 10
    figure = picture(plane, tmp_path / "plane.ambar", log=True, limits=limits)
    figure.canvas.draw()
    bar = figure.axes[0].child_axes[0]
    shown = [
        re.sub(r"\\mathdefault|[${}]", "", label.get_text())
        for minor in (False, True)
        for label in bar.get_yticklabels(minor=minor)
        if limits[0] <= label.get_position()[1] <= limits[1]
    ]
    assert [text for text in shown if text] == labels


@pytest.mark.parametrize("kind", ["surface", "volume", "hexahedra", "points", "blocks"])
def test_meshes_fill_their_pictures(kind: str, tmp_path: Path) -> None:
    volume = pv.ImageData(dimensions=(9, 8, 7))
    volume["speed"] = np.arange(9.0 * 8 * 7)
    meshes = {
        "surface": pv.Sphere(),
        "volume": volume,
        "hexahedra": volume.cast_to_unstructured_grid(),
        "points": pv.PolyData(np.random.default_rng(1).normal(size=(500, 3))),
        "blocks": pv.MultiBlock([pv.Sphere(), pv.Cube(center=(2, 0, 0))]),
    }
    figure = picture(meshes[kind], tmp_path / "mesh.ambar")
    is_drawn = np.any(colours(figure) < 250, axis=2)
    rows, columns = (np.flatnonzero(np.any(is_drawn, axis=axis)) for axis in (1, 0))
    assert np.ptp(rows) > 0.85 * is_drawn.shape[0]
    assert np.ptp(columns) > 0.85 * is_drawn.shape[1]
    assert bool(figure.axes[0].child_axes) == (kind in ("volume", "hexahedra"))
    if kind == "hexahedra":
        expected = colours(picture(volume, tmp_path / "volume.ambar"))
        assert np.abs(colours(figure).astype(int) - expected).mean() < 1


def test_blocks_without_the_array_are_outlines(tmp_path: Path) -> None:
    planes = [pv.Plane(center=(x, 0, 0), i_resolution=1, j_resolution=1) for x in (0, 1, 2)]
    for plane in planes:
        plane.clear_data()
    for plane, value in zip(planes[:2], (1.0, 3.0), strict=True):
        plane.cell_data["T"] = [value]
    blocks = pv.MultiBlock(planes)
    figure = picture(blocks, tmp_path / "mb.ambar", fields=("T",), colors="gray")
    assert figure.axes[0].child_axes[0].get_ylabel() == "T"
    middle = colours(figure)[100]
    assert [int(middle[x].max()) for x in (150, 500)] == [0, 255]
    assert middle[850].min() == 255
    assert colours(figure)[100, -4:].min() < 230
    figure = picture(blocks, tmp_path / "mb.ambar")
    assert figure.axes[0].get_xlim() == (-0.5, 2.5)
    other = ambar.open_mesh(tmp_path / "mb.ambar")
    figure = picture(blocks, tmp_path / "same.ambar", fields=("T",), against=other)
    assert [axes.get_xlim() for axes in figure.axes] == [(-0.5, 2.5)] * 3
    lacking = pv.MultiBlock([pv.Plane(), pv.Plane()])
    with pytest.raises(KeyError, match="mb.ambar: no array 'Normals'"):
        picture(lacking, tmp_path / "n.ambar", fields=("Normals",), against=other)
    ball, box = pv.Sphere(), pv.Cube(x_length=2, y_length=2, z_length=2)
    ball["T"] = ball.points[:, 0]
    hidden = colours(picture(pv.MultiBlock([ball, box]), tmp_path / "in.ambar", colors="jet"))
    is_colored = np.ptp(hidden.astype(int), axis=2) > 100
    assert is_colored[300:700, 300:700].mean() > 0.3
    empty = pv.PolyData()
    empty.point_data["p"] = np.empty(0)
    with pytest.raises(ValueError, match="expected values of 'p' in a block with points"):
        picture(pv.MultiBlock([planes[0], empty]), tmp_path / "e.ambar", fields=("p",))


def test_tables_and_errors(tmp_path: Path) -> None:
    table = pv.Table({"a": np.arange(5.0), "name": np.array(list("abcde"))})
    figure = picture(table, tmp_path / "table.ambar")
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), np.arange(5.0))
    with pytest.raises(KeyError, match="no column 'b' of numbers; available: a"):
        picture(table, tmp_path / "table.ambar", fields=("b",))
    nowhere = pv.PolyData(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match="no points to draw"):
        picture(nowhere, tmp_path / "nan.ambar")


@pytest.mark.parametrize("name", ["T", "v"])
def test_steps_without_the_array_are_plain(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures and movies have the same titles and labels."""
    from ambar.mesh import drawing
    from ambar.mesh.drawing import MeshSeriesPlot, _frames, draw

    monkeypatch.setattr(drawing, "_PIXELS", 100)
    label = {"T": "T", "v": "magnitude of v"}[name]
    plain = pv.Sphere()
    colored = plain.copy()
    colored[name] = colored.points[:, 0] if name == "T" else colored.points * [1, 2, 3]
    empty = pv.PolyData()
    empty[name] = np.empty(0)
    without_values = pv.MultiBlock([plain, empty])
    for number, steps in enumerate(
        [(colored, plain), (plain, colored), (colored, without_values), (without_values, colored)]
    ):
        path = tmp_path / f"{number}.ambar"
        with ambar.open_mesh_series(path, "w-", fsync=False) as writing:
            for time, step in enumerate(steps):
                writing.add(step, float(time))
        series: Any = ambar.open_mesh_series(path)
        titles = ["step 0, time 0", "step 1, time 1"]
        titles[1 - number % 2] += f", without {name}"
        for fields in ((), (name,)):
            request = MeshSeriesPlot(path="x", fields=fields)
            figure = draw(series, request)
            assert [axes.get_title() for axes in figure.axes] == titles
            assert figure.axes[1].child_axes[0].get_ylabel() == label
            axes = [frame.axes[0] for frame in _frames(series, request)]
            assert [one.get_title() for one in axes] == titles
            assert [one.child_axes[0].get_ylabel() for one in axes] == [label, label]
        step = 1 - number % 2
        wrong, message = (
            (KeyError, f"no array '{name}' on .* of step_00000{step}; avail")
            if number < 2
            else (ValueError, f"expected values of '{name}' in a block with points")
        )
        with pytest.raises(wrong, match=message):
            draw(series, MeshSeriesPlot(path="x", fields=(name,), output=step))
        request = MeshSeriesPlot(path="x", fields=("U",))
        with pytest.raises(KeyError, match="no array 'U'"):
            draw(series, request)
        with pytest.raises(KeyError, match="no array 'U'"):
            next(_frames(series, request))


def test_series_movies_and_comparisons(tmp_path: Path) -> None:
    from ambar.mesh.drawing import MeshPlot, MeshSeriesPlot, draw, write_picture

    sphere = pv.Sphere()
    path = tmp_path / "series.ambar"
    with ambar.open_mesh_series(path, "w-", fsync=False) as writing:
        for step in range(3):
            sphere["fixed"] = sphere.points[:, 0]
            sphere["height"] = sphere.points[:, 2] * (step + 1.0)
            writing.add(sphere, time=0.5 * step)
    series: Any = ambar.open_mesh_series(path)
    figure = draw(series, MeshSeriesPlot(path="x"))
    assert [axes.get_title() for axes in figure.axes] == [
        f"step {n}, time {t}" for n, t in enumerate(("0", "0.5", "1"))
    ]
    assert [len(axes.child_axes) for axes in figure.axes] == [0, 0, 1]
    assert figure.axes[2].child_axes[0].get_ylabel() == "height"  # "fixed" is equal in all steps
    with pytest.raises(KeyError, match="no step 7; expected 0 to 2"):
        draw(series, MeshSeriesPlot(path="x", output=7))
    done: list[int] = []
    request = MeshSeriesPlot(
        path="x", movie=tmp_path / "frames", dpi=40, report=lambda n, _: done.append(n)
    )
    write_picture(series, request)
    assert sorted(file.name for file in (tmp_path / "frames").iterdir()) == [
        f"frame_{n:04d}.png" for n in range(3)
    ]
    assert done == [1, 2, 3]
    big = pv.Sphere(theta_resolution=50, phi_resolution=50)
    big["height"] = big.points[:, 2].astype("f8")
    pair = [tmp_path / name for name in ("a.ambar", "b.ambar")]
    ambar.write_mesh(big, pair[0], fsync=False)
    ambar.write_mesh(big, pair[1], error_bound={"height": 0.01}, fsync=False)
    first, second = map(ambar.open_mesh, pair)
    figure = draw(first, MeshPlot(path="x", fields=("height",), against=second))
    assert len(figure.axes) == 3
    assert figure.axes[2].get_title().endswith("bound 0.01")
    assert figure.axes[2].child_axes[0].get_ylim() == (-0.01, 0.01)
    both = MeshSeriesPlot(path="x", fields=("height", "Normals"), output=1, against=series)
    errors = draw(series, both).axes
    assert len(errors) == 6
    assert errors[2].get_title() == "largest error 0"


def test_fields_are_drawn_rather_than_normals_colours_and_constants(tmp_path: Path) -> None:
    """The magnitude of normals is 1 everywhere."""
    plane = pv.Plane(i_resolution=3, j_resolution=2)
    plane.clear_data()
    plane.point_data["Color"] = np.arange(36, dtype="u1").reshape(12, 3)
    plane.cell_data["cellNormals"] = np.tile([0.0, 0, 1], (6, 1))
    figure = picture(plane, tmp_path / "plain.ambar")
    assert not figure.axes[0].child_axes
    plane.cell_data["rank"] = np.zeros(6)
    figure = picture(plane, tmp_path / "constant.ambar")
    assert figure.axes[0].child_axes[0].get_ylabel() == "rank"
    plane.cell_data["color"] = np.arange(6.0)
    figure = picture(plane, tmp_path / "field.ambar")
    assert figure.axes[0].child_axes[0].get_ylabel() == "color"


@pytest.mark.parametrize("value", [1.0, np.nan])
def test_constant_vectors_are_not_drawn_without_a_choice(value: float, tmp_path: Path) -> None:
    plane = pv.Plane(i_resolution=3, j_resolution=2)
    plane.clear_data()
    plane.point_data["U"] = np.tile([value, 0, 0], (12, 1))
    plane.point_data["U"][0] = np.nan
    plane.point_data["p"] = np.arange(12.0)
    figure = picture(plane, tmp_path / "plane.ambar")
    assert figure.axes[0].child_axes[0].get_ylabel() == "p"
    plane.point_data["p"] = np.full(12, np.nan)
    plane.point_data["T"] = np.arange(12) % 2 == 0
    figure = picture(plane, tmp_path / "plane.ambar")
    assert figure.axes[0].child_axes[0].get_ylabel() == "T"
    plane.point_data["V"] = np.tile([value, 0, 0], (12, 1))
    empty = plane.extract_cells(np.zeros(6, bool))
    with pytest.raises(ValueError, match="no points to draw"):
        picture(empty, tmp_path / "empty.ambar")
