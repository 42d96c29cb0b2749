"""Parts of a mesh
===============

A region and a condition select cells. Only the chunks and arrays that they need are read.
"""

import matplotlib.pyplot as plt
import numpy as np

import ambar

mesh = ambar.open_mesh("../../data/flow.ambar")
mesh

# %%
# The potential flow around a cylinder: cells in a box, and cells where the flow is fast.
box = ambar.Box((-2.5, 0, None), (2.5, 2.5, None))
parts = {
    "all cells": mesh.read(point_data=["speed"]),
    "in a box": mesh.read(point_data=["speed"], region=box),
    "speed > 1.2": mesh.read(point_data=["speed"], where="speed > 1.2"),
}
print({name: part.n_cells for name, part in parts.items()})

# %%
figure, panels = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for axes, (name, part) in zip(panels, parts.items(), strict=True):
    x, y, _ = np.transpose(part.points)
    options = {"vmin": 0, "vmax": 2, "shading": "gouraud"}
    picture = axes.tripcolor(x, y, part.regular_faces, part["speed"], **options)
    axes.set(title=name, xlabel="x", ylabel="y", xlim=(-4, 4), ylim=(-4, 4), aspect="equal")
figure.colorbar(picture, ax=panels, label="speed / speed of the undisturbed flow")
