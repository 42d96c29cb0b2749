"""Times of the main operations, and the sizes of what they write.

asv calls `setup` before each benchmark and times the functions whose names begin with `time_`; the
functions whose names begin with `track_` return a number.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np

import ambar

OUTPUT = Path(__file__).parents[3] / "tests" / "data" / "ramses" / "gravpart_small" / "output_00002"


class Scratch:
    """A temporary folder for each benchmark. Stores are written without fsync."""

    def setup(self) -> None:
        """Make the folder."""
        self.folder = Path(tempfile.mkdtemp())

    def teardown(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder)


class Ramses(Scratch):
    """A small RAMSES output with gravity and particles."""

    def setup(self) -> None:
        """Convert the output."""
        super().setup()
        self.store = self.folder / "output.ambar"
        self.time_convert()

    def time_convert(self) -> None:
        """Convert the output with all its components."""
        ambar.convert(OUTPUT, self.store, mode="w", fsync=False)

    def time_load_store(self) -> None:
        """Load all cells and particles from the store."""
        self._load(self.store)

    def time_load_output(self) -> None:
        """Load all cells and particles from the files of RAMSES."""
        self._load(OUTPUT)

    def track_store_bytes(self) -> int:
        """Return the size of the store."""
        return self.store.stat().st_size

    track_store_bytes.unit = "bytes"  # type: ignore[attr-defined]

    def _load(self, path: Path) -> None:
        run = ambar.open(path)
        run.amr.read(list(run.amr.fields))
        run.particles.read()


class Collection(Scratch):
    """One thousand profiles of two variables."""

    def setup(self) -> None:
        """Write the collection."""
        super().setup()
        self.store = self.folder / "profiles.ambar"
        values = np.random.default_rng(7).normal(size=(1000, 2, 200)).astype("f4")
        self.profiles = [
            (f"profile_{number:04}", {"temperature": (("depth",), t), "salinity": (("depth",), s)})
            for number, (t, s) in enumerate(values)
        ]
        self.time_write()

    def time_write(self) -> None:
        """Write all profiles in one call."""
        with ambar.open_collection(self.store, "w", fsync=False) as collection:
            collection.add_many(self.profiles)

    def time_read_slice(self) -> None:
        """Open the collection and read a quarter of each profile."""
        with ambar.open_collection(self.store) as collection:
            collection.read(["temperature", "salinity"], isel={"depth": slice(0, 50)})


class Mesh(Scratch):
    """A lattice of 40^3 points, cut into tetrahedra."""

    def setup(self) -> None:
        """Make the mesh and write it."""
        import pyvista

        super().setup()
        self.store = self.folder / "mesh.ambar"
        self.mesh = pyvista.ImageData(dimensions=(40, 40, 40)).to_tetrahedra()
        self.mesh.clear_data()
        self.mesh.point_data["pressure"] = np.sin(self.mesh.points).sum(axis=1)
        self.time_write()

    def time_write(self) -> None:
        """Write the mesh."""
        ambar.write_mesh(self.mesh, self.store, mode="w", fsync=False)

    def time_read(self) -> None:
        """Read the mesh."""
        ambar.read_mesh(self.store)


class BoundedArray(Scratch):
    """A smooth array of 128^3 float64 values within an error bound."""

    def setup(self) -> None:
        """Make the array and write it."""
        super().setup()
        self.store = self.folder / "array.ambar"
        x, y, z = np.ogrid[0:9:128j, 0:7:128j, 0:5:128j]
        noise = np.random.default_rng(3).normal(scale=1e-3, size=(128, 128, 128))
        self.values = np.sin(x + y) * np.cos(y * z) + noise
        self.time_write()

    def time_write(self) -> None:
        """Write the array."""
        with ambar.create(self.store, "w", fsync=False) as writer:
            writer.create_array("values", self.values, error_bound=1e-3)

    def time_read(self) -> None:
        """Read the array."""
        ambar.open(self.store)["values"].read()

    def track_store_bytes(self) -> int:
        """Return the size of the store."""
        return self.store.stat().st_size

    track_store_bytes.unit = "bytes"  # type: ignore[attr-defined]
