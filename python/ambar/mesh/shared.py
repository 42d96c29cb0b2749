"""Arrays that a store has already, found by their content: stored once however often they come."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np


class Shared:
    """The arrays of the meshes in one store, by digests of what they hold.

    Two arrays are the same if dtype, shape, every bit and the error bound they are stored with are.
    Texts are not looked for: a digest of them takes as long as writing them.
    """

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        self._new: dict[str, str] = {}

    def know(self, base: str, digests: Mapping[str, str]) -> None:
        """Learn of the arrays of a mesh at `base` that the store has: their digests by path."""
        for path, digest in digests.items():
            self._paths.setdefault(digest, f"/{base}/{path}")

    def find(self, values: np.ndarray, bound: float | str | None) -> tuple[str | None, str | None]:
        """Return an array's digest, None of texts; and the path of the same one, None if new."""
        if values.dtype.kind == "O":
            return None, None
        content = hashlib.blake2b(digest_size=16)
        content.update(f"{values.dtype.str} {values.shape} {bound}".encode())
        content.update(np.ascontiguousarray(values).data)
        digest = content.hexdigest()
        return digest, self._paths.get(digest)

    def add(self, digest: str, base: str, path: str) -> None:
        """Note that an array is written at `path` below `base`."""
        self._paths[digest] = f"/{base}/{path}"
        self._new[path] = digest

    def new(self) -> dict[str, str]:
        """Return the digests of what was written since the last `take`, by path."""
        return dict(self._new)

    def take(self) -> None:
        """Keep what was written."""
        self._new = {}

    def forget(self) -> None:
        """Forget what was written since the last `take`."""
        for digest in self._new.values():
            self._paths.pop(digest, None)
        self._new = {}
