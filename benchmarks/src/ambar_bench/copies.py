"""The time of stores from stores: verbatim copies, parts, other profiles, and merges.

python -m ambar_bench.copies ROUNDS SOURCE ...

Sources are outputs of RAMSES and plotfiles of AMReX. Each is converted to a store first. Times are
medians of ROUNDS, with files in the page cache and without fsync.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ambar
from ambar_bench.output import markdown_table

Operation = Callable[[Path], object]


def operations(store: Path, folder: Path) -> dict[str, Operation]:
    """Return what is measured, by name: functions that write a target."""
    cells = ambar.open_snapshot(store).amr
    field = cells.fields[0]
    halves = [folder / "first.ambar", folder / "second.ambar"]
    middle = len(cells.fields) // 2
    for half, names in zip(halves, (cells.fields[:middle], cells.fields[middle:]), strict=True):
        with ambar.create(half, "w", fsync=False) as writer:
            for name, values in cells.read(names).items():
                writer.create_array(name, values)

    def compacted(target: Path) -> None:
        shutil.copyfile(store, target)
        ambar.compact(target)

    found: dict[str, Operation] = {
        "`cp`": lambda target: shutil.copyfile(store, target),
        "verbatim": lambda target: ambar.convert(store, target, fsync=False),
        "`cp` and `compact`": compacted,
        "one field": lambda target: ambar.convert(store, target, fields=field, fsync=False),
        "one field within 1e-3 of its range": lambda target: ambar.convert(
            store, target, error_bound={field: "1e-3 of range"}, fsync=False
        ),
        "profile `fast`": lambda target: ambar.convert(store, target, profile="fast", fsync=False),
        "profile `small`": lambda target: ambar.convert(
            store, target, profile="small", fsync=False
        ),
        "merge of the fields, from two stores": lambda target: ambar.merge(
            halves, target, fsync=False
        ),
    }
    if cells.layout == "tree":
        octant = ambar.Box((0, 0, 0), (0.5, 0.5, 0.5))
        found["an eighth of the box"] = lambda target: ambar.convert(
            store, target, region=octant, fsync=False
        )
    return found


def measure(source: Path, folder: Path, rounds: int) -> list[list[str]]:
    """Return the rows of the table of a source: operation, MB, ratio and seconds."""
    store, target = folder / "source.ambar", folder / "target.ambar"
    ambar.convert(source, store, mode="w", fsync=False)
    size = store.stat().st_size
    rows = []
    for name, write in operations(store, folder).items():
        seconds = []
        for _ in range(rounds):
            target.unlink(missing_ok=True)
            start = time.perf_counter()
            write(target)
            seconds.append(time.perf_counter() - start)
        written = target.stat().st_size
        rows.append(
            [
                name,
                f"{written / 1e6:.1f}",
                f"{size / written:.2f}",
                f"{statistics.median(seconds):.3f}",
            ]
        )
    return rows


def main() -> None:
    """Print a table for each source."""
    rounds, *sources = sys.argv[1:]
    for source in map(Path, sources):
        with tempfile.TemporaryDirectory() as folder:
            rows = measure(source, Path(folder), int(rounds))
        columns = [source.name, "MB", "smaller by", "s"]
        sys.stdout.write("\n".join(markdown_table(columns, rows)) + "\n\n")


if __name__ == "__main__":
    main()
