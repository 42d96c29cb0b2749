"""Conversion of files of other programs to stores, and export of stores to files."""

from __future__ import annotations

import dataclasses
import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from ambar import _core
from ambar._util.arguments import WriteMode, check_mode
from ambar._util.foreign_files import contents_of, refuse_special
from ambar._util.output_files import name_target_on_full_disk, published, refuse_source
from ambar._util.progress import Progress
from ambar.io.cluster import convert_on_cluster
from ambar.kinds.registry import Kind, kind_of_object, kind_of_sources, kind_of_store, kind_to_copy
from ambar.kinds.request import Conversion, ConvertRequest, Export, build
from ambar.kinds.request import Path as AnyPath
from ambar.kinds.targets import check_target
from ambar.store.error_bounds import ErrorBound
from ambar.store.group_description import kind_name
from ambar.store.locations import is_store_or_damaged, open_store
from ambar.store.store import Store, first_group_with_arrays
from ambar.store.urls import check_url, is_url, refuse_empty, refuse_url
from ambar.store.writer import Profile


def convert(
    source: AnyPath | Sequence[AnyPath] | Any,
    target: AnyPath,
    *,
    mode: WriteMode = "w-",
    profile: Profile | None = None,
    error_bound: ErrorBound | None = None,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    fsync: bool = True,
    storage_options: Mapping[str, object] | None = None,
    **options: Any,
) -> Conversion:
    """Convert files of another program, or a store, to a store.

    Nothing is lost, unless an error bound is given. Of a store, chunks whose encoding does not
    change are copied verbatim. See docs/howto/stores-from-stores.md.

    Parameters
    ----------
    source : path, sequence of paths, or dataset of yt
        What to convert. It determines the kind of the store, and the options that apply
        (docs/howto/sources.md has a table):

        - an ``output_NNNNN`` folder of RAMSES: a snapshot;
        - a folder of such outputs: a series. Each output is committed when it is converted. The
          newest one is left out if RAMSES has not finished writing it;
        - a plotfile of AMReX, a folder or a file of HDF5: a snapshot;
        - plotfiles of one run, as a list, a folder or a glob: a series, as of RAMSES. Unfinished
          ones are left out;
        - a checkpoint of AMReX: a store of its files, which `ambar.export` writes again, bit for
          bit;
        - a snapshot of particles in HDF5 (Gadget, AREPO, GIZMO, SWIFT), as a file, one of several
          files, or their folder: a snapshot;
        - snapshots of particles of one run, as a list, a folder or a glob: a series, as of RAMSES;
        - files of openPMD in HDF5 or ADIOS2, as one file, a list, a folder or a pattern such as
          ``data_%T.h5``, where %T is the number of the iteration: a series, or a snapshot of a file
          with one iteration. Each iteration is committed when it is converted;
        - an output of another code that yt reads, or a dataset of yt (docs/howto/other-codes.md): a
          snapshot. Needs yt;
        - NetCDF files and Zarr stores, as a list, a folder or a glob: a collection, as
          `ambar.ingest` writes it;
        - a file of a mesh, of any format that PyVista or meshio reads: a mesh, or a series if the
          file has several time steps;
        - a ``.pvd``, a ``.series`` of ParaView, or several files of meshes in the order of their
          numbers: a series of meshes. Each mesh is committed when it is converted;
        - a store, or the URL of one: a store of the same kind.
    target : path
        The store to write, or its URL: ``"s3://bucket/run.ambar"`` is one object, which appears
        when it is complete; ``"s3://bucket/run/"`` is a store of many objects, which can grow
        (docs/howto/object-stores.md).
    mode : {"w-", "w", "a"}, default "w-"
        "w-" creates a new store. "w" replaces the store at `target` at the first commit. "a" adds
        to a series or collection what it lacks, or creates it; of openPMD always a series. Outputs,
        plotfiles and snapshots whose files have changed since (names, sizes, times of modification)
        replace their steps. The options must be those of the outputs that a series has.
    profile : {"fast", "balanced", "small", "raw"}, optional
        "fast" reads fastest, "small" is smallest, "raw" does not compress. "balanced" by default;
        of a store, arrays keep their encoding. A profile applies to arrays without an error bound.
    error_bound : float, str or dict, optional
        How far values may differ from the originals, for all float fields of cells: a number (in
        the field's own unit), or a string such as ``"1e-3 of range"`` or ``"1e-3 relative"``. Or a
        dict of these, whose keys are names or patterns of fields, ``"density"`` or
        ``"velocity_*"``, optionally with levels, ``"density@8:"``, or a box in code coordinates,
        ``"density@[0.2:0.4, 0.2:0.4, 0.2:0.4]"``. Columns of particles are named
        ``"particles/mass"``, of AMReX ``"species/column"``. NaN and infinities do not change. Warns
        of a bound "of range" that exceeds the median magnitude of a field. See
        docs/howto/error-bounds.md. By default, values do not change.
    threads : int, optional
        Threads to use; all cores by default.
    progress : callable or bool, optional
        A function called with the work done and all work, or True for a bar on the terminal.
    fsync : bool, default True
        Whether the store survives a power failure. False is faster, for temporary files.
    storage_options : mapping, optional
        Options of the URLs of the source and the target, as for `ambar.open`.
    **options
        Options of the kind of the source, below. Kinds of other packages may have other options.

    Returns
    -------
    Conversion
        Sizes, time, and what was converted, skipped and replaced.

    Other Parameters
    ----------------
    components : list of str, optional
        Of RAMSES some of "hydro", "gravity", "rt", "particles", "sinks", "clumps"; of AMReX and
        yt "cells" and names of species; of particle codes "gas", "dark_matter", "stars" and others.
        All by default.
    fields : list of str, optional
        Of RAMSES: fields of cells and particles; components without one of them are left out. Of
        AMReX: fields of cells; species are chosen by `components`. Of particle codes: columns and
        datasets. Of yt: fields of cells, also derived ones such as ``("gas", "cell_mass")``, and
        ``"species/column"``. Of NetCDF: names and patterns of data variables. Of stores also names
        of arrays of meshes, and paths and patterns of arrays. All by default.
    halos : path or list of path, optional
        Of particle codes and single RAMSES outputs: catalogues of the same output, of Subfind, FOF,
        Rockstar or HOP. Each is a table in `Snapshot.halos`.
    levels : tuple of int, optional
        Of RAMSES, and of stores of cells: the lowest and the highest level of the leaf cells to
        keep, both included. Cells of other levels, and refined cells, are left out. Of a store of
        cells in patches, covered cells of the highest level become leaves.
    max_level : int, optional
        Of RAMSES: the level at which the tree ends. Refined cells of this level become leaves with
        the value that RAMSES stores in them, the mean of the finer cells, so that the cells fill
        the volume. `levels` then selects among the leaves of this tree.
    covered : {"auto", "drop", "keep"}, default "auto"
        Of AMReX and yt: what becomes of cells that a finer level covers. "auto" leaves them out if
        the averages of the finer cells reproduce all of them, bit for bit or within the error
        bound. "drop" leaves them out and uses the averages. "keep" keeps them.
    on_error : {"stop", "skip"}, default "stop"
        Of RAMSES, AMReX, openPMD, particle codes and NetCDF: what happens if one of several sources
        cannot be converted.
        "stop" raises the error; what is committed stays. "skip" converts the others and lists the
        failed ones in `Conversion.failed`; it raises the first error if none could be converted.
    scheduler : str or distributed.Client, optional
        Of runs of RAMSES and AMReX, and of NetCDF: a dask cluster whose workers convert, by the
        address of its scheduler, such as ``"tcp://node1:8786"``, or its client. See
        docs/howto/clusters.md.
    reorder : bool, default False
        Of a mesh: sort its cells along a space-filling curve, as `ambar.write_mesh` does.
    ragged : str or iterable of str, optional
        Of NetCDF: as for `ambar.ingest`, like the following options.
    on_mismatch : {"family", "cast", "raise"}, optional
        Of NetCDF: what happens if dtypes differ.
    engine : str, optional
        Of NetCDF: xarray's engine for all files.
    processes : int, optional
        Of NetCDF: the number of processes that read.
    decode_times : bool, default True
        Of NetCDF: whether numbers with units of time become times.
    steps : int, slice or list of int, optional
        Of a store of a series: positions of the steps to copy, from 0. All by default.
    region : Region, optional
        Of a store of cells or particles: the part of space to copy, such as ``ambar.Box(...)``. A
        cell of a tree is in it if its center is. Of cells in patches, the boxes around the region
        are copied. Fields that have an error bound are stored without further loss, with a warning,
        unless `error_bound` is given.
    datasets : list of str, str or slice, optional
        Of a store of a collection: which datasets, as for `Collection.read`. All by default.

    Raises
    ------
    FileNotFoundError
        If a source does not exist.
    FileExistsError
        If `target` exists, with mode "w-"; if it is not a store, with mode "w".
    KeyError
        If no kind recognizes the source; if a component or field does not exist; if an error bound
        is given for a field, component or level that does not exist.
    CorruptError
        If a file of the source is damaged or cut short, or an output is not complete.
    ValueError
        If an option does not apply to the kind of the source, or has an invalid value; if mode "a"
        is given for an existing store and a source that is converted as a whole, or for a series of
        another run; if plotfiles have other domains, refinement ratios or fields than those of the
        run; if the source is the target; if a bound cannot be added to the one that a store has.
    UnsupportedError
        If `target` is the URL of an object, with mode "a"; if nothing can be written to the URL.
    BusyError
        If another writer has `target` open.

    Examples
    --------
    >>> done = ambar.convert("output_00002", "gas.ambar", components="hydro", max_level=4)
    >>> done.stored_bytes < done.source_bytes
    True
    >>> ambar.open("gas.ambar").amr.levels
    (4, 4)

    A folder of outputs becomes a series. Later calls with mode "a" add new outputs:

    >>> ambar.convert("sedov", "sedov.ambar", mode="a").converted
    ['output_00001', 'output_00002']
    >>> ambar.convert("sedov", "sedov.ambar", mode="a").skipped
    ['output_00001', 'output_00002']

    A store from a store: chunks of the fields are copied verbatim.

    >>> ambar.convert("gas.ambar", "density.ambar", fields="density").converted
    []
    >>> ambar.open("density.ambar").amr.fields
    ['density']

    An option that a kind does not have is an error:

    >>> ambar.convert("output_00002", "gas.ambar", mode="w", reorder=True)
    Traceback (most recent call last):
    ...
    ambar.InvalidError: output_00002: reorder does not apply to the kind ...
    """
    start = time.perf_counter()
    check_mode(mode)
    refuse_empty("target", target)
    check_url(target, mode)
    paths: list[AnyPath]
    kind, opened, store = None, None, None
    if isinstance(source, (str, os.PathLike)):
        paths = [source]
    elif not isinstance(source, (list, tuple)) and (kind := kind_of_object(source)) is not None:
        paths, opened = [str(source)], source
    elif isinstance(source, Iterable):
        paths = list(source)
    else:
        raise TypeError(f"expected a path, several paths or a dataset of yt, found {source!r:.80}")
    refuse_empty("source", *paths)
    common: dict[str, Any] = {
        "paths": paths,
        "target": target,
        "mode": mode,
        "source": opened,
        "profile": profile or "balanced",
        "error_bound": error_bound,
        "threads": threads,
        "progress": progress,
        "fsync": fsync,
        "storage_options": storage_options if is_url(target) else None,
    }
    if kind is None:
        store = _store_to_copy(paths, storage_options, target)
    request: ConvertRequest
    if store is not None:
        refuse_source(paths, target)
        kind = kind_to_copy(store)
        common |= {"opened": store, "new_profile": profile}
        request = build(kind.copy_request, kind.name, paths[0], options, **common)
    else:
        kind = kind or _kind_to_convert(paths)
        request = build(kind.convert_request, kind.name, paths[0], options, **common)
    check_target(target, mode, storage_options)
    scheduler = options.pop("scheduler", None)
    if scheduler is not None and kind.outputs is not None:
        writing = request.writing | options
        done = convert_on_cluster(convert, kind, paths, target, mode, writing, scheduler, progress)
        return dataclasses.replace(done, is_part=request.is_part)
    write = kind.convert if store is None else kind.copy
    with name_target_on_full_disk(target):
        report = cast(Callable[[Any], Conversion | None], write)(request)
    if report is None:
        read = sum(map(_source_bytes, paths)) if store is None else store.usage()["total"]
        stored, seconds = request.stored_bytes(), time.perf_counter() - start
        report = Conversion(os.fspath(target), read, stored, seconds)
    return dataclasses.replace(report, is_part=request.is_part)


def _source_bytes(path: AnyPath) -> int:
    from ambar.collection.files.sources import size_of

    return size_of(Path(path))


def _store_to_copy(
    paths: Sequence[AnyPath], storage_options: Mapping[str, object] | None, target: AnyPath
) -> Store | None:
    """Return the store that is converted; None for files of other programs."""
    for path in paths:
        if not is_url(path):
            refuse_special(path)
    stores = [path for path in paths if is_url(path) or is_store_or_damaged(path)]
    if not stores:
        if storage_options and not is_url(target):
            raise _core.InvalidError(
                "storage_options are for URLs (s3://..., https://...), found paths; leave them out"
            )
        return None
    if len(stores) < len(paths):
        raise _core.InvalidError(
            "expected a store, or files of other programs, found both: "
            f"{os.fspath(stores[0])} is a store; convert them one by one"
        )
    if len(stores) > 1:
        raise _core.InvalidError(
            f"expected one store to convert, found {len(stores)}; ambar.merge, or `ambar merge`, "
            "writes several stores as one"
        )
    return open_store(stores[0], storage_options if is_url(stores[0]) else None)


def _kind_to_convert(paths: Sequence[AnyPath]) -> Kind:
    """Return the kind of the sources at `paths`; raises as `convert` does."""
    if not paths:
        raise _core.InvalidError("expected at least one source to convert, found an empty list")
    kind = kind_of_sources(paths)
    if kind is not None:
        return kind
    for path in paths:
        if not Path(path).exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    if len(paths) != 1:
        raise _core.InvalidError(
            f"expected one output, plotfile or mesh, or files of one kind, found {len(paths)} "
            "sources; convert each to a store of its own"
        )
    raise _core.NotFoundError(
        f"{paths[0]}: expected a RAMSES output (with info_NNNNN.txt), a folder of outputs "
        "(output_NNNNN), a plotfile or checkpoint of AMReX (with Header), a snapshot of "
        "particles in HDF5, openPMD, an output that yt reads, NetCDF files, Zarr stores or a mesh; "
        f"found {contents_of(Path(paths[0]))}; check the path"
    )


def export(
    store: AnyPath,
    target: AnyPath,
    *,
    mode: Literal["w-", "w"] = "w-",
    threads: int | None = None,
    progress: Progress | bool | None = None,
    storage_options: Mapping[str, object] | None = None,
    **options: Any,
) -> Export:
    """Write the content of a store to files of other programs.

    A native plotfile that was converted as a whole becomes the same files, byte by byte. Others
    (from HDF5, or with some fields only) become a native plotfile of the same boxes, names and
    values.

    Parameters
    ----------
    store : path
        The path or the URL of the store.
    target : path
        The file or folder to write:

        - cells of a plotfile: the plotfile's folder;
        - a series of plotfiles: a folder with all plotfiles;
        - a checkpoint: its folder;
        - what was converted from openPMD: a folder of HDF5 files, or a file if `target` ends in
          ``.h5`` or ``.bp`` (ADIOS2);
        - cells of outputs and plotfiles, and of series of outputs: AMR data for VTK, if `target`
          ends in ``.vtkhdf``;
        - a collection: a folder, in which each dataset becomes a file of NetCDF or a Zarr store;
        - a mesh: a file of the format that the suffix names: ``.vtkhdf``, ``.vtu``, ``.stl``, ...;
        - a series of meshes: a ``.pvd`` and a file for each step.
    mode : {"w-", "w"}, default "w-"
        "w-" creates new files. "w" replaces what is at `target`: a file, or a folder whose files
        are all written again. Nothing is at `target` before the export is complete.
    threads : int, optional
        Threads to use; all cores by default.
    progress : callable or bool, optional
        A function called with the work done and all work, or True for a bar on the terminal.
    storage_options : mapping, optional
        Options for URLs, as for `ambar.open`.
    **options
        Options of the kind of the store, below. Kinds of other packages may have other options.

    Returns
    -------
    Export
        The target and the time; of a collection also the datasets that were written, and those
        that could not be written; of a mesh what the format does not hold unchanged.

    Other Parameters
    ----------------
    format : {"netcdf", "zarr", "openpmd"}, optional
        Of a collection: what each dataset becomes, "netcdf" by default. Of outputs: "openpmd", the
        default for those that were converted from openPMD.
    datasets : list of str, str or slice, optional
        Of a collection: which datasets, as for `Collection.read`. All by default.
    processes : int, optional
        Of a collection: how many processes write; one per core by default.
    output : int, optional
        Of a series of outputs or plotfiles: the number of the only one to write. All by default.

    Raises
    ------
    FileNotFoundError
        If `store` or the folder of `target` does not exist.
    FileExistsError
        If `target` exists, with mode "w-".
    UnsupportedError
        If the store has no cells, datasets or mesh; if `format` is "openpmd" and the store was not
        made from openPMD files; if neither PyVista nor meshio writes a mesh in that format; if the
        format cannot hold what the meshes have; if `target` is a URL.
    ValueError
        If an option does not apply to the kind of the store; if mode "w" would replace the store,
        or a folder of other files.
    CorruptError
        If a checksum differs.

    Examples
    --------
    >>> ambar.export("profiles.ambar", "files", format="netcdf").exported[:2]
    ['station_0040', 'station_0041']
    >>> print(ambar.export("wing.ambar", "wing.vtk"))
    wing.vtk: written in ... s
    """
    start = time.perf_counter()
    check_mode(mode, Literal["w-", "w"])
    _core.check_threads(threads)
    refuse_empty("store", store)
    refuse_empty("target", target)
    refuse_url(target)
    opened = open_store(store, storage_options)
    kind = kind_of_store(opened)
    if kind.export is None:
        group = first_group_with_arrays(opened)
        chosen = f", group={group!r}" if group else ""
        raise _core.UnsupportedError(
            f"{os.fspath(store)}: expected cells, a collection or a mesh to export, found the kind "
            f"{kind_name(opened._ambar_attributes())!r}; write NetCDF with xarray: "
            f"xarray.open_dataset({os.fspath(store)!r}{chosen}).to_netcdf({os.fspath(target)!r})"
        )
    request = build(
        kind.export_request,
        kind.name,
        store,
        options,
        store=store,
        opened=opened,
        target=Path(target),
        threads=threads,
        progress=progress,
        storage_options=storage_options,
    )
    if mode == "w" and Path(store).resolve().is_relative_to(Path(target).resolve()):
        raise _core.InvalidError(
            f'{target}: mode="w" would replace {store}, which is exported; choose another target'
        )
    with published(Path(target), replace=mode == "w") as scratch:
        done = kind.export(dataclasses.replace(request, target=scratch))
    seconds = time.perf_counter() - start
    found = done or Export("", [], 0.0)
    return dataclasses.replace(found, target=os.fspath(target), seconds=seconds)
