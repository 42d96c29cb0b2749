"""`ambar plot`: a slice or a projection as a PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ambar import _core
from ambar._util.progress import progress_function
from ambar.cli.options import Debug, Json, Progress, Threads, flag, parse_center, without_none
from ambar.cli.output import show_result


def plot(
    path: Annotated[
        str, typer.Argument(help="A store (a URL, too), a RAMSES output, or a plotfile.")
    ],
    target: Annotated[
        Path | None, typer.Argument(help="The PNG; by default here, named after PATH.")
    ] = None,
    field: Annotated[
        str | None,
        typer.Option(
            "--field",
            "--scalars",
            "-f",
            help="What to draw: density, a collection's first variable, a mesh's active array.",
        ),
    ] = None,
    slice_at: Annotated[
        float | None,
        typer.Option("--slice", metavar="AT", help="Draw a slice, at this fraction of the box."),
    ] = None,
    axis: Annotated[
        str | None, typer.Option(help="The axis to look along: x, y or z (default).")
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(help="Project the mean weighted with this field, not the integral."),
    ] = None,
    center: Annotated[
        str | None,
        typer.Option(help="Middle of the picture, fractions of the box; by default 0.5,0.5,0.5."),
    ] = None,
    width: Annotated[
        float | None, typer.Option(help="Its width, a fraction of the box; 1 by default.")
    ] = None,
    level: Annotated[
        int | None, typer.Option(help="Level of its cells; by default what a screen shows.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Unit of the values, or 'code'; by default a usual one.")
    ] = None,
    log: Annotated[
        bool | None,
        flag(
            "--log/--linear",
            "Logarithmic or linear colours; by default logarithmic for positive values that "
            "extend over more than a factor of 10.",
        ),
    ] = None,
    colors: Annotated[
        str | None,
        typer.Option(
            help="A colour map of matplotlib; by default inferno, or RdBu_r for both signs."
        ),
    ] = None,
    output: Annotated[int | None, typer.Option(help="Which output of a series.")] = None,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Draw a projection (or with --slice a slice) of a field as a PNG. Needs matplotlib.

    Of a collection: the range of a variable's values in each dataset. Of a mesh: its surface, drawn
    by PyVista.

    [bold]Examples[/bold]
    ambar plot run.ambar
    ambar plot run.ambar gas.png --field pressure --slice 0.5 --axis x
    ambar plot profiles.ambar --field temperature
    ambar plot wing.ambar --scalars pressure
    ambar plot run.ambar core.png --center 0.5,0.5,0.5 --width 0.1 --weight density
    """
    from ambar.kinds.registry import locate
    from ambar.kinds.request import PlotRequest, build

    kind, resource = locate(path)
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
        colors=colors,
        output=output,
    )
    common = {"path": path, "target": target, "field": field, "threads": threads}
    request = build(PlotRequest, kind.plot_request, kind.name, path, options, **common)
    with progress_function(progress, f"drawing {Path(path).name}"):
        made = kind.plot(resource, request)
    show_result(str(made), {"target": str(made)}, as_json=json)
