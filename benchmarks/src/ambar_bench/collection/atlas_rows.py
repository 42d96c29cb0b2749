"""Atlas 0.13: its bulk reads, its reads by dask, and one dataset after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ambar_bench.collection.layouts import Layout, Reader, delayed

if TYPE_CHECKING:
    import xarray as xr

STORE = "datasets.atlas"


class AtlasStore(Layout):
    """A store with the settings of Atlas' own benchmark."""

    key = "atlas"
    name = "Atlas"
    modules = ("xarray", "dask", "atlas")

    def prepare(self) -> None:
        """Import Atlas."""
        import atlas

        self.atlas = atlas
        chunks = self.case.chunks
        self.chunks: Any = {name: list(chunks) for name in self.case.names} if chunks else None

    def begin(self) -> None:
        """Create the store."""
        self.store = self.atlas.Atlas.create(
            str(self.folder / STORE),
            codec="zstd",
            meta_format="msgpack",
            meta_compression="zstd",
        )

    def add(self, pairs: list[tuple[str, xr.Dataset]]) -> None:
        """Add them one by one, which is the only way."""
        for name, dataset in pairs:
            self.store.add_xarray_dataset(dataset, name, chunks=self.chunks)

    def finish(self) -> None:
        """Write what is in memory."""
        self.store.close()


class AtlasBulk(Reader):
    """One call a variable for all datasets."""

    key = "atlas-bulk"
    name = "atlas-bulk"
    layout = AtlasStore

    def prepare(self) -> None:
        """Import Atlas."""
        import atlas

        self.atlas = atlas

    def open(self) -> Any:
        """Return the opened store."""
        return self.atlas.Atlas.open(str(self.request.folder / STORE))

    def read(self) -> Any:
        """Open and read."""
        request = self.request
        store = self.open()
        return {
            name: store.read_array_across_stacked(
                name, request.datasets, start=request.start, shape=request.shape
            )
            for name in request.case.names
        }


class AtlasDask(AtlasBulk):
    """A delayed task for each dataset, which reads all its variables in one call."""

    key = "atlas-dask"
    name = "atlas+dask"

    def read(self) -> Any:
        """Open and read."""
        request = self.request
        store = self.open()

        def load(name: str) -> Any:
            dataset = store.open_dataset(name)
            names = request.case.names
            return dataset.read_arrays(names, start=request.start, shape=request.shape)

        return delayed(load, request.datasets, request.threads)


class AtlasLoop(AtlasBulk):
    """One dataset after the other as xarray Datasets."""

    key = "atlas-loop"
    name = "atlas, loop of xarray"

    def read(self) -> Any:
        """Open, select and load each."""
        request = self.request
        store = self.open()
        return [
            store.open_as_xarray_dataset(name)[request.case.names].isel(request.window).load()
            for name in request.datasets
        ]
