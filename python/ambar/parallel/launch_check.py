"""Whether MPI sees the processes that its launcher has started."""

from __future__ import annotations

import os
from typing import Any

from ambar import _core

# Set by the mpirun of Open MPI, of MPICH and its kin, and of MVAPICH.
_LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
# Set by srun. SLURM_NTASKS is that of the whole job, also for a process that no srun has started.
_SLURM = "SLURM_STEP_NUM_TASKS"


def mpi() -> Any:
    """Return ``mpi4py.MPI``.

    Raises
    ------
    ImportError
        If mpi4py is missing, or finds no MPI library.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"ambar.mpi needs mpi4py and an MPI library: {error}; run: pip install 'ambar[mpi]'"
        ) from error
    return MPI


def check_launched() -> None:
    """Refuse many processes each of which takes itself for the only one.

    That is what becomes of a program of one MPI under the mpirun of another, such as mpi4py with
    the wrong library: every process would write the file by itself.

    Raises
    ------
    ValueError
        If MPI sees one process where the launcher has started several.
    """
    library = mpi()
    if library.COMM_WORLD.size != 1 or library.Comm.Get_parent() != library.COMM_NULL:
        return
    started = {name: _number(name) for name in _LAUNCHERS}
    if not any(started.values()):
        started = {_SLURM: _number(_SLURM)}
    for name, number in started.items():
        if number > 1:
            version = library.Get_library_version().splitlines()[0].strip("\0 ")
            raise _core.InvalidError(
                f"MPI.COMM_WORLD has 1 rank, but the launcher started {number} ({name}): mpi4py "
                f"uses {version}, mpirun is another's, and every process would write the file by "
                "itself; use one MPI for both: MPI4PY_MPIABI=openmpi or mpich chooses where "
                "mpi4py is a wheel, pip install --no-binary mpi4py mpi4py builds it for yours"
            )


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0
