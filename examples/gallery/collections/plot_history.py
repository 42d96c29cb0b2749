"""The history of a store
======================

Each write is a commit. Earlier commits stay readable: tagged ones always, others until they are
removed by ``ambar compact``.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import xarray as xr

import ambar
import ambar.xarray  # for dataset.ambar

folder = TemporaryDirectory()
store = Path(folder.name) / "section.ambar"
section = xr.open_dataset("../../data/section.ambar").load()
section.ambar.write(store)
ambar.tag(store, "measured")

# %%
# A correction of the upper layers is a commit of its own.
warm = section.isel(depth=slice(0, 40)).drop_vars("latitude") + 1.5
warm.ambar.write(store, region={"depth": slice(0, 40)})
for commit in ambar.log(store):
    print(commit.number, f"{commit.time:%H:%M:%S}", commit.written, "entries", *commit.tags)

# %%
# A reader chooses a commit.
figure, panels = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for axes, commit in zip(panels, ("measured", None), strict=True):
    version = ambar.open_store(store, commit=commit)
    version.plot("temperature", ax=axes, limits=(3, 24), colors="viridis")
    axes.set_title(commit or "last commit")
