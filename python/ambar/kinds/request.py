"""Requests to convert, export and plot: their options, and the report of a conversion."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias

from ambar import _core
from ambar._util.properties import cached_property
from ambar.store.error_bounds import ErrorBound
from ambar.store.store import Store
from ambar.store.writer import Profile

Path: TypeAlias = "str | os.PathLike[str]"
Progress: TypeAlias = Callable[[int, int], None]
Covered: TypeAlias = Literal["auto", "drop", "keep"]
OnError: TypeAlias = Literal["stop", "skip"]


@dataclass(frozen=True)
class Conversion:
    """The report of a conversion."""

    target: str
    """The store."""
    source_bytes: int
    """Bytes of the outputs' files."""
    stored_bytes: int
    """Bytes of the store."""
    seconds: float
    """How long it took."""
    converted: list[str] = field(default_factory=list)
    """The outputs converted that the store did not have."""
    skipped: list[str] = field(default_factory=list)
    """The outputs the store had already."""
    replaced: list[str] = field(default_factory=list)
    """The outputs converted again, because their files have changed."""
    failed: dict[str, str] = field(default_factory=dict)
    """The outputs that could not be converted, and why; see `on_error`."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Files and folders of a plotfile that the store does not contain, and why."""

    @property
    def ratio(self) -> float:
        """How many times smaller the store is than the outputs' files."""
        return self.source_bytes / self.stored_bytes if self.stored_bytes else 0.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of a call of `ambar.convert`."""

    paths: list[Path]
    target: Path
    components: Iterable[str] | None = None
    fields: Iterable[str] | None = None
    levels: tuple[int, int] | None = None
    max_level: int | None = None
    covered: Covered = "auto"
    resume: bool = False
    on_error: OnError = "stop"
    profile: Profile = "balanced"
    error_bound: ErrorBound | None = None
    threads: int | None = None
    progress: Progress | Literal[True] | None = None
    overwrite: bool = False
    fsync: bool = True
    reorder: bool = False

    common: ClassVar = frozenset(
        {
            "paths",
            "target",
            "profile",
            "error_bound",
            "threads",
            "progress",
            "overwrite",
            "fsync",
        }
    )
    """Options of every conversion."""

    @property
    def writing(self) -> dict[str, Any]:
        """The options that all writers of stores accept, as keyword arguments."""
        return {
            "profile": self.profile,
            "error_bound": self.error_bound,
            "threads": self.threads,
            "fsync": self.fsync,
        }

    @property
    def name(self) -> str:
        """The sources, for messages: the first path, and the number of other paths."""
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return f"{os.fspath(self.paths[0])}{more}"


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """The arguments of a call of `ambar.export`."""

    store: Path
    target: Path
    format: Literal["netcdf", "zarr"] | None = None
    datasets: Any = None
    processes: int | None = None
    amrex_hdf5: bool = False
    error_bound: ErrorBound | None = None
    without_particles: bool = False
    threads: int | None = None
    progress: Progress | Literal[True] | None = None

    common: ClassVar = frozenset({"store", "target", "threads", "progress"})
    """Options of every export."""

    @cached_property
    def opened(self) -> Store:
        """The store."""
        return Store(_core.Store(os.fspath(self.store)))


@dataclass(frozen=True, kw_only=True)
class PlotRequest:
    """The options of a call of ``ambar plot``."""

    path: str
    target: pathlib.Path | None = None
    field: str | None = None
    slice_at: float | None = None
    axis: str = "z"
    weight: str | None = None
    center: str = "bc"
    width: float = 1.0
    level: int | None = None
    unit: str | None = None
    log: bool = True
    colors: str = "inferno"
    output: int | None = None
    threads: int | None = None

    def target_of(self, *parts: str) -> pathlib.Path:
        """Return the file of the picture; by default named after the path and `parts`."""
        stem = pathlib.Path(self.path).name.removesuffix(".ambar")
        return self.target or pathlib.Path("_".join([stem, *parts]) + ".png")


def refuse_options(
    request: Request | ExportRequest, accepted: frozenset[str], kind: str, where: str
) -> None:
    """Raise ValueError if an option was given that is neither common nor in `accepted`."""
    for option in fields(request):
        if option.name in request.common or option.name in accepted:
            continue
        value = getattr(request, option.name)
        if value != option.default:
            known = ", ".join(sorted(accepted)) or "none"
            raise _core.InvalidError(
                f"{where}: option {option.name}={value!r} does not apply to the kind {kind!r}, "
                f"whose own options are: {known}"
            )


def listed(names: Iterable[str] | None) -> list[str] | None:
    """Return names as a list, a single string as a list of one name, None as None."""
    if names is None:
        return None
    return [names] if isinstance(names, str) else list(names)


def shown(
    progress: Progress | Literal[True] | None, title: str
) -> AbstractContextManager[Progress | None]:
    """Return the function that progress is reported to: the caller's, a bar's, or None."""
    if progress is True:
        from ambar._util.progress import bar

        return bar(title)
    return nullcontext(progress)
