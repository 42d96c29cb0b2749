"""NetCDF: a file for each dataset, read with dask or one by one; or one file with groups."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ambar_bench.collection.layouts import Layout
from ambar_bench.collection.xarray_rows import AllAsOne, OneByOne

if TYPE_CHECKING:
    from collections.abc import Iterator

    import xarray as xr


class NetcdfFiles(Layout):
    """A file for each dataset, zlib 4, as xarray writes it."""

    key = "netcdf"
    name = "NetCDF files"
    modules = ("xarray", "dask", "netCDF4")

    def prepare(self) -> None:
        """Choose the encoding."""
        import xarray as xr

        self.xarray = xr
        encoding: dict[str, Any] = {"zlib": True, "complevel": 4}
        if self.case.chunks:
            encoding["chunksizes"] = self.case.chunks
        self.encoding = dict.fromkeys(self.case.names, encoding)

    def add(self, pairs: list[tuple[str, xr.Dataset]]) -> None:
        """Write a file for each."""
        for name, dataset in pairs:
            path = _file(self.folder, name)
            dataset.to_netcdf(path, engine="netcdf4", encoding=self.encoding)


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name}.nc"


class NetcdfGroups(NetcdfFiles):
    """One file with a group for each dataset, opened once.

    `to_netcdf` with a group opens the file for each, and libnetcdf reads all groups that are there
    whenever it opens one: 500 of them took minutes.
    """

    key = "netcdf-groups"
    name = "NetCDF, one file"

    def begin(self) -> None:
        """Create the file."""
        self.file = _whole(self.folder, "w")

    def add(self, pairs: list[tuple[str, xr.Dataset]]) -> None:
        """Write a group for each."""
        for name, dataset in pairs:
            group = _group(self.file.createGroup(name))
            dataset.dump_to_store(group, encoding=self.encoding)

    def finish(self) -> None:
        """Close the file."""
        self.file.close()


def _whole(folder: Path, mode: str) -> Any:
    netcdf: Any = import_module("netCDF4")
    return netcdf.Dataset(folder / "datasets.nc", mode)


def _group(group: Any) -> Any:
    backends: Any = import_module("xarray.backends")
    return backends.NetCDF4DataStore(group)


class NetcdfDask(AllAsOne):
    """All files as one dataset."""

    key = "netcdf-dask"
    name = "netcdf+dask"
    layout = NetcdfFiles
    engine = "netcdf4"

    def place(self, name: str) -> Path:
        """Return the file of a dataset."""
        return _file(self.request.folder, name)


class NetcdfLoop(OneByOne):
    """One file after the other."""

    key = "netcdf-loop"
    name = "netcdf, loop"
    layout = NetcdfFiles

    def datasets(self) -> Iterator[xr.Dataset]:
        """Open each file."""
        for name in self.request.datasets:
            path = _file(self.request.folder, name)
            with self.xarray.open_dataset(path, engine="netcdf4") as opened:
                yield opened


class NetcdfGroupsLoop(OneByOne):
    """One group after the other."""

    key = "netcdf-groups"
    name = "netcdf, groups of one file"
    layout = NetcdfGroups

    def datasets(self) -> Iterator[xr.Dataset]:
        """Open the file, and each of its groups."""
        with _whole(self.request.folder, "r") as file:
            for name in self.request.datasets:
                yield self.xarray.open_dataset(_group(file[name]))
