"""What ambar needs: NumPy, extras by name, and Rust crates that deny.toml allows."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.paths import ROOT

RULES = tomllib.loads((ROOT / "deny.toml").read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BENCHMARKS = tomllib.loads((ROOT / "benchmarks" / "pyproject.toml").read_text())["project"]


def names(requirements: list[str]) -> set[str]:
    """Return the names of packages without their versions."""
    return {re.split(r"[\[<>=!~ ]", requirement)[0].lower() for requirement in requirements}


def test_numpy_alone_is_required() -> None:
    assert names(PROJECT["dependencies"]) == {"numpy"}


def test_the_extra_all_has_what_the_others_have() -> None:
    extras = PROJECT["optional-dependencies"]
    others = [extra for name, extra in extras.items() if name not in ("all", "virtualizarr")]
    assert names(extras["all"]) == names([package for extra in others for package in extra])


def test_peers_are_requirements_of_the_benchmarks_alone() -> None:
    extras = PROJECT["optional-dependencies"].values()
    named = names([package for extra in extras for package in extra])
    peers = {"atlas-python", "osyris", "pynbody", "pysz", "tensorstore", "zfpy", "zvtk"}
    assert peers <= names(BENCHMARKS["dependencies"])
    assert not peers & named


@pytest.mark.parametrize("project", [PROJECT, BENCHMARKS], ids=["ambar", "ambar-bench"])
def test_programs_are_where_the_metadata_names_them(project: dict[str, Any]) -> None:
    for program in project["scripts"].values():
        module, _, function = program.partition(":")
        assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra_cli_the_program_names_it(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from ambar.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr == f"error: the command line needs {missing}: pip install 'ambar[cli]'\n"


def test_the_package_has_no_benchmark_and_no_test() -> None:
    package = ROOT / "python" / "ambar"
    modules = [file.relative_to(package) for file in package.rglob("*.py")]
    assert len(modules) > 50
    wrong = re.compile(r"(^|/)(bench\w*|tests?|test_\w+|\w+_test|conftest|asv)(/|\.py$)")
    assert [str(module) for module in modules if wrong.search(module.as_posix())] == []
    others = (package / "native", package / "samples")  # the C library; outputs of codes
    files = [file for file in package.rglob("*") if file.is_file()]
    kinds = {file.suffix for file in files if not any(map(file.is_relative_to, others))}
    assert kinds <= {".js", ".py", ".pyi", ".pyc", ".so", ".typed"}, "files that are not part of it"


def packages() -> list[dict[str, Any]]:
    """Return what cargo knows of each crate in Cargo.lock."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=Path.home() / ".cargo" / "bin")
    if cargo is None:
        pytest.skip("cargo is not installed")
    command = [cargo, "metadata", "--format-version=1", "--locked", "--offline"]
    # cargo prints UTF-8, also where a library has set the locale C.
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        pytest.skip(f"cargo has not downloaded all crates: {done.stderr[-300:]}")
    return json.loads(done.stdout)["packages"]


def is_allowed(expression: str, allowed: set[str]) -> bool:
    """Return whether an SPDX expression can be met with the allowed licences."""
    words = re.findall(r"[()]|[^()\s]+(?:\s+WITH\s+[^()\s]+)?", expression.replace("/", " OR "))

    def term() -> bool:
        word = words.pop(0)
        if word != "(":
            return " ".join(word.split()) in allowed
        met = any_of()
        assert words.pop(0) == ")"
        return met

    def all_of() -> bool:
        met = term()
        while words[:1] == ["AND"]:
            words.pop(0)
            met &= term()
        return met

    def any_of() -> bool:
        met = all_of()
        while words[:1] == ["OR"]:
            words.pop(0)
            met |= all_of()
        return met

    met = any_of()
    assert not words, f"{expression!r} is not an SPDX expression"
    return met


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-only", True),
        ("MIT/GPL-3.0", True),
        ("MIT AND LGPL-2.1-or-later", False),
        ("(GPL-2.0 OR MIT) AND ISC", True),
        ("(GPL-2.0 OR MIT) AND LGPL-2.1", False),
        ("Apache-2.0 WITH LLVM-exception", False),
    ],
)
def test_expressions_of_licences_are_evaluated(expression: str, expected: bool) -> None:
    assert is_allowed(expression, {"MIT", "ISC", "Apache-2.0"}) is expected


def test_all_crates_have_an_allowed_licence() -> None:
    exceptions = {entry["crate"]: entry["allow"] for entry in RULES["licenses"]["exceptions"]}
    refused = []
    for package in packages():
        allowed = {*RULES["licenses"]["allow"], *exceptions.get(package["name"], [])}
        if not is_allowed(package["license"] or "none", allowed):
            refused.append(f"{package['name']} {package['version']}: {package['license']}")
    assert not refused


def test_all_crates_are_of_the_workspace_or_of_crates_io() -> None:
    sources = {package["source"] for package in packages() if package["source"] is not None}
    assert [source.rpartition("/")[2] for source in sources] == ["crates.io-index"]
