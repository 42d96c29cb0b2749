"""A series of outputs
===================

A folder of outputs becomes one store, a series: a sequence of snapshots.
"""

import matplotlib.pyplot as plt

import ambar

series = ambar.open_series("../../data/implosion.ambar")
series

# %%
# All outputs with the same colours. From the shell, ``ambar plot --movie run.mp4`` makes a movie.
series.plot("density")

# %%
# Sums and extrema over time: a loop over snapshots.
energy = [run.amr.sum("kinetic_energy") for run in series]
vorticity = [run.amr.std("vorticity_z") for run in series]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.plot(series.times, energy, "o-")
left.set(xlabel="time [code units]", ylabel="kinetic energy [code units]", ylim=0)
right.plot(series.times, vorticity, "o-")
right.set(xlabel="time [code units]", ylabel="rms vorticity [code units]", ylim=0)
