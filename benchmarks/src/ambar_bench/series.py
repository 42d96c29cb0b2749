"""A run of many outputs in one store: bytes, and times to open it, to read and to append a step.

python -m ambar_bench.series OUTPUT [STEPS]

OUTPUT is a small RAMSES output. The run is made of its files, linked under other numbers.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ambar

_OPENING = """
import sys, time
import ambar
ambar.open_series(sys.argv[1])  # imports, and the page cache
begin = time.perf_counter()
series = ambar.open_series(sys.argv[1])
opened = time.perf_counter()
series[len(series) // 2].amr.read()
print(opened - begin, time.perf_counter() - opened)
"""


def link_output(output: Path, run: Path, number: int) -> Path:
    """Link the files of an output into a folder of the run, as the output of another number."""
    old, new = output.name[-5:], f"{number:05}"
    folder = run / f"output_{new}"
    folder.mkdir(parents=True)
    for file in output.iterdir():
        name = re.sub(rf"_{old}(?=\.)", f"_{new}", file.name)
        os.link(file.resolve(), folder / name)
    return folder


def main() -> None:
    """Print the measurements."""
    output, steps = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    with tempfile.TemporaryDirectory(dir=output.parent) as scratch:
        run, store = Path(scratch) / "run", Path(scratch) / "run.ambar"
        for number in range(1, steps + 1):
            link_output(output, run, number)
        begin = time.perf_counter()
        ambar.convert(run, store, fsync=False)
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        _say("converting", f"{seconds:.1f} s, {1e3 * seconds / steps:.2f} ms a step")
        _say("peak memory", f"{peak / 1e6:.0f} MB")
        usage = ambar.open_store(store).usage()
        _say("file", f"{usage['total'] / 1e6:.1f} MB in {usage['entries']:,} entries")
        _say("bytes that compact would free", f"{usage['dead'] / 1e6:.1f} MB")
        command = [sys.executable, "-c", _OPENING, str(store)]
        runs = [
            subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()  # noqa: S603
            for _ in range(5)
        ]
        opening, reading = (sorted(map(float, column))[2] for column in zip(*runs, strict=True))
        _say("opening", f"{1e3 * opening:.1f} ms")
        _say("reading a step after that", f"{1e3 * reading:.1f} ms")
        link_output(output, run, steps + 1)
        begin = time.perf_counter()
        ambar.convert(run, store, mode="a", fsync=False)
        _say("looking at all outputs, and appending one", f"{time.perf_counter() - begin:.2f} s")


def _say(what: str, found: str) -> None:
    print(f"{what}: {found}")  # noqa: T201


if __name__ == "__main__":
    main()
