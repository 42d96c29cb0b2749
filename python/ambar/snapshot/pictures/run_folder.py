"""The outputs in a folder of a run, which are drawn as those of a series in a store."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ambar.snapshot.outputs import Outputs
from ambar.snapshot.snapshot import Snapshot


class RunFolder(Outputs):
    """The outputs of a run in files of its code, in the order of their numbers.

    Each access opens an output again: what was read of it is not kept.
    """

    def __init__(
        self, location: str, paths: Sequence[Path], opened: Callable[[Path], Snapshot]
    ) -> None:
        self._location = location
        self._paths = [path for path in paths if re.search(r"\d", path.name)]
        self._open = opened

    @property
    def location(self) -> str:
        """The folder."""
        return self._location

    @property
    def outputs(self) -> list[int]:
        """Numbers of the outputs: those at the ends of their names."""
        return [int(re.findall(r"\d+", path.name)[-1]) for path in self._paths]

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self._paths)

    def _snapshot(self, position: int) -> Snapshot:
        return self._open(self._paths[position])
