"""Deduplication: an array that a store has already is found by its content, and stored once."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from ambar.mesh.storage.temporal_deltas import GROUP, DeltaWriter, can_change
from ambar.store.writer import Writer

_ArrayKey: TypeAlias = tuple[str, str, tuple[int, ...]]
"""Path within a step, dtype and shape."""


class Deduplicator:
    """References to the arrays of the meshes in one store, by digests of their content.

    Two arrays are the same if dtype, shape, error bound and all bits are equal. Strings are not
    deduplicated: their digest takes as long as writing them.

    What a step adds is for that step alone until `commit`. `roll_back` forgets it. An exception may
    interrupt both: called again, they do the rest.
    """

    def __init__(self) -> None:
        self._references: dict[str, dict[str, Any]] = {}
        self._new_references: dict[str, dict[str, Any]] = {}
        self._new_digests: dict[str, str] = {}
        self._before: dict[_ArrayKey, np.ndarray] = {}
        self._delta_writers: dict[_ArrayKey, DeltaWriter] = {}
        self._templates: dict[str, str] = {}
        self._new_templates: dict[str, str] = {}
        self._delta_count = 0
        self.bounds: dict[str, list[float] | None] = {}
        """The bounds of the steps that were written, by their groups."""

    def register_step(self, base: str, digests: Mapping[str, str]) -> None:
        """Add the arrays of a mesh that the store has at `base`: their digests by path."""
        for path, digest in digests.items():
            self._references.setdefault(digest, {"at": f"/{base}/{path}"})

    def register_deltas(self, count: int) -> None:
        """Set the number of arrays of rows that the store has."""
        self._delta_count = count

    def find(
        self, values: np.ndarray, bound: float | str | None
    ) -> tuple[str | None, dict[str, Any] | None]:
        """Return the digest of an array (None for strings), and the reference to an equal one."""
        if values.dtype.kind == "O":
            return None, None
        content = hashlib.blake2b(digest_size=16)
        content.update(f"{values.dtype.str} {values.shape} {bound}".encode())
        content.update(np.ascontiguousarray(values).data)
        digest = content.hexdigest()
        return digest, self._new_references.get(digest) or self._references.get(digest)

    def add(self, digest: str, base: str, path: str) -> None:
        """Add an array that is being written at `path` below `base`."""
        self._new_references[digest] = {"at": f"/{base}/{path}"}
        self._new_digests[path] = digest

    def append_row(
        self, writer: Writer, path: str, values: np.ndarray, digest: str | None
    ) -> dict[str, Any] | None:
        """Write an array that differs from that of an earlier step; return the reference to it.

        `path` is the path within a step. Returns None for the first array of its kind, which the
        caller writes.
        """
        if digest is None or not can_change(values):
            return None
        key = (path, values.dtype.str, values.shape)
        # Taken out while it writes: after an exception the next step starts another array.
        deltas = self._delta_writers.pop(key, None)
        if deltas is None:
            if key not in self._before:
                # Copied, because the caller may change the array before the next step.
                self._before[key] = values.copy()
                return None
            name = f"{GROUP}/{self._delta_count}"
            self._delta_count += 1
            deltas = DeltaWriter(writer, name, self._before.pop(key))
        reference = {"at": f"/{deltas.path}", "row": deltas.append(values)}
        self._delta_writers[key] = deltas
        self._new_references[digest] = reference
        return reference

    def find_step(self, template: str, base: str) -> str | None:
        """Return the earlier step whose description differs only in rows; None if it is new."""
        known = self._templates.get(template)
        if known is None:
            self._new_templates[template] = base
        return known

    @property
    def new_digests(self) -> dict[str, str]:
        """The digests of the arrays that were written since the last `commit`, by path."""
        return dict(self._new_digests)

    def commit(self) -> None:
        """Keep what was added: the step is committed."""
        self._references |= self._new_references
        self._templates |= self._new_templates
        self.roll_back()

    def roll_back(self) -> None:
        """Forget what was added since the last `commit`."""
        self._new_references, self._new_digests, self._new_templates = {}, {}, {}
