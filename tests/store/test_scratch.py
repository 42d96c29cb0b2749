"""What is complete gets its name, and replaces nothing without permission."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

import ambar
from ambar._util import output_files as scratch
from ambar._util.output_files import name_target_on_full_disk, published
from tests.helpers.sample_outputs import output


def _make(path: Path, kind: str) -> None:
    if kind == "file":
        path.write_text("new")
    else:
        path.mkdir()
        (path / "part").write_text("new")


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("there", ["file", "folder", "dangling"])
@pytest.mark.parametrize("later", [False, True])
def test_nothing_is_replaced(tmp_path: Path, kind: str, there: str, later: bool) -> None:
    target = tmp_path / "target"

    def occupy() -> None:
        if there == "file":
            target.write_text("old")
        elif there == "dangling":
            target.symlink_to("nowhere")
        else:
            target.mkdir()
            (target / "old").write_text("old")

    if not later:
        occupy()
    with pytest.raises(FileExistsError) as found, published(target) as path:
        _make(path, kind)
        occupy()
    assert found.value.filename == str(target)
    assert [path.name for path in tmp_path.iterdir()] == ["target"]
    assert there != "file" or target.read_text() == "old"


@pytest.mark.parametrize("links", [False, True])
@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("there", ["file", "folder"])
def test_what_appears_at_the_last_moment_stays(
    tmp_path: Path, kind: str, there: str, links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(_self: Path, _target: Path) -> None:
        raise OSError(errno.EPERM, "no links")

    if not links:
        monkeypatch.setattr(Path, "hardlink_to", no_link)
    target = tmp_path / "target"
    monkeypatch.setattr(scratch, "_check", lambda *_, **__: None)
    with pytest.raises(FileExistsError) as found, published(target) as path:
        _make(path, kind)
        _make(target, there)
        made = target / "part" if there == "folder" else target
        made.write_text("old")
    assert found.value.filename == str(target)
    assert made.read_text() == "old"


@pytest.mark.parametrize(
    ("kind", "there"),
    [
        ("file", "nothing"),
        ("file", "file"),
        ("folder", "nothing"),
        ("folder", "empty"),
        ("folder", "export"),
    ],
)
def test_what_is_complete_gets_its_name(tmp_path: Path, kind: str, there: str) -> None:
    target = tmp_path / ("n" * 255)
    if there == "file":
        target.write_text("old")
    elif there != "nothing":
        target.mkdir()
    if there == "export":
        (target / "a.nc").write_text("old")
    with published(target, replace=there in ("file", "export")) as path:
        _make(path, kind)
        if there == "export":
            (path / "a.nc").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert (target if kind == "file" else target / "part").read_text() == "new"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_files_that_are_not_written_again_stay(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "a.nc").write_text("old")
    with (
        pytest.raises(ValueError, match=r"writes again, found a\.nc; remove the folder"),
        published(target, replace=True) as path,
    ):
        _make(path, kind)
    assert [path.name for path in target.iterdir()] == ["a.nc"]


def test_of_several_files_all_or_none_appear(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("old")
    with pytest.raises(FileExistsError), published(tmp_path / "a") as path:
        (path.parent / "b").mkdir()
        for name in ("a", "b/part", "c"):
            (path.parent / name).write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert (tmp_path / "c").read_text() == "old"


def test_errors_leave_nothing_and_name_the_target(tmp_path: Path) -> None:
    target = tmp_path / "x"
    with pytest.raises(KeyboardInterrupt), published(target) as path:
        _make(path, "folder")
        raise KeyboardInterrupt
    with pytest.raises(OSError, match="full") as found, published(target) as path:
        raise OSError(errno.EIO, "full", str(path))
    assert found.value.filename == str(target)
    with pytest.raises(OSError, match="no space left on the disk") as found, published(target):
        raise OSError(errno.ENOSPC, "full")
    assert found.value.filename == str(target)
    with pytest.raises(FileNotFoundError) as missing, published(target):
        raise FileNotFoundError(errno.ENOENT, "no source", "source")
    assert missing.value.filename == "source"
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named_by_the_target(tmp_path: Path) -> None:
    """The error named a private scratch file, or none."""
    target = tmp_path / "x.ambar"
    full = OSError(errno.ENOSPC, "No space left on device", "/scratch/.ambar-1/x")
    with pytest.raises(OSError, match="; free some") as found, name_target_on_full_disk(target):
        raise full
    assert found.value.filename == str(target)
    assert "scratch" not in str(found.value.strerror)


def test_mount_points_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of the export took the place of the target, which failed with EBUSY."""
    (tmp_path / "disk").mkdir()
    with monkeypatch.context() as patch, pytest.raises(ValueError, match="disk/export"):
        patch.setattr(Path, "is_mount", lambda path: path.name == "disk")
        with published(tmp_path / "disk"):
            raise AssertionError
    with monkeypatch.context() as patch, pytest.raises(ValueError, match="is a mount point"):
        patch.setattr(Path, "rename", _busy)
        with published(tmp_path / "disk") as path:
            _make(path, "folder")
    assert list(tmp_path.iterdir()) == [tmp_path / "disk"]


def _busy(path: Path, _: Path) -> None:
    raise OSError(errno.EBUSY, "Device or resource busy", str(path))


def test_the_folder_around_a_target_must_be_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "scratch")

    monkeypatch.setattr(os, "mkdir", refuse)
    expected = pytest.raises(
        PermissionError, match="expected a writable folder; change its permissions"
    )
    with expected as found, published(tmp_path / "x"):
        raise AssertionError
    assert found.value.filename == str(tmp_path)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """Yield a folder that this process cannot write to, also if it is run by root."""
    folder = Path(mkdtemp())
    folder.chmod(0o555)
    user = os.geteuid()
    os.seteuid(user or 65534)
    yield folder
    os.seteuid(user)
    folder.chmod(0o755)
    rmtree(folder)


@pytest.mark.parametrize("directory", [False, True])
def test_a_folder_that_is_not_writable_is_named(read_only: Path, directory: bool) -> None:
    """The message had the name of a temporary file."""
    with pytest.raises(PermissionError, match="expected a writable folder; change") as found:
        ambar.create(read_only / "x.ambar", directory=directory)
    assert found.value.filename == str(read_only)
    with pytest.raises(PermissionError, match="expected a writable folder; change") as found:
        ambar.convert(output("sedov"), read_only / "x.ambar", components="hydro", max_level=3)
    assert found.value.filename == str(read_only)


def test_other_errors_of_permissions_are_raised_unchanged(tmp_path: Path) -> None:
    raised = PermissionError(errno.EACCES, "denied", str(tmp_path / ".y.ambar.ambar-new"))
    with pytest.raises(PermissionError) as found, name_target_on_full_disk(tmp_path / "x.ambar"):
        raise raised
    assert found.value is raised
