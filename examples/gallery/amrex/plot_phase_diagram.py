"""A phase diagram
===============

The mass of the gas by its density and temperature, of a cosmological run with Nyx.
"""

import matplotlib.pyplot as plt

import ambar
import ambar.xarray  # for diagram.ambar

run = ambar.open_snapshot("../../data/cosmic_web.ambar").with_units("Nyx")

# %%
# Sums of the mass in bins of both fields. Units apply to bins and sums.
units = {"density": "g/cm3", "temperature": "K", "mass": "Msol"}
warm = "temperature > 1 K"
diagram = run.amr.phase(
    "density", "temperature", log=(True, True), bins=96, units=units, where=warm
)
diagram.ambar.plot()

# %%
# With the mean in bins of density on top.
figure, axes = plt.subplots(figsize=(6.4, 4.8), layout="constrained")
diagram.ambar.plot(ax=axes, colors="cividis")
del units["mass"]
mean = run.amr.profile("density", "temperature", weight="mass", log=True, bins=32, units=units)
axes.plot(mean.density, mean.temperature, color="tab:red", label="mean, weighted with mass")
axes.legend(loc="upper left")
