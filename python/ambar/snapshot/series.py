"""The outputs of one run over time, in one store."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from ambar import _core
from ambar._util.properties import cached_property
from ambar.snapshot.snapshot import Snapshot, StoredSource

if TYPE_CHECKING:
    from ambar.store.store import Store

_STEP = re.compile(r"output_(\d+)")


class Series(Sequence[Snapshot]):
    """Snapshots in the order of their output numbers; ``series[0]``, ``series.output(2)``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        steps = ((_STEP.fullmatch(name), name) for name in store.groups)
        self._steps = sorted((int(match[1]), name) for match, name in steps if match)
        self._opened: dict[int, Snapshot] = {}

    @property
    def location(self) -> str:
        """The file or folder it comes from."""
        return self._store.location

    @property
    def store(self) -> Store:
        """The store with its plain arrays."""
        return self._store

    @property
    def outputs(self) -> list[int]:
        """The outputs' numbers."""
        return [number for number, _ in self._steps]

    @cached_property
    def times(self) -> np.ndarray:
        """The outputs' times, code units, float64."""
        return np.array([snapshot.info.time for snapshot in self], dtype=np.float64)

    def output(self, number: int) -> Snapshot:
        """Return the snapshot of RAMSES' output `number`; raises KeyError if it does not exist."""
        if number not in self.outputs:
            raise _core.NotFoundError(
                f"{self.location}: no output {number}; available: "
                f"{', '.join(map(str, self.outputs)) or 'none'}"
            )
        return self[self.outputs.index(number)]

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self._steps)

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...

    @overload
    def __getitem__(self, index: slice) -> list[Snapshot]: ...

    def __getitem__(self, index: int | slice) -> Snapshot | list[Snapshot]:
        """Return the snapshot at a position, or those of a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number, name = self._steps[index]
        if number not in self._opened:
            attributes = self._store._ambar_attributes(name)
            self._opened[number] = Snapshot(StoredSource(self._store, f"/{name}", attributes))
        return self._opened[number]

    def __repr__(self) -> str:
        """Return a line per output: its number and time."""
        lines = [f"<ambar.Series: {self.location}, {len(self)} outputs>"]
        lines += [
            f"  output {number:>5}  time {time:g}"
            for number, time in zip(self.outputs, self.times, strict=True)
        ]
        return "\n".join(lines)
