"""Representations of collections as text and as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ambar._util import html, text
from ambar.collection.summary import variables_of

if TYPE_CHECKING:
    from ambar.collection.collection import Collection

# Variables, datasets and differences that a representation lists.
_MOST_ROWS = 20
# The metadata of each array is read to add up the sizes of variables.
_MOST_ARRAYS = 500


def as_text(collection: Collection) -> str:
    """Return a line each for numbers, sizes, attributes, variables and differences."""
    variables = [(*row[:3], *row[4:]) for row in _variables(collection)]
    differences = collection.schema.differences
    return text.representation(
        f"<ambar.Collection> {collection.location}",
        _properties(collection),
        ["  Variables:"] * bool(variables),
        text.columns(variables[:_MOST_ROWS], 4),
        _more(len(variables)),
        ["  Differences between datasets:"] * bool(differences),
        [f"    {line}" for line in differences[:_MOST_ROWS]],
        _more(len(differences)),
    )


def as_html(collection: Collection) -> str:
    """Return the same as HTML, with a table of the first datasets."""
    variables, names = _variables(collection), collection.names
    header = ("variable", "dimensions", "dtype", "datasets", "size", "codecs")
    shown = f", the first {_MOST_ROWS} are listed" * (len(names) > _MOST_ROWS)
    sections = [
        html.details(f"{len(variables)} variables", html.table(variables, header), is_open=True),
        html.details(
            f"{len(names):,} datasets{shown}", html.table([(name,) for name in names[:_MOST_ROWS]])
        ),
    ]
    if differences := collection.schema.differences:
        lines = html.table([(line,) for line in differences])
        sections.append(html.details(f"{len(differences)} differences between datasets", lines))
    title = f"ambar.Collection {collection.location}"
    return html.representation(title, _properties(collection), *sections)


def _more(count: int) -> list[str]:
    return [f"    ... and {count - _MOST_ROWS} more"] * (count > _MOST_ROWS)


def _properties(collection: Collection) -> dict[str, object]:
    properties: dict[str, object] = {
        "Datasets": f"{len(collection):,}",
        "Families": f"{len(collection._families):,}",
    }
    if collection._changes is not None:
        return properties | {"Mode": "open for writing"}
    attrs = list(collection.attrs)
    more = [f"and {len(attrs) - _MOST_ROWS} more"] * (len(attrs) > _MOST_ROWS)
    return properties | {
        "Size": text.size(collection.store.usage()["total"]),
        "Attributes": ", ".join([*attrs[:_MOST_ROWS], *more]) or None,
    }


def _variables(collection: Collection) -> list[tuple[object, ...]]:
    """Return name, dimensions, dtype and unit, datasets, size and codecs of each variable."""
    families = collection._families
    units = {
        name: f" [{column.attributes['units']}]"
        for family in families
        for name, column in family.columns.items()
        if "units" in column.attributes
    }
    sizes: dict[str, tuple[str, str]] = {}
    arrays = sum(len(family.columns) for family in families)
    if collection._changes is None and arrays <= _MOST_ARRAYS:
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
