"""Digests of the truth files, for tests that cannot read npz.

Usage: python digests.py FOLDER... > ../../../crates/ambar-formats/tests/ramses_truth.txt

Each folder holds cases: `<case>/output_NNNNN` with `truth_leaf_NNNNN.npz` (and
`truth_part_NNNNN.npz`) beside it. A line names case, output, table, rows, and for each column its
digest: the sum of (2 r + 1) * bits(r) over the rows r, modulo 2^64. Cells are put in the order of
the Morton curve, particles in that of their identity.
"""

import pathlib
import sys
from collections.abc import Iterator, Mapping

import numpy as np

# The names of the cells' fields in truth files, where they are not those of the reader.
NAMES = {
    "phi": "potential",
    "rho": "particle_density",
    "gx": "acceleration_x",
    "gy": "acceleration_y",
    "gz": "acceleration_z",
}


def morton(truth: Mapping[str, np.ndarray]) -> np.ndarray:
    axes = [axis for axis in "xyz" if f"i{axis}" in truth]
    level = truth["level"].astype(object)
    finest = max(level)
    keys = [0] * len(level)
    for d, axis in enumerate(axes):
        corner = truth[f"i{axis}"].astype(object) * 2 ** (finest - level)
        for row, value in enumerate(corner):
            for bit in range(value.bit_length()):
                keys[row] |= (value >> bit & 1) << (bit * len(axes) + d)
    return np.array(sorted(range(len(keys)), key=keys.__getitem__))


def digest(values: np.ndarray) -> int:
    values = np.ascontiguousarray(values)
    bits = values.view(f"u{values.dtype.itemsize}").astype("u8")
    weights = 2 * np.arange(len(bits), dtype="u8") + np.uint64(1)
    return int((bits * weights).sum(dtype="u8"))


def lines(folder: str) -> Iterator[str]:
    for path in sorted(pathlib.Path(folder).glob("*/truth_*_*.npz")):
        _, table, number = path.stem.split("_")
        truth = np.load(path)
        cells = table == "leaf"
        order = morton(truth) if cells else np.argsort(truth["identity"], kind="stable")
        words = [path.parent.name, number, table, str(len(order))]
        for name in truth.files:
            if cells and name in ("ix", "iy", "iz"):
                continue
            values = truth[name][order]
            if name in ("level", "domain"):
                values = values.astype("u4")
            field = NAMES.get(name, name) if cells else name
            words.append(f"{field}:{values.dtype}={digest(values):016x}")
        yield " ".join(words)


if __name__ == "__main__":
    for folder in sys.argv[1:]:
        for line in lines(folder):
            print(line)
