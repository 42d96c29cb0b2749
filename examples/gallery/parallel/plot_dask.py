"""Lazy arrays with dask
=====================

xarray opens stores with dask: a task reads the chunks that its part of a result needs.
"""

import dask
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

section = xr.open_dataset("../../data/section.ambar", chunks={})
section["temperature"].data

# %%
# Nothing is computed until ``compute`` or a picture needs it.
layer = section["temperature"].sel(depth=slice(0, 500))
heat = layer.integrate("depth") * 1025 * 3985 / 1e9
isotherm = section["depth"].where(section["temperature"] > 10).max("depth")
heat, isotherm = dask.compute(heat, isotherm)

# %%
figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
top.plot(heat["latitude"], heat)
top.set(ylabel="heat content, 0 to 500 m\n[GJ/m²]")
bottom.plot(isotherm["latitude"], isotherm)
bottom.set(xlabel="latitude [degrees north]", ylabel="depth of 10 °C [m]", ylim=(750, 0))

# %%
# Particles of a run are dask arrays, too.
particles = xr.open_dataset("../../data/dark_matter.ambar", group="particles/DM", chunks={})
print("rms velocity:", float(np.sqrt((particles["xvel"] ** 2).mean())), "km/s")
