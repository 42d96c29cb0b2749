"""What is to be measured, and whose turn it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ambar.bench.collection.cases import Case
from ambar.bench.collection.process import Worker


@dataclass
class Plan:
    """What is measured at one number of datasets."""

    case: Case
    n_vars: int | None
    datasets: int
    threads: int
    rounds: int
    patience: float
    scratch: Path
    report: Callable[[str], None]

    def task(self, do: str, key: str, layout: str, **more: Any) -> dict[str, Any]:
        """Return what a worker is told: what to do with a row or layout, and where it lies."""
        return {
            "do": do,
            "key": key,
            "case": self.case.name,
            "n_vars": self.n_vars,
            "datasets": self.datasets,
            "threads": self.threads,
            "folder": str(self.scratch / layout),
            **more,
        }


def take_turns(plan: Plan, workers: dict[str, Worker]) -> None:
    """Give every worker one turn a round, until it fails or the study's patience with it ends.

    Each round starts with another worker.
    """
    everyone = list(workers.items())
    for number in range(plan.rounds):
        turn = number % max(len(everyone), 1)
        for name, worker in everyone[turn:] + everyone[:turn]:
            if worker.failed or sum(worker.seconds) >= plan.patience:
                continue
            plan.report(f"{plan.datasets} datasets, round {number + 1} of {plan.rounds}: {name}")
            worker.turn()


def size_and_files(folder: Path) -> tuple[int, int]:
    """Return the bytes of all files in a folder and beneath, and how many there are."""
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return sum(sizes), len(sizes)
