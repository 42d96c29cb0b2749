"""What is to be measured, and whose turn it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ambar_bench import process
from ambar_bench.collection.cases import Case
from ambar_bench.process import Worker


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

    def worker(self, do: str, key: str, layout: str, **more: Any) -> Worker:
        """Return a worker for a row or layout, which receives tasks and the path of the files."""
        task = {
            "do": do,
            "key": key,
            "case": self.case.name,
            "n_vars": self.n_vars,
            "datasets": self.datasets,
            "threads": self.threads,
            "folder": str(self.scratch / layout),
            **more,
        }
        return Worker(task, "ambar_bench.collection.worker")


def take_turns(plan: Plan, workers: dict[str, Worker]) -> None:
    """Give every worker one turn a round, as the plan's patience allows."""

    def report(text: str) -> None:
        plan.report(f"{plan.datasets} datasets, {text}")

    process.take_turns(workers, plan.rounds, plan.patience, report)
