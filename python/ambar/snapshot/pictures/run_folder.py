"""The outputs in a folder of a run, which are drawn as those of a series in a store."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from ambar import _core
from ambar._util.user_warnings import warn
from ambar.snapshot.outputs import Outputs
from ambar.snapshot.snapshot import Snapshot


class RunFolder(Outputs):
    """The outputs of a run in files of its code, in the order of their numbers.

    Each access opens an output again: values that were read are not kept. Outputs at the end that
    cannot be opened are left out with a warning: their program is probably still writing them.
    """

    def __init__(
        self, location: str, paths: Sequence[Path], opened: Callable[[Path], Snapshot]
    ) -> None:
        self._location = location
        self._paths = [path for path in paths if re.search(r"\d", path.name)]
        self._open = opened
        while len(self._paths) > 1 and (error := self._error_of_last()) is not None:
            warn(f"the last output is left out: {error}")
            self._paths.pop()

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

    def _error_of_last(self) -> Exception | None:
        try:
            self._open(self._paths[-1])
        except (_core.AmbarError, OSError) as error:
            return error
        return None

    def _snapshot(self, position: int) -> Snapshot:
        return self._open(self._paths[position])
