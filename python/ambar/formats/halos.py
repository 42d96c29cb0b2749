"""Catalogues of halos: Subfind and FOF in HDF5, and text of Rockstar and of HOP for RAMSES."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ambar import _core
from ambar._util.foreign_files import contents_of
from ambar._util.hdf5_files import is_hdf5
from ambar.formats.gadget.files import (
    Dataset,
    FileKind,
    Reader,
    attributes_of,
    collect_datasets,
    find_files,
    has_header,
    not_stored,
    open_hdf5_snapshot,
    other_datasets,
)
from ambar.formats.particle_tables import POSITIONS, TableWriter, write_sorted
from ambar.snapshot.loading import HALOS
from ambar.snapshot.physics.constants import PARSEC, SOLAR_MASS
from ambar.snapshot.physics.unit_expressions import Unit
from ambar.snapshot.regions import AXES
from ambar.store.writer import Writer

SUBFIND = FileKind("catalogue", "Ngroups_ThisFile", "NumFiles")
"""How catalogues of FOF and Subfind count their rows."""
_SUBFIND_TABLES = {
    "Group": ("groups", ("Ngroups_ThisFile",)),
    "Subhalo": ("subhalos", ("Nsubhalos_ThisFile", "Nsubgroups_ThisFile")),
}
_SUBFIND_COLUMNS = {
    "length": r"(Group|Subhalo)(Pos|CM)(_.*)?|Group_R_.*|SubhaloVmaxRad.*|SubhaloHalfmassRad.*",
    "mass": r"(Group|Subhalo)Mass.*|Group_M_.*",
    "velocity": r"(Group|Subhalo)Vel(_.*)?|SubhaloVelDisp|SubhaloVmax",
}
"""Patterns of the columns of Subfind by quantity."""
_DIMENSIONS = {
    "length": (1.0, 0.0, 0.0, 0.0),
    "mass": (0.0, 1.0, 0.0, 0.0),
    "velocity": (1.0, 0.0, -1.0, 0.0),
}
_MPC, _KM = PARSEC * 1e6, 1e5
# Columns of Rockstar by the quantity of its header lines, in lower case.
_ROCKSTAR = {
    "mass": r"m(bound_)?vir(_all)?|mbound_vir|m\d+[bc](_all)?|m_pe_.*|sam_mvir",
    "velocity": r"vmax|vrms|v[xyz]|bulk_v[xyz]|vel(ocity)?uncertainty|bulkvelunc|voff",
    "radius": r"rvir|rs|rs_klypin|rvmax|halfmass_radius|xoff",
    "position": r"[xyz]|pos(ition)?uncertainty",
}
_VELOCITIES = tuple(f"velocity_{axis}" for axis in AXES)
_HOP = ("#", "npart", "mass", "cont.frac", "xc", "yc", "zc", "uc", "vc", "wc")
_VALUE = re.compile(r"(\w+)\s*=\s*([0-9.eE+-]+)")


@dataclass(frozen=True)
class RunScales:
    """The time and the units of the snapshot that catalogues belong to."""

    time: float
    """The time that headers of the same code state: in cosmological runs the expansion factor."""
    aexp: float | None
    """Expansion factor; None without cosmology."""
    unit_l: float
    """One code unit of length in cm, proper."""
    unit_m: float
    """One code unit of mass in g."""
    unit_v: float
    """The unit of peculiar velocities in catalogues in HDF5, cm/s."""
    boxlen: float
    """Size of the box in x, code length."""


@dataclass(frozen=True)
class HaloTable:
    """The halos of a catalogue: columns in memory, with positions in code length."""

    name: str
    """The component: "groups", "subhalos", "rockstar" or "hop"."""
    columns: dict[str, np.ndarray]
    """Columns of equal length; the first are `POSITIONS`."""
    units: dict[str, Unit | None]


def read_halos(
    paths: Sequence[str | os.PathLike[str]],
    run: RunScales,
    reader: Reader,
    left_out: dict[str, str],
) -> list[HaloTable]:
    """Return the tables of catalogues that belong to a snapshot.

    Parameters
    ----------
    paths
        Files of Subfind or FOF, one of several files or their folder, and text of Rockstar or HOP.
    run
        The run, to whose code length positions are converted.
    reader
        Reads datasets.
    left_out
        Receives the datasets that are not in the tables, with the reason.

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    KeyError
        If a file is not a catalogue of a known format.
    ValueError
        If the catalogue is of another time, or two have the same name.
    CorruptError
        If a file is damaged.
    """
    tables: list[HaloTable] = []
    for path in map(Path, paths):
        for table in _tables_of(path, run, reader, left_out):
            if any(table.name == other.name for other in tables):
                raise _core.InvalidError(
                    f"{path}: expected one catalogue with the table {table.name!r}, found two; "
                    "convert the other to a store of its own"
                )
            tables.append(table)
    return tables


def _tables_of(
    path: Path, run: RunScales, reader: Reader, left_out: dict[str, str]
) -> list[HaloTable]:
    if path.is_dir() or is_hdf5(path):
        if path.is_file() and not has_header(path, SUBFIND.rows_attribute):
            raise _unknown(path)
        return _subfind(find_files([path], SUBFIND), run, reader, left_out)
    with path.open("rb") as file:
        start = file.read(1 << 16).decode(errors="replace").splitlines()
    words = start[0].split() if start else []
    if tuple(words) == _HOP:
        return [_hop(path, run)]
    if words and words[0].lower() == "#id" and {"x", "y", "z"} <= {word.lower() for word in words}:
        return [_rockstar(path, start, run)]
    raise _unknown(path)


def _unknown(path: Path) -> _core.NotFoundError:
    return _core.NotFoundError(
        f"{path}: expected a catalogue of halos (Subfind or FOF in HDF5, out_N.list or "
        f"halos_N.ascii of Rockstar, .pos of HOP), found {contents_of(path)}; check the path"
    )


def _subfind(
    paths: Sequence[Path], run: RunScales, reader: Reader, left_out: dict[str, str]
) -> list[HaloTable]:
    headers = []
    for path in paths:
        with open_hdf5_snapshot(path) as file:
            headers.append(attributes_of(file["Header"]))
    _check_time(paths[0], headers[0].get("Time"), run.time)
    for name in other_datasets(paths[0], _SUBFIND_TABLES):
        left_out[f"{paths[0].name}/{name}"] = "it is not a dataset of groups or subhalos"
    tables = []
    for group, (name, keys) in _SUBFIND_TABLES.items():
        counts = [next((int(one[key]) for key in keys if key in one), 0) for one in headers]
        if not sum(counts):
            continue
        columns: dict[str, np.ndarray] = {}
        units: dict[str, Unit | None] = {}
        for dataset in collect_datasets(paths, group, counts):
            if dataset.dtype.kind not in "biuf":
                left_out[f"{paths[0].name}/{dataset.name}"] = not_stored(dataset)
                continue
            values = reader.read(dataset).reshape(sum(counts), -1)
            for number, label in enumerate(_subfind_labels(dataset, group)):
                unique = label
                while unique == "index" or unique in columns:
                    unique += "_field"
                columns[unique] = np.ascontiguousarray(values[:, number])
                units[unique] = _subfind_unit(label, run)
        if missing := [axis for axis in POSITIONS if axis not in columns]:
            raise _core.CorruptError(
                f"{paths[0]}: expected the dataset {group}/{group}Pos with positions, found none "
                f"({', '.join(missing)}); restore the file from a copy"
            )
        first = {axis: columns.pop(axis) for axis in POSITIONS}
        tables.append(HaloTable(name, first | columns, units))
    return tables


def _subfind_labels(dataset: Dataset, group: str) -> Sequence[str]:
    """Return the names of the columns of a dataset: one for each value of a row."""
    if dataset.short == f"{group}Pos":
        return POSITIONS
    name = dataset.short.replace("/", "_")
    if len(dataset.shape) == 1:
        return [name]
    count = math.prod(dataset.shape[1:])
    return [f"{name}_{one}" for one in (AXES if count == len(AXES) else range(count))]


def _subfind_unit(label: str, run: RunScales) -> Unit | None:
    """Return the unit of a column of Subfind; None if it is a number, or not known."""
    name = "GroupPos" if label in POSITIONS else label
    factors = {"length": run.unit_l, "mass": run.unit_m, "velocity": run.unit_v}
    for quantity, pattern in _SUBFIND_COLUMNS.items():
        if re.fullmatch(pattern, name):
            # Velocities of subhalos are peculiar; those of groups are divided by the expansion.
            scale = (run.aexp or 1.0) if name.startswith("GroupVel") else 1.0
            return Unit(factors[quantity] / scale, _DIMENSIONS[quantity])
    return None


def _check_time(path: Path, found: float | None, expected: float) -> None:
    if found is not None and not np.isclose(found, expected, rtol=1e-3, atol=1e-9):
        raise _core.InvalidError(
            f"{path}: expected a catalogue of the time {expected:g}, that of the snapshot, found "
            f"{found:g}; give the catalogue of the same output"
        )


def _rockstar(path: Path, start: Sequence[str], run: RunScales) -> HaloTable:
    names = start[0].removeprefix("#").split()
    comments = " ".join(line for line in start if line.startswith("#"))
    stated = {name: float(value) for name, value in _VALUE.findall(comments)}
    _check_time(path, stated.get("a"), run.aexp or 1.0)
    aexp, h = stated.get("a", 1.0), stated.get("h", 1.0)
    scales = {
        "mass": Unit(SOLAR_MASS / h, _DIMENSIONS["mass"]),
        "velocity": Unit(_KM, _DIMENSIONS["velocity"]),
        "radius": Unit(_MPC * 1e-3 * aexp / h, _DIMENSIONS["length"]),
        "position": Unit(_MPC * aexp / h, _DIMENSIONS["length"]),
    }
    values = _read_text(path, len(names))
    columns = _unique_columns(names, values)
    units: dict[str, Unit | None] = {}
    for name in columns:
        kind = next((k for k, one in _ROCKSTAR.items() if re.fullmatch(one, name.lower())), None)
        units[name] = None if kind is None else scales[kind]
    lower = {name.lower(): name for name in columns}
    return _with_positions(
        "rockstar", columns, units, [lower[axis] for axis in AXES], scales["position"], run
    )


def _hop(path: Path, run: RunScales) -> HaloTable:
    # Positions are fractions of the box; masses and velocities are in code units.
    values = _read_text(path, len(_HOP))
    names = ["id", "npart", "mass", "contamination", *POSITIONS, *_VELOCITIES]
    columns = _unique_columns(names, values)
    positions = {name: columns.pop(name) * run.boxlen for name in POSITIONS}
    return HaloTable("hop", positions | columns, {})


def _with_positions(
    name: str,
    columns: dict[str, np.ndarray],
    units: dict[str, Unit | None],
    sources: Sequence[str],
    length: Unit,
    run: RunScales,
) -> HaloTable:
    """Return a table whose columns `sources` are positions in code length."""
    factor = length.factor / run.unit_l
    positions = {
        axis: columns[source] * factor for axis, source in zip(POSITIONS, sources, strict=True)
    }
    rest = {key: values for key, values in columns.items() if key not in sources}
    return HaloTable(name, positions | rest, {key: units.get(key) for key in rest})


def _read_text(path: Path, count: int) -> np.ndarray:
    """Return numbers of lines of text as float64, of shape (lines, count)."""
    try:
        values = np.loadtxt(path, comments="#", dtype=np.float64, ndmin=2, encoding="utf-8")
    except ValueError as error:
        raise _core.CorruptError(
            f"{path}: expected lines of {count} numbers, found {' '.join(str(error).split())}; "
            "restore it from a copy"
        ) from error
    if values.size and values.shape[1] != count:
        raise _core.CorruptError(
            f"{path}: expected {count} numbers a line, as the first line names them, found "
            f"{values.shape[1]}; restore it from a copy"
        )
    return values.reshape(-1, count)


def _unique_columns(names: Sequence[str], values: np.ndarray) -> dict[str, np.ndarray]:
    """Return columns by names that arrays can have; whole numbers as integers."""
    columns: dict[str, np.ndarray] = {}
    for number, name in enumerate(names):
        plain = re.sub(r"[^\w]+", "_", re.sub(r"\(\d+\)$", "", name)).strip("_") or "column"
        unique, more = plain, 1
        while unique in columns or unique == "index":
            more += 1
            unique = f"{plain}_{more}"
        column = np.ascontiguousarray(values[:, number])
        with np.errstate(invalid="ignore"):
            whole = column.astype(np.int64)
        is_count = _is_count(name) and np.array_equal(whole, column)
        columns[unique] = whole if is_count else column
    return columns


def _is_count(name: str) -> bool:
    return name.lower() in ("id", "descid", "pid", "np", "num_p", "npart", "num_cp", "n_core")


def in_code_units(table: HaloTable, run: RunScales) -> HaloTable:
    """Return a table whose columns with a unit are converted to code units, as float64."""
    columns = dict(table.columns)
    for name, unit in table.units.items():
        if unit is not None:
            length, mass, time, _ = unit.dimension
            code = run.unit_l**length * run.unit_m**mass * (run.unit_l / run.unit_v) ** time
            columns[name] = columns[name] * (unit.factor / code)
    return HaloTable(table.name, columns, {})


def write_halos(
    writer: Writer, tables: Sequence[HaloTable], lower: Sequence[float], sides: Sequence[float]
) -> dict[str, list[str]]:
    """Write tables as components of a snapshot; return the columns of each component.

    Parameters
    ----------
    writer
        The open store.
    tables
        The catalogues.
    lower, sides
        The lower corner and the sides of the domain, code length.
    """
    components = {}
    for table in tables:
        points = np.stack([table.columns[axis] for axis in POSITIONS], axis=1)
        written = TableWriter(writer, HALOS + table.name, len(points), [])
        others = (column for column in table.columns.items() if column[0] not in POSITIONS)
        write_sorted(written, points, lower, max(sides), others)
        written.finish(len(POSITIONS), sides[0])
        components[HALOS + table.name] = written.columns
    return components
