"""The directive `fortran-module`: a module's public items, from the comments `!>` before them."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

COMMENT = r"^ *!> .*\n(?:^ *!!.*\n)*"
MODULE = re.compile(rf"({COMMENT})module (\w+)", re.MULTILINE)
HEAD = r"^ +(?:type ::|interface|.*\b(?:subroutine|function)) (\w+).*\n"
ITEM = re.compile(rf"({COMMENT})({HEAD})", re.MULTILINE)
PUBLIC = re.compile(r"^ +public :: ([^!\n]*)", re.MULTILINE)
DECLARATION = re.compile(r"^ +(?!end )[^!\n]*(?:::|&$).*\n", re.MULTILINE)


def strip_marks(comment: str) -> str:
    """Return a comment without its marks, and with names of the API as code."""
    text = re.sub(r"^ *!(?:>|!) ?", "", comment, flags=re.MULTILINE)
    return re.sub(r"(?<![\w`])(ambar_\w+|AMBAR_\w+)(?![\w`])", r"`\1`", text)


def parse_declarations(source: str, start: int) -> str:
    """Return the lines at `start` that declare arguments or components."""
    found = ""
    while match := DECLARATION.match(source, start):
        found += match[0]
        start = match.end()
    return found


def parse_items(path: Path) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the description and the declaration of each public item of a module."""
    source = path.read_text(encoding="utf-8")
    # Names without this prefix are for other modules of ambar.
    public = set(re.findall(r"\bambar_\w+", " ".join(PUBLIC.findall(source))))
    found = [match for match in ITEM.finditer(source) if match[3] in public]
    # Other public names are those of modules that this one uses.
    declared = public.intersection(re.findall(HEAD, source, re.MULTILINE))
    if missing := declared - {match[3] for match in found}:
        names = ", ".join(sorted(missing))
        raise ValueError(
            f"{path}: expected comments with `!>` before public items, found none: {names}"
        )
    for match in found:
        declared = parse_declarations(source, match.end())
        yield (
            match[3],
            strip_marks(match[1]),
            textwrap.dedent(match[2] + declared if declared else ""),
        )


class FortranModule(SphinxDirective):
    """Describes the public items of the module in a file below the root of the repository."""

    required_arguments = 1

    def run(self) -> list[Node]:
        """Return the description of the module, and a section for each item."""
        path = Path(self.env.srcdir) / self.arguments[0]
        self.env.note_dependency(str(path))
        found = MODULE.match(path.read_text(encoding="utf-8"))
        if not found:
            raise self.error(f"{path}: expected comments with `!>` before `module`, found none")
        text = strip_marks(found[1])
        for name, description, code in parse_items(path):
            block = f"```fortran\n{code}```\n" if code else ""
            text += f"\n### {name}\n\n{description}\n{block}"
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("fortran-module", FortranModule)
    return {"parallel_read_safe": True}
