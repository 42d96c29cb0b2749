"""Zarr: a store for each dataset, read with dask or one by one; or one store with groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ambar_bench.collection.layouts import Layout
from ambar_bench.collection.xarray_rows import AllAsOne, OneByOne

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr


class ZarrStores(Layout):
    """A store for each dataset, version 3, zstd 3, as xarray writes it."""

    key = "zarr"
    name = "Zarr stores"
    modules = ("xarray", "dask", "zarr")

    def prepare(self) -> None:
        """Choose the encoding."""
        from zarr.codecs import ZstdCodec

        encoding: dict[str, Any] = {"compressors": (ZstdCodec(level=3),)}
        if self.case.chunks:
            encoding["chunks"] = self.case.chunks
        self.encoding = dict.fromkeys(self.case.names, encoding)

    def add(self, pairs: list[tuple[str, xr.Dataset]]) -> None:
        """Write a store for each."""
        for name, dataset in pairs:
            path = _store(self.folder, name)
            dataset.to_zarr(path, mode="w", encoding=self.encoding, zarr_format=3)


def _store(folder: Path, name: str) -> str:
    return str(folder / f"{name}.zarr")


class ZarrGroups(ZarrStores):
    """One store with a group for each dataset.

    Without consolidated metadata: `to_zarr` would make those of the whole store anew for every
    group, which took half a second a group with a hundred of them there.
    """

    key = "zarr-groups"
    name = "Zarr, one store"

    def add(self, pairs: list[tuple[str, xr.Dataset]]) -> None:
        """Write a group for each."""
        path = _store(self.folder, "datasets")
        for name, dataset in pairs:
            dataset.to_zarr(
                path,
                group=name,
                mode="w-",
                encoding=self.encoding,
                zarr_format=3,
                consolidated=False,
            )


class ZarrDask(AllAsOne):
    """All stores as one dataset."""

    key = "zarr-dask"
    name = "zarr+dask"
    layout = ZarrStores
    engine = "zarr"

    def place(self, name: str) -> str:
        """Return the store of a dataset."""
        return _store(self.request.folder, name)


class ZarrLoop(OneByOne):
    """One store after the other."""

    key = "zarr-loop"
    name = "zarr, loop"
    layout = ZarrStores

    def datasets(self) -> Iterator[xr.Dataset]:
        """Open each store."""
        for name in self.request.datasets:
            with self.xarray.open_zarr(_store(self.request.folder, name)) as opened:
                yield opened


class ZarrGroupsLoop(OneByOne):
    """One group after the other."""

    key = "zarr-groups"
    name = "zarr, groups of one store"
    layout = ZarrGroups

    def datasets(self) -> Iterator[xr.Dataset]:
        """Open each group."""
        path = _store(self.request.folder, "datasets")
        for name in self.request.datasets:
            with self.xarray.open_zarr(path, group=name, consolidated=False) as opened:
                yield opened
