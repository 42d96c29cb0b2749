"""Time steps of meshes in one store; arrays that do not change are stored once."""

from __future__ import annotations

import contextlib
import math
import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from ambar import _core
from ambar._util import html, text
from ambar._util.arguments import WriteMode, check_number, checked_position
from ambar._util.commit_context import CommitContext
from ambar._util.locking import WriterLock, locked
from ambar.kinds.figures import draw_object
from ambar.kinds.viewable import Viewable
from ambar.mesh.mesh import Mesh
from ambar.mesh.steps import is_near
from ambar.mesh.storage.references import damaged
from ambar.mesh.storage.temporal_deltas import GROUP, Deduplicator
from ambar.mesh.write import write_group
from ambar.store.error_bounds import ErrorBound
from ambar.store.locations import store_at
from ambar.store.store import Refreshable, Store
from ambar.store.writer import Writer, create

if TYPE_CHECKING:
    from matplotlib.axes import Axes


VERSION = 1
_MAX_ROWS = 40
"""The largest number of steps or arrays in a representation."""


class MeshSeries(Sequence[Mesh], CommitContext, Refreshable, Viewable):
    """The time steps of a run: a sequence of meshes.

    `ambar.open_mesh_series` opens one for reading or writing. `add` commits each step: readers see
    it, and it survives a crash of the program. An array of a step that equals one of an earlier
    step, such as the points of a mesh that does not move, is stored once.

    Threads may share a series: `add` runs in one thread at a time.

    Parameters
    ----------
    store : Store
        A store of the kind "mesh series".

    Examples
    --------
    >>> import pyvista
    >>> sphere = pyvista.Sphere()
    >>> with ambar.open_mesh_series("motion.ambar", "w-") as series:
    ...     for time in (0.0, 0.5, 1.0):
    ...         sphere["height"] = sphere.points[:, 2] + time
    ...         series.add(sphere, time)
    >>> series = ambar.open_mesh_series("motion.ambar")
    >>> series.times
    [0.0, 0.5, 1.0]
    >>> float(series[-1].read()["height"].max())
    1.5
    """

    _kind = "mesh series"

    def __init__(self, store: Store) -> None:
        self._open(store)

    def _open(
        self,
        store: Store | None,
        writer: Writer | None = None,
        error_bound: ErrorBound | None = None,
        reorder: bool = False,
    ) -> Self:
        """Set the attributes; `store` has the steps before those that `writer` adds."""
        self._lock = WriterLock()
        self._store = store
        self._writer = writer
        self._error_bound = error_bound
        self._reorder = reorder
        self._times = [] if store is None else _times_of(store)
        self._deduplicator = Deduplicator()
        if store is not None and writer is not None:
            for step in map(_group_of, range(len(self._times))):
                digests = store._ambar_attributes(step).get("digests")
                self._deduplicator.register_step(step, digests or {})
            has_deltas = store._core.kind(f"/{GROUP}")
            deltas = store._core.children(f"/{GROUP}") if has_deltas else ()
            self._deduplicator.register_deltas(len(deltas))
        self._uncommitted: list[float | None] | None = None
        """The times with the step that is written completely, until its commit is known."""
        return self

    @locked
    def add(
        self, mesh: Any, time: float | None = None, *, user_dict: Mapping[str, Any] | None = None
    ) -> None:
        """Add a step and commit it.

        After an exception, such as KeyboardInterrupt, the next `add` writes the step of the same
        number. But if the exception interrupted the commit, the step is complete: the next `add`
        commits it and writes the step after it.

        Parameters
        ----------
        mesh : vtkDataObject
            The mesh of the step, as for `ambar.write_mesh`.
        time : float, optional
            The time of the step, greater than that of the previous step. All steps of a series have
            times, or none has; these are known by their numbers.
        user_dict : mapping, optional
            Other data to store with the step; JSON must be able to represent it.

        Raises
        ------
        TypeError
            If `time` is not a number.
        ValueError
            If the series is open for reading; if `time` is not greater than the previous one; if
            only one of this and the previous step has a time. Other errors are those of
            `ambar.write_mesh`.

        Examples
        --------
        >>> import pyvista
        >>> with ambar.open_mesh_series("spheres.ambar", "w") as series:
        ...     series.add(pyvista.Sphere(radius=1), 0.0)
        ...     series.add(pyvista.Sphere(radius=2), 0.1, user_dict={"note": "larger"})
        >>> ambar.open_mesh_series("spheres.ambar")[1].user_dict
        {'note': 'larger'}
        """
        if time is not None and (isinstance(time, bool) or not isinstance(time, Real)):
            raise TypeError(f"expected a number as the time of the step, found {time!r}")
        if self._writer is None:
            raise _core.InvalidError(
                "the series is not open for writing; open it with ambar.open_mesh_series(path, 'a')"
            )
        self._writer._core.check()
        self._commit(self._writer)
        if self._times and (time is None) != (self._times[-1] is None):
            raise _core.InvalidError(
                f"expected {'no' if time is not None else 'a'} time for step {len(self)}, as for "
                f"the step before it, found {time}; give times for all steps, or for none"
            )
        if time is not None:
            time = float(time)
            last = next((known for known in reversed(self._times) if known is not None), None)
            if not np.isfinite(time) or (last is not None and time <= last):
                raise _core.InvalidError(f"time {time} is not after that of the last step, {last}")
        step, times = _group_of(len(self)), [*self._times, time]
        # An exception may have left a part of the step.
        self._deduplicator.roll_back()
        with contextlib.suppress(_core.NotFoundError):
            self._writer.remove(step)
        write_group(
            self._writer,
            step,
            mesh,
            error_bound=self._error_bound,
            user_dict=user_dict,
            deduplicator=self._deduplicator,
            reorder=self._reorder,
        )
        about = {"kind": "series", "version": VERSION, "of": "mesh", "times": times}
        self._writer._create_group("", {"ambar": about})
        self._uncommitted = times
        self._commit(self._writer)

    def _commit(self, writer: Writer) -> None:
        """Commit the step that is written, if any.

        An exception may come at any place, also after the commit: the next call does all again,
        which changes nothing that is done.
        """
        if self._uncommitted is not None:
            writer.commit()
            self._deduplicator.commit()
            self._times = self._uncommitted
            self._uncommitted = None

    def close(self) -> None:
        """Close the writer and release the lock of the store; all added steps are committed.

        Does nothing in a forked child: the writer belongs to its parent.

        Examples
        --------
        >>> series = ambar.open_mesh_series("steps.ambar", "a")
        >>> series.add(ambar.read_mesh("wing.ambar"), time=1.5)
        >>> series.close()
        >>> ambar.open_mesh_series("steps.ambar").times
        [0.0, 0.5, 1.0, 1.5]
        """
        if self._lock.is_foreign:
            return
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _abort(self) -> None:
        if not self._lock.is_foreign and self._writer is not None:
            with self._lock:
                self._writer._abort()
                self._writer = None

    @property
    def times(self) -> list[float | None]:
        """The time of each step; None for steps without a time."""
        return list(self._times)

    @property
    def location(self) -> str:
        """File, folder or URL of the store."""
        return self.store.location

    @property
    def store(self) -> Store:
        """The store with all arrays; raises ValueError if the series is open for writing."""
        if self._store is None or self._writer is not None:
            raise _core.InvalidError(
                "the series is open for writing; close it and read it with "
                "ambar.open_mesh_series(path)"
            )
        return self._store

    def _refreshable_store(self) -> Store:
        return self.store

    def at(self, time: float) -> Mesh:
        """Return the last step that is not after a time.

        Parameters
        ----------
        time : float
            The time. A step whose time differs from it by at most 1e-6 times the sum of the time
            and the smallest interval between steps counts as reached.

        Returns
        -------
        Mesh
            The step.

        Raises
        ------
        KeyError
            If all steps are later.
        TypeError, ValueError
            If the time is not a number, or NaN.

        Examples
        --------
        >>> series = ambar.open_mesh_series("steps.ambar")
        >>> series.times
        [0.0, 0.5, 1.0]
        >>> float(series.at(0.7).read()["pressure"][0])
        1.0
        """
        check_number("time", time)
        if math.isnan(time):
            raise _core.InvalidError(f"invalid time: {time}; expected a number")
        numbers = [number for number, known in enumerate(self._times) if known is not None]
        times = [known for known in self._times if known is not None]
        place = bisect_right(times, time)
        if place < len(times) and is_near(time, times[place], times):
            place += 1
        if place == 0:
            first = f"the first is at {times[0]!r}" if times else "none has a time"
            raise _core.NotFoundError(f"{self.location}: no step at or before time {time}; {first}")
        return self[numbers[place - 1]]

    def plot(
        self, fields: str | Sequence[str] | None = None, *, ax: Axes | None = None, **options: Any
    ) -> Any:
        """Draw the steps as ``ambar plot`` does, rendered off screen by PyVista.

        Parameters
        ----------
        fields : str or sequence of str, optional
            Arrays on points or cells, each in a row of panels; by default the active one, or the
            first of numbers.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, for one panel; by default a new figure of pyplot.
        **options
            Options of ``ambar plot``: `log`, `limits`, `colors`, `title`, `against` (another
            version of the steps), and
            `output`, the number of the only step to draw.

        Returns
        -------
        matplotlib.axes.Axes or numpy.ndarray
            The axes; of several panels an array of them.

        Raises
        ------
        KeyError
            If an array does not exist.
        ValueError
            If an option is invalid, or there are no points.
        UnsupportedError
            If PyVista cannot draw the type of the mesh.
        ModuleNotFoundError
            If matplotlib or PyVista is not installed.

        Examples
        --------
        >>> axes = ambar.open_mesh_series("steps.ambar").plot("pressure")
        >>> axes[0].figure.savefig("steps.png")
        """
        from ambar.mesh.drawing import MeshSeriesPlot, draw

        where = self.location
        return draw_object(draw, self, ("mesh series", MeshSeriesPlot), where, fields, ax, options)

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self._times)

    @overload
    def __getitem__(self, index: int) -> Mesh: ...

    @overload
    def __getitem__(self, index: slice) -> list[Mesh]: ...

    def __getitem__(self, index: int | slice) -> Mesh | list[Mesh]:
        """Return the step at a position from 0, negative ones from the end, or those of a slice."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = checked_position(index, len(self), self.location, "step")
        return Mesh(self.store, _group_of(number))

    def _title(self) -> str:
        if self._writer is not None:
            return "(open for writing)"
        return "(closed)" if self._store is None else self.location

    def _properties(self) -> dict[str, object]:
        properties: dict[str, object] = {
            "Steps": f"{len(self):,}",
            "Times": text.times_text(self._times) if len(self) else None,
        }
        if len(self) and self._store is not None and self._writer is None:
            last = self[-1]
            counts = f"{last.n_points:,} points, {last.n_cells:,} cells"
            properties["Last step"] = f"{last.type}, {counts}"
            arrays = last.arrays[:_MAX_ROWS]
            properties["Arrays"] = ", ".join(str(array.name) for array in arrays) or None
        return properties

    def __repr__(self) -> str:
        """Return the number of steps, their times, and type, sizes and arrays of the last one."""
        return text.representation(f"<ambar.MeshSeries> {self._title()}", self._properties())

    def _repr_html_(self) -> str:
        """Return what `__repr__` returns as HTML, and the time of each step, for notebooks."""
        times = ["" if time is None else f"{time:g}" for time in self._times]
        rows = list(enumerate(times))[-_MAX_ROWS:]
        left_out = f" (the last {len(rows)})" if len(rows) < len(self) else ""
        section = html.details(f"{len(self)} steps{left_out}", html.table(rows, ("step", "time")))
        return html.representation(
            f"ambar.MeshSeries {self._title()}", self._properties(), section if rows else ""
        )


def open_series_for_writing(
    path: str | os.PathLike[str],
    mode: WriteMode,
    *,
    error_bound: ErrorBound | None,
    reorder: bool,
    **options: Any,
) -> MeshSeries:
    """Return a series to add steps to; arguments are those of `ambar.open_mesh_series`.

    Raises
    ------
    FileExistsError
        If `path` exists, in mode "w-".
    BusyError
        If another writer has the store open.
    ValueError
        If `path` is a store of another kind, in mode "a".
    """
    writer = create(path, mode, **options)
    # The writer has the lock: another process can no longer create the series.
    store = store_at(path, options.get("storage_options")) if mode == "a" else None
    if store is None:
        return MeshSeries.__new__(MeshSeries)._open(None, writer, error_bound, reorder)
    try:
        about = store._ambar_attributes()
        if about.get("kind") != "series" or about.get("of") != "mesh":
            raise _core.InvalidError(  # noqa: TRY301 - closes the writer
                f"{store.location}: expected a series of meshes, found a store of the kind "
                f"{about.get('kind', 'arrays')!r}; choose another path"
            )
        return MeshSeries.__new__(MeshSeries)._open(store, writer, error_bound, reorder)
    except BaseException:
        writer.close()
        raise


def _group_of(number: int) -> str:
    return f"step_{number:06d}"


def _times_of(store: Store) -> list[float | None]:
    about = store._ambar_attributes()
    if about.get("version") != VERSION:
        raise _core.UnsupportedError(
            f"{store.location} is a series of meshes of version {about.get('version')!r}; this "
            f"version of ambar reads {VERSION}"
        )
    times = about.get("times")
    if not isinstance(times, list) or not all(
        time is None or isinstance(time, (int, float)) for time in times
    ):
        raise damaged(store.location, f"the times of its steps are {times!r:.80}")
    return list(times)
