"""`ambar view`: a page in the browser."""

from __future__ import annotations

from typing import Annotated

import typer

from ambar.cli.options import CodeUnits, Commit, Debug, flag, option, without_none
from ambar.cli.output import console, printed_warnings


def view(
    path: Annotated[
        str,
        typer.Argument(
            help="A store (a URL, too), a RAMSES output, a plotfile, or a folder of these."
        ),
    ],
    against: Annotated[
        str | None,
        option("Other data of the same kind: shown side by side, with the difference."),
    ] = None,
    code_units: CodeUnits = None,
    port: Annotated[
        int, option("The port on this machine; a free one by default.", min=0, max=65535)
    ] = 0,
    browser: Annotated[
        bool, flag("--browser/--no-browser", "Whether to open the page in the browser.")
    ] = True,
    commit: Commit = None,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Show data in the browser: pan, zoom and slice. Needs Panel.

    What the screen shows is read, and what may be shown next. The server accepts connections from
    this machine only; its URL has a token. For data on another machine, forward the port:
    ssh -L 8050:127.0.0.1:8050.

    [bold]Examples[/bold]
    ambar view run.ambar
    ambar view output_00080
    ambar view s3://bucket/run.ambar --port 8050 --no-browser
    ambar view run.ambar --against lossy.ambar
    ambar view run_folder --against run.ambar
    ambar view plt00200 --code-units Nyx
    """
    from ambar.io.view import view as view_path

    with printed_warnings():
        viewer = view_path(
            path, against=against, commit=commit, **without_none(code_units=code_units)
        ).serve(port, browser=browser)
    console.print(f"{path}: {viewer.url}", soft_wrap=True, markup=False)
    console.print("Ctrl-C ends the server.")
    try:
        viewer.wait()
    except KeyboardInterrupt:
        viewer.stop()
