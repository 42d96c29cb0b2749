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
exported, picture = Path(folder.name, "flow.vtp"), Path(folder.name, "flow.png")
ambar.export("../../data/flow.ambar", exported)

# %%
# A script for pvpython, which draws where ParaView is installed and has a display.
script = f"""
from paraview.simple import *
LoadPalette("WhiteBackground")
hill = WarpByScalar(Input=OpenDataFile({str(exported)!r}), Scalars=["POINTS", "speed"])
view = CreateRenderView(CameraPosition=(2, -7, 7), ViewSize=(1000, 700))
ColorBy(Show(hill, view), ("POINTS", "speed"))
GetDisplayProperties(hill, view).SetScalarBarVisibility(view, True)
SaveScreenshot({str(picture)!r}, view)
"""
if pvpython := shutil.which("pvpython"):
    subprocess.run([pvpython, "-c", script], check=False)
# Without its picture, PyVista draws the same export: the speed of a flow as colour and height.
if not picture.exists():
    options = {"window_size": (1000, 600), "off_screen": True, "cpos": (0.3, -1, 1), "zoom": 1.3}
    options |= {"scalar_bar_args": {"n_labels": 4}}
    pv.read(exported).warp_by_scalar("speed").plot(cmap="viridis", screenshot=picture, **options)
plt.figure(figsize=(8, 5.6), layout="constrained").gca().imshow(plt.imread(picture))
plt.axis("off")
