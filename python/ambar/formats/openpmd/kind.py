"""The kind of openPMD series: converted to a snapshot, or a series of snapshots."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ambar import _core
from ambar._util.progress import Progress, progress_function
from ambar.formats.openpmd.conversion import IterationImport
from ambar.formats.openpmd.files import files_of, is_openpmd, openpmd_api, size_of
from ambar.formats.openpmd.source import (
    IterationReader,
    check_series,
    datasets_left_out,
    iterations_of,
    open_series,
)
from ambar.kinds.registry import Kind
from ambar.kinds.request import Conversion, ConvertRequest
from ambar.kinds.request import Path as AnyPath
from ambar.snapshot.kind import warn_of_loose_bounds
from ambar.store.error_bounds import listed_bounds
from ambar.store.store import Store
from ambar.store.writer import create

_PARTS = 1000
"""The progress of one iteration."""
Found = list[tuple[Path, Mapping[int, Sequence[str]]]]
"""Files, and the iterations and meshes of each."""


def _match(paths: Sequence[AnyPath]) -> bool:
    return bool(paths) and is_openpmd(paths[0])


def _convert(request: ConvertRequest) -> Conversion:
    openpmd_api()
    start = time.perf_counter()
    bounds = listed_bounds(request.error_bound)
    known = _known(request)
    found: Found = [(path, iterations_of(path)) for path in files_of(request.paths)]
    check_series(found)
    numbers = [number for _, own in found for number in own]
    is_series = request.mode == "a" or len(numbers) > 1
    new = sorted(set(numbers) - set(known))
    left_out: dict[str, str] = {}
    source_bytes = sum(size_of(path) for path, own in found if set(own) & set(new))
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
            if is_series and not known:
                writer._create_group("/", {"ambar": {"version": 1, "kind": "series"}})
            done = 0
            for path, own in found:
                with open_series(path) as series:
                    for number in sorted(set(own) & set(new)):
                        count = _counter(report, done, len(new), _size_of(path, len(own)))
                        reader = IterationReader(path, series, number, count)
                        group = f"/{_name(number)}" if is_series else ""
                        IterationImport(writer, group, reader, bounds).write()
                        reader.close()
                        for name in datasets_left_out(path, reader.description):
                            left_out[f"{path.name}/{name}"] = "it is not defined by openPMD"
                        writer.commit(f"iteration {number} of {path.name}")
                        done += 1
        warn_of_loose_bounds(request.target, bounds)
    return Conversion(
        target=os.fspath(request.target),
        source_bytes=source_bytes,
        stored_bytes=size_of(Path(request.target)),
        seconds=time.perf_counter() - start,
        converted=[_name(number) for number in new],
        skipped=[_name(number) for number in numbers if number in known],
        left_out=left_out,
    )


def _name(number: int) -> str:
    return f"output_{number:05}"


def _known(request: ConvertRequest) -> list[int]:
    """Return the iterations that the target has, for mode "a"; ValueError for another kind."""
    if request.mode != "a" or not Path(request.target).exists():
        return []
    from ambar.snapshot.series import Series

    store = Store._open(request.target)
    about = store._ambar_attributes()
    if about.get("kind") != "series" or "of" in about:
        raise _core.InvalidError(
            f'{os.fspath(request.target)}: expected a series of outputs for mode="a", found a '
            f"store of the kind {about.get('kind', 'arrays')!r}; choose another name, or replace "
            'the store with mode="w"'
        )
    return Series(store).outputs


def _size_of(path: Path, iterations: int) -> int:
    return max(size_of(path) // iterations, 1)


def _counter(report: Progress | None, done: int, all_: int, size: int) -> Callable[[int], None]:
    """Return a function that counts the bytes read of one iteration, and reports the progress."""
    read = 0

    def count(values: int) -> None:
        nonlocal read
        read += values
        if report is not None:
            report(done * _PARTS + min(read * _PARTS // size, _PARTS), all_ * _PARTS)

    return count


OPENPMD = Kind(name="openPMD series", match_source=_match, convert=_convert)
