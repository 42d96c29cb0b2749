"""A mesh and its arrays
=====================

Any VTK data set becomes a store, which PyVista reads as it reads its own formats.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyvista as pv
from pyvista import examples

import ambar

folder = TemporaryDirectory()
store = Path(folder.name) / "nut.ambar"
nut = examples.load_nut()
nut["distance"] = np.linalg.norm(nut.points - nut.center, axis=1)
nut.save(store)  # PyVista finds ambar by the suffix

# %%
# Opening reads no arrays. The table has the size of each array and its codecs.
mesh = ambar.open_mesh(store)
mesh

# %%
# The picture that ``ambar plot`` draws.
mesh.plot("distance")

# %%
# PyVista returns the same mesh.
pv.read(store)
