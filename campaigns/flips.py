"""Accidental damage: a read returns the values that were written, or raises an error of ambar.

The campaign flips one or a few bits, truncates files, drops and repeats blocks, fills them with
zeros, and removes files of directory stores. No checksum is repaired.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from campaigns import reads, samples
from campaigns.campaign import Run, removed
from campaigns.worker import Worker

BLOCKS = (512, 4096)


def run(run: Run) -> None:
    """Damage stores of every kind, and compare the readable values with those written."""
    stores = samples.write_all(run.folder / "stores")
    truths = {name: reads.arrays(str(path)).values for name, path in stores.items()}
    names = list(stores)
    run.begin()
    with Worker() as worker:
        for case in run.cases():
            rng = run.random(case)
            name = names[rng.integers(len(names))]
            path = removed(run.folder / "case.ambar")
            copy = shutil.copytree if stores[name].is_dir() else shutil.copyfile
            copy(stores[name], path)
            how = damage(path, rng)
            run.count("images")
            answer = worker.call("reads.arrays", str(path))
            for failure in (answer.died, answer.error, *(answer.value or reads.Outcome()).foreign):
                if failure is not None:
                    run.finding(case, f"{name}: {how}: {failure}", path)
            if answer.value is None:
                continue
            run.count("reads", answer.value.reads)
            run.count("refused", answer.value.refused)
            for array, digest in answer.value.values.items():
                if truths[name].get(array) != digest:
                    run.finding(case, f"{name}: {how}: {array} reads as other values", path)


def damage(path: Path, rng: np.random.Generator) -> str:
    """Damage a store as failing disks and copies do; return a description of the damage."""
    files = reads.damaged_paths(path)
    file = files[rng.integers(len(files))]
    data = bytearray(file.read_bytes())
    choice = int(rng.integers(10)) if data else 9
    if choice <= 4:
        bits = int(rng.choice([1, 1, 1, 2, 3, 8]))
        for bit in rng.integers(0, 8 * len(data), bits):
            data[bit // 8] ^= 1 << (int(bit) % 8)
        how = f"{bits} bits flipped"
    elif choice == 5:
        del data[int(rng.integers(len(data))) :]
        how = f"cut to {len(data)} bytes"
    elif choice <= 8:
        how = _blocks(data, rng)
    elif path.is_dir():
        file.unlink()
        return f"{file.name} removed"
    else:
        data += rng.integers(0, 256, int(rng.integers(1, 400)), np.uint8).tobytes()
        how = "bytes appended"
    file.write_bytes(data)
    return f"{how} in {file.name}"


def _blocks(data: bytearray, rng: np.random.Generator) -> str:
    size = int(rng.choice(BLOCKS))
    count = -(-len(data) // size)
    one, other = (int(at) * size for at in rng.integers(0, count, 2))
    choice = rng.integers(4)
    if choice == 0:
        del data[one : one + size]
        return f"a block of {size} bytes dropped at {one}"
    if choice == 1:
        data[one:one] = data[one : one + size]
        return f"a block of {size} bytes repeated at {one}"
    if choice == 2:
        data[one : one + size] = bytes(len(data[one : one + size]))
        return f"a block of {size} bytes zeroed at {one}"
    length = min(len(data[one : one + size]), len(data[other : other + size]))
    data[one : one + length] = data[other : other + length]
    return f"the block of {length} bytes at {one} overwritten with that at {other}"
