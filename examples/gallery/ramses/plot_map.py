"""Maps along any direction
========================

A RAMSES output becomes one file. Maps integrate or average its cells along an axis or any vector.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import ambar

folder = TemporaryDirectory()
store = Path(folder.name) / "run.ambar"
output = "../../../tests/data/ramses/gravpart_small/output_00002"
ambar.convert(output, store)

# %%
# A map of the density is its integral; other fields are averaged, weighted with the density. Units,
# colours and limits suit the values. This run has no physical units.
run = ambar.open_snapshot(store)
run.plot(["density", "velocity_magnitude"])

# %%
# Any vector is a line of sight. A width selects a part: only the chunks that it touches are read.
run.plot(["density", "velocity_z"], axis=(1, 1, 1), center="max:density", width=0.5)

# %%
# ``map`` returns the same values as an xarray.DataArray, with coordinates and units.
image = run.amr.map("density", axis=(1, 1, 1), center="max:density", width=0.5)
image
