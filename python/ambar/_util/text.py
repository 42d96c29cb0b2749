"""Text of ``repr`` and of the command line: sizes, ratios and aligned columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


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


def ratio(raw: float, stored: float) -> str:
    """Return how many times smaller `stored` is than `raw`.

    Examples
    --------
    >>> ratio(81, 20), ratio(0, 0)
    ('4.05x', '-')
    """
    return f"{raw / stored:.2f}x" if stored else "-"


def aligned(rows: Iterable[Sequence[object]], indent: str = "  ", numbers: int = 0) -> list[str]:
    """Return a line for each row, with aligned columns.

    Parameters
    ----------
    rows : iterable of sequence
        The cells of each row; all rows have the same length.
    indent : str, default two spaces
        The start of each line.
    numbers : int, default 0
        The number of columns at the end that are aligned to the right.

    Examples
    --------
    >>> aligned([("density", "float64", 1), ("level", "int32", 10)], numbers=1)
    ['  density  float64   1', '  level    int32    10']
    """
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    first = len(widths) - numbers
    return [
        indent
        + "  ".join(
            cell.rjust(width) if column >= first else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in texts
    ]
