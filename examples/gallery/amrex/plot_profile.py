"""Profiles around the densest cell
================================

Spherical profiles of gas in a cosmological run, in physical units, around a center that is found.
"""

import matplotlib.pyplot as plt

import ambar
import ambar.xarray  # for profile.ambar

run = ambar.open_snapshot("../../data/cosmic_web.ambar").with_units("Nyx")
peak = run.amr.find_center("max:density")
print("fractions of the box:", peak)

# %%
# Means of the density are weighted with the volume, of the temperature here with the mass.
units = {"radius": "kpc"}
options = {"center": peak, "bins": 24, "range": (0, 600)}
density = run.amr.profile("radius", "density", units=units | {"density": "g/cm3"}, **options)
warm = run.amr.profile("radius", "temperature", weight="mass", units=units, **options)
mass = run.amr.profile("radius", "mass", statistic="sum", units=units | {"mass": "Msol"}, **options)

# %%
# Sums in shells add up to the enclosed mass.
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
density["density"].ambar.plot(ax=left, log=True)
warm["temperature"].ambar.plot(ax=middle)
right.plot(mass["radius_upper"], mass["mass"].cumsum())
right.set(xlabel="radius [kpc]", ylabel=r"enclosed gas mass [$M_\odot$]", yscale="log")
