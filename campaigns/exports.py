"""Exports of collections with hostile names: each file holds its dataset, no other file changes.

Names share their first 200 characters, lead out of the folder, or are names of temporary or
reserved files. Each dataset contains its number, so that a file with values of another dataset is
found.
"""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np

import ambar
from ambar.collection.files.export import Format
from campaigns.campaign import Run, removed
from campaigns.writings import listing

NAMES = [
    *("..", ".", "a/b", "a/b/c", "a/../../out", "/abs", "x.", "x. ", " ", "CON", "nul.nc", "~"),
    *(
        "ž" * 60,
        "🜲",
        "e\u0301",
        "\u00e9",
        "%2E%2E",
        "%",
        "a\\b",
        "a\nb",
        "-rf",
        "$HOME",
        "*",
        "'\"",
    ),
    *("foo", "foo.nc", "foo.zarr.partial/inner", "foo.partial", ".foo", "foo.nc.partial", "FOO"),
    *(f"d{number}" for number in range(12)),
    "n" * 300,
]
LONG_NAMES = [f"{'long name ' * 20}{number}" for number in range(96)]
VALUES = 20_000


def run(run: Run) -> None:
    """Export collections with random subsets of the names, in several processes."""
    for case in run.cases():
        rng = run.random(case)
        count = int(rng.integers(10, len(NAMES)))
        names = [NAMES[at] for at in rng.permutation(len(NAMES))[:count]]
        if case % 2 == 0:
            names = LONG_NAMES
        place = removed(run.folder / "case")
        place.mkdir()
        store, target = place / "source.ambar", place / "out"
        (place / "abs.nc").write_text("a neighbour")
        (place / "foo.zarr").write_text("a neighbour")
        with ambar.open_collection(store, "w-", fsync=False) as made:
            for number, name in enumerate(names):
                values = np.full(VALUES, number, float)
                made.add(name, {"v": (("x",), values, {"number": number})})
        before = listing(place)
        format: Format = "zarr" if case % 4 == 3 else "netcdf"  # noqa: A001
        try:
            done = ambar.export(store, target, format=format, processes=4)
        except Exception:
            run.finding(case, f"the export failed: {traceback.format_exc()[-900:]}", store)
            continue
        run.count("files", len(done.exported))
        run.count("reported failures", len(done.failed))
        outside = {name: digest for name, digest in listing(place).items() if name[:4] != "out/"}
        if outside != before:
            run.finding(case, f"files beside the target changed: {outside.keys() ^ before.keys()}")
        for wrong in _compare(target, names, set(done.exported), set(done.failed), format):
            run.finding(case, wrong, store)


def _compare(
    target: Path,
    names: list[str],
    exported: set[str],
    failed: set[str],
    format: str,  # noqa: A002
) -> list[str]:
    """Return how the files differ from the datasets."""
    import xarray as xr

    wrong = []
    if exported | failed != set(names) or exported & failed:
        wrong.append("datasets are neither exported nor failed")
    for name in failed:
        if len(name.encode()) < 230:
            wrong.append(f"the dataset {name!r} failed")
    found: list[str] = []
    pattern = "*.zarr" if format == "zarr" else "*.nc"
    for file in sorted(target.rglob(pattern)):
        if not file.name.endswith(pattern[1:]) or (format == "netcdf" and not file.is_file()):
            continue
        options: dict[str, Any] = (
            {"engine": "zarr", "consolidated": False} if format == "zarr" else {}
        )
        try:
            with xr.open_dataset(file, **options) as dataset:
                if "v" not in dataset:
                    continue
                number, values = int(dataset.v.attrs["number"]), dataset.v.values
        except Exception as error:
            wrong.append(f"{file.name[-40:]} cannot be read: {error!r:.300}")
            continue
        found.append(names[number])
        if values.shape != (VALUES,) or not (values == number).all():
            wrong.append(f"{file.name[-40:]} has values of another dataset")
    if sorted(found) != sorted(exported):
        lost, more = exported - set(found), [name for name in found if found.count(name) > 1]
        wrong.append(f"missing: {[n[-20:] for n in lost]}, repeated: {[n[-20:] for n in more]}")
    left = [file.name for file in target.rglob(".ambar-*")]
    if left:
        wrong.append(f"temporary files are left: {left[:3]}")
    return wrong
