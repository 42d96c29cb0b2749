"""Size and error within error bounds
==================================

An error bound limits the error of every value. The smaller it is, the larger is the file.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np

import ambar

output = "../../../tests/data/ramses/implosion2d/output_00004"
folder = TemporaryDirectory()
store = Path(folder.name) / "lossy.ambar"
bounds, ratios, errors = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2], [], []
for bound in bounds:
    report = ambar.convert(output, store, mode="w", error_bound=f"{bound} relative")
    ratios.append(report.ratio)
    found = ambar.compare(output, store, fields=["density"])
    original, lossy = (ambar.open_snapshot(path).amr.read("density") for path in (output, store))
    errors.append(np.max(np.abs(lossy["density"] / original["density"] - 1)))
print(found)

# %%
# All fields together, and the largest error of the density: no value exceeds the bound.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.semilogx(bounds, ratios, "o-")
left.set(xlabel="relative error bound", ylabel="times smaller than RAMSES' files", ylim=0)
right.loglog(bounds, errors, "o-")
right.loglog(bounds, bounds, "k:", label="bound")
right.legend()
right.set(xlabel="relative error bound", ylabel="largest relative error of the density")

# %%
# The last one, with a bound of 1 %, its original and the error.
ambar.open_snapshot(output).plot("density", against=ambar.open_snapshot(store))
