"""What the screen shows of a plane: its window, and the resolution and the pixels that it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ambar.viewer.pages.cells.plane import Pixels, Plane, Resolution
from ambar.viewer.pages.cells.tiles import Image

_MARGIN = 0.12
"""The part of a window that is read beyond each edge: short moves need no new image."""
_MAX_PIXELS = 4_000_000
"""The largest image: that of a display of 1000 x 1000 has about half of it."""
_SIDE_OF_CELLS = 0.8
"""The smallest side of a cell on the screen, in pixels of the screen; less than twice as much."""


@dataclass(frozen=True)
class View:
    """The window of a figure, code length, and its size in pixels of the screen."""

    left: float
    right: float
    bottom: float
    top: float
    columns: float
    rows: float

    def resolution(self, plane: Plane) -> Resolution:
        """Return the coarsest resolution whose pixels the screen still shows, or the finest one."""
        width, height = self.right - self.left, self.top - self.bottom
        screen = max(width / self.columns, height / self.rows)
        smallest = max(screen * _SIDE_OF_CELLS, math.sqrt(width * height / _MAX_PIXELS))
        for resolution in plane.resolutions:
            if max(resolution.pixel) >= smallest:
                return resolution
        return plane.resolutions[-1]

    def pixels(self, plane: Plane, resolution: Resolution, margin: float = _MARGIN) -> Pixels:
        """Return the pixels of a plane in the window and in a margin around it."""
        ranges = []
        sides = ((self.left, self.right), (self.bottom, self.top))
        for number, (start, end) in enumerate(sides):
            low, side = plane.lower[number], resolution.pixel[number]
            more = margin * (end - start)
            first = max(math.floor((start - more - low) / side), 0)
            after = min(math.ceil((end + more - low) / side), resolution.shape[number])
            ranges += [first, max(after, first)]
        return Pixels(*ranges)

    def zoomed(self, factor: float) -> View:
        """Return the window around the same middle whose sides are `factor` times as long."""
        x, y = (self.left + self.right) / 2, (self.bottom + self.top) / 2
        width, height = (
            factor * (end - start) / 2
            for start, end in ((self.left, self.right), (self.bottom, self.top))
        )
        return replace(self, left=x - width, right=x + width, bottom=y - height, top=y + height)

    def is_in(self, image: Image) -> bool:
        """Return whether an image shows the whole window at the right resolution."""
        resolution = self.resolution(image.plane)
        inner, outer = self.pixels(image.plane, resolution, 0), image.pixels
        return (
            image.is_complete
            and resolution == image.resolution
            and outer.left <= inner.left
            and outer.right >= inner.right
            and outer.bottom <= inner.bottom
            and outer.top >= inner.top
        )
