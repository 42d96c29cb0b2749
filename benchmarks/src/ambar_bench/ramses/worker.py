"""A process that measures one reader: it loads each time a line comes in, and answers in JSON.

It is run by its path, and imports no part of ambar unless it measures ambar: what a peer's
process holds is the peer's.
"""

from __future__ import annotations

import time

_STARTED = time.perf_counter()

import gc  # noqa: E402 - the imports are part of the first load
import json  # noqa: E402
import os  # noqa: E402
import re  # noqa: E402
import runpy  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

TURN_SECONDS = 0.3


def serve(task: dict[str, Any]) -> None:
    """Load now, and for every line of the standard input until warm; answer with the seconds.

    The first answer also has the seconds of the imports, the peak of resident memory, the bytes of
    the columns, and what `fingerprints` says of them.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the programs print is not an answer
    readers = runpy.run_path(str(Path(__file__).with_name("readers.py")))["READERS"]
    reader = readers[task["reader"]](Path(task["path"]), task["parts"], task["threads"])
    imported = time.perf_counter()
    loaded = reader.load()
    answer: dict[str, Any] = {"seconds": time.perf_counter() - _STARTED}
    answer |= {"import_seconds": imported - _STARTED, "peak_bytes": peak_memory()}
    columns = reader.columns(loaded)
    answer["column_bytes"] = sum(column.nbytes for column in columns.values())
    answer["columns"] = fingerprints(columns)
    answers.write(json.dumps(answer) + "\n")
    del columns, loaded
    gc.collect()
    for _ in sys.stdin:
        answers.write(json.dumps({"seconds": turn(reader)}) + "\n")


def turn(reader: Any) -> float:
    """Return the median seconds of the loads of one turn, without the first.

    What ran since the last turn has emptied the processor's caches and let it doze: a turn goes on
    until `TURN_SECONDS` have passed, with two loads at least.
    """
    begun = time.perf_counter()
    reader.load()
    gc.collect()
    times: list[float] = []
    while not times or time.perf_counter() - begun < TURN_SECONDS:
        started = time.perf_counter()
        loaded = reader.load()
        times.append(time.perf_counter() - started)
        del loaded
    gc.collect()
    return statistics.median(times)


def fingerprints(columns: dict[str, Any]) -> dict[str, list[float]]:
    """Return fingerprints of columns that ignore their unit, type and order of rows.

    That is per column the number of rows, the sum, and the largest magnitude, the last two divided
    by the sum of the magnitudes; all of what is finite.
    """
    import numpy as np

    prints = {}
    for name, column in columns.items():
        values = np.asarray(column, np.float64)
        values = np.where(np.isfinite(values), values, 0.0)
        magnitudes = np.abs(values)
        total = float(magnitudes.sum()) or 1.0
        largest = float(magnitudes.max()) if values.size else 0.0
        prints[name] = [float(values.size), float(values.sum()) / total, largest / total]
    return prints


def peak_memory() -> int:
    """Return the bytes of the peaks of resident memory of this process and its children."""
    own = os.getpid()
    processes = {int(entry.name): entry for entry in Path("/proc").glob("[0-9]*")}
    family = [p for pid, p in processes.items() if own in (pid, _status(p, "PPid"))]
    kilobytes = sum(_status(process, "VmHWM") for process in family)
    if kilobytes:
        return kilobytes * 1024
    import resource  # without /proc: macOS, which counts in bytes

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _status(process: Path, key: str) -> int:
    try:
        found = re.search(rf"^{key}:\s*(\d+)", (process / "status").read_text(), re.MULTILINE)
    except OSError:  # it has ended meanwhile
        return 0
    return int(found[1]) if found else 0


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
