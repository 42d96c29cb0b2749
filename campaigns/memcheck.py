"""Unit tests of Rust and sequences of C calls under valgrind.

Valgrind checks every access of the machine code. It reports accesses outside of memory blocks,
accesses after a block was freed, and branches that depend on uninitialized memory. Each case is one
unit test of ambar-codec or ambar, in an order that depends on the seed; every fifth case is a
sequence of c_calls. A test that takes longer than 90 s is ended and counted. Valgrind emulates a
processor with AVX2 and without AVX-512, and the tests that compare levels run at both.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np

from campaigns import programs
from campaigns.c_calls import run_sequence
from campaigns.campaign import Run

SECONDS = 90
"""Seconds after which a test is ended."""
CRATES = ("ambar_codec", "ambar")
_SUPPRESSED = Path(__file__).with_suffix(".supp")
_FOUND = 99


def run(run: Run) -> None:
    """Run tests until the time is used up, or there are no more."""
    valgrind = [
        programs.find_tool("valgrind"),
        "--quiet",
        f"--error-exitcode={_FOUND}",
        f"--suppressions={_SUPPRESSED}",
    ]
    # The threads of a pool still run at the end; Rust keeps only a pointer into their blocks.
    leaks = ["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]
    sequences = programs.build_sequences(run.folder)
    built = programs.build_unit_tests()
    tests = [(built[crate], name) for crate in CRATES for name in _tests(built[crate])]
    order = np.random.default_rng(run.seed).permutation(len(tests))
    run.begin()
    for case in run.cases(len(tests) + len(tests) // 4):
        if case % 5 == 4:
            run_sequence(run, case, [*valgrind, *leaks, str(sequences)], 20 * SECONDS)
        else:
            program, name = tests[order[case - case // 5]]
            _run_test(run, case, valgrind, program, name)


def _tests(program: Path) -> list[str]:
    done = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    return [line.removesuffix(": test") for line in done.stdout.splitlines() if ": test" in line]


def _run_test(run: Run, case: int, valgrind: list[str], program: Path, name: str) -> None:
    command = [*valgrind, "--leak-check=no", str(program), name, "--exact", "--test-threads=1"]
    crate = program.name.rpartition("-")[0].replace("_", "-")
    # Two random inputs for each property, because valgrind is slow; other runs use many.
    environment = {**os.environ, "PROPTEST_CASES": "2"}
    try:
        done = subprocess.run(
            command,
            cwd=programs.ROOT / "crates" / crate,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        run.count("not finished")
        return
    run.count("tests")
    if done.returncode == 0:
        return
    told = done.stderr if done.returncode == _FOUND else done.stdout + done.stderr
    run.finding(case, f"{crate}: {name}: exit code {done.returncode}: {told[:3000]}", what=name)
