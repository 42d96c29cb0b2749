"""Snapshots of particles of one run: in a folder, matched by globs, or listed."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ambar import _core
from ambar.formats.gadget.files import SUFFIXES, base_name, has_header
from ambar.formats.gadget.header import SNAPSHOT

_NUMBERED = re.compile(r"(?P<prefix>.*?)(?P<number>\d+)")
_CHECKED = 16
"""Files of a folder that are opened to find a snapshot: folders of NetCDF files may have many."""


@dataclass(frozen=True)
class RunSnapshot:
    """A snapshot of a run."""

    number: int
    """The number at the end of its name."""
    name: str
    """Its folder, or its file without the suffix and the number of the part."""
    path: Path
    """Its folder, or one of its files."""


def expanded(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return paths, and the matches of globs; raises FileNotFoundError for a glob without any."""
    found: list[Path] = []
    for path in paths:
        if glob.has_magic(os.fspath(path)) and not Path(path).exists():
            found += map(Path, sorted(glob.glob(os.fspath(path))))  # noqa: PTH207 - of any root
        else:
            found.append(Path(path))
    if not found:
        raise FileNotFoundError(errno.ENOENT, "no matches", os.fspath(paths[0]))
    return found


def has_snapshots(paths: Sequence[str | os.PathLike[str]]) -> bool:
    """Return whether a folder, globs or files have snapshots of particles."""
    with suppress(FileNotFoundError):
        places = expanded(paths)
        if not places[0].is_dir():
            return has_header(places[0], SNAPSHOT.rows_attribute)
        if len(places) > 1:
            return all(path.is_dir() and _has_snapshot(path) for path in places)
        folders = (path for path in sorted(places[0].iterdir()) if _is_numbered_folder(path))
        return _has_snapshot(places[0]) or any(map(_has_snapshot, islice(folders, _CHECKED)))
    return False


def run_of(paths: Sequence[str | os.PathLike[str]]) -> list[RunSnapshot] | None:
    """Return the snapshots of a run, in the order of their numbers; None for a single snapshot.

    Raises
    ------
    ValueError
        If there are snapshots of several runs.
    """
    found: dict[str, Path] = {}
    is_run = False
    for path in _candidates(paths):
        name = path.name if path.is_dir() else base_name(path)
        # A virtual file comes before its parts, which replace it.
        found[name] = path
        is_run = is_run or (path.is_dir() and path not in map(Path, paths))
    is_named = any(map(_NUMBERED.fullmatch, found))
    if not is_run and (len(found) < 2 or not is_named):
        return None
    snapshots, prefixes = [], {}
    for name, path in found.items():
        numbered = _NUMBERED.fullmatch(name)
        if numbered is None:
            raise _core.InvalidError(
                f"{path}: expected a number at the end of the name of each snapshot of a run, such "
                "as snap_010.hdf5 or snapdir_010; rename it, or convert it to a store of its own"
            )
        prefixes[numbered["prefix"]] = path
        snapshots.append(RunSnapshot(int(numbered["number"]), name, path))
    if len(prefixes) > 1:
        raise _core.InvalidError(
            f"expected snapshots of one run, found names that begin with {' and '.join(prefixes)}; "
            f"convert one kind of them, for example '{next(iter(prefixes))}*'"
        )
    return sorted(snapshots, key=lambda snapshot: snapshot.number)


def numbered_snapshot(paths: Sequence[str | os.PathLike[str]]) -> RunSnapshot:
    """Return a single snapshot as one of a run; raises ValueError if its name has no number."""
    path = Path(paths[0])
    name = path.name if path.is_dir() else base_name(path)
    numbered = _NUMBERED.fullmatch(name)
    if numbered is None:
        raise _core.InvalidError(
            f"{path}: expected a number at the end of the name of a snapshot of the series, found "
            "none; rename it, or convert it to a store of its own"
        )
    return RunSnapshot(int(numbered["number"]), name, path)


def fingerprint_of(paths: Sequence[Path]) -> str:
    """Return a hash of names, sizes and times of modification of files."""
    digest = hashlib.blake2b(digest_size=8)
    for path in paths:
        about = path.stat()
        digest.update(f"{path.name}\0{about.st_size}\0{about.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def _candidates(paths: Sequence[str | os.PathLike[str]]) -> Iterator[Path]:
    """Yield folders and files with snapshots."""
    places = [Path(path) for path in paths]
    if len(places) > 1 or not places[0].is_dir():
        yield from places
        return
    for path in sorted(places[0].iterdir()):
        if _is_numbered_folder(path):
            if _has_snapshot(path):
                yield path
        elif path.suffix in SUFFIXES and _has_header(path):
            yield path


def _is_numbered_folder(path: Path) -> bool:
    return path.is_dir() and _NUMBERED.fullmatch(path.name) is not None


def _has_snapshot(folder: Path) -> bool:
    files = (path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES)
    return any(map(_has_header, islice(files, _CHECKED)))


def _has_header(path: Path) -> bool:
    with suppress(_core.CorruptError):
        return has_header(path, SNAPSHOT.rows_attribute)
    return False
