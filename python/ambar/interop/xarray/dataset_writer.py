"""Writes datasets and trees, with the arguments and the semantics of ``Dataset.to_zarr``."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import xarray as xr
from xarray import conventions

from ambar._util.arguments import WriteMode
from ambar._util.user_warnings import warn
from ambar.interop.xarray.dask_writer import PendingArray, aligned, bound_of, compute_and_write
from ambar.interop.xarray.encoding import ArrayEncoding
from ambar.interop.xarray.group_reader import GroupStore
from ambar.interop.xarray.group_writer import Region, WritableGroup
from ambar.parallel.division import divide
from ambar.store.array import Array
from ambar.store.cache import OpenedStore, place_of
from ambar.store.locations import store_at
from ambar.store.urls import check_url, is_object, is_url
from ambar.store.writer import Profile, Writer, create

Mode: TypeAlias = Literal["w", "w-", "a", "a-", "r+"]
RegionLike: TypeAlias = Mapping[Hashable, slice | Literal["auto"]] | Literal["auto"]


@dataclass(frozen=True)
class Options:
    """Options of writing, as for `ambar.create`."""

    profile: Profile = "balanced"
    directory: bool | None = None
    threads: int | None = None
    fsync: bool = True
    storage_options: Mapping[str, object] | None = None

    def open(self, path: str, mode: WriteMode) -> Writer:
        """Open the store at `path` for writing; a folder stays a folder."""
        is_folder = not is_url(path) and Path(path).is_dir()
        return create(
            path,
            mode,
            directory=is_folder if self.directory is None else self.directory,
            fsync=self.fsync,
            profile=self.profile,
            threads=self.threads,
            storage_options=self.storage_options,
        )


@dataclass(frozen=True)
class Node:
    """A dataset, its group in the store, and the encodings of its variables."""

    group: str
    dataset: xr.Dataset
    encoding: Mapping[Hashable, Mapping[str, Any]]


def write_nodes(
    nodes: list[Node],
    path: str | os.PathLike[str],
    group: str,
    mode: Mode | None,
    options: Options,
    region: RegionLike | None = None,
    append_dim: Hashable | None = None,
    compute: bool = True,
) -> Any:
    """Write datasets as groups of the store at `path`, below or at `group`, in one commit.

    Returns None, or with ``compute=False`` a `dask.delayed.Delayed` that writes the dask arrays.
    """
    mode = chosen_mode(mode, append_dim=append_dim, region=region)
    check_url(path, "a" if mode in ("a-", "r+") or not compute else mode, options.storage_options)
    for node in nodes:
        for variable in node.dataset.variables.values():
            if variable.size == 0:
                variable.load()  # dask does not store empty arrays
    location = str(path if is_url(path) else Path(path).expanduser().absolute())
    if not compute and append_dim is not None:
        # A commit before all rows are computed would not be a valid dataset.
        return _later(write_nodes, nodes, location, group, mode, options, region, append_dim)
    with Session(location, group, mode, options) as session:
        for node in nodes:
            session.write(node, mode, region, append_dim)
        if compute:
            session.finish()
            return None
        session.writer.commit()
    created = [dataclasses.replace(array, is_new=False) for array in session.pending]
    return _later(_write_pending, location, created, options)


def chosen_mode(
    mode: Mode | None, *, append_dim: Hashable | None, region: RegionLike | None
) -> Mode:
    """Return `mode`, or the default; raises ValueError if it contradicts the other arguments."""
    if mode is None:
        mode = "a" if append_dim is not None else "w-" if region is None else "r+"
    if mode not in ("w", "w-", "a", "a-", "r+"):
        raise ValueError(f"invalid mode {mode!r}: must be one of 'w', 'w-', 'a', 'a-', 'r+'")
    if append_dim is not None and mode not in ("a", "a-"):
        raise ValueError("cannot set append_dim unless mode='a', mode='a-' or mode=None")
    if region is not None and mode not in ("a", "a-", "r+"):
        raise ValueError("cannot set region unless mode='a', mode='a-', mode='r+' or mode=None")
    return mode


class Session:
    """A writer, the earlier content of the store, and the pending dask tasks."""

    def __init__(self, path: str, group: str, mode: Mode, options: Options) -> None:
        self.pending: list[PendingArray] = []
        self._path, self._key = path, place_of(path, options.storage_options)
        group = group.strip("/")
        is_replaced = mode == "w" and not group
        self._store = None if is_replaced else store_at(path, options.storage_options)
        exists = self._store is not None and group in self._store.groups
        if mode == "w-" and exists:
            raise FileExistsError(
                f"{path}: the group /{group} exists; replace it with mode='w', or add to it with "
                "mode='a'"
            )
        if mode == "r+" and not exists:
            raise FileNotFoundError(
                f"{path}: the group /{group} does not exist; create it with mode='a'"
            )
        # Other groups of an object cannot be kept.
        changes: WriteMode = "w-" if is_object(path) else "a"
        self.writer = options.open(path, "w" if is_replaced else changes)
        if mode == "w" and exists:
            self.writer.remove(group)
            self._store = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.writer.close()
        else:
            self.writer._abort()

    def write(
        self, node: Node, mode: Mode, region: RegionLike | None, append_dim: Hashable | None
    ) -> None:
        """Write a dataset as a group; dask arrays stay pending until `finish`."""
        committed = None
        if self._store is not None and node.group in self._store.groups:
            committed = GroupStore(OpenedStore.of(self._key, self._store), node.group)
        dataset, slices = _with_region(node.dataset, committed, region, append_dim, mode)
        known = [] if committed is None else list(committed.get_variables())
        if existing := [name for name in node.encoding if name in known]:
            raise ValueError(
                f"variable {existing[0]!r} already exists, but encoding was provided; leave it out"
            )
        if missing := [name for name in node.encoding if name not in dataset.variables]:
            raise KeyError(f"encoding is given for {missing}, which the dataset does not have")
        variables, attributes = conventions.encode_dataset_coordinates(dataset)
        for name, encoding in node.encoding.items():
            variables[name].encoding = encoding  # xarray checks that it is a mapping
        target = WritableGroup(
            self, node.group, committed, mode=mode, append_dim=append_dim, region=slices
        )
        target.store(variables, attributes, set(node.encoding))

    def finish(self) -> None:
        """Write the pending dask arrays, and commit."""
        if self.pending:
            compute_and_write(self.writer, self.pending, self._path)
        self.writer.commit()

    def create(self, path: str, variable: xr.Variable, encoding: ArrayEncoding) -> None:
        """Write a new array, or create it without data if it is a dask array."""
        common: dict[str, Any] = {
            "dims": [str(dim) for dim in variable.dims],
            "attrs": variable.attrs,
            "fill_value": encoding.fill_value,
            "profile": encoding.profile,
        }
        if variable.chunks is None or variable.dtype.kind in "OT":
            self.writer.create_array(
                path,
                variable.values,
                chunks=encoding.chunks,
                shards=encoding.shards,
                error_bound=encoding.error_bound,
                value_range=encoding.value_range,
                **common,
            )
            return
        data = variable.data
        division = divide(
            data.dtype.itemsize,
            data.chunks,
            chunks=encoding.chunks,
            shards=encoding.shards,
            has_bound=encoding.error_bound is not None,
        )
        start = (0,) * data.ndim
        self.writer.create_array(
            path,
            shape=data.shape,
            dtype=data.dtype,
            chunks=division.chunks,
            shards=division.shards,
            error_bound=bound_of(path, encoding.error_bound, data, encoding.value_range),
            value_range=encoding.value_range,
            **common,
        )
        data = aligned(data, start, division.shards, division.blocks)
        self.pending.append(
            PendingArray(path, data, start, data.shape, division.shards, is_new=True)
        )

    def update(self, path: str, array: Array, data: Any, start: tuple[int, ...]) -> None:
        """Write a part of an array, which becomes longer if `data` extends past its end."""
        _warn_of_lossless_chunks(path, array, start)
        lengths = [at + size for at, size in zip(start, data.shape, strict=True)]
        longer = [axis for axis, size in enumerate(array.shape) if lengths[axis] > size]
        if longer and longer != [0]:
            self._copy_into_longer(path, array, lengths)
        is_appended = longer == [0]
        if getattr(data, "chunks", None) is not None and array.dtype.kind != "O":
            shards = array.shards or array.chunks
            itemsize = array.dtype.itemsize
            blocks = divide(itemsize, data.chunks, chunks=array.chunks, shards=shards).blocks
            data = aligned(data.astype(array.dtype), start, shards, blocks)
            shape = tuple(max(pair) for pair in zip(array.shape, lengths, strict=True))
            self.pending.append(
                PendingArray(path, data, start, shape, shards, is_appended=is_appended)
            )
            return
        values = np.asarray(data)
        if array.dtype.kind != "O":
            values = values.astype(array.dtype, copy=False)
        if is_appended:
            self.writer.append(path, values)
        else:
            self.writer.write_region(path, values, start)

    def _copy_into_longer(self, path: str, array: Array, lengths: list[int]) -> None:
        """Replace `array` by a longer array, and copy the values shard by shard.

        Values with an error bound are copied losslessly, so that no value changes twice.
        """
        if array.error_bound is not None:
            warn(
                f"{path}: the array becomes longer in another dimension than its first, and is "
                "stored without loss from now on, because a second encoding would add to the "
                f"errors of the stored values (at most {array.error_bound}); put the dimension "
                "along which you append first: dataset.transpose(dim, ...)"
            )
        shards = array.shards or array.chunks
        shape = tuple(max(pair) for pair in zip(array.shape, lengths, strict=True))
        self.writer.create_array(
            path,
            shape=shape,
            dtype={"string": str, "bytes": bytes}.get(array.type_name, array.dtype),
            dims=array.dims,
            attrs=array.attrs,
            fill_value=array.fill_value,
            chunks=array.chunks,
            shards=shards,
        )
        for start in itertools.product(
            *(range(0, size, shard) for size, shard in zip(array.shape, shards, strict=True))
        ):
            key = tuple(
                slice(at, min(at + shard, size))
                for at, shard, size in zip(start, shards, array.shape, strict=True)
            )
            self.writer.write_region(path, array.read(key), start)


def _warn_of_lossless_chunks(path: str, array: Array, start: tuple[int, ...]) -> None:
    """Warn of chunks of an array with an error bound that appended values share with others.

    They are stored without loss then.
    """
    if not start or not array.error_bound or start[0] != array.shape[0]:
        return
    if start[0] % (rows := array.chunks[0]):
        warn(
            f"{path}: appended rows share a chunk of {rows} rows with stored ones; that chunk is "
            "stored without loss, because a second encoding would add to the errors of the stored "
            f"rows. Fill chunks of {rows} rows with each write, or create the array with chunks of "
            "fewer rows: encoding={name: {'chunks': (1, ...)}}"
        )


def _write_pending(path: str, arrays: list[PendingArray], options: Options) -> None:
    """Compute and write the arrays that an earlier commit created."""
    with options.open(path, "a") as writer:
        compute_and_write(writer, arrays, path)


def _later(function: Any, *arguments: Any) -> Any:
    from dask.delayed import delayed

    # dask does not look for arrays to compute in the arguments of a partial function.
    return delayed(functools.partial(function, *arguments), pure=False)()


def _with_region(
    dataset: xr.Dataset,
    committed: GroupStore | None,
    region: RegionLike | None,
    append_dim: Hashable | None,
    mode: Mode,
) -> tuple[xr.Dataset, Region]:
    """Return the dataset without its indexes, and the checked slices of `region`."""
    if region is None:
        return dataset, {}
    parts: dict[Any, Any] = dict.fromkeys(dataset.dims, "auto") if region == "auto" else region  # type: ignore[assignment]
    if not isinstance(parts, dict):
        raise TypeError(f"region must be a dict of slices, or 'auto', not {type(region).__name__}")
    if "auto" in [part for part in parts.values() if isinstance(part, str)]:
        if mode not in ("r+", "a"):
            raise ValueError(f"mode must be 'r+' or 'a' for region='auto', found {mode!r}")
        parts = {dim: _matching_slice(dataset, committed, dim, part) for dim, part in parts.items()}
    if unknown := [dim for dim in parts if dim not in dataset.dims]:
        raise ValueError(
            f"all keys in ``region`` are not in Dataset dimensions: {unknown}; available: "
            f"{list(dataset.dims)}"
        )
    if wrong := [part for part in parts.values() if not isinstance(part, slice)]:
        raise TypeError(f"all values in ``region`` must be slice objects, got {wrong}")
    if any(part.step not in (None, 1) for part in parts.values()):
        raise ValueError(f"step on all slices in ``region`` must be 1 or None, got {parts}")
    if append_dim is not None and append_dim in parts:
        raise ValueError(
            f"cannot list the same dimension in both ``append_dim`` and ``region``: {append_dim!r}"
        )
    outside = [
        name for name, v in dataset.variables.items() if parts and not set(parts) & set(v.dims)
    ]
    if outside:
        raise ValueError(
            "when setting `region` explicitly, all variables in the dataset to write must have at "
            f"least one dimension in common with the region's dimensions {list(parts)}; to leave "
            f"the others out: .drop_vars({outside!r})"
        )
    return dataset.drop_vars(list(dataset.indexes)), parts


def _matching_slice(
    dataset: xr.Dataset, committed: GroupStore | None, dim: Hashable, part: Any
) -> Any:
    """Return the slice of the store that has the coordinates of the dataset along `dim`."""
    if not (isinstance(part, str) and part == "auto"):
        return part
    if dim not in dataset.variables:
        return slice(0, dataset.sizes[dim])
    stored = None if committed is None else committed.get_variables().get(str(dim))
    if stored is None:
        raise KeyError(f"region 'auto': the store has no coordinate {dim!r}; pass a slice")
    index = xr.conventions.decode_cf_variable(dim, stored).to_index()
    places = index.get_indexer(dataset[dim].to_index())
    if (places == -1).any():
        raise KeyError(
            f"Not all values of coordinate {dim!r} in the dataset are in the store; a region does "
            "not change coordinates, append_dim= adds some"
        )
    if (np.diff(places) != 1).any():
        raise ValueError(
            f"The values of coordinate {dim!r} are not consecutive in the store; write them in "
            "several regions"
        )
    return slice(int(places[0]), int(places[-1]) + 1)


def nodes_of_tree(
    tree: xr.DataTree,
    group: str,
    encoding: Mapping[str, Any] | None,
    *,
    write_inherited_coords: bool,
) -> Iterator[Node]:
    """Yield the datasets of a tree; `encoding` is by the path in the tree, then by variable."""
    encoding = dict(encoding or {})
    if unknown := set(encoding) - set(tree.groups):
        raise ValueError(f"unexpected encoding group name(s) provided: {unknown}")
    base = group.strip("/")
    for relative, node in tree.subtree_with_keys:
        at_root = node is tree
        dataset = node.to_dataset(inherit=write_inherited_coords or at_root)
        below = "" if at_root else relative.strip("/")
        path = "/".join(part for part in (base, below) if part)
        yield Node(path, dataset, cast("Mapping[Hashable, Any]", encoding.get(node.path, {})))
