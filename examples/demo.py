"""The demo: two RAMSES outputs converted, looked at, loaded in every way there is, and drawn."""

from __future__ import annotations

import gc
import io
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

import ambar
import plain_ramses
from ambar.cli import app
from ambar.snapshot.plotting import paint

HERE = Path(__file__).resolve().parent.parent
DATA = HERE / "tests" / "data" / "ramses"
OUT = HERE / "out"
PICTURE = HERE / "docs" / "demo.png"
GALAXIES = DATA / "gravpart_small" / "output_00002"
BLAST = DATA / "sedov3d_small" / "output_00002"
REPEATS = 7

console = Console(highlight=False)


def main() -> None:
    """Run the demo."""
    OUT.mkdir(exist_ok=True)
    stores = {}
    for output in (BLAST, GALAXIES):
        store = OUT / f"{output.parent.name}.ambar"
        command("convert", output, store, "--overwrite")
        stores[output] = store
    command("info", stores[GALAXIES])
    command("verify", stores[GALAXIES])
    compare(GALAXIES, stores[GALAXIES])
    draw(ambar.open(stores[BLAST]), ambar.open(stores[GALAXIES]))
    console.print(f"\nThe picture: {PICTURE.relative_to(HERE)}")


def command(*arguments: object) -> None:
    """Show and run a command line of ambar."""
    words = [
        str(a.relative_to(HERE)) if isinstance(a, Path) and a.is_relative_to(HERE) else str(a)
        for a in arguments
    ]
    console.print(f"\n[bold green]$ ambar {' '.join(words)}[/bold green]")
    app([str(argument) for argument in arguments], standalone_mode=False)


def compare(output: Path, store: Path) -> None:
    """Print how long it takes to load everything, in every way that is installed."""
    ways: dict[str, Callable[[], object]] = {
        "ambar, from a store": lambda: load(ambar.open(store)),
        "ambar, from RAMSES": lambda: load(ambar.read_ramses(output)),
        "RAMSES, NumPy alone": lambda: (
            plain_ramses.read_cells(output),
            plain_ramses.read_particles(output),
        ),
        "yt": lambda: load_yt(output),
        "osyris": lambda: load_osyris(output),
        "pynbody": lambda: load_pynbody(output),
    }
    times: dict[str, float] = {}
    for name, way in ways.items():
        with warnings.catch_warnings(), suppress(ImportError):
            warnings.simplefilter("ignore")  # the peers' own
            times[name] = median_time(way)
    absent = [name for name in ways if name not in times]
    size = sum(file.stat().st_size for file in output.iterdir())
    table = Table(title="\nEverything loaded, warm, median", title_justify="left", box=None)
    table.add_column("way")
    for column in ("ms", "MB/s of RAMSES", "store is faster"):
        table.add_column(column, justify="right")
    quickest = times["ambar, from a store"]
    for name, seconds in times.items():
        speed = size / seconds / 1e6
        table.add_row(name, f"{seconds * 1e3:.2f}", f"{speed:.0f}", f"{seconds / quickest:.1f}x")
    console.print(table)
    if absent:
        console.print(f"[dim]not installed here: {', '.join(absent)}[/dim]")


def median_time(way: Callable[[], object]) -> float:
    """Return the median time of `way` in seconds, after one run to warm up."""
    way()
    seconds = []
    for _ in range(REPEATS):
        gc.collect()
        start = time.perf_counter()
        way()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def load(snapshot: ambar.Snapshot) -> tuple[ambar.Table, ambar.Table]:
    """Load all cells, with level and position, and all particles."""
    return snapshot.amr.read(), snapshot.particles.read()


def load_yt(output: Path) -> object:
    """Load every field there is on disk with yt."""
    import yt

    yt.set_log_level(50)
    data = yt.load(str(next(output.glob("info_*.txt")))).all_data()
    return [data[field] for field in data.ds.field_list]


def load_osyris(output: Path) -> object:
    """Load everything with osyris."""
    import osyris

    with redirect_stdout(io.StringIO()):  # it prints as it goes
        return osyris.RamsesDataset(int(output.name[-5:]), path=str(output.parent)).load()


def load_pynbody(output: Path) -> object:
    """Load everything with pynbody."""
    import pynbody

    snapshot = pynbody.load(str(output))
    families = [snapshot[family] for family in snapshot.families()]
    return [family[key] for family in families for key in family.loadable_keys()]


def draw(blast: ambar.Snapshot, galaxies: ambar.Snapshot) -> None:
    """Draw a slice through the blast wave and a projection of the clumps, side by side."""
    figure = Figure(figsize=(12.6, 5.6), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    cut = blast.amr.slice("density", axis="z", at=0.25, at_unit="code")
    paint(left, cut, blast.info, colors="magma")
    left.set_title("Sedov blast wave: density at z = 0.25")
    column = galaxies.amr.project("density", axis="z")
    paint(right, column, galaxies.info, colors="inferno")
    right.set_title("Collapsing clumps: density along z")
    figure.savefig(PICTURE)


if __name__ == "__main__":
    sys.exit(main())
