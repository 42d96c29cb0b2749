"""The command line: what it prints, what it writes, its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ambar
from ambar.cli import main
from conftest import CASES, DATA, output


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run the command line in this process; return exit code, stdout, stderr."""
    with pytest.raises(SystemExit) as done:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return int(done.value.code or 0), printed.out, printed.err


@pytest.fixture
def store(stores: dict[str, Path]) -> Path:
    return stores["gravpart"]


def test_convert(tmp_path: Path, capsys) -> None:
    target = tmp_path / "run.ambar"
    code, out, _ = run(
        capsys, "convert", output("sedov"), target, "--profile", "small", "--fields", "rho,p",
        "--levels", "4:7", "--durability", "none", "-t", 1,
    )  # fmt: skip
    assert code == 0
    assert "smaller" in out
    assert ambar.open(target).amr.fields == ["density", "pressure"]
    code, _, err = run(capsys, "convert", output("sedov"), target)
    assert code == 4
    assert "run.ambar" in err
    code, out, _ = run(capsys, "convert", output("sedov"), target, "--overwrite", "--json")
    assert code == 0
    assert json.loads(out)["stored_bytes"] == target.stat().st_size


def test_convert_a_run(tmp_path: Path, capsys) -> None:
    target = tmp_path / "run.ambar"
    code, _, _ = run(capsys, "convert", DATA / CASES["sedov"], target, "--no-progress")
    assert code == 0
    code, out, _ = run(capsys, "convert", DATA / CASES["sedov"], target)
    assert code == 0
    assert "2 outputs were there already" in out
    code, out, _ = run(capsys, "info", target)
    assert code == 0
    assert "output_00002" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["convert", "OUTPUT", "x", "--error-bound", "little"], 2, "of range"),
        (["convert", "/nothing/here", "x"], 3, "/nothing/here"),
        (["convert", "OUTPUT", "x", "--components", "dust"], 3, "dust"),
        (["convert", "OUTPUT", "x", "--levels", "seven"], 2, "LOWEST:HIGHEST"),
        (["convert", "OUTPUT", "x", "--profile", "tiny"], 2, "balanced"),
        (
            ["info", "/nothing/here"],
            3,
            "error: /nothing/here: opening: No such file or directory; look",
        ),
        (["info"], 2, "Missing argument"),
        (["nonsense"], 2, "No such command"),
        (["plot", "STORE", "x.png", "--field", "entropy"], 3, "density"),
        (["plot", "STORE", "x.png", "--axis", "w"], 2, "axis"),
        (["plot", "STORE", "x.xyz"], 2, "x.xyz: no such picture"),
        (["ls", "STORE", "nothing"], 3, "nothing"),
    ],
)
def test_exit_codes(arguments, code, message, store, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"OUTPUT": output("sedov"), "STORE": store}
    found, _, err = run(capsys, *(places.get(argument, argument) for argument in arguments))
    assert found == code
    assert message in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        main(["info", str(tmp_path / "nothing"), "--debug"])


def test_info_of_a_store(store: Path, capsys) -> None:
    code, out, _ = run(capsys, "info", store)
    assert code == 0
    for text in ("snapshot", "density", "levels", "leaf cells", "crc32c", "smaller", "none:"):
        assert text in out
    code, out, _ = run(capsys, "info", store, "--json")
    found = json.loads(out)
    assert found["bytes"] == store.stat().st_size
    amr = next(group for group in found["groups"] if group["path"] == "amr")
    assert sum(amr["cells_per_level"].values()) == amr["cells"]
    assert {"path", "shape", "codecs", "stored_bytes"} <= set(found["arrays"][0])


def test_info_of_an_output(capsys) -> None:
    code, out, _ = run(capsys, "info", output("gravpart"))
    assert code == 0
    assert "RAMSES output" in out
    assert "hydro" in out
    code, out, _ = run(capsys, "info", output("gravpart"), "--json")
    found = json.loads(out)
    files = [file for file in output("gravpart").iterdir() if file.is_file()]
    assert found["bytes"] == sum(file.stat().st_size for file in files)
    assert found["files"]["amr"]["files"] == 3


def test_ls(store: Path, capsys) -> None:
    code, out, _ = run(capsys, "ls", store, "particles")
    assert code == 0
    assert "particles/mass" in out
    assert "amr/density" not in out
    _, out, _ = run(capsys, "ls", store, "--json")
    assert "amr/density" in [row["path"] for row in json.loads(out)]


def test_verify_finds_damage(tmp_path: Path, capsys) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.array("a", np.random.default_rng(1).random(100_000))
    code, out, _ = run(capsys, "verify", path)
    assert (code, "sound" in out) == (0, True)
    assert run(capsys, "verify", path, "--json")[0] == 0
    damaged = bytearray(path.read_bytes())
    damaged[300_000] ^= 1
    path.write_bytes(damaged)
    code, _, err = run(capsys, "verify", path)
    assert code == 1
    assert "a" in err


def test_compact_and_repair(tmp_path: Path, capsys) -> None:
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.array("a", np.random.default_rng(1).random(10_000))
    with ambar.append(path) as writer:
        writer.array("a", np.zeros(10))
    assert "dead" in run(capsys, "info", path)[1]
    assert run(capsys, "compact", path)[0] == 0
    assert "dead" not in run(capsys, "info", path)[1]
    with path.open("ab") as file:
        file.write(b"left by a killed writer" * 10_000)
    size = path.stat().st_size
    assert run(capsys, "repair", path)[0] == 0
    assert path.stat().st_size < size - 200_000
    np.testing.assert_array_equal(ambar.open(path)["a"][:], np.zeros(10))


@pytest.mark.parametrize("options", [[], ["--slice", "0.5"], ["--width", "0.3", "--linear"]])
def test_plot(options: list[str], store: Path, tmp_path: Path, capsys) -> None:
    pytest.importorskip("matplotlib")
    target = tmp_path / "picture.png"
    code, out, _ = run(capsys, "plot", store, target, *options)
    assert code == 0
    assert str(target) in out.replace("\n", "")
    assert target.read_bytes().startswith(b"\x89PNG")


def test_help_has_examples(capsys) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "Exit codes" in out
    for command in ("convert", "info", "ls", "verify", "plot", "compact", "repair"):
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        assert f"ambar {command}" in out


def test_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ambar", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("ambar ")
