"""A store's groups and arrays as they lie there, whatever kind they make up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ambar import _core
from ambar._util.properties import cached_property
from ambar.store.array import Array


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
        """Return a line per array: shape, dtype, sizes, codecs."""
        most = 40
        lines = [f"<ambar.Store: {self.location}, {len(self)} arrays>"]
        for path in list(self)[:most]:
            try:
                array = self[path]
            except _core.AmbarError as error:
                lines.append(f"  {path:<28} {error}")
                continue
            lines.append(
                f"  {path:<28} {array.shape!s:<18} {array.dtype!s:<10} "
                f"{array.nbytes:>13,} -> {array.stored_bytes:>13,}  {array.codecs}"
            )
        if len(self) > most:
            lines.append(f"  ... and {len(self) - most} more")
        return "\n".join(lines)


def _absolute(path: str) -> str:
    return "/" + path.strip("/")
