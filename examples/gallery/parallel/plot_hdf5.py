"""The codec as a filter of HDF5
=============================

h5py writes and reads compressed datasets after ``import ambar.hdf5``; other programs load a plugin.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import matplotlib.pyplot as plt
import numpy as np

from ambar import hdf5

# %%
# A lognormal density with the spectrum of turbulence.
noise = np.fft.fftn(np.random.default_rng(1).normal(size=(64, 64, 64)))
k = np.sqrt(sum(axis**2 for axis in np.meshgrid(*[np.fft.fftfreq(64, 1 / 64)] * 3)) + 1)
field = np.fft.ifftn(noise * k ** (-11 / 6)).real
density = np.exp(field / field.std())

# %%
# Without a filter, with filters of HDF5, and within error bounds.
filters = {
    "none": {},
    "shuffle, gzip": {"shuffle": True, "compression": "gzip"},
    "ambar, lossless": hdf5.filter(),
    "ambar, 1e-5 relative": hdf5.filter("1e-5 relative"),
    "ambar, 1e-3 relative": hdf5.filter("1e-3 relative"),
}
path = Path((folder := TemporaryDirectory()).name) / "fields.h5"
with h5py.File(path, "w") as file:
    for name, options in filters.items():
        file.create_dataset(name, data=density, chunks=density.shape, **options)
    sizes = [file[name].id.get_storage_size() / 1e6 for name in filters]
axes = plt.figure(figsize=(7, 3), layout="constrained").gca()
axes.bar_label(axes.barh([*filters], sizes), fmt=" %.2f MB")
axes.set(xlabel="size in the file [MB]", xlim=(0, 1.15 * max(sizes)), ylim=(4.6, -0.6))
