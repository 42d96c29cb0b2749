"""Summaries of stores and outputs from metadata alone: kinds, sizes, codecs, levels, units."""

from __future__ import annotations

import os
from typing import Any

from ambar import _core
from ambar.kinds.registry import locate


def overview(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return a summary of the content of `path`; JSON can represent it. Reads no array.

    Keys are `path`, `kind`, `bytes`; for RAMSES outputs and plotfiles of AMReX `info`,
    `components`, `missing` and `files` (bytes and number by kind); for stores `usage`,
    `attributes`, `groups` (path, kind and the attribute ``ambar``), `arrays` (path, shape, dtype,
    chunks, codecs, error bound, raw and stored bytes, unwritten values); for collections those of
    `ambar.collection.summary.overview_of`, for meshes and series of them those of
    `ambar.mesh.summary`.
    """
    kind, resource = locate(path)
    if kind.summarize is None:
        raise _core.UnsupportedError(
            f"{os.fspath(path)}: the kind {kind.name!r} has no summary; open it with ambar.open"
        )
    return {"path": resource.location, "kind": kind.name, **kind.summarize(resource)}
