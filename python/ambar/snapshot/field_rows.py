"""What cells and particles have in common: fields, their names, and representations."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from ambar import _core
from ambar._util import html, text
from ambar._util.arguments import check_number, names_of
from ambar._util.optional import require
from ambar._util.properties import cached_property
from ambar.snapshot.analysis.batches import Selection
from ambar.snapshot.analysis.centers import find_center
from ambar.snapshot.analysis.profile_methods import ProfileMethods
from ambar.snapshot.analysis.statistics_methods import StatisticsMethods
from ambar.snapshot.code_info import CodeInfo
from ambar.snapshot.derived.catalog import MU_0, SHORT_NAMES, Formula, frame_formulas
from ambar.snapshot.derived.frame import BirthTimes, Parameters, finite_vector
from ambar.snapshot.derived.resolution import (
    Context,
    Definition,
    MissingError,
    Resolution,
    UnknownFieldError,
    available,
    computed_columns,
    needed_definitions,
)
from ambar.snapshot.field_names import (
    ALIASES,
    CELL_COMPONENTS,
    FIELDS_OF_COMPONENTS,
    is_call,
    quantity_of,
    resolve,
    similar_fields,
    similar_quoted_field,
)
from ambar.snapshot.physics.constants import (
    BOLTZMANN,
    GRAVITATION,
    HYDROGEN_FRACTION,
    HYDROGEN_MASS,
)
from ambar.snapshot.physics.cosmology import Cosmology
from ambar.snapshot.physics.unit_expressions import Unit
from ambar.snapshot.regions import Center, Direction, Region, direction, region_in_code
from ambar.snapshot.run_info import RamsesInfo, redshift_of, units_of
from ambar.snapshot.units import ColumnUnits, Units, parse_where
from ambar.store.nodes import array_names

if TYPE_CHECKING:
    import xarray as xr

    from ambar._core import Amr as CoreAmr
    from ambar._core import ComputedColumns, Condition
    from ambar._core import Region as CoreRegion
    from ambar._core import Table as CoreTable
    from ambar.snapshot.amrex_info import AmrexInfo
    from ambar.snapshot.loading import Source
    from ambar.snapshot.run_info import RunInfo
    from ambar.snapshot.table import Table
    from ambar.store.array import Array
    from ambar.store.store import Store

_UNITS = {
    "length": "cm",
    "time": "s",
    "mass": "g",
    "density": "g/cm3",
    "velocity": "cm/s",
    "acceleration": "cm/s2",
    "pressure": "erg/cm3",
    "specific_energy": "erg/g",
    "energy": "erg",
    "magnetic_field": "Gauss",
}
"""The unit of each quantity in representations."""
_HEADER = ("field", "dtype", "unit", "size", "codecs")
_OF_VOLUMES = ("volume", "cell_volume", "mass", "cell_mass")
_OPEN_ROWS = 12


class StoredFields:
    """The arrays of fields in a group of a store."""

    def __init__(self, store: Store, group: str) -> None:
        self._store = store
        self._start = f"{group.strip('/')}/".lstrip("/")
        where = f"{store.location}: /{group.strip('/')}"
        self._array_names = array_names(store._ambar_attributes(group), where)
        self._paths = [path for path in store if path.startswith(self._start)]

    @property
    def sizes(self) -> str:
        """Bytes of all arrays of the group, in memory and in the store."""
        return _sizes(self._store[path] for path in self._paths)

    def arrays(self, field: str) -> list[Array]:
        """Return the array of a field, or one for each level."""
        paths = [path.removeprefix(self._start).split("/") for path in self._paths]
        return [
            self._store[self._start + "/".join(path)]
            for path in paths
            if path[-1] == self._array_names.get(field, field) and "index" not in path[:-1]
        ]


@dataclass(frozen=True)
class Request:
    """Requested columns and a condition, in the names of columns of the core. Pickles."""

    columns: dict[str, str]
    """The columns of the core by requested name."""
    condition: Condition | None
    definitions: tuple[Definition, ...]
    units: dict[str, Unit | None]
    """The units of the values by requested name."""

    @property
    def computed(self) -> _core.ComputedColumns | None:
        """The computed columns, for the core."""
        return computed_columns(self.definitions)

    def only(self, name: str) -> Request:
        """Return the request of one column, with the definitions that it needs."""
        column = self.columns[name]
        definitions = needed_definitions(self.definitions, column)
        return Request({name: column}, self.condition, definitions, {name: self.units[name]})

    def dtype(self, name: str, core: CoreAmr | CoreTable) -> np.dtype[np.generic]:
        """Return the dtype of a column."""
        column = self.columns[name]
        is_computed = any(column == own for own, _ in self.definitions)
        return np.dtype(np.float64 if is_computed else core.dtype(column))


class FieldRows(StatisticsMethods, ProfileMethods, ABC):
    """Base of cells and particles: rows with fields."""

    _parameters = Parameters()
    _fraction_of: Region | None = None
    """The region of the column `FRACTION`, which only views have."""

    _core: CoreAmr | CoreTable
    _info: RunInfo
    _source: Source
    _component: str
    """The group of the fields in the store of the snapshot."""

    @property
    def info(self) -> RamsesInfo | AmrexInfo | CodeInfo:
        """Run information of the snapshot."""
        return self._info

    @property
    def fields(self) -> list[str]:
        """Names of the fields, in the order of the file.

        Stores of RAMSES have the field `domain`, too: the number of the process that wrote a row.
        Outputs that are opened without a conversion do not have it.
        """
        return list(self._core.fields)

    @property
    def derived_fields(self) -> list[str]:
        """Names of the derived fields whose inputs exist: those of `ambar.fields.add` first."""
        return available(self._context)

    def dtype(self, field: str) -> np.dtype[np.generic]:
        """Return the dtype of a field.

        Parameters
        ----------
        field : str
            A field or an alias; a derived field; of cells also a derived column.

        Returns
        -------
        numpy.dtype

        Raises
        ------
        KeyError
            If the field does not exist.

        Examples
        --------
        >>> snapshot = ambar.open_snapshot("run.ambar")
        >>> snapshot.amr.dtype("rho"), snapshot.particles.dtype("id")
        (dtype('float64'), dtype('int32'))
        """
        return self._request([field]).dtype(field, self._core)

    def about(
        self,
        center: Center = "bc",
        axis: Direction = "z",
        velocity: Sequence[float] | str | None = None,
        unit: str = "box",
    ) -> Self:
        """Return these rows with another frame for derived fields.

        Radii, angles, and components of velocities and angular momenta refer to the frame. Regions
        do not. The frame replaces an earlier one: what is not given has its default again.

        Parameters
        ----------
        center : str, array_like of float, or sequence of float and "bc", default "bc"
            The origin; "bc" is the middle of the box. "max:density", "com", "sink:1" and others are
            as for `find_center`, and found in all rows when `about` is called. In a periodic box,
            positions are those of the nearest image.
        axis : {"x", "y", "z"} or sequence of float, default "z"
            The axis of cylindrical and spherical coordinates.
        velocity : "bulk" or sequence of float, optional
            The velocity of the frame, code velocity; "bulk" for the `bulk_velocity` of all rows. By
            default 0.
        unit : str, default "box"
            Unit of `center`, as for `Box`.

        Returns
        -------
        Amr or Particles
            A view; data are read only to find a center or the bulk velocity.

        Raises
        ------
        KeyError
            If the field, the sink or the clump of the center does not exist.
        ValueError
            If the center, the axis, the velocity or the unit is invalid.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> rotation = amr.about((0.5, 0.5, 0.4), axis="z").read("velocity_cylindrical_theta")
        >>> len(rotation) == len(amr)
        True
        """
        changed = replace(
            self._parameters,
            center=tuple(find_center(self, center, unit, Selection()).tolist()),
            axis=direction(axis),
            velocity=None if velocity is None else self._frame_velocity(velocity),
        )
        return self._with(changed)

    def _frame_velocity(self, velocity: Sequence[float] | str) -> tuple[float, ...]:
        if isinstance(velocity, str):
            if velocity != "bulk":
                raise _core.InvalidError(
                    f"invalid velocity {velocity!r}; expected 'bulk' or numbers"
                )
            bulk: list[float] = self.bulk_velocity().tolist()
            return finite_vector(bulk, self._info.ndim, "bulk velocity")
        return finite_vector(velocity, self._info.ndim, "velocity of the frame")

    def with_parameters(
        self,
        *,
        gamma: float | None = None,
        mu: float | None = None,
        birth_times: BirthTimes | None = None,
    ) -> Self:
        """Return these rows with other parameters of derived fields.

        Parameters
        ----------
        gamma : float, optional
            The ratio of specific heats; by default that of the run.
        mu : float, optional
            The mean molecular weight of temperatures; by default 1/0.76, as in RAMSES.
        birth_times : {"conformal", "proper"}, optional
            The time in which birth times of a cosmological run are; by default proper if the
            namelist sets ``use_proper_time``, or the run has radiative transfer.

        Returns
        -------
        Amr or Particles
            A view; no data are read.

        Raises
        ------
        ValueError
            If a parameter is invalid.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> hot = amr.with_parameters(mu=0.6).read("temperature")["temperature"].max()
        >>> bool(hot < amr.read("temperature")["temperature"].max())
        True
        """
        for name, value in (("gamma", gamma), ("mu", mu)):
            if value is None:
                continue
            check_number(name, value)
            if not 0 < value < np.inf:
                raise _core.InvalidError(f"invalid {name}: {value!r}; expected a number > 0")
        if birth_times not in (None, "conformal", "proper"):
            raise _core.InvalidError(
                f"invalid birth_times: {birth_times!r}; expected 'conformal' or 'proper'"
            )
        given = {"gamma": gamma, "mu": mu, "birth_times": birth_times}
        changes = {name: value for name, value in given.items() if value is not None}
        return self._with(replace(self._parameters, **cast("dict[str, Any]", changes)))

    def _with(self, parameters: Parameters) -> Self:
        """Return a view with other parameters, which shares the data."""
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        view._parameters = parameters
        for cached in ("_catalog", "_context", "_units"):
            view.__dict__.pop(cached, None)
        return view

    def _with_fraction_of(self, region: Region) -> Self:
        """Return a view with the column `FRACTION`: the fraction of each cell in a region."""
        view = self._with(self._parameters)
        view._fraction_of = region
        return view

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _restored, (type(self), self._arguments, self._parameters)

    @property
    @abstractmethod
    def _arguments(self) -> tuple[object, ...]:
        """The arguments of the constructor."""

    @cached_property
    def _units(self) -> Units:
        """The units of the run, with the time in which birth times are."""
        units = units_of(self._info, self._component)
        if (cosmology := units._cosmology) is None:
            return units
        choice = self._parameters.birth_times
        is_proper = cosmology.has_proper_times or "rt" in self._source.components
        if choice is not None:
            is_proper = choice == "proper"
        return units._of_universe(replace(cosmology, has_proper_times=is_proper))

    @property
    def _columns(self) -> set[str]:
        """Names of the columns that can be read."""
        return set(self.fields)

    @abstractmethod
    def read(self, fields: Sequence[str] | str | None = None) -> Table:
        """Read rows into memory."""

    @property
    def _cells(self) -> FieldRows | None:
        """The cells of the snapshot of particles; None without any."""
        return None

    @property
    @abstractmethod
    def _default_columns(self) -> list[str]:
        """The columns that `read` reads by default."""

    @abstractmethod
    def _formulas(self, cosmology: Cosmology | None) -> dict[str, list[Formula]]:
        """Return the formulas of the catalog, without those of the frame."""

    @abstractmethod
    def _read_core(
        self,
        columns: Sequence[str],
        region: CoreRegion | None,
        levels: tuple[int, int] | None,
        condition: Condition | None,
        threads: int | None,
        chunks: tuple[int, int] | None,
        computed: ComputedColumns | None,
    ) -> dict[str, np.ndarray]:
        """Read columns of the core."""

    def _read_arrays(
        self,
        names: Iterable[str],
        *,
        region: Region | None = None,
        levels: tuple[int, int] | None = None,
        where: str | None = None,
        threads: int | None = None,
        chunks: tuple[int, int] | None = None,
    ) -> dict[str, np.ndarray]:
        """Return columns of selected rows by requested name; `chunks` is a range of chunks."""
        request = self._request(names, where)
        return self._read_request(
            request, region=region, levels=levels, threads=threads, chunks=chunks
        )

    def _read_request(
        self,
        request: Request,
        *,
        region: Region | None = None,
        is_by_volume: bool = False,
        levels: tuple[int, int] | None = None,
        threads: int | None = None,
        chunks: tuple[int, int] | None = None,
    ) -> dict[str, np.ndarray]:
        code = self._region(region)
        arrays = self._read_core(
            list(dict.fromkeys(request.columns.values())),
            code.by_volume() if code is not None and is_by_volume else code,
            levels,
            request.condition,
            threads,
            chunks,
            request.computed,
        )
        return {name: arrays[column] for name, column in request.columns.items()}

    def _names(self, fields: Iterable[str] | str | None) -> list[str]:
        """Return requested names as a list; the default columns for None."""
        if fields is None:
            return self._default_columns
        return names_of("fields", fields)

    def _request(self, names: Iterable[str], where: str | None = None) -> Request:
        """Return what requested names and a condition mean."""
        resolution = Resolution(self._context)
        columns = {name: self._column(resolution, name) for name in names}
        try:
            condition = parse_where(
                where,
                lambda name: self._column(resolution, name),
                self._units,
                resolution.unit,
            )
        except _core.InvalidError as error:
            raise self._invalid(str(where), error) from None
        units = {name: resolution.unit(column) for name, column in columns.items()}
        return Request(columns, condition, resolution.definitions, units)

    def _column(self, resolution: Resolution, name: str) -> str:
        """Return the column that a name means; raises KeyError if it does not exist."""
        if not isinstance(name, str):
            raise TypeError(f"expected the name of a field, found {name!r:.80}")
        owner = name.partition("/")[0]
        is_other = owner in self._source.components and not self._component_of(owner)
        is_other |= owner in self._source.missing
        try:
            return resolution.column(name, arithmetic=not (is_other and "/" in name))
        except _core.InvalidError as error:
            raise self._invalid(name, error) from None
        except UnknownFieldError as error:
            raise self._unknown(error.field) from None
        except MissingError as error:
            system = getattr(self._info, "coordinates", "cartesian")
            if system != "cartesian" and name.rpartition("/")[2] in _OF_VOLUMES:
                raise _core.NotFoundError(
                    f'{self._source.location}: column "{name}" is not available: the volumes of '
                    f"cells are not known in {system} coordinates; give weight=None, or a field as "
                    "the weight"
                ) from None
            if reason := str(error):
                missing = self._missing_components(reason) if "the field " in reason else ""
                raise _core.NotFoundError(
                    f'{self._source.location}: column "{name}" is not available: {reason}{missing}'
                ) from None
            raise self._unknown(name) from None

    @cached_property
    def _context(self) -> Context:
        """What derived fields depend on."""
        columns = self._columns

        def plain(name: str) -> str:
            owner, _, rest = name.rpartition("/")
            return rest if owner and self._component_of(owner) else name

        def stored(name: str) -> str | None:
            found = resolve(plain(name), columns)
            return found if found in columns else None

        return Context(stored, plain, lambda: self._catalog, self._constants, self._units)

    @cached_property
    def _catalog(self) -> dict[str, list[Formula]]:
        info = self._info
        cosmology = self._units._cosmology
        middle = [low + side / 2 for low, side in zip(info.lower, info.box_size, strict=True)]
        periodic = info.periodic or (False,) * info.ndim
        frame = frame_formulas(self._parameters, middle, info.box_size, periodic)
        return {**self._formulas(cosmology), **frame}

    @property
    def _constants(self) -> dict[str, float]:
        """Constants of the formulas of derived fields, as far as they are known."""
        constants = {}
        gamma = self._parameters.gamma
        if gamma is None and isinstance(self._info, RamsesInfo | CodeInfo):
            gamma = self._info.gamma
        if gamma is not None:
            constants["gamma"] = gamma
        units = self._units
        if units.factors and units._is_uniform:
            mu = self._parameters.mu or 1 / HYDROGEN_FRACTION
            constants["G"] = GRAVITATION * units.unit_d * units.unit_t**2
            constants["kelvin"] = mu * HYDROGEN_MASS / BOLTZMANN * units.unit_v**2
            constants["number_density"] = units.unit_d / (mu * HYDROGEN_MASS)
        if {"E_x", "B_x"}.issubset(self._columns):
            with suppress(_core.InvalidError):
                constants["electric"] = units.factor("E_x", "V/m")
                constants["magnetic"] = units.factor("B_x", "Tesla")
                constants["poynting"] = constants["electric"] * constants["magnetic"] / MU_0
        return constants

    def _invalid(self, expression: str, error: Exception) -> Exception:
        """Return the error of an expression; it may be a name, or have one without backquotes."""
        if not (similar := similar_quoted_field(expression, self._columns)):
            return error
        if is_call(expression):
            return self._unknown(expression)
        return _core.InvalidError(f"{error}; did you mean `{similar}`, between backquotes?")

    def _unknown(self, field: str) -> Exception:
        """Return the error of a column that does not exist."""
        owner = field.partition("/")[0]
        similar = similar_fields(field, {name: name for name in self._columns} | self._spellings)
        hint = (
            f"available: {', '.join(sorted(self._columns)) or 'none'}, and those of derived_fields"
        )
        if similar:
            hint = f"did you mean {' or '.join(map(repr, similar))}? {hint}"
        if owner in self._source.components and not self._component_of(owner):
            place = "amr" if owner in CELL_COMPONENTS else owner
            hint = f"it is not a column of {self._component}; use snapshot.{place}"
        elif field in self._source.components:
            hint = f"write names with a slash between backquotes in conditions: `{field}/...`"
        reasons = self._missing_components(field, has_similar=bool(similar))
        return _core.NotFoundError(
            f'{self._source.location}: column "{field}" does not exist; {hint}{reasons}'
        )

    @property
    def _spellings(self) -> dict[str, str]:
        """Names of derived fields, and other names of fields."""
        derived = self.derived_fields
        found = {name: name for name in derived}
        found |= {short: name for short, name in SHORT_NAMES.items() if name in derived}
        for alias in ALIASES:
            name = resolve(alias, self._columns)
            if name in self._columns:
                found[alias] = name
        return found

    def _missing_components(self, names: str, *, has_similar: bool = False) -> str:
        """Return why components that may have the fields in a text are missing, for messages."""
        found = ""
        for name, why in self._source.missing.items():
            pattern = FIELDS_OF_COMPONENTS.get(name, "")
            is_likely = re.search(pattern, names) and (pattern or not has_similar)
            if self._component_of(name) and is_likely:
                found += f"; {name} is missing: {why}"
        return found

    def _component_of(self, owner: str) -> bool:
        """Return whether a name of a component means this one."""
        return owner == self._component

    def _column_units(self, names: Sequence[str]) -> ColumnUnits:
        """Return the units of requested columns."""
        return ColumnUnits(self._units, self._request(names).units)

    def _dataset(self, names: Sequence[str], dim: str) -> xr.Dataset:
        """Return columns as a Dataset: dask arrays of data in a store, otherwise in memory."""
        if self._stored is None:
            return self.read(names).to_xarray()
        require("xarray", purpose="to_xarray", install="ambar[xarray]")
        import xarray as xr

        from ambar.snapshot.interop.lazy_columns import lazy_columns

        request = self._request(names)
        units = ColumnUnits(self._units, request.units)
        return xr.Dataset(
            {
                name: (dim, array, {"units": units.label(name, "code")})
                for name, array in lazy_columns(self, request).items()
            }
        )

    def _run_attributes(self) -> dict[str, str | float]:
        """Return the attributes of images: the snapshot, its time, redshift and code units."""
        found: dict[str, str | float] = {"source": self._source.location, "time": self._info.time}
        if (redshift := redshift_of(self._info)) is not None:
            found["redshift"] = redshift
        if self._info.physical:
            units = self._info.units
            found |= {"unit_l": units.unit_l, "unit_d": units.unit_d, "unit_t": units.unit_t}
        return found

    def _region(self, region: Region | None) -> CoreRegion | None:
        return region_in_code(region, self._info)

    @property
    @abstractmethod
    def _title(self) -> str:
        """What the fields belong to."""

    @abstractmethod
    def _properties(self) -> dict[str, object]:
        """Return the lines above the fields, without the size."""

    @cached_property
    def _stored(self) -> StoredFields | None:
        return self._source.stored_fields(self._component)

    def __repr__(self) -> str:
        """Return sizes, and a line per field: dtype, unit, size, codecs."""
        return text.representation(
            f"<ambar.{type(self).__name__}> {self._title}",
            self._all_properties(),
            text.columns(self._field_rows(), 4),
        )

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, for notebooks."""
        return html.representation(
            f"ambar.{type(self).__name__} {self._title}",
            self._all_properties(),
            field_details(f"{len(self.fields)} fields", self._field_rows()),
        )

    def _all_properties(self) -> dict[str, object]:
        size = None if self._stored is None else self._stored.sizes
        return self._properties() | {"Size": size}

    def _field_rows(self) -> list[tuple[str, ...]]:
        return describe_fields(self.fields, self._info, self._component, self.dtype, self._stored)


def _restored(
    owner: type[FieldRows], arguments: tuple[object, ...], parameters: Parameters
) -> FieldRows:
    """Return rows that were pickled."""
    return owner(*arguments)._with(parameters)


def _sizes(arrays: Iterable[Array]) -> str:
    pairs = [(array.nbytes, array.stored_bytes) for array in arrays]
    return text.sizes(*map(sum, zip(*pairs, strict=True))) if pairs else text.sizes(0, 0)


def describe_fields(
    fields: Iterable[str],
    info: RunInfo,
    component: str,
    dtype: Callable[[str], np.dtype[np.generic]],
    stored: StoredFields | None,
) -> list[tuple[str, ...]]:
    """Return name, dtype, unit and, for fields in a store, size and codecs."""
    rows: list[tuple[str, ...]] = []
    for name in fields:
        row: tuple[str, ...] = (name, str(dtype(name)), code_unit(name, info, component))
        if stored is not None:
            arrays = stored.arrays(name)
            codecs = dict.fromkeys(array.codecs for array in arrays)
            row += (_sizes(arrays), ", ".join(codecs))
        rows.append(row)
    return rows


def code_unit(field: str, info: RunInfo, component: str) -> str:
    """Return the unit of a field: one code unit in CGS units; "code" if it is not known."""
    own = units_of(info, component)._own.get(field)
    if own is not None:
        return own if isinstance(own, str) else own.name
    unit = _UNITS.get(quantity_of(field) or "")
    if unit is None or not info.physical or info.units.is_conformal(field):
        return "code"
    return f"{info.units.factor(field, unit):.4g} {unit}"


def field_details(title: str, rows: list[tuple[str, ...]]) -> str:
    """Return rows of fields as a section of HTML."""
    header = _HEADER[: max(map(len, rows), default=0)]
    return html.details(title, html.table(rows, header), is_open=len(rows) <= _OPEN_ROWS)
