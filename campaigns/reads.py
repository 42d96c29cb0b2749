"""Every public way to read a store, for campaigns that damage stores; runs in a `Worker`.

Large libraries are imported here, so that no task's time is spent on them.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyvista  # noqa: F401 - ambar imports it for meshes
import xarray as xr
from typer.testing import CliRunner

import ambar
from ambar.cli import app
from ambar.kinds.registry import overview
from campaigns.samples import digest

LARGEST = 1 << 26
"""The size in bytes up to which arrays are read whole; hostile stores may declare any size."""


@dataclass
class Outcome:
    """The outcome of reading a store."""

    reads: int = 0
    refused: int = 0
    """Reads that raised an error of ambar."""
    foreign: list[str] = field(default_factory=list)
    """Reads that raised other errors."""
    values: dict[str, str] = field(default_factory=dict)
    """Digests of the arrays that could be read whole."""

    def attempt(
        self, name: str, action: Callable[..., Any], *arguments: Any, by_xarray: bool = False
    ) -> Any:
        """Run an action, which may fail with errors of ambar only.

        If `by_xarray`, xarray may raise its own errors, such as for invalid units of time.
        """
        self.reads += 1
        try:
            return action(*arguments)
        except ambar.AmbarError:
            self.refused += 1
        except (Exception, SystemExit) as error:
            if by_xarray and not isinstance(error, MemoryError):
                self.refused += 1
                return None
            self.foreign.append(f"{name}: {_short(traceback.format_exc())}")
        return None


def _short(text: str) -> str:
    lines = [line for line in text.splitlines() if not line.strip().startswith("^")]
    return "\n    ".join(lines[-9:])


def everything(path: str, every_way: bool = True) -> Outcome:
    """Read a store in every way, in part and whole."""
    outcome = Outcome()
    store = outcome.attempt("Store", lambda: ambar.Store._open(path))
    if store is not None:
        _plain(outcome, store)
    found = outcome.attempt("open", lambda: ambar.open(path))
    if found is not None:
        for name, action in _of_kind(found):
            outcome.attempt(f"{type(found).__name__}.{name}", action)
    if every_way:
        _other_ways(outcome, path)
    return outcome


def arrays(path: str) -> Outcome:
    """Read every array of a store, and the attributes that `values` compares."""
    outcome = Outcome()
    store = outcome.attempt("Store", lambda: ambar.Store._open(path))
    if store is not None:
        _plain(outcome, store)
    return outcome


def _plain(outcome: Outcome, store: ambar.Store) -> None:
    attempt = outcome.attempt
    attempt("repr", lambda: repr(store))
    attempt("usage", store.usage)
    for group in attempt("groups", lambda: store.groups) or ():
        attributes = attempt("attributes", store._attributes, group)
        if attributes is not None:
            outcome.values[f"{group} attributes"] = repr(sorted(attributes.items()))
    for path in attempt("arrays", lambda: list(store)) or ():
        array = attempt("array", store.__getitem__, path)
        if array is not None:
            _array(outcome, path, array)
    attempt("verify", store.verify)


def _array(outcome: Outcome, path: str, array: ambar.Array) -> None:
    attempt = outcome.attempt
    attempt("describe", lambda: (array.dims, array.chunks, array.shards, array.codecs))
    attempt("fill_value", lambda: array.fill_value)
    attempt("stored_bytes", lambda: array.stored_bytes)
    attributes = attempt("array attributes", lambda: array.attrs)
    outcome.values[f"{path} attributes"] = repr(sorted((attributes or {}).items()))
    if array.nbytes <= LARGEST:
        values = attempt("read", array.read)
        if values is not None:
            outcome.values[path] = digest(values)
    attempt("read a corner", lambda: array.read(tuple(slice(0, 2) for _ in array.shape)))
    attempt("read the end", lambda: array.read(tuple(slice(-1, None) for _ in array.shape)))


def _of_kind(found: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "repr", lambda: repr(found)
    if isinstance(found, ambar.Snapshot):
        yield from _of_snapshot(found)
    elif isinstance(found, ambar.Series):
        yield "outputs", lambda: (found.outputs, found.times)
        for number in range(min(3, len(found))):
            for name, action in _of_snapshot_at(found, number):
                yield f"[{number}].{name}", action
    elif isinstance(found, ambar.Collection):
        yield from _of_collection(found)
    elif isinstance(found, ambar.Mesh):
        yield from _of_mesh(found)
    elif isinstance(found, ambar.MeshSeries):
        yield "times", lambda: found.times
        yield "at", lambda: found.at(0.7)
        for number in range(min(3, len(found))):
            yield f"[{number}].read", partial(_step, found, number, "read")
            yield f"[{number}].repr", partial(_step, found, number, "__repr__")


def _step(steps: ambar.MeshSeries, number: int, method: str) -> Any:
    return getattr(steps[number], method)()


def _of_snapshot_at(series: ambar.Series, at: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "open", lambda: series[at]
    yield "amr", lambda: series[at].amr.read()


def _of_snapshot(found: ambar.Snapshot) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "info", lambda: (str(found.info), found.info.summary(), found.namelist)
    yield "components", lambda: (found.components, found.missing)
    yield "amr", lambda: repr(found.amr)
    yield "cells", lambda: found.amr.read()
    box = ambar.Box((0.2,) * 3, (0.5,) * 3)
    yield "cells in a box", lambda: found.amr.read(region=box)
    yield "where", lambda: found.amr.read(where=f"{found.amr.fields[0]} > 1")
    yield "chunks_touched", lambda: found.amr.chunks_touched(region=box)
    yield "slice", lambda: found.amr.slice(found.amr.fields[0], level=min(found.amr.levels[0], 5))
    yield "project", lambda: found.amr.project(found.amr.fields[0], level=1)
    yield "particles", lambda: found.particles.read()
    yield "to_xarray", lambda: found.to_xarray()


def _of_collection(found: ambar.Collection) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "describe", lambda: (found.names, repr(found), found._repr_html_(), found.families)
    yield "attrs", lambda: dict(found.attrs)
    yield "attrs_table", lambda: found.attrs_table()
    yield "to_xarray", lambda: found.to_xarray()
    yield "choose", lambda: found.choose("v.max > 0.5")
    for variable in found.variables[:4]:
        yield "stats", partial(found.stats, variable)
        yield "read", partial(found.read, variable)
        yield "read some", partial(found.read, variable, [0, -1])
    for name in _listed(lambda: found.names)[:6]:
        yield "load", partial(found.load, name)
        yield "[name]", partial(_lazily, found, name)


def _lazily(collection: ambar.Collection, name: str) -> Any:
    return collection[name].load()


def _of_mesh(found: ambar.Mesh) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "describe", lambda: (found.type, found.user_dict, found.blocks)
    yield "arrays", lambda: [array.to_dict() for array in [*found.arrays, *found.geometry]]
    yield "read", lambda: found.read()
    yield "read a box", lambda: found.read(region=ambar.Box((0, 0, 0), (1, 1, 1), unit="code"))
    for info in _listed(lambda: found.arrays)[:3]:
        arguments: dict[str, Any] = {"name": str(info.name), "block": info.block or None}
        yield "read_array", partial(found.read_array, **arguments)


def _listed(action: Callable[[], list[Any]]) -> list[Any]:
    """Return a list, empty if it cannot be read; another attempt reports the error."""
    try:
        return action()
    except ambar.AmbarError:
        return []


def _other_ways(outcome: Outcome, path: str) -> None:
    attempt = outcome.attempt
    tree = attempt("open_datatree", lambda: xr.open_datatree(path, engine="ambar"))
    for node in tree.subtree if tree is not None else ():
        if node.nbytes <= LARGEST:
            attempt("xarray load", node.to_dataset().load, by_xarray=True)
    attempt("overview", lambda: overview(path))
    attempt("references", lambda: ambar.references(path))
    attempt("read_mesh", lambda: ambar.read_mesh(path))
    for commit in (attempt("log", ambar.log, path) or ())[1:4]:
        earlier = attempt(
            "earlier commit", lambda n=commit.number: ambar.open_store(path, commit=n)
        )
        if earlier is not None:
            _plain(Outcome(foreign=outcome.foreign), earlier)
            attempt("diff", ambar.diff, earlier, path)
    for command in ("info", "ls", "log"):
        attempt(f"ambar {command}", _command, command, path)


def _command(*words: str) -> None:
    result = CliRunner().invoke(app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception


def damaged_paths(path: Path) -> list[Path]:
    """Return the files of a store that a campaign may damage."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name != "lock")


def open_corner(path: str) -> None:
    """Open a store and read one value of each array."""
    store = ambar.Store._open(path)
    for name in list(store)[:50]:
        array = store[name]
        array.read(tuple(slice(0, 1) for _ in array.shape))
