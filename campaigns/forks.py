"""Forks during first reads and beside open writers: no child hangs, reads wrong data or commits.

A process starts threads that read for the first time, which starts the library's thread pools, and
forks meanwhile. Each child reads the store. In every fourth case the parent has an open writer:
uncommitted data stays invisible when children end, and only the parent commits it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np

import ambar
import ambar.store.array
import ambar.store.store  # imported before any fork, because a child inherits import locks
from campaigns import samples
from campaigns.campaign import Run, removed
from campaigns.worker import Worker

CHILDREN = 12
LIMIT = 20
"""Seconds after which a child counts as hanging."""


def storm(path: str, writes: bool) -> list[str]:
    """Fork a process that forks children; return descriptions of all failures."""
    reading, writing = os.pipe()
    parent = os.fork()
    if not parent:
        os.close(reading)
        wrong = ["the parent failed"]
        with contextlib.suppress(BaseException):
            wrong = _beside_a_writer(path) if writes else _while_reading(path)
        os.write(writing, "\n".join(wrong).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        text = stream.read().decode()
    os.waitpid(parent, 0)
    return text.splitlines()


def _read(path: str, expected: dict[str, str]) -> int:
    return 0 if samples.content(Path(path)) == expected else 3


def _child(path: str, expected: dict[str, str]) -> int:
    child = os.fork()
    if child:
        return child
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(LIMIT)
    code = 4
    with contextlib.suppress(BaseException):
        code = _read(path, expected)
    os._exit(code)


def _ended(children: list[int]) -> list[str]:
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    said = {3: "a child read other values", 4: "a child failed to read"}
    said[-signal.SIGALRM] = f"a child hung for {LIMIT} s"
    return [said.get(code, f"a child ended with {code}") for code in codes if code]


def _while_reading(path: str) -> list[str]:
    expected = dict(line.split("\t") for line in Path(f"{path}.expected").read_text().splitlines())
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            store = ambar.Store._open(path)
            for name in store:
                store[name].read()

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(CHILDREN):
        children.append(_child(path, expected))
        time.sleep(0.001)
    stop.set()
    for thread in threads:
        thread.join()
    return _ended(children)


def _beside_a_writer(path: str) -> list[str]:
    before = samples.content(Path(path))
    writer = ambar.create(path, "a")
    writer.create_array("new", np.arange(50_000.0), chunks=(5_000,))
    wrong = _ended([_child(path, before) for _ in range(CHILDREN // 4)])
    if samples.content(Path(path)) != before:
        wrong.append("a child committed what its parent wrote")
    writer.commit()
    writer.close()
    after = samples.content(Path(path))
    if after.keys() - before.keys() != {"new", "new attributes"}:
        wrong.append("the parent's commit is not what it wrote")
    return wrong


def run(run: Run) -> None:
    """Fork while threads read, and beside an open writer."""
    made = run.folder / "made.ambar"
    with ambar.create(made, fsync=False) as writer:
        for number in range(6):
            values = np.random.default_rng(number).random(30_000)
            writer.create_array(f"a{number}", values, chunks=(3_000,))
    expected = "".join(f"{key}\t{value}\n" for key, value in samples.content(made).items())
    with Worker(4 * LIMIT, 16 << 30) as worker:
        for case in run.cases():
            path = removed(run.folder / "case.ambar")
            path.write_bytes(made.read_bytes())
            Path(f"{path}.expected").write_text(expected)
            writes = case % 4 == 3
            run.count("children", CHILDREN // 4 if writes else CHILDREN)
            answer = worker.call("forks.storm", str(path), writes)
            for wrong in {*(answer.value or []), answer.died, answer.error} - {None}:
                run.finding(case, f"{'beside a writer' if writes else 'while reading'}: {wrong}")
