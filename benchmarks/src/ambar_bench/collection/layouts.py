"""What a row of the study is made of: a layout, which is written, and a way of reading it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ambar_bench.collection.cases import Case, Values

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Request:
    """What is read: `window` of all variables of all datasets, as NumPy arrays in memory."""

    folder: Path
    case: Case
    datasets: list[str]
    window: dict[str, slice]
    threads: int

    @property
    def start(self) -> list[int]:
        """Where the window begins in each dimension."""
        return [one.start for one in self.window.values()]

    @property
    def shape(self) -> list[int]:
        """How many elements it has in each dimension."""
        return [one.stop - one.start for one in self.window.values()]

    @property
    def box(self) -> tuple[slice, ...]:
        """The window as NumPy takes it."""
        return tuple(self.window.values())


class Layout(ABC):
    """A way of keeping datasets. The time of `begin`, all `add` and `finish` is that of writing."""

    key: ClassVar[str]
    name: ClassVar[str]
    """What tables call it."""
    modules: ClassVar[tuple[str, ...]] = ()
    """Python packages that it needs."""
    ours: ClassVar[bool] = False

    def __init__(self, folder: Path, case: Case, threads: int) -> None:
        self.folder = folder
        self.case = case
        self.threads = threads
        self.prepare()

    def prepare(self) -> None:  # noqa: B027 - few need to
        """Do what is not timed: imports and settings."""

    def begin(self) -> None:  # noqa: B027 - files of their own need no beginning
        """Create the store in the empty folder."""

    @abstractmethod
    def add(self, pairs: list[tuple[str, xr.Dataset]]) -> None:
        """Write datasets under their names."""

    def finish(self) -> None:  # noqa: B027 - and no end
        """Close the store, so that a reader finds everything."""


class Reader(ABC):
    """A way of reading a layout. The time of `read` counts, opening included."""

    key: ClassVar[str]
    name: ClassVar[str]
    layout: ClassVar[type[Layout]]

    def __init__(self, request: Request) -> None:
        self.request = request
        self.prepare()

    def prepare(self) -> None:  # noqa: B027 - few need to
        """Do what is not timed: imports and settings."""

    @abstractmethod
    def read(self) -> Any:
        """Open the store and return the window, as `stacked` takes it."""


def lacking(layout: type[Layout]) -> list[str]:
    """Return the packages a layout needs that are not installed."""
    return [module for module in layout.modules if find_spec(module) is None]


def stacked(loaded: Any, name: str) -> Values:
    """Return a variable as an array (datasets, ...), whatever way of reading gave it.

    That is a mapping of variables to such arrays, an xarray Dataset of them, or one such mapping
    for each dataset.
    """
    if isinstance(loaded, list):
        return np.stack([np.asarray(one[name]) for one in loaded])
    return np.asarray(loaded[name])


def delayed(function: Callable[[str], Any], names: Iterable[str], threads: int) -> list[Any]:
    """Return what a function gives for each name, as delayed tasks done by dask's threads."""
    dask: Any = import_module("dask")  # whose own exports are untyped
    with dask_threads(threads):
        return list(dask.compute(*(dask.delayed(function)(name) for name in names)))


def dask_threads(threads: int) -> AbstractContextManager[Any]:
    """Return a context in which dask uses this number of threads."""
    dask: Any = import_module("dask")
    context: AbstractContextManager[Any] = dask.config.set(scheduler="threads", num_workers=threads)
    return context
