"""The procedure of the study of many ranks: versions take turns, each in separate processes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ambar_bench.files import size_and_files, size_on_disk
from ambar_bench.parallel.launch import Launcher, Task
from ambar_bench.parallel.results import Back, Row, Study
from ambar_bench.parallel.versions import Kind, Version
from ambar_bench.process import Failure, Turns, take_turns


@dataclass
class Job:
    """A version with one kind of data on some ranks, that takes turns."""

    launcher: Launcher
    task: Task
    ranks: int
    folder: Path
    answers: list[dict[str, Any]] = field(default_factory=list)
    failed: str = ""

    @property
    def seconds(self) -> list[float]:
        """Of each turn."""
        return [sum(answer[do]["seconds"] for do in DONE) for answer in self.answers]

    def turn(self) -> None:
        """Write, read and compare once; the files are deleted."""
        try:
            with_files = _in(self.folder)
            answer = self.launcher.run(self.task, self.ranks, with_files)
            for do in ("cold", "warm"):
                require(self.task, answer[do])
            answer["length"], answer["files"] = size_and_files(with_files)
            answer["bytes"] = size_on_disk(with_files)
            self.answers.append(answer)
        except Failure as failure:
            self.failed = str(failure)
            self.answers.clear()  # a version that fails at times has no figures
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def row(self) -> Row:
        """Return what was measured."""
        last = self.answers[-1]

        def each(do: str, what: str = "seconds") -> list[float]:
            return [answer[do][what] for answer in self.answers]

        return Row(
            version=self.task.version.key,
            data=self.task.data,
            ranks=self.ranks,
            doubles=self.task.doubles,
            bytes=last["bytes"],
            length=last["length"],
            files=last["files"],
            write=each("write"),
            write_cpu=each("write", "cpu"),
            cold=each("cold"),
            warm=each("warm"),
            read_cpu=each("cold", "cpu"),
            error=max(last["cold"]["error"], last["warm"]["error"]),
        )


DONE = ("write", "cold", "warm")
"""What a turn measures."""


def require(task: Task, read: dict[str, Any]) -> None:
    """Find out whether what was read is what was written.

    Raises
    ------
    Failure
        If it is not, bit for bit or within the error bound.
    """
    if task.version.kind is Kind.BOUNDED:
        if read["error"] > task.bound:
            raise Failure(f"it reads values with an error of {read['error']:g} over {task.bound:g}")
    elif read["differing"]:
        raise Failure(f"it reads {read['differing']} other values than were written")


def _in(folder: Path) -> Path:
    """Return a folder made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@dataclass
class Plan:
    """What is measured, and how ranks are started."""

    study: Study
    versions: list[Version]
    launcher: Launcher
    scratch: Path
    report: Callable[[str], None]

    def task(self, version: Version, data: str, do: str, writers: int = 0) -> Task:
        """Return what ranks are to do with a version."""
        text = version.kind is Kind.TEXT
        doubles = self.study.text_doubles if text else self.study.doubles
        return Task(version, data, doubles, self.study.bound, do, writers)

    def measure(self) -> list[Row]:
        """Return the rows of all versions, kinds of data and ranks; what failed is noted."""
        study, folder = self.study, self.scratch / "turn"
        jobs = [
            Job(self.launcher, self.task(version, data, ",".join(DONE)), ranks, folder)
            for data in study.data
            for ranks in study.ranks
            for version in self.versions
        ]
        named: dict[str, Turns] = {_name(job): job for job in jobs}
        take_turns(named, study.rounds, study.patience, self.report)
        for job in jobs:
            if job.failed:
                study.left_out[_name(job)] = job.failed
        return [job.row() for job in jobs if job.answers]

    def read_back(self, writers: int) -> list[Back]:
        """Return what other numbers of ranks read of the smooth data that `writers` wrote."""
        study, found = self.study, []
        data = study.data[-1]
        for version in self.versions:
            folder = _in(self.scratch / "back")
            try:
                self.launcher.run(self.task(version, data, "write"), writers, folder)
                for readers in study.readers:
                    self.report(f"{version.name}: written by {writers} ranks, read by {readers}")
                    task = self.task(version, data, "warm", writers)
                    read = self.launcher.run(task, readers, folder)["warm"]
                    found.append(_back(task, readers, read))
                    require(task, read)
            except Failure as failure:
                study.left_out[f"{version.name}, read by other ranks"] = str(failure)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return found


def _name(job: Job) -> str:
    return f"{job.task.version.name}, {job.task.data}, {job.ranks} ranks"


def _back(task: Task, readers: int, read: dict[str, Any]) -> Back:
    return Back(
        version=task.version.key,
        data=task.data,
        writers=task.writers,
        readers=readers,
        seconds=read["seconds"],
        differing=read["differing"],
        error=read["error"],
    )
