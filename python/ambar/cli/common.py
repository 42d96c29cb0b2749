"""What the commands share: options, exit codes, output."""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

EXIT_CODES = (
    "Exit codes: 0 done; 1 damage found, a file that could not be converted or written, or an "
    "error bound broken; 2 an argument is invalid; "
    "3 a file, field or component does not exist; 4 the system refused, the store is busy, or this "
    "version does not support it; 130 interrupted."
)


class Exit(IntEnum):
    """Exit codes of all commands."""

    DAMAGE = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    INTERRUPTED = 130


class State:
    """What holds for the whole call of the command line."""

    debug = False
    interrupted = "interrupted"
    """What is printed after Ctrl-C."""


def _debug(value: bool) -> bool:
    State.debug = State.debug or value
    return value


Debug = Annotated[bool, typer.Option("--debug", callback=_debug, help="Show tracebacks of errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Threads = Annotated[
    int | None,
    typer.Option("--threads", "-t", min=1, help="Threads to use; all cores by default."),
]
Progress = Annotated[
    bool, typer.Option("--progress/--no-progress", help="Show a bar for work over a second.")
]


def _console(*, stderr: bool = False) -> Console:
    """Return a console; output that goes to a file or pipe is not wrapped to 80 columns."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = 160
    return made


console = _console()
errors = _console(stderr=True)


def print_json(value: Any) -> None:
    """Print `value` as JSON; numbers that are not finite as texts, as stores hold them."""
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


def plain_table(*columns: str, title: str | None = None, left: int = 1) -> Table:
    """Return a table with a header, its first `left` columns aligned to the left."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right", overflow="fold")
    return table


def show_bounds(asked: Mapping[str, str]) -> None:
    """Print the error bounds that were given, by target."""
    if not asked:
        return
    table = plain_table("error bound of", "asked for", left=2)
    for target, bound in asked.items():
        table.add_row(escape(target), escape(bound))
    console.print()
    console.print(table)


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print warnings as one line each on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for one in caught:
        errors.print(f"warning: {one.message}", markup=False, soft_wrap=True)


def parse_list(text: str | None) -> list[str] | None:
    """Return the names in "a,b,c"; None for None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def parse_levels(text: str | None) -> tuple[int, int] | None:
    """Return the levels in "7:10" or "7"; None for None."""
    if text is None:
        return None
    try:
        low, _, high = text.partition(":")
        return int(low), int(high or low)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not LOWEST:HIGHEST, such as 7:10") from None
