"""What the study of meshes found: tables for the screen and Markdown, JSON, charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from ambar._util.text import size
from ambar_bench import output
from ambar_bench.mesh import charts
from ambar_bench.mesh.plan import HIGH
from ambar_bench.mesh.results import ArrayRow, Row, Study
from ambar_bench.mesh.rows import WAYS

COLUMNS = ("", "write s", "read s", "write MB/s", "read MB/s", "MB", "ratio")
ARRAY_COLUMNS = ("", "ms", "read kB", "array kB", "files kB")
BOX_COLUMNS = ("", "ms", "read kB", "part kB", "files kB")
NINE = 9
"""The highest level that counts as one of those for daily use."""


class Section(NamedTuple):
    """A table: its rows each say whether they are ambar's."""

    title: str
    columns: Sequence[str]
    rows: list[tuple[list[str], bool]]


def cells_of(row: Row, name: str) -> list[str]:
    """Return the cells of a row, one per column of `COLUMNS`."""
    few = " *" if len(row.write) < 2 else ""
    return [
        name,
        _seconds(row.write_seconds) + few,
        _seconds(row.read_seconds) + few,
        f"{row.raw_bytes / row.write_seconds / 1e6:,.0f}",
        f"{row.raw_bytes / row.read_seconds / 1e6:,.0f}",
        f"{row.bytes / 1e6:,.2f}",
        f"{row.ratio:.2f}",
    ]


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def sections(study: Study) -> Iterator[Section]:
    """Yield all tables that have rows."""
    for mesh in study.grids:
        yield from _grid(study, mesh)
    if study.arrays:
        rows = [(_array(row), row.ours) for row in study.arrays]
        yield Section(f"one array of the {study.arrays[0].mesh}", ARRAY_COLUMNS, rows)
    if study.boxes:
        rows = [(_array(row), row.ours) for row in study.boxes]
        title = f"cells in a box of the {study.boxes[0].mesh}"
        yield Section(title, BOX_COLUMNS, rows)
    if real := [name for name in _meshes(study) if name not in study.grids]:
        yield _sizes(study, real)
        yield _times(study, real)
    if study.series:
        cells = [(cells_of(row, row.name), row.ours) for row in study.series]
        steps = f"{study.steps} time steps of {size(study.series[0].raw_bytes / study.steps)}"
        yield Section(f"{steps}, one array changes", COLUMNS, cells)


def _grid(study: Study, mesh: str) -> Iterator[Section]:
    """Yield the tables of a grid: all formats, levels, threads."""
    if not (rows := study.of(mesh)):
        return
    title = f"{mesh}: {study.n}^3 points, {size(rows[0].raw_bytes)}"
    if "formats" in study.parts:
        found = [(cells_of(row, row.name), row.ours) for row in study.formats(mesh)]
        yield Section(title, COLUMNS, found)
    if "levels" in study.parts:
        at = [row for key, way in WAYS.items() if way.leveled for row in study.at_levels(mesh, key)]
        found = [(cells_of(r, f"{WAYS[r.way].name}, level {r.level}"), r.ours) for r in at]
        yield Section(f"{title}, levels", COLUMNS, found)
    if "threads" in study.parts:
        at = [r for key, way in WAYS.items() if way.threaded for r in study.at_threads(mesh, key)]
        found = [(cells_of(r, f"{r.name}, threads: {r.threads}"), r.ours) for r in at]
        yield Section(f"{title}, threads", COLUMNS, found)


def _array(row: ArrayRow) -> list[str]:
    sizes = [f"{count / 1e3:,.1f}" for count in (row.asked, row.raw_bytes, row.bytes)]
    return [row.name, f"{row.read_seconds * 1e3:.3g}", *sizes]


def _meshes(study: Study) -> list[str]:
    return list(dict.fromkeys(row.mesh for row in study.rows))


def _best(rows: list[Row], *, library: str = "pyvista-zstd", level: int | None = 3) -> Row | None:
    """Return the smallest of a library's rows at a level, or at any."""
    there = [row for row in rows if WAYS[row.way].library == library]
    return min(
        (row for row in there if level is None or row.level == level),
        key=lambda row: row.bytes,
        default=None,
    )


def _sizes(study: Study, names: list[str]) -> Section:
    """Return the table of sizes: a row a mesh."""
    columns = (
        "kB",
        "arrays",
        "VTK XML",
        "zvtk",
        "pv",
        f"pv {HIGH}",
        *(way.name for way in WAYS.values() if way.ours and not way.box_only),
        "ambar / pv",
    )
    found = []
    for mesh in names:
        rows = study.of(mesh)
        by_way = {row.way: row for row in rows if row.level == WAYS[row.way].level}
        low, high = _best(rows), _best(rows, level=HIGH)
        whole = [key for key, way in WAYS.items() if way.ours and not way.box_only]
        ours = [by_way.get(key) for key in whole]
        peers = [by_way.get("vtk-zlib"), by_way.get("zvtk"), low, high]
        cells = [f"{row.bytes / 1e3:,.1f}" if row else "-" for row in (*peers, *ours)]
        own = by_way.get("ambar")
        share = f"{own.bytes / low.bytes:.3f}" if own and low else "-"
        found.append(([mesh, f"{rows[0].raw_bytes / 1e3:,.1f}", *cells, share], True))
    return Section("other meshes: sizes", columns, found)


def _times(study: Study, names: list[str]) -> Section:
    """Return the table of times: a row a mesh, writing and reading of each way."""
    keys = ("zvtk", "pv", "pv-shuffle", "ambar-fast", "ambar", "ambar-small")
    found = []
    for mesh in names:
        by_way = {row.way: row for row in study.of(mesh) if row.level == WAYS[row.way].level}
        cells = [
            f"{by_way[key].write_seconds * 1e3:,.1f} / {by_way[key].read_seconds * 1e3:,.1f}"
            if key in by_way
            else "-"
            for key in keys
        ]
        found.append(([mesh, *cells], True))
    columns = ("write / read ms", *(WAYS[key].name for key in keys))
    return Section("other meshes: times", columns, found)


def headline(study: Study) -> str:
    """Return a line on what was measured and on what."""
    return (
        f"Meshes: {', '.join(study.parts)}; grids have {study.n}^3 points; "
        f"{study.machine['processor']}, up to {study.threads} threads; "
        f"medians of up to {study.rounds} rounds"
    )


def tables(study: Study) -> Iterator[Table]:
    """Yield the tables for the screen."""
    for section in sections(study):
        yield output.screen_table(*section)


def notes(study: Study) -> list[str]:
    """Return what to know when reading the tables."""
    lines = [
        "write s, read s: from the mesh in memory to closed files without fsync, and from these, "
        "in the page cache, to a mesh in memory; blosc2 gives arrays, the others VTK's objects.",
        "MB/s, ratio: by the bytes of all the mesh's arrays, offsets and int64 connectivity "
        "included. Names tell the level where it is not the way's own, which is 3 of zstd.",
        f"pv, pv {HIGH}: pyvista-zstd's smaller file, with or without shuffle, at level 3 and "
        f"{HIGH}; ambar / pv: ambar's size by the former.",
        "read kB: what read calls returned, and what was touched of mapped files.",
        "*: one round alone, because more would have taken longer than the study's patience of "
        f"{study.patience:g} s a row.",
    ]
    for mesh in study.grids:
        lines += comparisons(study, mesh)
    lines += _series(study) + _retyped(study)
    return lines + [f"left out: {name}: {why.rstrip('.')}." for name, why in study.left_out.items()]


def comparisons(study: Study, mesh: str) -> list[str]:
    """Return how ambar's profiles compare with zvtk and pyvista-zstd at all their settings."""
    peers = [row for row in study.of(mesh) if WAYS[row.way].library in ("zvtk", "pyvista-zstd")]
    daily = [row for row in peers if row.level is not None and row.level <= NINE]
    zvtk = [row for row in study.formats(mesh) if row.way == "zvtk"]
    if not daily:
        return []
    read = min(row.read_seconds for row in peers)
    write = min(row.write_seconds for row in peers)
    smallest = min(row.bytes for row in daily)
    lines = []
    for row in study.formats(mesh):
        if row.ours:
            half = f", {row.bytes / zvtk[0].bytes:.3f} of zvtk's" if zvtk else ""
            lines.append(
                f"{mesh}: {row.name}: reads {read / row.read_seconds:.2f} and writes "
                f"{write / row.write_seconds:.2f} times as fast as the fastest setting of zvtk and "
                f"pyvista-zstd; has {row.bytes / smallest:.3f} of the bytes of their smallest at a "
                f"level up to {NINE}{half}."
            )
    return lines


def _series(study: Study) -> list[str]:
    """Return how ambar's series compare with the smallest files of a mesh each."""
    peers = [row for row in study.series if not row.ours]
    if not peers:
        return []
    least = min(row.bytes for row in peers)
    return [
        f"time steps: {row.name}: 1/{least / row.bytes:.1f} of the smallest peer's bytes."
        for row in study.series
        if row.ours
    ]


def _retyped(study: Study) -> list[str]:
    """Return a line for each way that gives other dtypes back, of the first mesh where it does."""
    found: dict[str, str] = {}
    for row in study.rows:
        if row.retyped:
            name = WAYS[row.way].name
            found.setdefault(name, f"{name}, {row.mesh}: reads {', '.join(row.retyped)}.")
    return list(found.values())


def markdown(study: Study) -> str:
    """Return everything as Markdown."""
    lines = ["# Meshes", "", headline(study) + ".", ""]
    for title, columns, rows in sections(study):
        printed = [cells for cells, _ in rows]
        lines += [f"## {title}", "", *output.markdown_table(columns, printed), ""]
    lines += [f"- {note}" for note in notes(study)]
    lines += ["", *output.machine_lines(study.machine)]
    return "\n".join(lines) + "\n"


def write(study: Study, folder: Path) -> list[Path]:
    """Write JSON, Markdown and, where matplotlib is installed, zvtk's four charts."""
    drawn: dict[str, Callable[[Path], None]] = {}
    if "levels" in study.parts:
        drawn["_levels"] = lambda target: charts.levels(study, target)
        drawn["_levels_speed"] = lambda target: charts.levels_speed(study, target)
    if "threads" in study.parts:
        drawn["_threads"] = lambda target: charts.threads(study, target)
        drawn["_threads_speed"] = lambda target: charts.threads_speed(study, target)
    return output.write(folder, study.to_dict(), markdown(study), drawn, f"mesh_{study.n}")
