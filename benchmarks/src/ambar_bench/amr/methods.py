"""What is measured: how each method cuts a field into pieces, compresses and decompresses them.

A method has variants where it has a choice that users make per field, such as SZ3's algorithms: the
one that makes a field smallest counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, ClassVar

from ambar import _core
from ambar_bench.amr import amric, cutting
from ambar_bench.amr.cutting import Piece
from ambar_bench.amr.hierarchy import Hierarchy, Values

CHUNK_CELLS = 256 << 10
"""Cells of a chunk in a store, of levels of at most 512 Ki cells and of more than 32 Mi."""
SHORT_CHUNK_CELLS = 64 << 10
"""The same, of levels of more than 512 Ki and at most 16 Mi."""
STORE_SIDES = (16, 8, 4)
"""Sides of unit blocks that a store chooses among."""


@dataclass
class Variant:
    """One way of compressing a field: its pieces, and what `compress` needs to know."""

    label: str
    pieces: list[Piece]
    option: Any = None


class Method(ABC):
    """A row of the study. `prepare` is not timed, `compress` and `decompress` are."""

    name: ClassVar[str]
    """What tables call it."""
    key: ClassVar[str]
    """What the command line calls it."""
    modules: ClassVar[tuple[str, ...]] = ()
    """Python packages that it needs."""
    ours: ClassVar[bool] = False
    """Whether it is what ambar does."""
    whole: ClassVar[bool] = False
    """Whether it needs all of a plotfile with one bound, and not what a rank wrote."""

    @classmethod
    def lacking(cls) -> list[str]:
        """Return the packages that are not installed."""
        return [module for module in cls.modules if find_spec(module) is None]

    def takes(self, hierarchy: Hierarchy) -> bool:  # noqa: ARG002 - for others to ask
        """Return whether the method can do a plotfile like this."""
        return True

    @abstractmethod
    def variants(self, hierarchy: Hierarchy, name: str) -> Iterator[Variant]:
        """Yield ways of compressing a field."""

    def prepare(self, variant: Variant, bound: float) -> None:  # noqa: B027 - few need to
        """Do what a writer does once for a field, such as choosing settings."""

    @abstractmethod
    def compress(self, piece: Piece, bound: float, option: Any) -> Any:
        """Return a piece compressed."""

    @abstractmethod
    def decompress(self, packed: Any, piece: Piece) -> Values:
        """Return the values of a piece."""

    def size(self, packed: Any) -> int:
        """Return the bytes of a compressed piece."""
        return len(packed)


class Ambar(Method):
    """The codec ambar as stores use it: unit blocks along the curve, in chunks of 256 Ki cells."""

    name = "ambar"
    key = "ambar"
    ours = True
    sides: ClassVar[tuple[int, ...]] = STORE_SIDES
    chunk_cells: ClassVar[int] = CHUNK_CELLS

    def __init__(self) -> None:
        self._cut: dict[int, list[cutting.Aligned]] = {}

    def variants(self, hierarchy: Hierarchy, name: str) -> Iterator[Variant]:
        """Yield the one way: blocks as large as padding lets them be."""
        if id(hierarchy) not in self._cut:
            self._cut[id(hierarchy)] = cutting.aligned(hierarchy, self.sides)
        levels = [blocks.chunks(name, self.chunk_cells) for blocks in self._cut[id(hierarchy)]]
        for number, pieces in enumerate(levels):
            for piece in pieces:
                piece.state["level"] = number
        yield Variant("", [piece for pieces in levels for piece in pieces])

    def prepare(self, variant: Variant, bound: float) -> None:
        """Choose the settings of each level with its middle chunk, as a store does."""
        levels: dict[int, list[Piece]] = {}
        for piece in variant.pieces:
            levels.setdefault(piece.state["level"], []).append(piece)
        for pieces in levels.values():
            middle = pieces[len(pieces) // 2]
            plan = self.tune(middle, bound)
            for piece in pieces:
                piece.state["plan"] = plan

    def tune(self, piece: Piece, bound: float) -> _core.CodecPlan:
        """Return the settings for pieces like this one."""
        return _core.codec_tune(piece.values, piece.origins, bound)

    def compress(self, piece: Piece, bound: float, option: Any) -> bytes:  # noqa: ARG002
        """Return the stream of a chunk."""
        return _core.codec_encode(piece.values, piece.origins, bound, piece.state["plan"])

    def decompress(self, packed: Any, piece: Piece) -> Values:
        """Return a chunk's blocks."""
        return _core.codec_decode(packed, piece.values.dtype.name, piece.values.shape)


class Ambar8(Ambar):
    """The same with blocks of 8 in all levels."""

    name = "ambar, unit blocks of 8"
    key = "ambar-8"
    sides = (8,)


class AmbarSmall(Ambar):
    """The same as the profile "small" has it."""

    name = "ambar, small"
    key = "ambar-small"

    def tune(self, piece: Piece, bound: float) -> _core.CodecPlan:
        """Return the settings for pieces like this one."""
        return _core.codec_tune(piece.values, piece.origins, bound, "small")


class AmbarFast(Ambar):
    """The same with the simplest contexts, as the profile "fast" has it."""

    name = "ambar, fast"
    key = "ambar-fast"

    def tune(self, piece: Piece, bound: float) -> _core.CodecPlan:
        """Return the settings for pieces like this one."""
        return _core.codec_tune(piece.values, piece.origins, bound, "fast")


class AmbarShort(Ambar):
    """The same in chunks of 64 Ki cells, of which a box is read with less around it."""

    name = "ambar, chunks of 64 Ki"
    key = "ambar-64k"
    chunk_cells = SHORT_CHUNK_CELLS


class AmbarFastShort(AmbarFast):
    """The same as the profile "fast" has it."""

    name = "ambar, fast, chunks of 64 Ki"
    key = "ambar-fast-64k"
    chunk_cells = SHORT_CHUNK_CELLS


class AmrexRow(Method):
    """AMReX's compressed HDF5 output in our own implementation of what SZ does there."""

    name = "AMReX, 1-D chunks of 1024 (own)"
    key = "amrex-1d"
    scheme: ClassVar[str] = "1d"

    @classmethod
    def lacking(cls) -> list[str]:
        """Return what is missing to build the schemes."""
        return amric.lacking()

    def variants(self, hierarchy: Hierarchy, name: str) -> Iterator[Variant]:
        """Yield each level as a row, covered cells too."""
        pieces = [piece for level in hierarchy.levels for piece in cutting.row(level, name)]
        yield Variant("", pieces)

    def compress(self, piece: Piece, bound: float, option: Any) -> bytes:  # noqa: ARG002
        """Return a level's stream."""
        return amric.encode(self.scheme, piece.values, bound)

    def decompress(self, packed: Any, piece: Piece) -> Values:
        """Return a level's values."""
        values = piece.values
        return amric.decode(self.scheme, packed, values.dtype.name, values.shape)


class Amric(AmrexRow):
    """A scheme of AMRIC's in our own implementation: unit blocks, covered ones left out."""

    unit_sides: ClassVar[tuple[int, ...]] = (8, 16, 32)

    def takes(self, hierarchy: Hierarchy) -> bool:
        """Return whether there are three dimensions."""
        return hierarchy.ndim == 3

    def variants(self, hierarchy: Hierarchy, name: str) -> Iterator[Variant]:
        """Yield unit blocks of each side: a run's blocking factor decides, here the best one."""
        for side in self.unit_sides:
            pieces = [
                piece
                for level in hierarchy.levels
                for piece in cutting.box_blocks(level, name, side, hierarchy.ndim)
            ]
            yield Variant(f"u={side}", pieces)


class AmricLorenzo(Amric):
    """SZ_L/R with unit SLE and adaptive inner blocks."""

    name = "AMRIC SZ_L/R, unit SLE (own)"
    key = "amric-lr"
    scheme = "lorenzo-regression"


class AmricLinear(Amric):
    """SZ_Interp on unit blocks in a row."""

    name = "AMRIC SZ_Interp, linear (own)"
    key = "amric-linear"
    scheme = "interpolation-linear"


class AmricClustered(Amric):
    """SZ_Interp on unit blocks clustered into a cube."""

    name = "AMRIC SZ_Interp, clustered (own)"
    key = "amric-clustered"
    scheme = "interpolation-clustered"
