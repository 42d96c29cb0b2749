"""Copies of nodes from a store to another one: verbatim, or encoded again with another profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ambar._util.progress import Progress
from ambar.store.array import Array
from ambar.store.nodes import absolute
from ambar.store.store import Store
from ambar.store.writer import ArrayOptions, Profile, Writer, write_array

_WINDOW = 64 << 20
"""Most bytes of values that are read and encoded together, unless a row of shards has more."""


class Copier:
    """Copies nodes of a store into a writer.

    Chunks are copied verbatim, after their checksums are verified. With a profile, arrays without
    loss are encoded again. Arrays with an error bound are always copied verbatim: their values
    would change once more.

    Nodes that are copied verbatim are gathered until `finish`, which reads them in the order of
    the file.

    Parameters
    ----------
    source : Store
        The store to copy from.
    writer : Writer
        The writer of the target.
    profile : {"fast", "balanced", "small", "raw"}, optional
        The profile of lossless arrays; by default they are copied verbatim.
    report : callable, optional
        A function called with the work done and all work.
    """

    def __init__(
        self,
        source: Store,
        writer: Writer,
        profile: Profile | None = None,
        report: Progress | None = None,
    ) -> None:
        self.source = source
        self.writer = writer
        self.profile = profile
        self._report = report
        self._nodes: list[tuple[str, str]] = []
        self._groups: list[tuple[str, dict[str, Any]]] = []

    def add(self, path: str, to: str | None = None) -> None:
        """Copy an array, or a group with everything below it, to the path `to`."""
        path, to = absolute(path), absolute(path if to is None else to)
        if self.profile is None:
            self._nodes.append((path, to))
            return
        if self.source._core.kind(path) == "array":
            self._add_array(path, to)
            return
        self.set_attributes(to, self.source._attributes(path))
        for child, _ in self.source._core.children(path):
            self.add(child, f"{to}/{child.rpartition('/')[2]}")

    def set_attributes(self, path: str, attributes: Mapping[str, Any]) -> None:
        """Set the attributes of a group of the target, which `finish` writes."""
        self._groups.append((absolute(path), dict(attributes)))

    def _add_array(self, path: str, to: str) -> None:
        array = self.source._array(path)
        if array.error_bound is not None:
            self._nodes.append((path, to))
        else:
            encode(array, self.writer, to, profile=self.profile)

    def finish(self) -> None:
        """Copy the gathered nodes, and write the attributes."""
        self.writer._core.copy(self.source._core, self._nodes, self._report)
        for path, attributes in self._groups:
            self.writer._create_group(path, attributes)
        self._nodes, self._groups = [], []


def encode(
    array: Array,
    writer: Writer,
    path: str,
    *,
    profile: Profile | None,
    error_bound: float | str | None = None,
) -> None:
    """Write the values of an array to the path of another store, encoded again.

    Dtype, shape, chunks, shards, names of dimensions, fill value and attributes are the same.
    Values are read in parts of whole shards.
    """
    codecs = {step.split()[0] for step in array.codecs.split(", ")}
    simplices = "simplices" in codecs
    options = ArrayOptions(
        dims=array.dims,
        attrs=dict(array.attrs),
        fill_value=array.fill_value,
        # The codec of connectivity chooses its own chunks.
        chunks=None if simplices else array.chunks,
        shards=None if simplices else array.shards,
        profile=profile,
        error_bound=error_bound,
    )
    hints = {
        "is_grid": "ambar" in codecs,
        "is_read_whole": simplices,
        "has_corners": simplices,
    }
    unit = (array.shards or array.chunks)[0] if array.ndim else 1
    row = array.nbytes // array.shape[0] if array.ndim and array.shape[0] else 0
    step = max(_WINDOW // max(row, 1) // unit, 1) * unit
    if array.ndim == 0 or array.shape[0] <= step or simplices:
        write_array(writer, path, array.read(), options, **hints)
        return
    writer._core.declare(
        absolute(path),
        options.spec(path, array.type_name, array.shape, array.dtype, error_bound),
    )
    for start in range(0, array.shape[0], step):
        values = array.read(slice(start, min(start + step, array.shape[0])))
        writer.write_region(path, values, (start, *[0] * (array.ndim - 1)))
