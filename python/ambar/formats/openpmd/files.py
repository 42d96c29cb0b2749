"""openPMD files on disk: recognized by content, and listed from files, folders and patterns."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.hdf5_files import is_hdf5, open_hdf5
from ambar._util.optional import require

BP_SUFFIXES = (".bp", ".bp4", ".bp5")
"""Suffixes of folders of ADIOS2."""
_HDF5_SUFFIXES = (".h5", ".hdf5")
_PATTERN = re.compile(r"%0?\d*T")
_METADATA = 1 << 20
"""Bytes at the start and the end of metadata of ADIOS2 in which attributes are searched."""
_AGAIN = "restore it from a copy"


def openpmd_api() -> Any:
    """Return the module openpmd_api; raises ModuleNotFoundError with the extra to install."""
    return require("openpmd_api", purpose="openPMD", install="ambar[openpmd]")


def is_openpmd(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` has openPMD data: a file, a folder of files, or a pattern with ``%T``.

    Raises CorruptError for a file of HDF5 that no program can open, as after a truncation.
    """
    place = Path(path)
    if _PATTERN.search(place.name) and not place.exists():
        return True
    if place.is_dir() and not _is_bp(place):
        return any(_is_file(path, if_damaged=False) for path in _candidates(place))
    return _is_file(place)


def files_of(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the files of a conversion, in the order of their numbers.

    Raises
    ------
    FileNotFoundError
        If a file does not exist, or a pattern matches none.
    KeyError
        If a folder has no openPMD data.
    ValueError
        If a folder has several series.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if _PATTERN.search(path.name) and not path.exists():
            found += _matching(path)
        elif path.is_dir() and not _is_bp(path):
            found += _of_folder(path)
        elif not path.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
        else:
            found.append(path)
    return found


def check_file(path: Path) -> None:
    """Raise KeyError if a file has no openPMD data, CorruptError if no program can open it."""
    if not _is_file(path):
        raise _core.NotFoundError(
            f"{path}: expected a file of openPMD, with the attribute openPMD at its root, found "
            "none; leave the file out"
        )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise the errors of openpmd_api as CorruptError that names the file."""
    io = openpmd_api()
    try:
        yield
    except (RuntimeError, IndexError, ValueError, io.Error) as error:
        text = " ".join(str(error).split())
        raise _core.CorruptError(f"{path}: not readable as openPMD: {text}; {_AGAIN}") from error


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of the files in a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _is_bp(path: Path) -> bool:
    return path.suffix in BP_SUFFIXES or (path / "md.idx").is_file()


def _is_file(path: Path, *, if_damaged: bool | None = None) -> bool:
    """Return whether a file or folder of ADIOS2 has the attribute openPMD.

    For a file of HDF5 that cannot be opened, return `if_damaged`; raise CorruptError without it.
    """
    if path.is_dir():
        return any(_mentions(path / name) for name in ("md.0", "mmd.0"))
    if not path.is_file():
        return False
    if is_hdf5(path):
        try:
            return _has_attribute(path)
        except (_core.CorruptError, OSError):
            if if_damaged is None:
                raise
            return if_damaged
    return path.suffix in BP_SUFFIXES and _mentions(path)


def _has_attribute(path: Path) -> bool:
    if find_spec("h5py") is None:
        return False  # other kinds of HDF5 may be readable without it
    with open_hdf5(path) as file:
        return "openPMD" in file.attrs


def _mentions(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        start = file.read(_METADATA)
        file.seek(max(path.stat().st_size - _METADATA, 0))
        return b"openPMD" in start or b"openPMD" in file.read(_METADATA)


def _candidates(folder: Path) -> list[Path]:
    suffixes = (*_HDF5_SUFFIXES, *BP_SUFFIXES)
    return [path for path in sorted(folder.iterdir()) if path.suffix in suffixes]


def _matching(pattern: Path) -> list[Path]:
    """Return the files of a pattern such as ``data_%T.h5``, in the order of their numbers."""
    before, after = _PATTERN.split(pattern.name, maxsplit=1)
    expected = re.compile(rf"{re.escape(before)}(\d+){re.escape(after)}")
    folder = pattern.parent
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    matches = sorted((int(match[1]), name) for name in names if (match := expected.fullmatch(name)))
    if not matches:
        raise FileNotFoundError(
            errno.ENOENT,
            "no file matches the pattern, in which %T is the number of the iteration; check the "
            "path",
            os.fspath(pattern),
        )
    return [folder / name for _, name in matches]


def _of_folder(folder: Path) -> list[Path]:
    found: dict[str, list[tuple[int, Path]]] = {}
    for path in _candidates(folder):
        if not _is_file(path, if_damaged=True):
            continue
        numbers = re.findall(r"\d+", path.stem)
        pattern = re.sub(r"\d+(?=\D*$)", "%T", path.stem) + path.suffix
        found.setdefault(pattern, []).append((int(numbers[-1]) if numbers else 0, path))
    if not found:
        raise _core.NotFoundError(f"{folder}: expected files of openPMD, found none")
    if len(found) > 1:
        raise _core.InvalidError(
            f"{folder}: expected one series of openPMD, found {', '.join(found)}; give the pattern "
            f"of one, such as {folder / next(iter(found))}"
        )
    return [path for _, path in sorted(next(iter(found.values())))]
