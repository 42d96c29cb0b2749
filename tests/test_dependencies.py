"""The licences and the sources of all Rust crates are those that deny.toml allows."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
RULES = tomllib.loads((ROOT / "deny.toml").read_text())


def packages() -> list[dict[str, Any]]:
    """Return what cargo knows of each crate in Cargo.lock."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=Path.home() / ".cargo" / "bin")
    if cargo is None:
        pytest.skip("cargo is not installed")
    command = [cargo, "metadata", "--format-version=1", "--locked", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
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
