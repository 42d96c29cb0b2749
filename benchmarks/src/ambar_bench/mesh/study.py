"""The study of meshes: what each way of keeping a mesh takes to write, to read, and of a disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import ambar
from ambar_bench.machine import machine
from ambar_bench.mesh import meshes
from ambar_bench.mesh.plan import Plan
from ambar_bench.mesh.results import Study
from ambar_bench.mesh.rows import WAYS
from ambar_bench.mesh.ways import Way

PARTS = ("formats", "levels", "threads", "array", "box", "meshes", "series")
LEVELS = (-22, -10, -5, -1, 1, 3, 5, 7, 9, 12, 15, 19, 22)
PACKAGES = ("pyvista", "vtk", "pyvista-zstd", "zvtk", "zstandard", "meshio", "h5py", "blosc2")


def run_study(
    scratch: Path,
    *,
    n: int = 127,
    points: int = 1_000_000,
    data: Sequence[str] = tuple(meshes.GRIDS),
    parts: Sequence[str] = PARTS,
    levels: Sequence[int] = LEVELS,
    keys: Sequence[str] | None = None,
    only: Sequence[str] | None = None,
    threads: int | None = None,
    steps: int = 100,
    rounds: int = 5,
    patience: float = 60,
    report: Callable[[str], None] = lambda _: None,
) -> Study:
    """Write meshes in every way, into `scratch`, read them, and compare what was read.

    Rounds go through all rows of a mesh in turn, each round starting with another one, so that
    whatever else the machine does hits all alike. A row that has taken `patience` seconds gets no
    more turns.

    Parameters
    ----------
    scratch
        A folder to write into; all is deleted.
    n, points
        Points a side of the grids of tetrahedra, and of the Delaunay mesh.
    data
        What the grids hold: some of "random" and "smooth".
    parts
        Some of "formats", "levels", "threads", "array" (the one alone, of the first grid), which
        are of the grids, "box" (the cells in one of the Delaunay mesh), "meshes", those of other
        kinds, and "series", `steps` of one in time.
    levels
        Levels of zstd, from -22 to 22.
    keys
        Some of the ways; all by default.
    only
        Some of the other meshes; all by default.
    threads
        The most threads to use; all cores by default.
    rounds, patience
        How often each row is measured, and for how many seconds at most.
    report
        Called with the description of each step.

    Raises
    ------
    KeyError
        If a part, kind of data, library or mesh does not exist.
    ValueError
        If a size or level cannot be.
    """
    _require(n, points, levels, steps)
    _known("part", parts, PARTS)
    _known("data", data, tuple(meshes.GRIDS))
    _known("way", keys or (), tuple(WAYS))
    study = Study(
        n=n,
        points=points,
        data=list(dict.fromkeys(data)),
        parts=[part for part in PARTS if part in parts],
        levels=sorted(set(levels)),
        threads=threads or len(os.sched_getaffinity(0)),
        rounds=rounds,
        patience=patience,
        steps=steps,
        machine=machine(PACKAGES),
    )
    sizes = meshes.Sizes(n, points, str(scratch))
    ways = _installed(study, keys)
    if ways:
        with Plan(study, sizes, ways, scratch, report) as plan:
            _measure(plan, only)
    return study


def _measure(plan: Plan, only: Sequence[str] | None) -> None:
    study, n = plan.study, plan.study.n
    raw_bytes = 20 * n**3 + 245 * (n - 1) ** 3
    if set(study.parts) & {"formats", "levels", "threads"}:
        for mesh in study.grids:
            study.rows += plan.write_and_read(mesh, raw_bytes)
    if "array" in study.parts:
        study.arrays += plan.read_array(study.grids[0], raw_bytes)
    if "box" in study.parts:
        meshes.prepare(plan.sizes)
        study.boxes += plan.read_box(meshes.DELAUNAY[1])
        meshes.forget(plan.sizes)
    if "meshes" in study.parts:
        there = meshes.real()
        _known("mesh", only or (), there)
        chosen = [name for name in there if only is None or name in only]
        if set(chosen) & set(meshes.DELAUNAY):
            plan.report(f"Delaunay mesh of {study.points:,} points")
            meshes.prepare(plan.sizes)
        for mesh in chosen:
            study.rows += plan.write_and_read(mesh)
        meshes.forget(plan.sizes)
    if "series" in study.parts:
        sizes = meshes.of_steps(plan.sizes)
        meshes.prepare(sizes)
        study.series += plan.time_steps(meshes.STEPS, study.steps)
        meshes.forget(sizes)


def _require(n: int, points: int, levels: Sequence[int], steps: int) -> None:
    if steps < 1:
        raise ambar.InvalidError(f"expected 1 or more time steps, found {steps}")
    if n < 2:
        raise ambar.InvalidError(f"expected 2 or more points a side of a grid, found {n}")
    if points < 5:
        raise ambar.InvalidError(f"expected 5 or more points of a Delaunay mesh, found {points}")
    if wrong := [level for level in levels if not -22 <= level <= 22]:
        raise ambar.InvalidError(f"expected levels from -22 to 22, found {wrong[0]}")


def _known(what: str, names: Sequence[str], there: Sequence[str]) -> None:
    for name in names:
        if name not in there:
            raise ambar.NotFoundError(f"no {what} {name!r}; available: {', '.join(there)}")


def _installed(study: Study, keys: Sequence[str] | None) -> list[type[Way]]:
    """Return the requested libraries that are installed; record the others."""
    found = []
    for way in WAYS.values():
        if keys is not None and way.key not in keys:
            continue
        if missing := way.lacking():
            study.left_out[way.name] = f"{', '.join(missing)} not installed"
        else:
            found.append(way)
    return found
