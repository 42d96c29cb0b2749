"""What each kind of error bound does to a field: pictures and tables of docs/howto/error-bounds.md.

python examples/error_bounds.py         draw the pictures, print the tables
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

import ambar

HERE = Path(__file__).resolve().parent.parent
PICTURES = HERE / "docs" / "images" / "bounds"
JET = HERE / "tests" / "data" / "ramses" / "implosion2d" / "output_00004"
WEB = HERE / "examples" / "data" / "cosmic_web.ambar"

Bound: TypeAlias = str | float | Mapping[str, str | float]
Values: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """A bound of the density of an output, and how its error is drawn."""

    output: Path
    bound: Bound
    title: str
    limit: float
    """The end of the colour bar of the error: the bound, or three times a mean error."""
    relative: bool = False


@dataclass(frozen=True)
class Decoded:
    """The density of all cells and in a plane, before and after, and how it was stored."""

    cells: tuple[Values, Values]
    plane: tuple[Values, Values]
    ratio: float
    """The bytes of all arrays of the density to those in the store."""

    @property
    def error(self) -> Values:
        return self.cells[1] - self.cells[0]


KINDS = [
    Case(JET, 0.01, "0.01", 0.01),
    Case(JET, "1e-2 of range", '"1e-2 of range"', 0.00813),
    Case(JET, "1e-2 relative", '"1e-2 relative"', 0.01, relative=True),
    Case(JET, "5 bits", '"5 bits"', 2.0**-6, relative=True),
    Case(JET, "0.003 rms", '"0.003 rms"', 0.009),
    Case(JET, "50 dB", '"50 dB"', 3 * 0.813 * 10**-2.5),
]
DECADES = [
    Case(WEB, "1e-2 of range", '"1e-2 of range"', 1, relative=True),
    Case(WEB, "0.1 relative", '"0.1 relative"', 0.1, relative=True),
    Case(WEB, "0.1 relative above 1e10", '"0.1 relative above 1e10"', 1, relative=True),
]
PARTS = [
    Case(
        WEB,
        {"density": "0.3 relative", "density@1": "0.03 relative"},
        "0.3 relative, level 1 0.03",
        0.3,
        relative=True,
    ),
    Case(JET, {"density": 0.02, "density@[0:0.3, 0:0.3]": 0.002}, "0.02, in a corner 0.002", 0.02),
]
NUMBERS: list[Bound] = [0.01, 1e-3, 1e-4, "0.003 rms", "1e-2 relative", "5 bits"]
"""The bounds of the table."""


def decode(output: Path, bound: Bound) -> Decoded:
    """Store the density within a bound, and read it again."""
    with TemporaryDirectory() as folder:
        store = Path(folder) / "store.ambar"
        if output == WEB:  # a store within a bound: its values are the original here
            output = Path(folder) / "plotfile"
            ambar.export(WEB, output)
        ambar.convert(output, store, fields=["density"], error_bound=bound, fsync=False)
        runs = [ambar.open_snapshot(output), ambar.open_snapshot(store)]
        before, after = (np.asarray(run.amr.read("density")["density"]) for run in runs)
        group = ambar.open_store(store)["amr"]
        parts = [group] if output == JET else [group["level_0"], group["level_1"]]
        arrays = [part["density"] for part in parts]
        return Decoded(
            (before, after),
            (plane(runs[0]), plane(runs[1])),
            sum(array.nbytes for array in arrays) / sum(array.stored_bytes for array in arrays),
        )


def plane(run: ambar.Snapshot) -> Values:
    """Return the density of two dimensions, or in the middle of the box."""
    if run.info.ndim == 2:
        return np.asarray(run.amr.grid("density"))
    return np.asarray(run.amr.slice("density", axis="z", at=0.5)).T


def draw(path: Path, cases: list[Case], dpi: int) -> None:
    """Draw a row for each bound: the density before and after, and the error."""
    figure = Figure(figsize=(9.6, 2.75 * len(cases)), layout="constrained")
    rows = figure.subplots(len(cases), 3, squeeze=False)
    for case, axes in zip(cases, rows, strict=True):
        before, after = decode(case.output, case.bound).plane
        side = 287 if case in KINDS else len(before)
        before, after = before[:side, :side], after[:side, :side]
        error = (after - before) / (before if case.relative else 1)
        if case.output == JET:
            norm, unit, cmap = Normalize(before.min(), before.max()), "density", "viridis"
        else:
            norm, unit, cmap = LogNorm(before.min(), before.max()), "density, Msun/Mpc3", "inferno"
        error_unit = "relative error" if case.relative else "error"
        image(axes[0], before, "original", norm, cmap, unit)
        image(axes[1], after, case.title, norm, cmap, unit)
        limits = Normalize(-case.limit, case.limit)
        image(axes[2], error, f"max |error| {np.abs(error).max():.2g}", limits, "PuOr", error_unit)
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = BytesIO()
    figure.savefig(drawn, dpi=dpi)
    Image.open(drawn).convert("RGB").quantize(224).save(path, optimize=True)


def image(axes: Axes, values: Values, title: str, norm: Normalize, cmap: str, label: str) -> None:
    """Draw an image, x to the right, with a colour bar."""
    drawn = axes.imshow(values.T, origin="lower", norm=norm, cmap=cmap, interpolation="nearest")
    axes.set_title(title, fontsize=9)
    axes.set(xticks=[], yticks=[])
    ends = [-norm.vmax, 0, norm.vmax] if cmap == "PuOr" and norm.vmax else None
    axes.figure.colorbar(drawn, ax=axes, label=label, ticks=ends, format="%.3g" if ends else None)


def table() -> Iterator[str]:
    """Yield the lines of the table of derived quantities, for the jet."""
    yield "| bound | ratio | largest error | rms error | total | gradient | Laplacian |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for bound in NUMBERS:
        decoded = decode(JET, bound)
        before, after = decoded.plane
        error, total = decoded.error, abs(after.mean() / before.mean() - 1)
        steps = [relative_rms(derivative(before), derivative(after)) for derivative in DERIVATIVES]
        yield (
            f"| `{bound if isinstance(bound, float) else chr(34) + str(bound) + chr(34)}` "
            f"| {decoded.ratio:.1f} | {np.abs(error).max():.1e} | {np.sqrt((error**2).mean()):.1e} "
            f"| {total:.0e} | {steps[0]:.1%} | {steps[1]:.0%} |".replace("%", " %")
        )


def gradient(values: Values) -> Values:
    """Return the central differences between cells of the finest level."""
    return np.stack([np.gradient(values, axis=0), np.gradient(values, axis=1)])


def laplacian(values: Values) -> Values:
    """Return the second differences between cells of the finest level."""
    inner = values[1:-1, 1:-1]
    return values[2:, 1:-1] + values[:-2, 1:-1] + values[1:-1, 2:] + values[1:-1, :-2] - 4 * inner


DERIVATIVES = (gradient, laplacian)


def relative_rms(before: Values, after: Values) -> float:
    """Return the rms difference relative to the rms of the first."""
    return float(np.sqrt(((after - before) ** 2).mean() / (before**2).mean()))


def main(pictures: Path = PICTURES, dpi: int = 80) -> None:
    """Draw the pictures and print the table."""
    for name, cases in (("kinds", KINDS), ("decades", DECADES), ("parts", PARTS)):
        draw(pictures / f"{name}.png", cases, dpi)
    sys.stdout.write("\n".join(table()) + "\n")


if __name__ == "__main__":
    main()
