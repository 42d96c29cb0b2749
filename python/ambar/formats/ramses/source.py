"""RAMSES outputs as snapshots: finding outputs, and reading their files."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ambar import _core
from ambar.snapshot.field_names import resolve_all
from ambar.snapshot.run_info import RamsesInfo
from ambar.snapshot.snapshot import AMR_COMPONENTS


def is_ramses(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a RAMSES output: its folder, or the info file in it."""
    place = Path(path)
    if place.is_file():
        return place.suffix == ".txt" and place.name.startswith("info_")
    folders = ("", "group_[0-9]*/")
    return any(any(place.glob(f"{folder}info_[0-9]*.txt")) for folder in folders)


def outputs(path: str | os.PathLike[str]) -> list[Path]:
    """Return `path` if it is a RAMSES output, else the outputs in it, by their numbers."""
    place = Path(path)
    if is_ramses(place):
        return [place]
    return sorted(folder for folder in place.glob("output_[0-9]*") if is_ramses(folder))


class RamsesSource:
    """A RAMSES output. Its files are read on first access and then cached.

    With `whole` a component is read as a whole, out of what `region`, `levels` and `max_level`
    leave of it. Without, each field is read when it is first asked for, and a region of cells is
    read out of the domains around it as long as nothing else was.
    """

    def __init__(
        self,
        core: _core.Ramses,
        location: str,
        *,
        components: list[str] | None = None,
        fields: list[str] | None = None,
        region: _core._Region | None = None,
        levels: tuple[int, int] | None = None,
        max_level: int | None = None,
        threads: int | None = None,
        whole: bool = False,
    ) -> None:
        self._core = core
        self._whole = whole
        self.location = location
        self.info = RamsesInfo.from_dict(json.loads(core.info))
        self._selection = (region, levels, max_level)
        self._threads = threads
        found = json.loads(core.components)
        self.missing = {c["name"]: str(c["why"]) for c in found if not c["present"]}
        there = {c["name"]: list(c["fields"]) for c in found if c["present"]}
        self.components = self._chosen(there, components, fields)

    def amr(self) -> _core.Amr:
        """Read the cells."""
        chosen = [name for name in AMR_COMPONENTS if name in self.components]
        fields = [field for name in chosen for field in self.components[name]]
        if not self._whole:
            return self._core.amr_on_demand(fields)
        return self._core.amr(chosen, fields, *self._selection, self._threads, None)

    def table(self, name: str) -> _core.Table | None:
        """Read particles, sinks or clumps."""
        if name == "particles":
            if not self._whole:
                return self._core.particles_on_demand(self.components[name])
            region, *_ = self._selection
            return self._core.particles(self.components[name], region, self._threads, None)
        return self._core.sinks() if name == "sinks" else self._core.clumps()

    def _chosen(
        self, there: dict[str, list[str]], components: list[str] | None, fields: list[str] | None
    ) -> dict[str, list[str]]:
        """Return the requested components and fields; raises KeyError if one does not exist."""
        for name in components or []:
            if name not in there:
                why = self.missing.get(name, f"available: {', '.join(there)}")
                raise _core.NotFoundError(f"{self.location}: no {name}: {why}")
        chosen = {name: there[name] for name in (there if components is None else components)}
        if fields is None:
            return chosen
        known = [field for names in chosen.values() for field in names]
        wanted = resolve_all(fields, known)
        for field in wanted:
            if field not in known:
                raise _core.NotFoundError(
                    f"{self.location}: no field {field!r}; available: {', '.join(known)}"
                )
        kept = {name: [f for f in names if f in wanted] for name, names in chosen.items()}
        return {name: names for name, names in kept.items() if names}
