"""Expressions of units, such as "Msun/yr" and "erg/cm**3", and units of arithmetic of fields."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeVar

from ambar import _core
from ambar.snapshot.physics.constants import (
    ELECTRON_VOLT,
    GAUSS,
    LENGTHS,
    LIGHT_SPEED,
    MASSES,
    SOLAR_LUMINOSITY,
    SPELLINGS,
    TIMES,
)

Dimension = tuple[float, float, float, float]
"""Exponents of length, mass, time and temperature."""
DIMENSIONLESS: Dimension = (0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Unit:
    """A unit: its value in CGS, and its dimension.

    Magnetic fields are in Heaviside-Lorentz units, as in RAMSES: B**2 / 2 is a pressure. So are
    electric fields, charges and currents; E and B have one dimension.
    """

    factor: float
    dimension: Dimension = DIMENSIONLESS
    name: str = field(default="", compare=False)
    """Its expression in pint's notation, if it was parsed from one."""

    def __mul__(self, other: Unit) -> Unit:
        """Return the product of two units."""
        pairs = zip(self.dimension, other.dimension, strict=True)
        length, mass, time, kelvin = (a + b for a, b in pairs)
        return Unit(self.factor * other.factor, (length, mass, time, kelvin))

    def __pow__(self, exponent: float) -> Unit:
        """Return a power of the unit."""
        length, mass, time, kelvin = (own * exponent for own in self.dimension)
        return Unit(self.factor**exponent, (length, mass, time, kelvin))

    def __truediv__(self, other: Unit) -> Unit:
        """Return the quotient of two units."""
        return self * other**-1

    def is_like(self, other: Unit) -> bool:
        """Return whether both have one dimension."""
        pairs = zip(self.dimension, other.dimension, strict=True)
        return all(math.isclose(a, b, abs_tol=1e-9) for a, b in pairs)

    @property
    def text(self) -> str:
        """The dimension in CGS units, for messages: "g/cm**3"."""
        above: list[str] = []
        below: list[str] = []
        for name, exponent in zip(("cm", "g", "s", "K"), self.dimension, strict=True):
            power = "" if math.isclose(abs(exponent), 1.0) else f"**{abs(exponent):.4g}"
            if abs(exponent) > 1e-9:
                (above if exponent > 0 else below).append(name + power)
        if not above and not below:
            return "dimensionless"
        return "/".join(["*".join(above) or "1", *below])


_ENERGY: Dimension = (2.0, 1.0, -2.0, 0.0)
_PRESSURE: Dimension = (-1.0, 1.0, -2.0, 0.0)
_MAGNETIC: Dimension = (-0.5, 0.5, -1.0, 0.0)
UNITS = {
    **{name: Unit(cm, (1.0, 0.0, 0.0, 0.0)) for name, cm in LENGTHS.items()},
    **{name: Unit(g, (0.0, 1.0, 0.0, 0.0)) for name, g in MASSES.items()},
    **{name: Unit(s, (0.0, 0.0, 1.0, 0.0)) for name, s in TIMES.items()},
    "K": Unit(1.0, (0.0, 0.0, 0.0, 1.0)),
    "Hz": Unit(1.0, (0.0, 0.0, -1.0, 0.0)),
    "erg": Unit(1.0, _ENERGY),
    "J": Unit(1e7, _ENERGY),
    "eV": Unit(ELECTRON_VOLT, _ENERGY),
    "keV": Unit(ELECTRON_VOLT * 1e3, _ENERGY),
    "dyn": Unit(1.0, (1.0, 1.0, -2.0, 0.0)),
    "N": Unit(1e5, (1.0, 1.0, -2.0, 0.0)),
    "W": Unit(1e7, (2.0, 1.0, -3.0, 0.0)),
    "Lsun": Unit(SOLAR_LUMINOSITY, (2.0, 1.0, -3.0, 0.0)),
    "Ba": Unit(1.0, _PRESSURE),
    "Pa": Unit(10.0, _PRESSURE),
    "bar": Unit(1e6, _PRESSURE),
    "Gauss": Unit(GAUSS, _MAGNETIC),
    "muG": Unit(GAUSS * 1e-6, _MAGNETIC),
    "nG": Unit(GAUSS * 1e-9, _MAGNETIC),
    "Tesla": Unit(GAUSS * 1e4, _MAGNETIC),
    "V": Unit(GAUSS * 1e8 / LIGHT_SPEED, (0.5, 0.5, -1.0, 0.0)),
    "C": Unit(LIGHT_SPEED / 10 / GAUSS, (1.5, 0.5, -1.0, 0.0)),
    "A": Unit(LIGHT_SPEED / 10 / GAUSS, (1.5, 0.5, -2.0, 0.0)),
    "dimensionless": Unit(1.0),
    "rad": Unit(1.0),
    "deg": Unit(math.pi / 180),
}
"""The names in expressions of units."""
_SPELLINGS = {
    **SPELLINGS,
    "gauss": "Gauss",
    "uG": "muG",
    "tesla": "Tesla",
    "T": "Tesla",
    "dyne": "dyn",
    "Lsol": "Lsun",
    "year": "yr",
}
_PINT_NAMES = {
    "Au": "au",
    "Gauss": "gauss",
    "muG": "uG",
    "Tesla": "tesla",
    "Msol": "Msun",
    "Mearth": "Mearth",
}
"""Names of units in pint's notation, where they differ. pint does not define masses of bodies."""
NOT_EXPRESSIONS = {"nH": "1/cm**3", "NH": "1/cm**2", "T_mu": "K", "K_mu": "K"}
"""Units of RAMSES that are not expressions, in pint's notation."""
_SI_PREFIXES = {
    "f": 1e-15,
    "p": 1e-12,
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
}
_WITH_PREFIXES = ("m", "g", "s", "K", "Hz", "J", "eV", "N", "W", "Pa", "bar", "V", "C", "A")
_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_]+)(?P<digits>[+-]?[0-9]+)?"
    r"|(?P<number>[+-]?[0-9]+(?:\.[0-9]*)?)|(?P<symbol>\*\*|\^|[*/()]))"
)
_DEEPEST = 32
_T = TypeVar("_T")


def parse_unit(text: str) -> Unit:
    """Return the unit that an expression means: "Msun/yr", "km/s/kpc", "g cm-3", "cm3".

    A product is written with ``*`` or a space, a power with ``**``, ``^`` or digits after a name.

    Raises
    ------
    ValueError
        If a name is unknown, or the expression is invalid.
    """
    unit, name = _Parser(text).parse()
    return replace(unit, name=name)


def pint_notation(text: str) -> str:
    """Return an expression of a unit in the notation of pint: "g/cm3" is "g/cm**3".

    Raises
    ------
    ValueError
        As `parse_unit`.
    """
    return NOT_EXPRESSIONS.get(text) or _Parser(text).parse()[1]


def suggested_unit(text: str) -> str:
    """Return a question that suggests "km/s" for "km_s" of Mera.jl; "" for other units."""
    spelled = text.replace("_", "/")
    try:
        parse_unit(spelled)
    except _core.InvalidError:
        return ""
    return f"did you mean {spelled!r}? "


class _Parser:
    """Recursive descent over the tokens of an expression of units."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(
                f"invalid unit: expected a string such as 'code' or 'km/s', found {text!r:.80}; "
                "give the name or the expression of a unit"
            )
        self._text = text
        self._tokens: list[re.Match[str]] = []
        position, end = 0, len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                raise self._error(f"unexpected {text[position:].strip()[:1]!r}")
            self._tokens.append(match)
            position = match.end()
        self._next = 0
        self._depth = 0

    def parse(self) -> tuple[Unit, str]:
        """Return the unit, and its text in pint's notation."""
        if not self._tokens:
            raise self._error("it is empty")
        try:
            found = self._product()
        except ArithmeticError:
            raise self._error("its value is too large or too small") from None
        if not 0 < found[0].factor < math.inf or not all(map(math.isfinite, found[0].dimension)):
            raise self._error("its value is too large or too small")
        if self._next < len(self._tokens):
            raise self._error(f"unexpected {self._tokens[self._next][0].strip()!r}")
        return found

    def _product(self) -> tuple[Unit, str]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error("too many parentheses")
        unit, text = self._power()
        while (symbol := self._symbol()) != ")" and self._next < len(self._tokens):
            if symbol in ("*", "/"):
                self._next += 1
            factor, part = self._power()
            unit = unit / factor if symbol == "/" else unit * factor
            text += f"{'/' if symbol == '/' else '*'}{part}"
        self._depth -= 1
        return unit, text

    def _power(self) -> tuple[Unit, str]:
        unit, text = self._atom()
        if self._symbol() in ("**", "^"):
            self._next += 1
            token = self._take()
            if token["number"] is None:
                raise self._error(f"expected a number as the exponent, found {token[0].strip()!r}")
            unit, text = unit ** float(token["number"]), f"{text}**{token['number']}"
        return unit, text

    def _atom(self) -> tuple[Unit, str]:
        token = self._take()
        if token["symbol"] == "(":
            unit, text = self._product()
            if self._symbol() != ")":
                raise self._error("a parenthesis is not closed")
            self._next += 1
            return unit, f"({text})"
        if token["number"] == "1":
            return Unit(1.0), "1"
        name = _SPELLINGS.get(token["name"] or "", token["name"])
        found = UNITS.get(name) or _with_prefix(name)
        if found is None:
            hint = suggested_unit(self._text) if "_" in self._text else ""
            raise self._error(
                f"unknown unit {token[0].strip()!r}; {hint}available: {', '.join(UNITS)}, and "
                "products, quotients and powers of them"
            )
        unit, text = found, _PINT_NAMES.get(name, name)
        if token["digits"]:
            unit, text = unit ** float(token["digits"]), f"{text}**{token['digits']}"
        return unit, text

    def _symbol(self) -> str | None:
        if self._next >= len(self._tokens):
            return None
        symbol: str | None = self._tokens[self._next]["symbol"]
        return symbol

    def _take(self) -> re.Match[str]:
        if self._next >= len(self._tokens):
            raise self._error("it ends early")
        self._next += 1
        return self._tokens[self._next - 1]

    def _error(self, why: str) -> Exception:
        return _core.InvalidError(
            f"invalid unit {self._text!r:.80}: {why}; expected an expression such as 'g/cm**3'"
        )


def _with_prefix(name: str) -> Unit | None:
    """Return a unit with a prefix of SI: "nK", "GHz"; None for another name."""
    if name[:1] in _SI_PREFIXES and name[1:] in _WITH_PREFIXES:
        return UNITS[name[1:]] * Unit(_SI_PREFIXES[name[:1]])
    return None


_QUOTED = re.compile(r"`([^`]*)`")


def unit_of_arithmetic(text: str, unit_of: Callable[[str], Unit | None]) -> Unit | None:
    """Return the unit of arithmetic of fields; None if it is unknown or does not exist.

    Parameters
    ----------
    text
        An expression in the grammar of conditions.
    unit_of
        Returns the unit of the values of a field; None if it is unknown.
    """
    quoted: dict[str, str] = {}

    def placeholder(match: re.Match[str]) -> str:
        name = f"_quoted_{len(quoted)}"
        quoted[name] = match[1]
        return name

    try:
        tree = ast.parse(_QUOTED.sub(placeholder, text).strip(), mode="eval")
        measure = _Measure(lambda name: unit_of(quoted.get(name, name)))
        return measure.visit(tree.body) or Unit(1.0)
    except (_UnknownError, SyntaxError, RecursionError, OverflowError, ValueError):
        return None


class _UnknownError(Exception):
    """The unit of a part is unknown, or its parts do not fit."""


class _Measure(ast.NodeVisitor):
    """Returns the unit of a node; None for numbers, which have that of what they are added to."""

    def __init__(self, unit_of: Callable[[str], Unit | None]) -> None:
        self._unit_of = unit_of

    def visit_Constant(self, node: ast.Constant) -> Unit | None:
        if not isinstance(node.value, int | float):
            raise _UnknownError
        return None

    def visit_Name(self, node: ast.Name) -> Unit | None:
        return _known(self._unit_of(node.id))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Unit | None:
        return self._measure(node.operand)

    def visit_Call(self, node: ast.Call) -> Unit | None:
        units = [self._measure(argument) for argument in node.args]
        match node.func:
            case ast.Name(id="sqrt"):
                return None if units[0] is None else units[0] ** 0.5
            case ast.Name(id="log10"):
                return Unit(1.0)
        return reduce(_common, units)

    def visit_BinOp(self, node: ast.BinOp) -> Unit | None:
        a = self._measure(node.left)
        if isinstance(node.op, ast.Pow):
            if a is None or a.is_like(Unit(1.0)):
                return a
            return a ** _known(_number(node.right))
        b = self._measure(node.right)
        if isinstance(node.op, ast.Add | ast.Sub):
            return _common(a, b)
        if a is None and b is None:
            return None
        a, b = a or Unit(1.0), b or Unit(1.0)
        return a * b if isinstance(node.op, ast.Mult) else a / b

    def generic_visit(self, node: ast.AST) -> Unit | None:  # noqa: ARG002
        raise _UnknownError

    def _measure(self, node: ast.expr) -> Unit | None:
        unit: Unit | None = self.visit(node)
        return unit


def _common(one: Unit | None, other: Unit | None) -> Unit | None:
    """Return the unit of a sum."""
    if one is None or other is None:
        return one or other
    if not one.is_like(other) or not math.isclose(one.factor, other.factor, rel_tol=1e-9):
        raise _UnknownError
    return one


def _number(node: ast.expr) -> float | None:
    """Return the value of arithmetic of numbers; None if it contains a field."""
    match node:
        case ast.Constant(value=(int() | float()) as value):
            return float(value)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _number(operand)
            return None if number is None else -number
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            one, other = _number(left), _number(right)
            return one / other if one is not None and other else None
    return None


def _known(value: _T | None) -> _T:
    if value is None:
        raise _UnknownError
    return value
