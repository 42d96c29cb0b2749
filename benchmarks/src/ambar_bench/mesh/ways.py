"""What a row of the study is made of: a way of writing a mesh to files and of reading it back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import ambar

NAMES = {"point": "pdata", "cell": "cdata"}
"""The arrays of the grids of tetrahedra."""


class Way(ABC):
    """A way of keeping a mesh. The times of `write` and `read` count, opening and closing included.

    Ways of one `library` share a process, and no others do.
    """

    key: ClassVar[str]
    """What the command line calls it."""
    name: ClassVar[str]
    """What tables call it."""
    library: ClassVar[str]
    modules: ClassVar[tuple[str, ...]] = ()
    """Python packages that it needs beside PyVista."""
    ours: ClassVar[bool] = False
    level: ClassVar[int | None] = None
    """What `write` is given where the study is not of levels."""
    leveled: ClassVar[bool] = False
    """Whether it takes part in the study of levels."""
    threaded: ClassVar[bool] = False
    """Whether it takes part in the study of threads."""
    box_only: ClassVar[bool] = False
    """Whether it takes part in the study of cells in a box alone."""

    @classmethod
    def lacking(cls) -> list[str]:
        """Return the packages it needs that are not installed."""
        return [module for module in ("pyvista", *cls.modules) if find_spec(module) is None]

    def prepare(self) -> None:  # noqa: B027 - few need to
        """Do what is not timed: imports and settings."""

    @abstractmethod
    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:
        """Write a mesh into an empty folder, without fsync."""

    @abstractmethod
    def read(self, folder: Path, threads: int) -> Any:
        """Return the mesh, or its arrays as `contents` names them."""

    def write_step(self, mesh: Any, number: int, folder: Path, threads: int) -> None:
        """Write the next time step as a separate file."""
        own = folder / f"{number:04d}"
        own.mkdir()
        self.write(mesh, own, self.level, threads)

    def end_series(self) -> None:  # noqa: B027 - files of their own need no end
        """Close what time steps were written to."""

    def read_steps(self, folder: Path, threads: int) -> Iterator[Any]:
        """Yield the meshes of all time steps."""
        for own in sorted(folder.iterdir()):
            yield self.read(own, threads)

    def read_box(self, folder: Path, bounds: Sequence[float], threads: int) -> Any:
        """Return the cells whose bounds touch a box (x, x, y, y, z, z): of all that is read."""
        mesh = self.read(folder, threads)
        if not hasattr(mesh, "find_cells_within_bounds"):
            raise ambar.UnsupportedError(f"{self.name} returns arrays without cells")
        return mesh.extract_cells(mesh.find_cells_within_bounds(bounds))

    def read_array(self, folder: Path, threads: int) -> tuple[Any, Any]:  # noqa: ARG002
        """Return the values of "pdata" alone, and what keeps their file open.

        Raises
        ------
        UnsupportedError
            If the format cannot do so.
        """
        raise ambar.UnsupportedError(f"{self.name} does not read single arrays")


def written(path: Path) -> None:
    """Find out whether a writer wrote; VTK's own say nothing when they do not.

    Raises
    ------
    UnsupportedError
        If the file does not exist.
    """
    if not path.exists():
        raise ambar.UnsupportedError(f"{path.name} was not written: the mesh is not supported")
