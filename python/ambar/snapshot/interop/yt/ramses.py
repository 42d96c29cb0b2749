"""Trees of cells as yt datasets, with the fields, units and cosmology of yt's reader of RAMSES.

The class of yt for RAMSES is kept; what it reads from files comes from a snapshot instead, domain
by domain (`octs`). As there (yt 4.4), code_length is the side of the box, ("gas", "temperature") is
T/mu, and the root mesh of yt is the coarsest level of the run.
"""

from __future__ import annotations

import io
import uuid
import weakref
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from yt.data_objects.static_output import Dataset
from yt.frontends.ramses.data_structures import RAMSESDataset, RAMSESDomainSubset, RAMSESIndex
from yt.frontends.ramses.field_handlers import RTFieldFileHandler
from yt.frontends.ramses.fields import RAMSESFieldInfo
from yt.frontends.ramses.io import IOHandlerRAMSES, convert_ramses_conformal_time_to_physical_time
from yt.utilities.lib.cosmology_time import t_frw, tau_frw
from yt.utilities.on_demand_imports import _f90nml as f90nml

from ambar import _core
from ambar.snapshot.interop.yt.octree import DomainOfOcts, WholeTree
from ambar.snapshot.interop.yt.octs import domains_of, root_cells
from ambar.snapshot.interop.yt.particle_rows import ParticleRows
from ambar.snapshot.interop.yt.ramses_names import FLUID_TYPES, fluid_names, particle_names
from ambar.snapshot.interop.yt.row_reading import read_rows
from ambar.snapshot.run_info import RamsesInfo

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot

Field = tuple[str, str]


class AmbarRamsesFields(RAMSESFieldInfo):  # type: ignore[misc] # yt has no types
    """The fields of yt's reader of RAMSES, without its tables of cooling, which are not stored."""

    def create_cooling_fields(self) -> bool:
        """Return False: cooling tables are not stored."""
        return False


class AmbarRamsesDataset(RAMSESDataset):  # type: ignore[misc]
    """A snapshot of a RAMSES run. `yt.load` and `Snapshot.to_yt` return it."""

    def __new__(cls, *_args: object, **_options: object) -> AmbarRamsesDataset:
        """Return a new object: equal paths may be different snapshots."""
        return object.__new__(cls)

    def __init__(self, snapshot: Snapshot, **options: Any) -> None:
        info = snapshot.info
        if not isinstance(info, RamsesInfo) or info.ndim != 3:
            raise _core.UnsupportedError(
                f"{snapshot.location}: expected cells in three dimensions for yt, found {info.ndim}"
            )
        self.snapshot = snapshot
        self.info = info
        self._options = options
        self.root_folder = snapshot.location
        self.num_groups = 0
        self.storage_filename = None
        self.force_cosmological = None
        self._fields_in_file = None
        self._bbox = None
        self._force_max_level = self._sanitize_max_level(None, None)
        self.fluids = {
            (kind, name): field
            for component, kind in FLUID_TYPES.items()
            for name, field in fluid_names(
                component, snapshot.components.get(component, ())
            ).items()
        }
        self.tables = {}
        for component in ("particles", "sinks"):
            if fields := snapshot.components.get(component):
                is_csv = component == "sinks" and "msink" in fields
                kind = "io" if component == "particles" else "sink_csv" if is_csv else "sink"
                self.tables[kind] = (component, particle_names(component, fields))
        Dataset.__init__(self, snapshot.location, "ambar_ramses", **options)
        self.particle_types = self.particle_types_raw = tuple(self.tables)
        self.fluid_types += tuple(dict.fromkeys(kind for kind, _ in self.fluids))
        self.use_conformal_time = info.cosmological and not info._cosmology.has_proper_times

    _field_info_class = AmbarRamsesFields

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _restored, (self.snapshot, self._options)

    @cached_property
    def unique_identifier(self) -> str:
        """A name that no other dataset has."""
        return uuid.uuid4().hex

    @cached_property
    def coarsest(self) -> int:
        """The level of the refined cells that are yt's octs of level 0."""
        return min(self.info.levelmin, self.snapshot.amr.levels[0]) - 1

    def _parse_parameter_file(self) -> None:
        info = self.info
        self.dimensionality = 3
        self.refine_by = 2
        self.gamma = info.gamma if info.gamma is not None else 1.4
        self.parameters.update(
            {"HydroMethod": "ramses", "Time": 1.0, "ordering type": info.ordering}
        )
        for name in ("ncpu", "ndim", "levelmin", "levelmax", "ngridmax", "nstep_coarse", "boxlen"):
            self.parameters[name] = getattr(info, name)
        for name in ("time", "aexp", "H0", "omega_m", "omega_l", "omega_k", "omega_b"):
            self.parameters[name] = getattr(info, name)
        for name in ("unit_l", "unit_d", "unit_t"):
            self.parameters[name] = getattr(info, name)
        roots = root_cells(self.snapshot.amr)
        self.min_level = self.coarsest
        self.max_level = info.levelmax - self.coarsest - 1
        self.domain_left_edge = np.zeros(3)
        self.domain_right_edge = np.array(info.box_size) / info.boxlen
        self.domain_dimensions = (roots << (self.coarsest + 1)).astype(np.int32)
        self._periodicity = tuple(info.periodic) or (True, True, True)
        self.cosmological_simulation = info.cosmological
        self.current_redshift = info.redshift if info.cosmological else 0
        self.omega_matter = info.omega_m if info.cosmological else 0
        self.omega_lambda = info.omega_l if info.cosmological else 0
        self.hubble_constant = info.H0 / 100 if info.cosmological else 0
        self.current_time = info.time
        if info.cosmological:
            redshifts = 1 / np.geomspace(1e-3, 1, 2_000, endpoint=False) - 1
            self.tau_frw, self.t_frw = tau_frw(self, redshifts), t_frw(self, redshifts)
            self.current_time = t_frw(self, self.current_redshift).to("Gyr")
        self._set_radiation_parameters()
        self.read_namelist()

    def _set_radiation_parameters(self) -> None:
        """Set what yt reads from ``info_rt_NNNNN.txt``."""
        has_radiation = "rt" in self.snapshot.components and bool(self.info.rt)
        registries = (RTFieldFileHandler._unique_registry, RTFieldFileHandler.rt_parameters)
        for registry in registries:
            weakref.finalize(self, registry.pop, self.unique_identifier, None)
        RTFieldFileHandler._unique_registry[self.unique_identifier] = has_radiation
        if has_radiation:
            one = {name: values[0] for name, values in self.info.rt.items() if values}
            counts = {name: int(one[name]) for name in ("nGroups", "nIons") if name in one}
            lists = {"rt_c_frac": list(self.info.rt.get("rt_c_frac", (1.0,)))}
            RTFieldFileHandler.rt_parameters[self.unique_identifier] = one | counts | lists

    def read_namelist(self) -> bool:
        """Parse the namelist, if there is one and f90nml is installed."""
        if not self.info.namelist:
            return False
        try:
            self.parameters["namelist"] = f90nml.read(io.StringIO(self.info.namelist))
        except (ImportError, ValueError, StopIteration, AssertionError):
            return False
        return True

    @classmethod
    def _is_valid(cls, *_args: object, **_options: object) -> bool:
        return False  # `frontend` looks at files


class AmbarRamsesSubset(RAMSESDomainSubset):  # type: ignore[misc]
    """The part of a domain that is selected."""

    @property
    def oct_handler(self) -> Any:
        """The octs of the domain; with ghost zones, all octs."""
        has_ghosts = self._num_ghost_zones > 0
        return self._index.whole.oct_handler if has_ghosts else self.domain.oct_handler

    def fill(self, fields: Sequence[Field], selector: Any) -> dict[Field, np.ndarray]:
        """Return fields in the selected cells."""
        if self._num_ghost_zones:
            return self._fill_ghosts(fields, selector)
        count = selector.count_oct_cells(self.oct_handler, self.domain_id)
        if not count:
            return {field: np.empty(0) for field in fields}
        _, cells, octs = self.oct_handler.file_index_octs(selector, self.domain_id, count)
        rows = self.domain.rows[octs, cells]
        names = {field: self.ds.fluids[field] for field in fields}
        table = read_rows(self.ds.snapshot.amr, list(dict.fromkeys(names.values())), rows)
        refined = rows < 0
        # Whole octs are selected with refined cells, which yt leaves out itself; other selections
        # have them up to the highest level that the user chose.
        if refined.any() and getattr(selector, "domain_id", None) is None:
            octs, cells = octs[refined], cells[refined]
            domains = np.full(len(octs), self.domain_id)
            for field, name in names.items():
                values = self._index.whole.values(field, domains, octs, cells)
                table[name][refined] = values
        return {field: table[name] for field, name in names.items()}

    def _fill_ghosts(self, fields: Sequence[Field], selector: Any) -> dict[Field, np.ndarray]:
        handler = self.oct_handler
        count = selector.count_octs(handler, self.domain_id) * self.nz**3
        if not count:
            return {field: np.empty(0) for field in fields}
        _, cells, octs, domains = handler.file_index_octs_with_ghost_zones(
            selector, self.domain_id, count, self._num_ghost_zones
        )
        whole = self._index.whole
        return {field: whole.values(field, domains, octs, cells) for field in fields}

    def retrieve_ghost_zones(
        self,
        ngz: int,
        fields: Sequence[Field],
        smoothed: bool = False,  # noqa: ARG002
    ) -> AmbarRamsesSubset:
        """Return the subset with cells around its octs."""
        subset = AmbarRamsesSubset(
            self.base_region, self.domain, self.ds, num_ghost_zones=ngz, base_grid=self
        )
        subset.get_data(fields)
        return subset


class AmbarRamsesIndex(RAMSESIndex):  # type: ignore[misc]
    """The domains of a snapshot."""

    def __init__(self, ds: Any, dataset_type: str = "ambar_ramses") -> None:
        super().__init__(ds, dataset_type)

    def _initialize_oct_handler(self) -> None:
        ds = self.dataset
        self.domain_rows = domains_of(ds.snapshot.amr, ds.coarsest)
        self.domains = [DomainOfOcts(self, number) for number in range(len(self.domain_rows))]
        roots = root_cells(ds.snapshot.amr).tolist()
        side = float(ds.info.box_size[0] / roots[0])
        self.particle_rows = {
            kind: ParticleRows(getattr(ds.snapshot, component), self.domain_rows, roots, side)
            for kind, (component, _) in ds.tables.items()
        }

    @cached_property
    def whole(self) -> WholeTree:
        """All octs."""
        return WholeTree(self)

    @cached_property
    def max_level(self) -> int:
        """The finest level, counted from the root mesh."""
        return int(self.dataset.snapshot.amr.levels[1]) - int(self.dataset.coarsest) - 1

    @cached_property
    def num_grids(self) -> int:
        """The number of octs."""
        return sum(len(domain.rows) for domain in self.domains)

    def boxes_of(self, number: int) -> np.ndarray:
        """Return boxes that contain the cells of a domain, code_length: shape (n, 2, 3)."""
        domain, ds = self.domain_rows[number], self.dataset
        root = ds.domain_width.d / root_cells(ds.snapshot.amr)
        late = [leaf.cell for leaf in domain.leaves_in_later_domains]
        corners = np.array([cell[1:] for cell in late], dtype=np.float64).reshape(-1, 3)
        sides = np.array([2.0**-cell.level for cell in late])[:, None]
        boxes = np.stack([corners * sides, (corners + 1) * sides], axis=1)
        return np.asarray(np.concatenate([domain.box[None], boxes]) * root)

    def _detect_output_fields(self) -> None:
        ds = self.dataset
        self.fluid_field_list = list(ds.fluids)
        self.particle_field_list = [
            (kind, name) for kind, (_, names) in ds.tables.items() for name in names
        ]
        if ds.cosmological_simulation:
            births = [field for field in self.particle_field_list if field[1] == _BIRTH]
            self.particle_field_list += [(kind, _CONFORMAL) for kind, _ in births]
        self.field_list = self.particle_field_list + self.fluid_field_list

    def _identify_base_chunk(self, dobj: Any) -> None:
        if getattr(dobj, "_chunk_info", None) is None:
            region = getattr(dobj, "base_region", dobj)
            dobj._chunk_info = [
                AmbarRamsesSubset(
                    region, domain, self.dataset, num_ghost_zones=dobj._num_ghost_zones
                )
                for domain in self.domains
                if domain.included(dobj.selector)
            ]
        dobj._current_chunk = next(iter(self._chunk_all(dobj)))

    def _initialize_level_stats(self) -> None:
        ds, counts = self.dataset, self.dataset.snapshot.amr.cells_per_level
        levels = ds.min_level + ds.max_level + 2
        self.level_stats = np.zeros(levels, [("numcells", np.int64), ("level", np.int64)])
        self.level_stats["level"] = np.arange(len(self.level_stats))
        self.level_stats["numcells"][list(counts)] = list(counts.values())

    def _get_particle_type_counts(self) -> dict[str, int]:
        return {kind: len(rows) for kind, rows in self.particle_rows.items()}


AmbarRamsesDataset._index_class = AmbarRamsesIndex


def _restored(snapshot: Snapshot, options: dict[str, Any]) -> AmbarRamsesDataset:
    """Return a dataset that was pickled."""
    return AmbarRamsesDataset(snapshot, **options)


_BIRTH, _CONFORMAL = "particle_birth_time", "conformal_birth_time"


class AmbarRamsesReader(IOHandlerRAMSES):  # type: ignore[misc]
    """Reads fields of cells and particles, domain by domain."""

    _dataset_type = "ambar_ramses"

    def _read_fluid_selection(
        self,
        chunks: Iterable[Any],
        selector: Any,
        fields: Sequence[Field],
        size: int | None,  # noqa: ARG002 # not always known
    ) -> dict[Field, np.ndarray]:
        parts: dict[Field, list[np.ndarray]] = {field: [np.empty(0)] for field in fields}
        for chunk in chunks:
            for subset in chunk.objs:
                for field, values in subset.fill(fields, selector).items():
                    parts[field].append(values)
        return {field: np.concatenate(parts.pop(field)) for field in fields}

    def _read_particle_fields(
        self, chunks: Iterable[Any], ptf: dict[str, list[str]], selector: Any
    ) -> Iterator[tuple[Field, np.ndarray]]:
        axes = [f"particle_position_{axis}" for axis in "xyz"]
        for chunk in chunks:
            for subset in chunk.objs:
                for kind, names in sorted(ptf.items()):
                    fields = [(kind, name) for name in dict.fromkeys([*names, *axes])]
                    table = self._read_particle_subset(subset, fields)
                    places = (np.ascontiguousarray(table[kind, axis]) for axis in axes)
                    mask = selector.select_points(*places, 0.0)
                    if mask is not None:
                        for name in names:
                            yield (kind, name), table[kind, name][mask]

    def _read_particle_subset(
        self, subset: Any, fields: Iterable[Field]
    ) -> dict[Field, np.ndarray]:
        ds = self.ds
        found: dict[Field, np.ndarray] = {}
        fields = list(fields)
        for kind in dict.fromkeys(kind for kind, _ in fields):
            columns = ds.tables[kind][1]
            names = {
                field: columns[_BIRTH if field[1] == _CONFORMAL else field[1]]
                for field in fields
                if field[0] == kind
            }
            rows = ds.index.particle_rows[kind]
            table = rows.read(subset.domain_id - 1, list(dict.fromkeys(names.values())))
            for field, name in names.items():
                values = table[name].astype(np.float64)
                if field[1].startswith("particle_position_"):
                    values /= ds.info.boxlen
                elif field[1] == _BIRTH and ds.cosmological_simulation:
                    values = self._birth_times(values)
                found[field] = values
        return found

    def _birth_times(self, stored: np.ndarray) -> np.ndarray:
        """Return birth times in code_time since the Big Bang; 0 stays 0: not a star."""
        ds = self.ds
        if ds.use_conformal_time:
            times = convert_ramses_conformal_time_to_physical_time(ds, stored)
        else:
            hubble_time = ds.quan(1 / (ds.hubble_constant * 100), "Mpc*s/km")
            times = t_frw(ds, 0) + stored * hubble_time
        return np.where(stored != 0, times.to("code_time").v, 0)
