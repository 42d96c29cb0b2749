"""The codec for numcodecs, and so for Zarr v2, kerchunk and others: id "ambar"."""

from __future__ import annotations

from typing import Any, ClassVar

from numcodecs.abc import Codec
from numcodecs.compat import ensure_bytes, ensure_ndarray, ndarray_copy

from ambar import _core
from ambar.codecs import checked_bound, encode


class AmbarCodec(Codec):  # type: ignore[misc] # numcodecs has no types
    """The codec ``ambar`` of numcodecs: buffers of float32 or float64, within an error bound.

    Parameters
    ----------
    error_bound : float or str
        A number (absolute; 0: lossless), or a string such as "1e-3 relative", "12 bits" or
        "1e-3 relative above 1e-10". NaN and infinities do not change.

    Examples
    --------
    >>> import numcodecs
    >>> codec = numcodecs.get_codec({"id": "ambar", "error_bound": 0})
    >>> codec.decode(codec.encode(np.arange(3.0)))
    array([0., 1., 2.])
    """

    codec_id: ClassVar = "ambar"

    def __init__(self, error_bound: float | str) -> None:
        self.error_bound = checked_bound(error_bound)

    def encode(self, buf: Any) -> bytes:
        """Return the encoded stream of an array, in the order of its memory."""
        values = ensure_ndarray(buf)
        if values.flags.f_contiguous and not values.flags.c_contiguous:
            values = values.T
        if values.dtype.newbyteorder("=") != values.dtype:
            raise _core.InvalidError(
                f"the codec ambar needs values in this machine's byte order, not {values.dtype}"
            )
        return encode(values, self.error_bound, is_padded=True)

    def decode(self, buf: Any, out: Any = None) -> Any:
        """Return the values of a stream as a 1-D array, or decode them into `out`."""
        stream = ensure_bytes(buf)
        info = _core.codec_inspect(stream)
        values = _core.codec_decode(stream, info.dtype, (info.values,))
        return values if out is None else ndarray_copy(values, out)
