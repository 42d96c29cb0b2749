"""The outputs of a series: the slider of time, and what to read ahead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import panel as pn

from ambar.snapshot.physics.readable import readable_time
from ambar.snapshot.series import Series

if TYPE_CHECKING:
    from ambar.snapshot.run_info import RunInfo
    from ambar.snapshot.snapshot import Snapshot


class Steps:
    """The outputs to choose from; a single snapshot is a series of one."""

    def __init__(self, opened: Snapshot | Series, changed: Callable[[], None]) -> None:
        self._snapshots: Sequence[Snapshot] = opened if isinstance(opened, Series) else [opened]
        names = opened.outputs if isinstance(opened, Series) else [1]
        self.slider = pn.widgets.DiscreteSlider(
            label="Output",
            options=dict(zip(map(str, names), range(len(names)), strict=True)),
            value=len(names) - 1,
            visible=len(names) > 1,
            sizing_mode="stretch_width",
        )
        self.slider.param.watch(lambda _: changed(), "value")

    @property
    def snapshot(self) -> Snapshot:
        """The chosen output."""
        number: int = self.slider.value
        return self._snapshots[number]

    @property
    def neighbours(self) -> list[Snapshot]:
        """The outputs after and before the chosen one."""
        chosen = self.slider.value
        return [
            self._snapshots[number]
            for number in (chosen + 1, chosen - 1)
            if 0 <= number < len(self._snapshots)
        ]


def time_of(info: RunInfo) -> str:
    """Return the time, or the redshift of a cosmological run, as text."""
    if info.units.cosmological and info.redshift is not None:
        return f"redshift {info.redshift:.3g}"
    if not info.physical:
        return f"time {info.time:.4g} code units"
    return f"time {readable_time(info.age('s'))}"
