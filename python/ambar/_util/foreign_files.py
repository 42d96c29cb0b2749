"""Errors for empty files and for files of other programs, where a store is expected."""

from __future__ import annotations

import os
import re
import shlex
import stat
from pathlib import Path

from ambar import _core

_NETCDF = dict.fromkeys((".nc", ".nc4", ".cdf", ".netcdf"), "a NetCDF file")
_HDF5 = dict.fromkeys((".h5", ".hdf5", ".he5"), "an HDF5 file")
VTK = "a VTK file"
"""What `kind_of_file` returns for files of VTK."""
_VTK = dict.fromkeys(
    (".vtk", ".vtkhdf", ".vtp", ".vtu", ".vti", ".vtr", ".vts", ".vtm", ".vtmb", ".pvd"), VTK
)
_SUFFIXES = {**_NETCDF, **_HDF5, **_VTK}
_SIGNATURES = {
    b"\x89HDF": "an HDF5 file",
    b"CDF\x01": "a NetCDF file",
    b"CDF\x02": "a NetCDF file",
    b"CDF\x05": "a NetCDF file",
    b"# vtk DataFile": VTK,
    b"<VTKFile": VTK,
}

_NOUN_OF_SPECIAL_FILE = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
"""Nouns for special files, by the file type in `st_mode`."""

EMPTY = "the file is empty; restore it from a copy"
"""The end of the error message for a file of zero bytes, which a failed copy leaves."""


def is_empty_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a file of zero bytes."""
    place = Path(path)
    return place.is_file() and place.stat().st_size == 0


def refuse_special(path: str | os.PathLike[str]) -> None:
    """Raise InvalidError if `path` is a pipe, a socket or a device: reading it could not end."""
    try:
        found = _NOUN_OF_SPECIAL_FILE.get(stat.S_IFMT(Path(path).stat().st_mode))
    except (OSError, ValueError):  # the error of opening it is clearer
        return
    if found is not None:
        raise _core.InvalidError(
            f"{os.fspath(path)}: expected a file, found {found}; copy its bytes to a file first"
        )


def refuse_foreign(path: str | os.PathLike[str]) -> None:
    """Raise an error that says what `path` is, if it is a file or a folder of another program.

    Raises
    ------
    ValueError
        If it is a file of HDF5, NetCDF or VTK, a folder with such files, a plotfile or a file of
        one, a RAMSES output, or a Zarr store or array of version 2.
    KeyError
        If it is any other folder.
    """
    place = Path(path)
    if place.is_dir():
        _refuse_folder(place)
    elif kind := kind_of_file(place):
        raise _core.InvalidError(
            f"{place}: expected a store of ambar, found {kind}; convert it first: "
            f"ambar convert {shlex.quote(str(place))} out.ambar"
        )
    elif (plotfile := plotfile_of(place)) and place.suffix != ".ambar":
        raise _core.InvalidError(
            f"{place}: expected a store of ambar or a plotfile, found a file of the plotfile "
            f"{plotfile}; give the folder"
        )


def plotfile_of(path: Path) -> Path | None:
    """Return the folder of the AMReX plotfile that contains a file; None for other files."""
    folders = (str(folder) for folder in path.absolute().parents[:3])
    return next((Path(folder) for folder in folders if _core.is_plotfile(folder)), None)


def _refuse_folder(folder: Path) -> None:
    found = {entry.name for entry in folder.iterdir()}
    if found & {"zarr.json", ".ambar"}:  # a damaged store
        return
    names = sorted(name for name in found if not name.startswith("."))
    known = [name for name in names if Path(name).suffix.lower() in _SUFFIXES]
    if known:
        more = f" and {len(known) - 1} more" if len(known) > 1 else ""
        suffix = Path(known[0]).suffix
        source = folder / f"*{suffix}" if suffix.lower() in _VTK else folder
        raise _core.InvalidError(
            f"{folder}: expected a store of ambar, found a folder with {known[0]}{more}; convert "
            f"the files first: ambar convert {shlex.quote(str(source))} out.ambar"
        )
    recognized = {
        "a RAMSES output": any(re.fullmatch(r"info_\d{5}\.txt", name) for name in names),
        "a plotfile of AMReX": _core.is_plotfile(str(folder)),
        "a Zarr store of version 2": bool(found & {".zgroup", ".zmetadata"}),
    }
    if kind := next((kind for kind, is_kind in recognized.items() if is_kind), None):
        raise _core.InvalidError(
            f"{folder}: expected a store of ambar, found {kind}; convert it first: "
            f"ambar convert {shlex.quote(str(folder))} out.ambar"
        )
    if ".zarray" in found:
        raise _core.InvalidError(
            f"{folder}: expected a store of ambar, found a Zarr array of version 2; store it in "
            "Python: with ambar.create(store) as writer: writer.create_array(name, "
            "data=zarr.open_array(folder)[...])"
        )
    raise _core.NotFoundError(
        f"{folder}: expected a store (a folder with zarr.json), or for ambar.open and ambar info "
        "also a RAMSES output (with info_NNNNN.txt) or a plotfile of AMReX (with Header); found "
        f"{contents_of(folder)}; check the path"
    )


def contents_of(path: Path) -> str:
    """Return what a path contains, for messages."""
    if not path.is_dir():
        return f"a file of {path.stat().st_size} bytes"
    names = sorted(entry.name for entry in path.iterdir())
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"a folder with {', '.join(names[:3])}{more}" if names else "an empty folder"


def kind_of_file(path: Path) -> str | None:
    """Return what a file is by its suffix or its first bytes; None if unknown or empty."""
    if not path.is_file():  # opening a FIFO waits for its writer
        return None
    try:
        with path.open("rb") as file:
            start = file.read(max(map(len, _SIGNATURES)) + 64)
    except OSError:
        return None
    if not start:
        return None
    start_of_xml = start[start.find(b"<VTKFile") :] if start.startswith(b"<?xml") else start
    by_content = (kind for head, kind in _SIGNATURES.items() if start_of_xml.startswith(head))
    return _SUFFIXES.get(path.suffix.lower()) or next(by_content, None)
