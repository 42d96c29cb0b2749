"""A collection of profiles
========================

Many small datasets in one store, here casts of two gliders that cross a current.
"""

import matplotlib.pyplot as plt

import ambar

casts = ambar.open_collection("../../data/casts.ambar")
casts

# %%
# The positions of all datasets, and profiles of some of them.
casts.plot()

# %%
# One read returns a variable of all datasets that a condition selects, as one array. Conditions
# compare attributes, and statistics of variables, for which no values are read.
condition = 'platform == "glider2" and temperature.max > 18'
found = casts.read(["temperature", "latitude"], condition)
print(found["temperature"].shape)

# %%
depth = casts[found.names[0]]["depth"]
figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
image = axes.pcolormesh(found["latitude"], depth, found["temperature"].T, cmap="viridis")
axes.set(xlabel="latitude [degrees north]", ylabel="depth [m]", ylim=(800, 0))
figure.colorbar(image, label="temperature [°C]")
# sphinx_gallery_thumbnail_number = 2
