"""RAMSES leaf cells and particles read with NumPy alone: what one would write without a library.

For comparison of speed in the demo, and of values in the tests: double precision, outputs with
descriptors, cubic boxes. One domain at a time; one record at a time.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np

PARTICLE_TYPES = {"d": "f8", "f": "f4", "i": "i4", "q": "i8", "h": "i2", "b": "i1"}


class Records:
    """The records of a Fortran sequential file, in turn."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        self.at = 0

    def read(self, dtype: str) -> np.ndarray:
        (length,) = struct.unpack_from("<i", self.data, self.at)
        values = np.frombuffer(
            self.data, dtype, count=length // np.dtype(dtype).itemsize, offset=self.at + 4
        )
        self.at += length + 8
        return values

    def skip(self, count: int = 1) -> None:
        for _ in range(count):
            (length,) = struct.unpack_from("<i", self.data, self.at)
            self.at += length + 8


def read_info(folder: Path) -> dict[str, float]:
    """Return the numbers of info_NNNNN.txt."""
    text = next(folder.glob("info_*.txt")).read_text()
    return {
        name: float(value) for name, value in re.findall(r"(\w+)\s*=\s*([-\d.E+]+)\s*$", text, re.M)
    }


def descriptor(folder: Path, kind: str) -> list[tuple[str, str]]:
    """Return names and types of a descriptor of version 1."""
    lines = (folder / f"{kind}_file_descriptor.txt").read_text().splitlines()
    rows = [[part.strip() for part in line.split(",")] for line in lines if line[0] != "#"]
    return [(name, kind) for _, name, kind in rows]


def read_cells(folder: Path) -> dict[str, np.ndarray]:
    """Return level, centre (code length) and the fields of hydro and gravity of all leaf cells."""
    number = folder.name[-5:]
    info = read_info(folder)
    axes = "xyz"[: int(info["ndim"])]
    names = [name for name, _ in descriptor(folder, "hydro")]
    gravity = (folder / f"grav_{number}.out00001").exists()
    if gravity:
        names += ["potential", *(f"acceleration_{axis}" for axis in axes)]
    parts: dict[str, list[np.ndarray]] = {name: [] for name in ("level", *axes, *names)}
    for domain in range(1, int(info["ncpu"]) + 1):
        files = [Records(folder / f"amr_{number}.out{domain:05d}")]
        files += [Records(folder / f"hydro_{number}.out{domain:05d}")]
        if gravity:
            files += [Records(folder / f"grav_{number}.out{domain:05d}")]
        _read_domain(files, domain, names, info["boxlen"], parts)
    return {name: np.concatenate(columns) for name, columns in parts.items()}


def _read_domain(
    files: list[Records],
    domain: int,
    names: list[str],
    boxlen: float,
    parts: dict[str, list[np.ndarray]],
) -> None:
    amr, hydro, *gravity = files
    ncpu, ndim = amr.read("i4")[0], amr.read("i4")[0]
    # The box begins behind the boundary regions.
    low = amr.read("i4") // 2
    levels = amr.read("i4")[0]
    amr.skip()
    nboundary = amr.read("i4")[0]
    amr.skip(15)
    counts = amr.read("i4").reshape(levels, ncpu)
    amr.skip()
    if nboundary:
        amr.skip(2)
        counts = np.hstack([counts, amr.read("i4").reshape(levels, nboundary)])
    amr.skip(1 + 1 + 1 + 3)  # free list, ordering, keys of the domains, root cells
    hydro.skip()
    fields_of_hydro = int(hydro.read("i4")[0])
    hydro.skip(4)
    for file in gravity:
        file.skip(4)
    sources = [(hydro, fields_of_hydro)] + [(file, ndim + 1) for file in gravity]
    for level in range(levels):
        for owner, count in enumerate(counts[level]):
            for file, _ in sources:
                file.skip(2)
            if count == 0:
                continue
            if owner + 1 == domain:
                _read_octs(amr, sources, level, names, low[:ndim], boxlen, parts)
                continue
            amr.skip(3 + ndim + 1 + 2 * ndim + 3 * 2**ndim)
            for file, fields in sources:
                file.skip(2**ndim * fields)


def _read_octs(
    amr: Records,
    sources: list[tuple[Records, int]],
    level: int,
    names: list[str],
    low: np.ndarray,
    boxlen: float,
    parts: dict[str, list[np.ndarray]],
) -> None:
    ndim = len(low)
    amr.skip(3)
    centres = [amr.read("f8") - start for start in low]
    amr.skip(1 + 2 * ndim)
    leaf = [amr.read("i4") == 0 for _ in range(2**ndim)]
    amr.skip(2 * 2**ndim)
    for cell, chosen in enumerate(leaf):
        for axis, centre in enumerate(centres):
            side = ((cell >> axis & 1) - 0.5) * 0.5 ** (level + 1)
            parts["xyz"[axis]].append((centre[chosen] + side) * boxlen)
        parts["level"].append(np.full(chosen.sum(), level + 1, np.int32))
        column = iter(names)
        for file, fields in sources:
            for _ in range(fields):
                parts[next(column)].append(file.read("f8")[chosen])


def read_particles(folder: Path) -> dict[str, np.ndarray]:
    """Return the columns of the particle files."""
    number = folder.name[-5:]
    columns = descriptor(folder, "part")
    parts: dict[str, list[np.ndarray]] = {name: [] for name, _ in columns}
    for path in sorted(folder.glob(f"part_{number}.out*")):
        file = Records(path)
        file.skip(8)
        for name, kind in columns:
            parts[name].append(file.read(PARTICLE_TYPES[kind]))
    return {name: np.concatenate(pieces) for name, pieces in parts.items()}
