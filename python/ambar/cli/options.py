"""Options of several commands, and the names of options in messages."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Annotated, Any

import typer

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


def option(help: str, *names: str, **options: Any) -> Any:  # noqa: A002 - as in typer
    """Return an option that takes a value."""
    return typer.Option(*names, help=help, **options)


def flag(names: str, help: str, **options: Any) -> Any:  # noqa: A002 - as in typer
    """Return an option that takes no value."""
    return typer.Option(names, metavar="", help=help, **options)


Debug = Annotated[bool, flag("--debug", "Show tracebacks of errors.", callback=_debug)]
Json = Annotated[bool, flag("--json", "Print JSON instead of text.", callback=_json)]
COMMIT = "A number, a tag, or 'before 2026-11-01'"
"""What names a commit, for help."""
Commit = Annotated[str | None, option(f"Of a store, an earlier commit. {COMMIT}.")]
CodeUnits = Annotated[
    str | None, option("Code units of an output that does not state them: Nyx, WarpX, SI or cgs.")
]
Threads = Annotated[
    int | None, option("Threads to use; all cores by default.", "--threads", "-t", min=1, max=1024)
]
Progress = Annotated[bool, flag("--progress/--no-progress", "Show a bar for work over a second.")]
_OPTION_NAMES = {
    "slice_at": "slice",
    "datasets": "where",
    "field": "field (-f)",
    "colors": "colors (--cmap)",
}
_ARGUMENTS = {
    'mode="w"': "--overwrite",
    'mode="a"': "--resume",
    "on_error='skip'": "--on-error skip",
    'on_conflict="skip" or "replace"': "--on-conflict skip or --on-conflict replace",
    "error bounds by variable, such as {'temperature': 0.01}": "VARIABLE=BOUND, such as "
    "temperature=0.01",
    "leave encoding (error_bound) out": "leave --error-bound out",
    "folder=PATH": "--folder PATH",
    "decode_times=False": "--no-decode-times",
    "snapshot.with_units(...): a name (Nyx, WarpX, SI, cgs) or ambar.Units": "ambar plot "
    "--code-units: Nyx, WarpX, SI or cgs",
    "example output=": "example --output ",
    "those of derived_fields": "derived fields, which the page 'Fields' of the documentation lists",
    "invalid at=": "invalid --slice ",
    "invalid region:": "invalid --region:",
    'give unit="code", or subtract': "subtract",
    "length_unit=": "--length-unit ",
    "use snapshot.particles": "ambar plot draws particles with --particles",
}

_CALL = re.compile(r"ambar\.(convert|export)\(('[^']*'), '([^']*)'\)")
"""Calls of functions that are commands, too."""


def without_none(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def option_name(option: str) -> str:
    """Return an option of a function of Python as the command line spells it."""
    return "--" + _OPTION_NAMES.get(option, option).replace("_", "-")


def with_option_names(message: str) -> str:
    """Return a message with arguments of Python as the command line spells them."""
    for argument, option in _ARGUMENTS.items():
        message = message.replace(argument, option)
    return _CALL.sub(r"ambar \1 \2 \3", message)


def mode_of(*, overwrite: bool, resume: bool = False) -> Any:
    """Return the mode of writing for --overwrite and --resume."""
    if overwrite and resume:
        raise typer.BadParameter("--overwrite and --resume exclude each other; give one of them")
    return "w" if overwrite else "a" if resume else "w-"


def parse_list(text: str | None) -> list[str] | None:
    """Return the names in "a,b,c"; None for None."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter(f"{text!r} has no names; expected a,b,c")
    return names


def split_names(text: str) -> list[str]:
    """Return the parts of "a,hypot(b, c)", which commas outside of parentheses separate."""
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def parse_center(text: str | None) -> str | list[float] | None:
    """Return the numbers in "0.5,0.5,0.5"; names such as "bc" and "max:density" unchanged."""
    if text is None or text[:1].isalpha():
        return text
    return _parse_numbers(text, "X,Y,Z, such as 0.5,0.5,0.5, or a name such as max:density")


def parse_axis(text: str | None) -> str | list[float] | None:
    """Return the numbers in "1,1,1"; names such as "x" and "faceon" unchanged."""
    if text is None or text[:1].isalpha():
        return text
    return _parse_numbers(text, "x, y, z, a direction such as 1,1,1, faceon or edgeon")


def _parse_numbers(text: str, expected: str) -> list[float]:
    from ambar._core import InvalidError

    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidError(f"{text!r} is not {expected}") from None


def parse_length(text: str) -> float:
    """Return a number; a unit behind it is an error that says where units are given."""
    try:
        return float(text)
    except ValueError:
        found = re.fullmatch(r"\s*([-+.\d]+(?:[eE][-+]?\d+)?)\s*([A-Za-z]\w*)\s*", text)
        advice = f"; write {found[1]} --length-unit {found[2]}" if found else ""
        raise typer.BadParameter(f"expected a number, found {text!r}{advice}") from None


def parse_limits(text: str | None) -> tuple[float, float] | None:
    """Return the numbers in "0:2.5"; None for None."""
    if text is None:
        return None
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not LOW:HIGH, such as 1e-3:10") from None
    return low, high


def parse_levels(text: str | None) -> tuple[int, int] | None:
    """Return the levels in "7:10" or "7"; None for None."""
    if text is None:
        return None
    try:
        low, _, high = text.partition(":")
        return int(low), int(high or low)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not LOWEST:HIGHEST, such as 7:10") from None


def parse_steps(text: str | None) -> slice | list[int] | None:
    """Return the positions in "0:10", "-1" or "1,3,5"; None for None."""
    if text is None:
        return None
    try:
        if ":" in text:
            chosen = slice(*(int(part) if part else None for part in text.split(":")))
            if chosen.step == 0:
                raise typer.BadParameter(f"{text!r} has the step 0; expected another integer")
            return chosen
        return [int(part) for part in text.split(",")]
    except (TypeError, ValueError):
        raise typer.BadParameter(
            f"{text!r} is not a range or a list of positions, such as 0:10 or 1,3,5"
        ) from None


def parse_region(text: str | None) -> Any:
    """Return the box in "0.4:0.6,0.4:0.6,0.4:0.6", in fractions of the side in x; None for None."""
    if text is None:
        return None
    from ambar.snapshot.regions import Box

    try:
        sides = [tuple(map(float, side.split(":"))) for side in text.split(",")]
        lo, hi = zip(*sides, strict=True)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not X0:X1,Y0:Y1,Z0:Z1, such as 0.4:0.6,0.4:0.6,0.4:0.6"
        ) from None
    return Box(lo, hi)
