"""`ambar plot`: a picture of anything that ambar opens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ambar import _core
from ambar._util.progress import progress_function
from ambar.cli.options import (
    CodeUnits,
    Commit,
    Debug,
    Json,
    Progress,
    Threads,
    flag,
    option,
    parse_axis,
    parse_center,
    parse_length,
    parse_limits,
    parse_region,
    split_names,
    without_none,
)
from ambar.cli.output import printed_warnings, show_result

if TYPE_CHECKING:
    from ambar.kinds.registry import Kind


def plot(
    path: Annotated[
        str,
        typer.Argument(
            help="A store (a URL, too), a RAMSES output, a plotfile, or a folder of these."
        ),
    ],
    target: Annotated[
        Path | None,
        typer.Argument(
            help="The picture (.png, .pdf, .svg, ...), or a FITS file (.fits); by default a PNG "
            "here, named after PATH."
        ),
    ] = None,
    field: Annotated[
        list[str] | None,
        option(
            "What to draw: a field or arithmetic; several beside each other as A,B or -f A -f B. "
            "By default density (else the first field), mass of particles, a mesh's active array, "
            "the largest array of a store, of the last step of a series of arrays.",
            "--field",
            "--scalars",
            "-f",
        ),
    ] = None,
    against: Annotated[
        str | None,
        option(
            "Another version of the same data: draw both, and the error with colours that end at "
            "an absolute error bound, else at the largest error.",
            metavar="PATH",
        ),
    ] = None,
    movie: Annotated[
        Path | None,
        option(
            "Write a movie of a series: .mp4 or .webm (needs ffmpeg or imageio-ffmpeg), .gif, or a "
            "folder of numbered PNG files."
        ),
    ] = None,
    rate: Annotated[float | None, option("Frames of the movie per second; 10 by default.")] = None,
    slice_at: Annotated[
        float | None,
        option(
            "Draw a slice, at this fraction of the box along --axis, 0 to 1.",
            "--slice",
            metavar="AT",
        ),
    ] = None,
    axis: Annotated[
        str | None,
        option(
            "The line of sight: x, y, z (default), a direction 1,1,1, or faceon or edgeon of the "
            "angular momentum."
        ),
    ] = None,
    up: Annotated[str | None, option("The direction that is upwards: x, y, z or 0,1,1.")] = None,
    particles: Annotated[bool, flag("--particles", "Draw particles instead of cells.")] = False,
    species: Annotated[
        str | None, option("The species of particles to draw, where there are several.")
    ] = None,
    weight: Annotated[
        str | None, option("Draw the mean weighted with this field, not the integral.")
    ] = None,
    statistic: Annotated[
        Literal["integral", "mean", "dispersion", "maximum"] | None,
        option("Along the line of sight; by default integral, or mean with --weight."),
    ] = None,
    where: Annotated[
        str | None,
        option(
            "Draw only rows, or datasets of a collection, under a condition, such as 'T > 1e4 K'."
        ),
    ] = None,
    region: Annotated[
        str | None,
        option(
            "Draw a part of the box: X0:X1,Y0:Y1,Z0:Z1 in fractions of its side in x.",
            metavar="BOX",
        ),
    ] = None,
    cut: Annotated[
        Literal["center", "whole", "fraction"] | None,
        option(
            "How cells at the surface of --region count; by default those whose centre is in it."
        ),
    ] = None,
    center: Annotated[
        str | None,
        option(
            "Middle of the picture, and of slices without --slice: X,Y,Z, max:density, com, "
            "sink:1, ...; bc by default."
        ),
    ] = None,
    width: Annotated[
        float | None,
        option(
            "Width of the picture in --length-unit, by default a fraction of the side of the box "
            "in x. Without a width, the whole box.",
            parser=parse_length,
            metavar="FLOAT",
        ),
    ] = None,
    depth: Annotated[
        float | None,
        option(
            "Extent along the line of sight, in the unit of --width; by default everything.",
            parser=parse_length,
            metavar="FLOAT",
        ),
    ] = None,
    length_unit: Annotated[
        str | None,
        option("Unit of --center, --width and --depth: box (default; a fraction), code, kpc, ..."),
    ] = None,
    code_units: CodeUnits = None,
    level: Annotated[
        int | None, option("Level of its cells; by default what a screen shows.")
    ] = None,
    resolution: Annotated[
        int | None,
        option(
            "Pixels along the longer side of a map, instead of --level; by default 512, of few "
            "particles 64 to 256.",
            min=1,
        ),
    ] = None,
    levels: Annotated[bool, flag("--levels", "Draw the borders of levels.")] = False,
    unit: Annotated[
        str | None, option("Unit of the values, or 'code'; by default a usual one.")
    ] = None,
    log: Annotated[
        bool | None,
        flag(
            "--log/--linear",
            "Logarithmic or linear colours; by default logarithmic for positive values that "
            "extend over more than a factor of 10. Logarithmic ones end at the percentiles 1 and "
            "99.9, at most 5 decades apart.",
        ),
    ] = None,
    limits: Annotated[
        str | None,
        option("Values at the ends of the colours, to compare pictures.", metavar="LOW:HIGH"),
    ] = None,
    colors: Annotated[
        str | None,
        option(
            "A colour map of matplotlib; by default inferno, or RdBu_r for both signs.",
            "--colors",
            "--cmap",
        ),
    ] = None,
    output: Annotated[
        int | None,
        option(
            "Which output or step of a series; of an array, the index along its first dimension. "
            "By default the middle of a side of a volume, otherwise the first index."
        ),
    ] = None,
    dpi: Annotated[int, option("Dots per inch.", min=1, max=1000)] = 150,
    title: Annotated[bool, flag("--title/--no-title", "Whether the picture has a title.")] = True,
    commit: Commit = None,
    threads: Threads = None,
    progress: Progress = True,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Draw anything that ambar opens. Needs matplotlib, and PyVista for meshes.

    Without options: cells as a map, a slice or a line by their dimensions; a series as a row of its
    outputs; a mesh as its surface; a collection as positions and profiles; arrays as an image or a
    line. Fields, units, colours and limits are chosen by the values.

    A target that ends in .fits becomes a FITS file with world coordinates. Needs astropy.

    [bold]Examples[/bold]
    ambar plot run.ambar
    ambar plot run.ambar gas.png --field density,pressure --slice 0.5 --axis x --levels
    ambar plot run.ambar core.png --center max:density --width 0.1
    ambar plot run.ambar hot.png -f "density**2" --axis 1,1,1 --where "T > 1e6"
    ambar plot run.ambar sigma.pdf -f vz --weight mass --statistic dispersion
    ambar plot run.ambar stars.fits --particles --axis faceon --resolution 1024
    ambar plot output_00002 error.png --against small.ambar
    ambar plot run.ambar --movie run.mp4
    ambar plot plt00040 --code-units Nyx --width 2 --length-unit Mpc
    ambar plot wing.ambar --scalars pressure
    ambar plot wave.ambar -f height --output 3
    """
    from ambar.kinds.registry import open_outputs
    from ambar.kinds.request import build

    with printed_warnings():
        kind, opened = open_outputs(path, commit=commit)
    if kind.plot is None:
        raise _core.InvalidError(
            f"{path}: the kind {kind.name!r} has nothing to draw; ambar ls shows what it has"
        )
    options = without_none(
        slice_at=slice_at,
        axis=parse_axis(axis),
        up=parse_axis(up),
        particles=particles or species is not None or None,
        species=species,
        weight=weight,
        statistic=statistic,
        where=where,
        region=parse_region(region),
        cut=cut,
        center=parse_center(center),
        width=width,
        depth=depth,
        length_unit=length_unit,
        code_units=code_units,
        level=level,
        resolution=resolution,
        levels=levels or None,
        unit=unit,
        log=log,
        limits=parse_limits(limits),
        colors=colors,
        output=output,
    )
    with printed_warnings(), progress_function(progress, f"drawing {Path(path).name}") as report:
        common: dict[str, Any] = {
            "path": path,
            "target": target,
            "fields": tuple(name for text in field or () for name in split_names(text)),
            "against": None if against is None else _other(against, kind),
            "movie": movie,
            "rate": 10.0 if rate is None else rate,
            "threads": threads,
            "dpi": dpi,
            "title": title,
            "report": report,
        }
        cls = kind.plot_request
        also = ("field", *cls.supported_fields, "dpi", "title")
        made = kind.plot(opened, build(cls, kind.name, path, options, also=also, **common))
    show_result(str(made), {"target": str(made)}, as_json=json)


def _other(path: str, kind: Kind) -> Any:
    """Return the opened object of another path, which the same function draws."""
    from ambar.kinds.registry import open_outputs

    other, opened = open_outputs(path)
    if other.plot is not kind.plot:
        raise _core.InvalidError(
            f"{path}: expected a version of the same data for --against, found the kind "
            f"{other.name!r} instead of {kind.name!r}; give another path"
        )
    return opened
