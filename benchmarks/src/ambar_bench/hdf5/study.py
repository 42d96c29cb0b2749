"""The study of the HDF5 filter: times of the bare codec, through HDF5, and of HDF5 without it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ambar
from ambar import codecs, hdf5
from ambar_bench.machine import machine

SIDES = (32, 64, 128)
DTYPES = ("float32", "float64")
BOUNDS = (0.0, 1e-3)
PACKAGES = ("h5py",)


@dataclass
class Direction:
    """CPU seconds of one direction for all values, of the fastest round of each chunk."""

    codec: float
    """The bare codec, chunk by chunk."""
    filtered: float
    """Through h5py and HDF5, with the filter."""
    plain: float
    """Through h5py and HDF5, in chunks without a filter."""

    @property
    def overhead(self) -> float:
        """What the filter adds to the codec, beyond what HDF5 takes anyway; 0.1 is 10 %."""
        return (self.filtered - self.plain) / self.codec - 1

    @property
    def overhead_with_hdf5(self) -> float:
        """What filter and HDF5 add together to the codec."""
        return self.filtered / self.codec - 1


@dataclass
class Row:
    """A type of values in chunks of a side, at a bound."""

    dtype: str
    side: int
    bound: float
    """A part of the value range; 0: no loss."""
    raw_bytes: int
    stored_bytes: int
    write: Direction
    read: Direction


@dataclass
class Study:
    """What was found, and on what."""

    side: int
    rounds: int
    machine: dict[str, str]
    rows: list[Row] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        found = asdict(self)
        for values, row in zip(found["rows"], self.rows, strict=True):
            for name in ("write", "read"):
                values[name]["overhead"] = getattr(row, name).overhead
                values[name]["overhead_with_hdf5"] = getattr(row, name).overhead_with_hdf5
        return found


def run_study(
    folder: Path,
    *,
    side: int = 128,
    sides: Sequence[int] = SIDES,
    rounds: int = 15,
    report: Callable[[str], None] = lambda _: None,
) -> Study:
    """Measure the filter on a turbulent field of `side`^3 values, in chunks of each of `sides`.

    Raises
    ------
    KeyError
        If this installation has no plugin.
    ValueError
        If a side of chunks does not divide that of the field.
    """
    hdf5.filter()
    if any(side % chunk for chunk in sides):
        raise ambar.InvalidError(
            f"expected chunks that divide a field of side {side}, found sides {list(sides)}"
        )
    study = Study(side, rounds, machine(PACKAGES))
    values = turbulence(side)
    for dtype in DTYPES:
        for chunk in sides:
            for bound in BOUNDS:
                report(f"{dtype} in chunks of {chunk}^3, bound {bound:g}")
                study.rows.append(_Case(values.astype(dtype), chunk, bound, folder).row(rounds))
    return study


def turbulence(side: int) -> np.ndarray:
    """Return a random field (side, side, side) with the spectrum of turbulence, from a seed."""
    random = np.random.default_rng(1)
    waves = [np.fft.fftfreq(side), np.fft.fftfreq(side), np.fft.rfftfreq(side)]
    lengths = np.sqrt(sum(k**2 for k in np.meshgrid(*waves, indexing="ij")))
    lengths[0, 0, 0] = np.inf
    phases = np.exp(2j * np.pi * random.random(lengths.shape))
    field = np.fft.irfftn(lengths ** (-11 / 6) * phases, (side,) * 3, axes=(0, 1, 2))
    return np.asarray(field / field.std())


class _Case:
    """Values in chunks at a bound, and the files of them."""

    def __init__(self, values: np.ndarray, side: int, bound: float, folder: Path) -> None:
        self.values = values
        self.side = side
        self.part = bound
        self.bound = bound * float(np.ptp(values))
        steps = [slice(first, first + side) for first in range(0, len(values), side)]
        self.places = [(z, y, x) for z in steps for y in steps for x in steps]
        self.chunks = [np.ascontiguousarray(values[place]) for place in self.places]
        self.files = {True: folder / "filtered.h5", False: folder / "plain.h5"}
        self.out = np.empty_like(self.chunks[0])

    def row(self, rounds: int) -> Row:
        """Measure: every round has all ways, the fastest of each counts."""
        streams = [codecs.encode(chunk, self.bound) for chunk in self.chunks]
        ways: list[Callable[[], list[float]]] = [
            self._encode,
            lambda: self._write(True),
            lambda: self._write(False),
            lambda: self._decode(streams),
            lambda: self._read(True),
            lambda: self._read(False),
        ]
        # What else a machine has to do disturbs some chunks of a round, and seldom one in all.
        rounds_of = zip(*([way() for way in ways] for _ in range(rounds)), strict=True)
        best = [float(np.min(times, axis=0).sum()) for times in rounds_of]
        return Row(
            str(self.values.dtype),
            self.side,
            self.part,
            self.values.nbytes,
            self._stored(),
            Direction(*best[:3]),
            Direction(*best[3:]),
        )

    def _encode(self) -> list[float]:
        return [_seconds(partial(codecs.encode, chunk, self.bound)) for chunk in self.chunks]

    def _decode(self, streams: Sequence[bytes]) -> list[float]:
        dtype, shape = self.values.dtype, self.chunks[0].shape
        return [_seconds(partial(codecs.decode, stream, dtype, shape)) for stream in streams]

    def _write(self, filtered: bool) -> list[float]:
        import h5py

        options = hdf5.filter(self.bound or None) if filtered else {}
        # Without a cache, a chunk is filtered when it is written, and not when another needs room.
        with h5py.File(self.files[filtered], "w", rdcc_nbytes=0) as file:
            shape, dtype = self.values.shape, self.values.dtype
            dataset = file.create_dataset("x", shape, dtype, chunks=(self.side,) * 3, **options)
            pairs = zip(self.places, self.chunks, strict=True)
            return [_seconds(partial(dataset.__setitem__, *pair)) for pair in pairs]

    def _read(self, filtered: bool) -> list[float]:
        import h5py

        with h5py.File(self.files[filtered], rdcc_nbytes=0) as file:
            read = file["x"].read_direct
            return [_seconds(partial(read, self.out, place)) for place in self.places]

    def _stored(self) -> int:
        import h5py

        with h5py.File(self.files[True]) as file:
            return int(file["x"].id.get_storage_size())


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
