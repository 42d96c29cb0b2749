"""The demo: a RAMSES output converted, checked, loaded with every library installed, and drawn.

The output is the implosion of Liska and Wendroff (2003) in two dimensions: gas in a box with
reflecting walls collapses into a corner, and its shocks drive a jet along the diagonal. The grid is
refined to level 10, as fine as 1024 x 1024 cells.
"""

from __future__ import annotations

import gc
import io
import statistics
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from rich.console import Console
from rich.table import Table

import ambar
import ambar.xarray  # the accessor of images
import plain_ramses
from ambar.cli import app

HERE = Path(__file__).resolve().parent.parent
OUT = HERE / "out"
PICTURE = OUT / "implosion.png"
OUTPUT = HERE / "tests" / "data" / "ramses" / "implosion2d" / "output_00004"
REPEATS = 7
JET = 0.28
"""The side of the corner with the jet, in code length."""

console = Console(highlight=False)


def main() -> None:
    """Run the demo."""
    OUT.mkdir(exist_ok=True)
    store = OUT / "implosion.ambar"
    command("convert", OUTPUT, store, "--overwrite")
    command("info", store)
    command("verify", store)
    compare(OUTPUT, store)
    draw(ambar.open_snapshot(store))
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
    """Print how long it takes to load all cells, in every way that is installed."""
    ways: dict[str, Callable[[], object]] = {
        "ambar, from a store": partial(load, store),
        "ambar, from RAMSES": partial(load, output),
        "RAMSES, NumPy alone": partial(plain_ramses.read_cells, output),
        "yt": partial(load_yt, output),
        "osyris": partial(load_osyris, output),
        "pynbody": partial(load_pynbody, output),
    }
    times: dict[str, float] = {}
    without: dict[str, str] = {}
    for name, way in ways.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those of other libraries
                times[name] = median_time(way)
        except ImportError:
            without[name] = "not installed"
        except Exception as error:
            if name.startswith("ambar"):
                raise
            without[name] = f"cannot read this output: {error!r}"
    size = sum(file.stat().st_size for file in output.iterdir())
    count = len(ambar.open_snapshot(store).amr)
    table = Table(
        title=f"\nAll fields, levels and positions of {count:,} cells: median of {REPEATS}, "
        "files in the page cache",
        title_justify="left",
        box=None,
    )
    table.add_column("way")
    for column in ("ms", "MB/s of RAMSES files", "times the store"):
        table.add_column(column, justify="right")
    quickest = times["ambar, from a store"]
    for name, seconds in times.items():
        speed = size / seconds / 1e6
        table.add_row(name, f"{seconds * 1e3:.1f}", f"{speed:.0f}", f"{seconds / quickest:.1f}")
    console.print(table)
    for name, why in without.items():
        console.print(f"{name}: {why}", style="dim", markup=False)


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


def load(path: Path) -> ambar.Table:
    """Load all cells, with level and position."""
    return ambar.open_snapshot(path).amr.read()


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


def draw(snapshot: ambar.Snapshot) -> None:
    """Draw the density, the density of the jet, and a velocity, side by side."""
    figure = Figure(figsize=(15.4, 4.7), dpi=110, layout="constrained")
    whole, close, moving = figure.subplots(1, 3)
    snapshot.amr.grid("density").ambar.plot(ax=whole)
    whole.set_title(f"Density: {len(snapshot.amr):,} cells, levels {levels(snapshot)}")
    whole.add_patch(Rectangle((0, 0), JET, JET, fill=False, color="white", linewidth=1.2))
    jet = snapshot.amr.grid("density", region=ambar.Box([0, 0], [JET, JET], unit="code"))
    jet.ambar.plot(ax=close)
    close.set_title("The jet: only its cells are read")
    snapshot.amr.grid("velocity_x").ambar.plot(ax=moving)
    moving.set_title("Velocity along x")
    figure.savefig(PICTURE)


def levels(snapshot: ambar.Snapshot) -> str:
    """Return the lowest and the highest level."""
    return f"{min(snapshot.amr.levels)} to {max(snapshot.amr.levels)}"


if __name__ == "__main__":
    main()
