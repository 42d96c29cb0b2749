"""Every message of ambar that the page on troubleshooting quotes is in the sources."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.helpers.paths import ROOT

PAGE = (ROOT / "docs" / "howto" / "troubleshooting.md").read_text(encoding="utf-8")
OTHERS = (
    "No such file or directory",
    "UnknownCodecError",
    "can't open directory (.../plugin)",
    "Unknown compression filter number: 43842",
)
"""Messages of other programs."""
RUST_STRING = re.compile(r'"((?:[^"\\]|\\.|\\\n)*)"')


def python_strings(path: Path) -> list[str]:
    """Return the strings of a module; values in f-strings are left out."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            found.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return found


def rust_strings(path: Path) -> list[str]:
    """Return the strings of a source file, with its long strings on one line."""
    text = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
    return [found.replace('\\"', '"') for found in RUST_STRING.findall(text)]


def sources() -> list[str]:
    """Return all strings of the sources."""
    found = [s for path in (ROOT / "python").rglob("*.py") for s in python_strings(path)]
    found += [
        s
        for path in (ROOT / "crates").rglob("*.rs")
        if "tests" not in path.parts and "tests" not in path.stem
        for s in rust_strings(path)
    ]
    return found


def messages() -> list[str]:
    """Return the messages in the first columns of the tables after that of classes."""
    sections = PAGE.partition("## Installation")[2].partition("## No message")[0]
    rows = re.findall(r"^\| (.*?) \| ", sections, re.M)
    return [quoted for row in rows for quoted in re.findall(r"`([^`]+)`", row)]


def is_in(message: str, strings: list[str]) -> bool:
    """Return whether a string has the parts of a message in this order; `...` are values."""
    parts = message.split("...")
    longest = max(parts, key=len)
    pattern = re.compile(".*?".join(map(re.escape, parts)), re.S)
    return any(longest in string and pattern.search(string) for string in strings)


def test_quoted_messages_are_in_the_sources() -> None:
    quoted, strings = messages(), sources()
    assert len(quoted) > 100
    assert [one for one in quoted if one not in OTHERS and not is_in(one, strings)] == []
