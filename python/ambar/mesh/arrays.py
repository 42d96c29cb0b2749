"""The arrays of a mesh: association, name, dtype, shape and stored size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ambar._util import text
from ambar._util.properties import cached_property
from ambar.mesh.storage.array_reader import ArrayReader, ArrayStorage
from ambar.mesh.storage.description import ASSOCIATIONS, blocks_of, field_entries
from ambar.mesh.storage.packs import NUMBERS
from ambar.mesh.storage.references import components_of, named_references

_GEOMETRY = "geometry"
_OTHER_KEYS = frozenset({*ASSOCIATIONS, "blocks", "user_dict", "digests"})
"""Keys of a description that do not refer to geometry."""


class MeshArray:
    """An array of a mesh. Its properties come from metadata: no values are read.

    `Mesh.arrays` and `Mesh.geometry` return these objects.

    Attributes
    ----------
    association : str
        What the array has values for: "point", "cell", "row" (of a table), or "field" for field
        data. "geometry" for coordinates, cells and other parts of the mesh itself.
    name : str or None
        The name of the array; for geometry a path in the description, such as "cells/corners".
    dtype : str
        The name of the dtype; "string" or "bytes" for strings.
    shape : tuple of int
        (tuples,) or (tuples, components); on structured grids (z, y, x) or (z, y, x, components).
    block : tuple of int
        The numbers of the blocks that contain the array, the outermost first; () if the mesh has no
        blocks.

    Examples
    --------
    >>> import pyvista
    >>> ambar.write_mesh(pyvista.Sphere(theta_resolution=90), "sphere.ambar")
    >>> mesh = ambar.open_mesh("sphere.ambar")
    >>> array = mesh.arrays[0]
    >>> array.association, array.name, array.dtype, array.shape
    ('point', 'Normals', 'float32', (2522, 3))
    >>> array.nbytes
    30264
    """

    def __init__(
        self,
        reader: ArrayReader,
        reference: dict[str, Any],
        association: str,
        name: str | None,
        block: tuple[int, ...],
    ) -> None:
        self.association = association
        self.name = name
        self.dtype = reader.dtype_of(reference)
        self.shape = reader.shape_of(reference)
        self.block = block
        self._reader = reader
        self._reference = reference

    @cached_property
    def _storage(self) -> list[ArrayStorage]:
        components = components_of(self._reference) or [self._reference]
        return [self._reader.storage_of(component) for component in components]

    @property
    def _label(self) -> str:
        """The block, the association and the name, as `ambar ls` lists them."""
        block = "".join(f"block {number}/" for number in self.block)
        return f"{block}{self.association}/{self.name}"

    @property
    def _places(self) -> list[tuple[Any, ...]]:
        """Where the values are in the store, for each component that is stored alone."""
        return [part.place for part in self._storage]

    @property
    def _attributes(self) -> dict[str, Any]:
        """What the description states about the array, except its name and its place."""
        places = ("name", "at", "components_at", "row")
        return {key: value for key, value in self._reference.items() if key not in places}

    def _values(self) -> np.ndarray:
        """Read the values, in the order in which they are stored."""
        with self._reader.damage_as_errors():
            return self._reader.get(self._reference, str(self.name), ndim=(1, 2, 3, 4))

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the arrays of the store that contain the values.

        One for each component of a vector within an error bound, otherwise one. Empty if the
        description of the mesh contains the values, as those of small arrays.
        """
        return tuple(part.path for part in self._storage if part.path is not None)

    @property
    def codecs(self) -> str:
        """The codecs; "" for strings in the description of the mesh."""
        return ", ".join(dict.fromkeys(part.codecs for part in self._storage))

    @property
    def chunk_count(self) -> int:
        """The number of chunks."""
        return sum(part.chunk_count for part in self._storage)

    @property
    def nbytes(self) -> int:
        """Bytes of the values in memory; for strings, of the pointers."""
        if self.dtype in ("string", "bytes"):
            return math.prod(self.shape) * np.dtype(object).itemsize
        if self.dtype not in NUMBERS:
            raise self._reader.damaged(
                f"{self.association} {self.name!r} has dtype {self.dtype!r:.80}, which arrays of "
                "meshes do not have"
            )
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize

    @property
    def stored_bytes(self) -> int:
        """Bytes in the store; a share, if the array is stored together with others."""
        return sum(part.stored_bytes for part in self._storage)

    @property
    def ratio(self) -> float:
        """The compression ratio, ``nbytes / stored_bytes``; NaN if `stored_bytes` is 0."""
        return self.nbytes / self.stored_bytes if self.stored_bytes else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Return the properties as a dict that JSON can represent.

        Returns
        -------
        dict of str to object

        Examples
        --------
        >>> array = ambar.open_mesh("wing.ambar").arrays[0].to_dict()
        >>> array["name"], array["shape"], array["nbytes"]
        ('pressure', [64], 512)
        """
        names = ("association", "name", "dtype", "shape", "block", "paths", "codecs")
        sizes = ("chunk_count", "nbytes", "stored_bytes")
        values = {name: getattr(self, name) for name in (*names, *sizes)}
        return {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}

    def _summary(self) -> tuple[str, ...]:
        """Return the cells of a row in the representation of a mesh."""
        stored = self.stored_bytes
        size = text.sizes(self.nbytes, stored) if stored else text.size(self.nbytes)
        block = "/".join(map(str, self.block))
        row = (self.association, str(self.name), str(self.shape), self.dtype, size, self.codecs)
        return (*row, f"block {block}") if block else row

    def __repr__(self) -> str:
        """Return a line for each property."""
        _, _, shape, dtype, size, codecs, *_ = self._summary()
        properties = {
            "Shape": shape,
            "Dtype": dtype,
            "Size": size,
            "Codecs": codecs or None,
            "Chunks": f"{self.chunk_count:,}",
            "Block": "/".join(map(str, self.block)) or None,
            "Paths": ", ".join(self.paths) or None,
        }
        title = f"<ambar.MeshArray> {self.association} {self.name!r}"
        return text.representation(title, properties)


def field_arrays(described: Any, reader: ArrayReader) -> Iterator[MeshArray]:
    """Yield the arrays on points, cells and rows and in field data, also those of blocks."""
    for key, entry, block in field_entries(described):
        yield MeshArray(reader, entry, ASSOCIATIONS[key], entry.get("name"), block)


def geometry_arrays(
    described: Any, reader: ArrayReader, block: tuple[int, ...] = ()
) -> Iterator[MeshArray]:
    """Yield the other arrays of a description, also those of blocks."""
    if not isinstance(described, dict):
        return
    own = {key: value for key, value in described.items() if key not in _OTHER_KEYS}
    for path, reference in named_references(own):
        yield MeshArray(reader, reference, _GEOMETRY, path, block)
    for index, (_, inner) in enumerate(blocks_of(described)):
        yield from geometry_arrays(inner, reader, (*block, index))


def stored_once(meshes: Iterable[Iterable[MeshArray]]) -> Iterator[tuple[int, MeshArray]]:
    """Yield the arrays of several meshes, each with the number of its mesh.

    Arrays that blocks or meshes share are yielded once.
    """
    seen = set()
    for number, arrays in enumerate(meshes):
        for array in arrays:
            place = tuple(array._places)
            if place not in seen:
                seen.add(place)
                yield number, array
