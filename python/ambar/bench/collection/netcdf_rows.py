"""NetCDF: a file for each dataset, read with dask or one by one; or one file with groups."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ambar.bench.collection.layouts import Layout, Reader, dask_threads

if TYPE_CHECKING:
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


class NetcdfDask(Reader):
    """All files as one dataset: xarray's own way for many files."""

    key = "netcdf-dask"
    name = "netcdf+dask"
    layout = NetcdfFiles

    def prepare(self) -> None:
        """Import xarray."""
        import xarray as xr

        self.xarray = xr

    def read(self) -> Any:
        """Open, select and load."""
        request = self.request
        files = [_file(request.folder, name) for name in request.datasets]
        with (
            dask_threads(request.threads),
            self.xarray.open_mfdataset(
                files,
                combine="nested",
                concat_dim="dataset",
                parallel=True,
                engine="netcdf4",
                combine_attrs="drop_conflicts",
            ) as opened,
        ):
            return opened[request.case.names].isel(request.window).load()


class NetcdfLoop(NetcdfDask):
    """One file after the other."""

    key = "netcdf-loop"
    name = "netcdf, loop"

    def read(self) -> Any:
        """Open, select and load each."""
        request = self.request
        loaded = []
        for name in request.datasets:
            path = _file(request.folder, name)
            with self.xarray.open_dataset(path, engine="netcdf4") as opened:
                loaded.append(opened[request.case.names].isel(request.window).load())
        return loaded


class NetcdfGroupsLoop(NetcdfDask):
    """One group after the other."""

    key = "netcdf-groups"
    name = "netcdf, groups of one file"
    layout = NetcdfGroups

    def read(self) -> Any:
        """Open, select and load each."""
        request = self.request
        loaded = []
        with _whole(request.folder, "r") as file:
            for name in request.datasets:
                opened = self.xarray.open_dataset(_group(file[name]))
                loaded.append(opened[request.case.names].isel(request.window).load())
        return loaded
