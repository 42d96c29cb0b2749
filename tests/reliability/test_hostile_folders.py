"""Hostile directory stores: links out of the folder, FIFOs in the place of files."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers.command_line import run
from tests.helpers.independent_reader import crc32c


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    """Opening a FIFO waited for a writer that never came: the alarm ends the run then."""
    before = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A directory store with an array of several files."""
    path = tmp_path / "store.ambar"
    with ambar.create(path, directory=True, fsync=False) as writer:
        writer.create_array("x", np.arange(1000.0), chunks=(100,), shards=(500,))
    return path


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file that has nothing to do with the store."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "diary.txt").write_text("mine")
    return folder / "diary.txt"


def reseal(store: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Change the lines of the list of entries, and make its checksum right."""
    place = store / ".ambar" / "commit"
    lines = change(place.read_text().splitlines()[:-1])
    entries = sum(not line.startswith("removed ") for line in lines[1:])
    first = lines[0].split(" ")
    first[8], first[10] = str(entries), str(len(lines) - 1 - entries)
    body = "\n".join([" ".join(first), *lines[1:], ""])
    place.write_text(f"{body}crc32c {crc32c(body.encode()):08x}\n")


def append(path: Path) -> None:
    ambar.create(path, "a").close()


@pytest.mark.parametrize("act", [append, ambar.repair, ambar.compact])
def test_writers_remove_nothing_through_linked_folders(
    act: Callable[[Path], object], store: Path, victim: Path
) -> None:
    """A list with "removed lnk/diary.txt" made append() and repair() delete the file there."""
    (store / "lnk").symlink_to(victim.parent, target_is_directory=True)
    reseal(store, lambda lines: [*lines, "removed lnk/diary.txt"])
    with pytest.raises(ambar.UnsupportedError, match="symbolic link"):
        act(store)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("act", [append, ambar.repair])
def test_writers_move_nothing_through_linked_folders(
    act: Callable[[Path], object], store: Path, victim: Path
) -> None:
    """An entry that waits was moved to its key through a link, over a file outside."""
    (store / "lnk").symlink_to(victim.parent, target_is_directory=True)
    (store / ".ambar" / "new-77").write_bytes(b"hers")

    def add(lines: list[str]) -> list[str]:
        head = lines[0].split(" ")
        head[6] = "78"
        entries = [*lines[1:], "00000000 - 4 77 lnk/diary.txt"]
        return [" ".join(head), *sorted(entries, key=lambda line: line.split(" ", 4)[4])]

    reseal(store, add)
    with pytest.raises(ambar.UnsupportedError, match="symbolic link"):
        act(store)
    assert victim.read_text() == "mine"


def test_entries_that_are_links_are_refused(store: Path, tmp_path: Path) -> None:
    """Another program's folder is read as its files are; a link could lead to any file."""
    outside = tmp_path / "outside"
    shutil.move(store / "x", outside)
    (store / "x").symlink_to(outside, target_is_directory=True)
    with pytest.raises(ambar.UnsupportedError, match="symbolic link"):
        ambar.open_store(store)["x"][:]
    shutil.rmtree(store / ".ambar")
    with pytest.raises(ambar.UnsupportedError, match="symbolic link"):
        ambar.open_store(store)["x"][:]
    # The folder itself may be a link.
    (store / "x").unlink()
    shutil.move(outside, store / "x")
    (tmp_path / "link.ambar").symlink_to(store, target_is_directory=True)
    assert len(ambar.open_store(tmp_path / "link.ambar")["x"][:]) == 1000


def special_files(folder: Path) -> dict[str, Path]:
    os.mkfifo(folder / "fifo")
    listening = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(folder)  # addresses of sockets are short
    try:
        listening.bind("socket")
    finally:
        os.chdir(before)
        listening.close()
    return {"fifo": folder / "fifo", "socket": folder / "socket"}


@pytest.mark.parametrize("kind", ["fifo", "socket"])
@pytest.mark.parametrize("name", ["x/c/0", "zarr.json", ".ambar/commit", ".ambar/lock"])
def test_special_files_in_a_store_are_errors_without_waiting(
    kind: str, name: str, store: Path, tmp_path: Path
) -> None:
    """Reading a FIFO in the place of an entry hung."""
    special = special_files(tmp_path)[kind]
    (store / name).unlink()
    shutil.move(special, store / name)
    with pytest.raises((ambar.CorruptError, ambar.UnsupportedError), match="FIFO|socket|missing"):
        if name == ".ambar/lock":
            ambar.create(store, "a")
        else:
            ambar.open_store(store)["x"][:]


@pytest.mark.parametrize("kind", ["fifo", "socket"])
@pytest.mark.parametrize("act", [ambar.open, append, ambar.repair, ambar.compact])
def test_special_files_are_not_stores(
    kind: str, act: Callable[[Path], object], tmp_path: Path
) -> None:
    """Opening a FIFO as a store hung."""
    special = special_files(tmp_path)[kind]
    with pytest.raises(
        ambar.AmbarError, match="FIFO|pipe|found a socket|path that is free or a file"
    ):
        act(special)


@pytest.mark.parametrize(("kind", "found"), [("fifo", "a pipe"), ("socket", "a socket")])
@pytest.mark.parametrize("suffix", ["", ".ambar", ".nc", ".vtu"])
def test_special_files_are_refused_without_waiting(
    kind: str, found: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`ambar info` of a FIFO waited for its writer."""
    special = special_files(tmp_path)[kind]
    special = special.rename(special.with_suffix(suffix))
    for call in (
        ("info", special),
        ("convert", special, tmp_path / "x.ambar"),
        ("plot", special),
        ("compare", special, special),
        ("watch", special),
    ):
        code, _, err = run(capsys, *call)
        assert code == 2, call
        assert f"{special}: expected a file, found {found}" in err
    assert not (tmp_path / "x.ambar").exists()


def change(path: Path, case: str) -> None:
    """Delete, rename, replace or truncate a store, as another program does."""
    if case == "delete":
        path.unlink()
    elif case == "rename":
        path.rename(path.with_suffix(".other"))
    elif case == "replace":
        path.with_suffix(".other").write_bytes(b"other")
        path.with_suffix(".other").rename(path)
    else:
        os.truncate(path, 100)


@pytest.mark.parametrize("case", ["delete", "rename", "replace", "truncate"])
def test_commits_to_files_that_other_programs_changed_fail(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    writer = ambar.create(path, fsync=False)
    writer.create_array("a", np.arange(1000.0))
    writer.commit()
    change(path, case)
    writer.create_array("b", np.arange(1000.0))
    error = ambar.CorruptError if case == "truncate" else ambar.BusyError
    with pytest.raises(error, match="another program"):
        writer.commit()


@pytest.mark.parametrize("directory", [False, True])
def test_replacing_and_compacting_keep_the_mode(directory: bool, tmp_path: Path) -> None:
    """A private file of mode 0600 became readable for everybody when it was overwritten."""
    path = tmp_path / "private.ambar"
    with ambar.create(path, directory=directory, fsync=False) as writer:
        writer.create_array("x", np.arange(10))
    mode = 0o700 if directory else 0o600
    path.chmod(mode)
    with ambar.create(path, "w", directory=directory, fsync=False) as writer:
        writer.create_array("x", np.arange(20))
    assert stat.S_IMODE(path.stat().st_mode) == mode
    ambar.compact(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    if os.getuid() == 0:
        os.chown(path, 1234, 4321)
        with ambar.create(path, "w", directory=directory, fsync=False) as writer:
            writer.create_array("x", np.arange(20))
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 4321)


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    """What replaces nothing has the mode that any new file has."""
    program = (
        "import os, sys, ambar\n"
        "os.umask(0o027)\n"
        "with ambar.create(sys.argv[1]) as writer:\n"
        "    writer.create_array('x', [1.0])\n"
    )
    path = tmp_path / "new.ambar"
    subprocess.run([sys.executable, "-c", program, path], check=True, timeout=300)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
