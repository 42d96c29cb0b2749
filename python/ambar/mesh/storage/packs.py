"""Packs: small arrays of a mesh, end to end and encoded together, beside its description."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ambar import _core
from ambar.mesh.storage.references import damaged

PACKED_BELOW = 8192
"""Bytes below which an array is in a pack: an array of its own takes 1.3 KB and 0.2 ms."""
NUMBERS = frozenset(
    ["bool", "float32", "float64", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))]
)
"""The dtypes of VTK's arrays, except strings."""
_NAMES = {np.dtype(name): name for name in NUMBERS}
DICTIONARY = (
    b'"user_dict":{"info":[["vtkCompositeDataSet","NAME","Block-00"]]},"levels":[{"blocks":[{"block":'
    b'"faces":{"cell_faces":{"storage":32,"sizes":{"by_size":[{"of_types":{"10":4,"lattice":[{"type":'
    b'"MultiBlockDataSet","type":"RectilinearGrid","x":{"at":"y":{"at":"z":{"at":"type":"ImageData",'
    b'"extent":[0,9,0,9,0,0],"origin":[0.0,0.0,0.0],"spacing":[1.0,1.0,1.0]"type":"StructuredGrid",'
    b'"type":"PolyData","verts":{"lines":{"strips":{"polygons":{"corners":{"at":[1,0,"type":'
    b'"UnstructuredGrid","points":{"at":[0,0,"cells":{"fixed":true,"corners":{"at":[1,0,"types":12,'
    b'"info":[["vtkDataArray","components":["X","Y","Z"],"type":"long long","type":"id type",'
    b'"pyvista":"bitarray","active":["Normals"],"active":["TCoords"],"active":["Vectors"],'
    b'"field_data":[{"name":"cell_data":[{"name":"point_data":[{"name":"active":["Scalars"],"at":[2,0,'
    b'"packed":[{"values":["dtype":"uint8","dtype":"int32","shape":[1000],"codecs":"ambar",'
    b'"dtype":"float64","shape":[100,3],"codecs":"transpose bytes blosc","bytes":100},{"dtype":'
    b'"int64","shape":[100,4],"codecs":"transpose delta bytes zstd","bytes":100},{"dtype":'
    b'"float32","shape":[100,3],"codecs":"transpose pcodec","bytes":1000}]}'
)
"""The preset dictionary for deflating descriptions: frequent text in them. Part of the format."""
_LARGEST_DESCRIPTION = 1 << 26
"""Bytes of the largest description; the parsed one takes about three times as much memory."""
_LARGEST_PACK = 1 << 28
"""Bytes of the largest decoded pack."""


def dtype_name(values: np.ndarray) -> str:
    """Return the name of a dtype; "string" or "bytes" for objects."""
    if values.dtype.kind != "O":
        return _NAMES[values.dtype]
    return "bytes" if any(isinstance(value, bytes) for value in values.flat) else "string"


def encode_pack(values: np.ndarray, *, predict: bool = False) -> tuple[dict[str, Any], bytes]:
    """Return the description of a pack of numbers, and its encoded bytes.

    `predict` allows the codecs for values on a grid.
    """
    dtype = dtype_name(values)
    codecs, encoded = _core.encode_bare_array(
        np.ascontiguousarray(values).reshape(-1), dtype, list(values.shape), predict
    )
    about = {"dtype": dtype, "shape": list(values.shape), "codecs": codecs, "bytes": len(encoded)}
    return about, encoded


def join_streams(text: str, streams: list[bytes]) -> bytes:
    """Return a deflated description, followed by the bytes of its packs."""
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15, zdict=DICTIONARY)
    return deflater.compress(text.encode()) + deflater.flush() + b"".join(streams)


def split_streams(data: bytes) -> dict[str, Any]:
    """Return the description of `join_streams`; each pack gets its bytes as the key `stream`.

    Raises ValueError if the data are damaged.
    """
    inflater = zlib.decompressobj(-15, zdict=DICTIONARY)
    try:
        text = inflater.decompress(data, _LARGEST_DESCRIPTION)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not inflater.eof:
        raise ValueError("it is cut short, or too long")
    description = json.loads(text)
    if not isinstance(description, dict):
        raise ValueError("it is not a JSON object")  # noqa: TRY004 - as for other damage
    rest = memoryview(inflater.unused_data)
    for pack in description.get("packed") or ():
        if isinstance(pack, dict) and "bytes" in pack:
            length = pack["bytes"]
            if type(length) is not int or not 0 <= length <= len(rest):
                raise ValueError(f"a pack has {length!r:.80} bytes, of {len(rest)}")
            pack["stream"], rest = bytes(rest[:length]), rest[length:]
    if rest:
        raise ValueError(f"{len(rest)} bytes are left after the last pack")
    return description


def decode_pack(pack: Mapping[str, Any], where: str) -> np.ndarray:
    """Return the values, (n,), of a pack in a description.

    Raises CorruptError if the pack is not of the format, or decodes to more than it may.
    """
    try:
        return _strings(pack["values"]) if "values" in pack else _decoded(pack)
    except (KeyError, TypeError, ValueError, _core.AmbarError) as error:
        what = f"a pack of small arrays in the description is damaged ({error})"
        raise damaged(where, what) from error


def _strings(items: list[Any]) -> np.ndarray:
    if not all(isinstance(item, str) for item in items):
        raise ValueError("expected strings")
    values = np.empty(len(items), dtype=object)
    values[:] = items
    return values


def _decoded(pack: Mapping[str, Any]) -> np.ndarray:
    name, shape = pack["dtype"], pack["shape"]
    if name not in NUMBERS:
        raise ValueError(f"dtype {name!r:.80}")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"a shape {shape!r:.80}")
    dtype = np.dtype(str(name))
    if math.prod(shape) * dtype.itemsize > _LARGEST_PACK:
        raise ValueError(f"{math.prod(shape)} values")
    # Decoded as bytes, because a damaged pack of bools can hold other values than 0 and 1.
    raw = np.empty(math.prod(shape) * dtype.itemsize, np.uint8)
    _core.decode_bare_array(str(pack["codecs"]), name, shape, pack["stream"], raw)
    if dtype.kind == "b" and raw.max(initial=0) > 1:
        raise ValueError("a bool is neither 0 nor 1")
    return raw.view(dtype)
