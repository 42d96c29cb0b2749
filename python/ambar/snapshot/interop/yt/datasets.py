"""Snapshots as yt datasets: of cells in a tree or in patches, or of particles alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ambar import _core
from ambar.snapshot.code_info import CodeInfo
from ambar.snapshot.interop.yt.plotfiles import plotfile_dataset
from ambar.snapshot.interop.yt.ramses import AmbarRamsesDataset
from ambar.snapshot.interop.yt.stream import stream_dataset
from ambar.snapshot.loading import has_cells
from ambar.snapshot.run_info import RamsesInfo

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot


def dataset_of(snapshot: Snapshot, **options: Any) -> Any:
    """Return a snapshot as a yt dataset. Values are read when they are needed."""
    if not has_cells(snapshot.components):
        raise _core.UnsupportedError(
            f"{snapshot.location}: expected cells for yt, found only "
            f"{', '.join(snapshot.components)}; use yt.load_particles with particles.read()"
        )
    if isinstance(snapshot.info, CodeInfo):
        return stream_dataset(snapshot, snapshot.info, **options)
    if isinstance(snapshot.info, RamsesInfo):
        if snapshot._stored_at is not None and not snapshot._source.amr().cells_count:
            raise _core.UnsupportedError(
                f"{snapshot.location}: expected leaf cells that fill the box for yt, found no "
                "cells; use another output"
            )
        return AmbarRamsesDataset(snapshot, **options)
    return plotfile_dataset(snapshot, **options)
