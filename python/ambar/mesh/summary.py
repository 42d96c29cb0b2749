"""What a mesh holds, told from its metadata: type, blocks, arrays, and what the store takes."""

from __future__ import annotations

from typing import Any

from ambar.mesh.array_storage import frames_of
from ambar.mesh.mesh import Mesh
from ambar.mesh.series import MeshSeries


def overview_of(mesh: Mesh) -> dict[str, Any]:
    """Return what `ambar info` tells of a mesh, as JSON can hold it.

    Keys are `path`, `kind`, `bytes`, `usage`, `type`, `points` and `cells` (their numbers),
    `bounds` (x0, x1, y0, y1, z0, z1, or None), `blocks` (names), `user_dict`, `arrays`
    (association, name, dtype, shape, block) and `frames` (an entry of each array of the store, with
    its codecs, chunks, and raw and stored bytes).
    """
    usage = mesh.store.usage()
    return {
        "path": mesh.store.location,
        "kind": "mesh",
        "bytes": usage["total"],
        "usage": usage,
        "type": mesh.type,
        "points": mesh.n_points,
        "cells": mesh.n_cells,
        "bounds": mesh.bounds,
        "blocks": mesh.blocks,
        "user_dict": mesh.user_dict,
        "arrays": [info._asdict() for info in mesh.arrays],
        "frames": [frame._asdict() for frame in frames_of(mesh.store)],
    }


def overview_of_series(series: MeshSeries) -> dict[str, Any]:
    """Return what `ambar info` tells of a series of meshes, as JSON can hold it.

    Keys are `path`, `kind`, `bytes`, `usage`, `steps` (number, time, type, points, cells, bounds,
    and the names of the arrays), and `frames` as of a mesh.
    """
    usage = series.store.usage()
    return {
        "path": series.store.location,
        "kind": "mesh series",
        "bytes": usage["total"],
        "usage": usage,
        "steps": [
            {
                "number": number,
                "time": time,
                "type": mesh.type,
                "points": mesh.n_points,
                "cells": mesh.n_cells,
                "bounds": mesh.bounds,
                "arrays": list(dict.fromkeys(str(info.name) for info in mesh.arrays)),
            }
            for number, (time, mesh) in enumerate(zip(series.times, series, strict=True))
        ],
        "frames": [frame._asdict() for frame in frames_of(series.store)],
    }
