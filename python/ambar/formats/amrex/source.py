"""AMReX plotfiles, native and in HDF5, as snapshots."""

from __future__ import annotations

import math
import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ambar import _core
from ambar._util.hdf5_files import is_hdf5
from ambar.snapshot.amrex_info import AmrexInfo
from ambar.snapshot.loading import SPECIES, Source

if TYPE_CHECKING:
    from ambar.formats.amrex.hdf5 import Hdf5Plotfile


class Plotfile(NamedTuple):
    """An open plotfile: its reader and its content."""

    core: _core.Amrex | _core.Patches
    info: AmrexInfo
    fields: list[str]
    species: dict[str, list[str]]
    """Readable species, and their columns."""
    missing: dict[str, str]
    """Unreadable parts, and the reason for each."""


def is_amrex(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is an AMReX plotfile: a folder with a Header, or an HDF5 file."""
    place = Path(path)
    if place.is_dir():
        return _core.is_plotfile(os.fspath(place))
    if not is_hdf5(place):
        return False
    from ambar.formats.amrex.hdf5 import is_hdf5_plotfile

    return is_hdf5_plotfile(place)


def open_plotfile(path: str | os.PathLike[str]) -> Plotfile:
    """Open a plotfile; reads and checks its text files, but no values."""
    if Path(path).is_file():
        from ambar.formats.amrex.hdf5 import read_hdf5

        return _of_hdf5(read_hdf5(path))
    core = _core.Amrex(os.fspath(path))
    values, species = core.info, core.species
    missing = {f"particles/{one['name']}": str(one["why"]) for one in species if not one["present"]}
    return Plotfile(
        core,
        AmrexInfo.from_dict(values),
        list(values["fields"]),
        {one["name"]: list(one["fields"]) for one in species if one["present"]},
        missing | dict(values["left_out"]),
    )


def _of_hdf5(file: Hdf5Plotfile) -> Plotfile:
    """Describe an HDF5 plotfile as the text files of a native one do; h5py reads its boxes."""
    import numpy as np

    # The attribute has one ratio for all dimensions; the domains have one for each.
    shapes = [level.domain[1] - level.domain[0] + 1 for level in file.levels]
    ratios = [(fine // np.maximum(coarse, 1)).tolist() for coarse, fine in pairwise(shapes)]
    ratios.append([1] * file.ndim)
    after = np.array([[0], [1]])  # corners are inclusive in the file, exclusive in the description
    levels, described, steps = [], [], []
    for level, ratio in zip(file.levels, ratios, strict=True):
        geometry = {"cell_size": level.cell_size.tolist(), "ratio": ratio}
        lo, hi = level.domain.tolist()
        boxes = level.boxes + after
        cells = int((boxes[:, 1] - boxes[:, 0]).prod(1).sum())
        counts = {"boxes": len(boxes), "cells": cells}
        levels.append(geometry | {"domain": {"lo": lo, "hi": hi}} | counts)
        domain = (level.domain + after).tolist()
        described.append(geometry | {"domain": domain, "boxes": boxes.tolist()})
        steps.append({"step": level.step, "own_step": level.step, "time": _json_number(level.time)})
    time = _json_number(file.time)
    shared = {
        "ndim": file.ndim,
        "lower": file.lower.tolist(),
        "upper": file.upper.tolist(),
        "fields": file.names,
    }
    info = shared | {
        "format": "HDF5",
        "time": time,
        "steps": [level.step for level in file.levels],
        "coordinates": {1: "cylindrical", 2: "spherical"}.get(file.coordinates, "cartesian"),
        "levels": levels,
    }
    run: dict[str, Any] = {
        "version": "HyperCLaw-V1.1",
        "time": time,
        "coordinates": file.coordinates,
        "boundary": 0,
        "levels": steps,
        "rest": "",
        "text_files": {},
    }
    description = shared | {
        "dtypes": [str(file.dtype)] * len(file.names),
        "levels": described,
        "path": os.fspath(file.path),
        "info": info,
        "run": run,
    }

    core = _core.Patches(description, file.read_cells)
    return Plotfile(core, AmrexInfo.from_dict(info), core.fields, {}, {})


def _json_number(value: float) -> float | str:
    """Return a number for JSON: a string if it is not finite."""
    if math.isfinite(value):
        return value
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    return f"{sign}NaN" if math.isnan(value) else f"{sign}Infinity"


class AmrexSource(Source):
    """A plotfile of AMReX. A box is read on first access to its cells, and kept."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        plotfile = open_plotfile(path)
        self._core = plotfile.core
        self.location = os.fspath(path)
        self.info = plotfile.info
        self.missing = plotfile.missing
        self.components = {"cells": plotfile.fields}
        self.components |= {SPECIES + name: names for name, names in plotfile.species.items()}

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return AmrexSource, (self.location,)

    def amr(self) -> _core.Amr:
        """Return the cells."""
        return self._core.amr(self.components["cells"])

    def table(self, name: str) -> _core.Table | None:
        """Read the particles of a species."""
        if isinstance(self._core, _core.Patches):
            return None
        return self._core.particles(name.removeprefix(SPECIES))
