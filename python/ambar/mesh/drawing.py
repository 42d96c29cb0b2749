"""Pictures of meshes: surfaces rendered off screen by PyVista, plane meshes with axes, tables."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from ambar import _core
from ambar._util.optional import require
from ambar._util.properties import cached_property
from ambar._util.text import suggestion
from ambar.figures.colors import (
    SEQUENTIAL,
    ColorScale,
    check_colors,
    check_limits,
    color_scale,
    error_scale,
)
from ambar.figures.files import save_figure, write_movie
from ambar.figures.labels import version_names
from ambar.figures.panels import Line, LinePanel, Panel, ViewPanel, draw_grid
from ambar.kinds.request import PlotRequest
from ambar.mesh.storage.description import field_entries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ambar.mesh.mesh import Mesh
    from ambar.mesh.series import MeshSeries

_SHARP_ANGLE = 40.0
"""The angle between faces from which their edge is drawn, degrees."""
_FEWEST_OF_VOLUME = 64
"""Cells of the smallest unstructured grid that is drawn as planes."""
_FILLED = 0.98
"""The part of a box that the cells of such a grid fill at least."""
_PIXELS = 1000
"""The longer side of a rendered view."""
_FEW_CELLS = 4000
"""Surfaces of fewer cells are drawn with their edges."""
_LINE_WIDTH = 12.0
"""The width of cells that are lines, pixels before smoothing."""
_COLORS_OF_LINES = "turbo"
"""The colour map of lines, which has no pale end on white."""
_MAX_STEPS = 4
"""Steps of a series in a picture without a choice."""
_MAX_SAMPLED = 8
_MAX_COLUMNS = 6
"""Columns of a table that are drawn without a choice."""
_COLUMNS = 3
_DRAWN = ("point", "cell")
"""The associations of arrays that are drawn."""
_NO_FIELDS = (
    "vtkoriginal",
    "vtkghosttype",
    "globalids",
    "globalnodeid",
    "globalelementid",
    "normals",
    "texture coordinates",
    "tcoords",
    "faceindex",
)
"""The beginnings of names of arrays that number points and cells, or describe the surface."""
_NO_VECTORS = re.compile(r"(.*[^a-z])?(colou?rs?|rgba?)|.*normals", re.IGNORECASE)
"""Names of arrays of several components that are colours or normals, not fields."""
_CORNER = np.array([1.0, -1.3, 0.9])
"""The direction to the viewer of a mesh that is not in a plane."""


@dataclass(frozen=True, kw_only=True)
class MeshPlot(PlotRequest):
    """The options of ``ambar plot`` for a mesh."""

    supported_fields: ClassVar[tuple[str, ...]] = ("against",)

    colors: str | None = None
    log: bool | None = None
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class MeshSeriesPlot(MeshPlot):
    """The options of ``ambar plot`` for a series of meshes."""

    supported_fields: ClassVar[tuple[str, ...]] = PlotRequest.supported_fields

    output: int | None = None


@dataclass(frozen=True)
class _Drawing:
    """A mesh that is drawn: a PyVista object with one array, and the name of the array."""

    shape: Any
    name: str | None
    values: np.ndarray
    """The values of the array; magnitudes of vectors; empty without one."""
    array: str | None = None
    """The name of the array in the store."""
    outlines: tuple[Any, ...] = ()
    """The edges of blocks without the array."""

    @property
    def label(self) -> str:
        """The label of the colour bar."""
        return (self.name or "").replace("_", " ")

    @cached_property
    def points(self) -> np.ndarray:
        """The finite points of all that is drawn: float64 (points, 3)."""
        parts = [part.points for part in (self.shape, *self.outlines) if part.n_points]
        points = np.concatenate([np.empty((0, 3)), *parts])
        finite: np.ndarray = points[np.isfinite(points).all(axis=1)]
        return finite


@dataclass(frozen=True)
class _Coloring:
    """The colours that steps have in common, of an array that some of them have."""

    array: str | None
    label: str
    scale: ColorScale


def draw(opened: Mesh | MeshSeries, request: MeshPlot, on: Figure | Axes | None = None) -> Figure:
    """Draw a mesh or a series of meshes on a figure, by default a new one, or on axes.

    A mesh in a plane has axes. Others are seen from a corner; of a grid that fills a volume, three
    planes through its middle. Only the arrays that are drawn are read.

    Raises
    ------
    KeyError
        If an array does not exist.
    UnsupportedError
        If PyVista is not installed, or cannot draw the type of the mesh.
    ValueError
        If the mesh has no points, or the limits or the colours are invalid.
    """
    require("pyvista", purpose="drawing meshes", install="ambar[mesh]")
    if request.colors is not None:
        check_colors(request.colors)
    if request.limits is not None:
        check_limits(request.limits)
    if isinstance(opened, Sequence):
        meshes, titles = _steps(opened, request)
    else:
        meshes, titles = [opened], [""]
    if request.against is not None:
        step = request.output if isinstance(request, MeshSeriesPlot) else None
        other: Any = request.against
        other = other[-1 if step is None else step] if isinstance(other, Sequence) else other
        grid = [_comparison(meshes[-1], other, name, request) for name in request.fields or (None,)]
    elif len(meshes) > 1:
        grid = _series_grid(meshes, titles, request)
    else:
        panels = [_panel(meshes[0], name, request) for name in request.fields or (None,)]
        panels = [replace(panel, title=titles[0]) for panel in panels]
        grid = [panels[n : n + _COLUMNS] for n in range(0, len(panels), _COLUMNS)]
    if not request.title:
        grid = [[replace(panel, title="") for panel in row] for row in grid]
    return draw_grid(grid, on=on)


def write_picture(opened: Mesh | MeshSeries, request: MeshPlot) -> Path:
    """Write a picture or a movie of meshes, and return its path."""
    require("matplotlib", purpose="ambar plot", install="ambar[plot]")
    if request.movie is not None:
        if not isinstance(opened, Sequence):
            raise _core.InvalidError(
                f"{request.path}: expected a series for a movie, found one mesh; leave --movie out"
            )
        _steps(opened, request)  # raises an error for an empty series
        frames = _frames(opened, request)
        return write_movie(frames, request.movie, rate=request.rate, dpi=request.dpi)
    return save_figure(draw(opened, request), request.target_of(*request.fields), request.dpi)


def _steps(series: MeshSeries, request: MeshPlot) -> tuple[list[Mesh], list[str]]:
    """Return the steps that a picture shows, and their titles."""
    count = len(series)
    if not count:
        raise _core.InvalidError(f"{series.location}: expected meshes to draw, found none")
    output = request.output if isinstance(request, MeshSeriesPlot) else None
    if output is not None:
        if not -count <= output < count:
            raise _core.NotFoundError(
                f"{series.location}: no step {output}; expected 0 to {count - 1}"
            )
        places = [range(count)[output]]
    elif request.against is not None:
        places = [count - 1]
    else:
        places = np.linspace(0, count - 1, min(count, _MAX_STEPS)).round().astype(int).tolist()
    return [series[n] for n in places], [_title_of(series, n) for n in places]


def _title_of(series: MeshSeries, step: int) -> str:
    time = series.times[step]
    return f"step {step}" + ("" if time is None else f", time {time:g}")


def _panel(mesh: Mesh, name: str | None, request: MeshPlot) -> Panel:
    """Return a panel of an array of a mesh, by default the active one or the first of numbers."""
    if mesh.type == "Table":
        return _table_panel(mesh, name, request)
    (drawn,) = _read_all([mesh], name or _default_array(mesh), request)
    return _view(drawn, request)


def _default_array(mesh: Mesh) -> str | None:
    """Return the active array of a mesh, or the first one of numbers on points or cells.

    Arrays with one value everywhere are chosen only if there is no other one.
    """
    names = _arrays_to_choose(mesh)
    if len(names) < 2:
        return next(iter(names), None)
    return next((name for name in names if not _is_constant(mesh, name)), names[0])


def _is_constant(mesh: Mesh, name: str) -> bool:
    """Return whether an array has one value or vector everywhere, except NaN.

    Arrays in blocks are not read, and count as variable.
    """
    info = next(one for one in mesh.arrays if one.name == name and one.association in _DRAWN)
    if info.block:
        return False
    values = mesh.read_array(name, association=cast("Any", info.association))
    rows = values.reshape(len(values), math.prod(values.shape[1:]))
    rows = rows[~np.isnan(rows).any(axis=1)]
    return bool((rows == rows[:1]).all())


def _read_all(meshes: Sequence[Mesh], name: str | None, request: MeshPlot) -> list[_Drawing]:
    """Read an array of meshes. Those without values of it are plain.

    Raises
    ------
    KeyError
        If the request names the array, and no mesh has it.
    ValueError
        If the request names the array, and no mesh has values of it to draw.
    """
    having = [mesh for mesh in meshes if _has_array(mesh, name)]
    if request.fields and not having:
        raise _missing(meshes[0], name)
    drawn = [_read(mesh, name, request) for mesh in meshes]
    if request.fields and all(one.name is None for one in drawn):
        raise _missing(having[0], name)
    return drawn


def _read(mesh: Mesh, name: str | None, request: MeshPlot) -> _Drawing:
    """Read a mesh with an array. It is plain if the name is None, or no block has values of it."""
    import pyvista

    known = {(info.association, info.name) for info in mesh.arrays if info.name}
    wanted: dict[str, Any] = {f"{of}_data": [name] if (of, name) in known else [] for of in _DRAWN}
    read = mesh.read(**wanted, field_data=[], threads=request.threads)
    found = _drawable(read, pyvista, name)
    if found is None:
        raise _core.UnsupportedError(f"{mesh.location}: PyVista cannot draw a {mesh.type}")
    shape, without = found
    if not shape.n_points or not np.isfinite(shape.points).all(axis=1).any():
        raise _core.InvalidError(f"{mesh.location}: the mesh has no points to draw")
    return replace(_with_values(shape, name), outlines=tuple(map(_edges_of, without)))


def _has_array(mesh: Mesh, name: str | None) -> bool:
    return any(info.name == name and info.association in _DRAWN for info in mesh.arrays)


def _missing(mesh: Mesh, name: str | None) -> Exception:
    """Return the error for a mesh without values of an array."""
    if _has_array(mesh, name):
        return _core.InvalidError(
            f"{mesh.location}: expected values of {name!r} in a block with points, found none; "
            "choose another array"
        )
    names = sorted({info.name for info in mesh.arrays if info.name and info.association in _DRAWN})
    step = f" of {mesh.path}" if mesh.path else ""
    return _core.NotFoundError(
        f"{mesh.location}: no array {name!r} on points or cells{step}; "
        f"{suggestion(str(name), names)}"
    )


def _default_of_steps(meshes: Sequence[Mesh]) -> str | None:
    """Return the first of the arrays of all steps that differs in the first and the last one.

    If none differs, return the first of the arrays that most steps have.
    """
    counts = Counter(name for mesh in meshes for name in _arrays_to_choose(mesh))
    names = [name for name, count in counts.items() if count == len(meshes)]
    differing = (name for name in names if _differs(meshes[0], meshes[-1], name))
    return next(differing, max(counts, key=counts.__getitem__, default=None))


def _differs(first: Mesh, last: Mesh, name: str) -> bool:
    """Return whether an array of two steps differs; values that are stored once are not read."""
    one, two = (
        next(array for array in mesh.arrays if array.name == name) for mesh in (first, last)
    )
    if [part.place for part in one._storage] == [part.place for part in two._storage]:
        return False
    if one.block or one.shape != two.shape:
        return True
    on: Any = one.association
    before, after = (mesh.read_array(name, association=on) for mesh in (first, last))
    return not np.array_equal(before, after, equal_nan=before.dtype.kind == "f")


def _arrays_to_choose(mesh: Mesh) -> list[str]:
    """Return arrays of numbers on points or cells, first the active ones."""
    names = [
        info.name
        for info in mesh.arrays
        if info.association in _DRAWN
        and info.name
        and info.dtype not in ("string", "bytes")
        and not info.name.lower().startswith(_NO_FIELDS)
        and not (info.shape[1:] and info.shape[-1] > 2 and _NO_VECTORS.fullmatch(info.name))
    ]
    active = [
        entry.get("name")
        for _, entry, _ in field_entries(mesh._about)
        if "scalars" in (entry.get("active") or ())
    ]
    return list(dict.fromkeys(name for name in [*active, *names] if name in names))


def _drawable(read: Any, pyvista: Any, name: str | None) -> tuple[Any, list[Any]] | None:
    """Return one PyVista dataset of an object, and its blocks without the array `name`.

    If no block has the array, the dataset has all blocks. None if the object cannot be drawn.
    """
    from vtkmodules.vtkCommonDataModel import vtkCompositeDataSet, vtkDataSet

    if isinstance(read, pyvista.DataSet):
        return read, []
    if isinstance(read, vtkCompositeDataSet):
        leaves = []
        iterator = read.NewIterator()
        iterator.InitTraversal()
        while not iterator.IsDoneWithTraversal():
            leaf = iterator.GetCurrentDataObject()
            if isinstance(leaf, vtkDataSet) and leaf.GetNumberOfPoints():
                leaves.append(pyvista.wrap(leaf))
            iterator.GoToNextItem()
        having: list[Any] = []
        without: list[Any] = []
        for leaf in leaves:
            (having if name in {*leaf.point_data, *leaf.cell_data} else without).append(leaf)
        if not having:
            having, without = leaves, []
        _complete(having, name)
        return pyvista.MultiBlock(having).combine() if having else pyvista.PolyData(), without
    if isinstance(read, vtkDataSet):
        return pyvista.wrap(read), []
    return None


def _edges_of(block: Any) -> Any:
    """Return the sharp edges and the boundary of a block, or the edges of its bounds."""
    surface = block.extract_surface(algorithm="dataset_surface") if block.n_cells else block
    edges = None
    if block.n_cells and surface.n_cells:
        edges = _sharp_edges(surface)
    return edges if edges is not None and edges.n_cells else block.outline()


def _sharp_edges(surface: Any) -> Any:
    return surface.extract_feature_edges(_SHARP_ANGLE, manifold_edges=False)


def _complete(blocks: Sequence[Any], name: str | None) -> None:
    """Give an array on points or cells of some blocks to all: combined blocks keep common ones."""
    for of, count in (("point_data", "n_points"), ("cell_data", "n_cells")):
        tables = [getattr(block, of) for block in blocks]
        shapes = [np.shape(table[name])[1:] for table in tables if name in table]
        for block, table in zip(blocks, tables, strict=True) if shapes else ():
            missing = np.full((getattr(block, count), *shapes[0]), np.nan)
            table[name] = np.asarray(table[name], np.float64) if name in table else missing


def _with_values(shape: Any, name: str | None) -> _Drawing:
    """Return a mesh with only the values that are drawn, as its active scalars."""
    is_of_points = name in shape.point_data
    if name is None or not (is_of_points or name in shape.cell_data):
        return _Drawing(shape, None, np.empty(0))
    data = shape.point_data if is_of_points else shape.cell_data
    values = np.asarray(data[name], np.float64)
    text = name
    if values.ndim > 1:
        values = np.linalg.norm(values.reshape(len(values), -1), axis=1)
        text = f"magnitude of {name}"
    drawn = shape.copy(deep=False)
    drawn.clear_data()
    (drawn.point_data if is_of_points else drawn.cell_data)["drawn"] = values
    return _Drawing(drawn, text, values, name)


def _view(drawn: _Drawing, request: MeshPlot, scale: ColorScale | None = None) -> Panel:
    """Return a panel of a rendered mesh."""
    if scale is None and drawn.name is not None:
        scale = _scale_of([drawn], request)
    points = drawn.points
    bounds = np.stack([points.min(axis=0), points.max(axis=0)], axis=1)
    sizes = np.ptp(bounds, axis=1)
    flat = [axis for axis in range(3) if sizes[axis] <= 1e-9 * sizes.max()]
    bar: dict[str, Any] = {"scale": scale, "bar_label": drawn.label, "values": drawn.values}
    if len(flat) == 1:
        x, y = (axis for axis in range(3) if axis not in flat)
        extent = (*bounds[x].tolist(), *bounds[y].tolist())
        pixels = _render(drawn, scale, (x, y, flat[0]))
        bar |= {"x_label": "xyz"[x], "y_label": "xyz"[y]}
        return ViewPanel(pixels=pixels, extent=extent, **bar)
    return ViewPanel(pixels=_render(drawn, scale, None), **bar)


def _scale_of(drawn: Sequence[_Drawing], request: MeshPlot) -> ColorScale:
    values = np.concatenate([one.values for one in drawn])
    scale = color_scale(values, log=request.log, limits=request.limits, colors=request.colors)
    is_pale = request.colors is None and scale.colors == SEQUENTIAL
    if is_pale and all(_has_only_lines(one.shape) for one in drawn):
        return replace(scale, colors=_COLORS_OF_LINES)
    return scale


def _render(
    drawn: _Drawing, scale: ColorScale | None, plane: tuple[int, int, int] | None
) -> np.ndarray:
    """Return the pixels of a picture of a mesh: red, green and blue of shape (rows, columns, 3).

    `plane` has the horizontal axis, the vertical axis and the normal of a plane mesh, whose picture
    ends at the bounds of the mesh. Without it, the mesh is seen from a corner.
    """
    import pyvista

    shape = drawn.shape
    fills_volume = plane is None and shape.n_cells and _is_volume(shape)
    options: dict[str, Any] = {"color": "#9fb4c7"}
    if scale is not None and drawn.name is not None:
        # Colours are looked up here, so that they are those of the colour bar.
        colored = shape.copy(deep=False)
        data = colored.point_data if "drawn" in colored.point_data else colored.cell_data
        data["drawn"] = scale.fractions(np.asarray(data["drawn"]))
        shape = colored
        options = {"scalars": "drawn", "cmap": scale.colors, "clim": (0.0, 1.0)}
        options |= {"nan_color": "lightgray", "show_scalar_bar": False}
    is_box = fills_volume and not drawn.outlines
    camera = _camera_of(shape.outline().points if is_box else drawn.points, plane)
    scale_of_pixels = _PIXELS / max(camera.width, camera.height)
    size = [max(round(side * scale_of_pixels), 60) for side in (camera.width, camera.height)]
    # VTK warns of each display that does not exist, before it renders without one.
    with pyvista.vtk_verbosity("off"):
        plotter = pyvista.Plotter(off_screen=True, window_size=size)
        try:
            plotter.set_background("white")
            plotter.enable_anti_aliasing("ssaa")
            if fills_volume:
                for part in shape.slice_orthogonal():
                    if part.n_cells:
                        plotter.add_mesh(part, lighting=False, **options)
                plotter.add_mesh(shape.outline(), color="#505050", line_width=1.5)
            else:
                _add_surface(plotter, shape, options, is_flat=plane is not None)
            for edges in drawn.outlines:
                plotter.add_mesh(edges, color="#808080", line_width=1.5, lighting=False)
            if plane is None:
                plotter.add_axes(color="black", line_width=3, viewport=(0, 0, 0.16, 0.16))
            plotter.camera_position = [camera.position, camera.middle, camera.up]
            plotter.enable_parallel_projection()
            plotter.camera.parallel_scale = camera.height / 2
            plotter.reset_camera_clipping_range()
            image = np.asarray(plotter.screenshot(return_img=True))
        finally:
            plotter.close()
    return image[..., :3]


def _add_surface(plotter: Any, shape: Any, options: dict[str, Any], *, is_flat: bool) -> None:
    """Add the surface of a mesh, with edges if there are few; points as spheres.

    Colours of values are those of the colour bar, without shades; the surface has its sharp edges.
    """
    has_shades = "scalars" not in options
    if not shape.n_cells or _has_only_points(shape):
        size = float(np.clip(30000 / shape.n_points, 8, 18))
        plotter.add_mesh(
            shape.points if not shape.n_cells and "scalars" not in options else shape,
            style="points",
            render_points_as_spheres=True,
            point_size=size,
            lighting=has_shades,
            **options,
        )
        return
    if _has_only_lines(shape):
        plotter.add_mesh(shape, line_width=_LINE_WIDTH, lighting=False, **options)
        return
    is_small = shape.n_cells < _FEW_CELLS
    light: dict[str, Any] = {"lighting": False}
    if has_shades and not is_flat:
        light = {"ambient": 0.55, "diffuse": 0.5}
    edges: dict[str, Any] = {"edge_color": "#404040", "line_width": 0.6, "edge_opacity": 0.5}
    plotter.add_mesh(
        shape,
        show_edges=is_small,
        smooth_shading=not is_small and not is_flat and "drawn" not in shape.cell_data,
        split_sharp_edges=not is_small and not is_flat and "drawn" not in shape.cell_data,
        **(edges if is_small else {}),
        **light,
        **options,
    )
    if not is_flat and not has_shades:
        sharp = _sharp_edges(shape)
        if sharp.n_cells:
            plotter.add_mesh(sharp, color="#404040", line_width=1.0, lighting=False)


def _is_volume(shape: Any) -> bool:
    """Return whether a mesh has many cells that fill a box of three dimensions."""
    import pyvista

    dimensions = getattr(shape, "dimensions", None)
    if dimensions is not None:
        return min(dimensions) > 4 and hasattr(shape, "slice_orthogonal")
    if not isinstance(shape, pyvista.UnstructuredGrid) or shape.n_cells < _FEWEST_OF_VOLUME:
        return False
    size = np.ptp(np.reshape(shape.bounds, (3, 2)), axis=1)
    return bool(shape.volume > _FILLED * float(np.prod(size)) > 0)


def _has_only_lines(shape: Any) -> bool:
    return bool(shape.n_cells) and shape.GetMaxSpatialDimension() == 1


def _has_only_points(shape: Any) -> bool:
    verts = getattr(shape, "n_verts", None)
    return verts is not None and verts == shape.n_cells


@dataclass(frozen=True)
class _Camera:
    """Where a mesh is seen from, and the width and the height of the picture in its units."""

    position: np.ndarray
    middle: np.ndarray
    up: np.ndarray
    width: float
    height: float


def _camera_of(points: np.ndarray, plane: tuple[int, int, int] | None) -> _Camera:
    """Return the camera whose picture has the points of a mesh."""
    points = np.asarray(points, np.float64)
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0), points.max(axis=0)
    middle, size = (low + high) / 2, float((high - low).max()) or 1.0
    if plane is not None:
        x, y, normal = plane
        sight, up = np.zeros(3), np.zeros(3)
        # The horizontal axis is to the right.
        sight[normal], up[y] = (-1.0 if (x, y) == (0, 2) else 1.0), 1.0
        width, height = (high - low)[[x, y]].tolist()
        return _Camera(middle + size * sight, middle, up, width, height)
    sight = _CORNER / np.linalg.norm(_CORNER)
    right = np.cross((0.0, 0.0, 1.0), sight)
    right /= np.linalg.norm(right)
    up = np.cross(sight, right)
    sides = []
    for axis in (right, up):
        along = (points - middle) @ axis
        middle = middle + (along.max() + along.min()) / 2 * axis
        sides.append(1.05 * float(np.ptp(along)) or size)
    width, height = sides
    return _Camera(middle + 3 * size * sight, middle, up, max(width, 0.75 * height), height)


def _table_panel(mesh: Mesh, name: str | None, request: MeshPlot) -> Panel:
    """Return the columns of a table as lines over its rows."""
    columns = mesh.read(threads=request.threads)
    names = [key for key in columns.keys() if np.asarray(columns[key]).dtype.kind in "iuf"]  # noqa: SIM118 - a table of VTK
    if name is not None and name not in names:
        raise _core.NotFoundError(
            f"{mesh.location}: no column {name!r} of numbers; {suggestion(name, names)}"
        )
    chosen = [name] if name else names[:_MAX_COLUMNS]
    lines = []
    for column in chosen:
        values = np.asarray(columns[column], np.float64).reshape(len(columns[column]), -1)
        lines.append(Line(x=np.arange(len(values)), y=values[:, 0], label=column))
    if not lines:
        raise _core.InvalidError(f"{mesh.location}: the table has no columns of numbers")
    y_label = chosen[0] if len(chosen) == 1 else "value"
    is_log = (False, bool(request.log))
    return LinePanel(
        lines=lines, x_label="row", y_label=y_label, is_log=is_log, limits=request.limits
    )


def _series_grid(
    meshes: Sequence[Mesh], titles: Sequence[str], request: MeshPlot
) -> list[list[Panel]]:
    """Return a row of steps for each array, with one colour scale."""
    grid = []
    for name in request.fields or (_default_of_steps(meshes),):
        if meshes[0].type == "Table":
            grid.append([_table_panel(mesh, name, request) for mesh in meshes])
            continue
        drawn = _read_all(meshes, name, request)
        coloring = _coloring_of(drawn, request)
        row = [
            _step_panel(one, "" if grid else title, coloring, request)
            for one, title in zip(drawn, titles, strict=True)
        ]
        grid.append([*(replace(panel, has_bar=False) for panel in row[:-1]), row[-1]])
    return grid


def _coloring_of(drawn: Sequence[_Drawing], request: MeshPlot) -> _Coloring | None:
    """Return the colours of steps; None if none of them has values."""
    colored = [one for one in drawn if one.name is not None]
    if not colored:
        return None
    return _Coloring(colored[0].array, colored[0].label, _scale_of(colored, request))


def _step_panel(
    drawn: _Drawing, title: str, coloring: _Coloring | None, request: MeshPlot
) -> Panel:
    """Return a panel of a step. Steps without the array have the colour bar of the others."""
    if coloring is None:
        return replace(_view(drawn, request), title=title)
    if drawn.name is None:
        title = ", ".join(filter(None, (title, f"without {coloring.array}")))
    panel = _view(drawn, request, coloring.scale)
    return replace(panel, title=title, bar_label=coloring.label)


def _comparison(mesh: Mesh, other: Mesh, name: str | None, request: MeshPlot) -> list[Panel]:
    """Return panels of the original, of the other version, and of the error at its points."""
    (first,) = _read_all([mesh], name or _default_array(mesh), request)
    second = _read(other, first.array, request)
    if first.name is not None and second.name is None:
        raise _missing(other, first.array)
    if first.name is None or first.values.shape != second.values.shape:
        raise _core.InvalidError(
            f"expected two versions of the same mesh, found {len(first.values)} and "
            f"{len(second.values)} values in {mesh.location} and {other.location}"
        )
    scale = _scale_of([first, second], request)
    errors = second.values - first.values
    largest = float(np.nanmax(np.abs(errors), initial=0.0))
    stored = [path for info in other.arrays if info.name == second.array for path in info.paths]
    bounds = [other.store[path].error_bound for path in stored]
    bound = next((float(x) for x in bounds if isinstance(x, int | float) and x > 0), None)
    shape = first.shape.copy(deep=False)
    data = shape.point_data if "drawn" in shape.point_data else shape.cell_data
    data["drawn"] = errors
    names = version_names(mesh.location, other.location)
    text = f"error of {first.array}"
    error = _view(
        replace(first, shape=shape, name=text, values=errors),
        request,
        error_scale(largest, bound),
    )
    title = f"largest error {largest:.2g}" + (f", bound {bound:.2g}" if bound else "")
    return [
        replace(_view(first, request, scale), title=names[0], has_bar=False),
        replace(_view(second, request, scale), title=names[1], y_label=""),
        replace(error, title=title, y_label=""),
    ]


def _frames(series: MeshSeries, request: MeshPlot) -> Iterator[Figure]:
    """Yield a figure for each step of a series, with the same colours."""
    places = np.unique(np.linspace(0, len(series) - 1, _MAX_SAMPLED).astype(int)).tolist()
    sampled = [series[n] for n in places]
    name = request.fields[0] if request.fields else _default_of_steps(sampled)
    is_table = series[0].type == "Table"
    coloring = None if is_table else _coloring_of(_samples(series, sampled, name, request), request)
    for number, mesh in enumerate(series):
        title = _title_of(series, number)
        if is_table:
            panel = replace(_table_panel(mesh, name, request), title=title)
        else:
            panel = _step_panel(_read(mesh, name, request), title, coloring, request)
        yield draw_grid([[panel if request.title else replace(panel, title="")]])
        if request.report is not None:
            request.report(number + 1, len(series))


def _samples(
    series: MeshSeries, spread: Sequence[Mesh], name: str | None, request: MeshPlot
) -> list[_Drawing]:
    """Read the steps that decide the colours: of `spread`, else the first ones with values.

    Raises KeyError or ValueError, as `_read_all`, if the request names the array.
    """
    for meshes in (spread, series):
        drawn = (_read(mesh, name, request) for mesh in meshes if _has_array(mesh, name))
        colored = [*islice((one for one in drawn if one.name is not None), _MAX_SAMPLED)]
        if colored:
            return colored
    if request.fields:
        raise _missing(next((mesh for mesh in series if _has_array(mesh, name)), series[0]), name)
    return []
