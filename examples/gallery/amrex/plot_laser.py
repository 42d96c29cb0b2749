"""Fields of a laser pulse
=======================

A laser pulse drives a wake in a plasma: electric field and density of charge of WarpX, in SI
units.
"""

import matplotlib.pyplot as plt

import ambar

run = ambar.open_snapshot("../../data/laser_wake.ambar").with_units("WarpX")

# %%
# Fields without a density of mass are cut. Those of both signs have symmetric colours.
run.plot(["Ey", "rho"], axis="x", slice_at=0.5)

# %%
# Slices are arrays of xarray: a line along the axis of the pulse is a selection.
field = run.amr.slice("Ey", axis="x", at=0.5, unit="GV/m")
line = field.isel(y=field.sizes["y"] // 2)
figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
axes.plot(line["z"] * 1e6, line)
axes.set(xlabel="z [µm]", ylabel="electric field [GV/m]", title="on the axis of the pulse")
