"""`ambar info` and `ambar ls`: the content of a store, from metadata alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ambar._util.text import change, plural, ratio, size, span, times_text
from ambar.cli.options import Commit, Debug, Json, flag
from ambar.cli.output import (
    LISTED,
    cell,
    console,
    dead_bytes,
    plain_table,
    print_json,
    show_bounds,
    show_head,
    show_pairs,
    show_table,
)

if TYPE_CHECKING:
    from ambar.store.store import Store

_CODES = {"ramses": "RAMSES output", "amrex": "plotfile of AMReX"}
Place = Annotated[
    str,
    typer.Argument(
        help="A store (a URL, too), a RAMSES output, a plotfile, a snapshot of particles, openPMD, "
        "or an output that yt reads."
    ),
]


def info(
    path: Place,
    arrays: Annotated[
        bool,
        flag(
            "--arrays",
            "Of snapshots: list index arrays, too. `ambar ls` lists the arrays of every store.",
        ),
    ] = False,
    commit: Commit = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """Summarize a store, output or plotfile: kinds, sizes, codecs, bounds, levels, units, time.

    Reads only metadata: the time does not depend on the size of the store.

    [bold]Examples[/bold]
    ambar info run.ambar
    ambar info output_00300 --json
    ambar info s3://bucket/run.ambar
    ambar info run.ambar --commit paper-v1
    """
    from ambar._core import AmbarError, CorruptError
    from ambar.kinds.registry import locate_summary, overview

    if json:
        print_json(overview(path, commit))
        return
    kind, resource = locate_summary(path, commit)
    try:
        if kind.name in _REPRESENTED and kind.open is not None:
            console.print(repr(kind.open(resource)), markup=False, soft_wrap=True)
            if dead := dead_bytes(resource.store.usage()):
                console.print(dead)
            return
        found = overview(path, commit)
        if "outputs" in found:
            show_head(found, plural(len(found["outputs"]), "output"))
            _show_steps(found["outputs"])
            return
        show = _SHOWN.get(found["kind"], _show_store if "usage" in found else _show_other)
        show(found, every=arrays)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, AmbarError):
            raise
        raise CorruptError(
            f"{path}: the attributes under 'ambar' are not those of its kind: {error!r}"
        ) from error


def ls(
    path: Annotated[str, typer.Argument(help="A store, or the URL of one.")],
    group: Annotated[str, typer.Argument(help="Limit the output to this group.")] = "",
    every: Annotated[
        bool, flag("--all", "All datasets of a collection, not only the first 20.")
    ] = False,
    commit: Commit = None,
    json: Json = False,
    debug: Debug = False,  # noqa: ARG001 - the option's callback acts
) -> None:
    """List a store's groups and arrays, a mesh's arrays, or a collection's datasets.

    Of a collection and a mesh, a group ("/" for all of them) lists the arrays of the store that it
    consists of.

    [bold]Examples[/bold]
    ambar ls run.ambar
    ambar ls run.ambar amr
    ambar ls profiles.ambar --all
    """
    from ambar.store.group_description import kind_name
    from ambar.store.locations import open_store

    store = open_store(path, commit=commit)
    kind = kind_name(store._ambar_attributes())
    if not group and kind == "collection":
        _list_collection(path, store, every=every, as_json=json)
        return
    base = group.strip("/")
    store[base]  # raises KeyError if it does not exist
    if not group and kind == "mesh":
        rows = list(_mesh_rows(store))
    else:
        inside = [node for node in sorted({*store.groups, *store}) if _below(node, base)]
        rows = [_row(store, node) for node in inside if node]
    if json:
        print_json(rows)
        return
    table = plain_table("path", "type", "shape", "stored", left=2)
    for row in rows:
        shape = "x".join(map(str, row.get("shape", []))) if "shape" in row else ""
        stored = size(row["stored_bytes"]) if "stored_bytes" in row else ""
        table.add_row(cell(row["path"]), cell(row["type"]), shape, stored)
    console.print(table)


def _list_collection(path: str, store: Store, *, every: bool, as_json: bool) -> None:
    """List datasets: their names, families and sizes."""
    from ambar.collection.openers import collection_at
    from ambar.collection.representation import listed
    from ambar.store.cache import place_of

    collection = collection_at(place_of(path), store)
    rows = listed(collection)
    if as_json:
        print_json(list(rows))
        return
    table = plain_table("dataset", "family", "sizes", left=1)
    for row in rows if every else islice(rows, LISTED):
        sizes = ", ".join(f"{dim}: {length:,}" for dim, length in row["sizes"].items())
        table.add_row(cell(row["name"]), str(row["family"]), cell(sizes))
    console.print(table)
    if not every and len(collection) > LISTED:
        more = f"... and {len(collection) - LISTED:,} more datasets; --all lists all"
        console.print(more, style="dim")


def _mesh_rows(store: Store) -> Iterator[dict[str, Any]]:
    """Yield a row for each array of a mesh, also of those that its description contains."""
    from ambar.mesh.mesh import Mesh

    mesh = Mesh(store)
    for array in (*mesh.arrays, *mesh.geometry):
        yield {
            "path": array._label,
            "type": array.dtype,
            "shape": list(array.shape),
            "stored_bytes": array.stored_bytes,
        }


def _below(node: str, base: str) -> bool:
    return not base or node == base or node.startswith(f"{base}/")


def _row(store: Any, node: str) -> dict[str, Any]:
    from ambar.store.group_description import Description

    if node in store.groups:
        about = Description(store._ambar_attributes(node), f"{store.location}: /{node}")
        return {"path": f"{node}/", "type": about.optional_string("kind") or "group"}
    array = store._array(node)
    return {
        "path": node,
        "type": array.type_name,
        "shape": list(array.shape),
        "stored_bytes": array.stored_bytes,
    }


def _show_other(found: dict[str, Any], *, every: bool) -> None:  # noqa: ARG001
    """Print the summary of files that are converted, or of a kind that another package defines."""
    bytes_ = f", {size(found['bytes'])}" if "bytes" in found else ""
    show_head(found, f"{found['kind']}{bytes_}")
    show_pairs(
        (name, _text(value))
        for name, value in found.items()
        if name not in ("path", "kind", "bytes") and value is not None
    )


def _text(value: Any) -> Any:
    """Return a list or a dict of a summary as text; long ones are shortened."""
    if isinstance(value, dict):
        value = [
            f"{name} {one:,}" if isinstance(one, int) else f"{name} {one}"
            for name, one in value.items()
        ]
    if not isinstance(value, list):
        return value
    more = f", ... ({len(value)} in total)" if len(value) > LISTED else ""
    return ", ".join(map(str, value[:LISTED])) + more


def _show_output(found: dict[str, Any], *, every: bool) -> None:  # noqa: ARG001
    from ambar.snapshot.run_info import info_of

    files = sum(entry["files"] for entry in found["files"].values())
    show_head(found, f"{_CODES[found['kind']]}, {size(found['bytes'])} in {plural(files, 'file')}")
    show_pairs(info_of({"format": found["kind"]}, found["info"]).summary())
    table = plain_table("files", "number", "size")
    for kind, entry in found["files"].items():
        table.add_row(kind, f"{entry['files']:,}", size(entry["bytes"]))
    show_table(table)
    _show_components(found["components"], found["missing"])


def _show_components(components: dict[str, list[str]], missing: dict[str, str]) -> None:
    table = plain_table("component", "fields", left=2)
    for name, fields in components.items():
        table.add_row(cell(name), cell(", ".join(fields)))
    for name, why in missing.items():
        table.add_row(f"[dim]{cell(name)}[/dim]", f"[dim]none: {cell(why)}[/dim]")
    show_table(table)


def _show_store(found: dict[str, Any], *, every: bool) -> None:
    own = found["attributes"].get("ambar", {})
    source = own.get("source", {}).get("bytes") if isinstance(own.get("source"), dict) else None
    smaller = f", {change(source, found['bytes'])} than its source" if source else ""
    entries = found["usage"]["entries"]
    show_head(found, f"{found['kind']}, {size(found['bytes'])}{smaller}, {entries:,} entries")
    snapshots = [group for group in found["groups"] if group["kind"] == "snapshot"]
    if found["kind"] == "series" and snapshots:
        from ambar.snapshot.series import outputs_in

        by_name = {snapshot["path"].strip("/"): snapshot for snapshot in snapshots}
        _show_steps([by_name[name] for _, name in outputs_in(by_name)])
        show_bounds(_BOUND_COLUMNS, _bound_rows_of_series(found))
        return
    if isinstance(times := own.get("times"), list) and times:
        show_pairs([("steps", f"{len(times):,}"), ("times", times_text(times))])
    for snapshot in snapshots:
        from ambar.snapshot.run_info import info_of

        rows = info_of(snapshot.get("source"), snapshot["info"]).summary()
        show_pairs(_with_stored_levels(rows, found["groups"], snapshot["path"]))
        _show_components(snapshot.get("components", {}), snapshot.get("missing", {}))
    for group in found["groups"]:
        if group["kind"] == "amr":
            _show_levels(group)
    fields = _fields_by_array(found)
    show_bounds(_BOUND_COLUMNS, _bound_rows(found, fields))
    _show_arrays(found, fields, every=every)


def _show_checkpoint(found: dict[str, Any], *, every: bool) -> None:
    source = found["source"]
    smaller = change(source["bytes"], found["bytes"])
    what = f"checkpoint of AMReX, {size(found['bytes'])}, {smaller} than its source"
    show_head(found, what)
    show_pairs([("name", source["name"]), ("files", f"{source['files']:,}")])
    table = plain_table("MultiFab", "FABs", "components", "index type", "values", left=1)
    for name, about in found["multifabs"].items():
        kind = "cells" if set(about["type"].split(",")) == {"0"} else f"nodes ({about['type']})"
        counts = [f"{about[key]:,}" for key in ("fabs", "components", "values")]
        table.add_row(cell(name), *counts[:2], kind, counts[2])
    show_table(table)
    _show_arrays(found, _fields_by_array(found), every=every)


def _bound_rows(found: dict[str, Any], fields: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the error bounds by field: that to the original values, and the given one.

    `fields` is what `_fields_by_array` returns.

    The first holds for all values that a reader returns: the sum of bounds if values were changed
    more than once. Bounds of levels and chunks may be tighter.
    """
    from ambar import _core
    from ambar.store.nodes import field_of

    rows: list[tuple[str, str, str]] = []
    stated: set[str] = set()
    for group in found["groups"]:
        own = f"{group['path'].strip('/')}/".lstrip("/")
        given = {str(target): str(bound) for target, bound in _dict(group, "requested_bounds")}
        bounds = dict(_dict(group, "error_bounds"))
        stated |= {own + field for field in bounds}
        for field, bound in bounds.items():
            rows.append((own + field, _core.format_bound(bound), given.pop(field, "-")))
            parts = [target for target in given if target.partition("@")[0] == field]
            rows += [(own + target, "-", given.pop(target)) for target in parts]
        rows += [(own + target, "-", bound) for target, bound in given.items()]
    for array in found["arrays"]:
        group, name = field_of(array["path"])
        path = f"{group}/{fields.get(array['path'], name)}".lstrip("/")
        if array["error_bound"] and path not in stated:
            rows.append((array["path"], _core.format_bound(array["error_bound"]), "-"))
    return rows


def _fields_by_array(found: dict[str, Any]) -> dict[str, str]:
    """Return the fields whose arrays have other names, by the path of the array."""
    from ambar.store.nodes import array_names, field_of

    names = {
        (group["path"].strip("/"), array): field
        for group in found["groups"]
        for field, array in array_names(group, f"{found['path']}: /{group['path']}").items()
    }
    owners = {array["path"]: field_of(array["path"]) for array in found["arrays"]}
    return {path: names[owner] for path, owner in owners.items() if owner in names}


def _bound_rows_of_series(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the error bounds by field, as `_bound_rows` does; "by output" where they differ."""
    bounds: dict[str, set[tuple[str, str]]] = {}
    for path, total, given in _bound_rows(found, _fields_by_array(found)):
        _, _, field = path.partition("/")
        bounds.setdefault(field, set()).add((total, given))
    return [
        (
            field,
            *(
                one.pop() if len(one) == 1 else "by output"
                for one in map(set, zip(*rows, strict=True))
            ),
        )
        for field, rows in bounds.items()
    ]


def _dict(group: dict[str, Any], key: str) -> Iterable[tuple[str, Any]]:
    return (group.get(key) or {}).items()


def _show_steps(snapshots: list[dict[str, Any]]) -> None:
    scale_factors = [snapshot["info"].get("aexp") for snapshot in snapshots]
    is_cosmological = any(one is not None for one in scale_factors)
    table = plain_table("output", "time", *["aexp"] * is_cosmological, "components", left=1)
    for snapshot, aexp in zip(snapshots, scale_factors, strict=True):
        table.add_row(
            cell(snapshot["path"]),
            f"{float(snapshot['info']['time']):.6g}",
            *["" if aexp is None else f"{aexp:.6g}"] * is_cosmological,
            cell(", ".join(snapshot.get("components", {}))),
        )
    show_table(table)


def _with_stored_levels(
    rows: list[tuple[str, str]], groups: list[dict[str, Any]], path: str
) -> list[tuple[str, str]]:
    """Return the summary of a run with the levels of the leaf cells that a tree has."""
    trees = [
        group
        for group in groups
        if group["kind"] == "amr"
        and group.get("layout") != "patches"
        and group["path"].strip("/") == f"{path.strip('/')}/amr".lstrip("/")
    ]
    counts = trees[0]["cells_per_level"] if trees else {}
    levels = sorted(int(level) for level, count in counts.items() if count)
    if not levels:
        return rows
    stored = span(levels[0], levels[-1])
    return [
        (name, f"{stored} (of the run: {text})" if name == "levels" and text != stored else text)
        for name, text in rows
    ]


def _show_levels(group: dict[str, Any]) -> None:
    """Print a row for each level of a tree, or for each level of patches with its boxes."""
    is_patches = group.get("layout") == "patches"
    names = ["level", "leaf cells", "share", "cell size (code)"]
    table = plain_table(*names, *(["boxes", "blocks"] if is_patches else []))
    total, counts = group["cells"], group["cells_per_level"]
    numbers = range(len(group["levels"])) if is_patches else sorted(map(int, counts))
    for number in numbers:
        count = counts.get(str(number), 0)
        share = f"{100 * count / total:.1f} %" if total else "-"
        boxes: list[str] = []
        if is_patches:
            level = group["levels"][number]
            sides = level["cell_size"]
            block = "x".join([str(level["side"])] * len(sides))
            boxes = [f"{level['boxes']:,}", f"{level['blocks']:,} of {block}"]
        else:
            sides = [group["boxlen"] / group["root"][0] / 2**number]
        length = " x ".join(dict.fromkeys(f"{side:.6g}" for side in sides))
        table.add_row(str(number), f"{count:,}", share, length, *boxes)
    table.add_row("all", f"{total:,}")
    show_table(table)


def _show_arrays(found: dict[str, Any], fields: Mapping[str, str], *, every: bool) -> None:
    arrays = found["arrays"]
    table = plain_table("array", "type", "shape", "in memory", "stored", "ratio", "codecs", left=2)
    shown = [a for a in arrays if every or "/index/" not in f"/{a['path']}"]
    for array in shown:
        field = fields.get(array["path"])
        table.add_row(
            cell(array["path"] if field is None else f"{array['path']} ({field})"),
            cell(array["dtype"]),
            "x".join(map(str, array["shape"])) or "scalar",
            size(array["raw_bytes"]),
            size(array["stored_bytes"]),
            ratio(array["raw_bytes"], array["stored_bytes"]),
            cell(array["codecs"]),
        )
    raw, stored = (math.fsum(a[key] for a in arrays) for key in ("raw_bytes", "stored_bytes"))
    hidden = f" (+ {len(arrays) - len(shown)} of indices)" if len(shown) < len(arrays) else ""
    table.add_row(f"all{hidden}", "", "", size(raw), size(stored), ratio(raw, stored), "")
    show_table(table)
    for array in arrays:
        if missing := array.get("unwritten_values"):
            total = math.prod(array["shape"])
            path = cell(array["path"])
            console.print(f"incomplete: {path}: {missing:,} of {total:,} values were not written")


_SHOWN = {"ramses": _show_output, "amrex": _show_output, "checkpoint": _show_checkpoint}
"""The functions that print summaries, by kind; other kinds are printed as a table."""
_BOUND_COLUMNS = ("to the original values", "given bound")
"""The columns of the table of error bounds."""
_REPRESENTED = ("collection", "mesh", "mesh series")
"""The kinds of which the text representation is printed."""
