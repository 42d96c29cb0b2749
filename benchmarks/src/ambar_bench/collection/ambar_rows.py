"""ambar: a collection, read in bulk, dataset by dataset, as one xarray Dataset, and with dask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ambar
from ambar_bench.collection.layouts import Layout, Reader, dask_threads

if TYPE_CHECKING:
    import xarray as xr

FILE = "datasets.ambar"
CHUNK = 128
"""Datasets of a chunk of dask's."""


class AmbarCollection(Layout):
    """A collection in one file, with the settings that it has by itself; no fsync, as peers."""

    key = "ambar"
    name = "ambar"
    modules = ("xarray", "dask")
    ours = True

    def begin(self) -> None:
        """Create the file."""
        self.collection = ambar.open_collection(
            self.folder / FILE, "w-", fsync=False, threads=self.threads
        )

    def add(self, pairs: list[tuple[str, xr.Dataset]]) -> None:
        """Add them all."""
        self.collection.add_many(pairs)

    def finish(self) -> None:
        """Commit and close."""
        self.collection.commit()
        self.collection.close()


class AmbarBulk(Reader):
    """One call for all variables of all datasets."""

    key = "ambar-bulk"
    name = "ambar, bulk"
    layout = AmbarCollection

    def open(self) -> Any:
        """Return the opened collection."""
        path = self.request.folder / FILE
        return ambar.open_collection(path, threads=self.request.threads)

    def read(self) -> Any:
        """Open and read."""
        request = self.request
        with self.open() as collection:
            return collection.read(request.case.names, isel=request.window)


class AmbarLoop(AmbarBulk):
    """One dataset after the other as xarray Datasets, loaded as Atlas' are, then sliced."""

    key = "ambar-loop"
    name = "ambar, loop of xarray"

    def read(self) -> Any:
        """Open, load and select each."""
        request = self.request
        with self.open() as collection:
            return [
                collection.load(name)[request.case.names].isel(request.window)
                for name in request.datasets
            ]


class AmbarLazy(AmbarBulk):
    """One dataset after the other as lazy xarray Datasets, of which the slice is loaded."""

    key = "ambar-lazy"
    name = "ambar, loop of lazy xarray"

    def read(self) -> Any:
        """Open, select and load each."""
        request = self.request
        with self.open() as collection:
            return [
                collection[name][request.case.names].isel(request.window).load()
                for name in request.datasets
            ]


class AmbarXarray(AmbarBulk):
    """All as one lazy xarray Dataset."""

    key = "ambar-xarray"
    name = "ambar, to_xarray"

    def read(self) -> Any:
        """Open, select and load."""
        request = self.request
        with self.open() as collection:
            return collection.to_xarray()[request.case.names].isel(request.window).load()


class AmbarDask(AmbarBulk):
    """All as one xarray Dataset of dask arrays."""

    key = "ambar-dask"
    name = "ambar+dask"

    def read(self) -> Any:
        """Open, select and load."""
        request = self.request
        with self.open() as collection, dask_threads(request.threads):
            dataset = collection.to_xarray()[request.case.names].chunk(dataset=CHUNK)
            return dataset.isel(request.window).load()
