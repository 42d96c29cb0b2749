#!/usr/bin/env python3
"""Check that no document, comment or string uses a phrase of `words.toml`.

Markdown files are checked as a whole, programs in their comments and strings. A line may keep a
phrase that `allowed` of `words.toml` lists, with its file.

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
PROSE = {".md"}
SLASHES = {".rs", ".c", ".h", ".cpp", ".hpp"}
"""Languages whose comments begin with two slashes or are between `/*` and `*/`."""
# A character, which is not prose; a comment; or a string.
IN_SLASHES = re.compile(
    r"""(?:'(?:\\.|[^'\\])')|(//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*")""", re.DOTALL
)
IN_FORTRAN = re.compile(r"""(!.*|"[^"\n]*"|'[^'\n]*')""")
IN_OTHERS = re.compile(r"(#.*)")
"""The comments of TOML files and of the Makefile."""
IN_BRACES = re.compile(r"\{[^{}\n]*\}")


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line of a file that people read."""
    content = path.read_text(encoding="utf-8")
    if path.suffix in PROSE:
        yield from enumerate(content.splitlines(), 1)
    elif path.suffix in {".py", ".pyi"}:
        kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)}
        for token in tokenize.generate_tokens(io.StringIO(content).readline):
            # Expressions in f-strings, and strings of one word, are names.
            prose = IN_BRACES.sub("", token.string) if token.type in kinds else ""
            if " " in prose:
                yield from enumerate(prose.splitlines(), token.start[0])
    else:
        pattern = IN_OTHERS
        if path.suffix in SLASHES:
            pattern = IN_SLASHES
        elif path.suffix.lower() == ".f90":
            pattern = IN_FORTRAN
        for match in pattern.finditer(content):
            first = content.count("\n", 0, match.start()) + 1
            yield from enumerate((match[1] or "").splitlines(), first)


def main() -> int:
    """Print the lines with such phrases; return 1 if there are any."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    phrases = [(re.compile(p["pattern"], re.IGNORECASE), p["instead"]) for p in table["phrase"]]
    allowed = {(entry["file"], entry["text"]) for entry in table.get("allowed", [])}
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = 0
    used = set()
    suffixes = PROSE | SLASHES | {".py", ".pyi", ".f90", ".F90", ".toml", ".cff"}
    for name in sorted(listed.stdout.split("\0")):
        path = ROOT / name
        is_read = path.suffix in suffixes or path.name == "Makefile"
        if not is_read or path == TABLE or not path.is_file():
            continue
        for number, line in texts(path):
            for pattern, instead in phrases:
                match = pattern.search(line)
                if not match or "None" in match[0]:
                    continue
                exceptions = {text for file, text in allowed if file == name and text in line}
                used |= {(name, text) for text in exceptions}
                if not exceptions:
                    found += 1
                    print(f"{name}:{number}: {match[0]!r}; write: {instead}\n    {line.strip()}")
    for name, text in sorted(allowed - used):
        found += 1
        print(f"{TABLE.name}: {name} has no line with {text!r}: remove it from the exceptions")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
