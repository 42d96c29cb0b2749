"""Physical constants and units in CGS.

They are those of Mera.jl 1.9 (``createconstants``: IAU 2012 and 2015, CODATA 2018, and the mass of
a hydrogen atom of RAMSES), so that converted values agree with Mera.jl to rounding. Its solar mass
is not the quotient of GM of the sun (IAU) and G (CODATA), 1.98841e33 g, which yt uses.
"""

from __future__ import annotations

import math

AU = 1.495978707e13  # cm, IAU 2012
PARSEC = 3.08567758128e18  # cm, IAU 2015
LIGHT_YEAR = 9.4607304725808e17  # cm, IAU
YEAR = 3.15576e7  # s, Julian
SOLAR_MASS = 1.9891e33  # g
EARTH_MASS = 5.9722e27  # g
JUPITER_MASS = 1.89813e30  # g
HYDROGEN_MASS = 1.66e-24  # g, RAMSES
HYDROGEN_FRACTION = 0.76  # RAMSES' cooling module
BOLTZMANN = 1.380649e-16  # erg/K, CODATA 2018, exact
GRAVITATION = 6.6743e-8  # cm3/g/s2, CODATA 2018
ELECTRON_VOLT = 1.602176634e-12  # erg, CODATA 2018, exact
LIGHT_SPEED = 2.99792458e10  # cm/s, exact
SOLAR_LUMINOSITY = 3.828e33  # erg/s, IAU 2015

LENGTHS = {
    "mm": 0.1,
    "cm": 1.0,
    "m": 1e2,
    "km": 1e5,
    "Au": AU,
    "ly": LIGHT_YEAR,
    "mpc": PARSEC * 1e-3,
    "pc": PARSEC,
    "kpc": PARSEC * 1e3,
    "Mpc": PARSEC * 1e6,
}
TIMES = {
    "s": 1.0,
    "min": 60.0,
    "hr": 3600.0,
    "day": 86400.0,
    "yr": YEAR,
    "kyr": YEAR * 1e3,
    "Myr": YEAR * 1e6,
    "Gyr": YEAR * 1e9,
}
MASSES = {"g": 1.0, "kg": 1e3, "Mearth": EARTH_MASS, "Mjupiter": JUPITER_MASS, "Msol": SOLAR_MASS}
SPELLINGS = {"au": "Au", "AU": "Au", "Msun": "Msol", "M_sun": "Msol", "h": "hr", "K_mu": "T_mu"}
"""Other names of units."""
GAUSS = 1 / math.sqrt(4 * math.pi)
"""One gauss in Heaviside-Lorentz units, in which the magnetic pressure is B**2 / 2."""
