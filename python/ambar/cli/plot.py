"""`ambar plot`: a slice or a projection as a PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
    import ambar
    from ambar.snapshot.plotting import draw

    opened = ambar.open(path)
    if isinstance(opened, ambar.Series):
        opened = opened[-1] if output is None else opened.output(output)
    if isinstance(opened, ambar.Collection):
        from ambar.collection.drawing import draw_ranges, first_variable

        variable = field or first_variable(opened)
        target = target or Path(f"{Path(path).name.removesuffix('.ambar')}_{variable}.png")
        _save(draw_ranges(opened, variable), target)
        console.print(str(target), markup=False, soft_wrap=True)
        return
    if isinstance(opened, ambar.MeshSeries):
        opened = opened[-1 if output is None else output]
    if isinstance(opened, ambar.Mesh):
        from ambar.mesh.drawing import draw_mesh

        name = "_".join([Path(path).name.removesuffix(".ambar"), *([field] if field else [])])
        target = target or Path(f"{name}.png")
        draw_mesh(opened, target, scalars=field, colors=colors, threads=threads)
        console.print(str(target), markup=False, soft_wrap=True)
        return
    field = field or "density"
    if not isinstance(opened, ambar.Snapshot):
        raise ambar.InvalidError(f"{path} has no cells to draw; ambar ls shows what it has")
    target = target or Path(f"{Path(path).name.removesuffix('.ambar')}_{field}_{axis}.png")
    figure = draw(
        opened,
        field,
        axis=axis,
        slice_at=slice_at,
        weight=weight,
        center="bc" if center == "bc" else [float(part) for part in center.split(",")],
        width=width,
        level=level,
        unit=unit,
        log=not linear,
        colors=colors,
        threads=threads,
    )
    _save(figure, target)
    console.print(str(target), markup=False, soft_wrap=True)


def _save(figure: Any, target: Path) -> None:
    """Write a figure of matplotlib."""
    try:
        figure.savefig(target)
    except ValueError as error:
        raise _core.InvalidError(f"{target}: no such picture: {error}") from error
