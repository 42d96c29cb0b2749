"""Positions and velocities
========================

The phase space of dark matter: matter falls onto the filaments from both sides.
"""

import ambar
import ambar.xarray  # for diagram.ambar

run = ambar.open_snapshot("../../data/dark_matter.ambar").with_units("Nyx")
dark = run.particles

# %%
# The mass by position and velocity. Conditions and regions select particles.
units = {"position_y": "Mpc", "velocity_y": "km/s", "mass": "Msol"}
bins = {"bins": (90, 60), "log": (False, False)}
diagram = dark.phase("position_y", "velocity_y", where="position_x > 9", units=units, **bins)
diagram.ambar.plot(log=True)

# %%
# The mean velocity on a map, weighted with the mass.
image = dark.map("velocity_y", weight="mass", unit="km/s", length_unit="Mpc", resolution=96)
image.ambar.plot().set_title("mean velocity along y")
