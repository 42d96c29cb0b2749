"""ParaView
========

ParaView reads stores through a plugin (``ambar paraview-plugin``), and exports without it.
"""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import pyvista as pv

import ambar

folder = TemporaryDirectory()
exported, picture = Path(folder.name) / "flow.vtkhdf", Path(folder.name) / "flow.png"
ambar.export("../../data/flow.ambar", exported)

# %%
# A script for pvpython, which runs where ParaView is installed.
script = f"""
from paraview.simple import *
hill = WarpByScalar(Input=OpenDataFile({str(exported)!r}), Scalars=["POINTS", "speed"])
ColorBy(Show(hill), ("POINTS", "speed"))
ResetCamera()
SaveScreenshot({str(picture)!r}, ImageResolution=(1000, 700))
"""
if pvpython := shutil.which("pvpython"):
    subprocess.run([pvpython, "-c", script], check=True)

# %%
# Without ParaView, PyVista draws the same export: the speed of a flow as colour and height.
if not picture.exists():
    hill = pv.read(exported).warp_by_scalar("speed")
    options = {"window_size": (1000, 600), "off_screen": True, "cpos": (0.3, -1, 1), "zoom": 1.3}
    hill.plot(scalars="speed", cmap="viridis", screenshot=picture, **options)
plt.figure(figsize=(8, 5.6), layout="constrained").gca().imshow(plt.imread(picture))
plt.axis("off")
