"""Writes small synthetic RAMSES outputs of every variant, and returns their true contents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests.helpers.ramses_outputs.cells import POISON, DomainFiles, Tree, make_tree
from tests.helpers.ramses_outputs.spec import HYDRO, PARTICLES, Columns, Spec
from tests.helpers.ramses_outputs.tables import (
    make_particles,
    write_clumps,
    write_particles,
    write_sinks,
)
from tests.helpers.ramses_outputs.texts import write_texts
from tests.helpers.ramses_outputs.tree import held_by

__all__ = ["HYDRO", "PARTICLES", "POISON", "Columns", "Spec", "Truth", "without", "write_output"]


@dataclass
class Truth:
    """What the files of an output say."""

    folder: Path
    spec: Spec
    all_cells: Columns
    """Every cell, refined ones too (`leaf` says which), in the order of level, ix, iy, iz."""
    fields: dict[str, tuple[str, ...]]
    """Field names by kind of file: hydro, grav, rt."""
    particles: Columns | None
    """In file order, with `domain`."""
    sinks: Columns | None
    clumps: Columns | None

    def cells(self, levels: tuple[int, int] | None = None, max_level: int | None = None) -> Columns:
        """Return the leaf cells of `levels`; cells of `max_level` represent those below them."""
        level = self.all_cells["level"]
        keep = self.all_cells["leaf"]
        if max_level is not None:
            keep = (keep | (level == max_level)) & (level <= max_level)
        if levels is not None:
            keep = keep & (level >= levels[0]) & (level <= levels[1])
        return {name: column[keep] for name, column in self.all_cells.items() if name != "leaf"}


def write_output(run: Path, spec: Spec) -> Truth:
    """Write `run/output_NNNNN` and return its contents."""
    rng = np.random.default_rng(spec.seed)
    folder = run / f"output_{spec.number:05d}"
    for domain in range(spec.domains):
        spec.place(folder, domain).mkdir(parents=True, exist_ok=True)
    tree = make_tree(rng, spec)
    for domain in range(spec.domains):
        held = held_by(tree.levels, domain, rng, ghosts=0.3)
        DomainFiles(spec, tree, domain, held, rng).write(spec.place(folder, domain))
    particles = make_particles(rng, spec) if spec.particles else None
    if particles is not None:
        write_particles(folder, spec, particles)
    sinks = write_sinks(folder, spec, rng) if spec.sinks else None
    clumps = write_clumps(folder, spec, rng) if spec.clumps else None
    write_texts(spec.place(folder, 0), spec, tree, particles)
    return Truth(folder, spec, _all_cells(spec, tree), tree.fields, particles, sinks, clumps)


def without(spec: Spec, *components: str) -> Spec:
    """Return `spec` without some of hydro, gravity, groups (RT), particles, sinks, clumps."""
    nothing = {"hydro": (), "gravity": "", "groups": 0, "particles": (), "sinks": "", "clumps": 0}
    return replace(spec, **{name: nothing[name] for name in components})  # type: ignore[arg-type]


def _all_cells(spec: Spec, tree: Tree) -> Columns:
    axes = "xyz"[: spec.ndim]
    blocks: list[Columns] = []
    for number, (level, values) in enumerate(zip(tree.levels, tree.values, strict=True), start=1):
        cells = level.cells()
        block: Columns = {"level": np.full(level.refined.size, number, np.int32)}
        block |= {f"i{axis}": cells[:, :, i].ravel() for i, axis in enumerate(axes)}
        block["domain"] = np.repeat(level.owner + 1, 2**spec.ndim).astype(np.uint32)
        for kind, names in tree.fields.items():
            block |= {name: values[kind][i].ravel() for i, name in enumerate(names)}
        block["leaf"] = ~level.refined.ravel()
        blocks.append(block)
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    order = np.lexsort([*(columns[f"i{axis}"] for axis in axes[::-1]), columns["level"]])
    return {name: column[order] for name, column in columns.items()}
