"""What the study of rate and distortion found, as tables for the screen and Markdown, and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.table import Table

from ambar._util.text import plural
from ambar_bench import output
from ambar_bench.rate.study import AMBAR_METHODS, BOUNDS, METHODS, TARGETS, Field, Study

COLUMNS = ("", *(f"{target} dB" for target in TARGETS))
BOUND_COLUMNS = ("", *(f"{bound:g}" for bound in BOUNDS))
BOUND_NOTE = (
    "Bytes relative to those of the smallest of SPERR, SZ3 and ZFP for each field, in percent, "
    "within bounds of all values, relative to the range of the field: below 0 is smaller."
)
NOTE = (
    "Bytes relative to those of SPERR at the same PSNR, in percent: below 0 is smaller. Bytes "
    "are interpolated between measured points. ambar and SPERR have a target PSNR and no bound "
    "of single values. Each field is one chunk. Fields that are set aside are a third of all, "
    "chosen by name: the codec is not developed on them, except that eraint-* led to separate "
    "planes. Speeds are MB/s of one run on one core, the choice of settings included."
)


def _summary(fields: list[Field], method: str, peer: str) -> list[str]:
    """Return the mean and the worst change of the bytes at each PSNR, in percent."""
    changes = np.array([field.change(method, peer) for field in fields])
    means = np.expm1(np.nanmean(np.log1p(changes), axis=0))
    worst = np.nanmax(changes, axis=0)
    return [f"{100 * m:+.1f} ({100 * w:+.1f})" for m, w in zip(means, worst, strict=True)]


def _rows(study: Study) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield a title and the rows: means of methods, then fields."""
    for is_set_aside, title in ((False, "Fields"), (True, "Fields set aside")):
        chosen = [field for field in study.fields if field.is_set_aside is is_set_aside]
        if not chosen:
            continue
        rows = [
            [f"{method}: geometric mean (worst)", *_summary(chosen, method, "SPERR")]
            for method in METHODS
            if method != "SPERR"
        ]
        for one in chosen:
            changes = [one.change(method, "SPERR") for method in ("ambar balanced", "ambar small")]
            cells = [
                "" if math.isnan(balanced) else f"{100 * balanced:+.1f} / {100 * small:+.1f}"
                for balanced, small in zip(*changes, strict=True)
            ]
            shape = "x".join(map(str, one.shape))
            rows.append([f"{one.name}, {one.dtype} {shape}: balanced / small", *cells])
        yield f"{title} ({len(chosen)})", rows
    yield "Speeds, MB/s: geometric means of all fields", _speeds(study)


def _bound_rows(study: Study) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield a title and the rows at equal bounds: means and numbers of fields, then fields."""
    for is_set_aside, title in ((False, "Fields"), (True, "Fields set aside")):
        chosen = [field for field in study.fields if field.is_set_aside is is_set_aside]
        if not chosen:
            continue
        rows = []
        for method in AMBAR_METHODS:
            changes = np.array([field.bounded_change(method) for field in chosen])
            means = np.expm1(np.mean(np.log1p(changes), axis=0))
            worst, larger = changes.max(axis=0), (changes > 0).sum(axis=0)
            cells = [
                f"{100 * mean:+.1f} ({100 * most:+.1f}; {count})"
                for mean, most, count in zip(means, worst, larger, strict=True)
            ]
            rows.append([f"{method}: geometric mean (worst; fields that are larger)", *cells])
        for one in chosen:
            balanced, small = (100 * one.bounded_change(method) for method in AMBAR_METHODS)
            cells = [f"{a:+.1f} / {b:+.1f}" for a, b in zip(balanced, small, strict=True)]
            rows.append([f"{one.name}: balanced / small", *cells])
        yield f"{title} within equal bounds ({len(chosen)})", rows


def _speeds(study: Study) -> list[list[str]]:
    """Return the rows of the speeds: geometric means of all fields, by direction and method."""
    rows = []
    for direction in ("encode", "decode"):
        for method in METHODS:
            speeds = np.array([getattr(one, f"{direction}_speed")[method] for one in study.fields])
            means = np.exp(np.nanmean(np.log(speeds), axis=0))
            rows.append([f"{method}: {direction}", *(f"{mean:,.0f}" for mean in means)])
    return rows


def headline(study: Study) -> str:
    """Return a line on the fields and the machine."""
    return f"{plural(len(study.fields), 'field')}; {study.machine['processor']}"


def tables(study: Study) -> Iterator[Table]:
    """Yield a table for the screen per group of fields."""
    for title, rows in _rows(study):
        yield output.screen_table(title, COLUMNS, ((row, "ambar" in row[0]) for row in rows))
    for title, rows in _bound_rows(study):
        yield output.screen_table(title, BOUND_COLUMNS, ((row, "ambar" in row[0]) for row in rows))


def notes(_: Study) -> list[str]:
    """Return what to know when reading the tables."""
    return [NOTE, BOUND_NOTE]


def markdown(study: Study) -> str:
    """Return everything as Markdown."""
    lines = ["# Bytes at equal PSNR", "", NOTE]
    for title, rows in _rows(study):
        lines += ["", f"## {title}", "", *output.markdown_table(COLUMNS, rows)]
    lines += ["", "# Bytes within equal bounds", "", BOUND_NOTE]
    for title, rows in _bound_rows(study):
        lines += ["", f"## {title}", "", *output.markdown_table(BOUND_COLUMNS, rows)]
    return "\n".join([*lines, "", *output.machine_lines(study.machine)]) + "\n"


def write(study: Study, folder: Path) -> list[Path]:
    """Write JSON, Markdown and a chart."""
    charts = {"": lambda target: chart(study.fields, target)}
    return output.write(folder, study.to_dict(), markdown(study), charts, "rate")


def chart(fields: list[Field], target: Path) -> None:
    """Draw bytes relative to SPERR: means of all methods, and `balanced` on each field."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    styles = {
        "ambar balanced": {"color": output.OURS, "linewidth": 2.5},
        "ambar small": {"color": output.OURS, "linewidth": 2.5, "linestyle": "--"},
        "SZ3": {"color": output.OTHERS, "linewidth": 1.5},
        "ZFP": {"color": output.OTHERS, "linewidth": 1.5, "linestyle": ":"},
    }
    for axes, is_set_aside in zip(panels, (False, True), strict=True):
        chosen = [field for field in fields if field.is_set_aside is is_set_aside]
        for one in chosen:
            ratios = 1 + one.change("ambar balanced", "SPERR")
            axes.plot(TARGETS, ratios, color=output.OURS, alpha=0.25, linewidth=0.8)
        for method, style in styles.items():
            ratios = np.array([1 + field.change(method, "SPERR") for field in chosen])
            if len(ratios):
                means = np.exp(np.nanmean(np.log(ratios), axis=0))
                axes.plot(TARGETS, means, label=method, **style)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_ylim(0.4, 2.5)
        axes.set_yscale("log", base=2)
        axes.set_title("fields set aside" if is_set_aside else "fields", loc="left", fontsize=10)
        axes.set_xlabel("PSNR, dB")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("bytes relative to SPERR")
    panels[0].legend(fontsize=8)
    output.save(figure, target)
