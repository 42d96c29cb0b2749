"""What commands print: text, tables, JSON, reports and progress."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ambar._util.text import printable, size
from ambar.cli.options import Exit, with_option_names

if TYPE_CHECKING:
    from ambar.kinds.request import Conversion, Export


def _console(*, stderr: bool = False) -> Console:
    """Return a console; output that goes to a file or pipe is not wrapped to 80 columns."""
    made = Console(stderr=stderr, highlight=False, emoji=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = 160
    return made


_ERROR_CLASS = re.compile(r"^(?:\w+\.)*[A-Z]\w*Error: ")
"""The class of an error at the beginning of its message."""
LISTED = 20
"""Maximum number of printed lines of a long list."""
console = _console()
errors = _console(stderr=True)


def print_json(value: Any) -> None:
    """Print `value` as JSON; numbers that are not finite as strings, as in stores."""
    json.dump(_finite(value), sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return value


MIN_REPORTED_DEAD_BYTES = 64_000
"""The smallest number of dead bytes to report: each commit leaves its record."""


def plain_table(*columns: str, title: str | None = None, left: int = 1) -> Table:
    """Return a table with a header, its first `left` columns aligned to the left."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right", overflow="fold")
    return table


def cell(text: str) -> str:
    """Return the text of a cell of a table that is printed verbatim, in one line."""
    return escape(printable(text))


def show_head(found: Mapping[str, Any], text: str) -> None:
    """Print a path in bold, a description, and the dead bytes of a store above a threshold."""
    dead = dead_bytes(found["usage"]) if "usage" in found else None
    text = f"{text}, {dead}" if dead else text
    console.print(f"[bold]{escape(found['path'])}[/bold]  {escape(text)}", soft_wrap=True)


def dead_bytes(usage: Mapping[str, int]) -> str | None:
    """Return a note of the dead bytes of a store; None below `MIN_REPORTED_DEAD_BYTES`."""
    return (
        f"{size(usage['dead'])} of dead bytes, which `ambar compact` removes"
        if usage["dead"] >= MIN_REPORTED_DEAD_BYTES
        else None
    )


def show_table(table: Table) -> None:
    """Print an empty line and a table."""
    console.print()
    console.print(table)


def show_pairs(rows: Iterable[tuple[str, object]]) -> None:
    """Print names and values as a table without a header."""
    table = plain_table("", "", left=2)
    table.show_header = False
    for name, value in rows:
        table.add_row(cell(name), cell(str(value)))
    console.print(table)


def show_bounds(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of error bounds, if there are some."""
    if not rows:
        return
    table = plain_table("error bound of", *columns, left=1 + len(columns))
    for row in rows:
        table.add_row(*map(cell, row))
    show_table(table)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print warnings as one line each on standard error, equal ones once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(one.message) for one in caught):
        errors.print(f"warning: {message}", markup=False, soft_wrap=True)


def show_result(text: str, value: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a command did: a line, or JSON."""
    if as_json:
        print_json(value)
    else:
        console.print(text, markup=False, soft_wrap=True)


def show_report(done: Conversion | Export, *, as_json: bool) -> None:
    """Print the report of a conversion or an export; exits with 1 if a part of it failed."""
    if as_json:
        from ambar.kinds.request import Conversion

        report = dataclasses.asdict(done)
        if isinstance(done, Conversion):
            report["ratio"] = None if done.is_part else done.ratio
        print_json(report)
    else:
        console.print(str(done), markup=False, soft_wrap=True)
        show_failed(done.failed)
    if done.failed:
        raise typer.Exit(Exit.DAMAGE)


def show_failed(failed: Mapping[str, str]) -> None:
    """Print failed files or datasets, with the reasons, to standard error."""
    for name, why in list(failed.items())[:LISTED]:
        text = _ERROR_CLASS.sub("", why) or why
        errors.print(with_option_names(f"failed: {name}: {text}"), markup=False, soft_wrap=True)
    if len(failed) > LISTED:
        errors.print(f"... and {len(failed) - LISTED:,} more; --json lists all", markup=False)
