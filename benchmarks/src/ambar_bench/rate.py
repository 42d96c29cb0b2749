"""Rate-distortion of single-level fields at equal PSNR: ambar, SPERR, SZ3 and ZFP.

`python -m ambar_bench.rate PATH... --output FOLDER`; a path is a `.npy` file, an AMReX plotfile or
a RAMSES output.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ambar
from ambar import _core
from ambar.store.error_bounds import resolved
from ambar_bench import output
from ambar_bench.amr.plotfile import read_plotfile
from ambar_bench.hdf5.study import turbulence
from ambar_bench.machine import machine

TARGETS = range(40, 111, 10)
"""The PSNRs at which bytes are compared, in dB."""
PACKAGES = ("h5py", "hdf5plugin")
MIN_VALUES = 1 << 14
"""Fields of fewer values are left out."""
RAMSES_FIELDS = ("density", "pressure", "velocity_x")
Values = NDArray[Any]
Point = tuple[float, int]
"""A PSNR in dB, and the bytes that reach it."""


@dataclass
class Field:
    """The bytes of a field by method and PSNR."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_set_aside: bool
    """Whether nothing was developed on this field: a third of all fields, chosen by name."""
    bytes: dict[str, list[float]] = field(default_factory=dict)
    """For each method the bytes at each of `TARGETS`; NaN where the method does not reach it."""

    def change(self, method: str, peer: str) -> NDArray[np.float64]:
        """Return the bytes of a method relative to a peer's, less 1, at each of `TARGETS`."""
        ratios: NDArray[np.float64] = np.array(self.bytes[method]) / np.array(self.bytes[peer])
        return ratios - 1


def ambar_point(values: Values, target: float, *, small: bool) -> Point:
    """Encode with ambar for a target PSNR, as the profile `balanced` or `small` does."""
    bound = resolved(f"{target} dB", (float(values.min()), float(values.max())))
    plan = _core.codec_tune(values, None, bound, small)
    stream = _core.codec_encode(values, None, bound, plan)
    decoded = _core.codec_decode(stream, str(values.dtype), values.shape)
    return psnr(values, decoded.reshape(values.shape)), len(stream)


def hdf5_point(values: Values, target: float, *, name: str) -> Point:
    """Write one chunk with a filter of hdf5plugin for a target PSNR."""
    import h5py
    import hdf5plugin

    # SZ3's target PSNR is untested by hdf5plugin; it derives this absolute bound. ZFP has none, and
    # its errors are smaller than its tolerance.
    bound = math.sqrt(3) * float(np.ptp(values)) * 10 ** (-target / 20)
    options = {
        "SPERR": partial(hdf5plugin.Sperr, peak_signal_to_noise_ratio=target),
        "SZ3": partial(hdf5plugin.SZ3, absolute=bound),
        "ZFP": partial(hdf5plugin.Zfp, accuracy=2 * bound),
    }[name]()
    # SPERR's filter takes the first dimension for the fastest one. It gets the same values with the
    # shape reversed.
    shape = values.shape[::-1] if name == "SPERR" else values.shape
    # Without a cache, values are decoded when they are read.
    with h5py.File("memory", "w", driver="core", backing_store=False, rdcc_nbytes=0) as file:
        data = file.create_dataset("x", data=values.reshape(shape), chunks=shape, **options)
        file.flush()
        return psnr(values, data[()].reshape(values.shape)), int(data.id.get_storage_size())


METHODS = {
    "ambar balanced": partial(ambar_point, small=False),
    "ambar small": partial(ambar_point, small=True),
    "SPERR": partial(hdf5_point, name="SPERR"),
    "SZ3": partial(hdf5_point, name="SZ3"),
    "ZFP": partial(hdf5_point, name="ZFP"),
}


def psnr(original: Values, decoded: Values) -> float:
    """Return the PSNR in dB; infinity if all values are the same."""
    original = original.astype(np.float64)
    error = float(np.sqrt(np.mean((decoded - original) ** 2)))
    return 20 * math.log10(float(np.ptp(original)) / error) if error else math.inf


def bytes_at(points: list[Point]) -> list[float]:
    """Interpolate the logarithm of bytes at each of `TARGETS`."""
    finite = sorted(point for point in points if math.isfinite(point[0]))
    if not finite:
        return [math.nan] * len(TARGETS)
    decibels, sizes = np.array(finite).T
    logs = np.interp(TARGETS, decibels, np.log(sizes), left=math.nan, right=math.nan)
    return [float(size) for size in np.exp(logs)]


def synthetic() -> Iterator[tuple[str, Values]]:
    """Yield random fields with several spectra, in three and two dimensions."""
    random = np.random.default_rng(7)

    def waves(shape: tuple[int, ...], slope: float, cut: float = math.inf) -> Values:
        """Return a Gaussian field with the amplitudes k^slope, cut off exponentially at `cut`."""
        k = np.sqrt(sum(np.square(np.meshgrid(*map(np.fft.fftfreq, shape), indexing="ij"))))
        k[(0,) * len(shape)] = 1.0
        spectrum = k**slope * np.exp(-k / cut) * np.fft.fftn(random.normal(size=shape))
        spectrum[(0,) * len(shape)] = 0.0
        values = np.fft.ifftn(spectrum).real
        return np.asarray(values / values.std())

    cube, plane = (80, 72, 64), (500, 400)
    steep = waves(cube, -2.8)
    yield "synthetic-turbulence", turbulence(64)
    yield "synthetic-turbulence-f32", waves(cube, -11 / 6).astype(np.float32)
    yield "synthetic-rough", waves(cube, -1.2)
    yield "synthetic-steep", steep
    yield "synthetic-lognormal", np.exp(1.5 * waves(cube, -2.3))
    yield "synthetic-smooth", waves(cube, -1.0, 0.03)
    yield "synthetic-shocks", np.tanh(8 * steep) + 0.3 * waves(cube, -2.5)
    yield "synthetic-layers-f32", np.tanh(waves(cube, -2, 0.05) * 3).astype(np.float32)
    yield "synthetic-plane", waves(plane, -1.8)
    yield "synthetic-plane-smooth", waves(plane, -1.0, 0.02)
    yield "synthetic-plane-cascade-f32", waves(plane, -4 / 3).astype(np.float32)


def fields_of(path: Path) -> Iterator[tuple[str, Values]]:
    """Yield names and values of the fields of a file.

    Of a plotfile, these are the cells of the coarsest level; of a RAMSES output, a grid.
    """
    if path.suffix == ".npy":
        yield path.stem, np.load(path)
    elif _core.is_plotfile(str(path)):
        hierarchy = read_plotfile(path)
        boxes = hierarchy.levels[0].boxes
        low = np.min([box.lo for box in boxes], axis=0)
        high = np.max([box.lo + box.shape for box in boxes], axis=0)
        for name in hierarchy.fields:
            values = np.empty(high - low, boxes[0].values[name].dtype)
            for box in boxes:
                begin = box.lo - low
                part = tuple(map(slice, begin, begin + box.shape))
                values[part] = box.values[name]
            yield f"{path.name}-{name}", values
    else:
        amr = ambar.open_snapshot(path).amr
        for name in RAMSES_FIELDS:
            # Twice the resolution of the coarsest level that covers the domain.
            grid = amr.grid(name, level=amr.levels[0] + 1).values
            yield f"{path.parent.name}-{path.name}-{name}", np.ascontiguousarray(grid)


def measure(name: str, values: Values) -> Field:
    """Measure all methods on a field."""
    values = np.ascontiguousarray(values.squeeze())
    found = Field(name, values.shape, str(values.dtype), zlib.crc32(name.encode()) % 3 == 0)
    for method, point in METHODS.items():
        points = [point(values, target) for target in range(4, 122, 6)]
        found.bytes[method] = bytes_at(points)
    return found


def _summary(fields: list[Field], method: str, peer: str) -> list[str]:
    """Return the mean and the worst change of the bytes at each PSNR, in percent."""
    changes = np.array([field.change(method, peer) for field in fields])
    means = np.expm1(np.nanmean(np.log1p(changes), axis=0))
    worst = np.nanmax(changes, axis=0)
    return [f"{100 * m:+.1f} ({100 * w:+.1f})" for m, w in zip(means, worst, strict=True)]


def markdown(fields: list[Field], machine_of_run: Mapping[str, str]) -> str:
    """Return the table of bytes relative to SPERR, means and fields."""
    columns = ("", *(f"{target} dB" for target in TARGETS))
    lines = [
        "# Bytes at equal PSNR",
        "",
        "Bytes relative to those of SPERR at the same PSNR, in percent: below 0 is smaller. Bytes "
        "are interpolated between measured points. ambar and SPERR have a target PSNR and no bound "
        "of single values. Each field is one chunk. Fields that are set aside are a third of all, "
        "chosen by name: the codec is not developed on them.",
    ]
    for is_set_aside, title in ((False, "Fields"), (True, "Fields set aside")):
        chosen = [field for field in fields if field.is_set_aside is is_set_aside]
        if not chosen:
            continue
        rows = [
            [f"{method}: geometric mean (worst)", *_summary(chosen, method, "SPERR")]
            for method in METHODS
            if method != "SPERR"
        ]
        for one in chosen:
            changes = [one.change(method, "SPERR") for method in ("ambar balanced", "ambar small")]
            cells = [
                "" if math.isnan(balanced) else f"{100 * balanced:+.1f} / {100 * small:+.1f}"
                for balanced, small in zip(*changes, strict=True)
            ]
            shape = "x".join(map(str, one.shape))
            rows.append([f"{one.name}, {one.dtype} {shape}: balanced / small", *cells])
        lines += ["", f"## {title} ({len(chosen)})", "", *output.markdown_table(columns, rows)]
    return "\n".join([*lines, "", *output.machine_lines(machine_of_run)]) + "\n"


def chart(fields: list[Field], target: Path) -> None:
    """Draw bytes relative to SPERR: means of all methods, and `balanced` on each field."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    styles = {
        "ambar balanced": {"color": output.OURS, "linewidth": 2.5},
        "ambar small": {"color": output.OURS, "linewidth": 2.5, "linestyle": "--"},
        "SZ3": {"color": output.OTHERS, "linewidth": 1.5},
        "ZFP": {"color": output.OTHERS, "linewidth": 1.5, "linestyle": ":"},
    }
    for axes, is_set_aside in zip(panels, (False, True), strict=True):
        chosen = [field for field in fields if field.is_set_aside is is_set_aside]
        for one in chosen:
            ratios = 1 + one.change("ambar balanced", "SPERR")
            axes.plot(TARGETS, ratios, color=output.OURS, alpha=0.25, linewidth=0.8)
        for method, style in styles.items():
            ratios = np.array([1 + field.change(method, "SPERR") for field in chosen])
            if len(ratios):
                means = np.exp(np.nanmean(np.log(ratios), axis=0))
                axes.plot(TARGETS, means, label=method, **style)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_ylim(0.4, 2.5)
        axes.set_yscale("log", base=2)
        axes.set_title("fields set aside" if is_set_aside else "fields", loc="left", fontsize=10)
        axes.set_xlabel("PSNR, dB")
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("bytes relative to SPERR")
    panels[0].legend(fontsize=8)
    output.save(figure, target)


def main() -> None:
    """Measure all fields, and write Markdown, JSON and a chart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    cases = [case for path in options.paths for case in fields_of(path)]
    cases += synthetic()
    fields = []
    for name, values in cases:
        if values.size < MIN_VALUES or not np.ptp(values):
            continue
        print(name, flush=True)  # noqa: T201
        fields.append(measure(name, values))
    fields.sort(key=lambda field: field.name)
    record: dict[str, Any] = {
        "machine": machine(PACKAGES),
        "targets": list(TARGETS),
        "fields": [asdict(one) for one in fields],
    }
    charts = {"": lambda target: chart(fields, target)}
    output.write(options.output, record, markdown(fields, record["machine"]), charts, "rate")


if __name__ == "__main__":
    main()
