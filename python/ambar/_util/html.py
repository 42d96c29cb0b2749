"""HTML for notebooks: escaped text, tables and foldable sections, without JavaScript."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

_LEFT, _RIGHT = ("text-align: left; vertical-align: top", "text-align: right; vertical-align: top")


def escape(value: object) -> str:
    """Return an object as text in which no character has a meaning in HTML.

    Examples
    --------
    >>> escape("<a & b>")
    '&lt;a &amp; b&gt;'
    """
    return html.escape(str(value))


def table(rows: Iterable[Sequence[object]], header: Sequence[object] = ()) -> str:
    """Return a table.

    Parameters
    ----------
    rows : iterable of sequence
        The cells of each row, which are escaped. Numbers are on the right, and integers have commas
        between thousands.
    header : sequence, optional
        The names of the columns; none by default.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> table([("x", 1000)], header=("name", "bytes")).count("<td")
    2
    """
    lines = ["<table>"]
    if header:
        names = "".join(f'<th style="{_LEFT}">{escape(name)}</th>' for name in header)
        lines.append(f"<thead><tr>{names}</tr></thead>")
    lines.append("<tbody>")
    lines += [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]
    return "\n".join([*lines, "</tbody>", "</table>"])


def _cell(value: object) -> str:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    text = f"{value:,}" if is_number and isinstance(value, int) else value
    return f'<td style="{_RIGHT if is_number else _LEFT}">{escape(text)}</td>'


def details(summary: object, content: str, *, is_open: bool = False) -> str:
    """Return a section that a click on its summary opens and closes.

    Parameters
    ----------
    summary : object
        The text that is always visible; it is escaped.
    content : str
        HTML, such as a table.
    is_open : bool, default False
        Whether the section is open at first.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> details("2 arrays", table([["x"], ["y"]])).startswith("<details><summary>2 arrays")
    True
    """
    opening = "<details open>" if is_open else "<details>"
    return f"{opening}<summary>{escape(summary)}</summary>\n{content}\n</details>"


def representation(title: object, properties: Mapping[str, object], *sections: str) -> str:
    """Return what ``_repr_html_`` returns: a title, a table of properties, and sections.

    `ambar._util.text.representation` returns the same as text, for ``__repr__``.

    Parameters
    ----------
    title : object
        The type and the name of the object; it is escaped.
    properties : mapping
        Values by their names. Those that are None are left out.
    *sections : str
        HTML, from `details`; empty ones are left out.

    Returns
    -------
    str
        HTML.
    """
    known = [(name, value) for name, value in properties.items() if value is not None]
    parts = [f"<strong>{escape(title)}</strong>", table(known) if known else "", *sections]
    return "\n".join(["<div>", *filter(None, parts), "</div>"])
