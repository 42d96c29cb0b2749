"""The codec as a filter of HDF5: importing this module lets h5py read and write with it.

Other programs find the plugin by the environment variable HDF5_PLUGIN_PATH, set to `PLUGIN_PATH`.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ambar import _core
from ambar.bounds import as_text

__all__ = ["FILTER_ID", "PLUGIN_PATH", "absolute_bound", "filter", "is_available", "options"]

FILTER_ID = 43842
"""The filter's number. It is provisional: from the range that HDF5 leaves to unregistered ones."""

PLUGIN_PATH = os.fspath(Path(__file__).with_name("plugins"))
"""The folder of the plugin, for HDF5_PLUGIN_PATH."""

_PLUGIN = Path(PLUGIN_PATH) / "libh5z_ambar.so"
# The layout of the options, and the ways to say a bound: see docs/format.md.
_VERSION, _LOSSLESS, _ABSOLUTE = 1, 0, 1


def is_available() -> bool:
    """Return whether this installation of ambar has the plugin."""
    return _PLUGIN.is_file()


def options(
    error_bound: float | str | None = None,
    *,
    value_range: Sequence[float] | None = None,
) -> tuple[int, ...]:
    """Return the filter's options, ``cd_values``: for h5repack, or for a library other than h5py.

    Parameters
    ----------
    error_bound, value_range
        As for `filter`.

    Returns
    -------
    tuple of int
        Four numbers below 2**32: version, mode, and the lower and upper half of the bound.

    Raises
    ------
    InvalidError
        If the bound is none.
    """
    if error_bound is None:
        return (_VERSION, _LOSSLESS, 0, 0)
    bound = absolute_bound(error_bound, value_range)
    if bound == 0.0:
        return (_VERSION, _LOSSLESS, 0, 0)
    return (_VERSION, _ABSOLUTE, *struct.unpack("<II", struct.pack("<d", bound)))


def filter(  # noqa: A001 - as h5py's users call it
    error_bound: float | str | None = None,
    *,
    value_range: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Return keyword arguments for h5py's ``create_dataset``.

    ``file.create_dataset("density", data=values, chunks=(64, 64, 64), **filter("1e-3"))``. Values
    of float32 and float64, of either byte order, are kept within the bound, NaN and infinities to
    the bit; of every other type without loss. The chunks should hold 2**15 values or more: a chunk
    is predicted from its own values alone. h5py's ``shuffle`` must be left out.

    Parameters
    ----------
    error_bound
        How far values may be off: a number or its text, in the values' own unit; or a part of
        `value_range`, such as ``"1e-3 of range"``. 0 or None: not at all.
    value_range
        ``(lowest, highest)`` of the values, which HDF5 hands to a filter chunk by chunk.

    Returns
    -------
    dict
        ``compression`` and ``compression_opts``.

    Raises
    ------
    InvalidError
        If the bound is none.
    NotFoundError
        If this installation has no plugin; the message says how to get it.
    """
    _require()
    given = options(error_bound, value_range=value_range)
    return {"compression": FILTER_ID, "compression_opts": given}


def absolute_bound(error_bound: float | str, value_range: Sequence[float] | None = None) -> float:
    """Return a bound in the values' own unit; 0, which is lossless, for 0 and an empty range.

    Raises InvalidError for what is no bound, and for a part of a range that is not given.
    """
    text = as_text(error_bound)
    number, relative = re.subn(r"of range\s*$", "", text)
    try:
        bound = float(number)
    except ValueError:
        bound = -1.0
    if not 0.0 <= bound < float("inf"):
        raise _core.InvalidError(
            f"{text!r} is no error bound: give a number from 0 on, or a part of the value range "
            'such as "1e-3 of range"'
        )
    if not relative:
        return bound
    if value_range is None:
        raise _core.InvalidError(
            f"{text!r} is a part of a range, but a filter sees no more than a chunk: give "
            "value_range=(lowest, highest)"
        )
    low, high = (float(value) for value in value_range)
    # Halves, for a range can be larger than the largest number.
    found = 2.0 * bound * (high / 2.0 - low / 2.0)
    return min(found, sys.float_info.max) if found > 0.0 else 0.0


def _require() -> None:
    if not is_available():
        raise _core.NotFoundError(
            f"{_PLUGIN}: no such file: this installation of ambar has no plugin for HDF5; install "
            "a wheel for Linux, or run `make build` in ambar's sources, which makes it"
        )


def _register() -> None:
    """Tell h5py's HDF5 where the plugin is, if there are both."""
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
