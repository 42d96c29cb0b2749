"""Rows of ambar: its three profiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import ambar
from ambar.store.writer import Profile
from ambar_bench.mesh.ways import NAMES, Way

FILE = "mesh.ambar"


class Ambar(Way):
    """ambar with its own settings; as everywhere in the study without fsync."""

    key = "ambar"
    name = "ambar"
    library = "ambar"
    ours = True
    threaded = True
    profile: ClassVar[Profile] = "balanced"

    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:  # noqa: ARG002
        """Write it with the profile."""
        ambar.write_mesh(mesh, folder / FILE, profile=self.profile, threads=threads, fsync=False)

    def read(self, folder: Path, threads: int) -> Any:
        """Read it."""
        return ambar.read_mesh(folder / FILE, threads=threads)

    def write_step(self, mesh: Any, number: int, folder: Path, threads: int) -> None:
        """Add a time step to one store, which finds out by itself what stayed."""
        if number == 0:
            self.series = ambar.open_mesh_series(
                folder / FILE, "w-", profile=self.profile, threads=threads, fsync=False
            )
        self.series.add(mesh, number)

    def end_series(self) -> None:
        """Close the store."""
        self.series.close()

    def read_steps(self, folder: Path, threads: int) -> Iterator[Any]:
        """Yield the meshes of all time steps, the store opened once."""
        series: Any = ambar.open(folder / FILE)
        for mesh in series:
            yield mesh.read(threads=threads)

    def read_box(self, folder: Path, bounds: Sequence[float], threads: int) -> Any:
        """Read the cells that touch a box."""
        box = ambar.Box(tuple(bounds[::2]), tuple(bounds[1::2]))
        return ambar.read_mesh(folder / FILE, region=box, threads=threads)

    def read_array(self, folder: Path, threads: int) -> tuple[Any, Any]:
        """Read one array of the store."""
        mesh: Any = ambar.open(folder / FILE)
        values = mesh.read_array(NAMES["point"], association="point", threads=threads)
        return values, mesh


class AmbarFast(Ambar):
    """The same with the profile for speed."""

    key = "ambar-fast"
    name = "ambar, fast"
    threaded = False
    profile = "fast"


class AmbarSmall(Ambar):
    """The same with the profile for size."""

    key = "ambar-small"
    name = "ambar, small"
    threaded = False
    profile = "small"


class AmbarReorder(Ambar):
    """The same with the cells sorted along a curve."""

    key = "ambar-reorder"
    name = "ambar, reorder"
    threaded = False
    box_only = True

    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:  # noqa: ARG002
        """Write it reordered."""
        ambar.write_mesh(mesh, folder / FILE, threads=threads, fsync=False, reorder=True)
