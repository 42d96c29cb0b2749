"""What is complete gets its name, and never replaces what has it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from ambar._util.scratch import publish, publish_all, scratch_folder


@pytest.fixture(params=["links", "no links"])
def _file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has hard links, and one that lacks them."""
    if request.param == "no links":

        def refuse(*_: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(Path, "hardlink_to", refuse)


def _made(folder: Path, kind: str) -> Path:
    made = folder / "made"
    if kind == "file":
        made.write_text("new")
    else:
        made.mkdir()
        (made / "part").write_text("new")
    return made


@pytest.mark.usefixtures("_file_system")
@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("there", ["file", "folder", "empty", "dangling"])
def test_nothing_is_replaced(tmp_path: Path, kind: str, there: str) -> None:
    target = tmp_path / "target"
    if there == "file":
        target.write_text("old")
    elif there == "dangling":
        target.symlink_to("nowhere")
    else:
        target.mkdir()
        if there == "folder":
            (target / "old").write_text("old")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with scratch_folder(tmp_path) as folder, pytest.raises(FileExistsError) as found:
        publish(_made(folder, kind), target)
    assert found.value.filename == str(target)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


@pytest.mark.usefixtures("_file_system")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_is_complete_gets_its_name(tmp_path: Path, kind: str) -> None:
    target = tmp_path / ("n" * 255)
    with scratch_folder(tmp_path) as folder:
        publish(_made(folder, kind), target)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert (target if kind == "file" else target / "part").read_text() == "new"


def test_of_several_files_all_or_none_appear(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("old")
    with scratch_folder(tmp_path) as folder:
        (folder / "b").mkdir()
        for name in ("a", "b/part", "c"):
            (folder / name).write_text("new")
        with pytest.raises(FileExistsError):
            publish_all(folder, tmp_path, "a")
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert (tmp_path / "c").read_text() == "old"


def test_errors_leave_no_scratch_folder(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), scratch_folder(tmp_path) as folder:
        _made(folder, "folder")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
