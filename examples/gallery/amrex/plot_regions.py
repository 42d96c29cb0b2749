"""Regions
=======

Boxes, spheres, cylinders and shells are combined with ``&``, ``|``, ``-`` and ``~``. Reads, maps
and statistics take a region, and read only the chunks that it touches.
"""

import ambar

run = ambar.open_snapshot("../../data/cosmic_web.ambar").with_units("Nyx")

# %%
# The middle of the box is "bc". Lengths are fractions of the box, or in the given unit.
shell = ambar.SphericalShell("bc", 600, 850, unit="kpc")
tube = ambar.Cylinder("bc", 150, height=1700, axis=(1, 1, 0), unit="kpc")
region = shell | tube
run.plot(["density", "temperature"], region=region, depth=0.3, resolution=400)

# %%
# The mass inside, in solar masses. Cells at the surface count with the fraction inside.
inside = run.amr.sum("mass", region=region, cut="fraction", unit="Msol")
outside = run.amr.sum("mass", region=~region, cut="fraction", unit="Msol")
print(f"{inside:.4g} + {outside:.4g} = {inside + outside:.4g}")
print(f"all cells: {run.amr.sum('mass', unit='Msol'):.4g}")

# %%
# The chunks that a small region touches, of all:
small = ambar.Sphere("bc", 50, unit="kpc")
print(run.amr.chunks_touched(region=small), "of", run.amr.chunk_count)
