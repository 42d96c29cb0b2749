"""Small images of values as HTML, for notebooks; matplotlib is not needed."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from ambar.figures.colors import DIVERGING, SEQUENTIAL, ColorScale, color_scale

MAX_BYTES = 4 << 20
"""The largest number of bytes of values that are decoded for a thumbnail."""
SIDE = 128
"""The longer side of a thumbnail, in pixels."""
# Colours at equal distances in the maps of matplotlib.
_ANCHORS = {
    SEQUENTIAL: "000004 1f0c48 550f6d 88226a ba3655 e35933 f98c0a f9c932 fcffa4",
    DIVERGING: "053061 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 67001f",
}


def thumbnail(values: np.ndarray, title: str) -> str:
    """Return an image of values as HTML; "" if there is nothing to show.

    Parameters
    ----------
    values
        Rows of pixels, from the lowest upwards. Of more than `SIDE` along a side, some are left
        out.
    title
        The text that describes the image.
    """
    if values.ndim != 2 or not np.isfinite(values).any():
        return ""
    step = -(-max(values.shape) // SIDE)
    values = values[::step, ::step]
    repeat = max(SIDE // max(values.shape), 1)
    pixels = colors_of(np.asarray(values, np.float64)[::-1], color_scale(values))
    encoded = base64.b64encode(png(pixels.repeat(repeat, 0).repeat(repeat, 1))).decode()
    text = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'<img alt="{text}" title="{text}" src="data:image/png;base64,{encoded}">'


def colors_of(values: np.ndarray, scale: ColorScale) -> np.ndarray:
    """Return the colours (rows, columns, 3) of values, grey without one."""
    anchors = np.array([list(bytes.fromhex(color)) for color in _ANCHORS[scale.colors].split()])
    places = scale.fractions(values)
    known = np.linspace(0, 1, len(anchors))
    channels = [np.interp(places, known, anchors[:, channel]) for channel in range(3)]
    colors = np.where(np.isfinite(places)[..., None], np.stack(channels, -1), 128.0)
    return colors.round().astype(np.uint8)


def png(pixels: np.ndarray) -> bytes:
    """Return the file of an image in PNG of colours (rows, columns, 3)."""
    height, width = pixels.shape[:2]
    lines = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        end = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + end

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 6)
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
