"""The study of scale: what single datasets cost in a collection of very many."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import ambar
from ambar_bench.collection.access import ACCESSES
from ambar_bench.collection.cases import find_case
from ambar_bench.collection.layouts import lacking
from ambar_bench.collection.turns import Plan, take_turns
from ambar_bench.files import size_and_files
from ambar_bench.machine import machine
from ambar_bench.process import Worker

STEPS = ("open", "name", "loop", "add")
PACKAGES = ("xarray", "atlas-python")


@dataclass
class Scaled:
    """What one system took, in seconds."""

    key: str
    name: str
    ours: bool
    bytes: int
    files: int
    write: list[float]
    """Of all datasets."""
    open: list[float]
    by_name: list[float]
    """Of a dataset by its name, after opening and others before it: medians of many."""
    first_by_name: list[float]
    """Of the first one after opening."""
    loop: list[float]
    """Of all datasets as xarray Datasets, one after the other, opening included."""
    add: list[float]
    """Of adding a dataset and committing it, the store being open: medians of a few."""
    other_attributes: int
    """How many of the datasets that were looked at had other attributes than they were given."""

    def median(self, what: str) -> float:
        """Return the median of `write`, `open`, ..."""
        times: list[float] = getattr(self, what)
        return statistics.median(times)


@dataclass
class Scale:
    """All systems, and what they were measured on."""

    case: str
    variables: list[str]
    shape: dict[str, int]
    dataset_bytes: int
    datasets: int
    rounds: int
    patience: float
    machine: dict[str, str]
    rows: list[Scaled] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it."""
        return asdict(self)


def run_scale(
    case: str,
    scratch: Path,
    *,
    datasets: int,
    n_vars: int | None = None,
    threads: int | None = None,
    rounds: int = 5,
    patience: float = 60,
    report: Callable[[str], None] = lambda _: None,
) -> Scale:
    """Write very many datasets, and measure opening, one by name, all in turn, and adding one.

    What is loaded and what was added is compared with what was generated.

    Raises
    ------
    KeyError
        If the case does not exist.
    ValueError
        If there are no datasets or variables to write.
    """
    chosen = find_case(case).with_variables(n_vars)
    if datasets < 1:
        raise ambar.InvalidError(f"expected 1 or more datasets, found {datasets}")
    scale = Scale(
        case=case,
        variables=chosen.names,
        shape={dimension.name: dimension.size for dimension in chosen.dimensions},
        dataset_bytes=chosen.dataset_bytes,
        datasets=datasets,
        rounds=rounds,
        patience=patience,
        machine=machine(PACKAGES),
    )
    plan = Plan(
        chosen,
        n_vars,
        datasets,
        threads or len(os.sched_getaffinity(0)),
        rounds,
        patience,
        scratch,
        report,
    )
    _measure(plan, scale)
    return scale


def _measure(plan: Plan, scale: Scale) -> None:
    """Write every system's store, do every step with all systems in turn, delete the stores."""
    layouts = {key: access.layout for key, access in ACCESSES.items()}
    failed: dict[str, str] = {}
    for key, layout in layouts.items():
        if missing := lacking(layout):
            failed[key] = f"{', '.join(missing)} not installed"
    with ExitStack() as stack:
        for key in layouts:
            stack.callback(shutil.rmtree, plan.scratch / key, ignore_errors=True)
        steps: dict[str, dict[str, Worker]] = {}
        sizes: dict[str, tuple[int, int]] = {}
        for do in ("write", *STEPS):
            running = [key for key in layouts if key not in failed]
            with ExitStack() as running_stack:
                steps[do] = {
                    key: running_stack.enter_context(plan.worker(do, key, key)) for key in running
                }
                take_turns(plan, {f"{do}, {key}": w for key, w in steps[do].items()})
            failed |= {key: f"{do}: {w.failed}" for key, w in steps[do].items() if w.failed}
            if do == "write":
                sizes = {key: size_and_files(plan.scratch / key) for key in running}
    for key, layout in layouts.items():
        if key in failed:
            scale.left_out[layout.name] = failed[key]
            continue
        of = {do: workers[key].seconds for do, workers in steps.items()}
        first = [answer["first"] for answer in steps["name"][key].answers]
        other = {
            number
            for do in STEPS
            for answer in steps[do][key].answers
            for number in answer["other_attributes"]
        }
        scale.rows.append(
            Scaled(
                key=key,
                name=layout.name,
                ours=layout.ours,
                bytes=sizes[key][0],
                files=sizes[key][1],
                write=of["write"],
                open=of["open"],
                by_name=of["name"],
                first_by_name=first,
                loop=of["loop"],
                add=of["add"],
                other_attributes=len(other),
            )
        )
