"""Checks that MPI sees all processes that its launcher started."""

from __future__ import annotations

import os
from typing import Any

from ambar import _core

# Set by the mpirun of Open MPI, of MPICH and its derivatives, and of MVAPICH.
_LAUNCHERS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
# Set by srun. SLURM_NTASKS, of the whole job, is also set for processes that srun did not start.
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
    """Refuse several processes if MPI sees one rank in each of them.

    This happens if mpi4py uses another MPI library than mpirun. Each process would write the file.

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
                f"uses {version}, mpirun another library; use one MPI for both: "
                "set MPI4PY_MPIABI=openmpi or mpich for a wheel of mpi4py, or build it for your "
                "MPI with pip install --no-binary mpi4py mpi4py"
            )


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0
