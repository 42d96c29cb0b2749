"""Time steps of a mesh
====================

A solver adds steps to a series. Coordinates and cells do not change, and are stored once.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pyvista as pv

import ambar

folder = TemporaryDirectory()
store = Path(folder.name) / "drum.ambar"
disc = pv.Disc(inner=0.02, outer=1, r_res=40, c_res=120).triangulate()
radius = np.linalg.norm(disc.points, axis=1)
sizes = []
with ambar.open_mesh_series(store, "w", error_bound={"height": 1e-4}) as series:
    for step in range(12):
        time = step / 8
        disc["height"] = np.cos(6 * np.pi * (radius - time)) * np.exp(-8 * (radius - time) ** 2)
        series.add(disc, time)
        sizes.append(store.stat().st_size / 1e3)

# %%
# ``at`` returns the last step at a time or before it.
series = ambar.open_mesh_series(store)
series.at(0.6).plot("height", limits=(-1, 1), colors="RdBu_r")

# %%
# The first step has the mesh, the others only the field within its error bound.
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.bar(range(len(sizes)), np.diff([0, *sizes]))
axes.set(xlabel="step", ylabel="added to the file [kB]")
