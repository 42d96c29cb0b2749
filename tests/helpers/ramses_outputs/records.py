"""Fortran's sequential records and quadruple precision, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from tests.helpers.ramses_outputs.spec import Array


def record(data: Array | Sequence[float] | bytes, dtype: str = "<i4") -> bytes:
    """Return `data` as a record: its length before and after it."""
    body = data if isinstance(data, bytes) else np.ascontiguousarray(data, dtype).tobytes()
    return struct.pack("<i", len(body)) + body + struct.pack("<i", len(body))


def binary128(value: int) -> bytes:
    """Return a whole number >= 0 as real*16."""
    if value == 0:
        return bytes(16)
    exponent = value.bit_length() - 1
    fraction = (value << 112 - exponent) - (1 << 112)
    return ((exponent + 16383) << 112 | fraction).to_bytes(16, "little")
