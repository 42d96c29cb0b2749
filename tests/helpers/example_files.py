"""The files that examples in docstrings and documentation read, by name in the working directory.

- `output_00002`: a RAMSES output with cells, gravity and particles; `run.ambar`: a store of it
- `sedov`: the folder of a RAMSES run with two outputs
- `plt00200`: an AMReX plotfile of two levels
- `fields.ambar`: the arrays `density` (16, 24, 32), `run/time` (10) and `run/names` (2)
- `profiles`: a folder of four NetCDF files; `profiles.ambar`: a collection of them
- `wing.vtu`: a mesh of tetrahedra; `wing.ambar`: a store of it; `steps.ambar`: a series of three
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyvista as pv
import xarray as xr

import ambar
from tests.helpers import plotfiles
from tests.helpers.paths import RAMSES


def make_inputs(folder: Path) -> None:
    """Write the files that are not ambar's."""
    (folder / "output_00002").symlink_to(RAMSES / "gravpart_small" / "output_00002")
    (folder / "sedov").symlink_to(RAMSES / "sedov3d_small")
    plotfiles.write(folder / "plt00200")
    (folder / "profiles").mkdir()
    for name, dataset in profiles().items():
        dataset.to_netcdf(folder / "profiles" / f"{name}.nc")
    wing().save(folder / "wing.vtu")


def make_stores(folder: Path) -> None:
    """Write the stores."""
    ambar.convert(RAMSES / "gravpart_small" / "output_00002", folder / "run.ambar")
    density = np.linspace(1, 2, 16 * 24 * 32, dtype="f4").reshape(16, 24, 32)
    with ambar.create(folder / "fields.ambar") as writer:
        writer.create_array("density", density, dims=("z", "y", "x"), attrs={"unit": "g/cm3"})
        writer.create_group("run", {"code": "solver"})
        writer.create_array("run/time", np.arange(10.0), dims=("step",))
        writer.create_array("run/names", np.array(["first", "second"], object))
    with ambar.open_collection(folder / "profiles.ambar", "w-") as collection:
        collection.add_many(profiles().items())
    ambar.write_mesh(wing(), folder / "wing.ambar")
    with ambar.open_mesh_series(folder / "steps.ambar", "w-") as series:
        for number in range(3):
            series.add(wing(number), 0.5 * number)


def profiles() -> dict[str, xr.Dataset]:
    """Return datasets of 30 depths, from two platforms."""
    return {
        f"station_{number:04}": xr.Dataset(
            {"temperature": ("depth", np.linspace(4, 20, 30, dtype="f4") + number)},
            coords={"depth": np.arange(30.0)},
            attrs={"platform": "argo" if number % 2 else "glider"},
        )
        for number in range(40, 44)
    }


def wing(step: int = 0) -> pv.UnstructuredGrid:
    """Return a mesh of tetrahedra."""
    mesh = pv.ImageData(dimensions=(4, 4, 4)).to_tetrahedra()
    mesh.point_data["pressure"] = np.arange(mesh.n_points, dtype="f8") + step
    return mesh


def copy(made: Path, folder: Path) -> None:
    """Copy the files into another folder, where an example may change all but the sample data."""
    shutil.copytree(made, folder, symlinks=True, dirs_exist_ok=True)
