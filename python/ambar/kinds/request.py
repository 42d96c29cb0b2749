"""Requests to convert, export and plot, and the reports of conversions and exports.

A request has the arguments that every kind accepts. A kind with more options defines a subclass.
"""

from __future__ import annotations

import difflib
import math
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

from ambar import _core
from ambar._util.arguments import WriteMode, check_unicode
from ambar._util.progress import Progress
from ambar._util.text import change, size
from ambar.store.copies.merging import OnConflict
from ambar.store.error_bounds import ErrorBound
from ambar.store.locations import store_at
from ambar.store.store import Store
from ambar.store.urls import core_options
from ambar.store.writer import Profile, Writer, create

Path: TypeAlias = "str | os.PathLike[str]"
OnError: TypeAlias = Literal["stop", "skip"]
_SELECTING = ("components", "datasets", "fields", "levels", "max_level", "region", "steps")
"""Options of conversions that select a part of the source."""
_LISTED = 20
"""Names that the text of a report lists."""


@dataclass(frozen=True)
class Conversion:
    """The report of a conversion.

    Examples
    --------
    >>> done = ambar.convert("output_00002", "gas.ambar", components=["hydro"])
    >>> done.converted, done.failed
    (['output_00002'], {})
    >>> print(done)
    gas.ambar: 8.03 MB -> ... MB (a part of the source) in ... s
    """

    target: str
    """The store."""
    source_bytes: int
    """Bytes of the files that were converted."""
    stored_bytes: int
    """Bytes of the store."""
    seconds: float
    """The duration in seconds."""
    converted: list[str] = field(default_factory=list)
    """The outputs or datasets that were added."""
    skipped: list[str] = field(default_factory=list)
    """Outputs or datasets that the store already has. Of a merge, names in several stores, of which
    the first one is kept."""
    replaced: list[str] = field(default_factory=list)
    """Outputs that were converted again, because their files have changed. Of a merge, names in
    several stores of which the last one is kept."""
    failed: dict[str, str] = field(default_factory=dict)
    """Outputs or files that could not be converted, and the reasons; see `on_error`."""
    left_out: dict[str, str] = field(default_factory=dict)
    """What the store does not contain of a plotfile, a run or a file, or not unchanged, and the
    reasons."""
    is_part: bool = False
    """Whether options selected a part of the source, such as fields or components; `source_bytes`
    counts all of it."""

    @property
    def ratio(self) -> float:
        """How many times smaller the store is than the files that were converted.

        NaN if it has a part of the source, whose size in the files is unknown.
        """
        if self.is_part:
            return math.nan
        return self.source_bytes / self.stored_bytes if self.stored_bytes else 0.0

    @property
    def _sizes(self) -> str:
        """The sizes of the source and the store, and the ratio, as text."""
        ratio = "a part of the source"
        if not self.is_part:
            ratio = change(self.source_bytes, self.stored_bytes)
        return f"{size(self.source_bytes)} -> {size(self.stored_bytes)} ({ratio})"

    def __str__(self) -> str:
        """Return the sizes, the time, and what differs from a plain conversion, a line each."""
        sizes = self._sizes
        if self.skipped:  # the store has other outputs than the converted ones, too
            new = len(self.converted) + len(self.replaced)
            added = f"{new:,} added" if new else "nothing new"
            there = f"{len(self.skipped):,} already there"
            sizes = f"{added}, {there}, the store has {size(self.stored_bytes)},"
        lines = [
            f"{self.target}: {sizes} in {self.seconds:.2f} s",
            *(f"converted again: {name}, its files have changed" for name in self.replaced),
            *(f"left out: {name}, {why}" for name, why in self.left_out.items()),
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class Merge(Conversion):
    """The report of a merge.

    `skipped` has names that a later store has again, of which the first one is kept, and `replaced`
    those of which the last one is kept.
    """

    def __str__(self) -> str:
        """Return the sizes, the time, and the names that several stores have."""
        lines = [f"{self.target}: {self._sizes} in {self.seconds:.2f} s"]
        for names, what in ((self.skipped, "the first one"), (self.replaced, "the last one")):
            if names:
                more = f", and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
                listed = f"{', '.join(names[:_LISTED])}{more}"
                lines.append(f"kept {what} of {len(names)} in several stores: {listed}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Export:
    """The report of an export.

    Examples
    --------
    >>> done = ambar.export("profiles.ambar", "files", datasets="platform == 'argo'")
    >>> done.exported, done.failed
    (['station_0041', 'station_0043'], {})
    """

    target: str
    """The file or folder."""
    exported: list[str]
    """The datasets written, of a collection; otherwise empty."""
    seconds: float
    """The duration in seconds."""
    failed: dict[str, str] = field(default_factory=dict)
    """The datasets that could not be written, and the reasons."""
    left_out: dict[str, str] = field(default_factory=dict)
    """The arrays and parts of a mesh that the file does not hold unchanged, and the reasons."""

    def __str__(self) -> str:
        """Return the target, the number of datasets, the time, and `left_out`."""
        count = f"{len(self.exported):,} datasets " if self.exported or self.failed else ""
        lines = [
            f"{self.target}: {count}written in {self.seconds:.2f} s",
            *(f"left out: {name}, {why}" for name, why in self.left_out.items()),
        ]
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True)
class WriteRequest:
    """A store to write at a path or URL, and how."""

    target: Path
    mode: WriteMode = "w-"
    profile: Profile = "balanced"
    threads: int | None = None
    progress: Progress | bool | None = None
    fsync: bool = True
    storage_options: Mapping[str, object] | None = None

    @property
    def existing(self) -> Store | None:
        """The store at the target, to which mode "a" adds; None if there is none."""
        return store_at(self.target, self.storage_options) if self.mode == "a" else None

    def create(self, mode: WriteMode | None = None) -> Writer:
        """Return the writer of the target; `mode` is that of the request by default."""
        return create(
            self.target,
            mode or self.mode,
            profile=self.profile,
            threads=self.threads,
            fsync=self.fsync,
            storage_options=self.storage_options,
        )

    def written(self) -> Store:
        """Open the target, which was written."""
        return Store._open(self.target, core_options(self.storage_options))

    def stored_bytes(self) -> int:
        """Return the bytes of the target, which was written."""
        return self.written().usage()["total"]


@dataclass(frozen=True, kw_only=True)
class ConvertRequest(WriteRequest):
    """A call of `ambar.convert`: the sources, the target, and the options of every conversion."""

    store_options: ClassVar[tuple[str, ...]] = ()
    """Options that the kind lacks, and the store has that it becomes."""

    paths: list[Path]
    """The sources; of an object its name alone."""
    source: Any = None
    """The object of another library that is converted, instead of paths."""
    error_bound: ErrorBound | None = None

    @property
    def writing(self) -> dict[str, Any]:
        """The options that all writers of stores accept, as keyword arguments."""
        return {
            "profile": self.profile,
            "error_bound": self.error_bound,
            "threads": self.threads,
            "fsync": self.fsync,
            "storage_options": self.storage_options,
        }

    @property
    def is_part(self) -> bool:
        """Whether options select a part of the source."""
        return any(getattr(self, name, None) is not None for name in _SELECTING)

    @property
    def name(self) -> str:
        """The sources, for messages: the first path, and the number of other paths."""
        more = f" and {len(self.paths) - 1} more" if len(self.paths) > 1 else ""
        return f"{os.fspath(self.paths[0])}{more}"

    def refuse_append(self) -> None:
        """Raise ValueError for mode "a" if the target exists; for sources that become a store."""
        if self.existing is not None:
            raise _core.InvalidError(
                f'{os.fspath(self.target)}: expected a new store or a series for mode="a", because '
                f"{self.name} is converted as a whole; choose another name, or replace the store "
                'with mode="w"'
            )


@dataclass(frozen=True, kw_only=True)
class CopyRequest(ConvertRequest):
    """A call of `ambar.convert` whose source is a store."""

    opened: Store
    new_profile: Profile | None = None
    """The profile that was given; without one, chunks keep their encoding."""


@dataclass(frozen=True, kw_only=True)
class MergeRequest(WriteRequest):
    """A call of `ambar.merge`: the open stores, the target, and what happens to equal names."""

    stores: list[Store]
    on_conflict: OnConflict = "error"


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """A call of `ambar.export`: the store, the target, and the options of every export."""

    store: Path
    opened: Store
    target: pathlib.Path
    """A scratch path with the name of the target, which `ambar.export` moves to its place."""
    threads: int | None = None
    progress: Progress | bool | None = None
    storage_options: Mapping[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class PlotRequest:
    """A call of ``ambar plot``: the path, the picture, and the options of every picture."""

    supported_fields: ClassVar[tuple[str, ...]] = ("against", "movie")
    """The fields of this class that apply to the kind, of those that some kinds lack."""

    path: Path
    target: pathlib.Path | None = None
    fields: tuple[str, ...] = ()
    """What to draw; empty for what the kind draws by default."""
    against: Any = None
    """The opened object of another path, of a kind with the same function; None without one."""
    movie: pathlib.Path | None = None
    """The movie of a series; None for a picture."""
    rate: float = 10.0
    """Frames of a movie per second."""
    threads: int | None = None
    dpi: int = 150
    title: bool = True
    report: Progress | None = None
    """Called with the part of a movie that is done."""

    def target_of(self, *parts: str) -> pathlib.Path:
        """Return the file of the picture; by default named after the path and `parts`."""
        stem = pathlib.Path(self.path).name.removesuffix(".ambar")
        names = [re.sub(r"[^\w.+-]+", "-", part).strip("-") for part in parts]
        return self.target or pathlib.Path("_".join([stem, *names]) + ".png")


@dataclass(frozen=True, kw_only=True)
class ViewRequest:
    """A call of ``ambar view``: where the data are, and what they are compared with."""

    location: str
    """The path or the URL, for titles and for calls of Python."""
    against: Any = None
    """The other object of a comparison."""
    against_location: str = ""

    @classmethod
    def of(cls, opened: Any, against: Any = None) -> ViewRequest:
        """Return the request for an opened object, which has a location, and another one."""
        other = "" if against is None else against.location
        return cls(location=opened.location, against=against, against_location=other)

    def refuse_comparison(self) -> None:
        """Raise UnsupportedError if the data are compared with others, which the page cannot do."""
        if self.against is not None:
            raise _core.UnsupportedError(
                f"{self.location}: the page of this kind shows no differences; leave out against, "
                "or use ambar compare"
            )

    @property
    def title(self) -> str:
        """The title of the page."""
        name = pathlib.PurePath(self.location.rstrip("/")).name or self.location
        if self.against is None:
            return name
        return f"{name} against {pathlib.PurePath(self.against_location.rstrip('/')).name}"


_MODES = {"overwrite": 'write mode="w"; ', "resume": 'write mode="a"; '}
"""The advice for options of the command line that functions have as a mode."""


class InvalidOptionError(_core.InvalidError):
    """An option that a kind lacks: for callers an `ambar.InvalidError`, which tracebacks show."""

    __module__ = "ambar"
    __qualname__ = "InvalidError"

    def __init__(
        self,
        where: str,
        option: str,
        kind: str,
        known: list[str],
        common: list[str],
        store_options: tuple[str, ...] = (),
    ) -> None:
        super().__init__(where, option, kind, known, common, store_options)

    def __str__(self) -> str:
        return self.message()

    def __reduce__(self) -> tuple[type[_core.InvalidError], tuple[str]]:
        return _core.InvalidError, (str(self),)

    def message(self, name_of: Callable[[str], str] = str) -> str:
        """Return the message, with options as `name_of` spells them."""
        where, option, kind, known, common, store_options = self.args
        if option in store_options:
            return (
                f"{where}: {name_of(option)} does not apply to the kind {kind!r}, but to stores: "
                "convert the source to a store first, such as run.ambar, and then run.ambar to "
                f"another store with {name_of(option)}"
            )
        close = difflib.get_close_matches(option, [*known, *common], 1)
        hint = f"did you mean {name_of(close[0])}? " if close else ""
        hint = _MODES.get(option, hint)
        return (
            f"{where}: {name_of(option)} does not apply to the kind {kind!r}; {hint}options of "
            f"this kind: {', '.join(map(name_of, known)) or 'none'}"
        )


Request = TypeVar("Request", ConvertRequest, ExportRequest, PlotRequest, ViewRequest)


_UNICODE_OPTIONS = ("components", "datasets", "error_bound", "fields", "profile", "ragged")
"""Options whose strings must be Unicode; paths need not be."""


def build(
    cls: type[Request],
    kind: str,
    where: Path,
    options: Mapping[str, Any],
    *,
    also: Sequence[str] = (),
    **common: Any,
) -> Request:
    """Return a request for a kind from the arguments of a call.

    Parameters
    ----------
    cls
        The class of the kind.
    kind, where
        The name of the kind, and the path that the error names.
    options
        The options of the kind that were given.
    also
        Other options that the error lists.
    common
        The fields that requests of all kinds have.

    Raises
    ------
    ValueError
        If the class has no such option: an `InvalidOptionError`.
    """
    known: list[str] = sorted({one.name for one in fields(cls)} - common.keys())
    for option in options:
        if option not in known:
            later = getattr(cls, "store_options", ())
            listed = [*also, *known]
            raise InvalidOptionError(os.fspath(where), option, kind, listed, list(common), later)
    for option, value in {**common, **options}.items():
        if option in _UNICODE_OPTIONS:
            check_unicode(option, value)
    return cls(**common, **options)


def as_list(names: Iterable[str] | None) -> list[str] | None:
    """Return names as a list, a single string as a list of one name, None as None."""
    if names is None:
        return None
    return [names] if isinstance(names, str) else list(names)


def as_paths(paths: Path | Sequence[Path] | None) -> list[Path]:
    """Return paths as a list: a single path as a list of one, None as an empty list."""
    if paths is None:
        return []
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
