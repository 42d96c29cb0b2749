"""`ambar plot`: a slice or a projection as a PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ambar import _core
from ambar.cli.common import Debug, Threads, console


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
    axis: Annotated[str, typer.Option(help="The axis to look along: x, y or z.")] = "z",
    weight: Annotated[
        str | None,
        typer.Option(help="Project the mean weighted with this field, not the integral."),
    ] = None,
    center: Annotated[
        str, typer.Option(help="Middle of the picture, fractions of the box: 0.5,0.5,0.5.")
    ] = "bc",
    width: Annotated[float, typer.Option(help="Its width, a fraction of the box.")] = 1.0,
    level: Annotated[
        int | None, typer.Option(help="Level of its cells; by default what a screen shows.")
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Unit of the values, or 'code'; by default a usual one.")
    ] = None,
    linear: Annotated[bool, typer.Option("--linear", help="Linear colours, not log.")] = False,
    colors: Annotated[str, typer.Option(help="A colour map of matplotlib.")] = "inferno",
    output: Annotated[int | None, typer.Option(help="Which output of a series.")] = None,
    threads: Threads = None,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Draw a projection (or with --slice a slice) of a field as a PNG. Needs matplotlib.

    Of a collection: the range of a variable's values in each dataset. Of a mesh: its surface, drawn
    by PyVista.

    [bold]Examples[/bold]

    ambar plot run.ambar

    ambar plot run.ambar gas.png --field pressure --slice 0.5 --axis x

    ambar plot fleet.ambar --field temperature

    ambar plot wing.ambar --scalars pressure

    ambar plot run.ambar core.png --center 0.5,0.5,0.5 --width 0.1 --weight density
    """
    from ambar.kinds.registry import locate
    from ambar.kinds.request import PlotRequest

    kind, resource = locate(path)
    if kind.plot is None:
        raise _core.InvalidError(f"{path} has no cells to draw; ambar ls shows what it has")
    request = PlotRequest(
        path=path,
        target=target,
        field=field,
        slice_at=slice_at,
        axis=axis,
        weight=weight,
        center=center,
        width=width,
        level=level,
        unit=unit,
        log=not linear,
        colors=colors,
        output=output,
        threads=threads,
    )
    console.print(str(kind.plot(resource, request)), markup=False, soft_wrap=True)
