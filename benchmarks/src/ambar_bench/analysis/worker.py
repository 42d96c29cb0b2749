"""A process that repeats one task with one tool, and imports no other tool."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ambar_bench.analysis.tools import TOOLS
from ambar_bench.process import serve
from ambar_bench.ramses.worker import peak_memory


def start() -> Callable[[str], dict[str, Any]]:
    """Import the tool, and return the function that runs the task."""
    task = json.loads(sys.argv[1])
    tool = TOOLS[task["tool"]](task)
    idle = peak_memory()

    def answer(_: str) -> dict[str, Any]:
        gc.collect()
        began = time.perf_counter()
        result = tool.run(task["task"])
        seconds = time.perf_counter() - began
        return {
            "seconds": seconds,
            "peak_bytes": peak_memory(),
            "idle_bytes": idle,
            "result": fingerprint(result),
        }

    return answer


def fingerprint(result: Any) -> list[float]:
    """Return the numbers of a short result; of a longer one their sum, and that of their roots."""
    numbers = np.nan_to_num(np.asarray(result, np.float64).ravel())
    if numbers.size <= 8:
        return [float(number) for number in numbers]
    return [float(numbers.sum()), float(np.sqrt(np.abs(numbers)).sum())]


if __name__ == "__main__":
    serve(start)
