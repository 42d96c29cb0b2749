"""Finds the NetCDF files and Zarr stores to ingest, and names their datasets."""

from __future__ import annotations

import errno
import glob
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ambar._util.optional import require_any
from ambar.store.locations import refuse_store
from ambar.store.urls import refuse_empty

Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"

SUFFIXES = (".nc", ".nc4", ".cdf", ".netcdf", ".h5", ".hdf5", ".he5", ".zarr")
"""Suffixes of files that are found in folders; files that are given by path have any name."""
_ZARR = ("zarr.json", ".zgroup", ".zmetadata")


@dataclass(frozen=True, slots=True)
class Reading:
    """Options of reading files."""

    variables: list[str] | None = None
    """Names and patterns of data variables to read, with their coordinates; None for all."""
    engine: str | None = None
    """xarray's engine; None to determine it from the first bytes of a file."""
    decode_times: bool = True
    """Whether numbers with units of time become times."""


def find_sources(paths: Paths) -> list[Path]:
    """Return the files and Zarr stores of paths, folders and globs, without duplicates.

    Folders are searched recursively in the order of names, without hidden files.

    Raises
    ------
    FileNotFoundError
        If a path does not exist, a glob has no matches, or no folder contains such files.
    ValueError
        If one of them is a store of ambar.
    """
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: dict[Path, None] = {}
    refuse_empty("paths", *given)
    for path in given:
        found.update(dict.fromkeys(_of(os.fspath(path))))
    for source in found:
        refuse_store(source)
    if not found:
        raise FileNotFoundError(
            f"{', '.join(map(str, given)) or 'no paths'}: expected NetCDF files or Zarr stores "
            f"({', '.join(SUFFIXES)}), found none"
        )
    return list(found)


def is_source(path: str | os.PathLike[str]) -> bool:
    """Whether a path, a folder or a glob has NetCDF files or Zarr stores."""
    try:
        return next(_of(os.fspath(path)), None) is not None
    except FileNotFoundError:
        return False


def name_sources(sources: list[Path]) -> dict[str, Path]:
    """Return the sources by the names of their datasets.

    A name is that of the file without its suffix. Files of equal names are named by their paths
    below the common folder of all sources, with the suffix if the paths differ in nothing else.
    """
    base = Path(os.path.commonpath([source.parent.absolute() for source in sources]))
    stems = Counter(source.stem for source in sources)
    inside = {source: source.absolute().relative_to(base) for source in sources}
    paths = Counter(path.with_suffix("") for path in inside.values())
    names: dict[str, Path] = {}
    for source in sources:
        path = inside[source]
        if stems[source.stem] == 1:
            name = source.stem
        elif paths[path.with_suffix("")] == 1:
            name = path.with_suffix("").as_posix()
        else:
            name = path.as_posix()
        if name in names:
            # "a.nc", "a.nc.nc" and "a.h5" differ only with their suffixes.
            name = path.as_posix()
        names[name] = source
    return names


def check_readable(sources: Iterable[Path], engine: str | None) -> None:
    """Raise ModuleNotFoundError if no installed library reads such files."""
    require_any(["xarray"], purpose="reading these files", install="ambar[netcdf]")
    kinds = {path.is_dir() for path in sources} if engine is None else set()
    if False in kinds:
        libraries = ("netCDF4", "h5netcdf", "scipy")
        require_any(libraries, purpose="reading NetCDF files", install="ambar[netcdf]")
    if True in kinds:
        require_any(["zarr"], purpose="reading Zarr stores", install="ambar[zarr]")


def size_of(source: Path) -> int:
    """Return the bytes of a file, or of all files of a Zarr store."""
    if not source.is_dir():
        return source.stat().st_size
    return sum(
        Path(folder, name).stat().st_size for folder, _, names in os.walk(source) for name in names
    )


def is_zarr(path: Path) -> bool:
    """Whether a folder is a Zarr store."""
    return path.suffix == ".zarr" or any((path / name).exists() for name in _ZARR)


def _of(path: str) -> Iterator[Path]:
    place = Path(path)
    if place.is_dir():
        yield from [place] if is_zarr(place) else _inside(place)
    elif place.exists():
        yield place
    elif glob.has_magic(path):
        matches = sorted(glob.glob(path, recursive=True))  # noqa: PTH207 - of any root
        if not matches:
            raise FileNotFoundError(errno.ENOENT, "no matches", path)
        for match in matches:
            yield from _of(match)
    else:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _inside(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        at = Path(place)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        stores = [name for name in folders if is_zarr(at / name)]
        folders[:] = [name for name in folders if name not in stores]
        found = [name for name in files if Path(name).suffix.lower() in SUFFIXES]
        for name in sorted([*stores, *(name for name in found if not name.startswith("."))]):
            yield at / name
