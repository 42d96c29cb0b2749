"""From RAMSES outputs to a store, or straight into memory."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ambar import _core
from ambar.info import Info
from ambar.names import resolve_all
from ambar.opening import outputs
from ambar.regions import Region
from ambar.snapshot import AMR_COMPONENTS, RamsesSource, Snapshot
from ambar.writer import Durability, Profile

Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True)
class Conversion:
    """What a conversion did."""

    target: str
    """The store."""
    source_bytes: int
    """Bytes of the outputs' files."""
    stored_bytes: int
    """Bytes of the store."""
    seconds: float
    """How long it took."""
    converted: list[str] = field(default_factory=list)
    """The outputs converted."""
    skipped: list[str] = field(default_factory=list)
    """The outputs the store had already."""

    @property
    def ratio(self) -> float:
        """How many times smaller the store is than the outputs' files."""
        return self.source_bytes / self.stored_bytes if self.stored_bytes else 0.0


def convert(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    components: Iterable[str] | None = None,
    fields: Iterable[str] | None = None,
    levels: tuple[int, int] | None = None,
    profile: Profile = "balanced",
    error_bound: object = None,
    threads: int | None = None,
    progress: Progress | Literal[True] | None = None,
    overwrite: bool = False,
    durability: Durability = "full",
) -> Conversion:
    """Convert a RAMSES output, or a folder of outputs, to a store; nothing is lost.

    A folder of outputs becomes a series. It can be continued: outputs that the store has already
    are skipped, each output is committed when it is complete.

    Parameters
    ----------
    path
        An ``output_NNNNN`` folder, or a folder of them.
    target
        The store to write.
    components
        Some of "hydro", "gravity", "rt", "particles", "sinks", "clumps"; by default all there are.
    fields
        Fields to keep, of cells and particles; by default all.
    levels
        `(lowest, highest)` level of the cells to keep; where cells of the highest level are
        refined further, they are kept with the value RAMSES gives them.
    profile
        "fast" to read, "balanced", or "small".
    error_bound
        Refused: this version stores losslessly.
    threads
        Threads to use; all cores by default.
    progress
        A function called with the work done and all work, or True for a bar on the terminal.
    overwrite
        Replace a store of that name; by default that is an error, but for a series, which is
        continued.
    durability
        "full": survives a power cut. "none" leaves out the fsyncs.

    Raises
    ------
    NotFoundError
        If there is no output, or no component or field of a name.
    CorruptError
        If a file of the output is damaged or cut short.
    BusyError
        If there is a store of that name, or another writer is at it.
    UnsupportedError
        If `error_bound` is given.
    """
    if error_bound is not None:
        raise _core.UnsupportedError(
            "an error bound needs the error-bounded codec, which this version does not have; "
            "leave it out to store without loss"
        )
    with _shown(progress, f"converting {Path(path).name}") as report:
        text = _core.convert_ramses(
            os.fspath(path),
            os.fspath(target),
            _listed(components),
            _resolved(path, fields),
            levels,
            profile,
            durability,
            overwrite,
            threads,
            report,
        )
    return _conversion(os.fspath(target), json.loads(text))


def read_ramses(
    path: str | os.PathLike[str],
    components: Iterable[str] | None = None,
    fields: Iterable[str] | None = None,
    region: Region | None = None,
    levels: tuple[int, int] | None = None,
    threads: int | None = None,
) -> Snapshot:
    """Read a RAMSES output into memory, without a store: the same object as `ambar.open` gives.

    Parameters
    ----------
    path
        An ``output_NNNNN`` folder.
    components, fields, levels, threads
        As for `convert`.
    region
        A `Box`, `Sphere` or `Shell`: cells whose centre, and particles whose position, is inside.

    Raises
    ------
    NotFoundError
        If there is no output, or no component or field of a name.
    CorruptError
        If a file of the output is damaged or cut short.
    """
    core = _core.Ramses(os.fspath(path))
    info = Info.from_dict(json.loads(core.info))
    source = RamsesSource(
        core,
        os.fspath(path),
        components=_listed(components),
        fields=_listed(fields),
        region=None if region is None else region.to_code(info),
        levels=levels,
        threads=threads,
    )
    snapshot = Snapshot(source)
    if any(name in source.components for name in AMR_COMPONENTS):
        _ = snapshot.amr
    if "particles" in source.components:
        _ = snapshot.particles
    return snapshot


def _listed(names: Iterable[str] | None) -> list[str] | None:
    if names is None:
        return None
    return [names] if isinstance(names, str) else list(names)


def _resolved(path: str | os.PathLike[str], fields: Iterable[str] | None) -> list[str] | None:
    """Resolve aliases among `fields` by the names that the output, or a run's first one, has."""
    names = _listed(fields)
    first = next(iter(outputs(path)), None)
    if names is None or first is None:
        return names
    found = json.loads(_core.Ramses(str(first)).components)
    return resolve_all(names, [name for component in found for name in component["fields"]])


def _shown(
    progress: Progress | Literal[True] | None, title: str
) -> AbstractContextManager[Progress | None]:
    if progress is True:
        from ambar.progress import bar

        return bar(title)
    return nullcontext(progress)


def _conversion(target: str, report: dict[str, Any]) -> Conversion:
    return Conversion(target=target, **report)
