"""Patches as yt datasets, with the fields, units and parameters of yt's readers of AMReX.

yt has a class for each code, which it recognises by text files in the plotfile (yt 4.4,
``yt.frontends.amrex``). The dataset is of that class; it parses the text files in a temporary
folder, and takes boxes and values from the snapshot.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from yt.frontends.amrex import data_structures as amrex
from yt.frontends.amrex.io import IOHandlerBoxlib
from yt.geometry.api import Geometry
from yt.units import YTQuantity
from yt.utilities.hierarchy_inspection import find_lowest_subclasses

from ambar import _core
from ambar.snapshot.amrex_info import AmrexInfo
from ambar.snapshot.interop.patch_levels import Level, levels_of
from ambar.snapshot.interop.yt.text_files import text_files

if TYPE_CHECKING:
    from ambar.snapshot.particles import Particles
    from ambar.snapshot.snapshot import Snapshot

Field = tuple[str, str]

_CODES: list[Any] = [
    kind
    for kind in vars(amrex).values()
    if isinstance(kind, type) and issubclass(kind, amrex.BoxlibDataset)
]
"""yt's classes of datasets."""


def plotfile_dataset(snapshot: Snapshot, **options: Any) -> Any:
    """Return a dataset of patches, of yt's class for the code that wrote them.

    Parameters
    ----------
    snapshot
        A snapshot with patches.
    options
        Options of yt's datasets: ``units_override``, ``unit_system``.
    """
    info = cast(AmrexInfo, snapshot.info)
    root = Path(tempfile.mkdtemp(prefix="ambar-yt-"))
    try:
        folder = root / (Path(snapshot.location).name or "snapshot")
        folder.mkdir()
        for name, text in text_files(snapshot).items():
            (folder / name).write_text(text)
        for name in ("Header", *(f"{species}/Header" for species in snapshot.species)):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).touch()
        if info.given_units is not None:
            units = info.given_units
            given = {
                "length_unit": (units.unit_l, "cm"),
                "time_unit": (units.unit_t, "s"),
                "mass_unit": (units.unit_m, "g"),
                "velocity_unit": (units.unit_v, "cm/s"),
            }
            options["units_override"] = given | (options.get("units_override") or {})
        codes = [code for code in _CODES if code._is_valid(str(folder))]
        code = find_lowest_subclasses(codes)[0]
        dataset = _snapshot_class_of(code)(str(folder), snapshot, **options)
    except BaseException:
        shutil.rmtree(root, ignore_errors=True)
        raise
    weakref.finalize(dataset, shutil.rmtree, root, ignore_errors=True)
    return dataset


def _restored(snapshot: Snapshot, options: dict[str, Any]) -> Any:
    """Return a dataset that was pickled."""
    return plotfile_dataset(snapshot, **options)


@cache
def _snapshot_class_of(code: type) -> type:
    """Return a class of yt whose boxes and values come from a snapshot."""
    index = code._index_class  # type: ignore[attr-defined]
    own_index = type(f"Ambar{index.__name__}", (_SnapshotHierarchy, index), {})
    attributes = {"_index_class": own_index}
    return type(f"Ambar{code.__name__}", (_SnapshotPlotfile, code), attributes)


class _SnapshotPlotfile:
    """What datasets read from headers."""

    _snapshot: Snapshot
    fluid_types: tuple[str, ...]
    dimensionality: int
    domain_offset: Any
    parameters: dict[str, Any]

    def __new__(cls, *_args: object, **_options: object) -> Any:
        """Return a new object: yt's own cache knows paths only."""
        return object.__new__(cls)

    def __init__(self, folder: str, snapshot: Snapshot, **options: Any) -> None:
        self._snapshot = snapshot
        self._options = options
        self.unique_identifier = uuid.uuid4().hex
        super().__init__(folder, **options)  # type: ignore[call-arg]

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _restored, (self._snapshot, self._options)

    def __repr__(self) -> str:
        """Return the location of the snapshot."""
        return self._snapshot.location

    def _parse_header_file(self) -> None:
        """Set what yt reads from ``Header``."""
        info = cast(AmrexInfo, self._snapshot.info)
        ndim = info.ndim
        self._field_list = list(self._snapshot.amr.fields)
        self.dimensionality = ndim
        # The time of Nyx has another unit than its fields.
        has_units = info.given_units is not None
        self.current_time = YTQuantity(info.age("s"), "s") if has_units else info.time
        self._max_level = len(info.levels) - 1
        ratios = [level.ratio for level in info.levels[:-1]]
        if any(len(set(ratio)) > 1 for ratio in ratios):
            raise _core.UnsupportedError(
                f"{self._snapshot.location}: expected one refinement ratio for all dimensions, "
                f"found {ratios}"
            )
        self.ref_factors = np.array([ratio[0] for ratio in ratios] or [2], dtype=np.int64)
        self.refine_by = int(self.ref_factors.min())
        steps = np.log(self.ref_factors) / np.log(self.refine_by)
        if not np.allclose(steps, np.round(steps)):
            raise _core.UnsupportedError(
                f"{self._snapshot.location}: expected refinement ratios that are powers of the "
                f"smallest, found {self.ref_factors.tolist()}"
            )
        self.level_offsets = [0, *np.cumsum(np.round(steps).astype(int) - 1).tolist()]
        root = info.levels[0]
        self.domain_offset[:ndim] = root.lo
        dimensions = np.ones(3, dtype=np.int64)
        dimensions[:ndim] = np.subtract(root.hi, root.lo)
        self.domain_dimensions = dimensions
        self.geometry = Geometry(info.coordinates)
        left, right = np.zeros(3), np.ones(3)
        left[:ndim], right[:ndim] = info.lower, info.upper
        if self.geometry is Geometry.CYLINDRICAL:
            right[2] = 2 * np.pi
        if self.geometry is Geometry.SPHERICAL and ndim < 3:
            right[ndim:] = [np.pi, 2 * np.pi][ndim - 1 :]
        self.domain_left_edge, self.domain_right_edge = left, right

    @classmethod
    def _is_valid(cls, *_args: object, **_options: object) -> bool:
        return False  # `frontend` looks at files


class _Species(NamedTuple):
    """The particles of a species, and their fields by their names in yt."""

    rows: Particles
    columns: dict[str, str]
    counts: np.ndarray
    """Particles of each grid of yt."""


class _SnapshotHierarchy:
    """What hierarchies read from the headers of levels, and of particles."""

    ds: Any
    grids: list[Any]
    grid: Any

    def _count_grids(self) -> None:
        self.levels: list[Level] = levels_of(self.ds._snapshot.amr)
        self.level_starts = np.cumsum([0, *(len(level.boxes) for level in self.levels)])
        self.num_grids = int(self.level_starts[-1])

    def _parse_index(self) -> None:
        info = cast(AmrexInfo, self.ds._snapshot.info)
        ndim = info.ndim
        self.max_level = self.ds._max_level
        self.dimensionality = ndim
        self.float_type = "float64"
        left, right = self.ds.domain_left_edge.d, self.ds.domain_right_edge.d
        self.level_dds = np.tile(right - left, (len(self.levels), 1))
        self.grids = []
        start = 0
        for level, about in zip(self.levels, info.levels, strict=True):
            self.level_dds[level.number, :ndim] = level.cell_size
            part = slice(start, start + len(level.boxes))
            low, high = level.boxes[:, 0], level.boxes[:, 1]
            for edges, corners, default in (
                (self.grid_left_edge, low, left),  # type: ignore[attr-defined]
                (self.grid_right_edge, high, right),  # type: ignore[attr-defined]
            ):
                edges[part] = default
                edges[part, :ndim] = left[:ndim] + corners * np.array(level.cell_size)
            dimensions, first = self.grid_dimensions, self.grid_start_index  # type: ignore[attr-defined]
            dimensions[part], first[part] = 1, 0
            dimensions[part, :ndim] = high - low
            first[part, :ndim] = low + np.array(about.lo)
            self.grid_levels[part] = level.number  # type: ignore[attr-defined]
            for number in range(len(level.boxes)):
                grid = self.grid(start + number, 0, None, self)
                grid.Level = level.number
                self.grids.append(grid)
            start = part.stop

    def number_in_level(self, grid: Any) -> int:
        """Return the number of the box of a grid."""
        return int(grid.id) - int(grid._id_offset) - int(self.level_starts[grid.Level])

    def _cache_endianness(self, test_grid: Any) -> None:
        """Do nothing: there are no files."""

    def _setup_data_io(self) -> None:
        self.io = PlotfileReader(self.ds)

    def _read_particles(
        self,
        directory_name: str,
        is_checkpoint: bool,  # noqa: ARG002
        extra_field_names: Sequence[str] | None = None,  # noqa: ARG002
    ) -> None:
        """Add a species; names and numbers of components are those in the snapshot."""
        ds = self.ds
        rows = ds._snapshot.species[directory_name]
        table = rows.read(["level", "grid"])
        grids = self.level_starts[table["level"].astype(np.int64)] + table["grid"]
        counts = np.bincount(grids, minlength=self.num_grids)
        columns = {
            f"particle_{name}": name for name in rows.fields if name not in ("level", "grid")
        }
        if ds._particle_type_counts is None:
            ds._particle_type_counts = {}
        ds._particle_type_counts[directory_name] = len(rows)
        self.species = getattr(self, "species", {}) | {
            directory_name: _Species(rows, columns, counts)
        }
        self.grid_particle_count[:, 0] += counts  # type: ignore[attr-defined]
        for grid, count in zip(self.grids, counts.tolist(), strict=True):
            grid.NumberOfParticles += count
        self.field_list: list[Field]
        self.field_list.extend((directory_name, name) for name in columns)


class PlotfileReader(IOHandlerBoxlib):  # type: ignore[misc] # yt has no types
    """Reads fields and particles box by box."""

    _dataset_type = "ambar_plotfile"

    def _read_fluid_selection(
        self, chunks: Iterable[Any], selector: Any, fields: Sequence[Field], size: int
    ) -> dict[Field, np.ndarray]:
        index = self.ds.index
        found = {field: np.empty(size) for field in fields}
        start = 0
        for grid in (grid for chunk in chunks for grid in chunk.objs):
            count = grid.count(selector)
            if not count:
                continue
            level = index.levels[grid.Level]
            number = index.number_in_level(grid)
            for field in fields:
                values = level.read(field[1], number).reshape(grid.ActiveDimensions, order="F")
                grid.select(selector, values, found[field], start)
            start += count
        return found

    def _read_particle_coords(
        self, chunks: Iterable[Any], ptf: dict[str, list[str]]
    ) -> Iterator[tuple[str, tuple[np.ndarray, ...], float]]:
        for chunk in chunks:
            for kind in sorted(ptf):
                yield kind, self._read_grids(chunk.objs, kind, [])[0], 0.0

    def _read_particle_fields(
        self, chunks: Iterable[Any], ptf: dict[str, list[str]], selector: Any
    ) -> Iterator[tuple[Field, np.ndarray]]:
        for chunk in chunks:
            for kind, names in sorted(ptf.items()):
                places, values = self._read_grids(chunk.objs, kind, names)
                mask = selector.select_points(*places, 0.0) if len(places[0]) else None
                if mask is not None:
                    for name in names:
                        yield (kind, name), values[name][mask]

    def _read_grids(
        self, grids: Sequence[Any], kind: str, names: Sequence[str]
    ) -> tuple[tuple[np.ndarray, ...], dict[str, np.ndarray]]:
        """Return positions and fields of the particles of grids, as float64."""
        index = self.ds.index
        species = index.species[kind]
        numbers = np.array([grid.id - grid._id_offset for grid in grids], dtype=np.int64)
        numbers = numbers[species.counts[numbers] > 0]
        if not len(numbers):
            return (np.empty(0),) * 3, {name: np.empty(0) for name in names}
        ndim = self.ds.dimensionality
        columns = [species.columns[name] for name in names]
        axes = [f"position_{axis}" for axis in "xyz"[:ndim]]
        starts = index.level_starts
        levels = starts.searchsorted(numbers, side="right") - 1
        own = numbers - starts[levels]
        # Chunks without these levels and boxes are not read.
        table = species.rows.read(
            list(dict.fromkeys([*columns, *axes, "level", "grid"])),
            where=f"level >= {levels.min()} and level <= {levels.max()} and "
            f"grid >= {own.min()} and grid <= {own.max()}",
        )
        chosen = np.isin(starts[table["level"].astype(np.int64)] + table["grid"], numbers)
        places = [table[axis][chosen].astype(np.float64) for axis in axes]
        middle = (self.ds.domain_left_edge.d + self.ds.domain_right_edge.d) / 2
        places += [np.full(len(places[0]), middle[axis]) for axis in range(ndim, 3)]
        values = {
            name: table[column][chosen].astype(np.float64)
            for name, column in zip(names, columns, strict=True)
        }
        return tuple(places), values
