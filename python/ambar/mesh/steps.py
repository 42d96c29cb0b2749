"""The meshes in whatever `ambar.open` opens, step by step: what PyVista and ParaView read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from ambar import _core
from ambar.io.openers import open as open_store
from ambar.mesh.amr_mesh import AmrMesh
from ambar.mesh.mesh import Mesh
from ambar.mesh.series import MeshSeries
from ambar.snapshot.series import Series
from ambar.snapshot.snapshot import Snapshot

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
    InvalidError
        If the store holds something else, and as `ambar.open`.
    """
    opened = open_store(path)
    if isinstance(opened, Mesh):
        return Steps([opened], [])
    if isinstance(opened, MeshSeries):
        times = [float(n) if time is None else time for n, time in enumerate(opened.times)]
        return Steps(opened, times)
    if isinstance(opened, Snapshot):
        return Steps([AmrMesh(opened)], [])
    if isinstance(opened, Series):
        return Steps([AmrMesh(snapshot) for snapshot in opened], opened.times.tolist())
    raise _core.InvalidError(f"{os.fspath(path)} holds no mesh: it is {opened!r}")


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
