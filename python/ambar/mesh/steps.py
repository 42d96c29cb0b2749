"""The meshes in whatever `ambar.open` opens, step by step: what PyVista and ParaView read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from ambar import _core
from ambar.kinds.registry import locate
from ambar.mesh.amr_mesh import AmrMesh
from ambar.mesh.mesh import Mesh

AnyMesh: TypeAlias = Mesh | AmrMesh


class Steps(NamedTuple):
    """Meshes over time."""

    meshes: Sequence[AnyMesh]
    """One a step."""
    times: list[float]
    """Their times, their numbers where none was given; empty for a mesh alone."""


def steps_of(path: str | os.PathLike[str]) -> Steps:
    """Return the mesh in a store, or those of a series; of outputs and plotfiles the cells.

    Raises
    ------
    ValueError
        If the store holds something else, and as `ambar.open`.
    """
    kind, resource = locate(path)
    if kind.steps is None:
        raise _core.InvalidError(
            f"{os.fspath(path)} holds no mesh: it is of the kind {kind.name!r}"
        )
    steps: Steps = kind.steps(resource)
    return steps


def array_names(mesh: AnyMesh) -> list[tuple[str, str | None]]:
    """Return association and name of each array; rows of tables are called cells."""
    if isinstance(mesh, AmrMesh):
        return [("cell", name) for name in mesh.fields]
    associations = {"row": "cell"}
    return [
        (associations.get(array.association, array.association), array.name)
        for array in mesh.arrays
    ]


def cells_over_time(
    path: str | os.PathLike[str], threads: int | None = None
) -> tuple[Iterator[Any], list[float] | None]:
    """Return the cells of a store's outputs as AMR data, and their times; None for one alone.

    All have the same levels: from the lowest to the highest one that any of them has.
    """
    found = steps_of(path)
    cells = [mesh for mesh in found.meshes if isinstance(mesh, AmrMesh)]
    if not found.times:
        return (mesh.read(threads=threads) for mesh in cells), None
    levels = [mesh.amr.levels for mesh in cells]
    ends = min(low for low, _ in levels), max(high for _, high in levels)
    return (mesh.read(levels=ends, threads=threads) for mesh in cells), found.times
