"""The MPIs of this machine: how programs are built with them, and run."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers.c_programs import installed
from tests.helpers.paths import PROGRAMS, ROOT

SOURCES = PROGRAMS / "mpi"
FORTRAN = ROOT / "include" / "fortran"
MODULES = ("ambar_c", "ambar_reading", "ambar_writing", "ambar_in_situ", "ambar")
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
OF_C = ["-Wshadow", "-Wcast-qual", "-Wsign-conversion"]
LIMIT = 120  # seconds that a run may take: more is a hang


@dataclass(frozen=True)
class Mpi:
    """One MPI: its compilers, its mpirun, and the options that a run of it needs."""

    name: str
    suffix: str

    def command(self, tool: str) -> str:
        return f"{tool}{self.suffix}"

    def mpirun(self, ranks: int) -> list[str]:
        options = ["-n", str(ranks)]
        if self.name == "openmpi":
            options += ["--allow-run-as-root", "--oversubscribe"]
        return [self.command("mpirun"), *options]

    def for_mpi4py(self, folder: Path) -> dict[str, str]:
        """Return variables with which a wheel of mpi4py loads the library that mpirun is of."""
        if self.name == "openmpi":
            return {"MPI4PY_MPIABI": "openmpi"}
        # Wheels ask for MPICH by the name that all of its kin agreed upon; Debian has another.
        places = sorted(Path("/usr/lib").glob("*/libmpich.so.12"))
        if not places:
            return {"MPI4PY_MPIABI": "mpich"}
        link = folder / "libmpi.so.12"
        if not link.is_symlink():
            link.symlink_to(places[0])
        return {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": str(folder)}


def found_mpis() -> list[Mpi]:
    """Return the MPIs that can compile and run; Debian distinguishes several by suffixes."""
    found: list[Mpi] = []
    for suffix in (".openmpi", ".mpich", ""):
        mpicc, mpirun = shutil.which(f"mpicc{suffix}"), shutil.which(f"mpirun{suffix}")
        if mpicc is None or mpirun is None:
            continue
        shown = subprocess.run([mpirun, "--version"], check=False, capture_output=True, text=True)
        text = (shown.stdout + shown.stderr).lower()
        name = next((name for tag, name in KINDS.items() if tag in text), None)
        if name and name not in [other.name for other in found]:
            found.append(Mpi(name, suffix))
    return found


KINDS = {"open mpi": "openmpi", "openrte": "openmpi", "hydra": "mpich", "mpich": "mpich"}
MPIS = found_mpis()
each_mpi = pytest.mark.parametrize(
    "mpi",
    MPIS or [pytest.param(None, marks=pytest.mark.skip(reason="no mpicc and mpirun here"))],
    ids=lambda mpi: mpi.name if mpi else "none",
)


def compile_program(mpi: Mpi, source: Path, folder: Path, *defines: str) -> Path:
    """Compile a program in C, C++ or Fortran with one MPI, with warnings as errors; return it."""
    tool = {".c": "mpicc", ".cpp": "mpicxx", ".f90": "mpifort"}[source.suffix]
    program = folder / f"{source.stem}-{tool}-{mpi.name}{len(defines)}"
    if program.exists():
        return program
    sources = [str(source)]
    if source.suffix == ".f90":
        if shutil.which(mpi.command("mpifort")) is None:
            pytest.skip(f"no {mpi.command('mpifort')} here")
        modules = [f"{FORTRAN}/{name}.f90" for name in MODULES]
        shim = folder / f"ambar_fortran-{mpi.name}.o"
        compiled(
            [
                mpi.command("mpicc"),
                *WARNINGS,
                *OF_C,
                "-O2",
                "-c",
                f"{FORTRAN}/ambar_fortran.c",
                "-o",
                shim,
            ]
        )
        sources = [*modules, f"{FORTRAN}/ambar_mpi.f90", *sources, str(shim)]
    prefix = installed()
    # The directories of some MPIs' headers are not system headers: their warnings are not ours.
    without = ["-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
    quiet = ["-Wno-cast-function-type", *without] if tool == "mpicxx" else []
    more = ["-std=f2008ts"] if tool == "mpifort" else OF_C
    compiled(
        [
            *(
                mpi.command(tool),
                *WARNINGS,
                *more,
                *quiet,
                *defines,
                "-O2",
                f"-I{prefix}/include",
                *sources,
            ),
            *("-o", program, f"-L{prefix}/lib", "-lambar", f"-Wl,-rpath,{prefix}/lib", "-lm"),
        ],
        folder,
    )
    return program


def compiled(command: Sequence[str | Path], folder: Path | None = None) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, done.stderr


def run(
    mpi: Mpi,
    ranks: int,
    *command: str | Path,
    environment: Mapping[str, str] | None = None,
    expect: int | None = 0,
) -> subprocess.CompletedProcess[str]:
    """Run a program on some ranks; it must end in time, and with this status unless it is None."""
    words = [*mpi.mpirun(ranks), *map(str, command)]
    done = subprocess.run(
        words,
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        env=variables(environment),
    )
    if expect is not None and not (expect == 0 and lost_by_mpirun(done.stderr)):
        assert done.returncode == expect, f"{words}: {done.stdout}{done.stderr}"
    return done


def lost_by_mpirun(errors: str) -> bool:
    """Whether mpirun missed that a rank had ended, on a busy machine, and no rank complained.

    Open MPI 4.1 then speaks of a process with the number 0.
    """
    lost = "with PID 0 on" in errors and "exiting improperly" in errors
    return lost and not any(word in errors for word in ("wrong values", "status ", "Traceback"))


@functools.cache
def scratch() -> str:
    """Return a folder for what Open MPI's mpirun keeps, which others on the machine do not share.

    Its path is short: it contains sockets.
    """
    folder = tempfile.mkdtemp(prefix="ompi")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def variables(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a run, without what another launcher left in ours."""
    ours = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OMPI_", "PMI_", "PMIX_", "SLURM_"))
    }
    python = f"{ROOT / 'python'}{os.pathsep}{ours.get('PYTHONPATH', '')}".rstrip(os.pathsep)
    # Ranks wait for each other on cores that they share.
    calm = {
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
        "OMPI_MCA_orte_tmpdir_base": scratch(),
    }
    return {**ours, **calm, "PYTHONPATH": python, **(more or {})}


def python_run(
    mpi: Mpi, ranks: int, folder: Path, *command: str | Path
) -> subprocess.CompletedProcess[str]:
    """Run a Python program on some ranks, with mpi4py using the library of this MPI."""
    pytest.importorskip("mpi4py")
    return run(mpi, ranks, sys.executable, *command, environment=mpi.for_mpi4py(folder))
