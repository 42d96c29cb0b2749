"""Rows of ambar: its three profiles, and zvtk's levels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import ambar
from ambar.bench.mesh.ways import NAMES, Way
from ambar.writer import Profile

FILE = "mesh.ambar"


class Ambar(Way):
    """ambar with its own settings; as everywhere in the study without fsync."""

    key = "ambar"
    name = "ambar"
    library = "ambar"
    ours = True
    leveled = True
    threaded = True
    profile: ClassVar[Profile] = "balanced"

    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:
        """Write it with the profile, or with a level of zvtk's where one is given."""
        how: dict[str, Any] = {"profile": self.profile} if level is None else {"level": level}
        ambar.write_mesh(mesh, folder / FILE, threads=threads, durability="none", **how)

    def read(self, folder: Path, threads: int) -> Any:
        """Read it."""
        return ambar.read_mesh(folder / FILE, threads=threads)

    def write_step(self, mesh: Any, number: int, folder: Path, threads: int) -> None:
        """Add a time step to one store, which finds out by itself what stayed."""
        if number == 0:
            self.series = ambar.MeshSeries.create(
                folder / FILE, profile=self.profile, threads=threads, durability="none"
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

    def read_array(self, folder: Path, threads: int) -> tuple[Any, Any]:
        """Read one array of the store, or the mesh without others where small ones share one."""
        path, name = folder / FILE, NAMES["point"]
        for frame in ambar.frames(path):
            if (frame.association, frame.name) == ("point_data", name):
                mesh: Any = ambar.open(path)
                store = mesh.store
                return store[frame.node].read(threads=threads), store
        found = ambar.read_mesh(
            path, point_data=[name], cell_data=[], field_data=[], threads=threads
        )
        return found.point_data[name], found


class AmbarFast(Ambar):
    """The same with the profile for speed."""

    key = "ambar-fast"
    name = "ambar, fast"
    leveled = False
    threaded = False
    profile = "fast"


class AmbarSmall(Ambar):
    """The same with the profile for size."""

    key = "ambar-small"
    name = "ambar, small"
    leveled = False
    threaded = False
    profile = "small"
