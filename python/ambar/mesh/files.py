"""Other programs' mesh files to stores, and back: read and written by PyVista."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from ambar import _core
from ambar.mesh.reading import read_mesh
from ambar.mesh.writing import write_mesh

if TYPE_CHECKING:
    from ambar.bounds import ErrorBound
    from ambar.conversion import Conversion, Progress
    from ambar.writer import Durability, Profile

# VTK's own, legacy, XML and HDF; in parallel pieces, and of many blocks.
_VTK = ".vtk .vtu .vtp .vti .vtr .vts .vtkhdf .vtm .vtmb .vtpd .pvtk .pvtu .pvti .pvtr .pvts"
# Other programs', which VTK reads, or meshio; pyvista-zstd's and zvtk's.
_OTHERS = (
    ".stl .ply .obj .cas .case .cgns .e .ex2 .exii .exo .g .foam .inp .msh .mesh .med .neu .xdmf "
    ".bdf .fem .nas .off .su2 .ugrid .avs .grdecl .pv .zvtk"
)
SUFFIXES = frozenset([*_VTK.split(), *_OTHERS.split()])
"""Of the files that are taken for meshes."""


def is_mesh_file(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a file that is called like a mesh."""
    place = Path(path)
    return place.suffix.lower() in SUFFIXES and place.is_file()


def convert_mesh(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    profile: Profile = "balanced",
    error_bound: ErrorBound | None = None,
    threads: int | None = None,
    overwrite: bool = False,
    durability: Durability = "full",
    reorder: bool = False,
    progress: Progress | Literal[True] | None = None,
) -> Conversion:
    """Convert a file that PyVista (or meshio, through it) reads.

    Arguments and errors are those of `ambar.convert`, and `reorder` of `ambar.write_mesh`;
    UnsupportedError if PyVista is not installed,
    CorruptError if it cannot read the file.
    """
    from ambar.conversion import Conversion, shown

    start = time.perf_counter()
    size = _size(Path(path))
    with shown(progress, f"converting {Path(path).name}") as report:
        mesh = _read(Path(path))
        write_mesh(
            mesh,
            target,
            profile=profile,
            error_bound=error_bound,
            threads=threads,
            overwrite=overwrite,
            durability=durability,
            reorder=reorder,
        )
        if report is not None:
            report(size, size)
    return Conversion(
        os.fspath(target),
        size,
        _size(Path(target)),
        time.perf_counter() - start,
        [Path(path).name],
    )


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
    pyvista = _pyvista()
    mesh = read_mesh(store, threads=threads)
    if not hasattr(mesh, "save"):
        raise _core.UnsupportedError(
            f"{os.fspath(store)} holds a {mesh.GetClassName()}, which PyVista does not write"
        )
    # What an error leaves of a file, or of the folder of pieces beside it, goes with this folder.
    with TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as folder:
        _save(pyvista, mesh, Path(folder) / place.name, place)
        for made in sorted(Path(folder).iterdir()):
            made.rename(place.parent / made.name)


def _save(pyvista: Any, mesh: Any, path: Path, place: Path) -> None:
    """Write a mesh to `path`, which is to be at `place`."""
    known = sorted({str(suffix) for suffix in getattr(mesh, "_WRITERS", ())})
    try:
        with _strictly(pyvista):
            if path.suffix.lower() in known:
                mesh.save(path)
            else:
                pyvista.save_meshio(path, mesh)
    except OSError:
        raise
    except pyvista.VTKExecutionError as error:
        what = " ".join(str(error).split())
        raise OSError(f"{place}: VTK could not write it: {what:.300}; is there room?") from error
    except Exception as error:
        # What goes wrong in either of them has no type of its own.
        raise _core.UnsupportedError(
            f"{place}: a {type(mesh).__name__} is not written as {path.suffix or 'a file'} "
            f"({error}); there are {', '.join(known)}"
        ) from error


def _read(path: Path) -> Any:
    pyvista = _pyvista()
    try:
        if path.suffix.lower() == ".zvtk":
            return _zvtk().read(path)
        with _strictly(pyvista):
            return pyvista.read(path)
    except (OSError, _core.AmbarError):
        raise
    except Exception as error:
        what = " ".join(str(error).split())
        raise _core.CorruptError(
            f"{path}: PyVista cannot read it: {what:.300}; is it complete, and of that format?"
        ) from error


@contextmanager
def _strictly(pyvista: Any) -> Iterator[None]:
    """Have errors of VTK raised: it prints them, and goes on with what it has read of a file."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(action="ignore"),
            pyvista.vtk_verbosity("off"),
            pyvista.VtkErrorCatcher(raise_errors=True, send_to_logging=False),
        ):
            yield
    finally:
        logging.disable(before)


def _pyvista() -> Any:
    if find_spec("pyvista") is None:
        raise _core.UnsupportedError(
            "files of meshes are read and written by PyVista: pip install 'ambar[mesh]'"
        )
    import pyvista

    return pyvista


def _zvtk() -> Any:
    if find_spec("zvtk") is None:
        raise _core.UnsupportedError("files .zvtk are read by zvtk: pip install zvtk")
    from importlib import import_module

    return import_module("zvtk")


def _size(path: Path) -> int:
    """Return the bytes of a file, and of the folder of its name that pieces lie in."""
    pieces = path.with_suffix("") if path.suffix in (".vtm", ".vtmb", ".vtpd") else None
    inside = pieces.rglob("*") if pieces is not None and pieces.is_dir() else ()
    if path.is_dir():
        inside = path.rglob("*")
    files = [path, *inside]
    return sum(file.stat().st_size for file in files if file.is_file())
