"""Meshes over time in one store: what does not change from step to step is stored once."""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from ambar import _core
from ambar._util.locking import WriterLock, locked
from ambar._util.modes import WriteMode, check_mode
from ambar.mesh.mesh import Mesh
from ambar.mesh.storage.deduplication import Shared
from ambar.mesh.storage.temporal_deltas import GROUP
from ambar.mesh.times import is_near
from ambar.mesh.write import put_mesh
from ambar.store.commit_context import Closing
from ambar.store.error_bounds import ErrorBound
from ambar.store.store import Store
from ambar.store.writer import Profile, Writer, create

VERSION = 1


class MeshSeries(Sequence[Mesh], Closing):
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

    def __init__(self, store: Store) -> None:
        self._lock = WriterLock()
        self._store: Store | None = store
        self._writer: Writer | None = None
        self._shared = Shared()
        self._error_bound: ErrorBound | None = None
        self._reorder = False
        self._times = _times_of(store)

    @classmethod
    def _written(
        cls,
        store: Store | None,
        writer: Writer,
        error_bound: ErrorBound | None,
        reorder: bool,
    ) -> MeshSeries:
        """Return a series to add steps to; `store` has the steps before them, if there are any."""
        series = cls.__new__(cls)
        series._lock = WriterLock()
        series._store = store
        series._writer = writer
        series._shared = Shared() if store is None else _shared_in(store)
        series._error_bound = error_bound
        series._reorder = reorder
        series._times = [] if store is None else _times_of(store)
        return series

    @locked
    def add(
        self, mesh: Any, time: float | None = None, *, user_dict: Mapping[str, Any] | None = None
    ) -> None:
        """Add a step and commit it.

        Parameters
        ----------
        mesh : vtkDataObject
            The mesh of the step, as for `ambar.write_mesh`.
        time : float, optional
            The time of the step, greater than that of the previous step. Steps of a series without
            times are known by their numbers.
        user_dict : mapping, optional
            Other data to store with the step; JSON must be able to represent it.

        Raises
        ------
        ValueError
            If the series is open for reading, or `time` is not greater than the previous one. Other
            errors are those of `ambar.write_mesh`.
        """
        if self._writer is None:
            raise _core.InvalidError(
                "the series is not open for writing; open it with ambar.open_mesh_series(path, 'a')"
            )
        self._writer._core.check()
        if time is not None:
            time = float(time)
            last = next((known for known in reversed(self._times) if known is not None), None)
            if not np.isfinite(time) or (last is not None and time <= last):
                raise _core.InvalidError(f"time {time} is not after that of the last step, {last}")
        self._put(self._writer, mesh, user_dict)
        times = [*self._times, time]
        about = {"kind": "series", "version": VERSION, "of": "mesh", "times": times}
        self._writer.create_group("", {"ambar": about})
        self._writer.commit()
        self._times = times

    def _put(self, writer: Writer, mesh: Any, user_dict: Mapping[str, Any] | None) -> None:
        """Write a step; of one that fails nothing is left, as later ones must not refer to it."""
        step = _step(len(self._times))
        try:
            put_mesh(
                writer,
                step,
                mesh,
                error_bound=self._error_bound,
                user_dict=user_dict,
                shared=self._shared,
                reorder=self._reorder,
            )
        except BaseException:
            self._shared.forget()
            with contextlib.suppress(_core.NotFoundError):
                writer.remove(step)
            raise
        self._shared.take()

    def close(self) -> None:
        """Close the writer and release the lock of the store; all added steps are committed.

        Does nothing in a forked child: the writer belongs to its parent.
        """
        if self._lock.is_foreign:
            return
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    @property
    def times(self) -> list[float | None]:
        """The time of each step; None for steps without a time."""
        return list(self._times)

    @property
    def store(self) -> Store:
        """The store with all arrays; raises ValueError if the series is open for writing."""
        if self._store is None or self._writer is not None:
            raise _core.InvalidError(
                "the series is open for writing; close it and read it with "
                "ambar.open_mesh_series(path)"
            )
        return self._store

    def at(self, time: float) -> Mesh:
        """Return the last step that is not after `time`.

        A step counts as at `time` if its time differs by at most 1e-6 of itself and of the smallest
        interval between steps.

        Raises
        ------
        KeyError
            If all steps are later.
        """
        numbers = [number for number, known in enumerate(self._times) if known is not None]
        times = [known for known in self._times if known is not None]
        place = bisect_right(times, time)
        if place < len(times) and is_near(time, times[place], times):
            place += 1
        if place == 0:
            first = f"the first is at {times[0]!r}" if times else "none has a time"
            raise _core.NotFoundError(
                f"{self.store.location}: no step at or before time {time}; {first}"
            )
        return self[numbers[place - 1]]

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self._times)

    @overload
    def __getitem__(self, index: int) -> Mesh: ...

    @overload
    def __getitem__(self, index: slice) -> list[Mesh]: ...

    def __getitem__(self, index: int | slice) -> Mesh | list[Mesh]:
        """Return the step at a position, or those of a slice."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = range(len(self))[index]
        return Mesh(self.store, _step(number))

    def __repr__(self) -> str:
        """Return a line: the store, the number of steps, the times."""
        where = "being written" if self._store is None else self._store.location
        known = [time for time in self._times if time is not None]
        span = f", times {known[0]:g} to {known[-1]:g}" if known else ""
        return f"<ambar.MeshSeries: {where}, {len(self)} steps{span}>"


def open_series_for_writing(
    path: str | os.PathLike[str],
    mode: WriteMode,
    *,
    profile: Profile,
    error_bound: ErrorBound | None,
    reorder: bool,
    threads: int | None,
    fsync: bool,
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
    check_mode(mode)
    writer = create(path, mode, profile=profile, threads=threads, fsync=fsync)
    # The writer has the lock: another process can no longer create the series.
    if mode != "a" or not Path(path).exists():
        return MeshSeries._written(None, writer, error_bound, reorder)
    try:
        store = Store(_core.Store(os.fspath(path)))
        _check_series(store)
        return MeshSeries._written(store, writer, error_bound, reorder)
    except BaseException:
        writer.close()
        raise


def _shared_in(store: Store) -> Shared:
    """Return the arrays of the steps of a series, which later steps may refer to."""
    shared = Shared()
    for number in range(len(_times_of(store))):
        about = store.ambar_attributes(_step(number))
        shared.know(_step(number), about.get("digests") or {})
    group = f"/{GROUP}"
    shared.number_from(len(store.core.children(group)) if store.core.kind(group) else 0)
    return shared


def _check_series(store: Store) -> None:
    """Raise ValueError if a store is not a series of meshes."""
    about = store.ambar_attributes()
    if about.get("kind") != "series" or about.get("of") != "mesh":
        raise _core.InvalidError(
            f"{store.location}: expected a series of meshes, found a store of the kind "
            f"{about.get('kind', 'arrays')!r}; choose another path"
        )


def _step(number: int) -> str:
    return f"step_{number:06d}"


def _times_of(store: Store) -> list[float | None]:
    about = store.ambar_attributes()
    if about.get("version") != VERSION:
        raise _core.UnsupportedError(
            f"{store.location} is a series of meshes of version {about.get('version')!r}; this "
            f"version of ambar reads {VERSION}"
        )
    times = about.get("times")
    if not isinstance(times, list) or any(
        time is not None and not isinstance(time, (int, float)) for time in times
    ):
        raise _core.CorruptError(
            f"{store.location}: the times of its steps are {times!r:.80}; restore the store from a "
            "copy"
        )
    return list(times)
