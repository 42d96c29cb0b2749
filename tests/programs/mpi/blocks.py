"""Writes and reads a store by many ranks with ambar.mpi.

blocks.py write|append|fail|leave|bound|skip|forget <store> <placement>

<placement> is that of ambar.mpi.create, "queued" or "queued counter".
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from mpi4py import MPI

import ambar
import ambar.mpi
import ambar.parallel.collectives

ambar.parallel.collectives._PIECE = 1000  # as messages of more than 2 GiB would be: in pieces

SHAPE = (60, 41, 7)


def say(text: str) -> None:
    """Print a line immediately: those of several ranks are not to be mixed."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def truth() -> np.ndarray:
    return np.sqrt(np.arange(np.prod(SHAPE), dtype="f8")).reshape(SHAPE)


def write(writer: ambar.mpi.MpiWriter, cuts: list[slice]) -> None:
    """Write a step, of which this rank holds these rows."""
    whole = truth()
    own = [((cut.start, 0, 0), whole[cut].shape) for cut in cuts]
    with writer.step(2.5) as group:
        blocks = writer.blocks(SHAPE, own)
        writer.create_array(
            f"{group}/a",
            shape=SHAPE,
            dtype="f8",
            blocks=blocks,
            dims=("z", "y", "x"),
            attrs={"units": "m"},
        )
        writer.create_array(f"{group}/b", shape=SHAPE, dtype="i2", blocks=blocks, profile="raw")
        writer.create_array(
            f"{group}/c", shape=SHAPE, dtype="f4", blocks=blocks, error_bound=0.01, fill_value=-1
        )
        writer.create_array(f"{group}/first", shape=(3,), dtype="M8[s]")
        for (start, _), cut in zip(own, cuts, strict=True):
            writer.write_region(f"{group}/a", whole[cut], start)
            writer.write_region(f"{group}/b", whole.astype("i2")[cut], start)
            writer.write_region(f"{group}/c", np.asfortranarray(whole[cut].astype("f4")), start)
        if writer.rank == 0:
            writer.write_region(f"{group}/first", np.array([1, 2, 3], "M8[s]"), (0,))


def rows(comm: MPI.Comm) -> list[slice]:
    """Return what this rank holds: two parts, of the last rank of several nothing."""
    holders = max(1, comm.size - 1)
    if comm.rank >= holders:
        return []
    ends = [SHAPE[0] * at // (2 * holders) for at in range(2 * holders + 1)]
    return [slice(ends[at], ends[at + 1]) for at in (comm.rank, comm.rank + holders)]


def differ(writer: ambar.mpi.MpiWriter, mode: str) -> None:
    """Write two arrays; rank 1 gives one a bound, leaves one out, or does not write."""
    odd = writer.rank == 1
    length = MPI.COMM_WORLD.size * 10
    blocks = writer.blocks((length,), [((writer.rank * 10,), (10,))])
    for name in ("a", "b"):
        if odd and name == "b" and mode == "skip":
            continue
        bound = 0.5 if odd and mode == "bound" else None
        writer.create_array(
            name, shape=(length,), dtype="f8", blocks=blocks, error_bound=bound, fill_value=-1
        )
        if not (odd and mode == "forget"):
            writer.write_region(name, np.zeros(10), (writer.rank * 10,))


def main() -> None:
    placement: Any
    mode, path, placement = sys.argv[1:]
    options: dict[str, Any] = {"placement": placement}
    if placement == "queued":
        options = {"queue_bytes": 10_000}
    elif placement == "queued counter":
        options = {"queue_bytes": 10_000, "placement": "counter"}
    comm = MPI.COMM_WORLD
    if mode in ("bound", "skip", "forget"):
        with ambar.mpi.create(path, comm, **options) as writer:
            differ(writer, mode)
        return
    if mode == "append":
        with ambar.mpi.create(path, comm, "a", **options) as writer:
            write(writer, rows(comm))
        whole = ambar.open_store(path)["step_000001/a"][comm.rank :: comm.size]
        assert np.array_equal(whole, truth()[comm.rank :: comm.size])
        return
    with ambar.mpi.create(path, comm, **options) as writer:
        writer.create_group("about", {"code": "blocks"})
        if mode == "leave" and comm.rank == 1:
            raise RuntimeError("rank 1 has had enough")
        write(writer, rows(comm))
        if mode == "fail":
            writer.create_array("twice", shape=(8,), dtype="f8")
            if comm.rank == 0:
                writer.write_region("twice", np.zeros(8), (0,))
                try:
                    writer.write_region("twice", np.zeros(8), (0,))
                except ValueError:
                    say("refused")


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        say(f"rank {MPI.COMM_WORLD.rank}: {type(error).__name__}: {error}")
