"""The outputs of a series: the slider of time, and what to read ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import panel as pn

from ambar.snapshot.outputs import Outputs

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot

_MOST_OPEN = 8
"""Outputs that are open together."""


class Steps:
    """The outputs to choose from; a single snapshot is a series of one."""

    def __init__(self, opened: Snapshot | Outputs, changed: Callable[[], None]) -> None:
        self._snapshots: Sequence[Snapshot] = opened if isinstance(opened, Outputs) else [opened]
        # A folder opens an output again at each access.
        self._snapshot_at = lru_cache(_MOST_OPEN)(self._snapshots.__getitem__)
        self.slider: Any = None
        if isinstance(opened, Outputs) and len(opened) > 1:
            self.slider = pn.widgets.DiscreteSlider(
                label="Output",
                options={str(number): place for place, number in enumerate(opened.outputs)},
                value=len(opened) - 1,
                sizing_mode="stretch_width",
            )
            self.slider.param.watch(lambda _: changed(), "value")

    @property
    def position(self) -> int:
        """The position of the chosen output."""
        return len(self._snapshots) - 1 if self.slider is None else int(self.slider.value)

    def follow(self, position: int) -> None:
        """Choose the output at a position, or the last one."""
        if self.slider is not None:
            self.slider.value = min(position, len(self._snapshots) - 1)

    @property
    def snapshot(self) -> Snapshot:
        """The chosen output."""
        return self._snapshot_at(self.position)

    @property
    def neighbours(self) -> list[Snapshot]:
        """The outputs after and before the chosen one."""
        chosen = self.position
        return [
            self._snapshot_at(number)
            for number in (chosen + 1, chosen - 1)
            if 0 <= number < len(self._snapshots)
        ]
