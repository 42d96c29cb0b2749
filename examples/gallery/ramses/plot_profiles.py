"""Radial profiles of a blast wave
===============================

Profiles average cells in bins, here of the distance from the centre of a blast wave in RAMSES.
"""

import matplotlib.pyplot as plt

import ambar
import ambar.xarray  # for profile.ambar

output = "../../../tests/data/ramses/sedov2d_small/output_00002"
run = ambar.open_snapshot(output)

# %%
# One pass computes several profiles. Means are weighted with the volume by default.
fields = ["density", "pressure", "velocity_cylindrical_radius"]
profile = run.amr.profile("cylindrical_radius", fields, bins=24, range=(0, 0.12))
profile

# %%
# Points are all cells; the finest ones are orange.
cells = run.amr.read(["cylindrical_radius", "level", *fields], where="cylindrical_radius < 0.12")
finest = cells["level"] == 6
figure, panels = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for axes, field in zip(panels, fields, strict=True):
    profile[field].ambar.plot(ax=axes, label="mean")
    for chosen, color, text in (
        (finest, "tab:orange", "cells of level 6"),
        (~finest, "k", "cells of level 5"),
    ):
        x, y = cells["cylindrical_radius"][chosen], cells[field][chosen]
        axes.scatter(x, y, s=8, color=color, label=text)
panels[0].legend()
