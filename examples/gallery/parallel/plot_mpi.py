"""Many MPI ranks write one file
=============================

Each rank writes its block of each array. The end of the step commits them, on all ranks together.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import xarray as xr

import ambar.xarray  # for dataset.ambar

PROGRAM = """
import sys, numpy as np, ambar.mpi
from mpi4py.MPI import COMM_WORLD as comm
rows = np.arange(comm.rank * 240 // comm.size, (comm.rank + 1) * 240 // comm.size)
height = np.sin(rows[:, None] / 20) * np.cos(np.arange(240) / 30) + 0.1 * comm.rank
with ambar.mpi.create(sys.argv[1]) as writer, writer.step(time=0.0) as step:
    options = {"shape": (240, 240), "dtype": "f8", "dims": ("y", "x"), "error_bound": 1e-4}
    blocks = writer.blocks((240, 240), [((rows[0], 0), height.shape)])
    writer.create_array(f"{step}/height", blocks=blocks, attrs={"units": "m"}, **options)
    writer.write_region(f"{step}/height", height, (rows[0], 0))
"""
store = Path((folder := TemporaryDirectory()).name) / "ranks.ambar"
subprocess.run(["mpiexec", "-n", "4", sys.executable, "-c", PROGRAM, store], check=True)

# %%
# Each rank added a tenth of its number.
xr.open_dataset(store, group="step_000000").ambar.plot()
