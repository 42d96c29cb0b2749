"""Labels of axes and colour bars: units in the notation of papers, round lengths."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

_SYMBOLS = {
    "Msun": r"M_\odot",
    "Msol": r"M_\odot",
    "Lsun": r"L_\odot",
    "Mearth": r"M_\oplus",
    "ohm": r"\Omega",
    "gauss": "G",
    "Gauss": "G",
    "Au": "au",
}
_STATISTICS = {"mean": "mean ", "dispersion": "dispersion of ", "maximum": "maximum of "}
_LONGEST_NAME = 34
"""The number of characters up to which the name of a label is in one line."""
_MICRO = re.compile(r"u(?=(m|s|g|G|K|V|A|J|Pa|T|pc)$)")


def unit_text(unit: str) -> str:
    r"""Return a unit in the notation of papers, for matplotlib; "" for a number without one.

    Examples
    --------
    >>> unit_text("g/cm**3"), unit_text("code_length")
    ('$\\mathrm{g\\,cm^{-3}}$', 'code length')
    """
    if unit in ("", "dimensionless"):
        return ""
    if unit.startswith("code"):
        return "code units" if unit == "code" else unit.replace("_", " ")
    try:
        parts = list(_factors(ast.parse(unit, mode="eval").body, 1))
    except (SyntaxError, ValueError):
        return unit.replace("$", r"\$")
    product = r"\,".join(filter(None, parts))
    return rf"$\mathrm{{{product}}}$"


def _factors(node: ast.expr, power: float) -> Iterator[str]:
    """Yield the factors of a unit to a power; raises ValueError for what is not a product."""
    match node:
        case ast.BinOp(left, ast.Mult(), right):
            yield from _factors(left, power)
            yield from _factors(right, power)
        case ast.BinOp(left, ast.Div(), right):
            yield from _factors(left, power)
            yield from _factors(right, -power)
        case ast.BinOp(left, ast.Pow(), right):
            yield from _factors(left, power * float(ast.literal_eval(right)))
        case ast.Name(name):
            symbol = _SYMBOLS.get(name) or _MICRO.sub(r"\\mu ", name).replace("_", r"\_")
            yield symbol if power == 1 else f"{symbol}^{{{power:g}}}"
        case ast.Constant(float() | int() as number):
            mantissa, _, exponent = f"{number**power:.4g}".partition("e")
            times = rf"\times 10^{{{int(exponent)}}}" if exponent else ""
            yield "" if number == 1 else mantissa + times
        case _:
            raise ValueError(ast.unparse(node))


def label(name: str, unit: str) -> str:
    """Return the label of an axis or a colour bar; without the backticks of names in arithmetic.

    Examples
    --------
    >>> label("level", "dimensionless"), label("density", "code"), label("`Y(O2)` * rho", "")
    ('level', 'density [code units]', 'Y(O2) * rho')
    """
    text, name = unit_text(unit), name.replace("`", "")
    return f"{name} [{text}]" if text else name


def statistic_name(name: str, attrs: Mapping[Any, Any]) -> str:
    """Return the name of the values of an image with their statistic and weight.

    Examples
    --------
    >>> statistic_name("vz", {"statistic": "dispersion", "weight": "density"})
    'dispersion of vz, weighted by density'
    >>> statistic_name("density, integrated along z", {"statistic": "integral"})
    'density, integrated along z'
    """
    weight = str(attrs.get("weight", "none")).replace("_", " ")
    if weight.startswith("none"):
        return _STATISTICS.get(str(attrs.get("statistic")), "") + name
    return f"{_STATISTICS[str(attrs.get('statistic', 'mean'))]}{name}, weighted by {weight}"


def in_two_lines(text: str) -> str:
    r"""Return a label with a line break near the middle of its name, if the name is long.

    Examples
    --------
    >>> in_two_lines("density [g]"), in_two_lines("mean temperature, weighted by density [K]")
    ('density [g]', 'mean temperature,\\nweighted by density [K]')
    """
    name, _, _ = text.partition(" [")
    spaces = [place for place, character in enumerate(name) if character == " "]
    if len(name) <= _LONGEST_NAME or not spaces:
        return text
    middle = min(spaces, key=lambda place: abs(2 * place - len(name)))
    return f"{text[:middle]}\n{text[middle + 1 :]}"


def version_names(*locations: str) -> list[str]:
    """Return short names of versions of the same data: the ends of locations that differ.

    Examples
    --------
    >>> version_names("runs/a.ambar", "runs/b.ambar"), version_names("x/a.ambar /2", "y/a.ambar /2")
    (['a.ambar', 'b.ambar'], ['x/a.ambar', 'y/a.ambar'])
    """
    paths = [location.partition(" /")[0].rstrip("/").split("/") for location in locations]
    for count in range(1, max(map(len, paths)) + 1):
        names = ["/".join(path[-count:]) for path in paths]
        if len({*names}) == len(names):
            return names
    return ["original", "other version"]


def round_down(value: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is no larger than `value`.

    Examples
    --------
    >>> round_down(0.37), round_down(50.0)
    (0.2, 50.0)
    """
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value * (1 + 1e-9))
