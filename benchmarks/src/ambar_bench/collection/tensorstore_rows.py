"""TensorStore: a Zarr array for each variable of each dataset, all opened and read concurrently."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar_bench.collection.layouts import Layout, Reader

if TYPE_CHECKING:
    import xarray as xr

AT_ONCE = 1000
"""Arrays that are opened at a time: each has files open meanwhile."""


class TensorstoreArrays(Layout):
    """Zarr v3 arrays, zstd 3, written by concurrent calls."""

    key = "tensorstore"
    name = "TensorStore arrays"
    modules = ("xarray", "tensorstore")

    def prepare(self) -> None:
        """Import TensorStore."""
        import tensorstore

        self.tensorstore = tensorstore
        self.context = tensorstore.Context(_limits(self.threads))

    def add(self, pairs: list[tuple[str, xr.Dataset]]) -> None:
        """Write all variables and coordinates of the datasets."""
        arrays = [
            (f"{name}/{key}", variable)
            for name, dataset in pairs
            for key, variable in dataset.variables.items()
        ]
        for start in range(0, len(arrays), AT_ONCE):
            some = arrays[start : start + AT_ONCE]
            opened = [self._create(path, variable) for path, variable in some]
            writes = [
                future.result().write(_plain(variable.values))
                for future, (_, variable) in zip(opened, some, strict=True)
            ]
            for write in writes:
                write.result()

    def _create(self, path: str, variable: xr.Variable) -> Any:
        chunks = self.case.chunks if variable.ndim == len(self.case.shape) else None
        metadata = {
            "shape": variable.shape,
            "data_type": _plain(variable.values).dtype.name,
            "dimension_names": list(variable.dims),
            "attributes": dict(variable.attrs),
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": chunks or variable.shape},
            },
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "zstd", "configuration": {"level": 3}},
            ],
        }
        spec = {**_spec(self.folder, path), "metadata": metadata}
        return self.tensorstore.open(spec, create=True, context=self.context)


def _plain(values: Any) -> Any:
    return values.view("i8") if values.dtype.kind == "M" else values


def _spec(folder: Path, path: str) -> dict[str, Any]:
    return {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(folder / path)}}


def _limits(threads: int) -> dict[str, Any]:
    # Peers are measured without fsync, as everything here is.
    return {"data_copy_concurrency": {"limit": threads}, "file_io_sync": False}


class TensorstoreReads(Reader):
    """All arrays are opened concurrently, and all windows are read concurrently."""

    key = "tensorstore"
    name = "tensorstore"
    layout = TensorstoreArrays

    def prepare(self) -> None:
        """Import TensorStore."""
        import tensorstore

        self.tensorstore = tensorstore

    def read(self) -> Any:
        """Open all and read."""
        request = self.request
        count = len(request.datasets)
        context = self.tensorstore.Context(_limits(request.threads))
        found = {
            variable.name: np.empty((count, *request.shape), variable.dtype)
            for variable in request.case.variables
        }
        targets = [
            (f"{name}/{key}", values[number])
            for key, values in found.items()
            for number, name in enumerate(request.datasets)
        ]
        for start in range(0, len(targets), AT_ONCE):
            some = targets[start : start + AT_ONCE]
            opened = [
                self.tensorstore.open(_spec(request.folder, path), open=True, context=context)
                for path, _ in some
            ]
            reads = [future.result()[request.box].read() for future in opened]
            for read, (_, target) in zip(reads, some, strict=True):
                target[...] = read.result()
        return found
