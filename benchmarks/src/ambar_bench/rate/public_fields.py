"""Public fields of the study: `python -m ambar_bench.rate.public_fields CLONES FOLDER`.

`CLONES` has the repositories github.com/NCAR/SPERR, github.com/pyvista/vtk-data and
github.com/pydata/xarray-data, each in the folder of its name. Each field becomes a file `.npy`
in `FOLDER`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]

SPERR = {
    "sperr-999x999": ("999x999.float", (999, 999)),
    "sperr-vorticity-128-128-41": ("vorticity.128_128_41", (41, 128, 128)),
    "sperr-vorticity-512-512": ("vorticity.512_512", (512, 512)),
    "sperr-wmag91": ("wmag91.float", (91, 91, 91)),
}
"""Name, file and shape of fields of float32."""

PLOT3D = ("density", "mx", "my", "mz", "energy")
"""Fields of a PLOT3D solution: density, momentum and energy."""


def sperr_fields(data: Path) -> Iterator[tuple[str, Values]]:
    """Yield turbulence and vorticity from the test data of SPERR."""
    for name, (file, shape) in SPERR.items():
        yield name, np.fromfile(data / file, "<f4").reshape(shape)


def vtk_fields(data: Path) -> Iterator[tuple[str, Values]]:
    """Yield flows, an impact and a wave function from the data of VTK."""
    import pyvista as pv

    def components(file: str, numbers: tuple[int, ...]) -> Iterator[tuple[str, Values]]:
        mesh = pv.read(data / file)
        for number in numbers:
            values = mesh["vectors"][:, number].reshape(mesh.dimensions[::-1])
            yield f"{Path(file).stem}-vectors{number}", values

    yield from components("carotid.vtk", (0, 2))
    yield from components("RectGrid2.vtk", (1, 2))
    for name, fields in (("comb", ("density", "mx")), ("post", ("mx", "my", "energy"))):
        solution = dict(zip(PLOT3D, plot3d_values(data / f"{name}q.bin"), strict=True))
        for field in fields:
            yield f"{name}-{field}", solution[field]
    impact = pv.read(data / "cth.vtr")
    cells = tuple(number - 1 for number in impact.dimensions[::-1])
    for field in ("Pressure", "X Velocity", "Z Velocity"):
        yield f"cth-{field.replace(' ', '-')}", impact.cell_data[field].reshape(cells)
    atom = pv.read(data / "hydrogen" / "hydrogen.vti")
    yield "hydrogen-density", atom.active_scalars.reshape(atom.dimensions[::-1])


def plot3d_values(path: Path) -> Values:
    """Read the five fields of a big-endian PLOT3D solution of one grid."""
    shape = tuple(np.fromfile(path, ">i4", 3)[::-1])
    header = 3 * 4 + 4 * 4  # the shape, and four parameters of the flow
    return np.fromfile(path, ">f4", offset=header).reshape(5, *shape)


def xarray_fields(data: Path) -> Iterator[tuple[str, Values]]:
    """Yield wind and geopotential on three pressure levels from the data of xarray."""
    import xarray as xr

    with xr.open_dataset(data / "eraint_uvz.nc") as dataset:
        for name in ("u", "z"):
            yield f"eraint-{name}", dataset[name][0].values.astype(np.float32)


def main(clones: Path, folder: Path) -> None:
    """Write all fields."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = [
        *sperr_fields(clones / "SPERR" / "test_data"),
        *vtk_fields(clones / "vtk-data" / "Data"),
        *xarray_fields(clones / "xarray-data"),
    ]
    for name, values in fields:
        native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
        np.save(folder / f"{name}.npy", native)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
