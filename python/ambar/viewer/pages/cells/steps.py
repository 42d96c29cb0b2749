"""The outputs of a series: the slider of time, and what to read ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import panel as pn

from ambar.snapshot.outputs import Outputs

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot

_MAX_OPEN = 8
"""Outputs that are open together."""


class Steps:
    """The outputs to choose from; a single snapshot is a series of one.

    Parameters
    ----------
    opened
        The snapshot or the series.
    changed
        Called after another output was chosen.
    against
        The outputs of a comparison: only those that both have can be chosen.
    """

    def __init__(
        self,
        opened: Snapshot | Outputs,
        changed: Callable[[], None],
        against: Snapshot | Outputs | None = None,
    ) -> None:
        self._snapshots: Sequence[Snapshot] = opened if isinstance(opened, Outputs) else [opened]
        # A folder opens an output again at each access.
        self._snapshot_at = lru_cache(_MAX_OPEN)(self._snapshots.__getitem__)
        self.slider: Any = None
        self._places = {0: 0}
        if isinstance(opened, Outputs):
            known = against.outputs if isinstance(against, Outputs) else opened.outputs
            numbered = enumerate(opened.outputs)
            self._places = {number: place for place, number in numbered if number in known}
        self.position = max(self._places.values())
        """The position of the chosen output."""
        if len(self._places) > 1:
            self.slider = pn.widgets.DiscreteSlider(
                label="Output",
                options={str(number): place for number, place in self._places.items()},
                value=self.position,
                sizing_mode="stretch_width",
            )

            def choose(event: Any) -> None:
                self.position = event.new
                changed()

            self.slider.param.watch(choose, "value")

    @property
    def number(self) -> int:
        """The number of the chosen output."""
        return next(number for number, place in self._places.items() if place == self.position)

    def follow(self, other: Steps) -> None:
        """Choose the output of the same number as another series has chosen."""
        self.position = self._places[other.number]

    @property
    def snapshot(self) -> Snapshot:
        """The chosen output."""
        return self._snapshot_at(self.position)

    @property
    def neighbours(self) -> list[Snapshot]:
        """The outputs after and before the chosen one."""
        places = sorted(self._places.values())
        chosen = places.index(self.position)
        return [
            self._snapshot_at(places[number])
            for number in (chosen + 1, chosen - 1)
            if 0 <= number < len(places)
        ]
