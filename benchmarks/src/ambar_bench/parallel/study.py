"""The study of many ranks: what each way of writing one array takes, and of reading it again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import ambar
from ambar_bench.machine import machine
from ambar_bench.parallel.build import Programs, build
from ambar_bench.parallel.launch import launcher
from ambar_bench.parallel.plan import Plan
from ambar_bench.parallel.results import Study
from ambar_bench.parallel.versions import VERSIONS, Version

DATA = ("random", "smooth")
DOUBLES = 480_000_000
WRITERS = 4
"""Ranks whose files are read by other numbers of ranks."""
ROOM = 3.0
"""Times the bytes of the doubles that memory must have: libraries keep copies and the cache."""
DISK_ROOM = 1.5
"""Times the bytes of the doubles that the disk must have, above those of text."""
TEXT_BYTES = 24
"""Of a double as text."""
LIBRARIES = {
    "binary": "MPI",
    "netcdf": "netCDF",
    "pnetcdf": "PnetCDF",
    "hdf5": "HDF5",
    "adios2": "ADIOS2",
}


def run_study(
    scratch: Path,
    *,
    doubles: int = DOUBLES,
    text_share: float = 0.1,
    data: Sequence[str] = DATA,
    ranks: Sequence[int] = (1, 2, 4),
    readers: Sequence[int] = (1, 2, 3, 8),
    keys: Sequence[str] | None = None,
    bound: float = 1e-4,
    bandwidths: Sequence[float] = (10.0,),
    command: str | None = None,
    rounds: int = 5,
    patience: float = 120,
    report: Callable[[str], None] = lambda _: None,
) -> Study:
    """Write an array in every way on every number of ranks, into `scratch`, and read it.

    Rounds go through all rows in turn, each round starting with another one, so that whatever else
    the machine does hits all alike. A row that has taken `patience` seconds gets no more turns.

    Parameters
    ----------
    scratch
        A folder to write into; all is deleted.
    doubles
        Of the array, spread evenly over the ranks; fewer where memory or disk have no room.
    text_share
        How many of these the versions that write text get.
    data
        Some of "random" and "smooth".
    ranks
        Numbers of ranks that write and read.
    readers
        Numbers of ranks that read what `WRITERS` ranks wrote; none: that is not measured.
    keys
        Some of the versions; all by default.
    bound
        The largest error of ambar's error-bounded versions.
    bandwidths
        Of the model's file systems, in GB/s; none: no model.
    command
        What starts ranks; the number of ranks follows as `-n`. mpirun by default.
    rounds, patience
        How often each row is measured, and for how many seconds at most.
    report
        Called with the description of each step.

    Raises
    ------
    KeyError
        If a kind of data, a version or an MPI compiler does not exist.
    ValueError
        If a number cannot be.
    """
    _require(doubles, text_share, [*ranks, *readers], bound, bandwidths)
    _known("data", data, DATA)
    _known("version", keys or (), tuple(VERSIONS))
    fitting = _fitting(doubles, text_share, scratch)
    study = Study(
        doubles=fitting,
        asked=doubles,
        text_doubles=max(int(fitting * text_share), 1),
        bound=bound,
        data=[kind for kind in DATA if kind in data],
        ranks=sorted(set(ranks)),
        readers=sorted(set(readers)),
        bandwidths=sorted(set(bandwidths)),
        rounds=rounds,
        patience=patience,
        machine=machine(("mpi4py", "hdf5plugin")),
    )
    chosen = [version for version in VERSIONS.values() if keys is None or version.key in keys]
    report("compiling")
    programs = build(scratch / "programs", {version.program for version in chosen})
    for program, name in LIBRARIES.items():
        if program in programs.releases:
            study.machine[name] = programs.releases[program]
    versions = _possible(study, chosen, programs)
    plan = Plan(study, versions, launcher(programs, command), scratch, report)
    study.rows += plan.measure()
    if study.readers:
        study.backs += plan.read_back(WRITERS)
    shutil.rmtree(programs.folder, ignore_errors=True)
    return study


def _require(
    doubles: int,
    text_share: float,
    ranks: Sequence[int],
    bound: float,
    bandwidths: Sequence[float],
) -> None:
    most = max(ranks, default=1)
    if min(ranks, default=1) < 1:
        raise ambar.InvalidError(f"expected 1 or more ranks, found {min(ranks)}")
    if doubles < most:
        raise ambar.InvalidError(f"expected at least {most} doubles, one a rank; found {doubles}")
    if not 0 < text_share <= 1:
        raise ambar.InvalidError(f"expected a share up to 1, such as 0.1, found {text_share:g}")
    if not bound > 0:
        raise ambar.InvalidError(f"expected an error bound above 0, such as 1e-4, found {bound:g}")
    if wrong := [value for value in bandwidths if not value > 0]:
        raise ambar.InvalidError(f"expected a bandwidth above 0 GB/s, found {wrong[0]:g}")


def _known(what: str, names: Sequence[str], there: Sequence[str]) -> None:
    for name in names:
        if name not in there:
            raise ambar.NotFoundError(f"no {what} {name!r}; available: {', '.join(there)}")


def _fitting(doubles: int, text_share: float, scratch: Path) -> int:
    """Return `doubles`, halved until memory and disk have room."""
    info = Path("/proc/meminfo")
    lines = info.read_text().splitlines() if info.exists() else []
    available = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable")]
    free = shutil.disk_usage(scratch).free
    each = max(DISK_ROOM * 8, TEXT_BYTES * text_share)
    while doubles > 1 and (
        doubles * each > free or any(doubles * 8 * ROOM > room for room in available)
    ):
        doubles //= 2
    return doubles


def _possible(study: Study, chosen: Sequence[Version], programs: Programs) -> list[Version]:
    """Return the versions that can be measured here; note the others."""
    found = []
    for version in chosen:
        if version.program in programs.missing:
            study.left_out[version.name] = programs.missing[version.program]
        elif version.program == "rank" and (lacking := _lacking("mpi4py", "ambar.mpi")):
            study.left_out[version.name] = f"no module {lacking[0]}"
        elif "zstd" in version.key and (lacking := _lacking("hdf5plugin")):
            study.left_out[version.name] = f"{lacking[0]} not installed, which has HDF5's zstd"
        elif "deflate" in version.key and not _lacking("hdf5plugin"):
            continue  # takes zstd's place where that is not to be had
        else:
            found.append(version)
    return found


def _lacking(*modules: str) -> list[str]:
    return [module for module in modules if find_spec(module) is None]
