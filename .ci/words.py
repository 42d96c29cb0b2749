#!/usr/bin/env python3
"""Check that no document, comment or string uses a phrase of `words.toml`.

Documents are checked as a whole, programs in their comments and strings, also across line breaks.

    python .ci/words.py
"""

import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = Path(__file__).with_suffix(".toml")
DOCUMENTS = {".md", ".rst", ".cff"}
PYTHON = {".py", ".pyi"}
SLASHES = {".rs", ".c", ".h", ".H", ".cpp", ".hpp"}
"""Languages whose comments begin with two slashes or are between `/*` and `*/`."""
FORTRAN = {".f90", ".F90"}
HASHES = {".toml", ".yml", ".yaml", ".sh", ".in", ""}
"""Languages whose comments begin with `#`; the suffix "" is that of the Makefile and `.ci/run`."""

# A character, which is not prose; lines of comments; or a string.
IN_SLASHES = re.compile(
    r"""(?:'(?:\\.|[^'\\])')|((?://[^\n]*(?:\n[ \t]*(?=//))?)+|/\*.*?\*/|"(?:\\.|[^"\\])*")""",
    re.DOTALL,
)
IN_FORTRAN = re.compile(r"""(!.*|"[^"\n]*"|'[^'\n]*')""")
IN_HASHES = re.compile(r"((?:#.*(?:\n[ \t]*(?=#))?)+)")
IN_BRACES = re.compile(r"\{[^{}\n]*\}")
LINE_BREAK = r"\s+(?:(?://[/!]?|[#*!>]+)\s+)?"
"""A space of a phrase in wrapped prose, whose lines may begin with the marks of a comment."""


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the parts of a file that people read, each with the number of its first line."""
    content = path.read_text(encoding="utf-8")
    if path.suffix in DOCUMENTS:
        yield 1, content
    elif path.suffix in PYTHON:
        kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
        for token in tokenize.generate_tokens(io.StringIO(content).readline):
            # Expressions in f-strings, and strings of one word, are names.
            text = IN_BRACES.sub("", token.string) if token.type in kinds else ""
            if " " in text:
                yield token.start[0], text
    else:
        pattern = IN_HASHES
        if path.suffix in SLASHES:
            pattern = IN_SLASHES
        elif path.suffix in FORTRAN:
            pattern = IN_FORTRAN
        for match in pattern.finditer(content):
            if match[1]:
                yield content.count("\n", 0, match.start()) + 1, match[1]


def main() -> int:
    """Print the places of such phrases; return 1 if there are any."""
    phrases = [
        (re.compile(phrase["pattern"].replace(" ", LINE_BREAK), re.IGNORECASE), phrase["instead"])
        for phrase in tomllib.loads(TABLE.read_text(encoding="utf-8"))["phrase"]
    ]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = 0
    suffixes = DOCUMENTS | PYTHON | SLASHES | FORTRAN | HASHES - {""}
    for name in sorted(listed.stdout.split("\0")):
        path = ROOT / name
        is_read = path.suffix in suffixes or name in {"Makefile", ".ci/run"}
        if not is_read or path == TABLE or not path.is_file():
            continue
        for first, text in prose(path):
            for pattern, instead in phrases:
                for match in pattern.finditer(text):
                    if "None" in match[0]:
                        continue
                    found += 1
                    line = first + text.count("\n", 0, match.start())
                    print(f"{name}:{line}: {' '.join(match[0].split())!r}; write: {instead}")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
