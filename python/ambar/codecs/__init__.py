"""The codec of ambar's own for other programs: chunks as streams within an error bound.

`ambar.codecs.zarr_python` has it for zarr-python, `ambar.codecs.numcodecs_api` for numcodecs; both
find it under the name "ambar" through entry points: nothing needs to be imported.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core

if TYPE_CHECKING:
    from typing_extensions import Buffer

DTYPES = ("float32", "float64")
MOST_DIMENSIONS = 4
"""Dimensions that the codec knows; of more, the first are taken as one."""


def checked_bound(value: object) -> float:
    """Return an error bound: absolute, finite, from 0 on, where 0 is lossless.

    Raises
    ------
    InvalidError
        For any other value.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        bound = float(value)
        if math.isfinite(bound) and bound >= 0:
            return bound
    raise _core.InvalidError(
        f"the codec ambar needs error_bound, a finite number from 0 on (0: lossless), not {value!r}"
    )


def checked_dtype(dtype: np.dtype[Any]) -> str:
    """Return the name of a type of values that the codec knows, whatever its byte order.

    Raises
    ------
    InvalidError
        For any other type.
    """
    name = dtype.newbyteorder("=").name
    if name not in DTYPES:
        raise _core.InvalidError(
            f"the codec ambar holds float32 and float64, not {dtype}: choose another codec"
        )
    return name


def encode(values: np.ndarray[Any, np.dtype[Any]], error_bound: float) -> bytes:
    """Return the stream of an array of any shape, float32 or float64, in C order."""
    name = checked_dtype(values.dtype)
    plain = np.ascontiguousarray(values, np.dtype(name))
    return _core.codec_encode(plain.reshape(_known_shape(values.shape)), None, error_bound)


def decode(
    stream: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the array of a stream that holds just this many values of this type.

    Raises
    ------
    CorruptError
        If the stream is damaged, or of other values.
    """
    name = checked_dtype(dtype)
    values = _core.codec_decode(stream, name, _known_shape(shape))
    return values.reshape(shape).astype(dtype, copy=False)


def _known_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    if 0 in shape:
        return (0,)
    if len(shape) <= MOST_DIMENSIONS:
        return shape or (1,)
    split = len(shape) - MOST_DIMENSIONS + 1
    return (math.prod(shape[:split]), *shape[split:])
