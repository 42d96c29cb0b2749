"""Add time steps with xarray
==========================

A dataset grows along time while other programs read it. Each write is one commit.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import xarray as xr

import ambar.xarray  # for dataset.ambar

folder = TemporaryDirectory()
store = Path(folder.name) / "waves.ambar"
x = np.linspace(0, 360, 361)
bound = {"height": {"error_bound": 0.01}}
for day in range(40):
    height = sum(np.cos(np.radians(k * x - 9 * k**1.5 * day)) for k in range(2, 9))
    step = xr.Dataset(
        {"height": (("time", "longitude"), height[None], {"units": "m"})},
        {
            "time": [np.datetime64("2026-01-01", "ns") + np.timedelta64(day, "D")],
            "longitude": ("longitude", x, {"units": "degrees_east"}),
        },
    )
    step.ambar.write(store, append_dim="time" if day else None, encoding=None if day else bound)

# %%
# The store has a history. Any commit can be opened.
dataset = xr.open_dataset(store)
dataset

# %%
# Times and depths have axes of their own.
dataset["height"].ambar.plot()
