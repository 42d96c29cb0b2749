"""The component that renders a surface in the browser, with the vtk.js that Panel brings along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import panel as pn
import param
import pyvista as pv


class SurfaceView(pn.custom.JSComponent):  # type: ignore[misc]
    """A surface in three dimensions; its properties are sent when they change, each alone."""

    geometry = param.Dict(default={})
    """`points` (float32, x y z of each, relative to `origin`), `origin` (float64), and `polys`,
    `lines` and `verts` (uint32, as in VTK)."""
    values = param.Array(default=np.empty(0, "f4"))
    """The coloured values, on the scale of the colours; empty without colours."""
    on_points = param.Boolean(default=True)
    look = param.Dict(default={})
    """Style, colours, range of the values, and the code that returns the true value of a tick."""
    camera = param.Dict(default={})
    """Direction, direction that is up, and bounds relative to the origin, at which the camera looks
    when they change."""

    _esm = Path(__file__).with_suffix(".js")


def geometry_of(mesh: pv.PolyData, origin: np.ndarray) -> dict[str, Any]:
    """Return the geometry of a surface, as the component expects it.

    The points are relative to an origin in the mesh, since float32 rounds large coordinates.
    """
    cells = {"polys": mesh.faces, "lines": mesh.lines, "verts": mesh.verts}
    # vtk.js has no strips; `extract_surface` makes none.
    return {
        "points": np.asarray(mesh.points - origin, "f4").reshape(-1),
        "origin": origin,
        **{name: np.asarray(values, "u4").reshape(-1) for name, values in cells.items()},
    }
