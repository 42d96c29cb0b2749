"""Sizes and ratios as text."""

from __future__ import annotations


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
