"""What a conversion is asked to do, how it tells of its progress, and what it did."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from ambar import _core
from ambar.store.error_bounds import ErrorBound
from ambar.store.writer import Durability, Profile

Path: TypeAlias = "str | os.PathLike[str]"
Progress: TypeAlias = Callable[[int, int], None]
Covered: TypeAlias = Literal["auto", "drop", "keep"]
OnError: TypeAlias = Literal["stop", "skip"]


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
    """The outputs converted that the store did not have."""
    skipped: list[str] = field(default_factory=list)
    """The outputs the store had already."""
    replaced: list[str] = field(default_factory=list)
    """The outputs converted again, because their files have changed."""
    failed: dict[str, str] = field(default_factory=dict)
    """The outputs that could not be converted, and why; see `on_error`."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Files and folders of a plotfile that are no part of the store, and why."""

    @property
    def ratio(self) -> float:
        """How many times smaller the store is than the outputs' files."""
        return self.source_bytes / self.stored_bytes if self.stored_bytes else 0.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """A call of `ambar.convert`, whose arguments these are."""

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
    durability: Durability = "full"
    reorder: bool = False

    @property
    def writing(self) -> dict[str, Any]:
        """The options that all that writes a store takes, as keywords."""
        return {
            "profile": self.profile,
            "error_bound": self.error_bound,
            "threads": self.threads,
            "durability": self.durability,
        }

    @property
    def name(self) -> str:
        """What is converted, for messages: its path, or the first one and how many more."""
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return f"{os.fspath(self.paths[0])}{more}"


def refuse(request: Any, refused: Mapping[str, str], path: str) -> None:
    """Raise InvalidError if an option of `refused` was given: what is said of it, of `path`."""
    defaults = {option.name: option.default for option in fields(request)}
    for option, why in refused.items():
        if getattr(request, option) != defaults[option]:
            raise _core.InvalidError(why.format(path=path))


def listed(names: Iterable[str] | None) -> list[str] | None:
    """Return names as a list, a text as the only one; None of None."""
    if names is None:
        return None
    return [names] if isinstance(names, str) else list(names)


def shown(
    progress: Progress | Literal[True] | None, title: str
) -> AbstractContextManager[Progress | None]:
    """Give the function to report progress to: the caller's own, a bar's, or none."""
    if progress is True:
        from ambar._util.progress import bar

        return bar(title)
    return nullcontext(progress)
