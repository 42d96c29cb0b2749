"""The cosmic web in physical units
================================

Plotfiles do not state their units; ``with_units`` does. This is a box of 12 comoving Mpc of Nyx at
redshift 5.5, stored within an error bound in 0.5 MB.
"""

import ambar
import ambar.xarray  # for image.ambar

run = ambar.open_snapshot("../../data/cosmic_web.ambar").with_units("Nyx")
print(run.info)

# %%
# The surface density, and the temperature weighted with the density. Lengths are proper.
run.plot(["density", "temperature"])

# %%
# Around the densest cell, in any direction. A map has any unit of the right dimension.
image = run.amr.map(
    "density",
    axis=(1, 2, 3),
    center="max:density",
    width=500,
    depth=500,
    length_unit="kpc",
    unit="Msol/pc2",
    resolution=300,
)
image.ambar.plot(log=True).set_title("around the densest cell")
# sphinx_gallery_thumbnail_number = 2
