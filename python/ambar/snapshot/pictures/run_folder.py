"""The outputs in a folder of a run, which are drawn as those of a series in a store."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from ambar import _core
from ambar._util.arguments import checked_position

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot


class RunFolder(Sequence["Snapshot"]):
    """The outputs of a run in files of its code, in the order of their numbers.

    Each access opens an output again: what was read of it is not kept.
    """

    def __init__(
        self, location: str, paths: Sequence[Path], opened: Callable[[Path], Snapshot]
    ) -> None:
        self.location = location
        self._paths = list(paths)
        self._open = opened

    @property
    def outputs(self) -> list[int]:
        """Numbers of the outputs: those at the ends of their names."""
        return [int(found[-1]) for path in self._paths if (found := re.findall(r"\d+", path.name))]

    def output(self, number: int) -> Snapshot:
        """Return the snapshot of an output; raises KeyError if the run does not have it."""
        if number not in self.outputs:
            raise _core.NotFoundError(
                f"{self.location}: no output {number}; available: "
                f"{', '.join(map(str, self.outputs))}"
            )
        return self[self.outputs.index(number)]

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self._paths)

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...

    @overload
    def __getitem__(self, index: slice) -> list[Snapshot]: ...

    def __getitem__(self, index: int | slice) -> Snapshot | list[Snapshot]:
        """Return the snapshot at a position, or the snapshots of a slice."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        position = checked_position(index, len(self), self.location, "output")
        return self._open(self._paths[position])
