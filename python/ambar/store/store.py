"""Stores and groups: mappings of paths to arrays and groups."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ambar import _core
from ambar._util import html, text
from ambar._util.arguments import is_unicode
from ambar._util.foreign_files import refuse_foreign
from ambar._util.optional import load_object
from ambar._util.progress import Progress, progress_function
from ambar._util.properties import cached_property
from ambar.store.array import Array
from ambar.store.commit import Commit, CommitName, find_commit
from ambar.store.nodes import Attributes, absolute
from ambar.store.urls import is_url

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PLOT = "ambar.pictures.arrays:plot_store"

# Arrays that a representation lists; fewer of them are visible in a notebook without a click.
_MAX_ROWS, _OPEN_ROWS = 40, 10
_MAX_NAMES = 12
"""The largest number of names in the message for a path that does not exist."""


class Group(Mapping[str, Array]):
    """A group of a store: a mapping of paths to the arrays and groups below it.

    Paths are relative to the group. A path of an array gives an `Array`, a path of a group a
    `Group`. Iteration and ``len`` cover the arrays at all depths; `groups` lists the groups.

    Examples
    --------
    >>> run = ambar.open_store("fields.ambar")["run"]
    >>> list(run)
    ['time', 'names']
    >>> run["time"].shape
    (10,)
    >>> run.attrs["code"]
    'solver'
    """

    def __init__(self, commit: Commit, path: str) -> None:
        self._commit = commit
        self._path = path

    @property
    def path(self) -> str:
        """The path of the group in the store; the root is ""."""
        return self._path

    @cached_property
    def attrs(self) -> Attributes:
        """The attributes of the group, for reading."""
        return Attributes(self._attributes(""))

    @property
    def groups(self) -> list[str]:
        """Paths of all groups, relative to this one; the first, "", is the group itself."""
        return [""] * bool(self._path) + self._below(self._commit.groups)

    @property
    def _subgroups(self) -> list[str]:
        """Names of the groups directly in this one, found without the metadata of others."""
        children = self._commit.core.children(absolute(self._path))
        return [path.rpartition("/")[2] for path, kind in children if kind == "group"]

    @cached_property
    def _arrays(self) -> list[str]:
        return self._below(self._commit.arrays)

    def _below(self, paths: list[str]) -> list[str]:
        """Return those of the paths in a store that are below the group, relative to it."""
        if not self._path:
            return list(paths)
        prefix = f"{self._path}/"
        return [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]

    def _absolute(self, path: str) -> str:
        return absolute(f"{self._path}{absolute(path)}")

    def _attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a group or array; raises KeyError if it does not exist."""
        return self._commit.core.attributes(self._absolute(path))

    def _array(self, path: str) -> Array:
        """Return the array at a path; raises KeyError if it is a group or does not exist."""
        return Array(self._commit, self._absolute(path))

    def read_together(self, paths: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Return the values of several arrays.

        If the arrays have at most 64 MiB of stored bytes together, these are fetched before
        decoding. Adjacent arrays, which were written consecutively, then share reads.

        Parameters
        ----------
        paths : iterable of str
            Paths of arrays, relative to the group.

        Returns
        -------
        dict of str to ndarray
            The values of each array.

        Raises
        ------
        KeyError
            If an array does not exist.
        CorruptError
            If a checksum differs.

        Examples
        --------
        >>> values = ambar.open_store("fields.ambar").read_together(["density", "run/time"])
        >>> values["run/time"].sum()
        np.float64(45.0)
        """
        arrays = {path: self._array(path) for path in paths}
        ahead = self._commit.core.read_ahead([self._absolute(path) for path in arrays])
        try:
            return {path: array.read() for path, array in arrays.items()}
        finally:
            ahead.release()

    def __getitem__(self, path: str) -> Any:
        """Return the array or group at a path; raises KeyError if it does not exist."""
        node = self._absolute(path)
        kind = self._commit.core.kind(node)
        if kind == "group":
            return Group(self._commit, node.strip("/"))
        if kind is None:
            raise self._missing(node)
        return Array(self._commit, node)

    def _missing(self, node: str) -> _core.NotFoundError:
        """Return the error for a path that does not exist, with what its nearest parent has."""
        core, (parent, _, name) = self._commit.core, node.rpartition("/")
        while parent and core.kind(parent) != "group":
            parent, _, name = parent.rpartition("/")
        is_group = core.kind(parent or "/") == "group"
        nodes = core.children(parent or "/") if is_group else ()
        known = sorted(node.rpartition("/")[2] for node, _ in nodes)
        hint = text.suggestion(name, known[:_MAX_NAMES])
        more = f", ... ({len(known)} in total)" if len(known) > _MAX_NAMES else ""
        of = f" in /{parent.strip('/')}" if parent.strip("/") else ""
        return _core.NotFoundError(
            f"{core.location}: array or group {node} does not exist; {hint}{more}{of}"
        )

    def __contains__(self, path: object) -> bool:
        if not isinstance(path, str) or not is_unicode(path):
            return False
        return self._commit.core.kind(self._absolute(path)) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self._arrays)

    def __repr__(self) -> str:
        """Return properties, and a line per array: shape, dtype, bytes, codecs."""
        rows, left_out = self._rows()
        more = [f"  ... and {left_out} more"] if left_out else []
        return text.representation(
            f"<{self._title}>", self._properties(), text.columns(rows, 4), more
        )

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, for notebooks."""
        rows, left_out = self._rows()
        more = f" ({left_out} of them not shown)" if left_out else ""
        arrays = html.table(rows, ("path", "shape", "dtype", "size", "codecs"))
        section = html.details(f"{len(self)} arrays{more}", arrays, is_open=len(rows) <= _OPEN_ROWS)
        return html.representation(self._title, self._properties(), section if rows else "")

    @property
    def _title(self) -> str:
        return f"ambar.Group {self._path or '/'} in {self._commit.core.location}"

    def _properties(self) -> dict[str, object]:
        return {
            "Arrays": len(self),
            "Groups": len(self.groups) - 1,
            "Attributes": ", ".join(self.attrs) or None,
        }

    def _rows(self) -> tuple[list[tuple[str, ...]], int]:
        """Return what describes each of the first arrays, and the number of the others."""
        rows: list[tuple[str, ...]] = []
        for path in self._arrays[:_MAX_ROWS]:
            try:
                rows.append((path, *self._array(path)._summary()))
            except _core.AmbarError as error:
                rows.append((path, str(error)))
        return rows, max(len(self) - _MAX_ROWS, 0)


class Store(Group):
    """A store: a mapping of paths to arrays and groups.

    `open_store` returns one. Only the arrays that are read are read from the file. A store is the
    group at the root: `Group` describes the mapping.

    Examples
    --------
    >>> store = ambar.open_store("fields.ambar")
    >>> list(store)
    ['density', 'run/time', 'run/names']
    >>> store["density"].shape
    (16, 24, 32)
    >>> store["run"].attrs
    {'code': 'solver'}
    """

    def __init__(self, commit: Commit) -> None:
        super().__init__(commit, "")
        self._cache: dict[str, Any] = {}
        """Cache of the readers of kinds."""

    @classmethod
    def _open(
        cls, location: str | os.PathLike[str], options: Mapping[str, str] | None = None
    ) -> Store:
        """Open the store at a path or URL; errors are those of `open_store`."""
        try:
            return cls(Commit(os.fspath(location), options))
        except (_core.CorruptError, _core.NotFoundError):
            if options is None and not is_url(location):
                refuse_foreign(location)
            raise

    def __reduce__(self) -> tuple[type[Store], tuple[Commit]]:
        return Store, (self._commit,)

    @property
    def _core(self) -> _core.Store:
        """The store of the extension module."""
        return self._commit.core

    @property
    def location(self) -> str:
        """The file, folder or URL, without passwords."""
        return self._core.location

    def _at(self, commit: CommitName | None) -> Store:
        """Return an earlier commit of the store; itself for None."""
        if commit is None:
            return self
        return Store(self._commit.at(find_commit(self._core, commit)))

    def refresh(self) -> bool:
        """Show the last commit of the store, which another process may have written since.

        Arrays and groups that were taken from the store remain those of their commit.

        Returns
        -------
        bool
            Whether there was another commit.

        Raises
        ------
        FileNotFoundError
            If the store does not exist any more.
        CorruptError
            If it is damaged.
        ValueError
            If it was opened with ``commit=``: it stays at this commit.

        Examples
        --------
        >>> store = ambar.open_store("fields.ambar")
        >>> store.refresh()
        False
        >>> with ambar.create("fields.ambar", "a") as writer:
        ...     writer.create_array("mask", np.zeros(3))
        >>> store.refresh(), "mask" in store
        (True, True)
        """
        last = self._last()
        if last is not None:
            # What was computed from the previous commit goes, too.
            self.__dict__ = last.__dict__
        return last is not None

    def _last(self) -> Store | None:
        """Return the last commit of the store as another object; None if this one is the last."""
        last = self._commit.last()
        return None if last.core.commit_id == self._core.commit_id else Store(last)

    def _ambar_attributes(self, path: str = "") -> dict[str, Any]:
        """Return the `ambar` attributes of a group: kind, version and properties of the kind."""
        found = self._attributes(path).get("ambar", {})
        return found if isinstance(found, dict) else {}

    def usage(self) -> dict[str, int]:
        """Return the bytes of the store, and the number of entries of its container.

        Returns
        -------
        dict of str to int
            ``total``: bytes of the file or folder. ``live``: bytes of the last commit. ``dead``:
            bytes of replaced and removed arrays, which `ambar.compact` removes. ``entries``: number
            of entries.

        Examples
        --------
        >>> usage = ambar.open_store("fields.ambar").usage()
        >>> usage["live"] + usage["dead"] == usage["total"]
        True
        """
        usage = self._core.usage()
        return {key: usage[key] for key in ("total", "live", "dead", "entries")}

    def plot(
        self,
        arrays: str | Sequence[str] | None = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> Any:
        """Draw arrays of numbers as images or lines, as ``ambar plot`` does.

        Of a series of arrays, which a running program wrote, it is a step. Arrays of more than two
        dimensions are drawn at an index of the first one.

        Parameters
        ----------
        arrays : str or sequence of str, optional
            Paths of arrays, or names inside a step of a series, each in a panel; by default the
            largest one, of the last step.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, for one panel; by default a new figure of pyplot.
        **options
            Options of ``ambar plot``: `output`, the step of a series, or else the index along the
            first dimension, `resolution`, `log`, `limits`, `colors`, `title`, and `against`,
            another version of the store.

        Returns
        -------
        matplotlib.axes.Axes or numpy.ndarray
            The axes; of several panels an array of them.

        Raises
        ------
        KeyError
            If an array does not exist.
        ValueError
            If an option is invalid, or there are no numbers to draw.
        ModuleNotFoundError
            If matplotlib or xarray is not installed.

        Examples
        --------
        >>> axes = ambar.open_store("fields.ambar").plot("density", output=8)
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('x', 'y')
        """
        return load_object(_PLOT)(self, arrays, ax, options)

    def verify(
        self,
        *,
        threads: int | None = None,
        progress: Progress | bool | None = None,
    ) -> dict[str, int]:
        """Check all checksums.

        If the store is damaged, raises CorruptError that lists all damage.

        Parameters
        ----------
        threads : int, optional
            Number of threads; all cores by default.
        progress : callable or bool, optional
            A function called with the number of checked bytes and of all bytes, or True for a bar
            on the terminal.

        Returns
        -------
        dict of str to int
            The number of ``bytes``, ``entries`` and ``chunks`` that were checked, and the number of
            bytes that a killed writer left after the last commit (``unfinished``).

        Raises
        ------
        CorruptError
            If the store is damaged. The message lists all damage.

        Examples
        --------
        >>> ambar.open_store("fields.ambar").verify()["chunks"]
        3
        """
        with progress_function(progress, f"verifying {Path(self.location).name}") as function:
            report = self._core.verify(threads, function)
        if damage := report["damage"]:
            raise _core.CorruptError(
                f"{self.location}: {text.plural(len(damage), 'damaged place')}; restore the "
                f"store from a copy:\n" + "\n".join(f"  {place}" for place in damage)
            )
        return {key: report[key] for key in ("bytes", "entries", "chunks", "unfinished")}

    @property
    def _title(self) -> str:
        return f"ambar.Store {self.location}"

    def _properties(self) -> dict[str, object]:
        return {**super()._properties(), "Size": text.size(self.usage()["total"])}


class Refreshable(ABC):
    """Base of series and collections, which can switch to a newer commit of their store."""

    @abstractmethod
    def _refreshable_store(self) -> Store:
        """Return the store; raises ValueError if it is open for writing."""

    def _switch_to(self, store: Store) -> None:
        """Read another commit from now on."""
        self.__dict__ = type(self)(store).__dict__  # type: ignore[call-arg]

    def refresh(self) -> bool:
        """Show what another process has committed since.

        Snapshots, meshes and datasets that were taken before remain those of their commit.

        Returns
        -------
        bool
            Whether the store has changed.

        Raises
        ------
        FileNotFoundError
            If the store does not exist any more.
        CorruptError
            If it is damaged.
        ValueError
            If it is open for writing, or was opened with ``commit=``: it stays at this commit.

        Examples
        --------
        >>> collection = ambar.open_collection("profiles.ambar")
        >>> with ambar.open_collection("profiles.ambar", "a") as writer:
        ...     writer.remove("station_0040")
        >>> collection.refresh(), len(collection)
        (True, 3)
        """
        last = self._refreshable_store()._last()
        if last is not None:
            self._switch_to(last)
        return last is not None


def first_group_with_arrays(store: Store) -> str | None:
    """Return the first group that has arrays itself, "" for the root; None without arrays."""
    children = ((group, store._core.children(f"/{group}")) for group in store.groups)
    return next((group for group, nodes in children if "array" in dict(nodes).values()), None)
