"""Small examples of every public way to write, for the campaigns crashes and faults.

A writing prepares a folder, then acts in it, and calls `done` after each acknowledged commit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

import ambar
import ambar.xarray
from campaigns import samples
from tests.helpers import plotfiles

Done: TypeAlias = Callable[[], None]


@dataclass(frozen=True)
class Writing:
    """A way to write."""

    act: Callable[[Path, Done], None]
    """Writes the store at a path."""
    prepare: Callable[[Path], None] = lambda _: None
    """Makes the files that exist before."""
    target: str = "x.ambar"
    """The name of the store or files that are written."""
    commits: bool = True
    """Whether a store is written, with durable commits; else files of another format."""


def _create(path: Path, done: Done, **options: Any) -> None:
    with ambar.create(path, **options) as writer:
        writer.create_array("a", np.arange(2000.0), chunks=(250,))
        writer.create_array("g/b", np.arange(60).reshape(6, 10), attrs={"units": "m"})
        writer.commit()
        done()
        writer.create_array("c", np.array(["x", "y"], object))
    done()


def _created(path: Path, **options: Any) -> None:
    _create(path, lambda: None, **options)


def _append(path: Path, done: Done) -> None:
    with ambar.create(path, "a") as writer:
        writer.create_array("d", np.random.default_rng(3).random(900), chunks=(100,))
        writer.append("a", np.arange(300.0))
        writer.write_region("a", np.arange(70.0), (115,))
        writer.commit()
        done()
        writer.remove("g")
        writer.create_group("h", {"new": True})
        writer.commit()
        done()
        writer.create_array("d", np.arange(5))
    done()


def _commits(path: Path, done: Done) -> None:
    """Make commits that grow and shrink, most of whose tails are overwritten."""
    for numbers in (range(9), range(9, 14)):
        with ambar.create(path, "a") as writer:
            for number in numbers:
                writer.create_array(f"g{number % 3}/a{number % 4}", np.arange(20 + 7 * number))
                if number == 6:
                    writer.remove("g0")
                writer.commit()
                done()


def _history(path: Path, done: Done) -> None:
    """Name, restore and compact commits."""
    ambar.tag(path, "first", 1)
    done()
    ambar.restore(path, 1)
    done()
    ambar.tag(path, "last")
    done()
    ambar.compact(path)
    done()
    ambar.restore(path, "first")
    done()


def _collection(path: Path, done: Done, mode: Literal["w-", "w"] = "w-", **options: Any) -> None:
    with ambar.open_collection(path, mode, **options) as made:
        for number in range(5):
            made.add(f"d{number}", _dataset(4 + number % 2))
    done()


def _dataset(length: int) -> dict[str, Any]:
    return {"v": (("t",), np.arange(length) + 0.5), "w": (("k",), np.arange(3))}


def _collection_made(path: Path, **options: Any) -> None:
    _collection(path, lambda: None, **options)


def _collection_changed(path: Path, done: Done) -> None:
    with ambar.open_collection(path, "a") as made:
        made.add("new", _dataset(9))
        made.commit()
        done()
        made.replace("d1", _dataset(5))
        made.remove("d2")
        made.rename("d3", "other")
    done()


def _mesh(path: Path, done: Done) -> None:
    ambar.write_mesh(samples.step(0), path)
    done()


def _mesh_series(path: Path, done: Done) -> None:
    with ambar.open_mesh_series(path, "w-") as steps:
        for number in range(2):
            steps.add(samples.step(number), number)
            done()


def _mesh_series_resumed(path: Path, done: Done) -> None:
    with ambar.open_mesh_series(path, "a") as steps:
        steps.add(samples.step(5), 9.0)
    done()


def _compact(path: Path, done: Done) -> None:
    ambar.compact(path)
    done()


def _dirty(path: Path, **options: Any) -> None:
    _created(path, **options)
    _append(path, lambda: None)


def _repair(path: Path, done: Done) -> None:
    ambar.repair(path)
    done()


def _torn(path: Path) -> None:
    """Make a store with a damaged slot."""
    _created(path)
    with path.open("r+b") as file:
        file.seek(512)
        file.write(b"?" * 30)


def _convert(path: Path, done: Done) -> None:
    source = path.with_name("plotfile")
    ambar.convert(source if source.exists() else samples.RAMSES, path)
    done()


def _plotfile(path: Path) -> None:
    """Write a plotfile with constant modification times, which the store's fingerprint contains."""
    folder = path.with_name("plotfile")
    plotfiles.write(folder)
    for file in folder.rglob("*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))


def _ingest(path: Path, done: Done) -> None:
    ambar.ingest(sorted(path.parent.glob("*.nc")), path, processes=1)
    done()


def _netcdf(path: Path) -> None:
    import xarray as xr

    for number in range(3):
        dataset = xr.Dataset({"v": ("x", np.arange(4.0) + number)}, attrs={"number": number})
        dataset.to_netcdf(path.with_name(f"f{number}.nc"))


def _xarray(path: Path, done: Done) -> None:
    import xarray as xr

    dataset = xr.Dataset({"v": (("t", "x"), np.arange(40.0).reshape(4, 10))})
    dataset.ambar.write(path, mode="w")
    done()
    dataset.ambar.write(path, mode="a", append_dim="t")
    done()


def _ranks(path: Path, done: Done) -> None:
    """Write as two ranks in one process; `ambar.mpi` sends the same bytes over MPI."""
    core = ambar._core
    first = core.RankWriter.first(
        path,
        "create",
        durability="full",
        ranks=2,
        placement="reserved",
        alignment=512,
        extent=0,
        threads=1,
        queue=None,
    )
    ranks = [first, core.RankWriter.join(first.invitation(), 1)]
    for step in range(2):
        shape, half = [40, 6], [20, 6]
        parts = [core.Blocks.encode(shape, [([20 * rank, 0], half)]) for rank in (0, 1)]
        blocks = core.Blocks.gather(parts)
        spec = core.ArraySpec("float64", shape, profile="balanced")
        for rank, writer in enumerate(ranks):
            number = writer.declare(f"/s{step}", spec, blocks)
            writer.write(number, np.full(half, step + 0.5 * rank), [20 * rank, 0], half)
        boxes = [[writer.message_to(to) for to in (0, 1)] for writer in ranks]
        for to, writer in enumerate(ranks):
            for sender in (0, 1):
                if boxes[sender][to]:
                    writer.receive(sender, boxes[sender][to])
        outcome = first.commit([writer.seal() for writer in ranks])
        for writer in ranks:
            writer.conclude(outcome)
        done()
    for writer in ranks:
        writer.close()


def _export(format: str | None, **options: Any) -> Callable[[Path, Done], None]:  # noqa: A002
    def act(path: Path, done: Done) -> None:
        more: dict[str, Any] = {"format": format} if format else {}
        exported: Any = ambar.export(path.with_name("source.ambar"), path, **more, **options)
        if failed := getattr(exported, "failed", None):
            # Reported, while the other datasets are written.
            raise OSError(f"not exported: {failed}")
        done()

    return act


def _source(kind: str) -> Callable[[Path], None]:
    return lambda path: samples.KINDS[kind](path.with_name("source.ambar"), False)


def _collection_source(path: Path) -> None:
    _collection_made(path.with_name("source.ambar"), fsync=False)


WRITINGS: dict[str, Writing] = {
    "create": Writing(_create),
    "create-directory": Writing(lambda path, done: _create(path, done, directory=True)),
    "overwrite": Writing(lambda path, done: _collection(path, done, "w"), _created),
    "overwrite-directory": Writing(
        lambda path, done: _collection(path, done, "w", directory=True),
        lambda path: _created(path, directory=True),
    ),
    "append": Writing(_append, _created),
    "append-directory": Writing(_append, lambda path: _created(path, directory=True)),
    "commits": Writing(_commits, _created),
    "history": Writing(_history, _created),
    "collection": Writing(_collection),
    "collection-change": Writing(_collection_changed, _collection_made),
    "collection-change-directory": Writing(
        _collection_changed, lambda path: _collection_made(path, directory=True)
    ),
    "mesh": Writing(_mesh),
    "mesh-series": Writing(_mesh_series),
    "mesh-series-resume": Writing(
        _mesh_series_resumed, lambda path: _mesh_series(path, lambda: None)
    ),
    "compact": Writing(_compact, _dirty),
    "compact-directory": Writing(_compact, lambda path: _dirty(path, directory=True)),
    "repair": Writing(_repair, _torn),
    "repair-directory": Writing(_repair, lambda path: _dirty(path, directory=True)),
    "convert-ramses": Writing(_convert),
    "convert-amrex": Writing(_convert, _plotfile),
    "ingest": Writing(_ingest, _netcdf),
    "xarray": Writing(_xarray),
    "ranks": Writing(_ranks),
    "export-netcdf": Writing(_export("netcdf", processes=1), _collection_source, "out", False),
    "export-zarr": Writing(_export("zarr", processes=1), _collection_source, "out", False),
    "export-plotfile": Writing(_export(None), _source("plotfile"), "out", False),
    "export-mesh": Writing(_export(None), _source("mesh"), "out.vtm", False),
}
SLOW = frozenset(name for name in WRITINGS if name.startswith(("mesh", "export", "ingest")))
"""Writings that load large libraries; short runs leave them out."""


def listing(folder: Path) -> dict[str, str]:
    """Return a digest of every file below a folder."""
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {str(file.relative_to(folder)): samples.digest(file.read_bytes()) for file in files}


def as_text(found: dict[str, str]) -> str:
    """Return contents as one string, for comparison."""
    return json.dumps(found, sort_keys=True)
