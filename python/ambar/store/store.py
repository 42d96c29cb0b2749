"""A store's groups and arrays as they lie there, whatever kind they make up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ambar import _core
from ambar._util import html, text
from ambar._util.properties import cached_property
from ambar.store.array import Array

# Arrays that a representation lists; fewer of them are visible in a notebook without a click.
_MOST_ROWS, _OPEN_ROWS = 40, 10


class Store(Mapping[str, Array]):
    """A store: a mapping from paths ("amr/density") to arrays.

    Only the arrays asked for are read. `groups` has the groups' paths, `attributes` what they say.
    """

    def __init__(self, core: _core.Store) -> None:
        self._core = core
        self.kept: dict[str, Any] = {}
        """What readers of kinds keep of this commit."""

    @property
    def core(self) -> _core.Store:
        """The store of the extension module."""
        return self._core

    @property
    def location(self) -> str:
        """The file, folder or URL."""
        return self._core.location

    @cached_property
    def _nodes(self) -> dict[str, list[str]]:
        nodes: dict[str, list[str]] = {"group": [], "array": []}
        for path, node in self._core.nodes():
            nodes[node].append(path.strip("/"))
        return nodes

    @cached_property
    def _arrays(self) -> frozenset[str]:
        return frozenset(self._nodes["array"])

    @property
    def groups(self) -> list[str]:
        """Paths of all groups; the root is ""."""
        return list(self._nodes["group"])

    def attributes(self, path: str = "/") -> dict[str, Any]:
        """Return the attributes of a group or array; raises KeyError if it does not exist."""
        attributes: dict[str, Any] = json.loads(self._core.attributes(_absolute(path)))
        return attributes

    def ambar_attributes(self, path: str = "/") -> dict[str, Any]:
        """Return what ambar says of a group: its kind, version and what the kind needs."""
        found = self.attributes(path).get("ambar", {})
        return found if isinstance(found, dict) else {}

    def read_together(self, paths: Iterable[str]) -> dict[str, np.ndarray]:
        """Return the values of several whole arrays, by path.

        If the arrays have at most 64 MiB of stored bytes together, these are fetched before
        decoding. Adjacent arrays, which were written consecutively, then share reads.

        Raises
        ------
        KeyError
            If an array does not exist.
        CorruptError
            If a checksum differs.
        """
        arrays = {path: self[path] for path in paths}
        ahead = self._core.read_ahead([_absolute(path) for path in arrays])
        try:
            return {path: array.read() for path, array in arrays.items()}
        finally:
            ahead.release()

    def usage(self) -> dict[str, int]:
        """Return the bytes of the store: total, live (of the last commit), dead; and entries."""
        usage: dict[str, int] = json.loads(self._core.usage())
        return usage

    def verify(
        self,
        *,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, int]:
        """Check every checksum; return how many bytes, entries and chunks were checked.

        `progress` is called with the bytes done and all bytes. Raises CorruptError, naming all
        damage, where there is any.
        """
        report = json.loads(self._core.verify(threads, progress))
        if damage := report.pop("damage"):
            raise _core.CorruptError(
                f"{self.location}: {len(damage)} damaged places; restore the store from a copy:\n"
                + "\n".join(f"  {place}" for place in damage)
            )
        checked: dict[str, int] = report
        return checked

    def __getitem__(self, path: str) -> Array:
        """Return the array at `path`; raises KeyError if it does not exist."""
        return Array(self._core.array(_absolute(path)))

    def __contains__(self, path: object) -> bool:
        return isinstance(path, str) and path.strip("/") in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes["array"])

    def __len__(self) -> int:
        """Return the number of arrays."""
        return len(self._nodes["array"])

    def __repr__(self) -> str:
        """Return sizes, and a line per array: shape, dtype, bytes, codecs."""
        rows, left_out = self._rows()
        more = [f"  ... and {left_out} more"] if left_out else []
        return text.representation(
            f"<ambar.Store> {self.location}", self._properties(), text.columns(rows, 4), more
        )

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, for notebooks."""
        rows, left_out = self._rows()
        more = f" ({left_out} of them not shown)" if left_out else ""
        arrays = html.table(rows, ("path", "shape", "dtype", "size", "codecs"))
        section = html.details(f"{len(self)} arrays{more}", arrays, is_open=len(rows) <= _OPEN_ROWS)
        return html.representation(
            f"ambar.Store {self.location}", self._properties(), section if rows else ""
        )

    def _properties(self) -> dict[str, object]:
        return {
            "Arrays": len(self),
            "Groups": len(self.groups),
            "Size": text.size(self.usage()["total"]),
        }

    def _rows(self) -> tuple[list[tuple[str, ...]], int]:
        """Return what describes each of the first arrays, and the number of the others."""
        rows: list[tuple[str, ...]] = []
        for path in list(self)[:_MOST_ROWS]:
            try:
                array = self[path]
                rows.append((path, *array._summary()))
            except _core.AmbarError as error:
                rows.append((path, str(error)))
        return rows, max(len(self) - _MOST_ROWS, 0)


def _absolute(path: str) -> str:
    return "/" + path.strip("/")
