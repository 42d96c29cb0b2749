"""Speeds on fields of 50 MB and more: make up two plotfiles and run the study on them.

One has a single level of 192^3 cells; in the other a quarter of these, in clumps, is refined. The
field is the exponential of noise with a steep spectrum, like a density. Then tell what two cores
gain.

    python -m ambar_bench.amr.large
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ambar_bench.amr import methods
from ambar_bench.amr.cutting import Piece
from ambar_bench.amr.hierarchy import load_levels
from ambar_bench.amr.plotfile_writer import Box, write_plotfile
from ambar_bench.cli import main

SIDE = 192
BLOCK = 8
"""Cells along the side of the smallest part that is refined or not."""
LARGEST = 32
"""Cells along the side of a box, at most: AMReX's own default."""
REFINED = 0.25
SLOPE, CLUMPS = 5.0, 5.0
"""Powers that spectra fall with: of the field's logarithm, and of what says where it is refined."""
METHODS = "sz3-box,ambar,ambar-fast,ambar-64k,ambar-fast-64k"
ARGUMENTS = ["--methods", METHODS, "--bounds", "1e-3", "--rounds", "7"]
CORES = 2
ROUNDS = 5
TIMES = 4
"""How often a round traverses the chunks, so that the last one is a small part of it."""


def noise(side: int, slope: float, seed: int) -> np.ndarray:
    """Return noise (side, side, side) of mean 0, deviation 1 and this power spectrum."""
    spectrum = np.fft.rfftn(np.random.default_rng(seed).standard_normal((side,) * 3))
    one = np.fft.fftfreq(side, 1 / side)
    k2 = one[:, None, None] ** 2 + one[:, None] ** 2 + np.fft.rfftfreq(side, 1 / side) ** 2
    k2[0, 0, 0] = np.inf
    field = np.fft.irfftn(spectrum * k2 ** (-slope / 4), s=(side,) * 3, axes=(0, 1, 2))
    return np.asarray(field / field.std())


Corner = tuple[int, ...]


def cubes(wanted: np.ndarray, at: Corner, side: int) -> Iterator[tuple[Corner, int]]:
    """Yield origins and sides of the largest aligned cubes all of whose places are wanted."""
    part = wanted[tuple(slice(k, k + side) for k in at)]
    if part.all():
        yield at, side
    elif part.any():
        for corner in np.ndindex(2, 2, 2):
            below = tuple(k + side // 2 * c for k, c in zip(at, corner, strict=True))
            yield from cubes(wanted, below, side // 2)


def boxes(wanted: np.ndarray, cell: int) -> list[Box]:
    """Return the boxes of the places that are wanted, each of `cell` cells along its side."""
    side = LARGEST // cell
    found = []
    for corner in np.ndindex(*(n // side for n in wanted.shape)):
        for at, n in cubes(wanted, tuple(side * k for k in corner), side):
            lo = tuple(k * cell for k in at)
            found.append((lo, tuple(k + n * cell - 1 for k in lo)))
    return found


def write(folder: Path, refined: bool) -> Path:
    """Write a plotfile with one level or two."""
    fine = np.exp(noise(2 * SIDE, SLOPE, 5))
    coarse = fine.reshape(SIDE, 2, SIDE, 2, SIDE, 2).mean((1, 3, 5))
    places = SIDE // BLOCK
    level_boxes = [boxes(np.ones((places,) * 3, bool), BLOCK)]
    if refined:
        clumps = noise(places, CLUMPS, 6)
        level_boxes.append(boxes(clumps > np.quantile(clumps, 1 - REFINED), 2 * BLOCK))

    def values(level: int, box: Box) -> np.ndarray:
        lo, hi = box
        part = (slice(a, b + 1) for a, b in zip(lo, hi, strict=True))
        return np.asarray((coarse, fine)[level][tuple(part)])[None]

    return write_plotfile(folder, ["density"], (SIDE,) * 3, level_boxes, values)


def seconds(threads: int, what: Callable[..., Any], *columns: Sequence[Any]) -> float:
    """Return the median time of `what` for all rows of the columns with this number of threads."""
    with ThreadPoolExecutor(threads) as pool:
        times = []
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            list(pool.map(what, *(list(column) * TIMES for column in columns)))
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def cores(path: Path) -> None:
    """Print how much faster all chunks are coded on `CORES` threads than on one."""
    hierarchy = load_levels(path)
    bound = 1e-3 * hierarchy.value_range("density")
    for method in (methods.Ambar(), methods.AmbarFast()):
        variant = next(method.variants(hierarchy, "density"))
        method.prepare(variant, bound)
        pieces = variant.pieces

        def compress(piece: Piece, method: methods.Ambar = method) -> bytes:
            return method.compress(piece, bound, None)

        packed = [compress(piece) for piece in pieces]
        coding = [seconds(threads, compress, pieces) for threads in (1, CORES)]
        decoding = [seconds(threads, method.decompress, packed, pieces) for threads in (1, CORES)]
        print(  # noqa: T201 - it is what the program is for
            f"{path.name}, {method.name}: {CORES} cores compress {coding[0] / coding[1]:.2f} times "
            f"as fast as one, decompress {decoding[0] / decoding[1]:.2f} times"
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        for name, refined in (("one_level", False), ("a_quarter_refined", True)):
            path = write(Path(temporary) / name, refined)
            try:
                main(["amr", str(path), *ARGUMENTS, *sys.argv[1:]])
            except SystemExit as ended:
                if ended.code:
                    raise
            cores(path)
