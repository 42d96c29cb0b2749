"""Sizes, ratios, aligned columns and representations as text."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

_LETTERS = str.maketrans("01", "ol")
"""Letters for digits that look like them."""


def size(count: float) -> str:
    """Return a number of bytes as text.

    Examples
    --------
    >>> size(999), size(12_345_678)
    ('999 B', '12.3 MB')
    """
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(count) < 1000 or unit == "TB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"


def printable(text: str) -> str:
    r"""Return a text with escapes in place of line breaks and other control characters.

    Examples
    --------
    >>> print(printable("two\nlines"))
    two\nlines
    """
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def plural(count: int, noun: str) -> str:
    """Return a number with a noun.

    Examples
    --------
    >>> plural(1, "output"), plural(1200, "dataset")
    ('1 output', '1,200 datasets')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def span(first: int, last: int) -> str:
    """Return a range of integers as text.

    Examples
    --------
    >>> span(4, 7), span(5, 5)
    ('4 to 7', '5')
    """
    return f"{first} to {last}" if first < last else str(first)


def times_text(times: Sequence[float | None]) -> str:
    """Return the range of the times of steps, where they go back, and how many have none.

    Examples
    --------
    >>> times_text([0.5, None, 2.0])
    '0.5 to 2, 1 step without a time'
    >>> times_text([0.0, 2.0, 0.5])
    '0 to 2, earlier than before at step 2'
    >>> times_text([None, None])
    'none; steps have numbers from 0'
    """
    known = [time for time in times if time is not None]
    if not known:
        return "none; steps have numbers from 0"
    missing = len(times) - len(known)
    more = f", {plural(missing, 'step')} without a time" if missing else ""
    ends = dict.fromkeys((f"{min(known):g}", f"{max(known):g}"))
    numbered = [(number, time) for number, time in enumerate(times) if time is not None]
    back = [str(n) for (_, before), (n, time) in pairwise(numbered) if time < before]
    if back:
        listed = ", ".join(back[:3]) + (", ..." if len(back) > 3 else "")
        more = f", earlier than before at step{'s' * (len(back) > 1)} {listed}{more}"
    return f"{' to '.join(ends)}{more}"


def similar_names(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Return the names that differ from an unknown one in case, in a few letters, or in 0 for O.

    Examples
    --------
    >>> similar_names("Y(H20)", ["Y(H2)", "Y(O2)", "Y(H2O)"], 1)
    ['Y(H2O)']
    """
    names = {folded(other): other for other in reversed(list(known))}
    return [names[close] for close in difflib.get_close_matches(folded(name), names, most)]


def folded(name: str) -> str:
    """Return a name in lower case, with letters for the digits that look like them."""
    return name.lower().translate(_LETTERS)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return the names that exist, and the most similar one, for the error of an unknown name.

    Examples
    --------
    >>> suggestion("densty", ["density", "pressure"])
    "did you mean 'density'? available: density, pressure"
    """
    names = list(known)
    close = similar_names(name, names, 1)
    close += [known for known in names if len(name) > 2 and known.startswith(name)]
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"{hint}available: {', '.join(names) or 'none'}"


def change(before: float, after: float) -> str:
    """Return how many times smaller or larger a number of bytes has become.

    Examples
    --------
    >>> change(81, 20), change(20, 81)
    ('4.05x smaller', '4.05x larger')
    """
    if before >= after:
        return f"{ratio(before, after)} smaller"
    return f"{ratio(after, before)} larger"


def ratio(raw: float, stored: float) -> str:
    """Return how many times smaller `stored` is than `raw`.

    Examples
    --------
    >>> ratio(81, 20), ratio(0, 0)
    ('4.05x', '-')
    """
    return f"{raw / stored:.2f}x" if stored else "-"


def sizes(raw: float, stored: float) -> str:
    """Return bytes in memory and in the store, and their ratio.

    Examples
    --------
    >>> sizes(81_000, 20_000)
    '81 kB as 20 kB (4.05x)'
    """
    return f"{size(raw)} as {size(stored)} ({ratio(raw, stored)})"


def columns(rows: Iterable[Sequence[object]], indent: int = 2) -> list[str]:
    """Return rows as lines with aligned columns.

    Parameters
    ----------
    rows : iterable of sequence
        The cells of each row. Integers are on the right, with commas between thousands.
    indent : int, default 2
        The number of spaces before each line.

    Returns
    -------
    list of str
        A line for each row.

    Examples
    --------
    >>> columns([("x", 5, "m"), ("rho", 1200, "kg")])
    ['  x        5  m', '  rho  1,200  kg']
    """
    rows = [list(row) for row in rows]
    cells = [[f"{c:,}" if _is_count(c) else printable(str(c)) for c in row] for row in rows]
    count = max(map(len, cells), default=0)
    widths = [max(len(row[n]) for row in cells if n < len(row)) for n in range(count)]
    return [
        " " * indent
        + "  ".join(
            text.rjust(width) if _is_count(cell) else text.ljust(width)
            for cell, text, width in zip(row, shown, widths, strict=False)
        ).rstrip()
        for row, shown in zip(rows, cells, strict=True)
    ]


def _is_count(cell: object) -> bool:
    return isinstance(cell, int) and not isinstance(cell, bool)


class Summary(ABC):
    """Base of classes whose text is their main values, a line each."""

    @abstractmethod
    def summary(self) -> list[tuple[str, str]]:
        """Return the main values as text, with their names."""

    def __str__(self) -> str:
        """Return the main values, a line each."""
        return "\n".join(f"{name:<13} {value}" for name, value in self.summary())


def representation(title: str, properties: Mapping[str, object], *sections: Iterable[str]) -> str:
    """Return what ``__repr__`` returns: a title, a line for each property, and more lines.

    `ambar._util.html.representation` returns the same as HTML.

    Parameters
    ----------
    title : str
        The type and the name of the object.
    properties : mapping
        Values by their names. Those that are None are left out.
    *sections : iterable of str
        More lines, such as `columns`.

    Returns
    -------
    str
        Lines.

    Examples
    --------
    >>> print(representation("<ambar.Array> x", {"Shape": (3,), "Codecs": None}))
    <ambar.Array> x
      Shape:  (3,)
    """
    known = [(f"{name}:", str(value)) for name, value in properties.items() if value is not None]
    return "\n".join([title, *columns(known), *(line for section in sections for line in section)])
