"""Summary of a collection from its metadata: datasets, families, variables, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ambar.collection.collection import Collection


def overview_of(fleet: Collection) -> dict[str, Any]:
    """Return the summary that `ambar info` prints; JSON can represent it.

    Keys are `path`, `kind`, `bytes`, `usage`, `datasets` (their number), `settings`, `families`
    (number, datasets, sizes, ragged), `variables` (name, layouts, and over all families raw bytes,
    stored bytes and codecs), `attributes` (names of attributes of datasets), `differences` and
    `catalogue_bytes` (names, attributes and statistics).
    """
    store = fleet.store
    usage = store.usage()
    arrays = {path: store._array(path) for path in store}
    variables = {name: _variable(fleet, name) for name in fleet.schema}
    values = {family.path(name): name for family in fleet._families for name in family.columns}
    for path, array in arrays.items():
        if name := values.get(path):
            variable = variables.setdefault(name, {"name": name, "layouts": [], **_nothing()})
            variable["raw_bytes"] += array.nbytes
            variable["stored_bytes"] += array.stored_bytes
            if array.codecs not in variable["codecs"]:
                variable["codecs"].append(array.codecs)
    return {
        "path": store.location,
        "kind": "collection",
        "bytes": usage["total"],
        "usage": usage,
        "datasets": len(fleet),
        "settings": dict(fleet.settings),
        "families": [
            {
                "number": family.number,
                "datasets": family.datasets,
                "sizes": family.sizes,
                "ragged": list(family.ragged),
            }
            for family in fleet.families
        ],
        "variables": list(variables.values()),
        "attributes": list(fleet.attrs),
        "differences": fleet.schema.differences,
        "catalogue_bytes": sum(a.stored_bytes for path, a in arrays.items() if path not in values),
    }


def listed(fleet: Collection) -> Iterator[dict[str, Any]]:
    """Yield the name, the family and the dimensions of each dataset."""
    families = fleet._families
    offsets = {f.number: {d: fleet._reader.offsets(f, d) for d in f.ragged} for f in families}
    for name, (number, row) in zip(fleet.names, fleet._places.tolist(), strict=True):
        sizes = dict(families[number].sizes)
        for dim, starts in offsets[number].items():
            sizes[dim] = int(starts[row + 1] - starts[row])
        yield {"name": name, "family": number, "sizes": sizes}


def _nothing() -> dict[str, Any]:
    return {"raw_bytes": 0, "stored_bytes": 0, "codecs": []}


def _variable(fleet: Collection, name: str) -> dict[str, Any]:
    layouts = [
        {
            "datasets": layout.datasets,
            "dims": list(layout.dims),
            "dtype": layout.dtype,
            "shape": list(layout.shape),
        }
        for layout in fleet.schema[name]
    ]
    return {"name": name, "layouts": layouts, **_nothing()}
