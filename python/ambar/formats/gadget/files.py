"""The files of a snapshot or catalogue in HDF5: found, opened, and read in parts.

Datasets are in one file, or in files ``NAME.0.hdf5``, ``NAME.1.hdf5``, ... with rows of each type
of particles. SWIFT also writes ``NAME.hdf5``, whose virtual datasets refer to these files.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.hdf5_files import is_hdf5, open_hdf5
from ambar._util.optional import require
from ambar.parallel.workers import Failure, Workers

SUFFIXES = (".hdf5", ".h5", ".hdf")
_PART = re.compile(r"(.+)\.(\d+)(\.(?:hdf5|h5|hdf))")
_AGAIN = "restore it from a copy"
_TASK = 8 << 20
"""Bytes of a part of a dataset that a process reads."""
_LARGE = 32 << 20
"""Bytes of a compressed dataset from which on several processes read it."""


def open_hdf5_snapshot(path: Path) -> AbstractContextManager[Any]:
    """Return a context with an HDF5 file that is open for reading, with ambar's filter.

    Raises CorruptError if h5py cannot read the file, also in the block.
    """
    require("h5py", purpose="reading snapshots in HDF5", install="ambar[hdf5]")
    # Registers the filter that the file may need.
    import ambar.hdf5  # noqa: F401

    return open_hdf5(path)


def attributes_of(node: Any) -> dict[str, Any]:
    """Return the attributes of a group or dataset: numbers, lists of numbers and text."""
    return {name: _plain(value) for name, value in node.attrs.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        plain = [_plain(one) for one in value.tolist()] if value.ndim else _plain(value.item())
        return plain[0] if isinstance(plain, list) and len(plain) == 1 else plain
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value.item() if isinstance(value, np.generic) else value


def has_header(path: str | os.PathLike[str], attribute: str) -> bool:
    """Return whether an HDF5 file has the group ``Header`` with an attribute.

    Raises CorruptError if it is an HDF5 file that no program can open.
    """
    if not is_hdf5(path):
        return False
    with open_hdf5_snapshot(Path(path)) as file:
        return "Header" in file and attribute in file["Header"].attrs


@dataclass(frozen=True)
class FileKind:
    """A kind of files, and the attributes of the group ``Header`` that count its rows and files."""

    noun: str
    """The name of the kind, for messages."""
    rows_attribute: str
    """Attribute that such files have: numbers of rows in the file."""
    files_attribute: str
    """Attribute with the number of files."""


def find_files(paths: Sequence[str | os.PathLike[str]], kind: FileKind) -> list[Path]:
    """Return all files of a snapshot or catalogue, in the order of their numbers.

    Parameters
    ----------
    paths
        A file, one of several files, all of them, or their folder.
    kind
        The kind of the files.

    Raises
    ------
    FileNotFoundError
        If a file does not exist.
    ValueError
        If a folder has several snapshots, or files are not those of one.
    CorruptError
        If a file is damaged.
    """
    given = [Path(path) for path in paths]
    if len(given) == 1 and given[0].is_dir():
        given = _files_in(given[0], kind)
    first = given[0]
    with open_hdf5_snapshot(first) as file:
        header = attributes_of(file["Header"])
    count = int(header.get(kind.files_attribute, 1))
    if header.get("Virtual") == 1:
        found = _numbered(_path_of_part(first, 0), None, kind)
    else:
        found = [first] if count == 1 else _numbered(first, count, kind)
    known = {path.resolve() for path in found}
    for path in given:
        if path.resolve() not in known and not _is_virtual(path, found[0]):
            raise _core.InvalidError(
                f"{path}: expected one of the {len(found)} files of {first}, found a file of "
                f"another {kind.noun}; convert each to a store of its own"
            )
    return found


def _is_virtual(path: Path, part: Path) -> bool:
    """Return whether a file is the virtual file of SWIFT with this first part."""
    if _path_of_part(path, 0).resolve() != part.resolve():
        return False
    with open_hdf5_snapshot(path) as file:
        return "Header" in file and attributes_of(file["Header"]).get("Virtual") == 1


def _files_in(folder: Path, kind: FileKind) -> list[Path]:
    """Return a file of the only snapshot in a folder."""
    names = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    sets: dict[str, Path] = {}
    for path in names:
        base = base_name(path)
        # A virtual file comes before its parts, which replace it.
        if (base not in sets or not _PART.fullmatch(sets[base].name)) and has_header(
            path, kind.rows_attribute
        ):
            sets[base] = path
    if len(sets) != 1:
        found = ", ".join(sorted(path.name for path in sets.values())[:3]) or "none"
        raise _core.InvalidError(
            f"{folder}: expected the files of one {kind.noun}, found {len(sets)} ({found}); "
            "convert each to a store of its own"
        )
    return list(sets.values())


def base_name(path: Path) -> str:
    """Return the name of a file without the suffix, and without the number of its part."""
    part = _PART.fullmatch(path.name)
    return part[1] if part else path.name.removesuffix(path.suffix)


def _path_of_part(path: Path, number: int) -> Path:
    return path.with_name(f"{base_name(path)}.{number}{path.suffix}")


def _numbered(path: Path, count: int | None, kind: FileKind) -> list[Path]:
    """Return all parts of a snapshot; their number is that of the first part by default."""
    first = _path_of_part(path, 0)
    if count is None and first.exists():
        with open_hdf5_snapshot(first) as file:
            count = int(attributes_of(file["Header"]).get(kind.files_attribute, 1))
    parts = [_path_of_part(path, number) for number in range(count or 1)]
    missing = [part for part in parts if not part.is_file()]
    if missing:
        what = (
            f"expected {len(parts)} files of the {kind.noun}, of which {len(missing)} do not "
            "exist; copy all of them into one folder"
        )
        raise FileNotFoundError(errno.ENOENT, what, os.fspath(missing[0]))
    return parts


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset whose rows are in one or several files."""

    name: str
    """Path in each file."""
    parts: tuple[tuple[Path, int], ...]
    """The files that have rows of it, and the number of rows in each."""
    shape: tuple[int, ...]
    """All rows, and the values of a row."""
    dtype: np.dtype[Any]
    """In native byte order."""
    chunk_rows: int
    """Rows of a compressed chunk; 0 without compression."""
    attributes: Mapping[str, Any]

    @property
    def short(self) -> str:
        """The path without the group of the rows."""
        return self.name.partition("/")[2]

    @property
    def nbytes(self) -> int:
        """Bytes of all values."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


def not_stored(dataset: Dataset) -> str:
    """Return why a dataset is left out, for reports."""
    return f"values of dtype {dataset.dtype} are neither real numbers nor bools"


def datasets_of(group: Any) -> dict[str, Any]:
    """Return the datasets below a group of h5py, by path in the group."""
    found: dict[str, Any] = {}
    for name, node in group.items():
        if hasattr(node, "dtype"):
            found[name] = node
        else:
            found |= {f"{name}/{below}": one for below, one in datasets_of(node).items()}
    return found


def own_nodes(file: Any) -> list[tuple[str, Any]]:
    """Return names and nodes of an open file, without links to other names."""
    names = [name for name in file if type(file.get(name, getlink=True)).__name__ == "HardLink"]
    return [(name, file[name]) for name in names]


def other_datasets(path: Path, groups: Collection[str]) -> list[str]:
    """Return the paths of datasets that are in none of the groups.

    The names of columns of SWIFT are not among them: they are read.
    """
    found: list[str] = []
    with open_hdf5_snapshot(path) as file:
        for name, node in own_nodes(file):
            if hasattr(node, "dtype"):
                found.append(name)
            elif name not in groups:
                found += [f"{name}/{below}" for below in datasets_of(node)]
    return [name for name in found if not name.startswith("SubgridScheme/NamedColumns/")]


def collect_datasets(paths: Sequence[Path], group: str, counts: Sequence[int]) -> list[Dataset]:
    """Return the datasets of a group, whose rows are in files.

    Parameters
    ----------
    paths, counts
        The files, and the number of rows in each.
    group
        The path of the group.

    Raises
    ------
    CorruptError
        If a file lacks a dataset, or has it with other rows or another dtype.
    """
    known: dict[str, dict[str, Any]] = {}
    parts = [(path, count) for path, count in zip(paths, counts, strict=True) if count]
    for number, (path, count) in enumerate(parts):
        with open_hdf5_snapshot(path) as file:
            nodes = datasets_of(file[group])
            for name, node in nodes.items():
                if node.shape[:1] != (count,):
                    raise _core.CorruptError(
                        f"{path}: {group}/{name}: expected {count:,} rows, the number in the "
                        f"header, found the shape {node.shape}; {_AGAIN}"
                    )
                own = {
                    "tail": node.shape[1:],
                    "dtype": node.dtype.newbyteorder("="),
                    "chunk_rows": node.chunks[0] if node.compression else 0,
                    "attributes": attributes_of(node),
                }
                first = own if number == 0 else known.get(name)
                if first is None or any(own[key] != first[key] for key in ("tail", "dtype")):
                    raise _differs(path, parts[0][0], f"{group}/{name}")
                known[name] = first
            for name in known.keys() - nodes.keys():
                raise _differs(path, parts[0][0], f"{group}/{name}")
    rows = sum(counts)
    return [
        Dataset(
            name=f"{group}/{name}",
            parts=tuple(parts),
            shape=(rows, *own["tail"]),
            dtype=own["dtype"],
            chunk_rows=own["chunk_rows"],
            attributes=own["attributes"],
        )
        for name, own in known.items()
    ]


def _differs(path: Path, first: Path, name: str) -> _core.CorruptError:
    return _core.CorruptError(
        f"{path}: expected the datasets of {first.name}, found another shape, another dtype or no "
        f"dataset {name}; use the files of one run"
    )


class Reader:
    """Reads datasets: large compressed ones with several processes.

    Parameters
    ----------
    workers
        The processes, or None to read here.
    advance
        Called with the bytes of each part that was read.
    """

    def __init__(self, workers: Workers | None, advance: Callable[[int], None]) -> None:
        self._workers, self._advance = workers, advance

    def read(self, dataset: Dataset) -> np.ndarray:
        """Return all rows of a dataset.

        Raises
        ------
        CorruptError
            If the values are damaged, or their compression filter is not installed.
        """
        values = np.empty(dataset.shape, dataset.dtype)
        start = 0
        for rows in self.parts(dataset):
            values[start : start + len(rows)] = rows
            start += len(rows)
        return values

    def parts(self, dataset: Dataset) -> Iterator[np.ndarray]:
        """Yield the rows of a dataset in parts, in order; raises as `read`."""
        row_bytes = max(dataset.nbytes // max(dataset.shape[0], 1), 1)
        step = max(_TASK // row_bytes, 1)
        # Each chunk is decompressed once.
        step = -(-step // max(dataset.chunk_rows, 1)) * max(dataset.chunk_rows, 1)
        tasks = [
            (path, dataset.name, start, min(start + step, count))
            for path, count in dataset.parts
            for start in range(0, count, step)
        ]
        results: Iterator[tuple[tuple[Any, ...], Any]]
        if self._workers is None or not dataset.chunk_rows or dataset.nbytes < _LARGE:
            results = ((task, read_rows(*task)) for task in tasks)
        else:
            results = self._workers.map(read_rows, tasks, lambda _: _TASK)
        for task, rows in results:
            if isinstance(rows, Failure):
                raise rows.raised_for(f"{task[0]}", f"; {_AGAIN}")
            self._advance(rows.nbytes)
            yield rows


def read_rows(path: Path, name: str, start: int, stop: int) -> np.ndarray:
    """Return the rows `start` to `stop` of a dataset in a file, in native byte order."""
    with open_hdf5_snapshot(path) as file:
        values: np.ndarray = file[name][start:stop]
    return values.astype(values.dtype.newbyteorder("="), copy=False)
