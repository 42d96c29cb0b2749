"""`ambar plot`: a picture of cells or a mesh."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ambar import _core
from ambar._util.progress import progress_function
from ambar.cli.options import (
    Commit,
    Debug,
    Json,
    Progress,
    Threads,
    flag,
    option,
    parse_center,
    parse_limits,
    without_none,
)
from ambar.cli.output import show_result


def plot(
    path: Annotated[
        str, typer.Argument(help="A store (a URL, too), a RAMSES output, or a plotfile.")
    ],
    target: Annotated[
        Path | None,
        typer.Argument(
            help="The picture (.png, .pdf, .svg, ...); by default a PNG here, named after PATH."
        ),
    ] = None,
    field: Annotated[
        str | None,
        option(
            "What to draw: density by default (else the first field), or a mesh's active array.",
            "--field",
            "--scalars",
            "-f",
        ),
    ] = None,
    slice_at: Annotated[
        float | None, option("Draw a slice, at this fraction of the box.", "--slice", metavar="AT")
    ] = None,
    axis: Annotated[str | None, option("The axis to look along: x, y or z (default).")] = None,
    weight: Annotated[
        str | None, option("Project the mean weighted with this field, not the integral.")
    ] = None,
    center: Annotated[
        str | None, option("Middle of the picture, fractions of the box; by default 0.5,0.5,0.5.")
    ] = None,
    width: Annotated[
        float | None, option("Its width, a fraction of the box; 1 by default.")
    ] = None,
    level: Annotated[
        int | None, option("Level of its cells; by default what a screen shows.")
    ] = None,
    unit: Annotated[
        str | None, option("Unit of the values, or 'code'; by default a usual one.")
    ] = None,
    log: Annotated[
        bool | None,
        flag(
            "--log/--linear",
            "Logarithmic or linear colours; by default logarithmic for positive values that "
            "extend over more than a factor of 10.",
        ),
    ] = None,
    limits: Annotated[
        str | None,
        option("Values at the ends of the colour bar, to compare pictures.", metavar="LOW:HIGH"),
    ] = None,
    colors: Annotated[
        str | None,
        option("A colour map of matplotlib; by default inferno, or RdBu_r for both signs."),
    ] = None,
    output: Annotated[int | None, option("Which output of a series.")] = None,
    dpi: Annotated[int, option("Dots per inch.", min=1, max=1000)] = 150,
    title: Annotated[bool, flag("--title/--no-title", "Whether the picture has a title.")] = True,
    commit: Commit = None,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Draw a projection (or with --slice a slice) of a field. Needs matplotlib.

    Of a mesh: its surface, drawn by PyVista.

    [bold]Examples[/bold]
    ambar plot run.ambar
    ambar plot run.ambar gas.png --field pressure --slice 0.5 --axis x
    ambar plot wing.ambar --scalars pressure
    ambar plot run.ambar core.png --center 0.5,0.5,0.5 --width 0.1 --weight density
    """
    from ambar.kinds.registry import open_path
    from ambar.kinds.request import build

    kind, opened = open_path(path, commit=commit)
    if kind.plot is None:
        raise _core.InvalidError(
            f"{path}: the kind {kind.name!r} has nothing to draw; ambar ls shows what it has"
        )
    options = without_none(
        slice_at=slice_at,
        axis=axis,
        weight=weight,
        center=parse_center(center),
        width=width,
        level=level,
        unit=unit,
        log=log,
        limits=parse_limits(limits),
        colors=colors,
        output=output,
    )
    common: dict[str, Any] = {"path": path, "target": target, "field": field, "threads": threads}
    common |= {"dpi": dpi, "title": title}
    request = build(kind.plot_request, kind.name, path, options, **common)
    with progress_function(progress, f"drawing {Path(path).name}"):
        made = kind.plot(opened, request)
    show_result(str(made), {"target": str(made)}, as_json=json)
