"""Options, exit codes and output that all commands share."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from ambar.kinds.request import Conversion, Export

EXIT_CODES = (
    "Exit codes: 0 done; 1 damage found, a file that could not be converted or written, or an "
    "error bound broken; 2 an argument is invalid; 3 a file, field or component does not exist; 4 "
    "the system refused, the store is busy, a target exists, or this version does not support it; "
    "130 interrupted."
)


class Exit(IntEnum):
    """Exit codes of all commands."""

    DAMAGE = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    INTERRUPTED = 130


class State:
    """Settings of one call of the command line."""

    debug = False
    json = False
    interrupted = "interrupted"
    """What is printed after Ctrl-C."""


def _debug(value: bool) -> bool:
    State.debug = State.debug or value
    return value


def _json(value: bool) -> bool:
    State.json = State.json or value
    return value


Debug = Annotated[
    bool, typer.Option("--debug", metavar="", callback=_debug, help="Show tracebacks of errors.")
]
Json = Annotated[
    bool, typer.Option("--json", metavar="", callback=_json, help="Print JSON instead of text.")
]
Threads = Annotated[
    int | None,
    typer.Option("--threads", "-t", min=1, help="Threads to use; all cores by default."),
]
Progress = Annotated[
    bool,
    typer.Option("--progress/--no-progress", metavar="", help="Show a bar for work over a second."),
]


def _console(*, stderr: bool = False) -> Console:
    """Return a console; output that goes to a file or pipe is not wrapped to 80 columns."""
    made = Console(stderr=stderr, highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = 160
    return made


LISTED = 20
"""Maximum number of printed lines of a long list."""
_SPELLED = {"slice_at": "slice", "datasets": "where"}
_ARGUMENTS = {
    'mode="w"': "--overwrite",
    'mode="a"': "--resume",
    "on_error='skip'": "--on-error skip",
    "decode_times=False": "--no-decode-times",
    "amrex_hdf5=True": "--amrex-hdf5",
    "without_particles=True": "--without-particles",
}
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


def plain_table(*columns: str, title: str | None = None, left: int = 1) -> Table:
    """Return a table with a header, its first `left` columns aligned to the left."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number < left else "right", overflow="fold")
    return table


def show_bounds(bounds: Mapping[str, str]) -> None:
    """Print the error bounds that were given, by target."""
    if not bounds:
        return
    table = plain_table("error bound of", "given bound", left=2)
    for target, bound in bounds.items():
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


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given, as values of Python."""
    return {
        name: value.value if isinstance(value, Enum) else value
        for name, value in options.items()
        if value is not None
    }


def spelled(option: str) -> str:
    """Return an option of a function of Python as the command line spells it."""
    return "--" + _SPELLED.get(option, option).replace("_", "-")


def in_options(message: str) -> str:
    """Return a message with arguments of Python as the command line spells them."""
    for argument, option in _ARGUMENTS.items():
        message = message.replace(argument, option)
    return message


def working(title: str, *, progress: bool) -> AbstractContextManager[Any]:
    """Show a bar while the block takes longer than a second; yields its report function."""
    from ambar._util.progress import bar

    return bar(title) if progress else nullcontext()


def show_result(text: str, value: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what a command did: a line, or JSON."""
    if as_json:
        print_json(value)
    else:
        console.print(text, markup=False, soft_wrap=True)


def show_report(done: Conversion | Export, *, as_json: bool) -> None:
    """Print the report of a conversion or an export; exits with 1 if a part of it failed."""
    if as_json:
        print_json(
            dataclasses.asdict(done) | ({"ratio": done.ratio} if hasattr(done, "ratio") else {})
        )
    else:
        console.print(str(done), markup=False, soft_wrap=True)
        show_failed(done.failed)
    if done.failed:
        raise typer.Exit(Exit.DAMAGE)


def show_failed(failed: Mapping[str, str]) -> None:
    """Print failed files or datasets, with the reasons, to standard error."""
    for name, why in list(failed.items())[:LISTED]:
        errors.print(in_options(f"failed: {name}: {why}"), markup=False, soft_wrap=True)
    if len(failed) > LISTED:
        errors.print(f"... and {len(failed) - LISTED:,} more; --json lists all", markup=False)


def mode_of(*, overwrite: bool, resume: bool = False) -> Any:
    """Return the mode of writing for --overwrite and --resume."""
    if overwrite and resume:
        raise typer.BadParameter("--overwrite and --resume exclude each other; give one of them")
    return "w" if overwrite else "a" if resume else "w-"


def parse_list(text: str | None) -> list[str] | None:
    """Return the names in "a,b,c"; None for None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def parse_center(text: str | None) -> str | list[float] | None:
    """Return the numbers in "0.5,0.5,0.5"; "bc" for "bc", None for None."""
    if text is None or text == "bc":
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not X,Y,Z, such as 0.5,0.5,0.5") from None


def parse_levels(text: str | None) -> tuple[int, int] | None:
    """Return the levels in "7:10" or "7"; None for None."""
    if text is None:
        return None
    try:
        low, _, high = text.partition(":")
        return int(low), int(high or low)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not LOWEST:HIGHEST, such as 7:10") from None
