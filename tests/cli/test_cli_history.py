"""The command line: earlier commits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar.cli.output import console
from tests.helpers.command_line import run

MESSAGE = "resampled [all] fields, " * 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run.ambar"
    with ambar.create(path, fsync=False) as writer:
        for n in range(1, 4):
            writer.create_array(f"x{n}", np.full(100, n))
            writer.commit(MESSAGE)
    return path


def test_long_messages_are_cut_to_the_terminal(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "width", 90)
    code, out, _ = run(capsys, "log", path)
    lines = out.splitlines()
    assert (code, len(lines)) == (0, 4)
    assert all(len(line) <= 90 for line in lines)
    assert all("resampled" in line and "…" in line for line in lines[1:])
    commits = json.loads(run(capsys, "log", path, "--json")[1])["commits"]
    assert [commit["message"] for commit in commits] == [MESSAGE] * 3


def test_tags_are_given_and_listed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "tag", path, "paper", "--commit", 2)[1].endswith("commit 2 is paper\n")
    assert run(capsys, "tag", path, "--json")[1] == '{\n  "paper": 2\n}\n'
    assert run(capsys, "tag", path)[1].split() == ["tag", "commit", "paper", "2"]
    code, _, errors = run(capsys, "tag", path, "--commit", 2)
    assert code == 2
    assert "give the name" in errors


def test_tags_are_removed_and_tagged_commits_verified(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(capsys, "tag", path, "first", "--commit", 1)
    assert "no damage" in run(capsys, "verify", path, "--commit", "first")[1]
    assert "removed the tag first" in run(capsys, "tag", path, "first", "--delete")[1]
    assert "first" not in run(capsys, "tag", path)[1]
    assert run(capsys, "tag", path, "first", "--delete", "--commit", 1)[0] == 2


def test_earlier_commits_are_shown(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["info"], ["ls"], ["info", "--json"], ["ls", "--json"]):
        code, out, _ = run(capsys, arguments[0], path, *arguments[1:], "--commit", 2)
        assert code == 0
        assert "x2" in out
        assert "x3" not in out
    assert run(capsys, "ls", path, "--commit", 9)[0] != 0


def test_datasets_of_earlier_commits_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.ambar"
    for name in ("first", "second"):
        with ambar.open_collection(path, "a") as collection:
            collection.add(name, {"x": np.arange(3)})
    for command in ("info", "ls"):
        assert "second" in run(capsys, "ls", path)[1]
        code, out, _ = run(capsys, command, path, "--commit", 1)
        assert code == 0
        assert "second" not in out
    assert run(capsys, "diff", path, "--from", 1)[1] == "added     second\n"


def test_watching_a_wrong_path_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = run(capsys, "watch", tmp_path / "absent" / "run.ambar")
    assert code != 0
    assert "absent" in errors
    code, out, errors = run(capsys, "watch", tmp_path / "run.ambar", "--timeout", 0.1)
    assert (code, out) == (0, "")
    assert "does not exist yet: waiting for it" in errors


def test_steps_are_watched(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, errors = run(capsys, "watch", path, "--timeout", 0.1, "--json")
    assert (code, errors) == (0, "")
    assert json.loads(out)["kind"] == "Store"
