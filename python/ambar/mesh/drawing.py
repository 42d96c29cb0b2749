"""Pictures of meshes, rendered off screen by PyVista."""

from __future__ import annotations

import os

from ambar import _core
from ambar._util.optional import require
from ambar.mesh.mesh import Mesh


def draw_mesh(
    mesh: Mesh,
    target: str | os.PathLike[str],
    *,
    scalars: str | None = None,
    colors: str = "viridis",
    log: bool = False,
    threads: int | None = None,
) -> None:
    """Render a mesh as a PNG: its surface, seen from a corner.

    Parameters
    ----------
    mesh
        The mesh.
    target
        The PNG.
    scalars
        The array on points or cells to colour it by; by default the active one, if there is one.
        No other is read.
    colors
        A colour map of matplotlib.
    log
        Whether colours follow the logarithm.
    threads
        Threads to decode with; all cores by default.

    Raises
    ------
    KeyError
        If the array does not exist.
    UnsupportedError
        If PyVista is not installed, or draws no such objects.
    ValueError
        If the mesh has no points, or PyVista writes no pictures of that suffix.
    """
    require("pyvista", purpose="drawing meshes", install="ambar[mesh]")
    import pyvista

    names: dict[str, list[str | None]] = {}
    for info in mesh.arrays:
        names.setdefault(info.association, []).append(info.name)
    wanted = None
    if scalars is not None:
        wanted = {of: [scalars] if scalars in names.get(of, ()) else [] for of in ("point", "cell")}
        if not any(wanted.values()):
            known = sorted({str(name) for of in ("point", "cell") for name in names.get(of, ())})
            raise _core.NotFoundError(
                f"{mesh.store.location}: no array {scalars!r} on points or cells; there are "
                f"{', '.join(known) or 'none'}"
            )
    read = mesh.read(
        point_data=None if wanted is None else wanted["point"],
        cell_data=None if wanted is None else wanted["cell"],
        field_data=[],
        threads=threads,
    )
    if not isinstance(read, pyvista.DataObject) or isinstance(read, pyvista.Table):
        raise _core.UnsupportedError(f"{mesh.store.location}: PyVista draws no {mesh.type}")
    if isinstance(read, pyvista.DataSet) and not read.n_points:
        raise _core.InvalidError(f"{mesh.store.location}: the mesh has no points to draw")
    # VTK warns of every way to a screen that there is not, before it takes the one that needs none.
    with pyvista.vtk_verbosity("off"):
        plotter = pyvista.Plotter(off_screen=True)
        try:
            plotter.add_mesh(read, scalars=scalars, cmap=colors, log_scale=log)
            plotter.add_axes()
            plotter.screenshot(os.fspath(target))
        except ValueError as error:
            what = " ".join(str(error).split())
            raise _core.InvalidError(
                f"{os.fspath(target)}: PyVista draws no such picture: {what}"
            ) from error
        finally:
            plotter.close()
