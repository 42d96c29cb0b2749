"""The command line: convert, merge, export, info, ls, verify, plot, compare, and more."""

from __future__ import annotations

import errno
import inspect
import io
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from ambar.cli import compare, convert, history, info, maintenance, paraview, plot, samples, view
from ambar.cli.convert import ConvertCommand
from ambar.cli.options import EXIT_CODES, Exit, State, option_name, with_option_names
from ambar.cli.output import console, errors, print_json

ADVICE = {
    errno.ENOENT: "check the path",
    errno.ENOSPC: "free space on the disk, or write to another one",
    errno.EACCES: "check the permissions of the file and of its folder",
}
"""What to do about errors of the operating system, whose messages do not say it."""

app = typer.Typer(
    help="One store for simulation output: convert it, look at it, check it, draw it.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _help(command: Callable[..., None]) -> str:
    """Return a docstring with the lines of each paragraph joined, and "$" before examples."""
    paragraphs = inspect.cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(
        text.replace("\n", "\n$ ") if text.startswith("[bold]") else " ".join(text.split())
        for text in paragraphs
    )


_COMMANDS: dict[str, Callable[..., None]] = {
    "convert": convert.convert,
    "merge": convert.merge,
    "export": convert.export,
    "info": info.info,
    "ls": info.ls,
    "log": history.log,
    "watch": history.watch,
    "tag": history.tag,
    "restore": history.restore,
    "diff": history.diff,
    "verify": maintenance.verify,
    "plot": plot.plot,
    "view": view.view,
    "compare": compare.compare,
    "compact": maintenance.compact,
    "repair": maintenance.repair,
    "references": maintenance.references,
    "paraview-plugin": paraview.paraview_plugin,
    "samples": samples.samples,
}
for name, command in _COMMANDS.items():
    cls = ConvertCommand if name == "convert" else None
    app.command(name, help=_help(command), cls=cls)(command)


def _version(is_given: bool) -> None:
    if is_given:
        import ambar

        console.print(f"ambar {ambar.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None: ...


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit."""
    run(app, arguments)


def run(app: typer.Typer, arguments: list[str] | None = None) -> None:
    """Run the commands of `app` and exit. Errors become one line, except under --debug."""
    State.debug = State.json = False
    State.interrupted = "interrupted"
    if isinstance(sys.stdout, io.TextIOWrapper):  # stderr does so by default
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        app(arguments)
    except SystemExit as done:
        if done.code == Exit.INTERRUPTED:
            errors.print(State.interrupted, markup=False, soft_wrap=True)
        raise
    except Exception as error:
        if State.debug:
            raise
        code = _code(error)
        text = f"error: {_message(error)}"
        if code is None:
            text = (
                f"error: {type(error).__name__}: {error}\n"
                "This is a fault of ambar: please report it with what --debug shows."
            )
        code = Exit.REFUSED if code is None else code
        errors.print(text, markup=False, soft_wrap=True)
        if State.json:
            print_json({"error": _message(error), "exit_code": code})
        sys.exit(code)


def _message(error: Exception) -> str:
    """Return the message of an error: the file, what was found, and what to do."""
    from ambar.kinds.request import InvalidOptionError

    if isinstance(error, InvalidOptionError):
        return error.message(option_name)
    if isinstance(error, UnicodeEncodeError):
        return f"expected an argument in UTF-8, found {error.object!r:.80}; write it in UTF-8"
    if not isinstance(error, OSError) or error.filename is None:
        return with_option_names(str(error))
    found = with_option_names(error.strerror or "")
    advice = "" if "; " in found else ADVICE.get(error.errno or 0)
    return f"{error.filename}: {found}" + (f"; {advice}" if advice else "")


def _code(error: Exception) -> Exit | None:
    """Return the exit code for an expected error; None for any other."""
    from ambar import _core
    from ambar._util.arguments import PositionError

    kinds: list[tuple[type[Exception], Exit]] = [
        (_core.CorruptError, Exit.DAMAGE),
        (_core.NotFoundError, Exit.NOT_FOUND),
        (FileNotFoundError, Exit.NOT_FOUND),
        (_core.InvalidError, Exit.USAGE),
        (PositionError, Exit.USAGE),
        (UnicodeEncodeError, Exit.USAGE),  # arguments that are not UTF-8
        (_core.AmbarError, Exit.REFUSED),
        (OSError, Exit.REFUSED),
        (ImportError, Exit.REFUSED),
    ]
    return next((code for kind, code in kinds if isinstance(error, kind)), None)
