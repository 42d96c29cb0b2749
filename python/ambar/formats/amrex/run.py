"""Plotfiles of one run: found in a folder, by globs, or listed."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ambar import _core
from ambar._util.foreign_files import contents_of
from ambar.formats.amrex.source import is_amrex
from ambar.snapshot.amrex_info import PatchDomain

_NUMBERED = re.compile(r"(?!.*\D\.h5$)(?P<prefix>.*?)(?P<number>\d+)(?:\.h5)?")
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
    header: Header | None = None
    """That of the first plotfile; None if all are damaged."""
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
        If there are plotfiles of several runs (names, dimensions, domains or refinement ratios
        differ, or no field is common), or a path is not a plotfile.
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
    if len(set(found.values())) > 1:
        raise _core.InvalidError(_several_runs(found))
    return PlotfileRun(list(found), left_out, *_common_header(list(found)))


def _several_runs(found: Mapping[Path, str]) -> str:
    """Return the message for plotfiles whose names have several beginnings."""
    runs: dict[str, list[Path]] = {}
    for path, prefix in found.items():
        runs.setdefault(prefix, []).append(path)
    patterns = {
        prefix: paths[0] if len(paths) == 1 else paths[0].with_name(f"{glob.escape(prefix)}*")
        for prefix, paths in runs.items()
    }
    example = patterns[max(runs, key=lambda prefix: len(runs[prefix]))]
    return (
        f"expected plotfiles of one run, found {', '.join(path.name for path in patterns.values())}"
        f"; convert those of one run, for example {shlex.quote(str(example))}"
    )


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


class Header(NamedTuple):
    """What the plotfiles of a run share, from the first lines of a header."""

    ndim: int
    fields: list[str]
    domain: PatchDomain


def _common_header(paths: Sequence[Path]) -> tuple[Header | None, dict[str, list[str]]]:
    """Return the first header of plotfiles, and the fields of those that differ, by name.

    Raises ValueError if dimensions or domains differ, or if no field is common.
    """
    first: tuple[Path, Header] | None = None
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
        if set(header.fields) != set(expected.fields):
            differing.setdefault(like.name, expected.fields)
            differing[path.name] = header.fields
    return (first[1] if first else None), differing


def _difference(expected: Header, found: Header) -> tuple[str, str] | None:
    """Return what a header should have, and what it has, if it is of another run."""
    if found.ndim != expected.ndim:
        return f"{expected.ndim} dimensions", str(found.ndim)
    if not set(expected.fields) & set(found.fields):
        return f"the fields {', '.join(expected.fields)}", ", ".join(found.fields)
    return expected.domain.difference(found.domain)


def _header(path: Path) -> Header | None:
    """Return the first lines of the header of a plotfile; None if it is damaged."""
    try:
        if path.is_file():
            import h5py

            with h5py.File(path) as file:
                return _hdf5_header(file)
        with (path / "Header").open(encoding="utf-8") as lines:
            next(lines)
            fields = [next(lines).strip() for _ in range(int(next(lines)))]
            ndim = int(next(lines))
            next(lines)  # the time
            next(lines)  # the finest level
            low, high = ([float(end) for end in next(lines).split()] for _ in range(2))
            next(lines)  # refinement ratios, in some headers of the first dimension only
            boxes = np.array(re.findall(r"-?\d+", next(lines)), np.int64).reshape(-1, 3, ndim)
            return Header(ndim, fields, _domain(low, high, boxes[:, :2]))
    except (OSError, KeyError, ValueError, StopIteration):
        return None


def _hdf5_header(file: Any) -> Header:
    attrs, levels = file.attrs, range(int(file.attrs["num_levels"].ravel()[0]))
    ndim = int(attrs["dim"].ravel()[0])
    names = [attrs[f"component_{n}"] for n in range(int(attrs["num_components"].ravel()[0]))]
    fields = [name.decode() if isinstance(name, bytes) else str(name) for name in names]
    groups = [file[f"level_{level}"].attrs for level in levels]
    boxes = [np.ravel(group["prob_domain"])[0].tolist() for group in groups]
    corners = np.array(boxes, np.int64).reshape(-1, 2, ndim)
    return Header(ndim, fields, _domain(groups[0]["prob_lo"], groups[0]["prob_hi"], corners))


def _domain(low: Sequence[float], high: Sequence[float], boxes: np.ndarray) -> PatchDomain:
    """Return a domain; `boxes` are the first and the last cell by level, (levels, 2, ndim)."""
    size = tuple(float(b - a) for a, b in zip(low, high, strict=True))
    return PatchDomain(size, tuple(map(tuple, (boxes[:, 1] - boxes[:, 0] + 1).tolist())))
