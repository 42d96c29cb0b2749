"""What xarray reads of many files, stores or groups: all as one with dask, or one by one."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from ambar_bench.collection.layouts import Reader, dask_threads

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import xarray as xr


class AllAsOne(Reader):
    """One dataset of all: xarray's own way for many files, or stores."""

    engine: ClassVar[str]

    def prepare(self) -> None:
        """Import xarray."""
        import xarray as xr

        self.xarray = xr

    @abstractmethod
    def place(self, name: str) -> str | Path:
        """Return the file, or store, of a dataset."""

    def read(self) -> Any:
        """Open, select and load."""
        request = self.request
        places = [self.place(name) for name in request.datasets]
        with (
            dask_threads(request.threads),
            self.xarray.open_mfdataset(
                places,
                combine="nested",
                concat_dim="dataset",
                parallel=True,
                engine=self.engine,
                combine_attrs="drop_conflicts",
            ) as opened,
        ):
            return opened[request.case.names].isel(request.window).load()


class OneByOne(Reader):
    """One dataset after the other."""

    def prepare(self) -> None:
        """Import xarray."""
        import xarray as xr

        self.xarray = xr

    @abstractmethod
    def datasets(self) -> Iterator[xr.Dataset]:
        """Open each; it is closed before the next is opened."""

    def read(self) -> Any:
        """Open, select and load each."""
        request = self.request
        return [
            opened[request.case.names].isel(request.window).load() for opened in self.datasets()
        ]
