"""How the study of meshes is done: settings that take turns, each in its library's process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from ambar_bench.mesh.meshes import Sizes
from ambar_bench.mesh.results import ArrayRow, Row, Study
from ambar_bench.mesh.rows import WAYS
from ambar_bench.mesh.ways import Way
from ambar_bench.process import Failure, Turns, Worker, take_turns

REAL_WAYS = ("vtk-zlib", "zvtk", "pv", "pv-shuffle", "ambar-fast", "ambar", "ambar-small")
"""The ways that the meshes other than grids are kept in."""
SERIES_WAYS = ("zvtk", "pv", "pv-shuffle", "ambar-fast", "ambar", "ambar-small")
"""The ways that time steps are kept in."""
BOX_WAYS = ("vtk-zlib", "zvtk", "pv", "pv-shuffle", "ambar", "ambar-reorder")
"""The ways that the cells in a box are read from."""
HIGH = 19
"""A level at which the meshes other than grids are written by pyvista-zstd as well."""
TOGETHER_BYTES = 1 << 30
"""Raw bytes up to which every library's process keeps its mesh; larger ones are made one by one."""


@dataclass(frozen=True)
class Setting:
    """A way of keeping a mesh with all that can be chosen."""

    way: str
    level: int | None
    threads: int

    @property
    def name(self) -> str:
        """What tables call it."""
        own = WAYS[self.way]
        high = "" if self.level == own.level else f", level {self.level}"
        return own.name + high


@dataclass
class Job:
    """A setting of a mesh, or one array's read, that takes turns in its library's process."""

    worker: Worker
    request: dict[str, Any]
    answers: list[dict[str, Any]] = field(default_factory=list)
    failed: str = ""

    @property
    def seconds(self) -> list[float]:
        """Of each turn."""
        return [answer["seconds"] for answer in self.answers]

    def turn(self) -> None:
        """Have it done once."""
        try:
            answer = self.worker.ask(json.dumps(self.request))
        except Failure as failure:
            self.failed = str(failure)
            return
        self.failed = answer.get("error", "")
        if not self.failed:
            self.answers.append(answer)


@dataclass
class Plan:
    """The settings of a study, its processes, and the tasks that they receive."""

    study: Study
    sizes: Sizes
    ways: list[type[Way]]
    scratch: Path
    report: Callable[[str], None]
    workers: dict[str, Worker] = field(default_factory=dict)

    def settings(self, mesh: str) -> list[Setting]:
        """Return the settings in which a mesh is written, each once."""
        study, every = self.study, self.study.threads
        whole = [way for way in self.ways if not way.box_only]
        if mesh not in study.grids:
            ways = [way for way in whole if way.key in REAL_WAYS]
            high = [Setting(way.key, HIGH, every) for way in ways if way.library == "pyvista-zstd"]
            return [Setting(way.key, way.level, every) for way in ways] + high
        found = []
        if "formats" in study.parts:
            found += [Setting(way.key, way.level, every) for way in whole]
        if "levels" in study.parts:
            ways = [way for way in self.ways if way.leveled]
            found += [Setting(way.key, level, every) for way in ways for level in study.levels]
        if "threads" in study.parts:
            ways = [way for way in self.ways if way.threaded]
            counts = thread_counts(every)
            found += [Setting(way.key, way.level, count) for way in ways for count in counts]
        return list(dict.fromkeys(found))

    def write_and_read(self, mesh: str, raw_bytes: int = 0) -> list[Row]:
        """Return the rows of a mesh, in all its settings; those that failed are noted."""
        jobs = {setting: self._job("mesh", mesh, setting) for setting in self.settings(mesh)}
        self._take_turns(mesh, jobs, raw_bytes)
        return [_row(mesh, setting, job.answers) for setting, job in jobs.items() if job.answers]

    def read_array(self, mesh: str, raw_bytes: int = 0) -> list[ArrayRow]:
        """Return the rows of one array's read; ways that cannot are noted."""
        return self._read_part(
            "array", mesh, [way for way in self.ways if not way.box_only], raw_bytes
        )

    def read_box(self, mesh: str) -> list[ArrayRow]:
        """Return the rows of reading the cells in a box; ways that cannot are noted."""
        return self._read_part("box", mesh, [way for way in self.ways if way.key in BOX_WAYS], 0)

    def _read_part(
        self, do: str, mesh: str, ways: list[type[Way]], raw_bytes: int
    ) -> list[ArrayRow]:
        settings = [Setting(way.key, way.level, self.study.threads) for way in ways]
        jobs = {setting: self._job(do, mesh, setting) for setting in settings}
        self._take_turns(mesh, jobs, raw_bytes)
        return [_array(mesh, setting, job.answers) for setting, job in jobs.items() if job.answers]

    def time_steps(self, mesh: str, steps: int) -> list[Row]:
        """Return the rows of a number of time steps of a mesh, and record those that failed."""
        ways = [way for way in self.ways if way.key in SERIES_WAYS]
        settings = [Setting(way.key, way.level, self.study.threads) for way in ways]
        jobs = {setting: self._job("series", mesh, setting, steps) for setting in settings}
        self._take_turns(mesh, jobs, 0)
        return [_row(mesh, setting, job.answers) for setting, job in jobs.items() if job.answers]

    def _job(self, do: str, mesh: str, setting: Setting, steps: int = 1) -> Job:
        library = WAYS[setting.way].library
        if library not in self.workers:
            folder = str(self.scratch / library)
            task = {"folder": folder, "sizes": self.sizes.to_dict()}
            self.workers[library] = Worker(task, "ambar_bench.mesh.worker")
        return Job(
            self.workers[library], {"do": do, "mesh": mesh, "steps": steps, **asdict(setting)}
        )

    def _take_turns(self, mesh: str, jobs: dict[Setting, Job], raw_bytes: int) -> None:
        """Give all their turns: all libraries together, or one by one where the mesh is large."""
        groups: dict[str, dict[str, Turns]] = {}
        for setting, job in jobs.items():
            key = WAYS[setting.way].library if raw_bytes > TOGETHER_BYTES else ""
            name = f"{mesh}, {setting.name}, threads: {setting.threads}"
            groups.setdefault(key, {})[name] = job
        for library, group in groups.items():
            take_turns(group, self.study.rounds, self.study.patience, self.report)
            if library:
                self.workers.pop(library).close()
        for setting, job in jobs.items():
            if job.failed:
                job.answers.clear()  # a way that fails at times has no figures
                what = {"array": "one array of the ", "box": "a box of the "}.get(
                    job.request["do"], ""
                )
                self.study.left_out[f"{setting.name}, {what}{mesh}"] = job.failed

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.close()
        self.workers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _row(mesh: str, setting: Setting, answers: list[dict[str, Any]]) -> Row:
    last = answers[-1]
    return Row(
        mesh=mesh,
        type=last["type"],
        way=setting.way,
        name=setting.name,
        ours=WAYS[setting.way].ours,
        level=setting.level,
        threads=setting.threads,
        raw_bytes=last["raw"],
        bytes=last["bytes"],
        files=last["files"],
        write=[answer["write"] for answer in answers],
        read=[answer["read"] for answer in answers],
        retyped=last["retyped"],
    )


def _array(mesh: str, setting: Setting, answers: list[dict[str, Any]]) -> ArrayRow:
    last = answers[-1]
    return ArrayRow(
        mesh=mesh,
        way=setting.way,
        name=setting.name,
        ours=WAYS[setting.way].ours,
        seconds=[answer["read"] for answer in answers],
        asked=last["asked"],
        bytes=last["bytes"],
        raw_bytes=last["raw"],
    )


def thread_counts(most: int) -> list[int]:
    """Return the numbers of threads that are measured: to 8 all, then every eighth."""
    return [count for count in range(1, most + 1) if count <= 8 or count % 8 == 0 or count == most]
