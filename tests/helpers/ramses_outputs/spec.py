"""What a synthetic RAMSES output is like, and the names and types its files agree on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Ints = NDArray[np.int64]
Columns = dict[str, Array]

HYDRO = ("density", "velocity_x", "velocity_y", "velocity_z", "pressure")
PARTICLES = (
    *((f"position_{axis}", "d") for axis in "xyz"),
    *((f"velocity_{axis}", "d") for axis in "xyz"),
    ("mass", "d"),
    ("identity", "i"),
    ("levelp", "i"),
    ("family", "b"),
    ("tag", "b"),
)
DTYPES = {"d": "<f8", "f": "<f4", "i": "<i4", "q": "<i8", "h": "<i2", "b": "|i1", "?": "<i4"}
"""NumPy's types by the letters of RAMSES' descriptors."""


@dataclass(frozen=True)
class Spec:
    """What the output is like. Components that are empty or 0 are not written."""

    ndim: int = 3
    domains: int = 3
    level_min: int = 2
    level_max: int = 4
    root: tuple[int, ...] = ()
    """Coarse cells of the box in each dimension; one each where empty."""
    walls: tuple[tuple[int, int], ...] = ()
    """Layers of boundary cells (low, high) in each dimension, each 0 or 1."""
    real: Literal["<f8", "<f4"] = "<f8"
    ordering: Literal["hilbert", "planar", "angular", "bisection"] = "hilbert"
    quad: bool = False
    """Whether `bound_key` is real*16 (QUADHILBERT)."""
    overload: int = 1
    """Key ranges a domain has."""
    hydro: tuple[str, ...] = HYDRO
    hydro_descriptor: Literal["v1", "v0", ""] = "v1"
    gravity: Literal["plain", "density", ""] = ""
    groups: int = 0
    """Photon groups, of `1 + ndim` fields each."""
    particles: tuple[tuple[str, str], ...] = ()
    """Column names and type letters; those of axes beyond `ndim` are left out."""
    particle_count: int = 200
    particle_descriptor: bool = True
    tracer_seed: bool = False
    sinks: Literal["csv", "bare", ""] = ""
    clumps: int = 0
    """Clumps in the files of each domain; the second domain has none."""
    header: Literal["families", "totals"] = "families"
    folders: int = 0
    """Domains in each `group_XXXXX` folder; 0 puts all files into the output's own folder."""
    number: int = 7
    boxlen: float = 1.0
    expansion: float = 1.0
    """The expansion factor; a run with another one than 1 is cosmological."""
    specials: bool = True
    """Whether fields hold NaN, infinities, negative zero and denormals too."""
    seed: int = 1

    @property
    def axes(self) -> str:
        """The dimensions' letters."""
        return "xyz"[: self.ndim]

    @property
    def box(self) -> tuple[int, ...]:
        """Coarse cells of the box in each of the `ndim` dimensions."""
        return self.root or (1,) * self.ndim

    @property
    def layers(self) -> tuple[tuple[int, int], ...]:
        """Layers of boundary cells in each of the `ndim` dimensions."""
        return self.walls or ((0, 0),) * self.ndim

    @property
    def coarse(self) -> list[int]:
        """The coarse grid nx, ny, nz, with its boundary layers."""
        sizes = [n + low + high for n, (low, high) in zip(self.box, self.layers, strict=True)]
        return [*sizes, 1, 1][:3]

    @property
    def boundaries(self) -> int:
        """RAMSES' `nboundary`."""
        return sum(map(sum, self.layers))

    @property
    def cosmological(self) -> bool:
        """Whether the run expands."""
        return self.expansion != 1.0

    @property
    def particle_columns(self) -> list[tuple[str, str]]:
        """Names and type letters of the particle columns there are."""
        beyond = tuple(f"_{axis}" for axis in "xyz"[self.ndim :])
        named = [pair for pair in self.particles if not (beyond and pair[0].endswith(beyond))]
        single = self.real == "<f4"
        return [(name, "f" if letter == "d" and single else letter) for name, letter in named]

    def place(self, folder: Path, domain: int) -> Path:
        """Return where the files of a domain (from 0) lie."""
        return folder / f"group_{domain // self.folders + 1:05d}" if self.folders else folder
