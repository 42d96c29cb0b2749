"""Profiles of different lengths
=============================

A ragged dimension has another length in each dataset. All values are stored as one array.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

import ambar

folder = TemporaryDirectory()
store = Path(folder.name) / "floats.ambar"
with ambar.open_collection(store, "w", ragged=["level"]) as floats:
    for cycle in range(40):
        pressure = np.linspace(5, 400 + 40 * cycle, 20 + 3 * cycle)
        oxygen = 120 + 150 * np.exp(-pressure / (150 + 8 * cycle))
        columns = {"pressure": ("level", pressure), "oxygen": ("level", oxygen)}
        floats.add(f"cycle{cycle:02}", xr.Dataset(columns, attrs={"cycle": cycle}))

# %%
# A read returns the values of all datasets that a condition selects, and their offsets.
floats = ambar.open_collection(store)
found = floats.read(["pressure", "oxygen"], "cycle >= 8 and oxygen.min > 121")
print(found["oxygen"].offsets)

# %%
figure, axes = plt.subplots(figsize=(6, 4.6), layout="constrained")
for number in range(0, len(found.names), 5):
    pressure, oxygen = found["pressure"][number], found["oxygen"][number]
    color = plt.get_cmap("viridis")(number / len(found.names))
    axes.plot(oxygen, pressure, color=color, label=found.names[number])
axes.set(xlabel=r"oxygen [$\mu$mol/kg]", ylabel="pressure [dbar]", ylim=(2000, 0))
axes.legend()
