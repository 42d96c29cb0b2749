"""Distributions by volume and by mass
===================================

How much of the volume and of the mass of a cosmological run has which density.
"""

import matplotlib.pyplot as plt

import ambar
import ambar.xarray  # for share.ambar

run = ambar.open_snapshot("../../data/cosmic_web.ambar").with_units("Nyx")

# %%
# Histograms are weighted with the volume by default. The density in units of its mean is an
# expression.
mean = run.amr.mean("density")
overdensity = f"density / {mean!r}"
figure, axes = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
for weight in ("volume", "mass"):
    found = run.amr.histogram(overdensity, weight=weight, bins=60, range=(0.1, 60), log=True)
    share = found / found.sum()
    share.ambar.plot(ax=axes, log=True, label=weight)
axes.set(xlabel="density / mean density", ylabel="share per bin")
axes.legend(title="weighted with")

# %%
# Exact quantiles, and all statistics of a field in one pass.
print(run.amr.quantile(overdensity, [0.01, 0.5, 0.99]))
print(run.amr.statistics("temperature", weight="mass"))
