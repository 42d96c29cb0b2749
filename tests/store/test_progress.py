"""The argument `progress`: a function, True for a bar, or False and None."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "c.ambar"
    with ambar.open_collection(path, "w-", fsync=False) as collection:
        collection.add("d", {"t": np.arange(9.0)})
    return path


@pytest.mark.parametrize("progress", [None, False, True])
def test_progress_is_optional(path: Path, progress: bool | None) -> None:
    assert ambar.open_store(path).verify(progress=progress)["chunks"] > 0
    assert ambar.open_collection(path).verify(progress=progress)["chunks"] > 0
    folder = path.parent / "files"
    assert ambar.export(path, folder, progress=progress).exported == ["d"]
    again = path.parent / "again.ambar"
    assert ambar.convert(folder, again, progress=progress).converted == ["d"]
    assert ambar.ingest([folder], again, mode="a", progress=progress).skipped == ["d"]


@pytest.mark.parametrize("progress", [1, "yes"])
def test_other_values_of_progress_are_type_errors(path: Path, progress: Any) -> None:
    folder = path.parent / "files"
    calls = [
        lambda: ambar.open_store(path).verify(progress=progress),
        lambda: ambar.export(path, folder, progress=progress),
        lambda: ambar.ingest([path.parent / "*.nc"], path, mode="a", progress=progress),
    ]
    ambar.export(path, path.parent / "more")
    (path.parent / "more" / "d.nc").rename(path.parent / "e.nc")
    for call in calls:
        with pytest.raises(TypeError, match=r"expected progress to be a function .*, True or Fal"):
            call()
    assert not folder.exists()
    assert ambar.open_collection(path).names == ["d"]
