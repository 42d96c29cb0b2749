"""How ambar, yt and pynbody compute what users compute every day, each in its usual calls.

Results are in code units, so that they compare. Making a tool imports its program; a task opens the
output, so that nothing is cached between turns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

RADIUS = 0.2
"""Radius of the sphere about the middle of the box, in box sizes."""
BINS = 64
PIXELS = 512
"""Pixels along a side of the oblique map."""

TASKS = {
    "sphere": "mass, and mean, standard deviation and extrema of the density, in a sphere",
    "profile": "mass-weighted radial profile of the density, 64 bins",
    "phase": "mass in 64 x 64 bins of density and pressure",
    "derived": "total kinetic energy, a derived field",
    "map": "density integrated along z on the grid of a level",
    "oblique": "density integrated along (1, 1, 1), half the box, 512 x 512 pixels",
}


class Tool(ABC):
    """A program that analyses RAMSES outputs or stores."""

    module: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]] = tuple(TASKS)
    """The tasks that it has a call for."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.path = Path(task["path"])
        self.threads: int | None = task["threads"]
        self.unit_l, self.unit_d, self.unit_t = task["units"]
        self.boxlen: float = task["boxlen"]
        self.level: int = task["level"]
        self.density_range: tuple[float, float] = tuple(task["density_range"])
        self.pressure_range: tuple[float, float] = tuple(task["pressure_range"])
        self.prepare()

    @classmethod
    def installed(cls) -> bool:
        """Return whether the program is installed."""
        return find_spec(cls.module) is not None

    @abstractmethod
    def prepare(self) -> None:
        """Import the program."""

    def run(self, task: str) -> Any:
        """Return the result of a task: numbers in code units."""
        return getattr(self, task)()


class Ambar(Tool):
    """ambar, from a store or RAMSES' files."""

    module = "ambar"

    def prepare(self) -> None:
        """Import ambar, and xarray for its results."""
        import xarray  # noqa: F401

        import ambar

        self._ambar = ambar

    def sphere(self) -> Any:
        """Return mass, mean, standard deviation and extrema."""
        ball = self._ambar.Sphere("bc", RADIUS)
        found = self._amr.statistics("density", weight="mass", region=ball, threads=self.threads)
        density = found["density"]
        return [found.weight_sum, density.mean, density.std, density.min, density.max]

    def profile(self) -> Any:
        """Return the means of all bins."""
        span = (0.0, self.boxlen / 2)
        found = self._amr.profile(
            "radius", "density", weight="mass", bins=BINS, range=span, threads=self.threads
        )
        return found["density"].values

    def phase(self) -> Any:
        """Return the masses of all bins."""
        ranges = (self.density_range, self.pressure_range)
        found = self._amr.phase(
            "density", "pressure", bins=BINS, range=ranges, log=True, threads=self.threads
        )
        return found.values.T

    def derived(self) -> Any:
        """Return the total kinetic energy."""
        return [self._amr.sum("kinetic_energy", threads=self.threads)]

    def map(self) -> Any:
        """Return the surface densities of all pixels."""
        return self._amr.project("density", level=self.level, threads=self.threads).values.T

    def oblique(self) -> Any:
        """Return the surface densities of all pixels."""
        image = self._amr.map(
            "density", axis=(1, 1, 1), width=0.5, resolution=PIXELS, threads=self.threads
        )
        return image.values.T

    @property
    def _amr(self) -> Any:
        return self._ambar.open_snapshot(self.path).amr


class Yt(Tool):
    """yt, from RAMSES' files or a store; its code length is the side of the box."""

    module = "yt"

    def prepare(self) -> None:
        """Import yt and silence it."""
        import yt

        yt.set_log_level("critical")
        self._yt = yt

    def sphere(self) -> Any:
        """Return mass, mean, standard deviation and extrema."""
        dataset = self._dataset
        ball = dataset.sphere("c", (RADIUS, "code_length"))
        density, mass = ("gas", "density"), ("gas", "cell_mass")
        total = ball.quantities.total_quantity(mass).to("code_mass")
        deviation, mean = ball.quantities.weighted_standard_deviation(density, mass)
        low, high = ball.quantities.extrema(density)
        numbers = (mean, deviation, low, high)
        return [float(total), *(float(number.to("code_density")) for number in numbers)]

    def profile(self) -> Any:
        """Return the means of all bins."""
        dataset = self._dataset
        radius = ("index", "radius")
        data = dataset.all_data()
        data.set_field_parameter("center", dataset.domain_center)
        found = self._yt.create_profile(
            data,
            radius,
            ("gas", "density"),
            weight_field=("gas", "cell_mass"),
            n_bins=BINS,
            extrema={radius: ((0, "code_length"), (0.5, "code_length"))},
            logs={radius: False},
        )
        return found["gas", "density"].to("code_density").d

    def phase(self) -> Any:
        """Return the masses of all bins."""
        axes = [("gas", "density"), ("gas", "pressure")]
        units = ("code_density", "code_pressure")
        ranges = (self.density_range, self.pressure_range)
        found = self._yt.create_profile(
            self._dataset.all_data(),
            axes,
            ("gas", "cell_mass"),
            weight_field=None,
            n_bins=[BINS, BINS],
            extrema={
                axis: ((low, unit), (high, unit))
                for axis, unit, (low, high) in zip(axes, units, ranges, strict=True)
            },
            logs=dict.fromkeys(axes, True),
        )
        return found["gas", "cell_mass"].to("code_mass").d

    def derived(self) -> Any:
        """Return the total kinetic energy."""
        data = self._dataset.all_data()
        energy = data["gas", "kinetic_energy_density"] * data["gas", "cell_volume"]
        return [float(energy.sum().to("code_mass*code_velocity**2"))]

    def map(self) -> Any:
        """Return the surface densities of all pixels."""
        dataset = self._dataset
        side = 2**self.level
        found = dataset.proj(("gas", "density"), 2)
        image = found.to_frb((1.0, "code_length"), side)["gas", "density"]
        return image.to("code_density*code_length").d * self.boxlen

    def oblique(self) -> Any:
        """Draw the map; return nothing to compare, since yt samples rays and scales them."""
        dataset = self._dataset
        width = dataset.arr([0.5] * 3, "code_length")
        center, field = dataset.domain_center, ("gas", "density")
        self._yt.off_axis_projection(dataset, center, [1, 1, 1], width, PIXELS, field)
        return []

    @property
    def _dataset(self) -> Any:
        is_folder = self.path.is_dir()
        return self._yt.load(
            str(next(self.path.glob("info_?????.txt")) if is_folder else self.path)
        )


class Pynbody(Tool):
    """pynbody."""

    module = "pynbody"
    tasks = ("sphere", "profile", "derived")

    def prepare(self) -> None:
        """Import pynbody and set its number of processes."""
        import pynbody
        from pynbody.snapshot import ramses

        ramses.multiprocess_num = self.threads or 1
        ramses.multiprocess = ramses.multiprocess_num > 1 and ramses.multiprocessing is not None
        self._pynbody = pynbody

    def sphere(self) -> Any:
        """Return mass, mean, standard deviation and extrema."""
        middle = self.boxlen * self.unit_l / 2
        ball = self._pynbody.filt.Sphere(RADIUS * self.boxlen * self.unit_l, (middle,) * 3)
        gas = self._gas[ball]
        density, mass = np.asarray(gas["rho"]), np.asarray(gas["mass"])
        mean = float(gas.mean_by_mass("rho"))
        deviation = np.sqrt((mass * (density - mean) ** 2).sum() / mass.sum())
        numbers = np.array([mean, deviation, density.min(), density.max()])
        return [float(mass.sum() / self._unit_m), *(numbers / self.unit_d)]

    def profile(self) -> Any:
        """Return the means of all bins."""
        gas = self._gas
        half = self.boxlen * self.unit_l / 2
        gas["pos"] -= half
        found = self._pynbody.analysis.profile.Profile(
            gas, ndim=3, nbins=BINS, rmin=0.0, rmax=half, type="lin"
        )
        return np.asarray(found["rho"]) / self.unit_d

    def derived(self) -> Any:
        """Return the total kinetic energy."""
        gas = self._gas
        energy = float((np.asarray(gas["ke"]) * np.asarray(gas["mass"])).sum())
        return [energy / (self._unit_m * (self.unit_l / self.unit_t) ** 2)]

    @property
    def _gas(self) -> Any:
        return self._pynbody.load(str(self.path)).gas

    @property
    def _unit_m(self) -> float:
        return float(self.unit_d * self.unit_l**3)


TOOLS: dict[str, type[Tool]] = {"ambar": Ambar, "yt": Yt, "pynbody": Pynbody}
PEERS = ("yt", "pynbody")
