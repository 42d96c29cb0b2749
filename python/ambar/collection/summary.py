"""Summary of a collection from its metadata: datasets, families, variables, sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ambar import _core
from ambar.collection.schema import VariableLayout

if TYPE_CHECKING:
    from ambar.collection.collection import Collection


@dataclass
class VariableSummary:
    """The layouts of a variable, and the sizes and codecs of its arrays in all families."""

    name: str
    layouts: tuple[VariableLayout, ...]
    raw_bytes: int = 0
    stored_bytes: int = 0
    codecs: list[str] = field(default_factory=list)


def variables_of(collection: Collection) -> list[VariableSummary]:
    """Return the summaries of all variables; this reads the metadata of each array."""
    schema = collection.schema
    variables = {name: VariableSummary(name, schema[name]) for name in schema}
    for family in collection._families:
        for name in family.columns:
            variable = variables.setdefault(name, VariableSummary(name, ()))
            try:
                array = collection.store._array(family.path(name))
            except _core.AmbarError as error:
                variable.codecs.append(str(error))
                continue
            variable.raw_bytes += array.nbytes
            variable.stored_bytes += array.stored_bytes
            if array.codecs not in variable.codecs:
                variable.codecs.append(array.codecs)
    return list(variables.values())


def overview_of(collection: Collection) -> dict[str, Any]:
    """Return the summary that `ambar info` prints; JSON can represent it.

    Keys are `path`, `kind`, `bytes`, `usage`, `datasets` (their number), `settings`, `families`
    (number, datasets, sizes, ragged, variables), `variables` (name, layouts, and over all families
    raw bytes, stored bytes and codecs), `attributes` (names of attributes of datasets),
    `differences` and `catalogue_bytes` (names, attributes and statistics).
    """
    store = collection.store
    usage = store.usage()
    variables = variables_of(collection)
    stored_bytes = sum(store._array(path).stored_bytes for path in store)
    return {
        "path": store.location,
        "kind": "collection",
        "bytes": usage["total"],
        "usage": usage,
        "datasets": len(collection),
        "settings": collection.settings,
        "families": [asdict(family) for family in collection.families],
        "variables": [asdict(variable) for variable in variables],
        "attributes": list(collection.attrs),
        "differences": collection.schema.differences,
        "catalogue_bytes": stored_bytes - sum(variable.stored_bytes for variable in variables),
    }


def listed(collection: Collection) -> Iterator[dict[str, Any]]:
    """Yield the name, the family and the dimensions of each dataset."""
    reader, families = collection._reader, collection._families
    offsets = {f.number: {d: reader.offsets(f, d) for d in f.ragged} for f in families}
    for name, (number, row) in zip(collection.names, collection._places.tolist(), strict=True):
        sizes = dict(families[number].sizes)
        for dim, starts in offsets[number].items():
            sizes[dim] = int(starts[row + 1] - starts[row])
        yield {"name": name, "family": number, "sizes": sizes}
