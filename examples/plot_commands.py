"""Pictures of every kind of data, each by one command of the shell.

python examples/plot_commands.py              draw all pictures, and write docs/gallery.md
python examples/plot_commands.py implosion    draw some of them
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import ambar
from ambar.cli import app
from ambar.figures.panels import style

HERE = Path(__file__).resolve().parent.parent
PICTURES = HERE / "docs" / "images" / "gallery"
PAGE = HERE / "docs" / "gallery.md"
MADE = HERE / "out" / "gallery"
"""The folder of the inputs that are made here."""


@dataclass(frozen=True)
class Picture:
    """A picture of the page: its name, what it shows, and the command that draws it."""

    name: str
    text: str
    command: str
    """Without the target; paths are relative to the checkout."""
    make: Callable[[], None] | None = None
    """Makes the input, if it is not in the checkout."""
    dpi: int = 100


def pictures() -> list[Picture]:
    """Return the pictures in the order of the page."""
    return [
        Picture(
            "implosion",
            "An implosion in two dimensions, computed with RAMSES, without any option.",
            "tests/data/ramses/implosion2d/output_00004",
        ),
        Picture(
            "jet",
            "Its jet, with the borders of levels. Only the cells of the part are read.",
            "tests/data/ramses/implosion2d/output_00004 -f density,pressure "
            "--center 0.14,0.14 --width 0.28 --levels",
        ),
        Picture(
            "series",
            "A series: its outputs with the same colours. `--movie implosion.mp4` makes a movie.",
            "examples/data/implosion.ambar",
        ),
        Picture(
            "cosmic_web",
            "Gas of a cosmological run with Nyx: the density is integrated through the box, the "
            "temperature averaged, weighted with the density.",
            "examples/data/cosmic_web.ambar -f density,Temp",
        ),
        Picture(
            "laser_wake",
            "A laser pulse and its wake in a plasma, computed with WarpX: fields without a density "
            "of mass are cut, and those of both signs have colours that are symmetric around 0.",
            "examples/data/laser_wake.ambar -f Ey,rho --axis x --slice 0.5",
        ),
        Picture(
            "oblique",
            "A self-gravitating box seen along a diagonal.",
            "tests/data/ramses/gravpart_small/output_00002 --axis 1,1,1",
        ),
        Picture(
            "shock_tube",
            "A run of one dimension: lines, one for each field.",
            "tests/data/ramses_cases/tube_1d_walls/output_00002 -f density,velocity_x,pressure "
            "--center 0.5 --width 0.1",
        ),
        Picture(
            "error",
            "Two versions of the same data, and the error, whose colours end at the absolute error "
            "bound.",
            "tests/data/ramses/implosion2d/output_00004 --against examples/data/implosion.ambar",
            dpi=72,
        ),
        Picture(
            "nut",
            "A mesh, which PyVista ships, and the distance from its middle.",
            "out/gallery/nut.ambar",
            _make_nut,
        ),
        Picture(
            "channels",
            "A grid that fills a volume: three planes through its middle.",
            "out/gallery/channels.ambar --cmap viridis",
            _make_channels,
        ),
        Picture(
            "flow",
            "A mesh of triangles in a plane, with its coordinates.",
            "examples/data/flow.ambar -f speed",
        ),
        Picture(
            "casts",
            "A collection of casts: their positions, and profiles of some of them.",
            "examples/data/casts.ambar",
        ),
        Picture(
            "section",
            "A plain array with coordinates: depths increase downwards.",
            "examples/data/section.ambar -f temperature",
        ),
    ]


def _make_nut() -> None:
    from pyvista import examples

    nut = examples.load_nut()
    nut["distance"] = np.linalg.norm(nut.points - np.mean(nut.points, axis=0), axis=1)
    ambar.write_mesh(nut, MADE / "nut.ambar", mode="w")


def _make_channels() -> None:
    from pyvista import examples

    ambar.write_mesh(examples.load_channels(), MADE / "channels.ambar", mode="w")


def draw(picture: Picture, folder: Path, *options: object) -> Path:
    """Draw a picture, and return its file."""
    target = folder / f"{picture.name}.png"
    if picture.make is not None:
        MADE.mkdir(parents=True, exist_ok=True)
        picture.make()
    words = shlex.split(picture.command)
    is_path = re.compile(r"(tests|examples|out)/")
    words = [str(HERE / word) if is_path.match(word) else word for word in words]
    arguments = ["plot", words[0], target, *words[1:], *options]
    app([str(argument) for argument in arguments], standalone_mode=False)
    return target


def page() -> str:
    """Return the page in Markdown."""
    lines = [
        "# Pictures from the command line",
        "",
        "Each picture is drawn by the command below it. Fields, units, colours and limits are "
        "chosen by the values;",
        "`ambar plot --help` lists the options that change them. `make gallery` makes the inputs "
        "in `out/gallery` and draws all",
        "pictures. The other inputs are [in the repository](../examples/data/README.md). From "
        "Python: [examples](../examples/gallery).",
    ]
    for picture in pictures():
        path, *options = picture.command.split(" ", 1)
        command = " ".join(["ambar plot", path, f"{picture.name}.png", *options])
        lines += ["", picture.text, "", f"![{picture.text}](images/gallery/{picture.name}.png)"]
        lines += ["", "```sh", command, "```"]
    return "\n".join([*lines, ""])


def draw_readme(target: Path) -> None:
    """Draw the picture of the README: outputs of three codes, in physical units where known."""
    data = HERE / "examples" / "data"
    nyx = ambar.open_snapshot(data / "cosmic_web.ambar").with_units("Nyx")
    warpx = ambar.open_snapshot(data / "laser_wake.ambar").with_units("WarpX")
    implosion = ambar.open_series(data / "implosion.ambar")[-1]
    corner = ambar.Box([0, 0], [0.28, 0.28])
    with style():
        figure = Figure(figsize=(14.6, 4.4), layout="constrained")
        web, jet, laser = figure.subplots(1, 3)
        nyx.plot("density", ax=web, title=False)
        web.set_title(f"Nyx: the cosmic web at redshift {nyx.info.redshift:.1f}")
        implosion.plot("density", region=corner, ax=jet, title=False)
        jet.set_title("RAMSES: the jet of an implosion, levels 6 to 10")
        warpx.plot("Ey", axis="x", slice_at=0.5, log=True, ax=laser, title=False)
        laser.set_title("WarpX: a laser pulse in a plasma")
        laser.child_axes[0].set_ylabel("electric field [V/m]")
        figure.savefig(target, dpi=95)


def main(names: list[str]) -> None:
    """Draw the pictures with some names, or all, and write the page."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for picture in pictures():
        if not names or picture.name in names:
            draw(picture, PICTURES, "--dpi", picture.dpi)
    if not names:
        draw_readme(HERE / "docs" / "images" / "codes.png")
        PAGE.write_text(page())


if __name__ == "__main__":
    main(sys.argv[1:])
