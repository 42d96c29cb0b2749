"""The text files of a plotfile, such as ``job_info``: of a store, or in the folder itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ambar.snapshot.amrex_info import AmrexInfo

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot
    from ambar.store.array import Array


def text_files(snapshot: Snapshot) -> dict[str, str]:
    """Return the contents of the text files by name; empty where they are not kept."""
    stored = snapshot._stored_at
    if stored is None:
        folder = Path(snapshot.location)
        names = cast(AmrexInfo, snapshot.info).text_files if folder.is_dir() else ()
        return {name: (folder / name).read_text(errors="replace") for name in names}
    store, path = stored
    prefix = path.rstrip("/")
    for name in ("layout", "run"):
        if (node := f"{prefix}/source/{name}".lstrip("/")) in store:
            text = json.loads(str(cast("Array", store[node])[...].item()))
            run = text["run"] if name == "layout" else text
            return dict(run.get("text_files", {}))
    return {}
