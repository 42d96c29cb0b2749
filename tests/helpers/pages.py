"""The code blocks of the documentation, which tests run as written."""

from __future__ import annotations

import re
import shlex
from typing import Any

from typer.testing import CliRunner

from ambar.cli import app
from tests.helpers.paths import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INSTALLATIONS = ("pip install ", "make install ")
"""Beginnings of commands that have been run where the tests run."""


def read_page(path: str) -> str:
    """Return the text of a page, of a path from the root of the repository without suffix."""
    return (ROOT / f"{path}.md").read_text(encoding="utf-8")


def blocks(text: str, *languages: str) -> list[str]:
    """Return the code blocks of a text in some languages."""
    return [code for language, code in BLOCK.findall(text) if language in languages]


def run_blocks(text: str, names: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run the blocks of Python as one program, with these names; return all of its names."""
    names = {} if names is None else names
    for code in blocks(text, "python"):
        exec(code, names)  # noqa: S102 - the page's own
    return names


def run_ambar(line: str) -> None:
    """Run a line of a page that begins with `ambar`; it must succeed."""
    command, *words = shlex.split(line, comments=True)
    assert command == "ambar", line
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, f"{line}\n{result.output}{result.exception}"
