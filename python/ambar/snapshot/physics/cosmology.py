"""Times of an expanding universe with matter, curvature and a cosmological constant.

RAMSES integrates the expansion in units of 1/H0 (``friedman`` in ``amr/init_time.f90``):
dt = da / (a H) is proper time, and dtau = dt / a**2 the conformal time that is the time of a
cosmological run. Both are 0 today. Birth times are conformal, or, with ``use_proper_time`` or
radiative transfer, proper.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ambar._util.properties import cached_property
from ambar.snapshot.physics.constants import PARSEC

_FIRST, _LAST, _INTERVALS = 1e-5, 10.0, 2048
"""The range of expansion factors in the tables."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True)
class Cosmology:
    """The expansion of the universe of a run.

    Parameters
    ----------
    hubble_constant
        H0 in km/s/Mpc.
    matter, vacuum, curvature
        Densities as fractions of the critical density today.
    aexp
        The expansion factor of the output.
    has_proper_times
        Whether birth times are proper times in units of 1/H0, instead of conformal times.
    """

    hubble_constant: float
    matter: float
    vacuum: float
    curvature: float
    aexp: float
    has_proper_times: bool = False

    @property
    def hubble_time(self) -> float:
        """1/H0 in seconds."""
        return PARSEC * 1e6 / (self.hubble_constant * 1e5)

    @property
    def age(self) -> float:
        """The time from the Big Bang to the output, in seconds."""
        return self._age(self.aexp) * self.hubble_time

    def since_big_bang(self, birth_times: np.ndarray) -> np.ndarray:
        """Return birth times as the proper time since the Big Bang, in seconds."""
        conformal, proper, expansion = self._tables
        times = np.asarray(birth_times, dtype=np.float64)
        if self.has_proper_times:
            return (self._age(1.0) + times) * self.hubble_time
        # Cubic Hermite interpolation; the derivative of proper by conformal time is a**2.
        last = len(conformal) - 2
        index = np.clip(np.searchsorted(conformal, times, side="right") - 1, 0, last)
        step = conformal[index + 1] - conformal[index]
        u = np.clip((times - conformal[index]) / step, 0.0, 1.0)
        start, end = expansion[index] ** 2 * step, expansion[index + 1] ** 2 * step
        found = (
            (1 + 2 * u) * (1 - u) ** 2 * proper[index]
            + u * (1 - u) ** 2 * start
            + u**2 * (3 - 2 * u) * proper[index + 1]
            + u**2 * (u - 1) * end
        )
        found[~np.isfinite(times)] = np.nan
        seconds: np.ndarray = found * self.hubble_time
        return seconds

    def ages(self, birth_times: np.ndarray) -> np.ndarray:
        """Return the time from birth to the output in seconds; NaN for a birth time of 0.

        RAMSES writes 0 for particles that are not stars.
        """
        times = np.asarray(birth_times, dtype=np.float64)
        born = self.since_big_bang(times)
        return np.where(times == 0.0, np.nan, self.age - born)

    def _age(self, aexp: float) -> float:
        """Return the proper time from the Big Bang, in units of 1/H0."""
        # With a = u**2 the integrand is smooth at 0, so that Gauss-Legendre converges fast.
        nodes, weights = np.polynomial.legendre.leggauss(64)
        top: float = aexp**0.5
        u = 0.5 * top * (nodes + 1)
        return float((weights * 2 * u**2 / self._rate(u**2)).sum()) * 0.5 * top

    def _rate(self, a: np.ndarray) -> np.ndarray:
        """Return H / H0 * a**1.5."""
        rate: np.ndarray = np.sqrt(self.matter + self.curvature * a + self.vacuum * a**3)
        return rate

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Conformal time, proper time since the Big Bang, and expansion factor, in steps."""
        logs = np.linspace(np.log(_FIRST), np.log(_LAST), _INTERVALS + 1)
        # A step ends at today, where conformal time is 0.
        today = int(np.argmin(np.abs(logs)))
        logs[today] = 0.0
        half = np.diff(logs)[:, None] / 2
        a = np.exp(logs[:-1, None] + half * (_NODES + 1))
        weights = half * _WEIGHTS
        proper = np.concatenate([[0.0], np.cumsum((weights * a**1.5 / self._rate(a)).sum(1))])
        conformal = np.concatenate([[0.0], np.cumsum((weights / self._rate(a) / a**0.5).sum(1))])
        proper += self._age(1.0) - proper[today]
        return conformal - conformal[today], proper, np.exp(logs)
