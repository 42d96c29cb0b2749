"""The outputs of a run as a sequence of snapshots: those of a store, and those of a folder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import overload

from ambar import _core
from ambar._util.arguments import checked_position
from ambar.snapshot.snapshot import Snapshot


class Outputs(Sequence[Snapshot]):
    """Base of the outputs of a run, ordered by their numbers."""

    @property
    @abstractmethod
    def location(self) -> str:
        """File, folder or URL of the run."""

    @property
    @abstractmethod
    def outputs(self) -> list[int]:
        """Numbers of the outputs."""

    @abstractmethod
    def _snapshot(self, position: int) -> Snapshot:
        """Return the snapshot at a position, which exists."""

    def output(self, number: int) -> Snapshot:
        """Return the snapshot of an output.

        Parameters
        ----------
        number : int
            The number of the output, such as 2 for ``output_00002`` of RAMSES, and 10 for
            ``plt00010`` of AMReX.

        Returns
        -------
        Snapshot
            The same object as ``series[position]``.

        Raises
        ------
        KeyError
            If the run does not have this output.

        Examples
        --------
        >>> _ = ambar.convert("sedov", "sedov.ambar")
        >>> ambar.open_series("sedov.ambar").output(2).info.output
        2
        """
        return self[self._position(number)]

    def _with_units(self, units: str) -> Outputs:
        """Return the outputs with given code units, as `Snapshot.with_units` does."""
        return _OutputsWithUnits(self, units)

    def _position(self, number: int) -> int:
        if number not in self.outputs:
            raise _core.NotFoundError(
                f"{self.location}: no output {number}; available: "
                f"{', '.join(map(str, self.outputs)) or 'none'}"
            )
        return self.outputs.index(number)

    @overload
    def __getitem__(self, index: int) -> Snapshot: ...

    @overload
    def __getitem__(self, index: slice) -> list[Snapshot]: ...

    def __getitem__(self, index: int | slice) -> Snapshot | list[Snapshot]:
        """Return the snapshot at a position, or the snapshots of a slice."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        hint = "; output(number) returns the output of a number"
        return self._snapshot(checked_position(index, len(self), self.location, "output", hint))


class _OutputsWithUnits(Outputs):
    """Outputs with code units that the caller gave, as `Snapshot.with_units` accepts them."""

    def __init__(self, outputs: Outputs, units: str) -> None:
        self._outputs = outputs
        self._units = units

    @property
    def location(self) -> str:
        """File, folder or URL of the run."""
        return self._outputs.location

    @property
    def outputs(self) -> list[int]:
        """Numbers of the outputs."""
        return self._outputs.outputs

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self._outputs)

    def _snapshot(self, position: int) -> Snapshot:
        return self._outputs[position].with_units(self._units)
