"""Datasets of yt: which files they are, run information, and the names and units of fields."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ambar import _core
from ambar._util.foreign_files import EMPTY, is_empty_file
from ambar._util.optional import missing
from ambar._util.text import suggestion
from ambar.snapshot.code_info import CodeInfo, stated_units
from ambar.snapshot.loading import SPECIES
from ambar.snapshot.physics.unit_expressions import Unit, parse_unit
from ambar.snapshot.regions import AXES

Key: TypeAlias = tuple[str, str]
"""The name of a field in yt: its type and its name, ("gas", "density")."""

CELLS = "cells"
_NETCDF = (b"CDF\x01", b"CDF\x02", b"CDF\x05")
_NETCDF_SUFFIXES = (".nc", ".nc4", ".cdf")
_USUAL_NAMES = re.compile(r"\.(athdf|phdf|gdf)$|hdf5_(plt_cnt|chk)_\d+$|^plt\d+.*\.hdf5$")
"""Names of outputs of Athena++, Parthenon, the Grid Data Format, FLASH and Chombo."""
_PARTICLE = "particle_"
_PARTICLE_NAMES = {"index": "id"}
"""Names of columns that differ from those of yt without "particle_"."""
_POSITIONS = [f"position_{axis}" for axis in AXES]
_LONGEST_PARAMETER = 256
"""Most values of a list among the parameters of a run."""


@dataclass(frozen=True)
class YtField:
    """A field of cells, or a column of a species."""

    name: str
    """Its name in the store."""
    key: Key
    """Its name in yt."""
    unit: str
    """Its unit in yt."""
    part: int | None = None
    """Which component of a vector it is."""

    @property
    def is_position(self) -> bool:
        """Whether it is a coordinate of a particle, which is stored in code lengths."""
        return self.name in _POSITIONS


def is_dataset(source: object) -> bool:
    """Return whether an object is a dataset of yt; does not import yt."""
    module = sys.modules.get("yt.data_objects.static_output")
    return module is not None and isinstance(source, module.Dataset)


def is_output(path: str | os.PathLike[str]) -> bool:
    """Return whether yt recognizes a file; False for NetCDF, Zarr and folders.

    Without yt, the usual names of the files of some codes are recognized. The folders that yt opens
    are those of RAMSES and AMReX.
    """
    place = Path(path)
    if not place.is_file() or _is_netcdf(place):
        return False
    if find_spec("yt") is None:
        return bool(_USUAL_NAMES.search(place.name)) or Path(f"{place}.hierarchy").exists()
    with _quiet():
        from yt.frontends import _all  # noqa: F401 - registers the classes of datasets
        from yt.utilities.object_registries import output_type_registry

        return any(
            _is_valid(known, place)
            for known in list(output_type_registry.values())
            if not known.__module__.startswith("ambar.")
        )


def open_output(path: str | os.PathLike[str]) -> Any:
    """Return the dataset of yt at a path.

    Raises
    ------
    CorruptError
        If yt cannot open it.
    ModuleNotFoundError
        If yt is not installed.
    """
    if find_spec("yt") is None:
        raise missing("yt", purpose="reading this output", install="ambar[yt]")
    import yt

    if is_empty_file(path):
        raise _core.CorruptError(f"{os.fspath(path)}: {EMPTY}")
    try:
        with _quiet():
            dataset = yt.load(os.fspath(path))
            dataset.index  # noqa: B018 - yt reads it on first access
            return dataset
    except Exception as error:
        raise _core.CorruptError(
            f"{os.fspath(path)}: yt recognizes the file, but cannot open it: {error!r:.500}; check "
            "that all files of the output are there, or load it with yt.load(path, hint=...) and "
            "convert the dataset"
        ) from error


@contextmanager
def reading(dataset: Any, what: str) -> Iterator[None]:
    """Raise CorruptError, which names the dataset and what is read, for errors of yt."""
    try:
        yield
    except (_core.AmbarError, MemoryError):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # h5py raises errors without a number for damaged files
        raise _core.CorruptError(
            f"{getattr(dataset, 'filename', None) or name_of(dataset)}: yt cannot read {what}: "
            f"{error!r:.500}; check that all files of the output are there and complete"
        ) from error


def _is_netcdf(place: Path) -> bool:
    with place.open("rb") as file:
        return file.read(4) in _NETCDF or place.suffix.lower() in _NETCDF_SUFFIXES


def _is_valid(known: Any, place: Path) -> bool:
    try:
        return bool(known._is_valid(os.fspath(place)))
    except Exception:
        return False


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out yt's bars of progress, and the messages of its log below errors."""
    import logging

    from yt.config import ytcfg
    from yt.utilities.logger import ytLogger

    level, has_no_bars = ytLogger.level, ytcfg.get("yt", "suppress_stream_logging")
    ytLogger.setLevel(logging.ERROR)
    ytcfg.set("yt", "suppress_stream_logging", True)
    try:
        yield
    finally:
        ytLogger.setLevel(level)
        ytcfg.set("yt", "suppress_stream_logging", has_no_bars)


def name_of(dataset: Any) -> str:
    """Return the name of a dataset: that of its file, or of the dataset in memory."""
    return str(getattr(dataset, "basename", None) or dataset)


def species_of(dataset: Any) -> list[str]:
    """Return the species of particles on disk."""
    on_disk = {kind for kind, _ in dataset.field_list}
    return [kind for kind in dataset.particle_types_raw if kind in on_disk]


def cell_fields(dataset: Any) -> list[YtField]:
    """Return the fields of cells on disk, under yt's names for them."""
    species = set(dataset.particle_types_raw)
    keys = [key for key in dataset.field_list if key[0] not in species and _is_cell(dataset, key)]
    aliases = _aliases(dataset)
    return [
        YtField(name, key, _unit(dataset, key))
        for name, key in _unique(keys, lambda key: aliases.get(("gas", key), key[1]))
    ]


def has_single_precision(dataset: Any) -> bool:
    """Return whether the first file is HDF5 whose arrays of three dimensions are float32.

    yt returns float64 in any case.
    """
    import h5py

    first = next(iter(getattr(dataset.index, "grids", ())), None)
    place = Path(str(getattr(first, "filename", None) or dataset.filename))
    if not place.is_file() or not h5py.is_hdf5(place):
        return False
    sizes: set[int] = set()

    def visit(_: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset) and node.ndim >= 3 and node.dtype.kind == "f":
            sizes.add(node.dtype.itemsize)

    with h5py.File(place) as file:
        file.visititems(visit)
    return sizes == {4}


def _is_cell(dataset: Any, key: Key) -> bool:
    info = dataset.field_info[key]
    return info.sampling_type == "cell" and not any(info.nodal_flag)


def _aliases(dataset: Any) -> dict[tuple[str, Key], str]:
    """Return the first name that yt has for a field on disk, by type and field."""
    found: dict[tuple[str, Key], str] = {}
    for (kind, name), key in dataset.field_info.field_aliases.items():
        found.setdefault((kind, key), name)
    return found


def _unique(keys: Iterable[Key], name_of_key: Any) -> list[tuple[str, Key]]:
    """Return fields and their names; a name that several have is replaced by that on disk."""
    names = {key: name_of_key(key).replace("/", "_") for key in keys}
    count: dict[str, int] = {}
    for name in names.values():
        count[name] = count.get(name, 0) + 1
    found: dict[str, Key] = {}
    for key, name in names.items():
        own = name if count[name] == 1 and name not in found else key[1].replace("/", "_")
        while own in found:
            own = f"{key[0]}_{own}"
        found[own] = key
    return list(found.items())


def column_fields(dataset: Any, species: str) -> list[YtField]:
    """Return the columns of a species on disk, under yt's names without "particle_"."""
    aliases = _aliases(dataset)

    def name_of_key(key: Key) -> str:
        name = aliases.get((species, key), key[1]).removeprefix(_PARTICLE)
        name = _PARTICLE_NAMES.get(name, name)
        return f"{name}_" if name == "index" else name

    keys = [key for key in dataset.field_list if key[0] == species]
    columns = []
    for name, key in _unique(keys, name_of_key):
        unit, parts = _unit(dataset, key), _parts_of(dataset, key)
        columns += [
            YtField(part_name, key, "code_length" if part_name in _POSITIONS else unit, part)
            for part, part_name in _part_names(name, parts, dataset.dimensionality)
        ]
    known = {column.name for column in columns}
    for axis in AXES[: dataset.dimensionality]:
        if f"position_{axis}" not in known:
            key = (species, f"particle_position_{axis}")
            if key not in dataset.field_info:
                raise _core.UnsupportedError(
                    f"{name_of(dataset)}: expected positions of the particles {species!r}, found "
                    f"{', '.join(sorted(known))}; leave the species out with components=[...]"
                )
            columns.append(YtField(f"position_{axis}", key, "code_length"))
    return sorted(columns, key=lambda column: not column.is_position)


def _parts_of(dataset: Any, key: Key) -> int:
    """Return the number of components of a column, 1 for numbers."""
    arrays = getattr(dataset.index.io, "_array_fields", None) or {}
    shape = arrays.get(key[1], arrays.get(key))
    if shape is None:
        return 3 if key[1] in getattr(dataset.index.io, "_vector_fields", ()) else 1
    return int(np.prod(shape))


def _part_names(name: str, parts: int, ndim: int) -> list[tuple[int | None, str]]:
    if parts == 1:
        return [(None, name)]
    ends = AXES if parts == 3 else [str(part) for part in range(parts)]
    if name == "position":
        ends = ends[:ndim]
    return [(part, f"{name}_{end}") for part, end in enumerate(ends)]


def _unit(dataset: Any, key: Key) -> str:
    info = dataset.field_info[key]
    return str(info.units or "")


@contextmanager
def units_of_files(dataset: Any, fields: Iterable[YtField]) -> Iterator[None]:
    """Read fields in the units of the files; yt converts some of them to those of its system."""
    infos = [dataset.field_info[field.key] for field in fields]
    before = [info.output_units for info in infos]
    for info in infos:
        info.output_units = info.units
    try:
        yield
    finally:
        for info, units in zip(infos, before, strict=True):
            info.output_units = units


def chosen_cells(dataset: Any, fields: Sequence[str | Key] | None) -> list[YtField]:
    """Return the fields of cells to convert: those on disk, or the named ones, also derived ones.

    Raises
    ------
    KeyError
        If a field does not exist.
    """
    on_disk = cell_fields(dataset)
    if fields is None:
        return on_disk
    by_name = {field.name: field for field in on_disk}
    by_key = {field.key: field for field in on_disk}
    by_name |= {field.key[1]: field for field in on_disk if field.key[1] not in by_name}
    chosen: dict[str, YtField] = {}
    for entry in fields:
        found = by_name.get(entry) if isinstance(entry, str) else by_key.get((entry[0], entry[1]))
        if found is None:
            found = _derived(dataset, entry, list(by_name))
        chosen[found.name] = found
    return list(chosen.values())


def _derived(dataset: Any, entry: str | Key, known: list[str]) -> YtField:
    key = ("gas", entry) if isinstance(entry, str) else (entry[0], entry[1])
    if key not in dataset.field_info and isinstance(entry, str):
        others = [one for one in dataset.derived_field_list if one[1] == entry]
        key = others[0] if others else key
    if key not in dataset.field_info or dataset.field_info[key].sampling_type != "cell":
        raise _core.NotFoundError(
            f"{name_of(dataset)}: no field of cells {entry!r}; {suggestion(str(entry), known)}; "
            "derived fields of yt are named as in dataset.derived_field_list"
        )
    if dataset.field_info[key].units is None:
        dataset.point(dataset.domain_center)[key]  # yt finds out the unit when it first reads it
    return YtField(key[1], key, _unit(dataset, key))


def code_info(dataset: Any, levels: Any, fields: Mapping[str, Sequence[YtField]]) -> CodeInfo:
    """Return the run information, with the units of the fields of each component.

    Parameters
    ----------
    dataset
        The dataset.
    levels
        The levels of cells in patches, as in `CodeInfo.levels`; empty without cells.
    fields
        The fields of each component.
    """
    ndim = int(dataset.dimensionality)
    cosmology: dict[str, Any] = {}
    if getattr(dataset, "cosmological_simulation", False):
        cosmology = {
            "aexp": 1.0 / (1.0 + float(dataset.current_redshift)),
            "H0": 100.0 * float(dataset.hubble_constant),
            "omega_m": float(dataset.omega_matter),
            "omega_l": float(dataset.omega_lambda),
        }
    unit_l, unit_m, unit_t = (
        float(dataset.quan(1.0, f"code_{name}").in_cgs().value)
        for name in ("length", "mass", "time")
    )
    gamma = getattr(dataset, "gamma", None)
    info = CodeInfo(
        code=str(dataset.dataset_type),
        ndim=ndim,
        time=float(dataset.current_time.to_value("code_time")),
        lower=tuple(dataset.domain_left_edge.to_value("code_length")[:ndim].tolist()),
        upper=tuple(dataset.domain_right_edge.to_value("code_length")[:ndim].tolist()),
        periodic=tuple(map(bool, dataset.periodicity[:ndim])),
        unit_l=unit_l,
        unit_d=unit_m / unit_l**3,
        unit_t=unit_t,
        levels=levels,
        coordinates=str(getattr(dataset.geometry, "value", dataset.geometry)),
        gamma=None if gamma is None else float(gamma),
        parameters=dict(_parameters(dataset.parameters)),
        **cosmology,
    )
    units = {
        f"{component}/{name}": text
        for component, own in fields.items()
        for name, text in stated_units(
            {field.name: _unit_of(dataset, field.unit) for field in own}, info
        ).items()
    }
    return replace(info, field_units=units)


def _unit_of(dataset: Any, text: str) -> Unit | str | None:
    """Return a unit of yt; its text if `Unit` cannot represent it, None for plain numbers."""
    from unyt.dimensions import base_dimensions, magnetic_field_cgs

    if text in ("", "dimensionless"):
        return None
    quantity = dataset.quan(1.0, text)
    dimensions = quantity.units.dimensions
    if dimensions == 1:
        factor = float(quantity.units.base_value)
        return None if factor == 1.0 else Unit(factor)
    try:
        factor = float(quantity.in_cgs().value)
    except Exception:
        return text
    if dimensions == magnetic_field_cgs:
        gauss = parse_unit("Gauss")
        return Unit(factor * gauss.factor, gauss.dimension)
    powers = dimensions.as_powers_dict()
    if any(base in powers for base in base_dimensions[5:]):
        return text
    mass, length, time, kelvin = (float(powers.get(base, 0)) for base in base_dimensions[:4])
    return Unit(factor, (length, mass, time, kelvin))


def _parameters(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the parameters that JSON can represent."""
    for name, value in values.items():
        plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        plain = plain.decode(errors="replace") if isinstance(plain, bytes) else plain
        many = list(plain) if isinstance(plain, list | tuple) else [plain]
        is_plain = all(isinstance(one, str | int | float | bool) for one in many)
        is_finite = all(math.isfinite(one) for one in many if isinstance(one, float))
        if is_plain and is_finite and len(many) <= _LONGEST_PARAMETER:
            yield str(name), many if isinstance(plain, list | tuple) else plain


def source_bytes(dataset: Any) -> int:
    """Return the bytes of the files of grids and particles; 0 if they are not known."""
    index = dataset.index
    files = {getattr(grid, "filename", None) for grid in getattr(index, "grids", ())}
    files |= {getattr(file, "filename", None) for file in getattr(index, "data_files", ())}
    places = {Path(str(file)) for file in files if file}
    return sum(place.stat().st_size for place in places if place.is_file())


def component_of(species: str) -> str:
    """Return the component of a species."""
    return SPECIES + species
