"""Plotfiles of one run: found in a folder, by globs, or listed."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ambar import _core
from ambar._util.foreign_files import contents_of
from ambar.formats.amrex.source import is_amrex

_NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<number>\d+)(?:\.h5)?")
_PUT_ASIDE = re.compile(r"(?P<prefix>.*?)\d+(?:\.h5)?\.(?P<why>temp|old)(?:\..*)?")
_REASONS = {
    "temp": "the run has not finished writing it",
    "old": "a later plotfile of the run has replaced it; convert it to a store of its own",
}


@dataclass(frozen=True)
class PlotfileRun:
    """The plotfiles of a run, in the order of their numbers."""

    paths: list[Path]
    left_out: dict[str, str] = field(default_factory=dict)
    """Unfinished and replaced plotfiles, and the reasons."""
    ndim: int | None = None
    """Dimensions; None if no plotfile states them."""
    differing: dict[str, list[str]] = field(default_factory=dict)
    """The fields of the first plotfile and of those that have others, by name."""


def has_plotfiles(paths: Sequence[str | os.PathLike[str]]) -> bool:
    """Return whether paths, globs or a folder have plotfiles; raises nothing for other files."""
    return any(_is_numbered(path) and _seems_plotfile(path) for path in _candidates(paths))


def run_of(paths: Sequence[str | os.PathLike[str]]) -> PlotfileRun:
    """Return the plotfiles at paths, globs or in a folder.

    Raises
    ------
    ValueError
        If there are plotfiles of several runs (names, dimensions or sizes of domains differ, or no
        field is common), or a path is not a plotfile.
    """
    is_folder = _is_folder_of_outputs(paths)
    left_out: dict[str, str] = {}
    found: dict[Path, str] = {}
    others: list[Path] = []
    for path in _candidates(paths):
        if aside := _PUT_ASIDE.fullmatch(path.name):
            left_out[path.name] = _REASONS[aside["why"]]
        elif not _seems_plotfile(path):
            others.append(path)
        elif numbered := _NUMBERED.fullmatch(path.name):
            found[path] = numbered["prefix"]
        elif not is_folder:
            raise _core.InvalidError(
                f"{path}: expected a number at the end of the name of each plotfile of a run, such "
                "as plt00010; rename it, or convert it to a store of its own"
            )
    for path in others:
        numbered = _NUMBERED.fullmatch(path.name)
        if path.is_dir() and numbered and numbered["prefix"] in found.values():
            left_out[path.name] = "it has no Header: the run has not finished writing it"
        elif not is_folder:
            raise _core.InvalidError(
                f"{path}: expected a plotfile of AMReX like the other sources, found "
                f"{contents_of(path) if path.exists() else 'nothing'}; convert other files to a "
                "store of their own"
            )
    prefixes = sorted(set(found.values()))
    if len(prefixes) > 1:
        raise _core.InvalidError(
            f"expected plotfiles of one run, found names that begin with {' and '.join(prefixes)}; "
            f"convert one kind of them, for example '{prefixes[0]}*'"
        )
    return PlotfileRun(list(found), left_out, *_common_dimensions(list(found)))


def _is_folder_of_outputs(paths: Sequence[str | os.PathLike[str]]) -> bool:
    return len(paths) == 1 and Path(paths[0]).is_dir() and not is_amrex(paths[0])


def _candidates(paths: Sequence[str | os.PathLike[str]]) -> Iterator[Path]:
    if _is_folder_of_outputs(paths):
        yield from sorted(
            path
            for path in Path(paths[0]).iterdir()
            if _is_numbered(path) or _PUT_ASIDE.fullmatch(path.name)
        )
        return
    for path in paths:
        if glob.has_magic(os.fspath(path)) and not Path(path).exists():
            yield from map(Path, sorted(glob.glob(os.fspath(path))))  # noqa: PTH207 - of any root
        else:
            yield Path(path)


def _is_numbered(path: str | os.PathLike[str]) -> bool:
    return _NUMBERED.fullmatch(Path(path).name) is not None


def _seems_plotfile(path: Path) -> bool:
    """Return whether a path is a plotfile, or an HDF5 file that cannot be opened."""
    try:
        return is_amrex(path)
    except (_core.CorruptError, OSError):
        return path.suffix == ".h5"


class _Header(NamedTuple):
    """What the plotfiles of a run share, from the first lines of a header."""

    ndim: int
    fields: list[str] | None = None
    """None for files of HDF5."""
    size: list[float] | None = None
    """The size of the domain, which may move; None for files of HDF5."""


def _common_dimensions(paths: Sequence[Path]) -> tuple[int | None, dict[str, list[str]]]:
    """Return the number of dimensions of plotfiles, and the fields of those that differ, by name.

    Raises ValueError if dimensions or sizes of the domain differ, or if no field is common.
    """
    first: tuple[Path, _Header] | None = None
    differing: dict[str, list[str]] = {}
    for path in paths:
        header = _header(path)
        if header is None:
            continue
        if first is None:
            first = path, header
            continue
        like, expected = first
        found = _difference(expected, header)
        if found is not None:
            raise _core.InvalidError(
                f"{path}: expected {found[0]} like {like.name}, found {found[1]}; "
                "convert plotfiles of another run to a store of its own"
            )
        if header.fields and expected.fields and set(header.fields) != set(expected.fields):
            differing.setdefault(like.name, expected.fields)
            differing[path.name] = header.fields
    return (first[1].ndim if first else None), differing


def _difference(expected: _Header, found: _Header) -> tuple[str, str] | None:
    """Return what a header should have, and what it has, if it is of another run."""
    if found.ndim != expected.ndim:
        return f"{expected.ndim} dimensions", str(found.ndim)
    if expected.size and found.size and not np.allclose(expected.size, found.size, 1e-6, 0):
        return f"a domain of size {expected.size}", str(found.size)
    if expected.fields and found.fields and not set(expected.fields) & set(found.fields):
        return f"the fields {', '.join(expected.fields)}", ", ".join(found.fields)
    return None


def _header(path: Path) -> _Header | None:
    """Return the first lines of the header of a plotfile; None if it is damaged."""
    try:
        if path.is_file():
            import h5py

            with h5py.File(path) as file:
                return _Header(int(file.attrs["dim"].ravel()[0]))
        with (path / "Header").open(encoding="utf-8") as lines:
            next(lines)
            fields = [next(lines).strip() for _ in range(int(next(lines)))]
            ndim = int(next(lines))
            next(lines)  # the time
            next(lines)  # the finest level
            low, high = ([float(end) for end in next(lines).split()] for _ in range(2))
            return _Header(ndim, fields, [b - a for a, b in zip(low, high, strict=True)])
    except (OSError, KeyError, ValueError, StopIteration):
        return None
