"""Random sequences of calls of the C API, checked by AddressSanitizer and by a model.

Each case is one run of c/sequences.c, which writes and reads a store with right and wrong calls,
and compares all values that it reads with those that it wrote. The program is compiled with
AddressSanitizer and UndefinedBehaviorSanitizer; the library is not. In the library, the sanitizer
detects wrong accesses in memcpy, memmove, memset and the string functions, which it replaces, and
memory blocks that are freed twice or never. It also checks the accesses of the program itself.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from campaigns import programs
from campaigns.campaign import Run, removed

SECONDS = 120
"""Seconds after which a run of the program counts as hanging."""
_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def run(run: Run) -> None:
    """Run sequences until the time is used up."""
    program = programs.build_sequences(run.folder, *programs.SANITIZED)
    run.begin()
    for case in run.cases():
        run_sequence(run, case, [str(program)], SECONDS)


def run_sequence(run: Run, case: int, command: list[str], seconds: float) -> None:
    """Run the sequence of a case, count its calls, and report errors."""
    store = removed(run.folder / "sequence.ambar")
    seed = int(run.random(case).integers(2**62))
    command = [*command, str(store), str(seed)]
    environment = {**os.environ, **_OPTIONS}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds, env=environment
        )
    except subprocess.TimeoutExpired:
        run.finding(case, f"sequence {seed}: no end after {seconds:g} s", *_files(store))
        return
    if done.returncode != 0:
        report = done.stderr.strip()
        text = f"sequence {seed}: exit code {done.returncode}: {report[:3000]}"
        run.finding(case, text, *_files(store), what=_kind(report))
        return
    calls, refused = (int(number) for number in done.stdout.split())
    run.count("sequences")
    run.count("calls", calls)
    run.count("of them refused", refused)


def _kind(report: str) -> str:
    """Return the first line with an error, which findings of one cause have in common."""
    lines = [line for line in report.splitlines() if "ERROR" in line or "error:" in line]
    return (lines or report.splitlines() or [""])[0].split(" 0x")[0].split("==")[-1]


def _files(store: Path) -> list[Path]:
    return [store] if store.exists() else []
