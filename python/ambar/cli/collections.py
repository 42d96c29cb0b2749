"""Output of `ambar info` and `ambar ls` for collections."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from rich.markup import escape

from ambar._util.text import ratio, size
from ambar.cli.output import (
    LISTED,
    console,
    plain_table,
    print_json,
    show_head,
    show_remainder,
    show_table,
)


def show_collection(found: Mapping[str, Any], *, every: bool) -> None:  # noqa: ARG001
    """Print the summary of a collection from `ambar.io.summary`."""
    families = len(found["families"])
    show_head(
        found,
        f"collection of {found['datasets']:,} datasets in "
        f"{families:,} {'family' if families == 1 else 'families'}, {size(found['bytes'])}",
    )
    _show_families(found["families"])
    _show_variables(found)
    if found["attributes"]:
        console.print(f"\nattributes: {', '.join(found['attributes'])}", markup=False)
    if found["differences"]:
        console.print("\ndifferences between datasets:", style="bold")
        for line in found["differences"][:LISTED]:
            console.print(f"  {line}", markup=False, soft_wrap=True)
        show_remainder(len(found["differences"]), "lines; --json lists all")


def list_collection(path: str, *, every: bool, as_json: bool) -> None:
    """List datasets: their names, families and sizes."""
    from ambar.collection import open_collection
    from ambar.collection.summary import listed

    collection = open_collection(path)
    rows = listed(collection)
    if as_json:
        print_json(list(rows))
        return
    table = plain_table("dataset", "family", "sizes", left=1)
    for row in rows if every else islice(rows, LISTED):
        sizes = ", ".join(f"{dim}: {length:,}" for dim, length in row["sizes"].items())
        table.add_row(escape(row["name"]), str(row["family"]), escape(sizes))
    console.print(table)
    if not every:
        show_remainder(len(collection), "datasets; --all lists all")


def _show_families(families: list[dict[str, Any]]) -> None:
    table = plain_table("family", "datasets", "sizes", left=1)
    largest = sorted(families, key=lambda family: -family["datasets"])
    for family in largest[:LISTED]:
        sizes = [f"{dim}: {length:,}" for dim, length in family["sizes"].items()]
        sizes += [f"{dim}: ragged" for dim in family["ragged"]]
        table.add_row(str(family["number"]), f"{family['datasets']:,}", escape(", ".join(sizes)))
    show_table(table)
    show_remainder(len(families), "families; --json lists all")


def _show_variables(found: Mapping[str, Any]) -> None:
    names = ("variable", "dimensions", "type", "datasets", "in memory", "stored", "ratio", "codecs")
    table = plain_table(*names, left=3)
    variables = found["variables"]
    for variable in variables:
        raw, stored = variable["raw_bytes"], variable["stored_bytes"]
        layouts = variable["layouts"]
        table.add_row(
            escape(variable["name"]),
            escape("; ".join(dict.fromkeys(", ".join(layout["dims"]) for layout in layouts))),
            escape(", ".join(dict.fromkeys(layout["dtype"] for layout in layouts))),
            f"{sum(layout['datasets'] for layout in layouts):,}",
            size(raw),
            size(stored),
            ratio(raw, stored),
            escape("; ".join(variable["codecs"])),
        )
    raw, stored = (sum(v[key] for v in variables) for key in ("raw_bytes", "stored_bytes"))
    table.add_row("all", "", "", "", size(raw), size(stored), ratio(raw, stored), "")
    table.add_row(
        "names, attributes, statistics", "", "", "", "", size(found["catalogue_bytes"]), "", ""
    )
    show_table(table)
