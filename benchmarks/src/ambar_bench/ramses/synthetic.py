"""Writes large RAMSES outputs of smooth fields, for measurements where no run is at hand.

The files have the layout of RAMSES: domains along its Hilbert curve, octs of a level in one block
per domain, and the parents and children of each domain's octs as ghosts. Trees are refined around a
few centres.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

HYDRO = ("density", "velocity_x", "velocity_y", "velocity_z", "pressure", "metallicity")
GRAVITY = ("potential", "acceleration_x", "acceleration_y", "acceleration_z")
PARTICLES = (
    *((f"position_{axis}", "d") for axis in "xyz"),
    *((f"velocity_{axis}", "d") for axis in "xyz"),
    ("mass", "d"),
    ("identity", "i"),
    ("levelp", "i"),
    ("family", "b"),
    ("tag", "b"),
)
DTYPES = {"d": "<f8", "i": "<i4", "b": "|i1"}
OCT_BYTES = 160 + 64 * (len(HYDRO) + len(GRAVITY))
"""Bytes of an oct in the amr, hydro and grav files."""
PARTICLE_BYTES = sum(np.dtype(DTYPES[letter]).itemsize for _, letter in PARTICLES)
CORNERS = np.array([[cell >> axis & 1 for axis in range(3)] for cell in range(8)])
TURNS = (
    ((2, 0, 1), (0, 0, 0)),
    ((1, 2, 0), (0, 0, 0)),
    ((1, 2, 0), (0, 0, 0)),
    ((0, 1, 2), (0, 1, 1)),
    ((0, 1, 2), (0, 1, 1)),
    ((1, 2, 0), (1, 0, 1)),
    ((1, 2, 0), (1, 0, 1)),
    ((2, 0, 1), (1, 1, 0)),
)
"""The Hilbert curve in each octant: the order of the axes, and which of them are mirrored."""
CENTRES = np.array([[0.3, 0.4, 0.5], [0.7, 0.55, 0.35], [0.52, 0.75, 0.68]])
GRID_MAX = 10_000_000


@dataclass(frozen=True)
class SyntheticOutput:
    """An output to be written."""

    megabytes: int
    """Approximate size of the files in MB (10^6 bytes)."""
    domains: int = 16
    level_min: int = 5
    """The finest level that fills the box."""
    level_max: int = 9
    particle_share: float = 0.1
    """Part of the bytes that are particles."""
    number: int = 1
    seed: int = 1


@dataclass
class _Level:
    """The octs of a level: `n` octs of 8 cells."""

    father: Array
    """(n, 3) coordinates of the father cells, in cells of the level above."""
    parent: Array
    """(n,) index of the oct that contains the father cell, in the level above."""
    slot: Array
    """(n,) number of the father cell in that oct."""
    child: Array = field(default_factory=lambda: np.zeros((0, 8), np.int32))
    """(n, 8) index of each cell's oct in the next level, or -1."""
    order: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """The octs, ordered by their domains."""
    starts: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    """(domains + 1,) the first oct of each domain in `order`."""
    owner: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    """(n,) 0-based domain."""


def write_output(run: Path, spec: SyntheticOutput) -> Path:
    """Write `run/output_NNNNN` and return its path."""
    folder = run / f"output_{spec.number:05d}"
    folder.mkdir(parents=True)
    octs = int(spec.megabytes * 1e6 * (1 - spec.particle_share) / OCT_BYTES)
    particles = int(spec.megabytes * 1e6 * spec.particle_share / PARTICLE_BYTES)
    levels = _levels(octs, spec)
    bounds = _distribute(levels, spec)
    for domain in range(spec.domains):
        _DomainWriter(levels, bounds, spec, domain).write(folder)
        _write_particles(folder, spec, domain, particles)
    _write_texts(folder, spec, bounds, particles)
    return folder


def _levels(octs: int, spec: SyntheticOutput) -> list[_Level]:
    """Return the levels of a tree of about `octs` octs."""
    base = (8**spec.level_min - 1) // 7
    per_level = max(1, (octs - base) // (spec.level_max - spec.level_min))
    levels = [_Level(np.zeros((1, 3), np.int32), np.zeros(1, np.int32), np.zeros(1, np.int32))]
    for number in range(1, spec.level_max):
        level = levels[-1]
        cells = (level.father[:, None, :] * 2 + CORNERS[None]).reshape(-1, 3)
        refined = np.arange(len(cells))
        if number >= spec.level_min and per_level < len(cells):
            centre = (cells + 0.5) * 0.5**number
            distance = np.full(len(cells), np.inf)
            for weight, position in enumerate(CENTRES, start=1):
                squared = ((centre - position) ** 2).sum(axis=1) * weight
                np.minimum(distance, squared, out=distance)
            refined = np.sort(np.argpartition(distance, per_level)[:per_level])
        child = np.full(len(cells), -1, np.int32)
        child[refined] = np.arange(len(refined))
        level.child = child.reshape(-1, 8)
        parent, slot = np.divmod(refined, 8)
        father = cells[refined].astype(np.int32)
        levels.append(_Level(father, parent.astype(np.int32), slot.astype(np.int32)))
    levels[-1].child = np.full((len(levels[-1].father), 8), -1, np.int32)
    return levels


def _hilbert_keys(coordinates: Array, bits: int) -> Array:
    """Return the keys of (n, 3) coordinates along RAMSES' Hilbert curve."""
    axes = np.tile(np.arange(3), (len(coordinates), 1))
    flips = np.zeros_like(axes)
    key = np.zeros(len(coordinates), np.int64)
    turn_axes = np.array([axes for axes, _ in TURNS])
    turn_flips = np.array([flips for _, flips in TURNS])
    for bit in range(bits - 1, -1, -1):
        corner = np.take_along_axis((coordinates >> bit) & 1, axes, axis=1) ^ flips
        parity = np.zeros_like(key)
        step = np.zeros_like(key)
        for axis in range(3):
            parity ^= corner[:, axis]
            step = step * 2 + parity
        key = (key << 3) | step
        flips = np.take_along_axis(flips, turn_axes[step], axis=1) ^ turn_flips[step]
        axes = np.take_along_axis(axes, turn_axes[step], axis=1)
    return key


def _distribute(levels: list[_Level], spec: SyntheticOutput) -> list[int]:
    """Assign the octs to domains, and return the bounds of the domains on the curve."""
    bits = spec.level_max + 2
    keys = []
    for i, level in enumerate(levels):
        middle = level.father.astype(np.int64) * 2 + 1 << bits - i - 1
        keys.append(_hilbert_keys(middle, bits))
    every = np.sort(np.concatenate(keys))
    ends = [int(every[len(every) * i // spec.domains]) for i in range(1, spec.domains)]
    for level, own in zip(levels, keys, strict=True):
        level.owner = np.searchsorted(np.array(ends, np.int64), own, side="right").astype(np.int32)
        level.order = np.argsort(level.owner, kind="stable")
        sorted_owners = level.owner[level.order]
        level.starts = np.searchsorted(sorted_owners, np.arange(spec.domains + 1))
    return [0, *ends, 1 << 3 * bits]


def _record(data: Any, dtype: str = "<i4") -> bytes:
    body = data if isinstance(data, bytes) else np.ascontiguousarray(data, dtype).tobytes()
    marker = struct.pack("<i", len(body))
    return marker + body + marker


class _DomainWriter:
    """Writes the amr, hydro and grav files of a domain."""

    def __init__(
        self, levels: list[_Level], bounds: list[int], spec: SyntheticOutput, domain: int
    ) -> None:
        self.levels, self.bounds, self.spec, self.domain = levels, bounds, spec, domain
        self.depth = spec.level_max + 1
        self.counts = np.zeros((self.depth, spec.domains), np.int64)
        self.held: list[Array] = []
        self.first = [1]
        """The number of the first oct of each level in this file."""
        ancestors = np.zeros(0, np.int64)
        for i in range(len(levels) - 1, -1, -1):
            level = levels[i]
            held = np.union1d(self._own(i), ancestors)
            if i > 0:
                children = levels[i - 1].child[self._own(i - 1)].ravel()
                held = np.union1d(held, children[children >= 0])
            self.held.append(held[np.argsort(level.owner[held], kind="stable")])
            ancestors = np.unique(level.parent[held])
        self.held.reverse()
        self.numbered: list[tuple[Array, Array]] = []
        """For each level, its octs in this file, ascending, and their numbers."""
        for i, held in enumerate(self.held):
            ascending = np.argsort(held)
            self.numbered.append((held[ascending], self.first[-1] + ascending))
            self.counts[i] = np.bincount(levels[i].owner[held], minlength=spec.domains)
            self.first.append(self.first[-1] + len(held))

    def _own(self, i: int) -> Array:
        level = self.levels[i]
        return level.order[level.starts[self.domain] : level.starts[self.domain + 1]]

    def write(self, folder: Path) -> None:
        """Write the files."""
        ending = f"_{self.spec.number:05d}.out{self.domain + 1:05d}"
        rng = np.random.default_rng((self.spec.seed, self.domain))
        with (
            (folder / f"amr{ending}").open("wb") as amr,
            (folder / f"hydro{ending}").open("wb") as hydro,
            (folder / f"grav{ending}").open("wb") as grav,
        ):
            amr.write(self._amr_head())
            heads = [self.spec.domains, len(HYDRO), 3, self.depth, 0]
            hydro.write(b"".join(_record([n]) for n in heads) + _record([1.4], "<f8"))
            heads = [self.spec.domains, len(GRAVITY), self.depth, 0]
            grav.write(b"".join(_record([n]) for n in heads))
            for i in range(self.depth):
                empty = _record([i + 1]) + _record([0])
                last = 0
                ends = np.cumsum(self.counts[i])
                for owner in map(int, np.flatnonzero(self.counts[i])):
                    octs = self.held[i][ends[owner] - self.counts[i, owner] : ends[owner]]
                    head = empty * (owner - last) + _record([i + 1]) + _record([len(octs)])
                    last = owner + 1
                    amr.write(self._tree_block(i, octs))
                    values = self._values(i, octs, rng)
                    hydro.write(head + _cells(values[: len(HYDRO)]))
                    grav.write(head + _cells(values[len(HYDRO) :]))
                rest = empty * (self.spec.domains - last)
                hydro.write(rest)
                grav.write(rest)

    def _numbers(self, i: int, octs: Array) -> Array:
        """Return the numbers of octs of a level in this file; 0 for octs that it does not have."""
        held, numbers = self.numbered[i]
        if len(held) == 0:
            return np.zeros(len(octs), np.int64)
        place = np.minimum(np.searchsorted(held, octs), len(held) - 1)
        return np.where(held[place] == octs, numbers[place], 0)

    def _amr_head(self) -> bytes:
        depth, domains = self.depth, self.spec.domains
        totals = np.zeros((depth, 10), np.int64)
        totals[: len(self.levels), 0] = [len(level.father) for level in self.levels]
        nothing = np.zeros((depth, domains), np.int32)
        integers = [[domains], [3], [1, 1, 1], [depth], [GRID_MAX], [0], [self.first[-1] - 1]]
        records = [_record(data) for data in integers]
        records += [_record([1.0], "<f8"), _record([1, 2, 2])]
        records += [_record(data, "<f8") for data in ([1.0], [1.0], [0.25], [0.0] * depth)]
        records += [_record([0.0] * depth, "<f8"), _record([3, 3]), _record([0.0] * 3, "<f8")]
        records += [_record([0.3, 0.7, 0.0, 0.05, 70.0, 0.1, 1.0], "<f8")]
        records += [_record([1.0, 0.0, 0.0, 0.0, 0.0], "<f8"), _record([0.0], "<f8")]
        records += [_record(data) for data in (nothing, nothing, self.counts, totals, [0] * 5)]
        records += [_record(b"hilbert".ljust(128)), _record(self.bounds, "<f8")]
        records += [_record([value]) for value in (1, 0, 1)]
        return b"".join(records)

    def _tree_block(self, i: int, octs: Array) -> bytes:
        level = self.levels[i]
        numbers = self._numbers(i, octs)
        father = np.ones(len(octs), np.int64)
        if i > 0:
            father += self._numbers(i - 1, level.parent[octs]) + GRID_MAX * level.slot[octs]
        nothing = np.zeros(len(octs), np.int32)
        records = [numbers, np.roll(numbers, -1), np.roll(numbers, 1)]
        body = b"".join(map(_record, records))
        body += b"".join(_record(x, "<f8") for x in ((level.father[octs] + 0.5) * 0.5**i).T)
        body += _record(father) + _record(nothing) * 6
        for cell in range(8):
            child = level.child[octs, cell]
            # A cell of a ghost may be refined into an oct that this file lacks.
            number = self._numbers(i + 1, child) if i + 1 < len(self.levels) else nothing
            body += _record(np.where((child >= 0) & (number == 0), GRID_MAX, number))
        return body + _record(level.owner[octs] + 1) * 8 + _record(nothing) * 8

    def _values(self, i: int, octs: Array, rng: np.random.Generator) -> Array:
        """Return the (fields, cells, octs) values: smooth fields with some noise."""
        corner = self.levels[i].father[octs].T[:, None, :] * 2 + CORNERS.T[:, :, None]
        x, y, z = (corner + 0.5) * 0.5 ** (i + 1)
        squared = [((np.stack([x, y, z]).T - c) ** 2).sum(axis=-1).T for c in CENTRES]
        near = sum(1 / (1e-3 + r) for r in squared)
        waves = [np.sin(2 * np.pi * (x + y * k) + k * z) for k in range(1, 4)]
        density = near**1.5
        potential = -np.sqrt(near)
        fields = [density, *waves, density ** (5 / 3), 0.02 * np.exp(-squared[0] * 20)]
        fields += [potential, *(potential * wave for wave in waves)]
        values = np.stack(fields)
        return values * (1 + 1e-4 * rng.standard_normal(values.shape))


def _cells(values: Array) -> bytes:
    """Return the records of (fields, cells, octs) values, cell by cell."""
    cells = range(values.shape[1])
    return b"".join(_record(one[cell], "<f8") for cell in cells for one in values)


def _write_particles(folder: Path, spec: SyntheticOutput, domain: int, total: int) -> None:
    rng = np.random.default_rng((spec.seed, spec.domains + domain))
    first, last = (total * d // spec.domains for d in (domain, domain + 1))
    n = last - first
    columns = dict.fromkeys(name for name, _ in PARTICLES)
    middle = np.array([domain * 0.37 % 1, domain * 0.61 % 1, domain * 0.83 % 1])
    positions = (middle + 0.05 * rng.standard_normal((n, 3))) % 1
    velocities = np.sin(6 * positions) + 0.01 * rng.standard_normal((n, 3))
    values: dict[str, Array] = columns  # type: ignore[assignment]
    for i, axis in enumerate("xyz"):
        values[f"position_{axis}"], values[f"velocity_{axis}"] = positions[:, i], velocities[:, i]
    values["mass"] = np.full(n, 1e-6)
    values["identity"] = np.arange(first + 1, last + 1)
    values["levelp"] = np.full(n, spec.level_min)
    values["family"], values["tag"] = np.ones(n), np.zeros(n)
    records = [_record([number]) for number in (spec.domains, 3, n)] + [_record([1, 2, 3, 4])]
    records += [_record([0]), _record([0.0], "<f8"), _record([0.0], "<f8"), _record([0])]
    records += [_record(values[name], DTYPES[letter]) for name, letter in PARTICLES]
    name = f"part_{spec.number:05d}.out{domain + 1:05d}"
    (folder / name).write_bytes(b"".join(records))


def _write_texts(folder: Path, spec: SyntheticOutput, bounds: list[int], particles: int) -> None:
    integers = {"ncpu": spec.domains, "ndim": 3, "levelmin": spec.level_min}
    integers |= {"levelmax": spec.level_max + 1, "ngridmax": GRID_MAX, "nstep_coarse": 3}
    reals = {"boxlen": 1.0, "time": 0.25, "aexp": 1.0, "H0": 70.0, "omega_m": 0.3}
    reals |= {"omega_l": 0.7, "omega_k": 0.0, "omega_b": 0.05}
    reals |= {"unit_l": 3.0e21, "unit_d": 1.66e-24, "unit_t": 3.15e13}
    lines = [f"{name:<12}={value:11d}" for name, value in integers.items()]
    lines += ["", *(f"{name:<12}={value:23.15E}" for name, value in reals.items()), ""]
    lines += [f"ordering type={'hilbert':<80}", "   DOMAIN   ind_min                 ind_max"]
    for i, (low, high) in enumerate(pairwise(bounds), start=1):
        lines.append(f"{i:8d} {float(low):23.15E} {float(high):23.15E}")
    counts = {"other_tracer": 0, "debris_tracer": 0, "cloud_tracer": 0, "star_tracer": 0}
    counts |= {"other_tracer": 0, "gas_tracer": 0, "DM": particles, "star": 0, "cloud": 0}
    counts |= {"debris": 0, "other": 0, "undefined": 0}
    header = ["#      Family     Count", *(f"{name:>13}{n:16d}" for name, n in counts.items())]
    header += [" Particle fields", "pos vel mass iord level family tag "]
    texts = {
        f"info_{spec.number:05d}.txt": lines,
        f"header_{spec.number:05d}.txt": header,
        "namelist.txt": ["&RUN_PARAMS", "cosmo=.false.", "hydro=.true.", "poisson=.true.", "/"],
        "hydro_file_descriptor.txt": _descriptor([(name, "d") for name in HYDRO]),
        "part_file_descriptor.txt": _descriptor(list(PARTICLES)),
    }
    for name, text in texts.items():
        (folder / name).write_text("\n".join(text) + "\n")


def _descriptor(columns: list[tuple[str, str]]) -> list[str]:
    lines = ["# version:  1", "# ivar, variable_name, variable_type"]
    return lines + [f"{i:2d}, {name}, {letter}" for i, (name, letter) in enumerate(columns, 1)]
