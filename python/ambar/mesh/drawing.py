"""Pictures of meshes, rendered off screen by PyVista."""

from __future__ import annotations

import os
from pathlib import Path

from ambar import _core
from ambar._util.disk_space import write_error
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
    mesh : Mesh
        The mesh.
    target : str or path-like
        The path of the picture.
    scalars : str, optional
        The array on points or cells that colors show; the active array by default. Only this array
        is read.
    colors : str, default "viridis"
        A color map of matplotlib.
    log : bool, default False
        Whether colors have a logarithmic scale.
    threads : int, optional
        The number of threads that decode; all cores by default.

    Raises
    ------
    KeyError
        If the array does not exist.
    UnsupportedError
        If PyVista is not installed, or cannot draw the type of the mesh.
    ValueError
        If the mesh has no points, or PyVista does not support the suffix of `target`.
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
                f"{mesh.store.location}: no array {scalars!r} on points or cells; available: "
                f"{', '.join(known) or 'none'}"
            )
    read = mesh.read(
        point_data=None if wanted is None else wanted["point"],
        cell_data=None if wanted is None else wanted["cell"],
        field_data=[],
        threads=threads,
    )
    if not isinstance(read, pyvista.DataObject) or isinstance(read, pyvista.Table):
        raise _core.UnsupportedError(f"{mesh.store.location}: PyVista cannot draw a {mesh.type}")
    if isinstance(read, pyvista.DataSet) and not read.n_points:
        raise _core.InvalidError(f"{mesh.store.location}: the mesh has no points to draw")
    # VTK warns of each display that does not exist, before it renders without one.
    with pyvista.vtk_verbosity("off"):
        plotter = pyvista.Plotter(off_screen=True)
        try:
            plotter.add_mesh(read, scalars=scalars, cmap=colors, log_scale=log)
            plotter.add_axes()
            plotter.screenshot(os.fspath(target))
        except ValueError as error:
            reason = " ".join(str(error).split())
            raise _core.InvalidError(
                f"{os.fspath(target)}: PyVista cannot write this picture: {reason}"
            ) from error
        except OSError as error:
            raise write_error(error, Path(target)) from error
        finally:
            plotter.close()
