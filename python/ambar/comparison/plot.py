"""Figures of comparisons: slices of both versions and of the error, histograms, power spectra."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar.comparison.compare import Comparison, FieldComparison, Spectrum
from ambar.comparison.operands import operand_of
from ambar.snapshot.plotting import Extent, extent_of, norm_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ambar.snapshot.snapshot import Snapshot

MOST_FIELDS = 8
"""Fields of a figure; more fields are not drawn."""


def draw_comparison(
    found: Comparison,
    original: str | os.PathLike[str],
    other: str | os.PathLike[str],
    *,
    axis: str = "z",
    at: float = 0.5,
    output: int | None = None,
    threads: int | None = None,
) -> Figure:
    """Return a figure with a row for each field: slices of both and of the error, a histogram.

    Lines in the slices are the boundaries of levels. The last row has the power spectra, if
    `found` has them.

    Parameters
    ----------
    found : Comparison
        The comparison of the two.
    original, other : str or path-like
        As for `ambar.compare`.
    axis : {"x", "y", "z"}, default "z"
        The axis that the slices cut.
    at : float, default 0.5
        The position of the slices, as a fraction of the box.
    output : int, optional
        The number of the output of a series.
    threads : int, optional
        The number of threads that read; all cores by default.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the two have no cells, or cells of one dimension.
    """
    from matplotlib.figure import Figure

    a, b = (operand_of(path, output, threads).snapshot for path in (original, other))
    if a.amr.ndim == 1:
        raise _core.InvalidError("a slice needs cells in two or three dimensions")
    fields = found.fields[:MOST_FIELDS]
    rows = len(fields) + (found.spectrum is not None)
    figure = Figure(figsize=(15, 3.4 * rows), dpi=110, layout="constrained")
    grid = figure.add_gridspec(rows, 4)
    slices = _Slices(a, b, axis, at, threads)
    for row, one in enumerate(fields):
        slices.paint([figure.add_subplot(grid[row, column]) for column in range(3)], one)
        _paint_histogram(figure.add_subplot(grid[row, 3]), one)
    if found.spectrum is not None:
        _paint_spectrum(
            figure.add_subplot(grid[rows - 1, :2]),
            figure.add_subplot(grid[rows - 1, 2:]),
            found.spectrum,
        )
    return figure


class _Slices:
    """Slices of two snapshots at one position, and the levels of the cells there."""

    def __init__(self, a: Snapshot, b: Snapshot, axis: str, at: float, threads: int | None) -> None:
        self._sides = (a, b)
        # Cells in two dimensions are drawn as a whole.
        self._cut: dict[str, Any] = {"axis": axis, "at": at, "threads": threads}
        self._threads = threads
        self._levels = self._slice(a, "level")

    def _slice(self, snapshot: Snapshot, field: str) -> Any:
        amr = snapshot.amr
        if amr.ndim == 2:
            return amr.grid(field, level=amr.levels[1], threads=self._threads)
        return amr.slice(field, **self._cut)

    def paint(self, panels: list[Axes], one: FieldComparison) -> None:
        """Draw the original, the other version and the error."""
        original, other = (self._slice(side, one.field) for side in self._sides)
        values = [original.to_numpy().T, other.to_numpy().T]
        norm, colors = norm_of(values[0][np.isfinite(values[0])], None)
        scale = one.scale or 1.0
        pictures: list[tuple[np.ndarray, str, dict[str, Any]]] = [
            (values[0], f"{one.field}: original", {"norm": norm, "cmap": colors}),
            (values[1], f"other, {one.ratio:.3g} times smaller", {"norm": norm, "cmap": colors}),
            (
                values[1] - values[0],
                f"error, at most {one.all.max_error:.3g}",
                {"vmin": -scale, "vmax": scale, "cmap": "RdBu_r"},
            ),
        ]
        dims, extent = original.dims, extent_of(original)
        for axes, (image, title, options) in zip(panels, pictures, strict=True):
            shown = axes.imshow(
                np.ma.masked_invalid(image),
                origin="lower",
                extent=extent,
                interpolation="nearest",
                **options,
            )
            self._paint_boundaries(axes, extent)
            axes.set_title(title, fontsize=10)
            axes.set_xlabel(f"{dims[0]} [code length]", fontsize=8)
            axes.set_ylabel(f"{dims[1]} [code length]", fontsize=8)
            axes.tick_params(labelsize=8)
            axes.figure.colorbar(shown, ax=axes, shrink=0.9)

    def _paint_boundaries(self, axes: Axes, extent: Extent) -> None:
        levels = np.nan_to_num(self._levels.to_numpy().T, nan=-1.0)
        between = [level + 0.5 for level in np.unique(levels)[:-1]]
        if between and min(levels.shape) > 1:
            axes.contour(
                levels, between, colors="white", linewidths=0.5, origin="lower", extent=extent
            )


def _paint_histogram(axes: Axes, one: FieldComparison) -> None:
    edges = np.linspace(-one.scale, one.scale, len(one.histogram) + 1)
    axes.stairs(one.histogram, edges, fill=True, color="#c77f12")
    if isinstance(one.bound, float) and one.bound:
        for side in (-one.bound, one.bound):
            axes.axvline(side, color="0.3", linestyle="--", linewidth=1)
    axes.set_ylim(bottom=0)
    axes.set_title(f"PSNR {one.all.psnr:.1f} dB, SSIM {one.all.ssim:.5f}", fontsize=10)
    axes.set_xlabel("error, dashed: the bound" if one.bound else "error", fontsize=8)
    axes.set_ylabel("cells", fontsize=8)
    axes.tick_params(labelsize=8)


def _paint_spectrum(left: Axes, right: Axes, spectrum: Spectrum) -> None:
    left.loglog(spectrum.k, spectrum.original, label="original", color="0.4")
    left.loglog(spectrum.k, spectrum.other, label="other", color="#c77f12", linestyle="--")
    left.set_title(f"power spectrum of {spectrum.field}, level {spectrum.level}", fontsize=10)
    left.legend(fontsize=8)
    right.semilogx(spectrum.k, spectrum.ratio, color="#c77f12")
    right.axhline(1, color="0.4", linewidth=0.8)
    right.axhspan(0.99, 1.01, color="0.9")
    right.set_title("other / original; grey: 1 %", fontsize=10)
    for axes in (left, right):
        axes.set_xlabel("k [2 pi / code length]", fontsize=8)
        axes.tick_params(labelsize=8)
