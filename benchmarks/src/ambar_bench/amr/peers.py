"""Other programs' compressors as rows: SZ3 through pysz and as an HDF5 filter, ZFP."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from ambar_bench.amr import cutting
from ambar_bench.amr.cutting import Piece
from ambar_bench.amr.hierarchy import Hierarchy, Values
from ambar_bench.amr.methods import Method, Variant

ALGORITHMS = ("INTERP_LORENZO", "INTERP", "LORENZO_REG")


class Sz3(Method):
    """SZ3 on each box, with its default algorithm."""

    name = "SZ3 per box, interp+Lorenzo"
    key = "sz3-box"
    modules = ("pysz",)
    algorithms: ClassVar[tuple[str, ...]] = ALGORITHMS[:1]
    merges: ClassVar[bool] = False

    def variants(self, hierarchy: Hierarchy, name: str) -> Iterator[Variant]:
        """Yield the pieces under each algorithm."""
        cut = cutting.merged if self.merges else cutting.boxes
        pieces = [piece for level in hierarchy.levels for piece in cut(level, name)]
        for algorithm in self.algorithms:
            yield Variant(algorithm, pieces, algorithm)

    def compress(self, piece: Piece, bound: float, option: Any) -> Any:
        """Return SZ3's bytes."""
        from pysz import sz, szAlgorithm, szConfig, szErrorBoundMode

        config = szConfig()
        config.errorBoundMode = szErrorBoundMode.ABS
        config.absErrorBound = bound
        config.cmprAlgo = getattr(szAlgorithm, option)
        return sz.compress(piece.values, config)[0]

    def decompress(self, packed: Any, piece: Piece) -> Values:
        """Return SZ3's values."""
        from pysz import sz

        values: Values = sz.decompress(packed, piece.values.dtype, piece.values.shape)[0]
        return values


class Sz3Best(Sz3):
    """SZ3 on each box, with the algorithm that suits the field best."""

    name = "SZ3 per box, best algorithm"
    key = "sz3-box-best"
    algorithms = ALGORITHMS


class Sz3Merged(Sz3):
    """SZ3 on levels as one array, where their boxes fill a cuboid."""

    name = "SZ3 merged levels, interp+Lorenzo"
    key = "sz3-merged"
    merges = True


class Sz3MergedBest(Sz3Merged):
    """The same with the algorithm that suits the field best."""

    name = "SZ3 merged levels, best algorithm"
    key = "sz3-merged-best"
    algorithms = ALGORITHMS


class Zfp(Method):
    """ZFP with a fixed accuracy, on each box."""

    name = "ZFP per box"
    key = "zfp-box"
    modules = ("zfpy",)

    def variants(self, hierarchy: Hierarchy, name: str) -> Iterator[Variant]:
        """Yield each box."""
        yield Variant("", [p for level in hierarchy.levels for p in cutting.boxes(level, name)])

    def compress(self, piece: Piece, bound: float, option: Any) -> Any:  # noqa: ARG002
        """Return ZFP's bytes."""
        import zfpy

        return zfpy.compress_numpy(piece.values, tolerance=bound)

    def decompress(self, packed: Any, piece: Piece) -> Values:  # noqa: ARG002
        """Return ZFP's values."""
        import zfpy

        values: Values = zfpy.decompress_numpy(packed)
        return values


class Sz3Hdf5(Method):
    """A dataset a level in chunks of 1024 through SZ3's HDF5 filter: AMReX's output, for real.

    The bytes counted are those of the compressed chunks; HDF5's index of them is not.
    """

    name = "AMReX HDF5, SZ3's own filter"
    key = "sz3-hdf5"
    modules = ("h5py", "hdf5plugin")
    chunk: ClassVar[int] = 1024

    def variants(self, hierarchy: Hierarchy, name: str) -> Iterator[Variant]:
        """Yield each level as a row, covered cells too."""
        yield Variant("", [p for level in hierarchy.levels for p in cutting.row(level, name)])

    def compress(self, piece: Piece, bound: float, option: Any) -> Any:  # noqa: ARG002
        """Return an HDF5 file in memory, and the size of its compressed chunks."""
        import h5py
        import hdf5plugin

        memory = io.BytesIO()
        with h5py.File(memory, "w") as file:
            dataset = file.create_dataset(
                "data",
                data=piece.values,
                chunks=(min(self.chunk, piece.values.size),),
                **hdf5plugin.SZ3(absolute=bound),
            )
            size = int(dataset.id.get_storage_size())
        return memory.getvalue(), size

    def decompress(self, packed: Any, piece: Piece) -> Values:
        """Read the dataset."""
        import h5py
        import hdf5plugin  # noqa: F401 - registers the filter

        values = np.empty_like(piece.values)
        with h5py.File(io.BytesIO(packed[0]), "r") as file:
            file["data"].read_direct(values)
        return values

    def size(self, packed: Any) -> int:
        """Return the bytes of the chunks."""
        return int(packed[1])
