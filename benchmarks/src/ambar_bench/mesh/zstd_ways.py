"""Rows of zstd: zvtk, pyvista-zstd without and with shuffle, and blosc2's arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from ambar_bench.mesh.contents import contents
from ambar_bench.mesh.ways import NAMES, Way


class Zvtk(Way):
    """zvtk 0.1.1, the last before it became pyvista-zstd."""

    key = "zvtk"
    name = "zvtk"
    library = "zvtk"
    modules = ("zvtk",)
    level = 3
    leveled = True
    threaded = True

    def prepare(self) -> None:
        """Import it."""
        import zvtk

        self.zvtk = zvtk

    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:
        """Write it."""
        self.zvtk.write(mesh, folder / "mesh.zvtk", level=level, n_threads=threads)

    def read(self, folder: Path, threads: int) -> Any:
        """Read it."""
        return self.zvtk.read(folder / "mesh.zvtk", n_threads=threads)

    def read_array(self, folder: Path, threads: int) -> tuple[Any, Any]:  # noqa: ARG002
        """Read one array, and geometry and cells with it."""
        reader = self.zvtk.Reader(folder / "mesh.zvtk")
        reader.selected_point_arrays = {NAMES["point"]}
        reader.selected_cell_arrays = set()
        found = reader.read()
        return found.point_data[NAMES["point"]], (found, reader)


class PyvistaZstd(Way):
    """pyvista-zstd with its own settings: no shuffle."""

    key = "pv"
    name = "pyvista-zstd"
    library = "pyvista-zstd"
    modules = ("pyvista_zstd",)
    level = 3
    leveled = True
    threaded = True
    shuffle: ClassVar[bool] = False

    def prepare(self) -> None:
        """Import it."""
        import pyvista_zstd

        self.package = pyvista_zstd

    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:
        """Write it."""
        path = folder / "mesh.pv"
        self.package.write(mesh, path, level=level, n_threads=threads, shuffle=self.shuffle)

    def read(self, folder: Path, threads: int) -> Any:
        """Read it."""
        return self.package.read(folder / "mesh.pv", n_threads=threads)

    def read_array(self, folder: Path, threads: int) -> tuple[Any, Any]:  # noqa: ARG002
        """Read one array's frames."""
        reader = self.package.Reader(folder / "mesh.pv")
        return reader.read_array(NAMES["point"], association="point"), reader


class PyvistaZstdShuffle(PyvistaZstd):
    """The same with every array's bytes shuffled."""

    key = "pv-shuffle"
    name = "pyvista-zstd, shuffle"
    shuffle = True


class Blosc2(Way):
    """A blosc2 file for each array, with its own settings (zstd 5, shuffle); no VTK object."""

    key = "blosc2"
    name = "blosc2, arrays"
    library = "blosc2"
    modules = ("blosc2",)

    def prepare(self) -> None:
        """Import it."""
        import blosc2

        self.blosc2 = blosc2

    def write(self, mesh: Any, folder: Path, level: int | None, threads: int) -> None:  # noqa: ARG002
        """Write every array."""
        for name, values in contents(mesh).items():
            path = _file(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            options = {"nthreads": threads}
            self.blosc2.asarray(values, urlpath=str(path), mode="w", cparams=options)

    def read(self, folder: Path, threads: int) -> Any:
        """Return every array by its name."""
        return {
            str(path.relative_to(folder).with_suffix("")): self._load(path, threads)
            for path in folder.rglob("*.b2nd")
        }

    def read_array(self, folder: Path, threads: int) -> tuple[Any, Any]:
        """Read one array's file."""
        return self._load(_file(folder, f"point_data/{NAMES['point']}"), threads), None

    def _load(self, path: Path, threads: int) -> Any:
        return self.blosc2.open(str(path), mode="r", dparams={"nthreads": threads})[()]


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.b2nd"
