"""Compiles the programs of the study: those whose libraries are there."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import ambar
from ambar_bench.process import Failure

SOURCES = Path(__file__).with_name("native")
TREE = SOURCES.parents[4]
"""The source tree that contains this package."""
# Without contraction every machine's multiplications and additions give the same doubles.
FLAGS = ("-std=gnu11", "-O3", "-ffp-contract=off", "-Wall")
PACKAGES = {
    "netcdf": ("netcdf-mpi", "netcdf"),
    "pnetcdf": ("pnetcdf",),
    "hdf5": ("hdf5-openmpi", "hdf5-mpich", "hdf5-mpi", "hdf5"),
}
"""Names of pkg-config under which a library for MPI may be known."""
HEADERS = {"netcdf": "netcdf_par.h", "adios2": "adios2_c.h", "ambar": "ambar_mpi.h"}
"""What is missing where a program cannot be compiled."""
BUILD_LIMIT = 300.0
"""Seconds after which a compiler counts as hung."""


@dataclass
class Programs:
    """What could be compiled, and why the rest could not."""

    folder: Path
    paths: dict[str, Path] = field(default_factory=dict)
    releases: dict[str, str] = field(default_factory=dict)
    """Of each program's library."""
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """The shared library of the values, for Python's ranks."""
        return self.folder / "libdata.so"


def compiler() -> str:
    """Return the path of MPI's compiler: `$MPICC`, or mpicc.

    Raises
    ------
    KeyError
        If it does not exist.
    """
    name = os.environ.get("MPICC", "mpicc")
    found = shutil.which(name)
    if found is None:
        raise ambar.NotFoundError(
            f"{name}: no such compiler; the study compiles its programs with MPI's: make peers, or "
            "apt-get install libopenmpi-dev openmpi-bin"
        )
    return found


def build(folder: Path, programs: set[str]) -> Programs:
    """Compile programs into a folder; `missing` has the reasons of failures.

    Raises
    ------
    KeyError
        If no compiler is installed.
    """
    mpicc = compiler()
    made = Programs(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = [mpicc, *FLAGS, "-shared", "-fPIC", str(SOURCES / "data.c"), "-o", str(made.data)]
    _run([*data, "-lm", "-lpthread"])
    for program in sorted(programs - {"rank"}):
        target = folder / program
        common = [str(SOURCES / name) for name in ("main.c", "data.c", f"{program}.c")]
        why = ""
        for flags in _flags(program):
            try:
                _run([mpicc, *FLAGS, *common, "-o", str(target), *flags, "-lm", "-lpthread"])
                made.releases[program] = _run([str(target), "library"])
            except Failure as failure:
                why = why or str(failure)
                continue
            made.paths[program] = target
            break
        else:
            made.missing[program] = why or f"no {HEADERS.get(program, program)} was found"
    return made


def _flags(program: str) -> list[list[str]]:
    """Return ways to tell the compiler where a library is, the likeliest first."""
    if program == "ambar":
        return _ambar()
    if program == "adios2":
        return _adios2()
    if program not in PACKAGES:
        return [[]]
    found = []
    for package in PACKAGES[program]:
        try:
            flags = _run(["pkg-config", "--cflags", "--libs", package]).split()
            prefix = _run(["pkg-config", "--variable=prefix", package])
        except Failure:
            continue
        found.append([f"-I{prefix}/include", *flags])
    return found


def _adios2() -> list[list[str]]:
    """Return the flags of ADIOS2: of `$ADIOS2_DIR`, of `make peers`, or of the installed one."""
    commands: list[Path | str] = [TREE / "target" / "peers" / "adios2" / "bin" / "adios2-config"]
    commands.append("adios2-config")
    if given := os.environ.get("ADIOS2_DIR"):
        commands = [Path(given) / "bin" / "adios2-config"]
    found = []
    for command in commands:
        with contextlib.suppress(Failure):
            flags = _run([str(command), "--c-flags", "--c-libs"]).split()
            there = [f"-Wl,-rpath,{flag[2:]}" for flag in flags if flag.startswith("-L")]
            found.append([*flags, *there])
    return found


def _ambar() -> list[list[str]]:
    """Return how ambar's library is found: `$AMBAR_DIR`, installed, or built in the source tree."""
    if given := os.environ.get("AMBAR_DIR"):
        return [_at(Path(given) / "include", Path(given) / "lib", "ambar")]
    built = Path(os.environ.get("CARGO_TARGET_DIR", TREE / "target")) / "release"
    # Statically: the shared one is looked for under the name that it is installed by.
    found = [[f"-I{TREE / 'include'}", str(built / "libambar_capi.a"), "-ldl"]]
    with contextlib.suppress(Failure):
        installed = Path(_run(["pkg-config", "--variable=prefix", "ambar"]))
        found.append(_at(installed / "include", installed / "lib", "ambar"))
    return found


def _at(include: Path, folder: Path, library: str) -> list[str]:
    return [f"-I{include}", f"-L{folder}", f"-Wl,-rpath,{folder}", f"-l{library}"]


def _run(command: list[str]) -> str:
    """Return what a command prints.

    Raises
    ------
    Failure
        If it fails, with the first line that mentions an error.
    """
    try:
        done = subprocess.run(  # noqa: S603 - compilers and our own programs
            command, capture_output=True, text=True, timeout=BUILD_LIMIT, check=False, env=quiet()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(str(error)) from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"{command[0]} failed"]
        telling = [line for line in lines if "error:" in line or "cannot find" in line]
        raise Failure([*telling, lines[-1]][0])
    return done.stdout.strip()


def quiet() -> dict[str, str]:
    """Return an environment in which MPI runs for root too, as in containers."""
    values = dict(os.environ)
    if os.geteuid() == 0:
        values |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return values
