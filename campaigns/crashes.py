"""Crashes and power cuts: a store opens as the last acknowledged commit, or as a later one.

The campaign runs every way to write once and records its file operations. From the record it
makes images, which are the files that a crash may leave, and reads them. There are two models:

- ordered: the first n operations happened; of the last write possibly only some 512-byte sectors;
- strict POSIX: operations that were made durable happened. Any later operation may be lost, and a
  write in part. A name is durable when its folder was made durable; a file's length is part of
  its content.
"""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import ambar
from campaigns import preload, samples, writings
from campaigns.campaign import Run, removed
from campaigns.preload import Operation
from campaigns.worker import Worker, environment

SECTOR = 512
ABSENT = "absent"
_BY_OTHERS = frozenset(["export-mesh", "export-plotfile"])
"""VTK and the plotfile writer write these files without durability, so crashes may damage them."""
_BEGIN, _DONE = "begin", "done"


@dataclass(eq=False)
class File:
    """A file: its durable content, and later operations."""

    durable: bytes = b""
    pending: list[Operation] = field(default_factory=list)


@dataclass(eq=False)
class Folder:
    """A folder: its durable names, and later changes of names."""

    durable: dict[str, Node] = field(default_factory=dict)
    pending: list[tuple[int, str, Node | None]] = field(default_factory=list)
    now: dict[str, Node] = field(default_factory=dict)

    def change(self, operation: int, name: str, node: Node | None) -> None:
        """Give a name to a node, or remove the name if `node` is None."""
        self.pending.append((operation, name, node))
        _put(self.now, name, node)


Node: TypeAlias = File | Folder


def _put(names: dict[str, Node], name: str, node: Node | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def applied(data: bytes, operation: Operation, sectors: set[int] | None = None) -> bytes:
    """Return the content of a file after an operation, or after `sectors` of a write."""
    if operation.kind == "T":
        return data[: operation.length].ljust(operation.length, b"\0")
    made = bytearray(data.ljust(operation.offset + operation.length, b"\0"))
    for at in range(operation.length):
        if sectors is None:
            made[operation.offset : operation.offset + operation.length] = operation.data
            break
        if (operation.offset + at) // SECTOR in sectors:
            made[operation.offset + at] = operation.data[at]
    return bytes(made)


class Disk:
    """The content of a disk below a folder, after some operations."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self.root = Folder()
        self._inodes: dict[int, File] = {}
        self._count = 0

    def apply(self, operation: Operation) -> None:
        """Carry out an operation."""
        self._count += 1
        kind = operation.kind
        if kind in "WT":
            self._inodes[operation.inode].pending.append(operation)
        elif kind == "S":
            is_file = operation.inode > 0
            _sync(self._inodes[operation.inode] if is_file else self._find(operation.path))
        elif kind == "A":
            self.sync()
        elif kind == "C":
            made = self._inodes[operation.inode] = File()
            self._change(operation.path, made)
        elif kind == "M":
            self._change(operation.path, Folder())
        elif kind in "UD":
            self._change(operation.path, None)
        else:
            self._move(operation)

    def _move(self, operation: Operation) -> None:
        node, other = self._find(operation.path), None
        if operation.kind == "X":
            other = self._find(operation.to)
        if operation.kind != "L":
            self._change(operation.path, other)
        self._change(operation.to, node)

    def _change(self, path: str, node: Node | None) -> None:
        parent, _, name = path.rpartition("/")
        folder = self._find(parent)
        assert isinstance(folder, Folder)
        folder.change(self._count, name, node)

    def _find(self, path: str) -> Node:
        node: Node = self.root
        for part in path.removeprefix(self._root).strip("/").split("/"):
            if part:
                assert isinstance(node, Folder)
                node = node.now[part]
        return node

    def sync(self) -> None:
        """Make everything durable."""
        for file in self._inodes.values():
            _sync(file)
        waiting: list[Node] = [self.root]
        while waiting:
            node = waiting.pop()
            _sync(node)
            if isinstance(node, Folder):
                waiting += node.durable.values()

    def ordered(self, target: Path, torn: tuple[Operation, set[int]] | None = None) -> None:
        """Write the files to a folder after all operations; of a torn write only some sectors."""
        _write(self.root, target, lambda folder: folder.now, lambda file: _content(file, torn))

    def strict(self, target: Path, rng: np.random.Generator) -> None:
        """Write files that a power cut may leave to a folder; `rng` selects lost operations."""
        chance = float(rng.choice([0.0, 0.1, 0.5, 0.9, 1.0]))
        kept: dict[int, bool] = {}

        def names(folder: Folder) -> dict[str, Node]:
            found = dict(folder.durable)
            for operation, name, node in folder.pending:
                if kept.setdefault(operation, bool(rng.random() < chance)):
                    _put(found, name, node)
            return found

        def data(file: File) -> bytes:
            found = file.durable
            for operation in file.pending:
                choice = rng.random()
                if choice < chance:
                    found = applied(found, operation)
                elif choice < chance + 0.1 and operation.kind == "W":
                    found = applied(found, operation, some_sectors(operation, rng))
            return found

        _write(self.root, target, names, data)


def some_sectors(operation: Operation, rng: np.random.Generator) -> set[int]:
    """Return some of the sectors that a write touches."""
    first = operation.offset // SECTOR
    last = (operation.offset + max(1, operation.length) - 1) // SECTOR
    return {sector for sector in range(first, last + 1) if rng.random() < 0.5}


def _sync(node: Node) -> None:
    if isinstance(node, File):
        node.durable = _content(node)
    else:
        # A rename between folders is one change in each folder; each is durable by itself.
        for _, name, target in node.pending:
            _put(node.durable, name, target)
    node.pending.clear()


def _content(file: File, torn: tuple[Operation, set[int]] | None = None) -> bytes:
    data = file.durable
    for operation in file.pending:
        partly = torn is not None and operation is torn[0]
        data = applied(data, operation, torn[1] if torn is not None and partly else None)
    return data


def _write(folder: Folder, target: Path, names: Any, data: Any) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name, node in names(folder).items():
        if isinstance(node, Folder):
            _write(node, target / name, names, data)
        else:
            (target / name).write_bytes(data(node))


@dataclass
class Record:
    """The recorded operations of one way to write."""

    name: str
    operations: list[Operation]
    contents: list[str]
    """Digests of the store before the first and after each acknowledged commit."""
    first: int
    """The number of operations that prepare the folder, before the way to write begins."""


def record(folder: str, names: list[str]) -> None:
    """Run writings, and note a digest of each acknowledged commit; needs the preloaded library."""
    for name in names:
        Path(folder, name).mkdir()
    for name in names:
        writing = writings.WRITINGS[name]
        path = Path(folder, name, writing.target)
        preload.note(f"{_BEGIN} {name}")
        writing.prepare(path)
        _note(path, writing.commits)
        writing.act(path, partial(_note, path, writing.commits))


def _note(path: Path, commits: bool) -> None:
    preload.note(f"{_DONE} {_held(path, commits)}")


def _held(path: Path, commits: bool) -> str:
    """Return a digest of the content at a path."""
    if not path.exists():
        return ABSENT
    found = samples.content(path) if commits else writings.listing(path.parent)
    return samples.digest(writings.as_text(found).encode())


def recorded(run: Run, names: list[str]) -> list[Record]:
    """Run the writings in a child and return their records."""
    root, log = run.folder / "record", run.folder / "log"
    root.mkdir()
    library = str(preload.compiled(run.folder))
    code = f"from campaigns.crashes import record; record({str(root)!r}, {names!r})"
    variables = environment(LD_PRELOAD=library, CAMPAIGN_ROOT=str(root), CAMPAIGN_LOG=str(log))
    subprocess.run([sys.executable, "-c", code], check=True, env=variables)
    found: list[Record] = []
    for operation in preload.operations(log):
        if operation.kind == "N" and operation.path.startswith(_BEGIN):
            found.append(Record(operation.path.removeprefix(f"{_BEGIN} "), [], [], 0))
        elif found:
            now = found[-1]
            now.operations.append(operation)
            if operation.kind == "N":
                now.contents.append(operation.path.removeprefix(f"{_DONE} "))
                now.first = now.first or len(now.operations)
    return found


def disk_after(record: Record, root: Path, count: int) -> tuple[Disk, int]:
    """Return the disk after `count` operations, and the number of acknowledged commits."""
    disk, acknowledged = Disk(root / record.name), -1
    for number, operation in enumerate(record.operations[:count]):
        if operation.kind == "N":
            acknowledged += 1
        else:
            disk.apply(operation)
        if number + 1 == record.first:
            disk.sync()
    return disk, max(0, acknowledged)


def look(path: str, commits: bool) -> str:
    """Return a digest of the content at a path, or the error that refuses it."""
    try:
        return _held(Path(path), commits)
    except (ambar.AmbarError, OSError):
        return f"refused: {traceback.format_exc()[-600:]}"


def written_again(path: str) -> str:
    """Append to an image and remove the addition again; return a digest of the store."""
    try:
        with ambar.create(path, "a") as writer:
            writer.create_group("made after the crash")
        with ambar.create(path, "a") as writer:
            writer.remove("made after the crash")
        return _held(Path(path), commits=True)
    except (ambar.AmbarError, OSError):
        return f"refused: {traceback.format_exc()[-600:]}"


def images(records: list[Record], run: Run) -> Iterator[tuple[int, Record, int, bool]]:
    """Yield cases: a record, a number of operations, and whether the model is strict.

    Even cases traverse all prefixes of the records in random order, in the ordered model. Odd cases
    are random prefixes, in the strict model if the writing commits to a store.
    """
    prefixes = [
        (record, count)
        for record in records
        for count in range(record.first, len(record.operations) + 1)
    ]
    order = run.random(0).permutation(len(prefixes))
    for case in run.cases():
        at = case // 2 if case % 2 == 0 else int(run.random(case).integers(len(prefixes)))
        record, count = prefixes[order[at % len(order)]]
        is_strict = case % 2 == 1 and writings.WRITINGS[record.name].commits
        yield case, record, count, is_strict


def run(run: Run) -> None:
    """Crash at every operation of every way to write."""
    slow = writings.SLOW if run.seconds < 30 else set()
    records = recorded(run, [n for n in writings.WRITINGS if n not in {*slow, *_BY_OTHERS}])
    for found in records:
        run.count("operations", len(found.operations) - found.first)
    run.begin()
    with Worker(20) as worker:
        for case, found, count, is_strict in images(records, run):
            rng = run.random(case)
            target = removed(run.folder / "image")
            how = _make(found, run.folder / "record", count, is_strict, target, rng)
            run.count("strict images" if is_strict else "ordered images")
            _check(run, case, worker, found, how[1], target, f"{found.name}, {how[0]}")


def _make(
    record: Record, root: Path, count: int, is_strict: bool, target: Path, rng: np.random.Generator
) -> tuple[str, int]:
    """Write an image; return its description and the number of acknowledged commits."""
    disk, acknowledged = disk_after(record, root, count)
    last = record.operations[count - 1]
    if is_strict:
        disk.strict(target, rng)
        return f"strict, after operation {count}", acknowledged
    torn = None
    if last.kind == "W" and rng.random() < 0.7:
        torn = last, some_sectors(last, rng)
    disk.ordered(target, torn)
    return f"ordered{', torn' if torn else ''}, after operation {count}", acknowledged


def _check(
    run: Run, case: int, worker: Worker, found: Record, acknowledged: int, image: Path, how: str
) -> None:
    writing = writings.WRITINGS[found.name]
    path = image / writing.target
    if not writing.commits:
        return _check_files(run, case, found, image, how)
    allowed = found.contents[acknowledged : acknowledged + 2]
    answer = worker.call("crashes.look", str(path), True)
    held = str(answer.value or answer.died or answer.error)
    if held not in allowed and not (ABSENT in allowed and held.startswith("refused")):
        which = found.contents.index(held) if held in found.contents else held
        text = f"{how}: {acknowledged} commits were acknowledged, found is {which}"
        return run.finding(case, text, image)
    if held in allowed and held != ABSENT and case % 4 == 0:
        run.count("written again")
        answer = worker.call("crashes.written_again", str(path))
        if answer.value != held:
            text = f"{how}: writing on: {answer.value or answer.died or answer.error}"
            run.finding(case, text, image)
    return None


def _check_files(run: Run, case: int, found: Record, image: Path, how: str) -> None:
    """Check that exported files that have their names are complete."""
    final, _ = disk_after(found, run.folder / "record", len(found.operations))
    whole = removed(run.folder / "final")
    final.ordered(whole)
    there, complete = writings.listing(image), writings.listing(whole)
    target = writings.WRITINGS[found.name].target
    for name, digest in there.items():
        if name in complete and name.startswith(target) and digest != complete[name]:
            run.finding(case, f"{how}: {name} is not complete", image)
