"""How datasets are reached one by one in a large collection: opened, loaded by name, added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import ambar
from ambar_bench.collection.ambar_rows import FILE, AmbarCollection
from ambar_bench.collection.atlas_rows import STORE, AtlasStore
from ambar_bench.collection.layouts import Layout

if TYPE_CHECKING:
    import xarray as xr


class Access(ABC):
    """A store that is open for reading or for adding to it."""

    layout: ClassVar[type[Layout]]

    def __init__(self, folder: Path, threads: int, *, adding: bool = False) -> None:
        self.folder = folder
        self.threads = threads
        self.prepare()
        self.handle = self.open(adding=adding)

    def prepare(self) -> None:  # noqa: B027 - few need to
        """Do what is not timed: imports."""

    @abstractmethod
    def open(self, *, adding: bool = False) -> Any:
        """Return the opened store."""

    @abstractmethod
    def load(self, name: str) -> xr.Dataset:
        """Return a dataset, in memory."""

    @abstractmethod
    def add(self, name: str, dataset: xr.Dataset) -> None:
        """Add a dataset and commit it."""

    def close(self) -> None:  # noqa: B027 - not all can be closed
        """Close the store."""


class AtlasAccess(Access):
    """Atlas, whose xarray Datasets are loaded when they are opened if an array is one chunk."""

    layout = AtlasStore

    def prepare(self) -> None:
        """Import Atlas."""
        import atlas

        self.atlas = atlas

    def open(self, *, adding: bool = False) -> Any:  # noqa: ARG002 - every store can be added to
        """Return the store."""
        return self.atlas.Atlas.open(str(self.folder / STORE))

    def load(self, name: str) -> xr.Dataset:
        """Return a dataset."""
        found: xr.Dataset = self.handle.open_as_xarray_dataset(name)
        return found.load()

    def add(self, name: str, dataset: xr.Dataset) -> None:
        """Add it and write everything out."""
        self.handle.add_xarray_dataset(dataset, name)
        self.handle.flush()


class AmbarAccess(Access):
    """A collection of ambar's; as everywhere in the study without fsync."""

    layout = AmbarCollection

    def open(self, *, adding: bool = False) -> Any:
        """Return the collection."""
        return ambar.open_collection(
            self.folder / FILE,
            mode="a" if adding else "r",
            fsync=False,
            threads=self.threads,
        )

    def load(self, name: str) -> xr.Dataset:
        """Return a dataset."""
        found: xr.Dataset = self.handle.load(name)
        return found

    def add(self, name: str, dataset: xr.Dataset) -> None:
        """Add it and commit."""
        self.handle.add(name, dataset)
        self.handle.commit()

    def close(self) -> None:
        """Close the collection."""
        self.handle.close()


ACCESSES: dict[str, type[Access]] = {
    access.layout.key: access for access in (AtlasAccess, AmbarAccess)
}
