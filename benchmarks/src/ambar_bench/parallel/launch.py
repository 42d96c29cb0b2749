"""Runs a version on some ranks, and returns the seconds that it printed."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ambar
from ambar_bench.parallel.build import Programs, quiet
from ambar_bench.parallel.versions import Version
from ambar_bench.process import CRASHES, TURN_LIMIT, Failure


@dataclass(frozen=True)
class Task:
    """What ranks are to do: some of write, cold and warm, with an array's values."""

    version: Version
    data: str
    doubles: int
    bound: float
    do: str
    writers: int = 0
    """Ranks that wrote what is read; 0 where the same ranks did."""


@dataclass
class Launcher:
    """How programs are started on many ranks."""

    programs: Programs
    command: list[str]

    def run(self, task: Task, ranks: int, folder: Path) -> dict[str, Any]:
        """Return what the first rank printed; a launch that failed before any rank is repeated.

        Raises
        ------
        Failure
            If a rank failed, or all took longer than a turn may.
        """
        arguments = [task.version.key, task.data, str(task.doubles), repr(task.bound)]
        arguments += [str(folder / "array"), str(task.writers), task.do]
        whole = [*self.command, "-n", str(ranks), *self._program(task.version), *arguments]
        why = ""
        for _ in range(CRASHES):
            code, said, complained = _finished(whole)
            lines = [line for line in said.splitlines() if line.startswith("{")]
            if code == 0 and lines:
                answer: dict[str, Any] = json.loads(lines[-1])
                if answer["ranks"] != ranks:
                    other = f"{answer['ranks']} ranks were started of {ranks}"
                    raise Failure(f"{other}: another MPI's mpirun?")
                return answer
            why, by_rank = _complaint(complained)
            if by_rank:
                break
        raise Failure(why or f"it ended with code {code}")

    def _program(self, version: Version) -> list[str]:
        if version.program == "rank":
            module = ["-P", "-W", "ignore", "-m", "ambar_bench.parallel.rank"]
            return [sys.executable, *module, str(self.programs.data)]
        return [str(self.programs.paths[version.program])]


def _finished(command: list[str]) -> tuple[int, str, str]:
    """Run a command, and return its code and what it printed.

    Raises
    ------
    Failure
        If it took longer than a turn may.
    """
    process = subprocess.Popen(  # noqa: S603 - our own programs
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )
    try:
        said, complained = process.communicate(timeout=TURN_LIMIT)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the ranks too
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise Failure(f"it took longer than {TURN_LIMIT:g} s") from None
        raise
    return process.returncode, said, complained


def _complaint(text: str) -> tuple[str, bool]:
    """Return the most informative line of a failed run, and whether it names a rank."""
    lines = [line.strip() for line in text.splitlines() if line.strip("-* \t")]
    own = [line.removeprefix("study: ") for line in lines if line.startswith("study: ")]
    raised = [line for line in lines if "Error: " in line or "on signal" in line]
    return ([*own, *raised, *lines, ""][0], bool(own or raised))


def launcher(programs: Programs, command: str | None) -> Launcher:
    """Return what starts ranks: `command`, or mpirun with more ranks than cores where need be.

    Raises
    ------
    KeyError
        If mpirun cannot be started.
    """
    if command is not None:
        return Launcher(programs, shlex.split(command))
    try:
        version = subprocess.run(
            ["mpirun", "--version"],  # noqa: S607 - the user's own MPI
            capture_output=True,
            text=True,
            check=False,
            env=quiet(),
        ).stdout
    except OSError as error:
        raise ambar.NotFoundError(
            f"mpirun: {error.strerror}; give --launcher, or make peers"
        ) from error
    many: Sequence[str] = ("--oversubscribe", "--bind-to", "none") if "Open MPI" in version else ()
    return Launcher(programs, ["mpirun", *many])


def environment() -> dict[str, str]:
    """Return the environment of ranks: with the installed plugins of HDF5."""
    values = quiet()
    # Many ranks on few cores: what waits for another rank lets it run.
    values.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    spec = find_spec("hdf5plugin")
    if spec is not None and spec.origin is not None:
        values.setdefault("HDF5_PLUGIN_PATH", str(Path(spec.origin).with_name("plugins")))
    return values
