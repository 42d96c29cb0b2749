"""The text files of a plotfile, such as ``job_info``: in a store, or in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ambar import _core
from ambar.snapshot.amrex_info import AmrexInfo

if TYPE_CHECKING:
    from ambar.snapshot.snapshot import Snapshot
    from ambar.store.array import Array


def text_files(snapshot: Snapshot) -> dict[str, str]:
    """Return the contents of the text files by name; empty if the store has none.

    Raises CorruptError for a name that is not that of a file in the folder of a plotfile.
    """
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
            found = dict(run.get("text_files", {}))
            if bad := [name for name in found if name in ("", ".", "..") or "/" in name]:
                raise _core.CorruptError(
                    f"{store.location}: expected names of text files in {node}, found {bad[0]!r}; "
                    "restore the file from a copy"
                )
            return found
    return {}
