"""Summaries of meshes and series of them, from metadata alone, which ``ambar info`` prints."""

from __future__ import annotations

from typing import Any

from ambar.mesh.arrays import stored_once
from ambar.mesh.mesh import Mesh
from ambar.mesh.series import MeshSeries


def overview_of(mesh: Mesh) -> dict[str, Any]:
    """Return the summary of a mesh; JSON can represent it.

    Keys are `path`, `kind`, `bytes`, `usage`, `type`, `points` and `cells` (their numbers),
    `bounds` (x0, x1, y0, y1, z0, z1, or None), `blocks` (names), `user_dict`, and `arrays` and
    `geometry` (entries are those of `MeshArray.to_dict`).
    """
    usage = mesh.store.usage()
    return {
        "path": mesh.store.location,
        "kind": "mesh",
        "bytes": usage["total"],
        "usage": usage,
        **_sizes_of(mesh),
        "blocks": mesh.blocks,
        "user_dict": mesh.user_dict,
        "arrays": [array.to_dict() for array in mesh.arrays],
        "geometry": [array.to_dict() for array in mesh.geometry],
    }


def _sizes_of(mesh: Mesh) -> dict[str, Any]:
    sizes = {"type": mesh.type, "points": mesh.n_points, "cells": mesh.n_cells}
    return {**sizes, "bounds": mesh.bounds}


def overview_of_series(series: MeshSeries) -> dict[str, Any]:
    """Return the summary of a series of meshes; JSON can represent it.

    Keys are `path`, `kind`, `bytes`, `usage`, `steps` (number, time, type, points, cells, bounds,
    and the names of the arrays), and `arrays`: the arrays of all steps, those that several steps
    share once (entries are those of `MeshArray.to_dict`, and `step`).
    """
    usage = series.store.usage()
    meshes = list(series)
    arrays = stored_once([*mesh.arrays, *mesh.geometry] for mesh in meshes)
    return {
        "path": series.store.location,
        "kind": "mesh series",
        "bytes": usage["total"],
        "usage": usage,
        "steps": [
            {
                "number": number,
                "time": time,
                **_sizes_of(mesh),
                "arrays": list(dict.fromkeys(str(array.name) for array in mesh.arrays)),
            }
            for number, (time, mesh) in enumerate(zip(series.times, meshes, strict=True))
        ],
        "arrays": [{"step": number, **array.to_dict()} for number, array in arrays],
    }
