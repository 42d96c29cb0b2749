"""Derived fields
==============

Derived fields, arithmetic and fields of your own are computed when they are read, chunk by chunk.
"""

import ambar

run = ambar.open_series("../../data/implosion.ambar")[-1]
print(*run.amr.derived_fields, sep=", ")

# %%
# Gradients are those of the adaptive mesh, across levels, too. Values of both signs have symmetric
# colours.
run.plot(["vorticity_z", "velocity_divergence"], center=(0.2, 0.2), width=0.4)

# %%
# An expression is a field wherever a name is one, also in conditions.
run.plot(["velocity_magnitude / sound_speed", "pressure / density"])
print(run.amr.mean("pressure / density", where="velocity_magnitude > 0.2 * sound_speed"))

# %%
# A function of your own gets the inputs that its parameters name.
ambar.fields.add("enthalpy", lambda density, pressure: 3.5 * pressure / density)
run.plot("enthalpy", center=(0.2, 0.2), width=0.4, levels=True)
ambar.fields.remove("enthalpy")
# sphinx_gallery_thumbnail_number = 3
