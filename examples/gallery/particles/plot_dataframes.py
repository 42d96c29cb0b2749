"""Tables in Polars, pandas and DuckDB
===================================

Tables of cells and particles are columns in memory, which data frames and databases use without a
copy.
"""

import duckdb
import matplotlib.pyplot as plt
import polars as pl

import ambar

run = ambar.open_snapshot("../../data/cosmic_web.ambar").with_units("Nyx")
gas = run.amr.read(["level", "density", "temperature", "mass"], where="temperature > 1 K")
gas.to_pandas().describe()

# %%
# Polars: the share of the mass in decades of the temperature, by level.
cells = pl.DataFrame(gas).with_columns(decade=pl.col("temperature").log10().floor())
shares = cells.group_by("level", "decade").agg(share=pl.col("mass").sum() / cells["mass"].sum())
shares.sort("level", "decade")

# %%
# DuckDB: the same table in SQL.
print(duckdb.sql("select level, count(*), max(density) from gas group by level"))

# %%
figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
for level in (0, 1):
    part = shares.filter(level=level)
    axes.bar(part["decade"] + 0.25 + 0.5 * level, part["share"], 0.5, label=f"level {level}")
axes.set(xlabel="temperature, logarithm of K", ylabel="share of the mass", yscale="log")
axes.legend()
