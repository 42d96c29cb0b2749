"""A reader of ambar's stores, written from docs/format.md alone: it shows that the page is enough.

It needs NumPy, numcodecs and pcodec, and knows neither ambar nor zarr. Chapter 1 of the page is in
independent_container.py, chunks are in independent_arrays.py; here are the hierarchy and the kind
`amr`. Hierarchies of other programs, whose root has no checksum, are errors.
"""

from __future__ import annotations

import json
import math
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from independent_arrays import Layout
from independent_container import Directory, StoreError, Zip, check_key, crc32c, need, rejecting

GROUP = {"zarr_format", "node_type", "attributes"}
REQUIRED = {"shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs"}
ARRAY = GROUP | REQUIRED | {"dimension_names", "storage_transformers"}
KEY_BITS = 42  # of each coordinate, at most (4.4)


def parse_json(text: bytes) -> Any:
    """Parse JSON, without what Python's parser takes beyond it."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        need(len(dict(pairs)) == len(pairs), "an object of JSON has a key twice")
        return dict(pairs)

    def refuse(name: str) -> None:
        raise StoreError(f"{name} is no JSON")

    return json.loads(text.decode(), object_pairs_hook=unique, parse_constant=refuse)


def parse_root(text: bytes) -> dict[str, Any]:
    """Parse the root's document and verify its checksum (2.4)."""
    document: dict[str, Any] = parse_json(text)
    ambar = document["attributes"]["ambar"]
    need(re.fullmatch("crc32c:[0-9a-f]{8}", ambar["checksum"]), "the root has no checksum")
    for match in re.finditer(ambar["checksum"].encode(), text):
        blank = text[: match.end() - 8] + b"00000000" + text[match.end() :]
        if parse_json(blank)["attributes"]["ambar"]["checksum"] == "crc32c:00000000":
            need(ambar["checksum"] == f"crc32c:{crc32c(blank):08x}", "checksum of the root")
            break
    else:
        raise StoreError("the root's checksum is not written as it must be")
    need(ambar["version"] == 1, f"the store has version {ambar['version']}")
    return document


def check_node(path: str, nodes: dict[str, Any]) -> None:
    """Refuse a document that lacks what the standard asks for, or has what the page does not."""
    node = nodes[path]
    array = node["node_type"] == "array"
    need(node["zarr_format"] == 3 and (array or node["node_type"] == "group"), f"node {path}")
    need(isinstance(node.get("attributes", {}), dict), f"attributes of {path}")
    need(not array or set(node) >= REQUIRED, f"{path} lacks fields")
    for field in set(node) - (ARRAY if array else GROUP):
        ignored = isinstance(node[field], dict) and node[field].get("must_understand") is False
        need(ignored, f"{path} has the field {field}")
    if path:
        check_key(f"{path}/zarr.json")
        names = path.split("/")
        need("zarr.json" not in names and names[0].lower() != "ambar", f"a node called {path}")
        parent = nodes.get(path.rpartition("/")[0], {})
        need(parent.get("node_type") == "group", f"{path} is in no group")


class Cells(NamedTuple):
    """The leaf cells of a tree: places are in lattice units, centres and widths in code length."""

    level: np.ndarray
    corner: np.ndarray
    size: np.ndarray
    centre: np.ndarray
    width: np.ndarray


class Store:
    """The last commit of a store."""

    @rejecting
    def __init__(self, path: str | os.PathLike[str]) -> None:
        path = Path(path)
        self._container = Directory(path) if path.is_dir() else Zip(path)
        root = parse_root(self._container.read("zarr.json"))
        del root["attributes"]["ambar"]["checksum"]  # says nothing of the group
        inline = root.pop("consolidated_metadata")
        need(inline["kind"] == "inline" and inline["must_understand"] is False, "the root")
        self.nodes: dict[str, dict[str, Any]] = {"": root} | inline["metadata"]
        need(self.nodes[""] is root, "two documents of the root")
        for node in self.nodes:
            check_node(node, self.nodes)

    @property
    def commit(self) -> int:
        """The number of the commit; 0 if the container has none."""
        return self._container.number

    @rejecting
    def attributes(self, path: str) -> dict[str, Any]:
        """Return the attributes of a node; the root's path is empty."""
        attributes: dict[str, Any] = self.nodes[path].get("attributes", {})
        return attributes

    def arrays(self) -> list[str]:
        """Return the paths of all arrays."""
        return [path for path, node in self.nodes.items() if node["node_type"] == "array"]

    @rejecting
    def array(self, path: str) -> np.ndarray:
        """Return the values of an array."""
        layout = self._layout(path)
        grid = [-(-a // b) for a, b in zip(layout.shape, layout.entry, strict=True)]
        need(math.prod(grid) <= len(self._container.entries), f"entries of {path} are missing")
        values = np.empty(layout.shape, layout.dtype)
        for place in np.ndindex(*grid):
            data = self._container.read("/".join([path, "c", *map(str, place)]))
            corner = [p * c for p, c in zip(place, layout.entry, strict=True)]
            part = tuple(slice(a, a + c) for a, c in zip(corner, layout.entry, strict=True))
            inside = tuple(slice(0, n - a) for a, n in zip(corner, layout.shape, strict=True))
            values[part] = layout.decode(data)[inside]
        return values

    def _layout(self, path: str) -> Layout:
        need(self.nodes[path]["node_type"] == "array", f"{path} is no array")
        return Layout.of(self.nodes[path])

    @rejecting
    def cells(self, path: str) -> Cells:
        """Rebuild the leaf cells of a group of the kind `amr` (4.4)."""
        about = self.attributes(path)["ambar"]
        need((about["version"], about["kind"]) == (1, "amr"), f"{path} is no amr of version 1")
        need(about["layout"] == "tree", f"layout {about['layout']}")
        ndim, finest = about["ndim"], about["lattice_level"]
        box = np.array(about["root"], object) * 2**finest
        need(box.shape == (ndim,) and 1 <= ndim <= 3, "dimensions")
        need(min(about["root"]) >= 1 and max(box) <= 2**KEY_BITS, "the lattice is too large")
        level = self.array(f"{path}/level")
        starts = self._check_columns(path, about, len(level))
        jumps = self._jumps(path, len(level), box)
        need(level.max(initial=0) <= finest, "a level above the finest")
        keys = walk(level.tolist(), finest, ndim, jumps)
        corner = points(keys, ndim)
        size = np.left_shift(1, finest - level.astype(np.int64))
        need(np.all(corner % size[:, None] == 0), "a cell lies off its lattice")
        need(np.all(corner + size[:, None] <= box.astype(np.int64)), "a cell lies out of the box")
        known = self.array(f"{path}/index/corner")
        need(np.array_equal(corner[starts], known), "the index has other corners")
        unit = about["boxlen"] / about["root"][0] * 2.0**-finest
        return Cells(level, corner, size, (2 * corner + size[:, None]) * (unit / 2), size * unit)

    def _check_columns(self, path: str, about: dict[str, Any], rows: int) -> slice:
        """Check columns and index to be of the lengths they must; return the chunks' first rows."""
        ndim, layouts = about["ndim"], [self._layout(f"{path}/{n}") for n in about["fields"]]
        first = self._layout(f"{path}/level")
        need(first.dtype == np.uint8 and rows == about["cells"], "levels of the cells")
        for layout in layouts:
            need((layout.shape, layout.chunk) == ((rows,), first.chunk), "columns differ in length")
        chunks = -(-rows // first.chunk[0])
        expected: dict[str, tuple[str, tuple[int, ...]]] = {
            "corner": ("int64", (chunks, ndim)),
            "box": ("float64", (chunks, 2, ndim)),
            "level": ("uint8", (chunks, 2)),
            "range": ("float64", (len(layouts), chunks, 2)),
        }
        for name, (dtype, shape) in expected.items():
            if name != "range" or f"{path}/index/range" in self.nodes:
                index = self._layout(f"{path}/index/{name}")
                need((index.dtype, index.shape) == (np.dtype(dtype), shape), f"index/{name}")
        return slice(None, None, first.chunk[0])

    def _jumps(self, path: str, rows: int, box: np.ndarray) -> dict[int, int]:
        """Return the keys at which the walk goes on, by row."""
        names = [f"{path}/index/jump_row", f"{path}/index/jump_corner"]
        if not any(name in self.nodes for name in names):
            return {}
        row, corner = map(self.array, names)
        need(row.dtype == np.uint64 and corner.dtype == np.int64, "types of jumps")
        need(row.ndim == 1 and corner.shape == (len(row), len(box)), "shapes of jumps")
        need(np.all(corner >= 0) and np.all(corner < box.astype(np.int64)), "jumps out of the box")
        jumps = dict(zip(row.tolist(), map(morton, corner.tolist()), strict=True))
        need(all(a < b for a, b in pairwise([*row.tolist(), rows])), "rows of jumps")
        need(all(a < b for a, b in pairwise(jumps.values())), "keys of jumps")
        return jumps


def walk(levels: list[int], finest: int, ndim: int, jumps: dict[int, int]) -> list[int]:
    """Return the keys of the cells' corners."""
    keys, key = [], 0
    for row, level in enumerate(levels):
        need(jumps.get(row, key) >= key, "a jump goes back")
        key = jumps.get(row, key)
        keys.append(key)
        key += 1 << ndim * (finest - level)
    need(key <= 1 << ndim * KEY_BITS, "the walk leaves the curve")
    return keys


def morton(point: list[int]) -> int:
    """Return the key of a point."""
    bits = range(KEY_BITS * len(point))
    return sum((point[bit % len(point)] >> bit // len(point) & 1) << bit for bit in bits)


def points(keys: list[int], ndim: int) -> np.ndarray:
    """Return the points of keys, each of which is cut into halves that fit 64 bits."""
    half = KEY_BITS // 2
    found = np.zeros((len(keys), ndim), np.int64)
    for part in range(2):
        low, mask = part * half * ndim, 2 ** (half * ndim) - 1
        bits = np.array([key >> low & mask for key in keys], np.int64)
        for bit in range(half * ndim):
            found[:, bit % ndim] |= (bits >> bit & 1) << bit // ndim + part * half
    return found
