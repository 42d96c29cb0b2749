"""What the study of many ranks found: tables for the screen and Markdown, JSON, charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from ambar._util.text import size
from ambar_bench import output
from ambar_bench.parallel import charts, model, targets
from ambar_bench.parallel.results import Back, Row, Study
from ambar_bench.parallel.versions import VERSIONS, Kind

COLUMNS = (
    "",
    "write s",
    "MB/s",
    "cold s",
    "warm s",
    "write CPU s",
    "read CPU s",
    "MB",
    "ratio",
    "files",
)


class Section(NamedTuple):
    """A table: its rows each say whether they are ambar's."""

    title: str
    columns: Sequence[str]
    rows: list[tuple[list[str], bool]]


def cells_of(row: Row, study: Study) -> list[str]:
    """Return the cells of a row, one per column of `COLUMNS`."""
    few = " *" if len(row.write) < study.rounds else ""
    fewer = f" ({row.doubles:,})" if row.doubles != study.doubles else ""
    return [
        row.made_by.name + fewer,
        f"{row.median('write'):.3f}{few}",
        f"{row.raw_bytes / row.median('write') / 1e6:,.0f}",
        f"{row.median('cold'):.3f}",
        f"{row.median('warm'):.3f}",
        f"{row.median('write_cpu'):.2f}",
        f"{row.median('read_cpu'):.2f}",
        f"{row.bytes / 1e6:,.1f}",
        f"{row.ratio:.3f}",
        str(row.files),
    ]


def sections(study: Study) -> Iterator[Section]:
    """Yield all tables that have rows."""
    for data in study.data:
        for ranks in study.ranks:
            if rows := study.of(data, ranks):
                cells = [(cells_of(row, study), row.made_by.ours) for row in rows]
                title = f"{data}, {_ranks(ranks)}, {study.doubles:,} doubles"
                yield Section(title, COLUMNS, cells)
    if study.backs:
        yield _backs(study)
    for data in study.data:
        for bandwidth in study.bandwidths:
            yield from _model(study, data, bandwidth)


def _ranks(count: int) -> str:
    return "1 rank" if count == 1 else f"{count} ranks"


def _backs(study: Study) -> Section:
    """Return the table of reads by other numbers of ranks than wrote."""
    first = study.backs[0]
    rows = []
    for key in dict.fromkeys(back.version for back in study.backs):
        by_readers = {back.readers: back for back in study.backs if back.version == key}
        cells = [_back(by_readers[n]) if n in by_readers else "-" for n in study.readers]
        rows.append(([VERSIONS[key].name, *cells], VERSIONS[key].ours))
    columns = ("warm s", *(_ranks(n) for n in study.readers))
    return Section(f"{first.data}, written by {first.writers} ranks, read by others", columns, rows)


def _back(back: Back) -> str:
    if not back.differing:
        return f"{back.seconds:.3f}, same bits"
    within = VERSIONS[back.version].kind is Kind.BOUNDED
    return f"{back.seconds:.3f}, {'error' if within else 'WRONG by'} {back.error:.1e}"


def _model(study: Study, data: str, bandwidth: float) -> Iterator[Section]:
    found = model.lines(study, data, bandwidth)
    if found:
        columns = ("write s", *(f"{n} node{'s' if n > 1 else ''}" for n in model.NODES))
        rows = [
            (
                [line.row.made_by.name, *(f"{value:.3g}" for value in line.seconds)],
                line.row.made_by.ours,
            )
            for line in found
        ]
        title = (
            f"a model, not measured: {data}, {model.DOUBLES:,} doubles, {model.RANKS_PER_NODE} "
            f"ranks a node, a file system of {bandwidth:g} GB/s"
        )
        yield Section(title, columns, rows)


def headline(study: Study) -> str:
    """Return a line on what was measured and on what."""
    ranks = ", ".join(str(n) for n in study.ranks)
    return (
        f"One array of {study.doubles:,} doubles ({size(8 * study.doubles)}) on {ranks} ranks; "
        f"{study.machine['processor']}, {study.machine['cores']} cores; "
        f"medians of up to {study.rounds} rounds"
    )


def tables(study: Study) -> Iterator[Table]:
    """Yield the tables for the screen."""
    for section in sections(study):
        yield output.screen_table(*section)


def notes(study: Study) -> list[str]:
    """Return what to know when reading the tables, and what was asked and measured."""
    lines = [
        "write s: from memory to closed files that fsync has put on the disk, the slowest rank's; "
        "cold s: read after the page cache dropped the files; warm s: read once more.",
        "CPU s: of all ranks together, each until it was done; waiting for others within a "
        "library's calls counts. MB/s, ratio: by the doubles' bytes.",
        f"Every read was compared with what was written: bit for bit, or within {study.bound:g}.",
        "model: encode seconds a double from the measured CPU seconds of the fewest ranks, divided "
        "among all ranks, plus all bytes through the file system; nothing else is in it.",
    ]
    holes = {r.made_by.name: r.length / r.bytes for r in study.rows if r.length > 1.05 * r.bytes}
    lines += [
        f"{name}: its files have holes, and are {by:.2f} times longer than what they take of "
        "the disk, which counts here."
        for name, by in holes.items()
    ]
    if study.text_doubles != study.doubles:
        lines.append(f"Text has {study.text_doubles:,} doubles only; charts scale its seconds up.")
    if study.asked != study.doubles:
        lines.append(
            f"{study.asked:,} doubles were asked for; memory or disk have room for "
            f"{study.doubles:,} with what libraries keep beside them."
        )
    if any(len(row.write) < study.rounds for row in study.rows):
        lines.append(f"*: fewer rounds, because they took {study.patience:g} s together.")
    lines += targets.lines(study)
    return lines + [f"left out: {name}: {why.rstrip('.')}." for name, why in study.left_out.items()]


def markdown(study: Study) -> str:
    """Return everything as Markdown."""
    lines = ["# One array, many ranks", "", headline(study) + ".", ""]
    for title, columns, rows in sections(study):
        printed = [cells for cells, _ in rows]
        lines += [f"## {title}", "", *output.markdown_table(columns, printed), ""]
    lines += [f"- {note}" for note in notes(study)]
    lines += ["", *output.machine_lines(study.machine)]
    return "\n".join(lines) + "\n"


def write(study: Study, folder: Path) -> list[Path]:
    """Write JSON, Markdown and, where matplotlib is installed, the charts."""
    drawn: dict[str, Callable[[Path], None]] = {
        f"_{data}": partial(charts.scaling, study, data) for data in study.data
    }
    if study.bandwidths:
        drawn["_model"] = partial(charts.modelled, study)
    values, text = study.to_dict(), markdown(study)
    return output.write(folder, values, text, drawn, f"parallel_{study.doubles}")
