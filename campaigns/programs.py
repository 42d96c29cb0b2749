"""Builds the programs of the memory safety campaigns: C library, C program, unit tests."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

from campaigns.campaign import MissingToolError

ROOT = Path(__file__).parents[1]
PREFIX = ROOT / "target" / "prefix"
SEQUENCES = Path(__file__).parent / "c" / "sequences.c"
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_UNIT_TESTS = ("--workspace",)


def find_tool(name: str) -> str:
    """Return the path of a program; raise MissingToolError if it is not installed."""
    cargo_bin = str(Path.home() / ".cargo" / "bin")
    found = shutil.which(name) or shutil.which(name, path=cargo_bin)
    if found is None:
        raise MissingToolError(f"{name} is not installed")
    return found


def build_sequences(folder: Path, *flags: str) -> Path:
    """Install the C library and compile sequences.c against it; return the program."""
    compiler = find_tool("gcc")
    find_tool("cargo")
    library = PREFIX / "lib"
    _output(find_tool("make"), "--no-print-directory", "install", f"PREFIX={PREFIX}")
    if "-fsanitize=address,undefined" in flags:
        _check_sanitizers(compiler, folder)
    program = folder / "sequences"
    command = [compiler, "-g", "-O1", "-Wall", "-Wextra", "-Werror", *flags, f"-I{PREFIX}/include"]
    command += [str(SEQUENCES), "-o", str(program), f"-L{library}", "-lambar"]
    _output(*command, f"-Wl,-rpath,{library}", "-lm")
    return program


def build_unit_tests() -> dict[str, Path]:
    """Build the unit tests of all crates, as `make test` does; return the programs by crate."""
    cargo = find_tool("cargo")
    command = [cargo, "test", "--release", "--locked", *_UNIT_TESTS, "--lib", "--no-run"]
    programs = {}
    for line in _output(*command, "--message-format=json").splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("executable") and message["profile"]["test"]:
            programs[message["target"]["name"]] = Path(message["executable"])
    return programs


def _check_sanitizers(compiler: str, folder: Path) -> None:
    source = folder / "empty.c"
    source.write_text("int main(void) { return 0; }\n")
    command = [compiler, *SANITIZED, str(source), "-o", str(folder / "empty")]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        raise MissingToolError("gcc has no libasan and libubsan")


def _output(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-4000:]}")
    return done.stdout
