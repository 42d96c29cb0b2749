"""Meshes over time in one store: what does not change from step to step is stored once."""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from ambar import _core
from ambar._util.locking import WriterLock, locked
from ambar.mesh.mesh import Mesh
from ambar.mesh.storage.deduplication import Shared
from ambar.mesh.storage.temporal_deltas import GROUP
from ambar.mesh.times import is_near
from ambar.mesh.write import check_target, put_mesh
from ambar.store.commit_context import Closing
from ambar.store.error_bounds import ErrorBound
from ambar.store.store import Store
from ambar.store.writer import Durability, Profile, Writer, append, create

VERSION = 1


class MeshSeries(Sequence[Mesh], Closing):
    """The time steps of a run, each a mesh; ``series[3].read()``, ``series.times``.

    `MeshSeries.create` makes one that a running solver adds steps to, `MeshSeries.resume` goes on
    with it, `ambar.open` opens it to be read. Each step is committed when it is added: readers see
    it, and it survives whatever becomes of the solver. Arrays of a step that an earlier one has,
    such as points and cells of a mesh that stays, are found by their content and not stored again.
    Threads may share a series: steps are added one at a time.
    """

    def __init__(
        self, store: Store | None, writer: Writer | None = None, shared: Shared | None = None
    ) -> None:
        self._lock = WriterLock()
        self._store = store
        self._writer = writer
        self._shared = shared or Shared()
        self._error_bound: ErrorBound | None = None
        self._reorder = False
        self._times: list[float | None] = []
        if store is not None:
            self._times = _times_of(store)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        profile: Profile = "balanced",
        error_bound: ErrorBound | None = None,
        threads: int | None = None,
        durability: Durability = "full",
        overwrite: bool = False,
        reorder: bool = False,
    ) -> MeshSeries:
        """Return a new series without steps; arguments and errors are those of `ambar.write_mesh`.

        The file appears under its name with the first step.
        """
        check_target(path, overwrite=overwrite)
        writer = create(
            path, overwrite=overwrite, durability=durability, profile=profile, threads=threads
        )
        series = cls(None, writer)
        series._error_bound = error_bound
        series._reorder = reorder
        return series

    @classmethod
    def resume(
        cls,
        path: str | os.PathLike[str],
        *,
        profile: Profile = "balanced",
        error_bound: ErrorBound | None = None,
        threads: int | None = None,
        durability: Durability = "full",
        reorder: bool = False,
    ) -> MeshSeries:
        """Return a series that steps can be added to, behind those that it has.

        Arguments are as for `create`: give those that it was made with, or what did not change is
        stored again.

        Raises
        ------
        ValueError
            If the store holds something else.
        BusyError
            If another writer is at it.
        """
        store = Store(_core.Store(os.fspath(path)))
        if not is_mesh_series(store):
            raise _core.InvalidError(f"{os.fspath(path)} is no series of meshes")
        shared = Shared()
        for number in range(len(_times_of(store))):
            about = store.ambar_attributes(_step(number))
            shared.know(_step(number), about.get("digests") or {})
        group = f"/{GROUP}"
        shared.number_from(len(store.core.children(group)) if store.core.kind(group) else 0)
        writer = append(path, durability=durability, profile=profile, threads=threads)
        series = cls(store, writer, shared)
        series._error_bound = error_bound
        series._reorder = reorder
        return series

    @locked
    def add(
        self, mesh: Any, time: float | None = None, *, user_dict: Mapping[str, Any] | None = None
    ) -> None:
        """Add a step and commit it.

        Parameters
        ----------
        mesh
            The VTK object of the step, as for `ambar.write_mesh`.
        time
            Its time, larger than that of the step before; None where there are only numbers.
        user_dict
            What else to keep with it: anything JSON can hold.

        Raises
        ------
        ValueError
            If the series was opened to be read, or the time is not later; and as `write_mesh` does.
        """
        if self._writer is None:
            raise _core.InvalidError("this series was opened to be read: use MeshSeries.resume")
        self._writer.core.check()
        if time is not None:
            time = float(time)
            last = self._times[-1] if self._times else None
            if not np.isfinite(time) or (last is not None and time <= last):
                raise _core.InvalidError(f"time {time} is not after that of the last step, {last}")
        self._put(self._writer, mesh, user_dict)
        times = [*self._times, time]
        about = {"kind": "series", "version": VERSION, "of": "mesh", "times": times}
        self._writer.group("", {"ambar": about})
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
        """Let other writers in; a step that could not be added is left out.

        In a forked child it does nothing: the file is the parent's.
        """
        if self._lock.is_foreign:
            return
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    @property
    def times(self) -> list[float | None]:
        """The steps' times, None where none was given."""
        return list(self._times)

    @property
    def store(self) -> Store:
        """The store, with all arrays as they lie there; raises ValueError while it is written."""
        if self._store is None or self._writer is not None:
            raise _core.InvalidError("a series is read with ambar.open, not while it is written")
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


def is_mesh_series(store: Store) -> bool:
    """Whether a store holds a series of meshes."""
    about = store.ambar_attributes()
    return about.get("kind") == "series" and about.get("of") == "mesh"


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
