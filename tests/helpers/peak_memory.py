"""The memory that a conversion needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONVERT = """
import sys
import ambar

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

source, target, threads = sys.argv[1:]
ambar.open_snapshot(source)
before = peak()
ambar.convert(source, target, threads=int(threads), fsync=False)
print(peak() - before)
"""


def conversion_memory(source: Path, target: Path) -> int:
    """Convert with two threads; return the bytes of resident memory at the peak, above before."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    command = [sys.executable, "-c", CONVERT, str(source), str(target), "2"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
