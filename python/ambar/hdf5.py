"""The codec as a filter of HDF5: importing this module lets h5py read and write with it.

For other programs, set the environment variable HDF5_PLUGIN_PATH to `PLUGIN_PATH`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ambar import _core
from ambar.store.error_bounds import resolved

__all__ = ["FILTER_ID", "PLUGIN_PATH", "filter", "is_available", "options"]

FILTER_ID = 43842
"""The number of the filter. It is provisional: from the range of unregistered filters of HDF5."""

PLUGIN_PATH = os.fspath(Path(__file__).with_name("plugins"))
"""The folder of the plugin, for HDF5_PLUGIN_PATH."""

_PLUGIN = Path(PLUGIN_PATH) / "libh5z_ambar.so"
# The version of the options, and their modes: see docs/format.md.
_VERSION = 1
_LOSSLESS, _ABSOLUTE, _RELATIVE, _FLOOR, _BITS, _RMS = range(6)


def is_available() -> bool:
    """Return whether this installation of ambar has the plugin.

    Returns
    -------
    bool

    Examples
    --------
    >>> import ambar.hdf5
    >>> ambar.hdf5.is_available()
    True
    """
    return _PLUGIN.is_file()


def options(
    error_bound: float | str | None = None, *, value_range: Sequence[float] | None = None
) -> tuple[int, ...]:
    """Return the filter's options, ``cd_values``: for h5repack, or for a library other than h5py.

    Parameters
    ----------
    error_bound : float or str, optional
        As for `filter`.
    value_range : (float, float), optional
        As for `filter`.

    Returns
    -------
    tuple of int
        Four numbers below 2**32: version, mode, and two that state the bound (docs/format.md).

    Raises
    ------
    ValueError
        If the bound is invalid.

    Examples
    --------
    >>> import ambar.hdf5
    >>> ambar.hdf5.options("12 bits")
    (1, 4, 12, 0)
    """
    if error_bound is None:
        return (_VERSION, _LOSSLESS, 0, 0)
    kind, numbers = _core.bound_parts(resolved(error_bound, value_range))
    if kind == "lossless":
        return (_VERSION, _LOSSLESS, 0, 0)
    if kind == "bits":
        return (_VERSION, _BITS, int(numbers[0]), 0)
    if kind == "relative" and numbers[1] > 0:
        # Two numbers, rounded down to float32: the bound is never looser.
        return (_VERSION, _FLOOR, *(_float32_bits(number) for number in numbers))
    mode = {"absolute": _ABSOLUTE, "relative": _RELATIVE, "rms": _RMS}[kind]
    return (_VERSION, mode, *struct.unpack("<II", struct.pack("<d", numbers[0])))


def _float32_bits(number: float) -> int:
    """Return the bits of a positive number, rounded down to float32."""
    single = np.float32(min(number, float(np.finfo(np.float32).max)))
    if float(single) > number:
        single = np.nextafter(single, np.float32(0))
    if single == 0:
        raise _core.InvalidError(
            f"{number!r} is too small for the HDF5 filter's relative bound with a floor: give a "
            "larger number, or a bound without a floor"
        )
    return int(single.view(np.uint32))


def filter(  # noqa: A001 - as h5py's users call it
    error_bound: float | str | None = None, *, value_range: Sequence[float] | None = None
) -> dict[str, Any]:
    """Return keyword arguments for h5py's ``create_dataset``.

    The error bound applies to values of float32 and float64, of either byte order; NaN and
    infinities do not change. Values of other types are stored without loss. Chunks of 2**15 values
    or more compress best, because each chunk is predicted from its own values. Leave out h5py's
    ``shuffle``.

    Parameters
    ----------
    error_bound : float or str, optional
        How far values may differ from the original: a number in the unit of the values, or a string
        such as ``"1e-3 relative"``, ``"1e-3 relative above 1e-10"`` or ``"12 bits"``; with
        `value_range` also ``"1e-3 of range"`` and ``"80 dB"``. Lossless by default.
    value_range : (float, float), optional
        The lowest and the highest of all values; HDF5 passes single chunks to a filter.

    Returns
    -------
    dict
        ``compression`` and ``compression_opts``.

    Raises
    ------
    ValueError
        If the bound is invalid.
    ImportError
        If this installation has no plugin; the message says how to get it.

    Examples
    --------
    >>> import h5py, ambar.hdf5
    >>> values = np.linspace(1, 2, 64**3).reshape(64, 64, 64)
    >>> bound = ambar.hdf5.filter("1e-3 relative")
    >>> with h5py.File("fields.h5", "w") as file:
    ...     density = file.create_dataset("density", data=values, chunks=(64, 64, 64), **bound)
    ...     bool((abs(density[:] - values) <= 1e-3 * values).all())
    True
    """
    _require()
    values = options(error_bound, value_range=value_range)
    return {"compression": FILTER_ID, "compression_opts": values}


def _require() -> None:
    if not is_available():
        raise ImportError(
            f"{_PLUGIN} does not exist: this installation of ambar has no plugin for HDF5; install "
            "a wheel for Linux, or run `make build` in the sources of ambar"
        )


def _register() -> None:
    """Add the folder of the plugin to the search path of h5py's HDF5, if both exist."""
    if not is_available():
        return
    try:
        from h5py import h5pl
    except ImportError:
        return
    folder = PLUGIN_PATH.encode()
    if folder not in [h5pl.get(number) for number in range(h5pl.size())]:
        h5pl.prepend(folder)


_register()
