"""Conditions on datasets: comparisons of their attributes and statistics, written as text.

``platform == "argo" and temperature.max > 20``: names of attributes, and of variables with
``.min``, ``.max``, ``.count`` or ``.nulls``; numbers, texts, True and False; ``and``, ``or``,
``not``, ``in`` with lists, and comparisons. What a dataset lacks makes a comparison false.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ambar import _core

Lookup = Callable[[str, "str | None"], np.ndarray]
"""Gives a column: of an attribute (name, None), or a statistic (variable, "max")."""

_COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def matching(text: str, count: int, lookup: Lookup) -> np.ndarray:
    """Return which of `count` datasets meet a condition: bool (count,).

    Raises
    ------
    ValueError
        If the text is no condition.
    KeyError
        If it names what no dataset has.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _core.InvalidError(f"{text!r} is no condition: {error}") from None
    result = _evaluate(tree, text, lookup)
    if not isinstance(result, np.ndarray) or result.dtype != bool:
        raise _core.InvalidError(f"{text!r} is no condition: compare something in it")
    return np.broadcast_to(result, (count,))


def _evaluate(node: ast.expr, text: str, lookup: Lookup) -> Any:  # noqa: PLR0911 - a case each
    match node:
        case ast.BoolOp(op=op, values=values):
            parts = [_evaluate(value, text, lookup) for value in values]
            join = np.logical_and if isinstance(op, ast.And) else np.logical_or
            return join.reduce([np.asarray(part, bool) for part in parts])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ~np.asarray(_evaluate(operand, text, lookup), bool)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [_evaluate(side, text, lookup) for side in (left, *comparators)]
            pairs = zip(sides, ops, sides[1:], strict=False)
            return np.logical_and.reduce([_compare(a, op, b) for a, op, b in pairs])
        case ast.Name(id=name):
            return lookup(name, None)
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            return lookup(name, attr)
        case ast.Constant(value=str() | int() | float() as value):
            return value
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return [_evaluate(part, text, lookup) for part in parts]
    raise _core.InvalidError(
        f"{text!r}: {ast.unparse(node)!r} is not understood; compare attributes and statistics "
        "with <, <=, >, >=, ==, != or in, joined by and, or, not"
    )


def _compare(left: Any, op: ast.cmpop, right: Any) -> np.ndarray:
    if isinstance(op, (ast.In, ast.NotIn)):
        found = np.zeros(np.shape(left), bool)
        for one in right:
            found |= _each(left, operator.eq, one)
        return found if isinstance(op, ast.In) else ~found
    return _each(left, _COMPARE.get(type(op), _refuse), right)


def _refuse(left: Any, right: Any) -> bool:  # noqa: ARG001 - stands for an operator
    raise _core.InvalidError("conditions compare with <, <=, >, >=, ==, != or in")


def _each(left: Any, compare: Callable[[Any, Any], Any], right: Any) -> np.ndarray:
    """Compare columns or values, one by one where they are objects: others are never equal."""
    if all(np.asarray(side).dtype.kind != "O" for side in (left, right)):
        return np.asarray(compare(left, right), bool)
    a, b = np.broadcast_arrays(np.asarray(left, object), np.asarray(right, object))

    def one(x: Any, y: Any) -> bool:
        if x is None or y is None:
            return False
        try:
            return bool(compare(x, y))
        except TypeError:
            return False

    pairs = zip(a.ravel(), b.ravel(), strict=True)
    return np.array([one(x, y) for x, y in pairs], bool).reshape(a.shape)
