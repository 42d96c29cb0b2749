"""The outputs of one run over time, in one store."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar._util import html, text
from ambar._util.properties import cached_property
from ambar.kinds.figures import draw_object
from ambar.kinds.viewable import Viewable
from ambar.snapshot.outputs import Outputs
from ambar.snapshot.snapshot import Snapshot, StoredSource
from ambar.store.store import Refreshable, Store

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MAX_ROWS = 40
_OPEN_ROWS = 12
_STEP = re.compile(r"output_(\d+)")


def outputs_in(groups: Iterable[str]) -> list[tuple[int, str]]:
    """Return number and name of each output among groups of a store, in the order of numbers.

    Examples
    --------
    >>> outputs_in(["output_00010", "output_00002", "other"])
    [(2, 'output_00002'), (10, 'output_00010')]
    """
    return sorted((int(step[1]), step[0]) for step in map(_STEP.fullmatch, groups) if step)


class Series(Outputs, Refreshable, Viewable):
    """The outputs of one run in a store: a sequence of snapshots, ordered by output number.

    `ambar.open_series` returns it; `ambar.convert` writes it from RAMSES outputs or AMReX plotfiles
    of one run.

    Examples
    --------
    >>> ambar.convert("sedov", "sedov.ambar").converted
    ['output_00001', 'output_00002']
    >>> series = ambar.open_series("sedov.ambar")
    >>> len(series), series.outputs, series[-1].info.output
    (2, [1, 2], 2)
    >>> [float(snapshot.amr.read("rho")["rho"].max().round(2)) for snapshot in series]
    [1.0, 2.15]
    """

    _kind = "series"

    def __init__(self, store: Store) -> None:
        self._store = store
        # Of thousands of steps, no metadata but these names is read.
        self._steps = outputs_in(store._subgroups)
        self._opened: dict[int, Snapshot] = {}

    def __reduce__(self) -> tuple[object, tuple[Store]]:
        return Series, (self._store,)

    @property
    def location(self) -> str:
        """File, folder or URL of the store."""
        return self.store.location

    @property
    def store(self) -> Store:
        """The store of the series, as a mapping of arrays."""
        return self._store

    def _refreshable_store(self) -> Store:
        return self._store

    @property
    def _groups(self) -> list[str]:
        """Paths of the groups of the outputs."""
        return [f"/{name}" for _, name in self._steps]

    @property
    def outputs(self) -> list[int]:
        """Numbers of the outputs."""
        return [number for number, _ in self._steps]

    @cached_property
    def times(self) -> np.ndarray:
        """Times of the outputs: float64, code units."""
        return np.array([snapshot.info.time for snapshot in self], dtype=np.float64)

    def path_of(self, number: int) -> str:
        """Return the path of the group of an output in the store.

        Parameters
        ----------
        number : int
            The number of the output.

        Returns
        -------
        str
            A path such as "/output_00002".

        Raises
        ------
        KeyError
            If the series does not have this output.

        Examples
        --------
        >>> _ = ambar.convert("sedov", "sedov.ambar")
        >>> ambar.open_series("sedov.ambar").path_of(2)
        '/output_00002'
        """
        return f"/{self._steps[self._position(number)][1]}"

    def __len__(self) -> int:
        """Return the number of outputs."""
        return len(self._steps)

    def _snapshot(self, position: int) -> Snapshot:
        number, name = self._steps[position]
        if number not in self._opened:
            self._opened[number] = Snapshot(StoredSource(self._store, f"/{name}"))
        return self._opened[number]

    def plot(
        self, fields: str | Sequence[str] | None = None, *, ax: Axes | None = None, **options: Any
    ) -> Any:
        """Draw outputs beside each other, with the same colours, as ``ambar plot`` does.

        Parameters
        ----------
        fields : str or sequence of str, optional
            Fields, each in a row of panels, as for `Snapshot.plot`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, for one panel; by default a new figure of pyplot.
        **options
            As for `Snapshot.plot`; `output` is the number of the only output to draw. By default up
            to four are drawn.

        Returns
        -------
        matplotlib.axes.Axes or numpy.ndarray
            The axes; of several panels an array of them.

        Raises
        ------
        KeyError
            If a field or the output does not exist.
        ValueError, ModuleNotFoundError
            As for `Snapshot.plot`.

        Examples
        --------
        >>> _ = ambar.convert("sedov", "sedov.ambar")
        >>> axes = ambar.open_series("sedov.ambar").plot("pressure", log=True)
        >>> len(axes)
        2
        """
        from ambar.snapshot.pictures.drawing import draw
        from ambar.snapshot.pictures.options import SeriesPlot

        return draw_object(draw, self, ("series", SeriesPlot), self.location, fields, ax, options)

    def __repr__(self) -> str:
        """Return sizes, and a line per output: number and time."""
        rows, left_out = self._output_rows()
        more = [f"    ... and {left_out} more"] if left_out else []
        return text.representation(
            f"<ambar.Series> {self.location}", self._properties(), text.columns(rows, 4), more
        )

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, with a thumbnail of the last output."""
        from ambar.snapshot.pictures.thumbnails import thumbnail_of

        rows, left_out = self._output_rows()
        more = f" ({left_out} of them not shown)" if left_out else ""
        table = html.table(rows, ("output", "time"))
        return html.representation(
            f"ambar.Series {self.location}",
            self._properties(),
            thumbnail_of(self[-1]) if len(self) else "",
            html.details(f"{len(self)} outputs{more}", table, is_open=len(rows) <= _OPEN_ROWS),
        )

    def _properties(self) -> dict[str, object]:
        return {"Outputs": len(self), "Size": text.size(self.store.usage()["total"])}

    def _output_rows(self) -> tuple[list[tuple[str, str]], int]:
        """Return number and time of each of the first outputs, and the number of the others."""
        first = self[:_MAX_ROWS]
        rows = [
            (name, dict(snapshot.info.summary())["time"])
            for (_, name), snapshot in zip(self._steps, first, strict=False)
        ]
        return rows, len(self) - len(first)
