"""Arrays that a store has already, found by their content: stored once however often they come."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ambar.mesh.storage.temporal_deltas import GROUP, Track, takes
from ambar.store.writer import Writer

_Like: TypeAlias = tuple[str, str, tuple[int, ...]]


class Shared:
    """The arrays of the meshes in one store, by digests of what they hold.

    Two arrays are the same if dtype, shape, every bit and the error bound they are stored with are.
    Texts are not looked for: a digest of them takes as long as writing them.
    """

    def __init__(self) -> None:
        self._references: dict[str, dict[str, Any]] = {}
        self._new: dict[str, str] = {}
        self._before: dict[_Like, np.ndarray | None] = {}
        self._tracks: dict[_Like, Track] = {}
        self._alike: dict[str, str] = {}
        self._new_alike: dict[str, str] = {}
        self._number = 0
        self.bounds: dict[str, list[float] | None] = {}
        """The bounds of the steps that were written, by their groups."""

    def know(self, base: str, digests: Mapping[str, str]) -> None:
        """Learn of the arrays of a mesh at `base` that the store has: their digests by path."""
        for path, digest in digests.items():
            self._references.setdefault(digest, {"at": f"/{base}/{path}"})

    def number_from(self, number: int) -> None:
        """Learn how many arrays of rows the store has."""
        self._number = number

    def find(
        self, values: np.ndarray, bound: float | str | None
    ) -> tuple[str | None, dict[str, Any] | None]:
        """Return an array's digest, None of texts, and how to refer to the same, None if new."""
        if values.dtype.kind == "O":
            return None, None
        content = hashlib.blake2b(digest_size=16)
        content.update(f"{values.dtype.str} {values.shape} {bound}".encode())
        content.update(np.ascontiguousarray(values).data)
        digest = content.hexdigest()
        return digest, self._references.get(digest)

    def add(self, digest: str, base: str, path: str) -> None:
        """Note that an array is written at `path` below `base`."""
        self._references[digest] = {"at": f"/{base}/{path}"}
        self._new[path] = digest

    def changed(
        self, writer: Writer, path: str, values: np.ndarray, digest: str | None
    ) -> dict[str, Any] | None:
        """Write an array that another step had otherwise, and return how to refer to it.

        `path` is that within a step. Returns None for the first of its kind.
        """
        if digest is None or not takes(values):
            return None
        like = (path, values.dtype.str, values.shape)
        if like not in self._before:
            # It tells if differences in time are worth it; it may be changed by the next step.
            self._before[like] = values.copy()
            return None
        track = self._tracks.get(like)
        if track is None:
            name = f"{GROUP}/{self._number}"
            self._number += 1
            track = self._tracks[like] = Track(writer, name, self._before[like])
            self._before[like] = None
        row = track.add(values)
        self._references[digest] = {"at": f"/{track.path}", "row": row}
        return self._references[digest]

    def alike(self, template: str, base: str) -> str | None:
        """Return the earlier step whose description is `template` but for rows, None if new."""
        known = self._alike.get(template)
        if known is None:
            self._new_alike[template] = base
        return known

    def new(self) -> dict[str, str]:
        """Return the digests of what was written since the last `take`, by path."""
        return dict(self._new)

    def take(self) -> None:
        """Keep what was written."""
        self._new = {}
        self._alike |= self._new_alike
        self._new_alike = {}

    def forget(self) -> None:
        """Forget what was written since the last `take`."""
        for digest in self._new.values():
            self._references.pop(digest, None)
        self._new, self._new_alike = {}, {}
