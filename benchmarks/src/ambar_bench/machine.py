"""What a study runs on: processor, cores, system, versions of what it measures."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def machine(packages: Iterable[str]) -> dict[str, str]:
    """Return processor, cores, system, date, and the versions of ambar, numpy and `packages`."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), "")
    found = {
        "processor": model or platform.processor() or platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }
    for package in ("ambar", "numpy", *packages):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
