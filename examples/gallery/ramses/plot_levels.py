"""Refinement levels and a close-up
================================

The implosion of Liska and Wendroff (2003) in two dimensions, by RAMSES, on levels 6 to 10.
"""

import ambar

output = "../../../tests/data/ramses/implosion2d/output_00004"
run = ambar.open_snapshot(output)  # an output folder opens without a conversion, too

# %%
# The density, and the level of the cells.
run.plot(["density", "level"])

# %%
# The jet along the diagonal, with the borders of levels. Only cells in the corner are read.
run.plot(["density", "pressure"], center=(0.14, 0.14), width=0.28, levels=True)

# %%
print(run.amr.cells_per_level)
