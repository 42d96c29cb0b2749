"""Maps of particles
=================

Dark matter of a cosmological run with Nyx: a slab of 3 comoving Mpc. Masses are spread over a
pixel, over a smooth kernel, or not at all.
"""

import matplotlib.pyplot as plt

import ambar
import ambar.xarray  # for image.ambar

run = ambar.open_snapshot("../../data/dark_matter.ambar").with_units("Nyx")
dark = run.particles

# %%
# ``plot`` chooses pixels that have about three particles.
run.plot("mass", particles=True)

# %%
# A cluster as points, as squares of a pixel, and as splines of a radius.
options = {"center": (1500, 520, 1150), "width": 500, "length_unit": "kpc", "resolution": 128}
figure, panels = plt.subplots(1, 3, figsize=(14, 4), layout="constrained")
for axes, method in zip(panels, ("nearest", "cloud", "spline"), strict=True):
    radius = 12 if method == "spline" else None
    image = dark.map("mass", method=method, radius=radius, unit="Msol/pc2", **options)
    image.ambar.plot(ax=axes, limits=(0.5, 100), log=True)
    axes.set_title(method)
    axes.label_outer()
