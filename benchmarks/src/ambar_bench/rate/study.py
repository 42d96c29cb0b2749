"""Bytes of single-level fields at equal PSNR and within equal bounds: ambar, SPERR, SZ3 and ZFP."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ambar
from ambar import _core
from ambar.store.error_bounds import resolved
from ambar_bench.amr.plotfile import read_plotfile
from ambar_bench.hdf5.study import turbulence
from ambar_bench.machine import machine

TARGETS = range(40, 111, 10)
"""The PSNRs at which bytes are compared, in dB."""
BOUNDS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
"""The bounds of all values at which bytes are compared, relative to the range of a field."""
PACKAGES = ("h5py", "hdf5plugin")
MIN_VALUES = 1 << 14
"""Fields of fewer values are left out."""
RAMSES_FIELDS = ("density", "pressure", "velocity_x")
Values = NDArray[Any]


@dataclass(frozen=True)
class Point:
    """What one run of a method on a field gives."""

    psnr: float
    """In dB; infinite if all values are equal."""
    bytes: int
    """Bytes of the encoded field."""
    encode_seconds: float
    """Seconds to encode, the choice of settings included."""
    decode_seconds: float
    """Seconds to decode."""


@dataclass
class Field:
    """The bytes of a field by method and PSNR, and the speeds of encoding and decoding.

    The mappings have a list for each method, with a number for each of `TARGETS`: NaN where the
    method does not reach the PSNR.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_set_aside: bool
    """Whether nothing was developed on this field: a third of all fields, chosen by name."""
    bytes: dict[str, list[float]] = field(default_factory=dict)
    """Bytes of the encoded field."""
    encode_speed: dict[str, list[float]] = field(default_factory=dict)
    """MB/s of encoding, by the bytes of the values."""
    decode_speed: dict[str, list[float]] = field(default_factory=dict)
    """MB/s of decoding, by the bytes of the values."""
    bounded_bytes: dict[str, list[int]] = field(default_factory=dict)
    """Bytes within each of `BOUNDS`, by method."""

    def bounded_change(self, method: str) -> NDArray[np.float64]:
        """Return the bytes relative to the smallest of the peers, less 1, within each bound."""
        peers = [self.bounded_bytes[peer] for peer in PEERS]
        ratios: NDArray[np.float64] = np.array(self.bounded_bytes[method]) / np.min(peers, axis=0)
        return ratios - 1

    def change(self, method: str, peer: str) -> NDArray[np.float64]:
        """Return the bytes of a method relative to a peer's, less 1, at each of `TARGETS`."""
        ratios: NDArray[np.float64] = np.array(self.bytes[method]) / np.array(self.bytes[peer])
        return ratios - 1


def ambar_point(values: Values, target: str, *, small: bool) -> Point:
    """Encode with ambar within a bound, as the profile `balanced` or `small` does."""
    start = time.perf_counter()
    bound = resolved(target, (float(values.min()), float(values.max())))
    plan = _core.codec_tune(values, None, bound, "small" if small else "balanced")
    stream = _core.codec_encode(values, None, bound, plan)
    encoded = time.perf_counter()
    decoded = _core.codec_decode(stream, str(values.dtype), values.shape)
    end = time.perf_counter()
    quality = psnr(values, decoded.reshape(values.shape))
    return Point(quality, len(stream), encoded - start, end - encoded)


def psnr_filter(name: str, values: Values, target: float) -> Any:
    """Return the filter of hdf5plugin for a target PSNR."""
    import hdf5plugin

    # SZ3's target PSNR is untested by hdf5plugin; it derives this absolute bound. ZFP has none, and
    # its errors are smaller than its tolerance.
    bound = math.sqrt(3) * float(np.ptp(values)) * 10 ** (-target / 20)
    return {
        "SPERR": partial(hdf5plugin.Sperr, peak_signal_to_noise_ratio=target),
        "SZ3": partial(hdf5plugin.SZ3, absolute=bound),
        "ZFP": partial(hdf5plugin.Zfp, accuracy=2 * bound),
    }[name]()


def bound_filter(name: str, bound: float) -> Any:
    """Return the filter of hdf5plugin with an absolute bound."""
    import hdf5plugin

    return {
        "SPERR": partial(hdf5plugin.Sperr, absolute=bound),
        "SZ3": partial(hdf5plugin.SZ3, absolute=bound),
        "ZFP": partial(hdf5plugin.Zfp, accuracy=bound),
    }[name]()


def hdf5_point(values: Values, options: Any, *, is_reversed: bool) -> Point:
    """Write one chunk with a filter."""
    import h5py

    # SPERR's filter takes the first dimension for the fastest one. It gets the same values with the
    # shape reversed.
    shape = values.shape[::-1] if is_reversed else values.shape
    # Without a cache, values are decoded when they are read.
    with h5py.File("memory", "w", driver="core", backing_store=False, rdcc_nbytes=0) as file:
        start = time.perf_counter()
        data = file.create_dataset("x", data=values.reshape(shape), chunks=shape, **options)
        file.flush()
        encoded = time.perf_counter()
        decoded = data[()]
        end = time.perf_counter()
        quality = psnr(values, decoded.reshape(values.shape))
        return Point(quality, data.id.get_storage_size(), encoded - start, end - encoded)


AMBAR_METHODS = {"ambar balanced": False, "ambar small": True}
"""Our profiles, and whether they favour size."""
PEERS = ("SPERR", "SZ3", "ZFP")
METHODS = (*AMBAR_METHODS, *PEERS)


def encode_at_psnr(method: str, values: Values, target: float) -> Point:
    """Encode for a target PSNR."""
    if method in AMBAR_METHODS:
        return ambar_point(values, f"{target} dB", small=AMBAR_METHODS[method])
    options = psnr_filter(method, values, target)
    return hdf5_point(values, options, is_reversed=method == "SPERR")


def encode_within(method: str, values: Values, relative: float) -> Point:
    """Encode within a bound of all values, relative to their range."""
    if method in AMBAR_METHODS:
        return ambar_point(values, f"{relative} of range", small=AMBAR_METHODS[method])
    options = bound_filter(method, relative * float(np.ptp(values)))
    return hdf5_point(values, options, is_reversed=method == "SPERR")


def psnr(original: Values, decoded: Values) -> float:
    """Return the PSNR in dB; infinity if all values are the same."""
    original = original.astype(np.float64)
    error = float(np.sqrt(np.mean((decoded - original) ** 2)))
    return 20 * math.log10(float(np.ptp(original)) / error) if error else math.inf


def at_targets(points: Sequence[Point], attribute: str) -> list[float]:
    """Interpolate the logarithm of an attribute of points at each of `TARGETS`.

    NaN outside of the finite PSNRs of the points.
    """
    finite = [point for point in points if math.isfinite(point.psnr)]
    finite.sort(key=lambda point: point.psnr)
    if not finite:
        return [math.nan] * len(TARGETS)
    decibels = [point.psnr for point in finite]
    logs = np.log([getattr(point, attribute) for point in finite])
    found = np.interp(TARGETS, decibels, logs, left=math.nan, right=math.nan)
    return [float(value) for value in np.exp(found)]


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
    for method in METHODS:
        points = [encode_at_psnr(method, values, target) for target in range(4, 122, 6)]
        megabytes = values.nbytes / 1e6
        found.bytes[method] = at_targets(points, "bytes")
        encode_seconds = at_targets(points, "encode_seconds")
        decode_seconds = at_targets(points, "decode_seconds")
        found.encode_speed[method] = [megabytes / seconds for seconds in encode_seconds]
        found.decode_speed[method] = [megabytes / seconds for seconds in decode_seconds]
        found.bounded_bytes[method] = [
            encode_within(method, values, bound).bytes for bound in BOUNDS
        ]
    return found


@dataclass
class Study:
    """The bytes of all fields."""

    machine: dict[str, str]
    fields: list[Field] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "machine": self.machine,
            "targets": list(TARGETS),
            "bounds": list(BOUNDS),
            "fields": [asdict(one) for one in self.fields],
        }


def run_study(
    paths: Sequence[Path],
    *,
    with_synthetic: bool = True,
    report: Callable[[str], None] = lambda _: None,
) -> Study:
    """Measure the fields of files, and synthetic ones. Constant and small fields are left out."""
    cases = chain.from_iterable(map(fields_of, paths))
    study = Study(machine(PACKAGES))
    for name, values in chain(cases, synthetic() if with_synthetic else ()):
        if values.size < MIN_VALUES or not np.ptp(values):
            continue
        report(name)
        study.fields.append(measure(name, values))
    if not study.fields:
        raise ambar.InvalidError(
            f"expected a field of at least {MIN_VALUES:,} values that are not all equal, found none"
        )
    study.fields.sort(key=lambda one: one.name)
    return study
