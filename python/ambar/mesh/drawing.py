"""Pictures of meshes, rendered off screen by PyVista, with a color bar of matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.optional import require
from ambar._util.text import suggestion
from ambar.figures.colors import check_colors, check_limits
from ambar.figures.files import save_figure
from ambar.kinds.request import PlotRequest
from ambar.mesh.mesh import Mesh


@dataclass(frozen=True, kw_only=True)
class MeshPlot(PlotRequest):
    """The options of ``ambar plot`` for a mesh."""

    colors: str = "inferno"
    log: bool = False
    limits: tuple[float, float] | None = None


def draw_mesh(mesh: Mesh, request: MeshPlot, title: str = "") -> Path:
    """Draw the surface of a mesh, seen from a corner, and return the path of the picture.

    A surface with colors is not lit, so that its colors are those of the color bar. Only the array
    `request.field` is read, the active array by default.

    Raises
    ------
    KeyError
        If the array does not exist.
    UnsupportedError
        If PyVista is not installed, or cannot draw the type of the mesh.
    ValueError
        If the mesh has no points, `limits` or `colors` are invalid, or matplotlib does not support
        the suffix of the target.
    """
    require("pyvista", purpose="drawing meshes", install="ambar[mesh]")
    import pyvista
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.figure import Figure

    scalars = request.fields[0] if request.fields else None
    colors, limits = request.colors, request.limits
    wanted: dict[str, Any] = {}
    if scalars is not None:
        known = {(info.association, info.name) for info in mesh.arrays}
        on = ("point", "cell")
        wanted = {f"{of}_data": [scalars] if (of, scalars) in known else [] for of in on}
        if not any(wanted.values()):
            names = sorted({str(name) for of, name in known if of in on})
            raise _core.NotFoundError(
                f"{mesh.store.location}: no array {scalars!r} on points or cells; "
                f"{suggestion(scalars, names)}"
            )
    read = mesh.read(**wanted, field_data=[], threads=request.threads)
    if not isinstance(read, pyvista.DataObject) or isinstance(read, pyvista.Table):
        raise _core.UnsupportedError(f"{mesh.store.location}: PyVista cannot draw a {mesh.type}")
    if isinstance(read, pyvista.DataSet) and not read.n_points:
        raise _core.InvalidError(f"{mesh.store.location}: the mesh has no points to draw")
    check_colors(colors)
    if limits is not None:
        check_limits(limits)
    # VTK warns of each display that does not exist, before it renders without one.
    with pyvista.vtk_verbosity("off"):
        plotter = pyvista.Plotter(off_screen=True, window_size=[6 * request.dpi, 5 * request.dpi])
        try:
            plotter.set_background("white")
            actor = plotter.add_mesh(
                read,
                scalars=scalars,
                cmap=colors,
                log_scale=request.log,
                clim=limits,
                lighting=False,
            )
            plotter.add_axes(color="black")
            bar = next(iter(plotter.scalar_bars.items()), None)
            ends = None if bar is None else bar[1].GetLookupTable().GetRange()
            if bar is None:
                actor.prop.lighting = True
            else:
                plotter.remove_scalar_bar(bar[0])
            image = plotter.screenshot(return_img=True)
        finally:
            plotter.close()
    figure = Figure(figsize=(7.2, 5.2), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(image, interpolation="none")
    axes.set_axis_off()
    if bar is not None and ends is not None:
        norm = LogNorm(*ends) if request.log else Normalize(*ends)
        figure.colorbar(ScalarMappable(norm, colors), ax=axes, label=bar[0].strip(), shrink=0.8)
    axes.set_title(title if request.title else "", fontsize=11)
    target = request.target_of(*([scalars] if scalars else []))
    return save_figure(figure, target, request.dpi)
