"""The compiled part of the package: thin bindings of the Rust library.

Positions, sizes and regions are in code length. All functions that read or write release the GIL.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, Literal, NoReturn, Self, TypeAlias, TypedDict, final, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer, CapsuleType

# Names that only this file has begin with an underscore: stubtest looks for the others at runtime.
_Progress: TypeAlias = Callable[[int, int], None]
_Path: TypeAlias = str | PathLike[str]
_Array: TypeAlias = NDArray[Any]
_Buffer: TypeAlias = Buffer | NDArray[Any]
"""An object with the buffer protocol; a type checker knows that of arrays from Python 3.12 on."""
_Floats: TypeAlias = NDArray[np.floating[Any]]
_NodeKind: TypeAlias = Literal["group", "array"]
_Mode: TypeAlias = Literal["create", "overwrite", "append"]
_Durability: TypeAlias = Literal["full", "none"]
_Profile: TypeAlias = Literal["fast", "balanced", "small", "raw"]
_Selection: TypeAlias = tuple[int, int, int] | NDArray[np.uint64]
"""(start, stop, step), or indices."""
_FloatName: TypeAlias = Literal["float32", "float64"]

class _Usage(TypedDict):
    """Bytes of a store, and the number of entries of its container."""

    total: int
    live: int
    dead: int
    entries: int

class _CommitInfo(TypedDict):
    """A commit of a store; the time in microseconds since 1970."""

    number: int
    time: int
    message: str
    written: int
    removed: int
    end: int

class _VerifyReport(TypedDict):
    bytes: int
    entries: int
    chunks: int
    unfinished: int
    damage: list[str]

class _Component(TypedDict):
    """A component of a RAMSES output; `why` it is absent."""

    name: str
    present: bool
    fields: list[str]
    aliases: dict[str, str]
    dtypes: list[str]
    why: str | None

class _Species(TypedDict):
    """A species of particles of a plotfile; `why` it is unreadable."""

    name: str
    present: bool
    version: str
    particles: int
    fields: list[str]
    dtypes: list[str]
    why: str | None

class _PlotfileLevel(TypedDict):
    boxes: list[tuple[list[int], list[int]]]
    """First cell and exclusive end of each box."""
    files: list[int]
    """The number of the file of each box."""
    ratio: list[int]

class _ConversionReport(TypedDict):
    source_bytes: int
    stored_bytes: int
    seconds: float
    converted: list[str]
    replaced: list[str]
    skipped: list[str]
    failed: dict[str, str]
    left_out: dict[str, str]

class AmbarError(Exception): ...
class CorruptError(AmbarError): ...
class UnsupportedError(AmbarError): ...
class InvalidError(AmbarError, ValueError): ...
class NotFoundError(AmbarError, KeyError): ...
class BusyError(AmbarError): ...
class LimitError(AmbarError): ...

@final
class Store:
    """One commit of a store, open for reading."""

    def __new__(cls, location: _Path, storage_options: Mapping[str, str] | None = None) -> Self:
        """Open the store at a path or URL; options are for URLs only."""

    @staticmethod
    def of_bytes(data: _Buffer, location: str) -> Store:
        """Open a store in a C-contiguous buffer, copied unless it is `bytes`.

        Messages call it `location`.
        """

    @property
    def location(self) -> str: ...
    def read_ahead(self, paths: list[str]) -> ReadAhead:
        """Read the bytes of small arrays in one request, for following reads."""

    def nodes(self) -> list[tuple[str, _NodeKind]]:
        """Return paths and kinds of all nodes; the root, "/", is the first."""

    def children(self, path: str) -> list[tuple[str, _NodeKind]]:
        """Return names and kinds of the members of a group."""

    def kind(self, path: str) -> _NodeKind | None: ...
    def attributes(self, path: str) -> dict[str, Any]: ...
    def array(self, path: str) -> Array: ...
    def document(self, path: str) -> dict[str, Any]:
        """Return the metadata document of an array, its `zarr.json`."""

    def amr(self, path: str) -> Amr: ...
    def table(self, path: str) -> Table:
        """Particles, or rows without positions."""

    @property
    def commit_id(self) -> tuple[int, int] | None:
        """Number and checksum of the commit; None for stores of other programs."""

    def commits(self) -> list[_CommitInfo]:
        """Return this commit and all commits before, the newest first."""

    def at_commit(self, number: int) -> Store:
        """Open the commit of this number."""

    def tags(self) -> dict[str, int]:
        """Return numbers of commits by the names that users gave them."""

    def differences(
        self, other: Store
    ) -> list[tuple[str, Literal["added", "removed", "values", "metadata"]]]:
        """Return paths of the nodes that differ in another store, and how."""

    def usage(self) -> _Usage: ...
    def verify(
        self, threads: int | None = None, progress: _Progress | None = None
    ) -> _VerifyReport: ...

@final
class ReadAhead:
    """Bytes read ahead from a store, kept until they are released."""

    def release(self) -> None: ...

@final
class Array:
    """An array of a store."""

    @property
    def path(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str:
        """NumPy's name; "string" or "bytes" for values of any length."""

    @property
    def chunks(self) -> tuple[int, ...]: ...
    @property
    def shards(self) -> tuple[int, ...] | None: ...
    @property
    def chunk_count(self) -> int: ...
    @property
    def codecs(self) -> str: ...
    @property
    def error_bound(self) -> float | str | None: ...
    @property
    def unwritten_values(self) -> int: ...
    @property
    def dims(self) -> list[str | None] | None: ...
    @property
    def stored_bytes(self) -> int: ...
    @property
    def raw_bytes(self) -> int | None: ...
    @property
    def fill_value(self) -> bytes: ...
    def attributes(self) -> dict[str, Any]: ...
    def lossy_attributes(self) -> dict[str, Any]:
        """Return the attributes that state the loss of the values."""

    def chunk_ranges(self) -> list[ChunkRange]:
        """Return the ranges of all chunks that were written."""

    @overload
    def read(
        self,
        selection: Sequence[_Selection] | None = None,
        out: None = None,
        threads: int | None = None,
    ) -> _Array | list[str] | list[bytes]:
        """Read (start, stop, step), or indices as uint64, of each dimension.

        Returns a flat array in C order, `out` filled, or a list for values of any length.
        """

    @overload
    def read(
        self,
        selection: Sequence[_Selection] | None,
        out: _Array,
        threads: int | None = None,
    ) -> _Array: ...

@final
class ChunkRange:
    """The bytes of an encoded chunk in a store."""

    @property
    def chunk(self) -> list[int]:
        """The number of the chunk in each dimension."""

    @property
    def file(self) -> str | None:
        """The file below the folder of a store; None if the store is a single file."""

    @property
    def offset(self) -> int: ...
    @property
    def length(self) -> int: ...

@final
class ArraySpec:
    """A new array: data type, shape, attributes and encoding."""

    def __new__(
        cls,
        dtype: str,
        shape: Sequence[int],
        *,
        dims: Sequence[str | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
        fill_value: bytes | None = None,
        chunks: Sequence[int] | None = None,
        shards: Sequence[int] | None = None,
        profile: _Profile | None = None,
        error_bound: float | str | None = None,
        is_grid: bool = False,
        is_read_whole: bool = False,
        has_corners: bool = False,
    ) -> Self:
        """Describe an array; `dtype` is a name as of `Array.dtype`, `profile` of the writer."""

    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...

@final
class Writer:
    """A store open for writing."""

    def __new__(
        cls,
        path: _Path,
        mode: _Mode,
        *,
        directory: bool,
        durability: _Durability,
        profile: _Profile,
        threads: int | None,
        storage_options: Mapping[str, str],
    ) -> Self: ...
    def check(self) -> None:
        """Raise InvalidError in a forked child of the process that opened the writer."""

    def group(self, path: str, attrs: Mapping[str, Any]) -> None: ...
    def attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group or an array, including uncommitted changes."""

    def set_attributes(self, path: str, attrs: Mapping[str, Any]) -> None: ...
    def update_attributes(
        self, path: str, attrs: Mapping[str, Any], removed: Sequence[str]
    ) -> None:
        """Remove attributes, then add or replace others."""

    def array(self, path: str, data: _Buffer | Sequence[bytes], spec: ArraySpec) -> None:
        """Write an array.

        `data` is a C-contiguous buffer, or a list of bytes for values of any length.
        """

    def declare(self, path: str, spec: ArraySpec) -> None:
        """Create an array of its fill value."""

    def write_region(
        self,
        path: str,
        data: _Buffer | Sequence[bytes],
        dtype: str,
        start: Sequence[int],
        shape: Sequence[int],
    ) -> None:
        """Write a region of an array; `data` as for `array`."""

    def append(
        self, path: str, data: Sequence[_Buffer | bytes], dtype: str, shape: Sequence[int]
    ) -> None:
        """Append rows; `data`: consecutive buffers, or bytes; `shape`: of all rows."""

    def dtype(self, path: str) -> str:
        """Return the name of the dtype of an array, including uncommitted arrays."""

    def extend(self, path: str, rows: int) -> None:
        """Make an array longer along its first dimension."""

    def choose_codecs(self, path: str, sample: _Buffer, shape: Sequence[int]) -> None:
        """Choose the codecs of an array without values by a sample."""

    def share(self, paths: Sequence[str], alignment: int) -> SharedCommit:
        """Begin a commit in which tasks of other processes write the arrays at `paths`."""

    def adopt(self, shared: SharedCommit, receipts: Sequence[bytes]) -> None:
        """Adopt what the tasks of a commit have written."""

    def patches(
        self,
        path: str,
        patches: Patches,
        *,
        fields: Sequence[str] | None,
        covered: Literal["auto", "drop", "keep"],
        error_bounds: Sequence[tuple[str, str]],
        progress: _Progress | None,
    ) -> None:
        """Write a group of kind "amr", layout "patches", whose cells Python reads."""

    def copy(
        self, store: Store, nodes: Sequence[tuple[str, str]], progress: _Progress | None = None
    ) -> None:
        """Copy nodes of another store verbatim, with everything below: paths there and here."""

    def cells(
        self,
        path: str,
        cells: Amr,
        fields: Sequence[str],
        attrs: Mapping[str, Any],
        *,
        profile: _Profile,
        bounds: Sequence[tuple[str, str]],
        region: Region | None = None,
        levels: tuple[int, int] | None = None,
        progress: _Progress | None = None,
    ) -> None:
        """Write selected cells of another store, encoded again; `attrs`: more of the kind."""

    def rows(
        self,
        path: str,
        rows: Table,
        columns: Sequence[str],
        attrs: Mapping[str, Any],
        *,
        profile: _Profile,
        bounds: Sequence[tuple[str, str]],
        region: Region | None = None,
        progress: _Progress | None = None,
    ) -> None:
        """Write selected rows of another store, encoded again; `attrs`: more of the kind."""

    def remove(self, path: str) -> None: ...
    def commit(self, message: str = "") -> None: ...
    def tag(self, name: str, number: int | None) -> None:
        """Name a commit, or remove the name."""

    def restore(self, number: int) -> None:
        """Replace all nodes by those of an earlier commit."""

    def close(self) -> None:
        """Close the file, or complete the upload. Uncommitted data are lost."""

    def abort(self) -> None:
        """Close the file, or abort the upload. Uncommitted data are lost."""

@final
class Blocks:
    """The decomposition of arrays of one shape into the blocks of all ranks."""

    @staticmethod
    def encode(
        shape: Sequence[int], blocks: Sequence[tuple[Sequence[int], Sequence[int]]]
    ) -> bytes:
        """Encode start and shape of the blocks of one rank, to gather them from all ranks."""

    @staticmethod
    def gather(parts: Sequence[bytes]) -> Blocks: ...
    @property
    def shape(self) -> list[int]: ...
    def of(self, rank: int) -> list[tuple[list[int], list[int]]]:
        """Return start and shape of each block of a rank."""

@final
class RankWriter:
    """A store that many ranks write, as seen by one rank; messages between ranks are bytes."""

    @staticmethod
    def first(
        path: _Path,
        mode: _Mode,
        *,
        durability: _Durability,
        ranks: int,
        placement: Literal["counter", "reserved"],
        alignment: int,
        extent: int,
        threads: int,
        queue: int | None,
    ) -> RankWriter:
        """Create a store, or open one for appending, on rank 0."""

    @staticmethod
    def join(invitation: bytes, rank: int) -> RankWriter: ...
    def invitation(self) -> bytes: ...
    @property
    def counts(self) -> bool:
        """Whether extents come from a counter that the ranks share."""

    def count_with(self, reserve: Callable[[int], int]) -> None:
        """Take extents from a counter: `reserve` adds a number and returns the previous value."""

    def group(self, path: str, attrs: Mapping[str, Any]) -> None: ...
    def begin_step(self, series: str, time: float) -> str:
        """Create the group of the next step, on rank 0, and return its path."""

    def declare(self, path: str, spec: ArraySpec, blocks: Blocks | None) -> int:
        """Declare an array, and return its number."""

    def write(
        self, array: int, data: _Buffer, start: Sequence[int], shape: Sequence[int]
    ) -> None: ...
    def message_to(self, to: int) -> bytes: ...
    def receive(self, sender: int, message: _Buffer) -> None: ...
    def seal(self) -> bytes: ...
    def commit(self, indices: Sequence[bytes]) -> bytes: ...
    def conclude(self, outcome: bytes) -> None: ...
    def close(self) -> None: ...

@final
class SharedCommit:
    """A commit whose arrays tasks of other processes write."""

    def invitation(self) -> bytes: ...
    def missing(
        self, receipts: Sequence[bytes], expected: Sequence[tuple[str, list[int], list[int]]]
    ) -> list[tuple[str, list[int], list[int]]]:
        """Return the expected regions that no receipt has: path, start and shape."""

    def close(self) -> None:
        """End the commit: tasks cannot write any more."""

@final
class RegionWriter:
    """The writer of one task."""

    def __new__(cls, invitation: bytes, threads: int | None) -> Self: ...
    def write(
        self, path: str, data: _Buffer, dtype: str, start: Sequence[int], shape: Sequence[int]
    ) -> None: ...
    def receipt(self) -> bytes: ...
    def close(self) -> None: ...

@final
class Region:
    """A part of the domain, in code length: see the regions of the package."""

    @staticmethod
    def box(lo: Sequence[float], hi: Sequence[float]) -> Region: ...
    @staticmethod
    def sphere(center: Sequence[float], radius: float) -> Region: ...
    @staticmethod
    def shell(center: Sequence[float], inner: float, outer: float) -> Region: ...
    @staticmethod
    def cylinder(
        center: Sequence[float], axis: Sequence[float], inner: float, outer: float, height: float
    ) -> Region: ...
    @staticmethod
    def oriented_box(
        center: Sequence[float],
        sides: Sequence[float],
        axis: Sequence[float],
        towards: Sequence[float],
    ) -> Region: ...
    @staticmethod
    def union(regions: Sequence[Region]) -> Region: ...
    @staticmethod
    def intersection(regions: Sequence[Region]) -> Region: ...
    def complement(self) -> Region: ...
    def by_volume(self) -> Region:
        """Return a selection of the cells that share volume with it, not by their centres."""

    def contains(self, positions: Sequence[_Floats]) -> NDArray[np.bool_]:
        """Return whether points are inside, from an array of coordinates for each dimension."""

    def in_periodic_box(self, lower: Sequence[float], sides: Sequence[float]) -> Region:
        """Return the region in a box; a side is infinite where the box is not periodic."""

    def may_overlap(self, lower: Sequence[float], upper: Sequence[float]) -> bool:
        """Return False only if no point of a box is inside."""

    def __eq__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class Camera:
    """A view of the domain along a direction."""

    def __new__(
        cls,
        *,
        center: Sequence[float],
        axes: Sequence[Sequence[float]],
        pixel: float,
        shape: Sequence[int],
        depth: float,
        periods: Sequence[float],
    ) -> Self:
        """Describe a view: axes to the right, upwards and along the line of sight."""

    def render(
        self,
        positions: Sequence[_Array],
        footprint: Literal["nearest", "cloud"] | Sequence[_Array],
        values: Sequence[_Array],
        layers: NDArray[np.int64] | None = None,
        layer_count: int = 1,
        is_maximum: bool = False,
        threads: int | None = None,
    ) -> _Floats:
        """Sum values of rows over pixels: float64 (values, layers, right, up).

        `footprint` has the sides of cells along three axes, or radii of splines. A cell contributes
        its values times the volume in the column of a pixel, a particle those times its fraction.
        With `is_maximum`, a pixel has the largest value that touches it, -inf without rows.
        """

@final
class Binning:
    """The bins of rows in histograms of one or more dimensions."""

    def __new__(cls, dimensions: Sequence[tuple[Sequence[float] | _Floats, bool]]) -> Self:
        """Take increasing edges for each dimension, and whether their steps are logarithmic."""

    def index(self, columns: Sequence[_Array]) -> NDArray[np.int64]:
        """Return the bin of each row, the last dimension fastest; outside the number of bins."""

@final
class Amr:
    """The leaf cells of a hierarchy, in a store or in memory."""

    @property
    def layout(self) -> Literal["tree", "patches"]: ...
    @property
    def derived(self) -> list[str]: ...
    @property
    def lower(self) -> list[float]: ...
    @property
    def upper(self) -> list[float]: ...
    def cell_size(self, level: int) -> list[float]:
        """Return the sides of a cell of `level`; raises ValueError if there is no such level."""

    def boxes(self, level: int) -> NDArray[np.int64]:
        """Return int64 (boxes, 2, ndim): first cell and exclusive end; ValueError for a tree."""

    def origins(self, level: int) -> NDArray[np.int64]:
        """Return int64 (blocks, ndim): the first cell of each unit block; ValueError for a tree."""

    def read_box(self, level: int, index: int, field: str) -> _Floats:
        """Return a field on all cells of a box, covered ones too: 1-D, x fastest."""

    @property
    def fields(self) -> list[str]: ...
    @property
    def cells_count(self) -> int: ...
    @property
    def cells_per_level(self) -> list[tuple[int, int]]: ...
    @property
    def ndim(self) -> int: ...
    @property
    def levels(self) -> tuple[int, int]: ...
    @property
    def chunks(self) -> int: ...
    def dtype(self, name: str) -> str: ...
    def chunks_touched(
        self,
        region: Region | None = None,
        levels: tuple[int, int] | None = None,
        condition: Condition | None = None,
        computed: ComputedColumns | None = None,
    ) -> int: ...
    def cells(
        self,
        columns: Sequence[str],
        region: Region | None = None,
        levels: tuple[int, int] | None = None,
        condition: Condition | None = None,
        threads: int | None = None,
        chunks: tuple[int, int] | None = None,
        computed: ComputedColumns | None = None,
    ) -> dict[str, _Array]:
        """Read columns of selected cells; `chunks` is a half-open range of chunk numbers."""

    def bounds(self, column: str, computed: ComputedColumns | None = None) -> _Floats | None:
        """Return bounds of the values in each chunk, (chunks, 2); None if they are unknown."""

    @property
    def chunk_lengths(self) -> list[int]:
        """Leaf cells of each chunk."""

    def load(
        self,
        fields: Sequence[str],
        region: Region | None = None,
        levels: tuple[int, int] | None = None,
        max_level: int | None = None,
        threads: int | None = None,
    ) -> Amr:
        """Return cells in memory; `levels` applies to trees, `max_level` to patches."""

    def grid(
        self,
        field: str,
        level: int,
        lo: Sequence[float],
        hi: Sequence[float],
        preview: bool = False,
        threads: int | None = None,
        computed: ComputedColumns | None = None,
    ) -> tuple[_Floats, list[int]]:
        """Return the grid and its first cell at `level`; of patches as a preview, samples."""

    def slice(
        self,
        field: str,
        axis: int,
        at: float,
        level: int,
        lo: Sequence[float],
        hi: Sequence[float],
        threads: int | None = None,
        computed: ComputedColumns | None = None,
    ) -> tuple[_Floats, list[int]]: ...
    def project(
        self,
        field: str,
        axis: int,
        level: int,
        weight: str | None,
        lo: Sequence[float],
        hi: Sequence[float],
        threads: int | None = None,
        computed: ComputedColumns | None = None,
    ) -> tuple[_Floats, list[int]]:
        """`weight`: None for the integral, "volume" for the mean by volume, else a field."""

@final
class Table:
    """Columns of equal length, in a store or in memory."""

    @property
    def fields(self) -> list[str]: ...
    @property
    def rows(self) -> int: ...
    def dtype(self, name: str) -> str: ...
    def read(
        self,
        columns: Sequence[str],
        region: Region | None = None,
        condition: Condition | None = None,
        threads: int | None = None,
        chunks: tuple[int, int] | None = None,
        computed: ComputedColumns | None = None,
    ) -> dict[str, _Array]:
        """Read columns of selected rows; `chunks` is a half-open range of chunk numbers."""

    def bounds(self, column: str, computed: ComputedColumns | None = None) -> _Floats | None:
        """Return bounds of the values in each chunk, (chunks, 2); None if they are unknown."""

    @property
    def chunk_lengths(self) -> list[int]:
        """Rows of each chunk."""

    def load(
        self,
        columns: Sequence[str],
        region: Region | None = None,
        threads: int | None = None,
    ) -> Table:
        """Return rows in memory."""

@final
class Quantity:
    """A physical quantity, such as velocity, with its units."""

    def __new__(
        cls, name: str, *, dimension: tuple[float, float, float], units: dict[str, float]
    ) -> Self:
        """Describe a quantity.

        `dimension` has the exponents of length, mass and time, `units` the factors that values in
        code units are multiplied by.
        """

@final
class ComputedColumns:
    """Columns of float64 that are computed from others when they are read.

    A formula is an expression, or names of columns and a function that returns a value for each
    row from an array of each. It can name columns before it. A region instead of a function is the
    fraction of cells in it, from their centres and sides.
    """

    def __new__(
        cls, columns: Sequence[tuple[str, str | tuple[Sequence[str], Callable[..., Any] | Region]]]
    ) -> Self:
        """Parse formulas by name; raises ValueError if one is invalid."""

    def needed(self, names: Sequence[str]) -> list[str]:
        """Return the stored and derived columns that `names` need, each once."""

def expression_fields(text: str) -> list[str]:
    """Return the fields that an expression names; raises ValueError if it is invalid."""

@final
class Condition:
    """A condition on the values of fields, parsed from text: "rho * vx**2 > 1e-3"."""

    def __new__(cls, text: str) -> Self:
        """Parse a condition; raises ValueError, with the position, if it is invalid."""

    @property
    def fields(self) -> list[str]:
        """The fields it names, each once, in the order of the text."""

    @property
    def units(self) -> list[str]:
        """The physical units of its numbers, each once."""

    def rename(self, names: dict[str, str]) -> Condition:
        """Return the condition with other names of fields, as a dict from old to new names."""

    def convert_units(
        self,
        quantities: Sequence[Quantity],
        fields: dict[str, str],
        spellings: dict[str, str],
    ) -> Condition:
        """Return the condition with numbers in code units in place of numbers with a unit.

        `fields` and `spellings` are dicts from fields to quantities and from other names of units
        to units. Raises ValueError, with the position, for an unknown unit, another dimension, or a
        field that is not among `fields`.
        """

    def evaluate(self, columns: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Return where the condition is true: bool, of the shape that the columns broadcast to.

        `columns` returns the values of a field: a number, a string, or an array of numbers, strings
        or objects, of which None is a missing value. Other threads must not change an array during
        the call.

        Raises ValueError if numbers are compared with strings, values are neither numbers nor
        strings, or shapes do not broadcast, KeyError for a missing field.
        """

@final
class Ramses:
    """An output of RAMSES."""

    def __new__(cls, path: _Path) -> Self: ...
    @property
    def info(self) -> dict[str, Any]: ...
    @property
    def components(self) -> list[_Component]: ...
    def amr(
        self,
        components: Sequence[str] | None = None,
        fields: Sequence[str] | None = None,
        region: Region | None = None,
        levels: tuple[int, int] | None = None,
        max_level: int | None = None,
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> Amr: ...
    def particles(
        self,
        fields: Sequence[str] | None = None,
        region: Region | None = None,
        threads: int | None = None,
        progress: _Progress | None = None,
    ) -> Table: ...
    def amr_on_demand(self, fields: Sequence[str]) -> Amr:
        """Return the cells with these fields, which are read on first use."""

    def particles_on_demand(self, fields: Sequence[str]) -> Table:
        """Return the particles with these columns, which are read on first use."""

    def sinks(self) -> Table | None: ...
    def clumps(self) -> Table | None: ...

@final
class StreamInfo:
    """The header of a stream of the codec."""

    @property
    def dtype(self) -> _FloatName: ...
    @property
    def values(self) -> int:
        """The number of values."""

    @property
    def error_bound(self) -> float | str: ...

@final
class CodecPlan:
    """Encoder parameters that were chosen for sample values."""

@final
class Amrex:
    """A plotfile of AMReX."""

    def __new__(cls, path: _Path) -> Self: ...
    @property
    def info(self) -> dict[str, Any]: ...
    @property
    def species(self) -> list[_Species]: ...
    @property
    def levels(self) -> list[_PlotfileLevel]: ...
    def read_box(self, level: int, index: int, field: str) -> _Floats:
        """Return a field on all cells of a box, covered ones too: 1-D, x fastest."""

    def amr(self, fields: Sequence[str] | None = None) -> Amr: ...
    def particles(self, species: str, threads: int | None = None) -> Table: ...

@final
class Patches:
    """A patch-based hierarchy whose boxes Python reads."""

    def __new__(
        cls, description: Mapping[str, Any], read: Callable[[int, int, str, int, int], _Buffer]
    ) -> Self:
        """Describe boxes; `read(level, box, field, start, stop)` returns cells, x fastest."""

    @property
    def fields(self) -> list[str]:
        """The names under which the fields are stored."""

    def amr(self, fields: Sequence[str] | None = None) -> Amr: ...

@final
class PartBound:
    """The bound of a part of a field."""

    @property
    def levels(self) -> tuple[int, int] | None:
        """First and last level; None for all."""

    @property
    def region(self) -> list[tuple[float, float]] | None:
        """The sides of a box; None for the whole domain."""

    @property
    def target(self) -> str:
        """The field and the part, in the grammar of targets."""

    @property
    def bound(self) -> str: ...

def arrow_stream(names: Sequence[str], arrays: Sequence[_Array]) -> CapsuleType:
    """Return an `arrow_array_stream` capsule of one record batch that shares the arrays' memory."""

@overload
def codec_decode(
    stream: _Buffer, dtype: Literal["float32"], shape: Sequence[int]
) -> NDArray[np.float32]:
    """Decode values of "float32" or "float64"; CorruptError if their number differs."""

@overload
def codec_decode(
    stream: _Buffer, dtype: Literal["float64"], shape: Sequence[int]
) -> NDArray[np.float64]: ...
@overload
def codec_decode(stream: _Buffer, dtype: str, shape: Sequence[int]) -> _Floats: ...
def select_bounds(
    rules: Sequence[tuple[str, float | str]], names: Sequence[str]
) -> list[PartBound] | None:
    """Select the bounds of a field with any of these names; None if no target matches it.

    The bound of the whole field is last.
    """

def refuse_bound_of(what: str, name: str, known: Sequence[str]) -> NoReturn:
    """Raise NotFoundError for a bound of a field that does not exist, with similar names."""

def bound_needs_range(bound: float | str) -> bool:
    """Return whether a bound depends on the value range of the whole array."""

def bound_parts(
    bound: float | str,
) -> tuple[
    Literal["lossless", "absolute", "relative", "bits", "rms", "of range", "psnr"], list[float]
]:
    """Return the kind of a bound and its numbers.

    Kinds are "lossless", "absolute", "relative" (with the floor, 0 for none), "bits", "rms",
    "of range" and "psnr".
    """

def lossy_attributes(bound: float | str) -> dict[str, Any]:
    """Return the attributes that state a loss in the style of the CF conventions."""

def format_bound(bound: float | str) -> str:
    """Return a bound for people: its numbers have four digits, and are never smaller."""

def codec_encode(
    values: _Floats,
    origins: NDArray[np.int64] | None,
    bound: float | str,
    plan: CodecPlan | None = None,
    fast: bool = False,
    is_padded: bool = False,
) -> bytes:
    """Encode an array of at least one dimension, or unit blocks (n, z, y, x) with origins (n, 3).

    No value will differ by more than `bound`; 0 is lossless. Without a plan one is chosen, with
    `fast` for speed. With `is_padded`, values equal to the last one may be padding, which a root
    mean squared error does not count. Origins are int64 (z, y, x), multiples of the blocks' sides,
    sorted along the Morton curve.
    """

def encode_bare_array(
    values: _Buffer, dtype: str, shape: Sequence[int], predict: bool
) -> tuple[str, bytes]:
    """Return the names of the codecs of a small array, and its bytes."""

def encode_bare_array_with(codecs: str, values: _Buffer, dtype: str, shape: Sequence[int]) -> bytes:
    """Return the bytes of an array, encoded with the codecs of these names."""

def decode_bare_array(
    codecs: str, dtype: str, shape: Sequence[int], encoded: _Buffer, out: _Buffer
) -> None:
    """Decode the result of `encode_bare_array` into `out`."""

def codec_inspect(stream: _Buffer) -> StreamInfo: ...
def codec_tune(
    values: _Floats,
    origins: NDArray[np.int64] | None,
    bound: float | str,
    profile: str = "balanced",
) -> CodecPlan: ...
def compact(path: _Path) -> None: ...
def convert_amrex(
    paths: Sequence[_Path],
    target: _Path,
    *,
    is_series: bool,
    open_file: Callable[[_Path], Patches],
    options: Mapping[str, object],
    store: Mapping[str, object],
    threads: int | None,
    progress: _Progress | None,
) -> _ConversionReport: ...
def convert_ramses(
    path: _Path,
    target: _Path,
    *,
    options: Mapping[str, object],
    store: Mapping[str, object],
    threads: int | None,
    progress: _Progress | None,
) -> _ConversionReport: ...
def memory_limit() -> int:
    """Return the memory limit of this process in bytes."""

def set_memory_limit(limit: int | None) -> int | None:
    """Set the memory limit, None for the memory of the machine; return the previous limit."""

def default_threads() -> int: ...
def check_threads(threads: int | None) -> None:
    """Raise InvalidError if a number of threads is not None or an integer from 1 to 1024."""

def export_amrex(
    store: Store, path: str, target: _Path, threads: int | None, progress: _Progress | None
) -> None:
    """Write the snapshot at `path` of a store as a native plotfile."""

def error_bound(bound: float | str, value_range: Sequence[float] | None = None) -> float | str:
    """Return a bound as a number if it is absolute (0: lossless), else as a string.

    With the value range of the whole array, bounds that depend on it are resolved. Raises
    InvalidError, naming the forms of bounds.
    """

def is_plotfile(path: _Path) -> bool: ...
def repair(path: _Path) -> None: ...
