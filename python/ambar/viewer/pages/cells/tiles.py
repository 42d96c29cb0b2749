"""Tiles of planes: read once, kept up to a number of bytes, and put together to images.

An image is first made of the tiles in memory, with coarser ones in place of those that are missing.
These are then read, a batch at a time, those in the middle first.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

import numpy as np

from ambar import _core
from ambar.viewer.pages.cells.plane import Pixels, Plane, Resolution

SIDE = 128
"""Pixels along a side of a tile."""
_BATCH_SECONDS = 0.06
"""The time that reading a batch should take: after it, the image is shown again."""
_PREVIEW_SECONDS = 0.03
"""The shortest reading before which a preview is shown."""
_FIRST_GUESS = {"slice": 0.004, "grid": 0.004, "project": 1.0}
"""Seconds that a tile takes, before any was read."""
_ERROR_BYTES = 1000
"""The bytes that an error counts in the cache."""

Tile: TypeAlias = tuple[int, int]
"""Column and row of a tile."""


class TileCache:
    """The tiles that were read last, of all pages: arrays, or the errors of damaged ones."""

    def __init__(self, max_bytes: int = 256 << 20) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._tiles: OrderedDict[object, np.ndarray | Exception] = OrderedDict()
        self._lock = Lock()

    @property
    def nbytes(self) -> int:
        """The bytes of all tiles."""
        return self._bytes

    def get(self, key: object) -> np.ndarray | Exception | None:
        """Return a tile, or None."""
        with self._lock:
            if key in self._tiles:
                self._tiles.move_to_end(key)
            return self._tiles.get(key)

    def put(self, key: object, tile: np.ndarray | Exception) -> None:
        """Keep a tile, and release the ones that were used least recently."""
        with self._lock:
            self._bytes += _size(tile) - _size(self._tiles.get(key))
            self._tiles[key] = tile
            self._tiles.move_to_end(key)
            while self._bytes > self._max_bytes:
                self._bytes -= _size(self._tiles.popitem(last=False)[1])


def _size(tile: np.ndarray | Exception | None) -> int:
    if isinstance(tile, np.ndarray):
        return tile.nbytes
    return 0 if tile is None else _ERROR_BYTES


TILES = TileCache()
"""The tiles of this process."""


@dataclass(frozen=True)
class Image:
    """The values of a rectangle of pixels of a plane; NaN where there are none yet."""

    plane: Plane
    resolution: Resolution
    pixels: Pixels
    values: np.ndarray = field(repr=False)
    is_complete: bool
    errors: tuple[Exception, ...] = ()

    @property
    def corner(self) -> tuple[float, float]:
        """The lower left corner, code length."""
        (x, y), (width, height) = self.plane.lower, self.resolution.pixel
        return x + self.pixels.left * width, y + self.pixels.bottom * height

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, code length."""
        rows, columns = self.values.shape
        return columns * self.resolution.pixel[0], rows * self.resolution.pixel[1]


class TileReader:
    """Makes images of planes from tiles, and reads the missing ones."""

    def __init__(self, cache: TileCache = TILES) -> None:
        self._cache = cache
        self._seconds_per_tile: dict[object, float] = {}  # by planes, at each resolution

    def images(self, plane: Plane, resolution: Resolution, pixels: Pixels) -> Iterator[Image]:
        """Yield an image with ever more of its tiles; the last one has all."""
        image, missing = self._assemble(plane, resolution, pixels)
        key = plane.key(resolution)
        seconds = self._seconds_per_tile.get(key, _FIRST_GUESS[plane.method])
        if len(missing) * seconds >= _PREVIEW_SECONDS and np.isfinite(image.values).any():
            yield image
        while missing:
            start = time.perf_counter()
            batch = _batch(missing, _BATCH_SECONDS / seconds)
            self._read(plane, resolution, batch)
            seconds = (time.perf_counter() - start) / len(batch)
            self._seconds_per_tile[key] = seconds
            image, missing = self._assemble(plane, resolution, pixels)
            if missing:
                yield image
        yield image

    def _assemble(
        self, plane: Plane, resolution: Resolution, pixels: Pixels
    ) -> tuple[Image, list[Tile]]:
        key, coarser = plane.key(resolution), _coarser(plane, resolution)
        found: list[tuple[Tile, np.ndarray]] = []
        missing, errors = [], []
        for tile in _tiles_of(pixels):
            part = self._cache.get((key, tile))
            if part is None:
                missing.append(tile)
                part = self._enlarged(plane, tile, coarser)
            if isinstance(part, np.ndarray):
                found.append((tile, part))
            elif part is not None:
                errors.append(part)
        dtype = np.result_type(np.float32, *(part.dtype for _, part in found))
        values = np.full(pixels.shape, np.nan, dtype)
        for tile, part in found:
            _paste(values, pixels, tile, part)
        unique = {str(error): error for error in errors}
        image = Image(plane, resolution, pixels, values, not missing, tuple(unique.values()))
        return image, missing

    def _enlarged(
        self, plane: Plane, tile: Tile, coarser: list[tuple[Resolution, int]]
    ) -> np.ndarray | None:
        """Return a part of a tile of a coarser resolution in place of a missing tile."""
        for resolution, ratio in coarser:
            part = self._cache.get((plane.key(resolution), (tile[0] // ratio, tile[1] // ratio)))
            if isinstance(part, np.ndarray):
                side = SIDE // ratio
                column, row = tile[0] % ratio * side, tile[1] % ratio * side
                part = part[row : row + side, column : column + side]
                return part.repeat(ratio, axis=0).repeat(ratio, axis=1)
        return None

    def _read(self, plane: Plane, resolution: Resolution, tiles: list[Tile]) -> None:
        """Read the tiles of a rectangle; of a damaged one, each tile by itself."""
        columns, rows = zip(*tiles, strict=True)
        first = _pixels_of(resolution, (min(columns), min(rows)))
        last = _pixels_of(resolution, (max(columns), max(rows)))
        pixels = Pixels(first.left, last.right, first.bottom, last.top)
        key = plane.key(resolution)
        try:
            values = plane.read(resolution, pixels)
        except _core.CorruptError as error:
            if len(tiles) == 1:
                # Another exception, because the traceback of this one keeps arrays.
                self._cache.put((key, tiles[0]), _core.CorruptError(str(error)))
                return
            for tile in tiles:
                self._read(plane, resolution, [tile])
            return
        for column in range(min(columns), max(columns) + 1):
            for row in range(min(rows), max(rows) + 1):
                part = _pixels_of(resolution, (column, row))
                found = values[
                    part.bottom - pixels.bottom : part.top - pixels.bottom,
                    part.left - pixels.left : part.right - pixels.left,
                ]
                self._cache.put((key, (column, row)), found.copy())


def _tiles_of(pixels: Pixels) -> list[Tile]:
    """Return the tiles that a rectangle overlaps, those in its middle first."""
    rows, columns = pixels.shape
    if not rows or not columns:
        return []
    middle = (pixels.left + columns / 2) / SIDE - 0.5, (pixels.bottom + rows / 2) / SIDE - 0.5
    tiles = [
        (column, row)
        for column in range(pixels.left // SIDE, (pixels.right - 1) // SIDE + 1)
        for row in range(pixels.bottom // SIDE, (pixels.top - 1) // SIDE + 1)
    ]
    return sorted(tiles, key=lambda tile: max(abs(tile[0] - middle[0]), abs(tile[1] - middle[1])))


def _batch(tiles: list[Tile], largest: float) -> list[Tile]:
    """Return the tiles in a square around the first one, of about `largest` tiles."""
    side = max(math.isqrt(int(largest)), 1)
    left, bottom = (place - side // 2 for place in tiles[0])
    return [
        tile
        for tile in tiles
        if left <= tile[0] < left + side and bottom <= tile[1] < bottom + side
    ]


def _coarser(plane: Plane, resolution: Resolution) -> list[tuple[Resolution, int]]:
    """Return the coarser resolutions, and the ratios of their pixels, which are powers of two."""
    found = []
    for other in plane.resolutions:
        ratio = round(other.pixel[0] / resolution.pixel[0])
        if 1 < ratio <= SIDE and SIDE % ratio == 0:
            found.append((other, ratio))
    return found


def _pixels_of(resolution: Resolution, tile: Tile) -> Pixels:
    columns, rows = resolution.shape
    left, bottom = tile[0] * SIDE, tile[1] * SIDE
    return Pixels(left, min(left + SIDE, columns), bottom, min(bottom + SIDE, rows))


def _paste(values: np.ndarray, pixels: Pixels, tile: Tile, part: np.ndarray) -> None:
    """Copy the overlap of a tile and an image into the image."""
    left, bottom = tile[0] * SIDE - pixels.left, tile[1] * SIDE - pixels.bottom
    rows, columns = part.shape
    target = values[max(bottom, 0) : bottom + rows, max(left, 0) : left + columns]
    part = part[max(-bottom, 0) :, max(-left, 0) :]
    target[:] = part[: target.shape[0], : target.shape[1]]
