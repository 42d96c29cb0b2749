"""Hostile directory stores: nothing outside of the store changes, and nothing hangs.

Folders, entries, lists, locks and temporary files are replaced with FIFOs, sockets, and symbolic
links to files of a victim. Resealed lists name paths outside of the store. Readers and writers then
open the store.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ambar
from campaigns import samples, seal, writings
from campaigns.campaign import Run, removed
from campaigns.worker import Worker

_RAISED = re.compile(r"^([\w.]+): ", re.MULTILINE)
_KNOWN = re.compile(r"ambar\.|OSError|(File|IsA|NotA|Permission|Interrupted)\w*Error")
VICTIMS = ("diary.txt", "c/0", "zarr.json", "commit")


def _victim(folder: Path) -> None:
    for name in VICTIMS:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"precious: {name}\n")


def _link_entry(store: Path, victim: Path, rng: np.random.Generator) -> None:
    file = _entry(store, rng)
    file.unlink()
    file.symlink_to(victim / str(rng.choice(VICTIMS)))


def _link_folder(store: Path, victim: Path, rng: np.random.Generator) -> None:
    folders = sorted(p for p in store.rglob("*") if p.is_dir() and p.name != ".ambar")
    removed(folders[rng.integers(len(folders))]).symlink_to(victim)


def _link_record(store: Path, victim: Path, rng: np.random.Generator) -> None:
    name = str(rng.choice(["commit", "lock", "commit-next", "new-0", "new-7", "new-99"]))
    removed(store / ".ambar" / name).symlink_to(victim / str(rng.choice(VICTIMS)))


def _link_records(store: Path, victim: Path, rng: np.random.Generator) -> None:
    if rng.random() < 0.5:
        (store / ".ambar" / "commit").replace(victim.parent / "list")
        (victim / "commit").write_bytes((victim.parent / "list").read_bytes())
    removed(store / ".ambar").symlink_to(victim)


def _link_new(store: Path, victim: Path, rng: np.random.Generator) -> None:
    ending = str(rng.choice(["", "-folder"]))
    store.with_name(f".{store.name}.ambar-new{ending}").symlink_to(
        victim if ending else victim / "diary.txt"
    )
    store.with_name(f".other.ambar.ambar-new{ending}").symlink_to(
        victim if ending else victim / "diary.txt"
    )


def _special(store: Path, _: Path, rng: np.random.Generator) -> None:
    places = [_entry(store, rng), store / ".ambar" / "commit", store / ".ambar" / "lock"]
    places += [
        store / "zarr.json",
        store / ".ambar" / "commit-next",
        store / ".ambar" / "new-3",
        store,
    ]
    place = removed(places[rng.integers(len(places))])
    if rng.random() < 0.6:
        os.mkfifo(place)
        return
    here = Path.cwd()
    os.chdir(place.parent)  # the system limits the length of a socket's path
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(place.name)
    os.chdir(here)


def _list(store: Path, victim: Path, rng: np.random.Generator) -> None:
    """Seal a list that removes or names files outside of the store."""
    path = store / ".ambar" / "commit"
    lines = path.read_text().splitlines()[:-1]
    outside = [
        "lnk/diary.txt",
        "../victim/diary.txt",
        str(victim / "diary.txt"),
        "lnk/c/0",
        "a/../../x",
    ]
    wanted = str(outside[rng.integers(len(outside))])
    (store / "lnk").symlink_to(victim)
    head = lines[0].split(" ")
    if rng.random() < 0.6:
        lines.append(f"removed {wanted}")
        head[10] = str(int(head[10]) + 1)
    else:
        at = int(rng.integers(1, len(lines)))
        lines[at] = " ".join([*lines[at].split(" ")[:4], wanted])
        if rng.random() < 0.5:
            put = lines[at].split(" ")[3]
            (store / ".ambar" / f"new-{put}").write_text("an intruder")
        lines[1:] = sorted(lines[1:], key=lambda line: line.split(" ", 4)[-1].encode())
    lines[0] = " ".join(head)
    path.write_bytes(seal.sealed_list("".join(f"{line}\n" for line in lines).encode()))


def _entry(store: Path, rng: np.random.Generator) -> Path:
    files = sorted(p for p in store.rglob("*") if p.is_file() and ".ambar" not in p.parts[-2:-1])
    return files[rng.integers(len(files))]


ATTACKS: dict[str, Callable[[Path, Path, np.random.Generator], None]] = {
    "an entry is a link": _link_entry,
    "a folder is a link": _link_folder,
    "a record is a link": _link_record,
    "the records are a link": _link_records,
    "a temporary name is a link": _link_new,
    "a FIFO or a socket": _special,
    "the list names what is outside": _list,
}


def read(path: str) -> None:
    """Read everything."""
    samples.content(Path(path))


def verify(path: str) -> None:
    """Verify every checksum."""
    ambar.Store._open(path).verify()


def append(path: str) -> None:
    """Change arrays, remove some, and commit twice."""
    for step in range(2):
        with ambar.create(path, "a") as writer:
            for name in ("noise", "g/smooth", "text"):
                writer.create_array(name, np.arange(20.0) + step)
            if not step:
                writer.remove("bytes")


def repair(path: str) -> None:
    """Repair the store."""
    ambar.repair(path)


def compact(path: str) -> None:
    """Compact the store."""
    ambar.compact(path)


def overwrite(path: str) -> None:
    """Replace the store with another one."""
    for directory in (True, False):
        with ambar.create(path, "w", directory=directory) as writer:
            writer.create_array("a", np.arange(9))


def create_beside(path: str) -> None:
    """Write new stores beside it."""
    for directory in (True, False):
        with ambar.create(Path(path).with_name("other.ambar"), "w", directory=directory) as writer:
            writer.create_array("a", np.arange(9))


ACTIONS: dict[str, Callable[[str], None]] = {
    act.__name__: act for act in (read, verify, append, repair, compact, overwrite, create_beside)
}


def run(run: Run) -> None:
    """Attack directory stores, then read and write them."""
    made = run.folder / "made.ambar"
    samples.arrays(made, directory=True)
    image = seal.read(made)
    attacks, actions = list(ATTACKS), list(ACTIONS)
    with Worker(10) as worker:
        for case in run.cases():
            rng = run.random(case)
            place = removed(run.folder / "case")
            store, victim = place / "x.ambar", place / "victim"
            _victim(victim)
            seal.write(store, image)
            (store / ".ambar" / "lock").touch()
            attack = attacks[case % len(attacks)]
            ATTACKS[attack](store, victim, rng)
            before = writings.listing(victim)
            for action in rng.permutation(actions)[:3]:
                run.count("actions")
                answer = worker.call(f"hostile.{action}", str(store))
                _judge(run, case, f"{attack}, {action}", answer)
                if writings.listing(victim) != before:
                    run.finding(case, f"{attack}, {action}: files outside changed")
                    break


def _judge(run: Run, case: int, what: str, answer: Any) -> None:
    if answer.died is not None:
        run.finding(case, f"{what}: {answer.died}")
    elif answer.error is not None:
        raised = _RAISED.findall(answer.error)
        if not raised or not _KNOWN.match(raised[-1]):
            run.finding(case, f"{what}: {answer.error[-600:]}")
        run.count("refused")
