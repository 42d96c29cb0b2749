"""Output of `ambar info` for meshes and series of meshes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.markup import escape

from ambar._util.text import ratio, size
from ambar.cli.output import LISTED, console, plain_table, show_head, show_remainder, show_table


def show_mesh(found: Mapping[str, Any], *, every: bool) -> None:
    """Print the summary of a mesh; `every`: with all arrays, and the arrays of the store."""
    blocks = f" of {len(found['blocks']):,} blocks" if found["blocks"] else ""
    show_head(
        found,
        f"mesh: {found['type']}{blocks}, {found['points']:,} points, {found['cells']:,} cells, "
        f"{size(found['bytes'])}",
    )
    if found["bounds"] is not None:
        from ambar.mesh.mesh import bounds_text

        console.print(f"bounds: {bounds_text(found['bounds'])}", soft_wrap=True)
    arrays = found["arrays"]
    table = plain_table("on", "array", "dtype", "shape", "block", left=3)
    for info in arrays if every else arrays[:LISTED]:
        table.add_row(
            info["association"],
            escape(str(info["name"])),
            info["dtype"],
            _by(info["shape"]),
            "/".join(map(str, info["block"])),
        )
    if arrays:
        console.print(table)
    if every:
        _show_storage([*arrays, *found["geometry"]])
    else:
        show_remainder(len(arrays), "arrays; --arrays lists all")


def show_mesh_series(found: Mapping[str, Any], *, every: bool) -> None:
    """Print the summary of a series of meshes; `every`: of all steps, and of all arrays."""
    steps = found["steps"]
    show_head(found, f"series of {len(steps):,} meshes, {size(found['bytes'])}")
    table = plain_table("step", "time", "points", "cells", "type", "arrays", left=6)
    for step in steps if every else steps[-LISTED:]:
        time = "" if step["time"] is None else f"{step['time']:.6g}"
        arrays = escape(", ".join(step["arrays"]))
        counts = f"{step['points']:,}", f"{step['cells']:,}"
        table.add_row(str(step["number"]), time, *counts, escape(step["type"]), arrays)
    console.print(table)
    if len(steps) > LISTED and not every:
        console.print(f"the last {LISTED} of {len(steps):,}; --arrays lists all")
    if every:
        _show_storage(found["arrays"])


def _show_storage(arrays: list[dict[str, Any]]) -> None:
    """Print the space that arrays take in the store."""
    names = ["path", "on", "array", "dtype", "shape", "codecs", "chunks", "raw", "stored", "ratio"]
    table = plain_table(*names, left=6)
    for array in arrays:
        raw, stored = array["nbytes"], array["stored_bytes"]
        table.add_row(
            escape("\n".join(array["paths"])),
            array["association"],
            escape(str(array["name"])),
            array["dtype"],
            _by(array["shape"]),
            array["codecs"],
            f"{array['chunk_count']:,}",
            size(raw),
            size(stored),
            ratio(raw, stored) if stored else "",
        )
    show_table(table)


def _by(shape: Any) -> str:
    return "x".join(map(str, shape))
