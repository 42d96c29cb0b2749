"""`ambar compare`: errors between two versions of the same data."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ambar.cli.common import (
    LISTED,
    Debug,
    Exit,
    Json,
    Progress,
    Threads,
    console,
    parse_list,
    plain_table,
    print_json,
    printed_warnings,
    show_bounds,
    working,
)

if TYPE_CHECKING:
    from ambar.comparison.compare import Comparison, ErrorMetrics, FieldComparison, Spectrum
    from ambar.comparison.rows import ColumnComparison, RowComparison

_BARS = " ▁▂▃▄▅▆▇█"


def compare(
    original: Annotated[Path, typer.Argument(help="A store, a plotfile, or a RAMSES output.")],
    other: Annotated[Path, typer.Argument(help="Another version of the same.")],
    fields: Annotated[
        str | None,
        typer.Option("--fields", "-f", help="Fields, or particles, to compare; else all in both."),
    ] = None,
    bound: Annotated[
        str | None,
        typer.Option(
            help="The bound to hold: 0.5, '1e-3 of range', or density=0.5,Temp='1e-4 of range', "
            "as for convert; else what the stores say."
        ),
    ] = None,
    spectrum: Annotated[
        str | None, typer.Option(help="A field whose power spectra are compared.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw slices of both and of the error as a PNG.")
    ] = None,
    axis: Annotated[str, typer.Option(help="The axis that slices cut: x, y or z.")] = "z",
    slice_at: Annotated[
        float, typer.Option("--slice", metavar="AT", help="Where, a fraction of the box.")
    ] = 0.5,
    output: Annotated[
        int | None, typer.Option(help="Which output, or time step, of a series.")
    ] = None,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Compare two versions cell by cell: largest error, PSNR, SSIM, histogram, ratio.

    Particles, sinks and clumps are matched by their identities, else by order or position.

    Exit code 1 if a bound is broken: one that is given with --bound, or that a store was written
    with. A store without bounds promises that nothing differs. So it is if particles are missing
    in one of the two, if nothing was compared, or if something could not be.

    [bold]Examples[/bold]
    ambar compare plt00200 plt.ambar
    ambar compare plt00200 plt.ambar --plot errors.png --spectrum density
    ambar compare run.ambar other.ambar --fields density --bound '1e-3 of range'
    """
    from ambar.comparison.compare import compare as compare_both
    from ambar.store.error_bounds import parse_bounds

    with printed_warnings(), working("comparing", progress=progress):
        found = compare_both(
            original,
            other,
            parse_list(fields),
            bound=parse_bounds(bound),
            output=output,
            spectrum=spectrum,
            threads=threads,
        )
    if plot is not None:
        from ambar._util.figures import save_figure
        from ambar.comparison.plot import draw_comparison

        figure = draw_comparison(
            found, original, other, axis=axis, at=slice_at, output=output, threads=threads
        )
        save_figure(figure, plot)
    if json:
        print_json(found.to_dict())
    else:
        _show(found)
        if plot is not None:
            console.print(str(plot), markup=False, soft_wrap=True)
    if not found.held:
        raise typer.Exit(Exit.DAMAGE)


def _show(found: Comparison) -> None:
    console.print(
        f"{found.original} and {found.other}: {found.cells:,} values a field",
        markup=False,
        soft_wrap=True,
    )
    table = plain_table(
        "field", "level", "cells", "lowest", "highest", "max error", "bound", "PSNR dB", "SSIM"
    )
    for name in ("ratio", "held"):
        table.add_column(name, justify="right")
    for one in found.fields:
        table.add_row(*_texts(one, one.all), f"{one.ratio:.2f}", _held(one))
        if len(one.levels) > 1:
            for level in one.levels:
                table.add_row("", *_texts(one, level)[1:], "", "", style="dim")
    console.print(table)
    for one in found.fields:
        if any(one.histogram) and one.all.max_error > 0:
            bars = bars_of(one.histogram)
            text = f"{one.field}: {-one.scale:.2g} {bars} {one.scale:.2g}"
            console.print(text, markup=False, style="dim", soft_wrap=True)
    if found.tables:
        _show_rows(found.tables)
    show_bounds(_given_bounds(found))
    if found.not_compared:
        text = f"not compared: {', '.join(found.not_compared)}"
        console.print(text, markup=False, soft_wrap=True)
    _show_lacking("", found)
    _show_datasets(found)
    if found.spectrum is not None:
        _show_spectrum(found.spectrum)


def _given_bounds(found: Comparison) -> dict[str, str]:
    """Return the bounds that were given, by target."""
    bounds: dict[str, str] = {}
    for one in found.fields:
        bounds |= one.bounds
    for rows in found.tables:
        for column in rows.columns:
            bounds |= {_full(rows.component, name): of for name, of in column.bounds.items()}
    return bounds


def _full(component: str, target: str) -> str:
    name = target.partition("@")[0]
    return target if "/" in name else f"{component}/{target}"


def _show_rows(tables: list[RowComparison]) -> None:
    from ambar.comparison.compare import bound_text

    table = plain_table("rows of", "column", "rows", "max error", "bound", "held", left=2)
    for one in tables:
        for column in one.columns:
            rows, error = f"{one.rows:,}", f"{column.max_error:.4g}"
            bound = bound_text(column.bound)
            table.add_row(one.component, column.column, rows, error, bound, _held(column))
    console.print()
    console.print(table)
    for one in tables:
        text = f"{one.component}: matched by {one.matched_by}"
        if one.missing or one.extra:
            text += f"; {one.missing:,} only in the original, {one.extra:,} only in the other"
        console.print(text, markup=False, style="dim", soft_wrap=True)
        _show_lacking(f"{one.component}: columns ", one)


def _show_lacking(what: str, found: Comparison | RowComparison) -> None:
    for where, names in (("original", found.only_in_original), ("other", found.only_in_other)):
        if names:
            text = f"{what}only in the {where}: {', '.join(names)}"
            console.print(text, markup=False, style="dim", soft_wrap=True)


def _show_datasets(found: Comparison) -> None:
    for where, names in (
        ("original", found.datasets_only_in_original),
        ("other", found.datasets_only_in_other),
    ):
        if names:
            more = f" and {len(names) - LISTED:,} more" * (len(names) > LISTED)
            text = f"datasets only in the {where}: {', '.join(names[:LISTED])}{more}"
            console.print(text, markup=False, soft_wrap=True)


def _texts(one: FieldComparison, part: ErrorMetrics) -> list[str]:
    from ambar.comparison.compare import bound_text

    return [
        one.field,
        "all" if part.level is None else str(part.level),
        f"{part.cells:,}",
        f"{part.lowest:.4g}",
        f"{part.highest:.4g}",
        f"{part.max_error:.4g}",
        bound_text(one.bound),
        f"{part.psnr:.1f}",
        "-" if math.isnan(part.ssim) else f"{part.ssim:.5f}",
    ]


def _held(one: FieldComparison | ColumnComparison) -> str:
    if one.held is None:
        return "-"
    return "yes" if one.held else "[bold red]NO[/bold red]"


def bars_of(counts: list[int]) -> str:
    """Return a histogram as a line of bars; the smallest bar is for any count above 0."""
    most = max(counts)
    heights = (math.ceil(count / most * (len(_BARS) - 1)) if count else 0 for count in counts)
    return "".join(_BARS[height] for height in heights)


def _show_spectrum(spectrum: Spectrum) -> None:
    table = plain_table("k", "power", "other / original", title=f"spectrum of {spectrum.field}")
    count = len(spectrum.k)
    # At most sixteen lines, evenly along the logarithm of k.
    chosen = {round(count ** (number / 15)) - 1 for number in range(16)} if count else set()
    for number in sorted(chosen):
        table.add_row(
            f"{spectrum.k[number]:.4g}",
            f"{spectrum.original[number]:.4g}",
            f"{spectrum.ratio[number]:.6f}",
        )
    console.print()
    console.print(table)
