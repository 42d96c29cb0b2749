"""What the commands say of collections."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from ambar._util.text import ratio, size
from ambar.cli.common import Exit, console, errors, plain_table, print_json

if TYPE_CHECKING:
    from ambar.collection.files.export import Export
    from ambar.collection.files.ingest import Ingest

LISTED = 20
"""Lines of a list that are shown of many."""


def show_ingest(done: Ingest, *, as_json: bool) -> None:
    """Tell what became of files; exit with 1 where some could not be taken in."""
    if as_json:
        print_json(dataclasses.asdict(done) | {"ratio": done.ratio})
    else:
        text = f"{done.target}: {len(done.converted):,} datasets taken in"
        if done.skipped:
            text += f", {len(done.skipped):,} were there already"
        if done.converted:
            text += f"; {size(done.source_bytes)} read, the store has {size(done.stored_bytes)}"
        console.print(f"{text}, in {done.seconds:.2f} s", markup=False, soft_wrap=True)
        _show_failed("file", "could not be taken in", done.failed)
    if done.failed:
        raise typer.Exit(Exit.DAMAGE)


def show_export(done: Export, *, as_json: bool) -> None:
    """Tell what was written; exit with 1 where datasets could not be."""
    if as_json:
        print_json(dataclasses.asdict(done))
    else:
        text = f"{done.target}: {len(done.exported):,} datasets in {done.seconds:.2f} s"
        console.print(text, markup=False, soft_wrap=True)
        _show_failed("dataset", "could not be written", done.failed)
    if done.failed:
        raise typer.Exit(Exit.DAMAGE)


def show_collection(found: Mapping[str, Any]) -> None:
    """Print the summary of a collection from `ambar.io.summary`."""
    usage = found["usage"]
    dead = f", {size(usage['dead'])} dead (ambar compact)" if usage["dead"] > 0 else ""
    families = len(found["families"])
    console.print(
        f"[bold]{escape(found['path'])}[/bold]  collection of {found['datasets']:,} datasets in "
        f"{families:,} {'family' if families == 1 else 'families'}, {size(found['bytes'])}{dead}",
        soft_wrap=True,
    )
    _show_families(found["families"])
    _show_variables(found)
    if found["attributes"]:
        console.print(f"\nattributes: {', '.join(found['attributes'])}", markup=False)
    if found["differences"]:
        console.print("\nwhat differs between datasets:", style="bold")
        for line in found["differences"][:LISTED]:
            console.print(f"  {line}", markup=False, soft_wrap=True)
        _rest(len(found["differences"]), "lines; --json has them all")


def list_collection(path: str, *, every: bool, as_json: bool) -> None:
    """List datasets: their names, families and sizes."""
    from ambar.collection import open_collection
    from ambar.collection.summary import listed

    fleet = open_collection(path)
    rows = listed(fleet)
    if as_json:
        print_json(list(rows))
        return
    table = plain_table("dataset", "family", "sizes", left=1)
    for row in rows if every else islice(rows, LISTED):
        sizes = ", ".join(f"{dim}: {length:,}" for dim, length in row["sizes"].items())
        table.add_row(escape(row["name"]), str(row["family"]), escape(sizes))
    console.print(table)
    if not every:
        _rest(len(fleet), "datasets; --all lists them")


def _show_families(families: list[dict[str, Any]]) -> None:
    table = plain_table("family", "datasets", "sizes", left=1)
    largest = sorted(families, key=lambda family: -family["datasets"])
    for family in largest[:LISTED]:
        sizes = [f"{dim}: {length:,}" for dim, length in family["sizes"].items()]
        sizes += [f"{dim}: ragged" for dim in family["ragged"]]
        table.add_row(str(family["number"]), f"{family['datasets']:,}", escape(", ".join(sizes)))
    console.print()
    console.print(table)
    _rest(len(families), "families; --json has them all")


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
    console.print()
    console.print(table)


def _rest(count: int, what: str) -> None:
    if count > LISTED:
        console.print(f"... and {count - LISTED:,} more {what}", style="dim")


def _show_failed(kind: str, what: str, failed: Mapping[str, str]) -> None:
    if not failed:
        return
    errors.print(f"{len(failed):,} {what}:", style="bold red")
    table = plain_table(kind, "why", left=2)
    for name, why in list(failed.items())[:LISTED]:
        table.add_row(escape(name), escape(why))
    errors.print(table)
    if len(failed) > LISTED:
        errors.print(f"... and {len(failed) - LISTED:,} more; --json has them all")
