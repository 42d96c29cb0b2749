"""From other codes' files to a store or into memory, and back to files."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ambar import _core
from ambar._util.replacement import replaced
from ambar.formats.amrex.source import AmrexSource
from ambar.formats.ramses.source import RamsesSource
from ambar.kinds.registry import Kind, kind_of_sources, kind_of_store
from ambar.kinds.request import (
    Conversion,
    Covered,
    ExportRequest,
    OnError,
    Progress,
    Request,
    listed,
)
from ambar.kinds.request import Path as AnyPath
from ambar.snapshot.regions import Region
from ambar.snapshot.run_info import RamsesInfo
from ambar.snapshot.snapshot import AMR_COMPONENTS, Snapshot
from ambar.store.error_bounds import ErrorBound
from ambar.store.locations import refuse_store
from ambar.store.urls import is_url, refuse_url
from ambar.store.writer import Profile

if TYPE_CHECKING:
    from ambar.collection.files.export import Export


def convert(
    path: AnyPath | Sequence[AnyPath],
    target: str | os.PathLike[str],
    *,
    components: Iterable[str] | None = None,
    fields: Iterable[str] | None = None,
    levels: tuple[int, int] | None = None,
    max_level: int | None = None,
    covered: Covered = "auto",
    profile: Profile = "balanced",
    error_bound: ErrorBound | None = None,
    threads: int | None = None,
    progress: Progress | Literal[True] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    on_error: OnError = "stop",
    fsync: bool = True,
    reorder: bool = False,
) -> Conversion:
    """Convert a RAMSES output or a folder of them, a plotfile of AMReX, NetCDF files, or a mesh.

    Nothing is lost, unless an error bound is given. A folder of outputs becomes a series. It can be
    continued: each output is committed when it is converted, and outputs that the store has already
    are skipped. An output whose files have changed since (names, sizes, times of modification) is
    converted again and replaces its step. An output that RAMSES has not finished writing is an
    error. Files of NetCDF and Zarr stores become a collection, as `ambar.ingest` makes it, which
    has options of its own. A file of a mesh, of any format that PyVista reads, becomes what
    `ambar.write_mesh` makes of it; where it has several time steps, a `MeshSeries` of them. So do a
    collection or series of ParaView (.pvd, .vtu.series), and several files of meshes in the order
    of their numbers: each is read, added and committed by itself.

    Parameters
    ----------
    path
        An ``output_NNNNN`` folder, or a folder of them; or a plotfile of AMReX: a folder, or a file
        of HDF5; or a folder or a glob of NetCDF files or Zarr stores; or a file such as x.vtu, or
        those of time steps, as a list or a glob.
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
        Of RAMSES, the `(lowest, highest)` level of the leaf cells to keep, both included. As in
        `Amr.read`: cells of other levels, and cells that are refined, are left out.
    max_level
        Of RAMSES, the level at which the tree ends: refined cells of this level are kept as leaves
        with the value that RAMSES stores in them, the mean of the finer cells, so that the cells
        fill the volume. `levels` then selects among the leaves of this tree. A store has leaves
        only, so that it cannot be read up to a `max_level`: convert with one.
    profile
        "fast" to read, "balanced", or "small".
    error_bound
        How far values may differ from the originals, for all float fields of cells: a number (in
        the field's own unit), or a string such as ``"1e-3 of range"`` or ``"1e-3 relative"``. Or a
        dict of these, whose keys are names or patterns of fields, ``"density"`` or
        ``"velocity_*"``, optionally with levels, ``"density@8:"``, or a box in code coordinates,
        ``"density@[0.2:0.4, 0.2:0.4, 0.2:0.4]"``. Columns of particles are named
        ``"particles/mass"``, of AMReX ``"species/column"``. NaN and infinities do not change. Warns
        of a bound "of range" that exceeds the median magnitude of a field. See
        docs/howto/error-bounds.md.
    threads
        Threads to use; all cores by default.
    progress
        A function called with the work done and all work, or True for a bar on the terminal.
    overwrite
        Replace a store of that name; by default that is an error, but for a series, which is
        continued.
    resume
        Of NetCDF: add the files that the collection of that name lacks; of meshes, the time steps
        that the series lacks. A series of outputs does so anyway.
    on_error
        What happens if one of several outputs or files cannot be converted. "stop" raises the
        error; what is committed stays. "skip" converts the others and lists the failed ones in
        `Conversion.failed`; it raises the first error if none could be converted.
    fsync
        Whether the store survives a power failure. False is faster, for temporary files.
    reorder
        Of a mesh: sort its cells along a curve, as `ambar.write_mesh` does.

    Raises
    ------
    KeyError
        If an output, component or field does not exist; if an error bound is given for a
        field, component or level that does not exist.
    CorruptError
        If a file of the output is damaged or cut short, or the output is not complete.
    ValueError
        If an error bound is invalid, or is given for values that are not floats; if `levels` are
        given for a plotfile, or `covered` for RAMSES, which stores leaf cells only; if a source is
        already a store.
    UnsupportedError
        If `target` is a URL.
    FileExistsError
        If `target` exists, without `overwrite`.
    BusyError
        If another writer has `target` open.
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    request = Request(
        paths=paths,
        target=target,
        components=components,
        fields=fields,
        levels=levels,
        max_level=max_level,
        covered=covered,
        profile=profile,
        error_bound=error_bound,
        threads=threads,
        progress=progress,
        overwrite=overwrite,
        resume=resume,
        on_error=on_error,
        fsync=fsync,
        reorder=reorder,
    )
    refuse_url(target)
    kind, write = kind_to_convert(paths)
    kind.check_conversion(request)
    return write(request)


def kind_to_convert(
    paths: Sequence[AnyPath],
) -> tuple[Kind, Callable[[Request], Conversion]]:
    """Return the kind of the sources at `paths`, and the request to convert them.

    Raises
    ------
    FileNotFoundError
        If the path does not exist.
    KeyError
        If no kind recognizes it.
    ValueError
        If a path is a store already, or a URL; if several paths are not sources of one conversion.
    """
    for path in paths:
        refuse_store(path)
        if is_url(path):
            raise _core.InvalidError(f"{path}: only local files are converted; download it first")
    kind = kind_of_sources(paths)
    if kind is not None and kind.convert is not None:
        return kind, kind.convert
    if len(paths) != 1:
        raise _core.InvalidError("outputs, plotfiles and meshes are converted one by one")
    if not Path(paths[0]).exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(paths[0]))
    raise _core.NotFoundError(
        f"{paths[0]}: no RAMSES output (info_NNNNN.txt), no folder of them (output_NNNNN), no "
        "plotfile of AMReX (Header), no NetCDF files or Zarr stores, and no mesh: give the folder "
        "of an output, or a file"
    )


def read_ramses(
    path: str | os.PathLike[str],
    components: Iterable[str] | None = None,
    fields: Iterable[str] | None = None,
    region: Region | None = None,
    levels: tuple[int, int] | None = None,
    max_level: int | None = None,
    threads: int | None = None,
) -> Snapshot:
    """Read a RAMSES output into memory, without a store: the same object as `ambar.open` gives.

    `ambar.open` reads nothing until it is asked for, and then only the fields asked for.

    Parameters
    ----------
    path
        An ``output_NNNNN`` folder.
    components, fields, levels, max_level, threads
        As for `convert`.
    region
        A `Box`, `Sphere` or `Shell`: cells whose centre, and particles whose position, is inside.
        It reaches over periodic faces of the box.

    Raises
    ------
    KeyError
        If an output, component or field does not exist.
    CorruptError
        If a file of the output is damaged or cut short.
    """
    core = _core.Ramses(os.fspath(path))
    info = RamsesInfo.from_dict(json.loads(core.info))
    source = RamsesSource(
        core,
        os.fspath(path),
        components=listed(components),
        fields=listed(fields),
        region=None if region is None else region.to_code(info),
        levels=levels,
        max_level=max_level,
        threads=threads,
        whole=True,
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
    KeyError
        If the plotfile, a component or a field does not exist.
    CorruptError
        If a file of the plotfile is damaged or cut short.
    """
    return Snapshot(
        AmrexSource(path, components=listed(components), fields=listed(fields), threads=threads)
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
    overwrite: bool = False,
    without_particles: bool = False,
    threads: int | None = None,
    progress: Progress | Literal[True] | None = None,
) -> Export | None:
    """Write a store of a plotfile as a plotfile again, cells, meshes or a collection as files.

    A plotfile that was converted as a whole becomes the same files, byte by byte; of others (from
    HDF5, or with some fields only) boxes, names and values are the same. Cells of an output or a
    plotfile, and of a series of outputs, become AMR data for VTK if `target` ends in .vtkhdf. Each
    dataset of a collection becomes a file of NetCDF, or a Zarr store, that xarray reads as what was
    added. A mesh becomes a file of the format that the suffix of `target` names: .vtkhdf, .vtu,
    .stl, ...; a series of meshes one .vtkhdf, or a .pvd with a file for each step.

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
    overwrite
        Replace what is at `target`, when the export is complete: a file, or a folder that holds
        nothing but such an export.
    without_particles
        With `amrex_hdf5`: leave out the particles of a store that has some, which such files do not
        hold; by default that is an error.
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
        write a mesh in that format; if the format cannot keep what the meshes have; if `target` is
        a URL.
    ValueError
        If an option is for the other kind; if `overwrite` would replace the store, or a folder of
        other files.
    FileExistsError
        If there is something at `target`, and `overwrite` is not set.
    CorruptError
        If a checksum differs.
    """
    request = ExportRequest(
        store=store,
        target=target,
        format=format,
        datasets=datasets,
        processes=processes,
        amrex_hdf5=amrex_hdf5,
        error_bound=error_bound,
        without_particles=without_particles,
        threads=threads,
        progress=progress,
    )
    refuse_url(target)
    kind = kind_of_store(request.opened)
    kind.check_export(request)
    if kind.export is None:
        raise _core.UnsupportedError(
            f"{os.fspath(store)}: stores of the kind {kind.name!r} are not exported"
        )
    if not overwrite:
        done: Export | None = kind.export(request)
        return done
    with replaced(Path(target), Path(store)) as place:
        done = kind.export(dataclasses.replace(request, target=place))
    return None if done is None else dataclasses.replace(done, target=os.fspath(target))
