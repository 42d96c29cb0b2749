"""Small outputs of public codes that are installed with ambar, to try it without data of your own.

``ambar samples ramses`` copies one into the working directory.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ambar import _core
from ambar._util.optional import require
from ambar._util.output_files import published
from ambar._util.text import suggestion

__all__ = ["SAMPLES", "Sample", "copy"]

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Sample:
    """A sample: what `copy` writes.

    Attributes
    ----------
    target : str
        The name of the file or folder.
    description : str
        What it is, and how many bytes it has.

    Examples
    --------
    >>> import ambar.samples
    >>> ambar.samples.SAMPLES["ramses"].target
    'output_00002'
    """

    target: str
    description: str
    _write: Callable[[Path], object]


def _copy(name: str) -> Callable[[Path], object]:
    path = _FOLDER / name
    return lambda target: (shutil.copytree if path.is_dir() else shutil.copyfile)(path, target)


def _write_plotfile(target: Path) -> None:
    from ambar.io.convert import export

    export(_FOLDER / "laser_wake.ambar", target)


def _write_profiles(target: Path) -> None:
    require("netCDF4", purpose="the sample 'profiles'", install="ambar[netcdf]")
    import numpy as np
    import xarray as xr

    target.mkdir()
    for number in range(40, 44):
        depth = np.arange(0.0, 2000.0, 10.0 + number % 3)
        temperature = 4 + (14 + number % 4) * np.exp(-depth / 300)
        dataset = xr.Dataset(
            {"temperature": ("depth", temperature.astype("f4"), {"units": "degC"})},
            coords={"depth": ("depth", depth, {"units": "m"})},
            attrs={"platform": "argo" if number % 2 else "glider"},
        )
        dataset.to_netcdf(target / f"station_{number:04}.nc")


SAMPLES = {
    "ramses": Sample(
        "output_00002",
        "an output of RAMSES: gas in which stars form, in 3 dimensions, with gravity; 137 kB",
        _copy("output_00002"),
    ),
    "series": Sample(
        "implosion.ambar",
        "a store of three outputs of RAMSES: the density of an implosion; 134 kB",
        _copy("implosion.ambar"),
    ),
    "amrex": Sample(
        "plt00290",
        "a plotfile of WarpX (AMReX): a laser pulse in a plasma, two levels; 7.02 MB",
        _write_plotfile,
    ),
    "profiles": Sample(
        "profiles",
        "NetCDF files of four profiles of temperature, made by a formula; needs netCDF4",
        _write_profiles,
    ),
}
"""All samples by name."""


def copy(name: str, folder: str | os.PathLike[str] = ".") -> Path:
    """Copy a sample into a folder.

    Parameters
    ----------
    name : str
        One of `SAMPLES`: ``"ramses"``, ``"series"``, ``"amrex"`` or ``"profiles"``.
    folder : path, optional
        An existing folder; by default the working directory.

    Returns
    -------
    Path
        The file or folder that was written.

    Raises
    ------
    KeyError
        If there is no sample of this name (`ambar.NotFoundError`).
    FileExistsError
        If the target exists.
    FileNotFoundError
        If the folder does not exist.
    ImportError
        If the sample needs a library that is not installed.

    Examples
    --------
    >>> import ambar.samples
    >>> run = ambar.samples.copy("series")
    >>> len(ambar.open_series(run))
    3
    """
    sample = SAMPLES.get(name)
    if sample is None:
        raise _core.NotFoundError(f"sample {name!r} does not exist; {suggestion(name, SAMPLES)}")
    target = Path(folder) / sample.target
    if target.exists():
        what = "the sample exists; remove it, or copy to another folder with folder=PATH"
        raise FileExistsError(errno.EEXIST, what, os.fspath(target))
    with published(target) as scratch:
        sample._write(scratch)
    return target
