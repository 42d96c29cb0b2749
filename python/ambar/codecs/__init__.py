"""The codecs of ambar's own for other programs.

"ambar" makes streams of chunks of floats, within an error bound; "ambar.simplices" of the corners
of triangles and tetrahedra. `ambar.codecs.zarr_python` has both for zarr-python,
`ambar.codecs.numcodecs_api` the first for numcodecs; these find them under their names through
entry points: nothing needs to be imported.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ambar import _core
from ambar._util.arguments import lengths_of

if TYPE_CHECKING:
    from typing_extensions import Buffer

DTYPES = ("float32", "float64")
SIMPLICES = "ambar.simplices"
CORNERS = ("int32", "int64", "uint32", "uint64")
WIDTHS = (2, 3, 4)


def checked_bound(value: object) -> float | str:
    """Return an error bound of chunks: a number (absolute, 0: lossless), or a string.

    Raises
    ------
    ValueError
        For any other value, and for bounds that depend on the range of the whole array.
    """
    if isinstance(value, Real | str) and not isinstance(value, bool):
        bound = value if isinstance(value, str) else float(value)
        if not _core.bound_needs_range(bound):
            return _core.error_bound(bound)
        raise _core.InvalidError(
            f"error bound {value!r} depends on the value range of the whole array, but a codec "
            "sees single chunks: give a number, such as 1e-3 * (values.max() - values.min()), or a "
            'string such as "1e-3 relative" or "0.01 rms"'
        )
    raise _core.InvalidError(
        f"invalid error_bound of the codec ambar: {value!r:.80}; expected a number >= 0 "
        '(0: lossless) or a string such as "1e-3 relative"'
    )


def checked_dtype(dtype: npt.DTypeLike) -> str:
    """Return the name of a type of values that the codec knows, whatever its byte order.

    Raises
    ------
    ValueError
        For any other type.
    """
    dtype = np.dtype(dtype)
    name = dtype.newbyteorder("=").name
    if name not in DTYPES:
        raise _core.InvalidError(
            f"the codec ambar holds float32 and float64, not {dtype}: convert float16 to float32, "
            "view complex numbers as pairs of floats, or choose another codec"
        )
    return name


def encode(
    values: npt.ArrayLike,
    error_bound: float | str,
    *,
    fast: bool = False,
    is_padded: bool = False,
) -> bytes:
    """Encode an array with the codec ``ambar``.

    Parameters
    ----------
    values : array_like
        Values of float32 or float64, of any shape; they are encoded in C order.
    error_bound : float or str
        How far values may differ: a number (absolute; 0: lossless), or a string such as
        ``"1e-3 relative"``. NaN and infinities do not change.
    fast : bool, default False
        Whether speed, near that of memory, is more important than size.
    is_padded : bool, default False
        Whether values equal to the last one may be padding, which a bound of the root mean squared
        error does not count.

    Returns
    -------
    bytes
        The encoded stream.

    Raises
    ------
    TypeError
        If an option is not a bool.
    ValueError
        If the dtype or the error bound is invalid.

    Examples
    --------
    >>> import ambar.codecs
    >>> values = np.sin(np.linspace(0, 6, 10000))
    >>> stream = ambar.codecs.encode(values, 1e-3)
    >>> len(stream) < values.nbytes / 20
    True
    """
    for option, value in (("fast", fast), ("is_padded", is_padded)):
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{option}={value!r:.80}: expected True or False")
    array = np.asarray(values)
    name = checked_dtype(array.dtype)
    plain = np.ascontiguousarray(array, np.dtype(name))
    shaped = plain.reshape(_known_shape(array.shape))
    bound = checked_bound(error_bound)
    return _core.codec_encode(shaped, None, bound, fast=fast, is_padded=is_padded)


def decode(
    stream: Buffer, dtype: npt.DTypeLike, shape: int | tuple[int, ...]
) -> np.ndarray[Any, np.dtype[Any]]:
    """Decode a stream that `encode` returned.

    Parameters
    ----------
    stream : bytes-like
        The encoded stream.
    dtype : dtype_like
        The dtype of the values, float32 or float64.
    shape : int or tuple of int
        The shape of the values.

    Returns
    -------
    numpy.ndarray
        The values.

    Raises
    ------
    CorruptError
        If the stream is damaged, or its dtype or number of values differs.
    ValueError
        If the dtype or the shape is invalid.

    Examples
    --------
    >>> import ambar.codecs
    >>> stream = ambar.codecs.encode(np.arange(4.0), 0)
    >>> ambar.codecs.decode(stream, "f8", (2, 2))
    array([[0., 1.],
           [2., 3.]])
    """
    name = checked_dtype(dtype)
    lengths = lengths_of("decode", "shape", (shape,) if isinstance(shape, Integral) else shape)
    values = _core.codec_decode(stream, name, _known_shape(lengths))
    return values.reshape(lengths).astype(dtype, copy=False)


def checked_corners(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """Return the type of corners of cells, whatever its byte order.

    Raises
    ------
    ValueError
        If the values are not integers of 32 or 64 bits, or not rows of 2 to 4.
    """
    name = dtype.newbyteorder("=").name
    if name not in CORNERS or len(shape) != 2 or shape[1] not in WIDTHS:
        raise _core.InvalidError(
            f"the codec {SIMPLICES} holds rows of 2, 3 or 4 integers of 32 or 64 bits, not chunks "
            f"of {shape} of {dtype}: choose another codec"
        )
    return name


def encode_corners(corners: np.ndarray[Any, np.dtype[Any]]) -> bytes:
    """Return the stream of the corners of cells (cells, 2 to 4), integers of 32 or 64 bits."""
    name = checked_corners(corners.dtype, corners.shape)
    plain = np.ascontiguousarray(corners, np.dtype(name))
    return _core.encode_bare_array_with(SIMPLICES, plain, name, plain.shape)


def decode_corners(
    stream: Buffer, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the corners of cells of a stream that holds just these many, of this type.

    Raises
    ------
    CorruptError
        If the stream is damaged, or of other values.
    """
    name = checked_corners(dtype, shape)
    corners = np.empty(shape, name)
    _core.decode_bare_array(SIMPLICES, name, list(shape), stream, corners)
    return corners.astype(dtype, copy=False)


def _known_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (0,) if 0 in shape else shape or (1,)
