"""The kind of openPMD series: converted to a snapshot, or a series of snapshots."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.progress import Progress, part_of_progress, progress_function
from ambar.formats.openpmd.conversion import DESCRIPTION, IterationImport
from ambar.formats.openpmd.files import check_file, files_of, is_openpmd, openpmd_api, size_of
from ambar.formats.openpmd.source import (
    IterationReader,
    SeriesCheck,
    datasets_left_out,
    is_file_based,
    iterations_of,
    open_series,
)
from ambar.kinds.conversion_options import KEY as OPTIONS
from ambar.kinds.conversion_options import check_options, stored_options
from ambar.kinds.failures import Failures
from ambar.kinds.registry import Kind, Resource
from ambar.kinds.request import Conversion, ConvertRequest, OnError
from ambar.kinds.request import Path as AnyPath
from ambar.snapshot.kind import check_series, output_name, warn_of_loose_bounds
from ambar.snapshot.series import Series
from ambar.store.error_bounds import listed_bounds
from ambar.store.writer import Writer


@dataclass(frozen=True, kw_only=True)
class OpenpmdRequest(ConvertRequest):
    """The options of `ambar.convert` for openPMD."""

    store_options = ("fields", "region", "steps")

    on_error: OnError = "stop"


def _match(paths: Sequence[AnyPath]) -> bool:
    return bool(paths) and is_openpmd(paths[0])


def _convert(request: OpenpmdRequest) -> Conversion:
    openpmd_api()
    start = time.perf_counter()
    conversion = _SeriesConversion(request)
    with progress_function(request.progress, f"converting {Path(request.name).name}") as report:
        conversion.run(report)
    warn_of_loose_bounds(request, conversion.bounds)
    return Conversion(
        target=os.fspath(request.target),
        source_bytes=conversion.source_bytes,
        stored_bytes=request.stored_bytes(),
        seconds=time.perf_counter() - start,
        converted=conversion.converted,
        skipped=conversion.skipped,
        failed=conversion.failures.messages,
        left_out=conversion.left_out,
    )


class _SeriesConversion:
    """Converts the files in their order, and commits each iteration."""

    def __init__(self, request: OpenpmdRequest) -> None:
        self._request = request
        self.failures = Failures(request.on_error)
        self.bounds = listed_bounds(request.error_bound)
        self.converted: list[str] = []
        self.skipped: list[str] = []
        self.left_out: dict[str, str] = {}
        self.source_bytes = 0
        check_series(request, "openpmd")
        self._options = stored_options(request, self.bounds)
        check_options(request, self._options)
        self._known, self._check = _stored(request)

    def run(self, report: Progress | None) -> None:
        """Convert the iterations that the target lacks; unknown files only are opened."""
        request, files = self._request, files_of(self._request.paths)
        numbers = _numbers_of(files) if self._known else {}
        new = [path for path in files if numbers.get(path) not in self._known]
        self.skipped = [output_name(numbers[path]) for path in files if path not in new]
        if not new:
            return
        with request.create() as writer:
            for index, path in enumerate(new):
                try:
                    check_file(path)
                    own = iterations_of(path)
                    self._check.add(path, own)
                except (_core.AmbarError, OSError) as error:
                    self.failures.add(path.name, error)
                    continue
                is_series = request.mode == "a" or len(files) > 1 or len(own) > 1
                part = report and part_of_progress(report, index, len(new))
                self._convert_file(writer, path, sorted(own), part, is_series=is_series)
            if not self.converted and self.failures.first is not None:
                raise self.failures.first

    def _convert_file(
        self,
        writer: Writer,
        path: Path,
        numbers: Sequence[int],
        report: Progress | None,
        *,
        is_series: bool,
    ) -> None:
        """Write the iterations of a file that are new."""
        self.skipped += [output_name(number) for number in numbers if number in self._known]
        new = [number for number in numbers if number not in self._known]
        if not new:
            return
        self.source_bytes += size_of(path)
        if is_series and not self._known and not self.converted:
            own = {"version": 1, "kind": "series", OPTIONS: self._options}
            writer._create_group("/", {"ambar": own})
        with open_series(path) as series:
            for index, number in enumerate(new):
                group = f"/{output_name(number)}" if is_series else ""
                progress = report and part_of_progress(report, index, len(new))
                try:
                    self._write(writer, IterationReader(path, series, number), group, progress)
                except (_core.AmbarError, OSError) as error:
                    self.failures.add(f"iteration {number} of {path.name}", error)
                    if not is_series:
                        raise
                    if group in writer:
                        writer.remove(group)

    def _write(
        self, writer: Writer, reader: IterationReader, group: str, progress: Progress | None
    ) -> None:
        IterationImport(writer, group, reader, self.bounds, progress).write()
        reader.close()
        for name in datasets_left_out(reader.path, reader.description):
            self.left_out[f"{reader.path.name}/{name}"] = "it is not defined by openPMD"
        writer.commit(f"iteration {reader.number} of {reader.path.name}")
        self.converted.append(output_name(reader.number))


def _stored(request: ConvertRequest) -> tuple[set[int], SeriesCheck]:
    """Return the iterations that the target has, for mode "a", and a check of further ones."""
    store = request.existing
    if store is None:
        return set(), SeriesCheck()
    series = Series(store)
    if not len(series):
        return set(), SeriesCheck()
    description = json.loads(str(store[f"{output_name(series.outputs[0])}/{DESCRIPTION}"][0]))
    meshes = sorted(description["meshes"]["records"])
    return set(series.outputs), SeriesCheck((series.outputs[0], meshes))


def _numbers_of(files: Sequence[Path]) -> dict[Path, int]:
    """Return the iteration of each file, by its name, of a series with a file for each iteration.

    Empty for other files. Only the first one is opened.
    """
    numbers = {path: int(found[-1]) for path in files if (found := re.findall(r"\d+", path.stem))}
    if len(set(numbers.values())) < len(files):
        return {}
    first = files[0]
    try:
        is_named = is_file_based(first) and list(iterations_of(first)) == [numbers[first]]
    except (_core.AmbarError, OSError):
        return {}  # the conversion reports it
    return numbers if is_named else {}


def _summarize(resource: Resource) -> dict[str, Any]:
    """Return the files, and the meshes and species of the first iteration."""
    openpmd_api()
    files = files_of([resource.location])
    numbers = _numbers_of(files)
    iterations = [numbers[path] for path in files] if numbers else []
    for path in () if numbers else files:
        iterations += sorted(iterations_of(path))
    with open_series(files[0]) as series:
        reader = IterationReader(files[0], series, min(iterations_of(files[0])))
        records = reader.description["meshes"]["records"]
        species = reader.description["particles"]["species"]
        reader.close()
    return {
        "files": len(files),
        "bytes": sum(map(size_of, files)),
        "iterations": iterations,
        "meshes": list(records),
        "particles": list(species),
    }


OPENPMD = Kind(
    name="openPMD series",
    match_source=_match,
    summarize=_summarize,
    convert=_convert,
    convert_request=OpenpmdRequest,
)
