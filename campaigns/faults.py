"""Failing system calls: each call reports them, and the last commit stays unchanged.

The campaign counts the operations that change a file, a length or a name, or make data durable.
For every way to write, the n-th operation fails with EIO, or it and all later writes fail with
ENOSPC. The call must raise OSError or an error of ambar. Operations that only tidy up (shortening
a file, removing a name) may fail without an error if everything was written.

A failed call may leave files that the next writer of that store removes: `.NAME.ambar-new`,
`.NAME.ambar-new-folder`, and `new-N` and `commit-next` in a directory store's folder `.ambar`.
"""

from __future__ import annotations

import errno
import re
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import ambar
from campaigns import preload
from campaigns.campaign import Run, removed
from campaigns.crashes import look
from campaigns.worker import Worker
from campaigns.writings import SLOW, WRITINGS, Writing, listing

ERRORS = ((errno.EIO, False), (errno.ENOSPC, True))
_LEFT = re.compile(r"\.[^/]+\.ambar-new(-folder)?(/.*)?|[^/]+/\.ambar/(new-\d+|commit-next|lock)")
_TIDYING = "TUD"


@dataclass
class Outcome:
    """The outcome of one fault."""

    kind: str = ""
    """The kind of the operation that failed, as in preload.c; "" if there were fewer operations."""
    wrong: list[str] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    """Digests of the store before the first and after each commit."""
    names: set[str] = field(default_factory=set)
    """The files that exist at the end."""


def inject(folder: str, name: str, number: int, error: int, stays: bool) -> Outcome:
    """Make one operation of a writing fail, in a process with the preloaded library."""
    if name not in _CLEAN:
        _CLEAN[name], _ = _attempt(folder, name, 0, 0, False)
    outcome, raised = _attempt(folder, name, number, error, stays)
    if raised is None and outcome.names != _CLEAN[name].names and outcome.kind not in _TIDYING:
        outcome.wrong.append(f"files are missing: {_CLEAN[name].names - outcome.names}")
    if raised is None and outcome.kind and outcome.kind not in _TIDYING:
        outcome.wrong.append("no error was raised")
    if raised is not None and not isinstance(raised, (OSError, ambar.AmbarError)):
        outcome.wrong.append(f"a foreign error: {_text(raised)}")
    if raised is not None and not outcome.kind:
        outcome.wrong.append(f"failed without a fault: {_text(raised)}")
    return outcome


_CLEAN: dict[str, Outcome] = {}
"""The outcome of each writing without faults."""


def _attempt(
    folder: str, name: str, number: int, error: int, stays: bool
) -> tuple[Outcome, BaseException | None]:
    writing = WRITINGS[name]
    place = removed(Path(folder, name))
    place.mkdir()
    path = place / writing.target
    outcome, raised = Outcome(), None
    states = outcome.states
    try:
        preload.arm(0)
        writing.prepare(path)
        prepared = set(listing(place))
        states.append(look(str(path), writing.commits))
        preload.arm(number, error, stays)
        writing.act(path, lambda: states.append(look(str(path), writing.commits)))
    except BaseException as found:
        raised = found
    outcome.kind = preload.failed()
    preload.arm(0)
    outcome.names = set(listing(place))
    held = look(str(path), writing.commits) if outcome.kind and writing.commits else ""
    if raised is None and held and held != _CLEAN[name].states[-1]:
        outcome.wrong.append(f"no error was raised; found is {held}")
    if raised is not None and outcome.kind:
        allowed = [states[-1], *_CLEAN[name].states[len(states) : len(states) + 1]]
        if writing.commits and held not in allowed:
            outcome.wrong.append(f"{len(states) - 1} commits were acknowledged; found is {held}")
        left = [n for n in outcome.names - prepared if not _may_stay(n, writing)]
        if left and outcome.kind not in _TIDYING:
            outcome.wrong.append(f"files are left: {sorted(left)[:3]}")
    return outcome, raised


def _may_stay(name: str, writing: Writing) -> bool:
    """Return whether a file may exist after an error: in the target, or a known leftover."""
    inside = name == writing.target or name.startswith(f"{writing.target}/")
    return (inside and "/.ambar-" not in name) or bool(_LEFT.fullmatch(name))


def _text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-900:]


def run(run: Run) -> None:
    """Fail each operation of every way to write, one after the other."""
    library = str(preload.compiled(run.folder))
    root = run.folder / "stores"
    root.mkdir()
    names = [n for n in WRITINGS if run.seconds >= 30 or n not in SLOW]
    ways = [(name, *how) for name in names for how in ERRORS]
    exhausted: set[tuple[str, int, bool]] = set()
    fault = run.folder / "fault"
    fault.write_bytes(bytes(64))
    variables = {
        "LD_PRELOAD": library,
        "CAMPAIGN_ROOT": str(root),
        # `ambar.export` starts processes, whose operations count and fail, too.
        "CAMPAIGN_FAULT": str(fault),
    }
    with Worker(60, 4 << 30, **variables) as worker:
        for case in run.cases():
            way, number = ways[case % len(ways)], 1 + case // len(ways)
            if len(exhausted) == len(ways):
                return
            if way in exhausted:
                continue
            name, error, stays = way
            answer = worker.call("faults.inject", str(root), name, number, error, stays)
            outcome = answer.value or Outcome("?", [answer.died or answer.error or ""])
            what = (
                f"{name}, operation {number} ({outcome.kind}) fails with {errno.errorcode[error]}"
            )
            for wrong in outcome.wrong:
                run.finding(case, f"{what}: {wrong}")
            if outcome.kind:
                run.count("faults")
            else:
                exhausted.add(way)
