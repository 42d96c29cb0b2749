"""From other codes' files to a store or into memory, and back to files."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ambar import _core
from ambar.amrex import AmrexSource, is_amrex, source_of
from ambar.bounds import ErrorBound, listed_bounds
from ambar.collection.sources import is_source
from ambar.info import Info
from ambar.mesh.files import is_mesh_file
from ambar.names import resolve, resolve_all
from ambar.opening import is_ramses, outputs
from ambar.regions import Region
from ambar.snapshot import AMR_COMPONENTS, RamsesSource, Snapshot
from ambar.store import Store
from ambar.writer import Durability, Profile

if TYPE_CHECKING:
    from ambar.collection.exporting import Export

Progress: TypeAlias = Callable[[int, int], None]
Covered: TypeAlias = Literal["auto", "drop", "keep"]


@dataclass(frozen=True)
class Conversion:
    """What a conversion did."""

    target: str
    """The store."""
    source_bytes: int
    """Bytes of the outputs' files."""
    stored_bytes: int
    """Bytes of the store."""
    seconds: float
    """How long it took."""
    converted: list[str] = field(default_factory=list)
    """The outputs converted."""
    skipped: list[str] = field(default_factory=list)
    """The outputs the store had already."""

    @property
    def ratio(self) -> float:
        """How many times smaller the store is than the outputs' files."""
        return self.source_bytes / self.stored_bytes if self.stored_bytes else 0.0


def convert(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    components: Iterable[str] | None = None,
    fields: Iterable[str] | None = None,
    levels: tuple[int, int] | None = None,
    covered: Covered = "auto",
    profile: Profile = "balanced",
    error_bound: ErrorBound | None = None,
    threads: int | None = None,
    progress: Progress | Literal[True] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    durability: Durability = "full",
) -> Conversion:
    """Convert a RAMSES output or a folder of them, a plotfile of AMReX, NetCDF files, or a mesh.

    Nothing is lost, unless an error bound is given. A folder of outputs becomes a series. It can be
    continued: outputs that the store has already are skipped, each output is committed when it is
    complete. Files of NetCDF and Zarr stores become a collection, as `ambar.ingest` makes it, which
    has options of its own. A file of a mesh, of any format that PyVista reads, becomes what
    `ambar.write_mesh` makes of it.

    Parameters
    ----------
    path
        An ``output_NNNNN`` folder, or a folder of them; or a plotfile of AMReX: a folder, or a file
        of HDF5; or a folder or a glob of NetCDF files or Zarr stores; or a file such as x.vtu.
    target
        The store to write.
    components
        Of RAMSES some of "hydro", "gravity", "rt", "particles", "sinks", "clumps"; of AMReX "cells"
        and names of species; by default all there are.
    fields
        Fields to keep, of cells and particles (of AMReX, of cells; of NetCDF, data variables); by
        default all.
    covered
        What becomes of cells of AMReX that a finer level covers: "auto" leaves them out where the
        average of the finer cells gives every one of them back, to the bit or within the error
        bound; "drop" leaves them out
        and takes the average for them; "keep" keeps them.
    levels
        Of RAMSES, the `(lowest, highest)` level of the cells to keep; where cells of the highest
        level are refined further, they are kept with the value RAMSES gives them.
    profile
        "fast" to read, "balanced", or "small".
    error_bound
        How far values may be off: a number (in the field's own unit), or a part of the field's
        value range such as ``"1e-3 of range"``, for all float fields of cells; or a dict of these
        by field. Columns of particles are named, of AMReX as ``"species/column"``. NaN and
        infinities stay.
    threads
        Threads to use; all cores by default.
    progress
        A function called with the work done and all work, or True for a bar on the terminal.
    overwrite
        Replace a store of that name; by default that is an error, but for a series, which is
        continued.
    resume
        Of NetCDF: add the files that the collection of that name lacks; a series does so anyway.
    durability
        "full": survives a power cut. "none" leaves out the fsyncs.

    Raises
    ------
    NotFoundError
        If there is no output, or no component or field of a name.
    CorruptError
        If a file of the output is damaged or cut short.
    InvalidError
        If an error bound is none, or is given for values that are no floats; if `levels` are given
        for a plotfile, or `covered` for RAMSES, whose cells cover no others.
    BusyError
        If there is a store of that name, or another writer is at it.
    """
    if makes_collection([path]):
        _refuse_parts(path, "NetCDF files have", components, levels, covered)
        from ambar.collection.ingest import ingest

        return ingest(
            path,
            target,
            variables=_listed(fields),
            error_bound=error_bound,
            profile=profile,
            threads=threads,
            progress=progress,
            overwrite=overwrite,
            resume=resume,
            durability=durability,
        )
    if is_mesh_file(path):
        _refuse_parts(path, "a mesh has", components, levels, covered)
        if fields is not None or resume:
            raise _core.InvalidError(f"{os.fspath(path)}: a mesh is converted as a whole")
        from ambar.mesh.files import convert_mesh

        return convert_mesh(
            path,
            target,
            profile=profile,
            error_bound=error_bound,
            threads=threads,
            progress=progress,
            overwrite=overwrite,
            durability=durability,
        )
    bounds = listed_bounds(error_bound)
    with shown(progress, f"converting {Path(path).name}") as report:
        if is_amrex(path):
            if levels is not None:
                raise _core.InvalidError("a plotfile is converted with all its levels")
            return _conversion(
                os.fspath(target),
                json.loads(
                    _core.convert_amrex(
                        source_of(path),
                        os.fspath(target),
                        _listed(components),
                        _listed(fields),
                        covered,
                        (profile, bounds),
                        durability,
                        overwrite,
                        threads,
                        report,
                    )
                ),
            )
        if not (is_ramses(path) or outputs(path)):
            raise _nothing(path)
        if resume:
            raise _core.InvalidError("resume is for collections; a series is gone on with anyway")
        if covered != "auto":
            raise _core.InvalidError("cells of RAMSES are leaves: none of them covers another")
        names, known = _listed(fields), _known(path)
        compression = (profile, [(resolve(name, known), bound) for name, bound in bounds])
        text = _core.convert_ramses(
            os.fspath(path),
            os.fspath(target),
            _listed(components),
            None if names is None else resolve_all(names, known),
            levels,
            compression,
            durability,
            overwrite,
            threads,
            report,
        )
    return _conversion(os.fspath(target), json.loads(text))


def read_ramses(
    path: str | os.PathLike[str],
    components: Iterable[str] | None = None,
    fields: Iterable[str] | None = None,
    region: Region | None = None,
    levels: tuple[int, int] | None = None,
    threads: int | None = None,
) -> Snapshot:
    """Read a RAMSES output into memory, without a store: the same object as `ambar.open` gives.

    Parameters
    ----------
    path
        An ``output_NNNNN`` folder.
    components, fields, levels, threads
        As for `convert`.
    region
        A `Box`, `Sphere` or `Shell`: cells whose centre, and particles whose position, is inside.

    Raises
    ------
    NotFoundError
        If there is no output, or no component or field of a name.
    CorruptError
        If a file of the output is damaged or cut short.
    """
    core = _core.Ramses(os.fspath(path))
    info = Info.from_dict(json.loads(core.info))
    source = RamsesSource(
        core,
        os.fspath(path),
        components=_listed(components),
        fields=_listed(fields),
        region=None if region is None else region.to_code(info),
        levels=levels,
        threads=threads,
    )
    snapshot = Snapshot(source)
    if any(name in source.components for name in AMR_COMPONENTS):
        _ = snapshot.amr
    if "particles" in source.components:
        _ = snapshot.particles
    return snapshot


def read_amrex(
    path: str | os.PathLike[str],
    components: Iterable[str] | None = None,
    fields: Iterable[str] | None = None,
    threads: int | None = None,
) -> Snapshot:
    """Read a plotfile of AMReX without a store: the same object as `ambar.open` gives.

    Boxes are read when cells in them are first asked for, and kept.

    Parameters
    ----------
    path
        The plotfile's folder, or its file of HDF5.
    components
        "cells", and names of species; by default all there are.
    fields
        Fields of the cells; by default all.
    threads
        Threads to read particles with; all cores by default.

    Raises
    ------
    NotFoundError
        If there is no plotfile, or no component or field of a name.
    CorruptError
        If a file of the plotfile is damaged or cut short.
    """
    return Snapshot(
        AmrexSource(path, components=_listed(components), fields=_listed(fields), threads=threads)
    )


def export(
    store: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    format: Literal["netcdf", "zarr"] | None = None,  # noqa: A002 - as xarray calls it
    datasets: Any = None,
    processes: int | None = None,
    amrex_hdf5: bool = False,
    error_bound: ErrorBound | None = None,
    threads: int | None = None,
    progress: Progress | Literal[True] | None = None,
) -> Export | None:
    """Write a store of a plotfile as a plotfile again, a collection's datasets or a mesh as files.

    A plotfile that was converted as a whole becomes the same files, byte by byte; of others (from
    HDF5, or with some fields only) boxes, names and values are the same. Each dataset of a
    collection becomes a file of NetCDF, or a Zarr store, that xarray reads as what was added. A
    mesh becomes a file of the format that the suffix of `target` names: .vtkhdf, .vtu, .stl, ...

    Parameters
    ----------
    store
        The store.
    target
        The folder to write; the file of a mesh.
    format, datasets, processes
        Of a collection: "netcdf" (by default) or "zarr"; which datasets, as for `Collection.read`;
        and how many processes write, by default one a core.
    amrex_hdf5
        Write a plotfile's cells as AMReX's plotfile in HDF5, a file, compressed by ambar's filter,
        with which every program reads it whose HDF5 finds the plugin (docs/howto/hdf5-filter.md).
    error_bound
        With `amrex_hdf5`: how far values may be off, as for `convert`; by default not at all.
    threads
        Threads to use for a plotfile; all cores by default.
    progress
        A function called with the work done and all work, or True for a bar on the terminal.

    Returns
    -------
    Export
        Of a collection: which datasets were written, and which could not be.

    Raises
    ------
    UnsupportedError
        If the store has neither cells of patches, nor datasets, nor a mesh; if PyVista does not
        write a mesh in that format.
    InvalidError
        If an option is for the other kind.
    BusyError
        If there is something at `target`.
    CorruptError
        If a checksum differs.
    """
    if amrex_hdf5:
        if format is not None or datasets is not None or processes is not None:
            raise _core.InvalidError("format, datasets and processes are for collections")
        from ambar.amrex_hdf5_export import export_hdf5

        with shown(progress, f"exporting {Path(store).name}") as report:
            export_hdf5(store, target, error_bound=error_bound, threads=threads, progress=report)
        return None
    if error_bound is not None:
        raise _core.InvalidError("error_bound is for plotfiles in HDF5: give amrex_hdf5=True")
    core = _core.Store(os.fspath(store))
    about = Store(core).ambar_attributes()
    kind = about.get("kind")
    if kind == "series" and about.get("of") == "mesh":
        raise _core.UnsupportedError(
            f"{os.fspath(store)} is a series of meshes: ambar.open(...)[number].read() returns a "
            "step, which PyVista saves"
        )
    if kind == "collection":
        from ambar.collection.exporting import export_collection

        return export_collection(
            store,
            target,
            format=format or "netcdf",
            datasets=datasets,
            processes=processes,
            progress=progress,
        )
    if format is not None or datasets is not None or processes is not None:
        raise _core.InvalidError(
            f"{os.fspath(store)} is no collection: format, datasets and processes are for those"
        )
    if kind == "mesh":
        from ambar.mesh.files import export_mesh

        export_mesh(store, target, threads)
        return None
    with shown(progress, f"exporting {Path(store).name}") as report:
        _core.export_amrex(core, "/", os.fspath(target), threads, report)
    return None


def makes_collection(paths: Sequence[str | os.PathLike[str]]) -> bool:
    """Whether paths lead to NetCDF files or Zarr stores, and to nothing of another kind."""
    if len(paths) == 1:
        others = (is_mesh_file, is_amrex, is_ramses, outputs)
        if any(is_other(paths[0]) for is_other in others):
            return False
    return any(is_source(path) for path in paths)


def _refuse_parts(
    path: str | os.PathLike[str],
    what: str,
    components: Iterable[str] | None,
    levels: tuple[int, int] | None,
    covered: Covered,
) -> None:
    """Refuse options that are for cells."""
    if components is not None or levels is not None or covered != "auto":
        raise _core.InvalidError(
            f"{os.fspath(path)}: {what} no components, levels or covered cells"
        )


def _nothing(path: str | os.PathLike[str]) -> OSError | _core.NotFoundError:
    """Return the error for a path that holds no output."""
    if not Path(path).exists():
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    return _core.NotFoundError(
        f"{path}: no RAMSES output (info_NNNNN.txt), no folder of them (output_NNNNN), no "
        "plotfile of AMReX (Header), no NetCDF files or Zarr stores, and no mesh: give the folder "
        "of an output, or a file"
    )


def _listed(names: Iterable[str] | None) -> list[str] | None:
    if names is None:
        return None
    return [names] if isinstance(names, str) else list(names)


def _known(path: str | os.PathLike[str]) -> list[str]:
    """Return the names of the fields that a RAMSES output, or a run's first one, has."""
    first = next(iter(outputs(path)), None)
    if first is None:
        return []
    found = json.loads(_core.Ramses(str(first)).components)
    return [name for component in found for name in component["fields"]]


def shown(
    progress: Progress | Literal[True] | None, title: str
) -> AbstractContextManager[Progress | None]:
    """Give the function to report progress to: the caller's own, a bar's, or none."""
    if progress is True:
        from ambar.progress import bar

        return bar(title)
    return nullcontext(progress)


def _conversion(target: str, report: dict[str, Any]) -> Conversion:
    return Conversion(target=target, **report)
