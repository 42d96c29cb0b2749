"""`ambar compare`: errors between two versions of the same data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ambar._util.progress import progress_function
from ambar.cli.options import Debug, Exit, Json, Progress, Threads, option, parse_list
from ambar.cli.output import (
    cell,
    console,
    plain_table,
    print_json,
    printed_warnings,
    show_bounds,
    show_table,
)

if TYPE_CHECKING:
    from ambar.comparison.bounds import CheckedBound
    from ambar.comparison.compare import Comparison, FieldComparison, Spectrum


def compare(
    original: Annotated[
        str, typer.Argument(help="A store or its URL, a plotfile, or a RAMSES output.")
    ],
    other: Annotated[str, typer.Argument(help="Another version of the same.")],
    fields: Annotated[
        str | None,
        option(
            "Fields and components such as particles to compare; by default all that both have.",
            "--fields",
            "-f",
        ),
    ] = None,
    bound: Annotated[
        str | None,
        option(
            "The bound to check: 0.5, '1e-3 of range', or 'rho=0.5, Temp=1e-4 of range', "
            "as for convert; by default the bounds that the stores state."
        ),
    ] = None,
    spectrum: Annotated[str | None, option("A field whose power spectra are compared.")] = None,
    output: Annotated[int | None, option("Which output, or time step, of a series.")] = None,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Compare two versions cell by cell: largest error, PSNR, SSIM, ratio.

    The largest error is absolute, in the unit of the field. A bound "relative" is relative to each
    value of the original, the PSNR to the range of its field over all levels. The ratio is the
    bytes of a field in the original, divided by those in the other version: in stores as they are
    stored, in other files in memory. If only the original is a store, the two are exchanged.

    Particles, sinks and clumps are matched by their identities, otherwise by order or position.

    The exit code is 1 if a bound is broken: one that is given with --bound, or that a store was
    written with. Fields of a store without bounds must be equal. It is also 1 if particles or
    datasets are missing in one of the two, if nothing was compared, or if an array cannot be
    compared. The last line also names fields without a known bound, and fields and components that
    only one of the two has. They do not change the exit code.

    [bold]Examples[/bold]
    ambar compare plt00200 plt.ambar
    ambar compare plt00200 plt.ambar --spectrum density
    ambar compare run.ambar other.ambar --fields density --bound '1e-3 of range'
    """
    from ambar.comparison.compare import compare as compare_both
    from ambar.store.error_bounds import parse_bounds

    with printed_warnings(), progress_function(progress, "comparing"):
        found = compare_both(
            original,
            other,
            parse_list(fields),
            bound=parse_bounds(bound),
            output=output,
            spectrum=spectrum,
            threads=threads,
        )
    if json:
        print_json(found.to_dict())
    else:
        _show(found)
    if not found.held:
        raise typer.Exit(Exit.DAMAGE)


def _show(found: Comparison) -> None:
    _print(found._text())
    _show_ranges(found.fields)
    show_bounds(("given bound",), list(_bounds_of_parts(found).items()))
    if found.spectrum is not None:
        _show_spectrum(found.spectrum)
    console.print()
    _print(found.verdict, style="bold" if found.held else "bold red")


def _print(text: str, style: str | None = None) -> None:
    console.print(text, markup=False, style=style, soft_wrap=True)


def _show_ranges(fields: list[FieldComparison]) -> None:
    """Print the value range of each field, and the range and the errors of each of its levels."""
    from ambar.comparison.compare import error_text, psnr_text, ssim_text, value_text

    if not fields:
        return
    has_levels = any(len(one.levels) > 1 for one in fields)
    errors = ("max abs error", "PSNR dB", "SSIM") if has_levels else ()
    table = plain_table("field", *["level"] * has_levels, "values", "lowest", "highest", *errors)
    for one in fields:
        for part in (one.all, *(one.levels if len(one.levels) > 1 else ())):
            level = "all" if part.level is None else str(part.level)
            # The errors of all levels are in the table above.
            of_level = (
                error_text(part.max_error, one.time_dtype),
                psnr_text(part.psnr),
                ssim_text(part.ssim),
            )
            table.add_row(
                cell(one.field) if part is one.all else "",
                *[level] * has_levels,
                f"{part.cells:,}",
                value_text(part.lowest, one.time_dtype),
                value_text(part.highest, one.time_dtype),
                *(of_level if part is not one.all else ()),
            )
    show_table(table)


def _bounds_of_parts(found: Comparison) -> dict[str, str]:
    """Return the given bounds, by target, of fields and columns that have several."""
    bounds: dict[str, str] = {}
    for one in found.fields:
        bounds |= one.bounds if _has_parts(one) else {}
    for rows in found.tables:
        for column in rows.columns:
            if _has_parts(column):
                bounds |= {_full(rows.component, name): of for name, of in column.bounds.items()}
    return bounds


def _has_parts(one: CheckedBound) -> bool:
    return one.bound is None and one.held is not None


def _full(component: str, target: str) -> str:
    name = target.partition("@")[0]
    return target if "/" in name else f"{component}/{target}"


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
    show_table(table)
