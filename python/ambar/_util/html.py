"""HTML of ``_repr_html_``: a title and tables in ``<details>``; no style sheets, no JavaScript."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_CELL = "text-align: left; padding: 0 1em 0 0"


def escape(value: object) -> str:
    """Return a value as text in which no character has a meaning in HTML."""
    return html.escape(str(value))


def page(title: str, *parts: str) -> str:
    """Return the HTML of an object.

    Parameters
    ----------
    title : str
        One line about the object, such as the first line of its ``repr``; it is escaped.
    *parts : str
        HTML, as `details` and `table` return it.
    """
    return f"<div><strong>{escape(title)}</strong>{''.join(parts)}</div>"


def details(
    summary: str,
    rows: Iterable[Sequence[object]],
    header: Sequence[object] = (),
    *,
    is_open: bool = False,
) -> str:
    """Return a table that opens and closes with a click on its summary.

    Parameters
    ----------
    summary : str
        The line that is always visible; it is escaped.
    rows, header
        As for `table`.
    is_open : bool, default False
        Whether the table is visible at first.

    Examples
    --------
    >>> details("1 field", [("density", "g/cm**3")])[:34]
    '<details><summary>1 field</summary'
    """
    start = "<details open>" if is_open else "<details>"
    return f"{start}<summary>{escape(summary)}</summary>{table(rows, header)}</details>"


def table(rows: Iterable[Sequence[object]], header: Sequence[object] = ()) -> str:
    """Return a table.

    Parameters
    ----------
    rows : iterable of sequence
        The cells of each row; they are converted with ``str`` and escaped.
    header : sequence, optional
        The names of the columns.

    Examples
    --------
    >>> "a &lt; b" in table([("a < b", 3)], header=["condition", "cells"])
    True
    """
    head = f"<thead>{_row('th', header)}</thead>" if header else ""
    return f"<table>{head}<tbody>{''.join(_row('td', row) for row in rows)}</tbody></table>"


def _row(tag: str, cells: Sequence[object]) -> str:
    joined = "".join(f'<{tag} style="{_CELL}">{escape(cell)}</{tag}>' for cell in cells)
    return f"<tr>{joined}</tr>"
