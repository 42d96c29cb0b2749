"""HDF5: one file with a group for each dataset, through h5py, packed with zstd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ambar_bench.collection.layouts import Layout, Reader

if TYPE_CHECKING:
    import xarray as xr


class Hdf5File(Layout):
    """A group for each dataset, its variables in chunks with zstd 3."""

    key = "hdf5"
    name = "HDF5, one file"
    modules = ("xarray", "h5py", "hdf5plugin")

    def prepare(self) -> None:
        """Choose chunks and filter."""
        import hdf5plugin

        chunks = self.case.chunks or self.case.shape
        self.options = {"chunks": chunks, **hdf5plugin.Zstd(clevel=3)}

    def begin(self) -> None:
        """Create the file."""
        import h5py

        self.file = h5py.File(self.folder / "datasets.h5", "w", libver="latest")

    def add(self, pairs: list[tuple[str, xr.Dataset]]) -> None:
        """Write a group for each: variables, coordinates, attributes."""
        for name, dataset in pairs:
            group = self.file.create_group(name)
            group.attrs.update(dataset.attrs)
            for key, coordinate in dataset.coords.items():
                values = coordinate.values
                group[str(key)] = values.view("i8") if values.dtype.kind == "M" else values
            for key, variable in dataset.data_vars.items():
                made = group.create_dataset(str(key), data=variable.values, **self.options)
                made.attrs.update(variable.attrs)

    def finish(self) -> None:
        """Close the file."""
        self.file.close()


class Hdf5Loop(Reader):
    """One group after the other, straight into the arrays of all datasets."""

    key = "hdf5"
    name = "hdf5, one file"
    layout = Hdf5File

    def prepare(self) -> None:
        """Import h5py and the filter."""
        import h5py
        import hdf5plugin  # noqa: F401 - it makes the filter known

        self.h5py = h5py

    def read(self) -> Any:
        """Open the file and read."""
        request = self.request
        count = len(request.datasets)
        found = {
            variable.name: np.empty((count, *request.shape), variable.dtype)
            for variable in request.case.variables
        }
        with self.h5py.File(request.folder / "datasets.h5", "r") as file:
            for number, name in enumerate(request.datasets):
                group = file[name]
                for key, values in found.items():
                    group[key].read_direct(values, request.box, number)
        return found
