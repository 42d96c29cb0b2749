"""RAMSES outputs as snapshots: finding outputs, and reading their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ambar import _core
from ambar.snapshot.field_names import CELL_COMPONENTS
from ambar.snapshot.loading import LoadRequest, Source
from ambar.snapshot.run_info import RamsesInfo


def is_ramses(path: str | os.PathLike[str]) -> bool:
    """Return whether `path` is a RAMSES output: its folder, or the info file in it."""
    place = Path(path)
    if place.is_file():
        return place.suffix == ".txt" and place.name.startswith("info_")
    return any(_info_files(place))


def _info_files(folder: Path) -> Iterator[Path]:
    for part in ("", "group_[0-9]*/"):
        yield from folder.glob(f"{part}info_[0-9]*.txt")


def outputs(path: str | os.PathLike[str]) -> list[Path]:
    """Return `path` if it is a RAMSES output, otherwise the outputs in it, ordered by number."""
    place = Path(path)
    if is_ramses(place):
        return [place]
    return sorted(folder for folder in place.glob("output_[0-9]*") if is_ramses(folder))


class RamsesSource(Source):
    """A RAMSES output. Opening reads headers; a field is read on first access, and kept.

    A region of cells is read from the domains that overlap it, as long as the tree of all cells was
    not read.
    """

    def __init__(self, path: str) -> None:
        self._core = _core.Ramses(path)
        self.location = path
        self.info = RamsesInfo.from_dict(self._core.info)
        found = self._core.components
        self.missing = {c["name"]: str(c["why"]) for c in found if not c["present"]}
        self.components = {c["name"]: list(c["fields"]) for c in found if c["present"]}

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return RamsesSource, (self.location,)

    def amr(self) -> _core.Amr:
        """Return the cells."""
        named = (self.components.get(name, ()) for name in CELL_COMPONENTS)
        return self._core.amr_on_demand([field for fields in named for field in fields])

    def table(self, name: str) -> _core.Table | None:
        """Return particles, sinks or clumps."""
        if name == "particles":
            return self._core.particles_on_demand(self.components[name])
        return self._core.sinks() if name == "sinks" else self._core.clumps()

    def load_amr(self, request: LoadRequest) -> _core.Amr:
        """Return cells in memory."""
        return self._core.amr(
            [name for name in CELL_COMPONENTS if name in request.components],
            request.cell_fields,
            request.code_region(self.info),
            request.levels,
            request.max_level,
            request.threads,
            None,
        )

    def load_table(self, name: str, request: LoadRequest) -> _core.Table | None:
        """Return particles, sinks or clumps in memory."""
        if name != "particles":
            return super().load_table(name, request)
        fields = request.components[name]
        # The reader needs the positions to find the particles of a region.
        places = [f"position_{axis}" for axis in "xyz"[: self.info.ndim]]
        needed = list(dict.fromkeys([*fields, *places]))
        region = request.code_region(self.info)
        core = self._core.particles(needed, region, request.threads, None)
        return core if len(needed) == len(fields) else core.load(fields)
