"""Summaries of collections, and their representations as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ambar import _core
from ambar._util import html, text
from ambar.collection.schema import VariableLayout
from ambar.collection.storage.tails import array_of

if TYPE_CHECKING:
    from ambar.collection.collection import Collection

# Variables, datasets and differences that a representation lists.
_MAX_ROWS = 20
# The metadata of each array is read to add up the sizes of variables.
_MAX_ARRAYS = 500


def as_text(collection: Collection) -> str:
    """Return a line each for numbers, sizes, attributes, variables and differences."""
    variables = [(*row[:3], *row[4:]) for row in _variables(collection)]
    differences = collection.schema.differences
    return text.representation(
        f"<ambar.Collection> {collection.location}",
        _properties(collection),
        ["  Variables:"] * bool(variables),
        text.columns(variables[:_MAX_ROWS], 4),
        _more(len(variables)),
        ["  Differences between datasets:"] * bool(differences),
        [f"    {line}" for line in differences[:_MAX_ROWS]],
        _more(len(differences)),
    )


def as_html(collection: Collection) -> str:
    """Return the same as HTML, with a table of the first datasets."""
    variables, names = _variables(collection), collection.names
    header = ("variable", "dimensions", "dtype", "datasets", "size", "codecs")
    shown = f", the first {_MAX_ROWS} are listed" * (len(names) > _MAX_ROWS)
    sections = [
        html.details(
            text.plural(len(variables), "variable"), html.table(variables, header), is_open=True
        ),
        html.details(
            f"{len(names):,} datasets{shown}", html.table([(name,) for name in names[:_MAX_ROWS]])
        ),
    ]
    if differences := collection.schema.differences:
        lines = html.table([(line,) for line in differences])
        sections.append(html.details(f"{len(differences)} differences between datasets", lines))
    title = f"ambar.Collection {collection.location}"
    return html.representation(title, _properties(collection), *sections)


def _more(count: int) -> list[str]:
    return [f"    ... and {count - _MAX_ROWS} more"] * (count > _MAX_ROWS)


def _properties(collection: Collection) -> dict[str, object]:
    properties: dict[str, object] = {
        "Datasets": f"{len(collection):,}",
        "Families": f"{len(collection._families):,}",
    }
    if collection._changes is not None:
        return properties | {"Mode": "open for writing"}
    attrs = list(collection.attrs)
    more = [f"and {len(attrs) - _MAX_ROWS} more"] * (len(attrs) > _MAX_ROWS)
    return properties | {
        "Size": text.size(collection.store.usage()["total"]),
        "Attributes": ", ".join([*attrs[:_MAX_ROWS], *more]) or None,
    }


def _variables(collection: Collection) -> list[tuple[object, ...]]:
    """Return name, dimensions, dtype and unit, datasets, size and codecs of each variable."""
    families, counts = collection._families, collection._counts()
    # As for dtypes, the unit is that of the largest family with the variable, which is the last.
    units = {
        name: f" [{column.attributes['units']}]" if "units" in column.attributes else ""
        for family in sorted(families, key=lambda one: (counts.get(one.number, 0), -one.number))
        for name, column in family.columns.items()
    }
    sizes: dict[str, tuple[str, str]] = {}
    arrays = sum(len(family.columns) for family in families)
    if collection._changes is None and arrays <= _MAX_ARRAYS:
        sizes = {
            one.name: (text.sizes(one.raw_bytes, one.stored_bytes), "; ".join(one.codecs))
            for one in variables_of(collection)
        }
    rows: list[tuple[object, ...]] = []
    schema = collection.schema
    for name, layouts in schema.items():
        dims, dtype = schema.summary(name)
        datasets = sum(layout.datasets for layout in layouts)
        rows.append((name, dims, dtype + units.get(name, ""), datasets, *sizes.get(name, ())))
    return rows


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
                array = array_of(collection.store, family.path(name))
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
