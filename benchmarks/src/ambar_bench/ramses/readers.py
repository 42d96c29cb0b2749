"""How ambar and its peers load components of a RAMSES output: all fields, positions, levels.

Every reader is used at its best: yt gets all fields in one call and no duplicates of them, osyris
selects the fields it is asked for, pynbody reads with as many processes as it is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

CELL_COMPONENTS = ("hydro", "gravity", "rt")
COMPONENTS = (*CELL_COMPONENTS, "particles")
Columns = dict[str, np.ndarray]


def parts_of(component: str, there: list[str]) -> list[str]:
    """Return the components that `component` means: itself, or for "all" all that are there."""
    return [name for name in COMPONENTS if name in there] if component == "all" else [component]


class Reader(ABC):
    """A program that reads RAMSES outputs or stores. Making one imports the program."""

    module: ClassVar[str]

    def __init__(self, path: Path, parts: list[str], threads: int | None) -> None:
        self.path = path
        self.parts = parts
        self.cells = any(part in CELL_COMPONENTS for part in parts)
        self.threads = threads
        self.prepare()

    @classmethod
    def installed(cls) -> bool:
        """Return whether the program is there."""
        return find_spec(cls.module) is not None

    @abstractmethod
    def prepare(self) -> None:
        """Import what `load` needs."""

    @abstractmethod
    def load(self) -> Any:
        """Open the output and load the parts into memory."""

    @abstractmethod
    def columns(self, loaded: Any) -> Columns:
        """Return what was loaded, by ambar's names; particles' names begin with "particles/"."""


class Ambar(Reader):
    """ambar, from a store or straight from RAMSES' files."""

    module = "ambar"

    def prepare(self) -> None:
        """Import ambar."""
        import ambar

        self._ambar = ambar

    def load(self) -> Columns:
        """Load default columns: level, positions, and the fields of the parts."""
        opened: Any
        if self.path.suffix == ".ambar":
            opened = self._ambar.open(self.path)
        else:
            opened = self._ambar.open_snapshot(self.path).load(self.parts, threads=self.threads)
        columns: Columns = {}
        if self.cells:
            names = [n for part in self.parts for n in opened.components[part] if n != "domain"]
            axes = "xyz"[: opened.info.ndim]
            wanted = ["level", *axes, *(n for n in names if n in opened.amr.fields)]
            columns |= opened.amr.read(wanted, threads=self.threads)
        if "particles" in self.parts:
            rows = opened.particles.read(threads=self.threads)
            columns |= {f"particles/{name}": rows[name] for name in rows}
        return columns

    def columns(self, loaded: Columns) -> Columns:
        """Return the columns themselves."""
        return loaded


class Yt(Reader):
    """yt, through `all_data` and one call for all fields."""

    module = "yt"
    KINDS: ClassVar = {
        "hydro": "ramses",
        "gravity": "gravity",
        "rt": "ramses-rt",
        "particles": "io",
    }
    NAMES: ClassVar = {
        "Density": "density",
        "Pressure": "pressure",
        "Metallicity": "metallicity",
        "Potential": "potential",
        "grid_level": "level",
        **{f"{axis}-velocity": f"velocity_{axis}" for axis in "xyz"},
        **{f"{axis}-acceleration": f"acceleration_{axis}" for axis in "xyz"},
        "particle_level": "particles/levelp",
    }

    def prepare(self) -> None:
        """Import yt and silence it."""
        import yt

        yt.set_log_level("critical")
        self._yt = yt

    def load(self) -> Columns:
        """Load the fields on disk, and of cells their centres and levels."""
        dataset = self._yt.load(str(next(self.path.glob("info_?????.txt"))))
        data = dataset.all_data()
        kinds = {self.KINDS[part] for part in self.parts}
        fields = [field for field in dataset.field_list if field[0] in kinds]
        if self.cells:
            axes = "xyz"[: dataset.dimensionality]
            fields += [("index", name) for name in (*axes, "grid_level")]
        data.get_data(fields)
        self._lowest = dataset.min_level + 1 if hasattr(dataset, "min_level") else 1
        return {name: data[kind, name].d for kind, name in fields}

    def columns(self, loaded: Columns) -> Columns:
        """Rename, and count levels as RAMSES does."""
        columns: Columns = {}
        for name, values in loaded.items():
            short = name.removeprefix("particle_")
            columns[self.NAMES.get(name, name if short == name else f"particles/{short}")] = values
        if "level" in columns:
            columns["level"] = columns["level"] + self._lowest
        return columns


class Osyris(Reader):
    """osyris."""

    module = "osyris"

    def prepare(self) -> None:
        """Import osyris."""
        import osyris

        self._osyris = osyris

    def load(self) -> Any:
        """Load everything, or the fields of the parts with positions and levels."""
        number, run = int(self.path.name[-5:]), str(self.path.parent)
        dataset = self._osyris.RamsesDataset(number, path=run)
        return dataset.load(self._selection())

    def columns(self, loaded: Any) -> Columns:
        """Take vectors apart and rename; values stay in osyris' units."""
        columns: Columns = {}
        for group, prefix in (("mesh", ""), ("part", "particles/")):
            if group not in loaded.groups:
                continue
            for name, array in loaded[group].items():
                plain = name.removeprefix("grav_")
                if hasattr(array, "nvec"):
                    for axis in "xyz"[: array.nvec]:
                        columns[f"{prefix}{plain}_{axis}"] = getattr(array, axis).values
                else:
                    columns[f"{prefix}{plain}"] = array.values
        return {name.removeprefix("position_"): column for name, column in columns.items()}

    def _selection(self) -> dict[str, Any]:
        sink_and_parts = {"sink": False, "part": "particles" in self.parts}
        if not self.cells:
            return {**sink_and_parts, "mesh": False}
        if {"hydro", "gravity"} <= set(self.parts):
            return sink_and_parts
        place = ["level", "dx", *(f"position_{axis}" for axis in "xyz")]
        gravity = ["potential", *(f"acceleration_{axis}" for axis in "xyz")]
        chosen = [f"grav_{name}" for name in gravity] if "gravity" in self.parts else []
        for part in ("hydro", "rt"):
            descriptor = self.path / f"{part}_file_descriptor.txt"
            if part in self.parts and descriptor.exists():
                lines = descriptor.read_text().splitlines()
                chosen += [line.split(",")[1].strip() for line in lines if line[:1] != "#"]
        return {**sink_and_parts, "mesh": [*place, *chosen]}


class Pynbody(Reader):
    """pynbody, with `threads` reading processes."""

    module = "pynbody"
    NAMES: ClassVar = {
        "rho": "density",
        "p": "pressure",
        "phi": "potential",
        "metal": "metallicity",
    }
    PARTICLES: ClassVar = {"iord": "identity", "level": "levelp", "tform": "birth_time"}
    VECTORS: ClassVar = {"pos": "position", "vel": "velocity"}

    def prepare(self) -> None:
        """Import pynbody and set its number of processes."""
        import pynbody
        from pynbody.snapshot import ramses

        ramses.multiprocess_num = self.threads or 1
        ramses.multiprocess = ramses.multiprocess_num > 1 and ramses.multiprocessing is not None
        self._pynbody = pynbody

    def load(self) -> Any:
        """Load every array on disk of the parts."""
        snapshot = self._pynbody.load(str(self.path))
        self._box = float(snapshot.properties["boxsize"].in_units(snapshot["pos"].units))
        loaded: dict[tuple[str, str], Any] = {}
        if self.cells:
            gas = snapshot.gas
            for name in self._gas_arrays(gas):
                loaded["gas", name] = gas[name]
        if "particles" in self.parts:
            for family in snapshot.families():
                if family.name != "gas":
                    rows = snapshot[family]
                    for name in rows.loadable_keys():
                        loaded[family.name, name] = rows[name]
        return loaded

    def columns(self, loaded: Any) -> Columns:
        """Join families, take vectors apart and rename; cell sizes become levels."""
        pieces: dict[str, list[np.ndarray]] = {}
        for (family, name), array in loaded.items():
            values, gas = np.asarray(array), family == "gas"
            if name in self.VECTORS:
                stem = "" if gas and name == "pos" else f"{self.VECTORS[name]}_"
                named = {
                    f"{stem}{axis}": values[:, i] for i, axis in enumerate("xyz"[: values.shape[1]])
                }
            elif gas and name == "smooth":
                named = {"level": np.rint(np.log2(self._box / values))}
            else:
                plain = (self.NAMES if gas else self.PARTICLES).get(name, name)
                named = {plain.replace("accg_", "acceleration_"): values}
            for plain, column in named.items():
                pieces.setdefault(plain if gas else f"particles/{plain}", []).append(column)
        return {name: np.concatenate(parts) for name, parts in pieces.items()}

    def _gas_arrays(self, gas: Any) -> list[str]:
        names = ["pos", "smooth"]
        keys = [name for name in gas.loadable_keys() if name not in names]
        radiation = [name for name in keys if name.startswith("rad_")]
        if "hydro" in self.parts:
            names += [name for name in keys if name not in radiation]
        if "gravity" in self.parts:
            blocks = self._pynbody.config_parser.get("ramses", "gravity-blocks").split(",")
            names += [name.strip() for name in blocks][: gas["pos"].shape[1] + 1]
        return names + (radiation if "rt" in self.parts else [])


READERS: dict[str, type[Reader]] = {
    "ambar": Ambar,
    "yt": Yt,
    "osyris": Osyris,
    "pynbody": Pynbody,
}
PEERS = ("yt", "osyris", "pynbody")
