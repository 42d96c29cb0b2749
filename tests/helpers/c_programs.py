"""Small C programs that the tests compile against the installed library."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wcast-qual", "-Wsign-conversion", "-Werror"]
PREFIX = ROOT / "target" / "prefix"


@functools.cache
def installed() -> Path:
    """Return the folder that ``make install`` has filled; skip where it cannot."""
    for tool in ("make", "cargo", "gcc"):
        if shutil.which(tool) is None and not (Path.home() / ".cargo/bin" / tool).exists():
            pytest.skip(f"{tool} is missing, so that the C API cannot be built")
    command = ["make", "--no-print-directory", "install", f"PREFIX={PREFIX}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return PREFIX


def compile_program(
    source: Path,
    target: Path,
    compiler: str = "gcc",
    flags: tuple[str, ...] = (),
    *,
    static: bool = False,
) -> Path:
    """Compile `source` against the library into `target`, all warnings being errors."""
    prefix = installed()
    library = (
        [f"{prefix}/lib/libambar.a", "-lpthread", "-ldl"]
        if static
        else [f"-L{prefix}/lib", "-lambar", f"-Wl,-rpath,{prefix}/lib"]
    )
    command = [compiler, "-O1", *WARNINGS, *flags, f"-I{prefix}/include"]
    command += [str(source), "-o", str(target), *library, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def run_program(*command: str | os.PathLike[str]) -> str:
    """Run a program; return what it has printed."""
    done = subprocess.run(
        [os.fspath(word) for word in command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    return done.stdout
