"""The groups of an HDF5 file, checked before libnetcdf follows their links."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ambar import _core
from ambar._util.hdf5_files import is_hdf5, open_hdf5

_MAX_NESTED = 200
"""Maximum number of groups that contain each other; libnetcdf uses the stack for each."""
_MAX_GROUPS = 20_000
"""Maximum number of groups of a file; a group with several links counts once for each."""


def refuse_cycles(path: Path) -> None:
    """Raise UnsupportedError if a group of HDF5 has a link to a group that contains it.

    libnetcdf follows such links until memory is exhausted, and ends the process. Links from several
    groups to one are followed each.
    """
    if not is_hdf5(path) or not find_spec("h5py"):
        return
    import h5py

    left = _MAX_GROUPS

    def visit(group: Any, name: str, above: set[int]) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise _core.UnsupportedError(
                f"expected at most {_MAX_GROUPS:,} groups, found more, as groups have several "
                "links to each other; remove links, for example with h5py"
            )
        if len(above) > _MAX_NESTED:
            raise _core.UnsupportedError(
                f"expected at most {_MAX_NESTED} nested groups, found more in {name!r:.80}; move "
                "groups nearer to the root, for example with h5py"
            )
        for link in group:
            if group.links.get_info(link).type not in (h5py.h5l.TYPE_HARD, h5py.h5l.TYPE_SOFT):
                continue
            try:
                about = h5py.h5o.get_info(group, link)
            except (KeyError, OSError, RuntimeError):  # a soft link without a target
                continue
            if about.type != h5py.h5o.TYPE_GROUP:
                continue
            place = f"{name}/{link.decode(errors='replace')}"
            if about.addr in above:
                raise _core.UnsupportedError(
                    f"expected groups without cycles, found {place!r}, a link to a group that "
                    "contains it; remove the link, for example with h5py"
                )
            visit(h5py.h5g.open(group, link), place, above | {about.addr})

    # The library that reads a damaged file raises its error.
    with suppress(_core.CorruptError), open_hdf5(path) as file:
        root = h5py.h5g.open(file.id, b"/")
        visit(root, "", {h5py.h5o.get_info(root).addr})
