"""The meshes of a path for PyVista and ParaView, and their times."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from ambar import _core
from ambar.kinds.registry import open_path
from ambar.mesh.mesh import AmrMesh, Mesh

ASSOCIATIONS = ("point", "cell", "field")
"""What the arrays have values for that viewers can select."""


AnyMesh: TypeAlias = Mesh | AmrMesh


class Steps(NamedTuple):
    """Meshes over time."""

    meshes: Sequence[AnyMesh]
    """A mesh for each step."""
    times: list[float]
    """The times of the steps, or their numbers; empty for a single mesh."""


def steps_of(path: str | os.PathLike[str]) -> Steps:
    """Return the meshes of a store; the cells of an output, a plotfile or a series of these.

    Raises ValueError if the path contains another kind. Other errors are those of `ambar.open`.
    """
    kind, opened = open_path(path)
    if kind.steps is None:
        raise _core.InvalidError(
            f"{os.fspath(path)}: expected meshes or cells, found the kind {kind.name!r}"
        )
    steps: Steps = kind.steps(opened)
    return steps


def array_names(mesh: AnyMesh) -> list[tuple[str, str | None]]:
    """Return association and name of each array; "cell" for rows of tables."""
    if isinstance(mesh, AmrMesh):
        return [("cell", name) for name in mesh.fields]
    found = [(array.association, array.name) for array in mesh.arrays]
    return [("cell" if association == "row" else association, name) for association, name in found]


def enabled_arrays(status: Mapping[str, Mapping[str, bool]]) -> dict[str, Any]:
    """Return the arguments of `Mesh.read` for the arrays that are enabled, by association."""
    enabled: dict[str, Any] = {}
    for association, arrays in status.items():
        names = [name for name, is_enabled in arrays.items() if is_enabled]
        enabled[f"{association}_data"] = None if len(names) == len(arrays) else names
    return enabled


TOLERANCE = 1e-6
"""Largest difference of a time, relative to the time plus the smallest interval between steps.

This covers times that were rounded to float32, or computed as a sum of steps.
"""
_LISTED = 3


def is_near(time: float, known: float, times: Sequence[float]) -> bool:
    """Whether `time` equals `known`, one of the ascending `times`, within the tolerance."""
    interval = min((later - earlier for earlier, later in pairwise(times)), default=0.0)
    return abs(time - known) <= TOLERANCE * (abs(known) + interval)


def step_at(times: Sequence[float], time: float, where: str) -> int:
    """Return the number of the step whose time is nearest to `time`.

    Raises KeyError, which names the nearest times, if none is within the tolerance.
    """
    nearest = sorted(range(len(times)), key=lambda number: abs(times[number] - time))
    if nearest and is_near(time, times[nearest[0]], times):
        return nearest[0]
    listed = ", ".join(repr(times[number]) for number in sorted(nearest[:_LISTED]))
    found = f"the nearest of {len(times):,} times are {listed}" if nearest else "it has no times"
    raise _core.NotFoundError(f"{where}: no step has the time {time}; {found}")
