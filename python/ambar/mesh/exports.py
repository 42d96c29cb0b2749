"""Meshes in stores as files of other programs: written by PyVista, by the suffix."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ambar import _core
from ambar.mesh.foreign import pyvista, strictly
from ambar.mesh.reading import read_mesh


def export_mesh(
    store: str | os.PathLike[str], target: str | os.PathLike[str], threads: int | None = None
) -> None:
    """Write a mesh as a file of the format that the suffix of `target` names.

    PyVista writes ``.vtkhdf``, VTK's XML and legacy formats, ``.stl``, ``.ply`` and others, meshio
    those that PyVista does not.

    Raises
    ------
    BusyError
        If there is something at `target`.
    UnsupportedError
        If PyVista is not installed, or writes no such objects in that format.
    OSError
        If the file system refuses; nothing is left then.
    """
    place = Path(target)
    if place.exists():
        raise _core.BusyError(f"{place} is there already; choose another name, or remove it")
    library = pyvista()
    mesh = read_mesh(store, threads=threads)
    if not hasattr(mesh, "save"):
        raise _core.UnsupportedError(
            f"{os.fspath(store)} holds a {mesh.GetClassName()}, which PyVista does not write"
        )
    # What an error leaves of a file, or of the folder of pieces beside it, goes with this folder.
    with TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder:
        _save(library, mesh, Path(folder) / place.name, place)
        for made in sorted(Path(folder).iterdir()):
            made.rename(place.parent / made.name)


def _save(library: Any, mesh: Any, path: Path, place: Path) -> None:
    """Write a mesh to `path`, which is to be at `place`."""
    known = sorted({str(suffix) for suffix in getattr(mesh, "_WRITERS", ())})
    try:
        with strictly(library):
            if path.suffix.lower() in known:
                mesh.save(path)
            else:
                library.save_meshio(path, mesh)
    except OSError:
        raise
    except library.VTKExecutionError as error:
        what = " ".join(str(error).split())
        raise OSError(f"{place}: VTK could not write it: {what:.300}; is there room?") from error
    except Exception as error:
        # What goes wrong in either of them has no type of its own.
        raise _core.UnsupportedError(
            f"{place}: a {type(mesh).__name__} is not written as {path.suffix or 'a file'} "
            f"({error}); there are {', '.join(known)}"
        ) from error
