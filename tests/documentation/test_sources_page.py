"""The page on options lists the options of each kind, as `ambar.convert` accepts them."""

from __future__ import annotations

import re
from dataclasses import fields

from ambar.kinds import registry
from ambar.kinds.request import ConvertRequest, CopyRequest
from tests.helpers.paths import ROOT

FILES = {
    "RAMSES:": "RAMSES output",
    "AMReX: a plotfile": "AMReX plotfile",
    "AMReX: a checkpoint": "checkpoint",
    "Gadget": "particle snapshot",
    "openPMD": "openPMD series",
    "an output that yt": "yt dataset",
    "NetCDF": "collection",
    "a mesh,": "mesh",
}
STORES = {
    "an output": "snapshot",
    "outputs of": "series",
    "a mesh": "mesh",
    "meshes of": "mesh series",
    "datasets": "collection",
    "arrays": "arrays",
    "files of": "checkpoint",
}


def rows_of(page: str, title: str) -> list[list[str]]:
    """Return the cells of the rows of the first table in a section."""
    section = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def options_of(request: type[ConvertRequest], base: type[ConvertRequest]) -> set[str]:
    return {one.name for one in fields(request)} - {one.name for one in fields(base)}


def test_the_tables_list_the_options_of_each_kind() -> None:
    page = (ROOT / "docs/howto/sources.md").read_text(encoding="utf-8")
    places = {*registry._STORED.values(), registry._ARRAYS}
    places |= {*registry._CONVERTED, *registry._CONVERTED_LAST}
    kinds = [registry._load(place) for place in places]
    converted = {kind.name: kind for kind in kinds if kind.convert}
    copied = {kind.name: kind for kind in kinds if kind.copy}
    # The time steps of meshes have the options of a mesh.
    assert converted.pop("mesh series").convert_request is converted["mesh"].convert_request
    for title, names, known in (
        ("Files of other programs", FILES, converted),
        ("Stores", STORES, copied),
    ):
        rows = rows_of(page, title)
        found = [
            next(name for start, name in names.items() if row[0].startswith(start)) for row in rows
        ]
        assert sorted(found) == sorted(known)
        for name, row in zip(found, rows, strict=True):
            kind = known[name]
            expected = (
                options_of(kind.convert_request, ConvertRequest)
                if known is converted
                else options_of(kind.copy_request, CopyRequest)
            )
            assert set(re.findall(r"`(\w+)`", row[2])) == expected, row[0]
