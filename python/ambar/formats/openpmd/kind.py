"""The kind of openPMD series: converted to a snapshot, or a series of snapshots."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ambar import _core
from ambar._util.progress import Progress, progress_function
from ambar.formats.openpmd.conversion import IterationImport
from ambar.formats.openpmd.files import check_file, files_of, is_openpmd, openpmd_api, size_of
from ambar.formats.openpmd.source import (
    IterationReader,
    check_series,
    datasets_left_out,
    iterations_of,
    open_series,
)
from ambar.kinds.registry import Kind
from ambar.kinds.request import Conversion, ConvertRequest, OnError
from ambar.kinds.request import Path as AnyPath
from ambar.snapshot.code_info import CodeInfo
from ambar.snapshot.kind import warn_of_loose_bounds
from ambar.store.error_bounds import listed_bounds
from ambar.store.store import Store
from ambar.store.writer import Writer, create

_PARTS = 1000
"""The progress of one iteration."""
Found = list[tuple[Path, Mapping[int, Sequence[str]]]]
"""Files, and the iterations and meshes of each."""


@dataclass(frozen=True, kw_only=True)
class OpenpmdRequest(ConvertRequest):
    """The options of `ambar.convert` for openPMD."""

    on_error: OnError = "stop"


def _match(paths: Sequence[AnyPath]) -> bool:
    return bool(paths) and is_openpmd(paths[0])


def _convert(request: OpenpmdRequest) -> Conversion:
    openpmd_api()
    start = time.perf_counter()
    known = _known(request)
    failures = _Failures(request.on_error)
    found = _scan(request.paths, failures)
    check_series(found)
    numbers = [number for _, own in found for number in own]
    new = sorted(set(numbers) - set(known))
    conversion = _SeriesConversion(request, new, failures)
    if new:
        with (
            progress_function(request.progress, f"converting {Path(request.name).name}") as report,
            create(
                request.target,
                request.mode,
                profile=request.profile,
                threads=request.threads,
                fsync=request.fsync,
            ) as writer,
        ):
            is_series = request.mode == "a" or len(numbers) > 1
            if is_series and not known:
                writer._create_group("/", {"ambar": {"version": 1, "kind": "series"}})
            conversion.write(writer, found, report, is_series=is_series)
        warn_of_loose_bounds(request.target, conversion.bounds)
    return Conversion(
        target=os.fspath(request.target),
        source_bytes=sum(size_of(path) for path, own in found if set(own) & set(new)),
        stored_bytes=size_of(Path(request.target)),
        seconds=time.perf_counter() - start,
        converted=conversion.converted,
        skipped=[_name(number) for number in numbers if number in known],
        failed=failures.messages,
        left_out=conversion.left_out,
    )


class _Failures:
    """What could not be converted: an error, or a list."""

    def __init__(self, on_error: OnError) -> None:
        if on_error not in ("stop", "skip"):
            raise _core.InvalidError(f"invalid on_error {on_error!r}; must be 'stop' or 'skip'")
        self._is_skipped = on_error == "skip"
        self.messages: dict[str, str] = {}
        self.first: Exception | None = None

    def add(self, name: str, error: Exception) -> None:
        """Keep an error; raise it unless failures are skipped."""
        if not self._is_skipped:
            raise error
        self.messages[name] = str(error)
        self.first = self.first or error


def _scan(paths: Sequence[AnyPath], failures: _Failures) -> Found:
    """Return the files, and the iterations of each."""
    found: Found = []
    for path in files_of(paths):
        try:
            check_file(path)
            found.append((path, iterations_of(path)))
        except (_core.AmbarError, OSError) as error:
            failures.add(path.name, error)
    if not found and failures.first is not None:
        raise failures.first
    return found


class _SeriesConversion:
    """Writes iterations to a store, and commits each."""

    def __init__(self, request: OpenpmdRequest, new: Sequence[int], failures: _Failures) -> None:
        self._new, self._failures = new, failures
        self.bounds = listed_bounds(request.error_bound)
        self.converted: list[str] = []
        self.left_out: dict[str, str] = {}

    def write(
        self, writer: Writer, found: Found, report: Progress | None, *, is_series: bool
    ) -> None:
        """Write the iterations of all files that are new."""
        done = 0
        for path, own in found:
            numbers = sorted(set(own) & set(self._new))
            if not numbers:
                continue
            with open_series(path) as series:
                for number in numbers:
                    size = max(size_of(path) // len(own), 1)
                    count = _counter(report, done, len(self._new), size)
                    group = f"/{_name(number)}" if is_series else ""
                    try:
                        self._write(writer, IterationReader(path, series, number, count), group)
                    except (_core.AmbarError, OSError) as error:
                        self._failures.add(f"iteration {number} of {path.name}", error)
                        if not is_series:
                            raise
                        if group in writer:
                            writer.remove(group)
                    done += 1
        if not self.converted and self._failures.first is not None:
            raise self._failures.first

    def _write(self, writer: Writer, reader: IterationReader, group: str) -> None:
        IterationImport(writer, group, reader, self.bounds).write()
        reader.close()
        for name in datasets_left_out(reader.path, reader.description):
            self.left_out[f"{reader.path.name}/{name}"] = "it is not defined by openPMD"
        writer.commit(f"iteration {reader.number} of {reader.path.name}")
        self.converted.append(_name(reader.number))


def _name(number: int) -> str:
    return f"output_{number:05}"


def _known(request: ConvertRequest) -> list[int]:
    """Return the iterations that the target has, for mode "a"; ValueError for another kind."""
    if request.mode != "a" or not Path(request.target).exists():
        return []
    from ambar.snapshot.series import Series

    store = Store._open(request.target)
    about = store._ambar_attributes()
    found = f"a store of the kind {about.get('kind', 'arrays')!r}"
    if about.get("kind") == "series" and "of" not in about:
        series = Series(store)
        codes = {info.code for one in series[:1] if isinstance(info := one.info, CodeInfo)}
        if len(series) == 0 or codes == {"openpmd"}:
            return series.outputs
        found = "a series of another code"
    raise _core.InvalidError(
        f'{os.fspath(request.target)}: expected a series of openPMD for mode="a", found {found}; '
        'choose another name, or replace the store with mode="w"'
    )


def _counter(report: Progress | None, done: int, all_: int, size: int) -> Callable[[int], None]:
    """Return a function that counts the bytes read of one iteration, and reports the progress."""
    read = 0

    def count(values: int) -> None:
        nonlocal read
        read += values
        if report is not None:
            report(done * _PARTS + min(read * _PARTS // size, _PARTS), all_ * _PARTS)

    return count


OPENPMD = Kind(
    name="openPMD series", match_source=_match, convert=_convert, convert_request=OpenpmdRequest
)
