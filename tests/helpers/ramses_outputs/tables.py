"""Writes particles, sinks and clumps of a synthetic RAMSES output."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.helpers.ramses_outputs.records import record
from tests.helpers.ramses_outputs.spec import DTYPES, Columns, Spec

SINKS = ("id", "msink", "x", "y", "z", "vx", "vy", "vz", "lx", "ly", "lz", "tform", "acc_rate")
SINK_UNITS = "1,m,l,l,l,l t**-1,l t**-1,l t**-1,m l**2 t**-1,m l**2 t**-1,m l**2 t**-1,t,m t**-1"
CLUMP_NUMBERS = ("index", "halo", "lev", "parent", "ncell")
CLUMP_REALS = (*(f"peak_{axis}" for axis in "xyz"), "rho-", "rho+", "rho_av", "mass_cl")


def make_particles(rng: np.random.Generator, spec: Spec) -> Columns:
    """Return columns in file order; of three domains and more, every third has no particles."""
    n = spec.particle_count
    columns: Columns = {}
    for name, letter in spec.particle_columns:
        dtype = np.dtype(DTYPES[letter])
        if name.startswith("position"):
            columns[name] = (rng.random(n) * spec.boxlen).astype(dtype)
        elif name == "family":
            columns[name] = rng.integers(1, 4, n).astype(dtype)
        elif letter == "?":
            columns[name] = rng.integers(0, 2, n).astype(dtype)
        elif dtype.kind == "i":
            limit = np.iinfo(dtype)
            columns[name] = rng.integers(limit.min, limit.max, n, dtype, endpoint=True)
        else:
            columns[name] = rng.normal(size=n).astype(dtype)
    busy = [d for d in range(1, spec.domains + 1) if d % 3 != 2 or spec.domains < 3]
    columns["domain"] = np.sort(rng.choice(np.array(busy), n)).astype(np.uint32)
    return columns


def write_particles(folder: Path, spec: Spec, particles: Columns) -> None:
    """Write the part files."""
    seed = [1, 2, 3, 4] * (2 if spec.tracer_seed else 1)
    for domain in range(spec.domains):
        here = particles["domain"] == domain + 1
        numbers = ([spec.domains], [spec.ndim], [int(here.sum())], seed, [0])
        records = [record(data) for data in numbers]
        records += [record([0.0], spec.real), record([0.0], spec.real), record([0])]
        for name, column in particles.items():
            if name != "domain":
                records.append(record(column[here], column.dtype.str))
        name = f"part_{spec.number:05d}.out{domain + 1:05d}"
        (spec.place(folder, domain) / name).write_bytes(b"".join(records))


def write_sinks(folder: Path, spec: Spec, rng: np.random.Generator) -> Columns:
    """Write five sinks, in version 17_09 ("bare") without the lines that name the columns."""
    columns: Columns = {"id": np.arange(1, 6)}
    columns |= {name: _as_written(rng.normal(size=5), 10) for name in SINKS[1:]}
    lines = []
    if spec.sinks == "csv":
        lines = [f" # {','.join(SINKS)} ", f" # {SINK_UNITS}"]
    for row in range(5):
        reals = (f"{columns[name][row]:21.10E}" for name in SINKS[1:])
        lines.append(",".join([f"{columns['id'][row]:10d}", *reals]))
    path = spec.place(folder, 0) / f"sink_{spec.number:05d}.csv"
    path.write_text("\n".join(lines) + "\n")
    return columns


def write_clumps(folder: Path, spec: Spec, rng: np.random.Generator) -> Columns:
    """Write the domains' clump files."""
    rows = spec.clumps * spec.domains
    columns: Columns = {name: rng.integers(1, 99, rows) for name in CLUMP_NUMBERS}
    columns |= {name: _as_written(rng.random(rows), 9) for name in CLUMP_REALS}
    domain = np.repeat(np.arange(spec.domains), spec.clumps)
    for place in range(spec.domains):
        lines = ["   " + "   ".join(columns)]
        for row in np.flatnonzero(domain == place) if place != 1 else ():
            whole = [f"{columns[name][row]:8d}" for name in CLUMP_NUMBERS]
            reals = [f"{columns[name][row]:18.9E}" for name in CLUMP_REALS]
            lines.append(" ".join(whole + reals))
        path = spec.place(folder, place) / f"clump_{spec.number:05d}.txt{place + 1:05d}"
        path.write_text("\n".join(lines) + "\n")
    return {name: column[domain != 1] for name, column in columns.items()}


def _as_written(values: np.ndarray, digits: int) -> np.ndarray:
    return np.array([float(f"{value:.{digits}E}") for value in values])
