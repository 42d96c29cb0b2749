"""Print how small fields of RAMSES get within error bounds: in a row, and from the cells around.

    python -m ambar_bench.ramses.bounds output_00002 ...

For each output and bound (relative to each field's range): the ratio of all raw bytes of the fields
to all stored ones, for streams of 32,768 cells in a row and for a store; then the time of writing
the store, and of reading all fields, of the streams in a row and of the store, with one thread (the
shortest of several); and the largest error in units of the bound.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import zarr

import ambar
from ambar import _core

BOUNDS = [1e-2, 1e-3, 1e-4]
ROWS = 32_768
TIMES = 7
HEAD = """\
| output | cells | bound | ratio in a row | in the store | writing, s \
| reading in a row, MB/s | from the store | largest error |
|---|---|---|---|---|---|---|---|---|
"""


def shortest(work: Callable[[], object]) -> float:
    """Return the shortest time of a call, in seconds."""
    times = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def in_a_row(values: dict[str, np.ndarray], bounds: dict[str, float]) -> tuple[int, float]:
    """Return the bytes of streams of rows, and the time that decoding them takes."""
    streams = []
    for name, of_field in values.items():
        column = np.ascontiguousarray(of_field)
        middle = column[len(column) // ROWS // 2 * ROWS :][:ROWS]
        plan = _core.codec_tune(middle, None, bounds[name])
        for first in range(0, len(column), ROWS):
            part = column[first : first + ROWS]
            stream = _core.codec_encode(part, None, bounds[name], plan)
            streams.append((stream, str(part.dtype), [len(part)]))
    return (
        sum(len(stream) for stream, *_ in streams),
        shortest(lambda: [_core.codec_decode(*stream) for stream in streams]),
    )


def measure(output: Path, bound: float, folder: Path) -> str:
    """Return a line of the table."""
    amr: Any = ambar.open_snapshot(output).load("cells").amr
    spans = {}
    for name, column in amr.read(list(amr.fields)).items():
        if column.dtype.kind == "f" and column.max() > column.min():
            spans[name] = bound * float(column.max() - column.min())
    exact = {name: np.asarray(column) for name, column in amr.read(list(spans)).items()}
    target = folder / "x.ambar"
    writing = shortest(
        lambda: ambar.convert(
            output,
            target,
            error_bound=f"{bound} of range",
            profile="small",
            fsync=False,
            mode="w",
        )
    )
    group: Any = zarr.open_group(zarr.storage.ZipStore(target, mode="r"), mode="r")
    stored = sum(group[f"amr/{name}"].nbytes_stored() for name in spans)
    run: Any = ambar.open(target)
    reading = shortest(lambda: run.amr.read(list(spans), threads=1))
    got = run.amr.read(list(spans))
    worst = max(float(np.abs(exact[name] - got[name]).max()) / spans[name] for name in spans)
    raw = sum(column.nbytes for column in exact.values())
    row, decoding = in_a_row(exact, spans)
    return (
        f"| {output.parent.name} | {len(got['density']):,} | {bound:g} | {raw / row:.1f} "
        f"| {raw / stored:.1f} | {writing:.2f} | {raw / decoding / 1e6:.0f} "
        f"| {raw / reading / 1e6:.0f} | {worst:.4f} |"
    )


if __name__ == "__main__":
    sys.stdout.write(HEAD)
    with tempfile.TemporaryDirectory() as temporary:
        for argument in sys.argv[1:]:
            for relative in BOUNDS:
                sys.stdout.write(measure(Path(argument), relative, Path(temporary)) + "\n")
                sys.stdout.flush()
