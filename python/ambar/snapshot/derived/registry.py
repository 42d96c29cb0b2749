"""The derived fields that users define."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ambar import _core
from ambar.snapshot.derived.catalog import NAMES, SHORT_NAMES, Formula
from ambar.snapshot.field_names import ALIASES, DERIVED
from ambar.snapshot.physics.unit_expressions import parse_unit
from ambar.snapshot.units import ABSOLUTE, DIMENSIONS

Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class _RealFunction:
    """A function of a user, whose result must not be complex."""

    function: Function

    def __call__(self, *arrays: np.ndarray) -> Any:
        """Return the result of the function."""
        found = self.function(*arrays)
        if np.iscomplexobj(found):
            raise TypeError("expected real numbers, found complex ones")
        return found


@dataclass(frozen=True)
class UserField:
    """A derived field that a user defined."""

    formula: Formula
    unit: str | None
    """A quantity or an expression of a unit: the dimension of an expression, or the unit of the
    values of a function."""


_FIELDS: dict[str, UserField] = {}
FIELDS: Mapping[str, UserField] = MappingProxyType(_FIELDS)
"""The defined fields by name."""


def add(
    name: str,
    formula: str | Function,
    unit: str | None = None,
    *,
    inputs: Sequence[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Define a derived field; see `ambar.fields.add`."""
    if not isinstance(name, str) or not re.fullmatch(r"[^\W\d][\w.]*", name):
        raise _core.InvalidError(
            f"invalid name of a field: {name!r:.80}; expected letters, digits and _, and no digit "
            "at the start"
        )
    alias = SHORT_NAMES.get(name) or ALIASES.get(name, ("",))[0]
    if alias and name not in NAMES and name not in DERIVED:
        raise _core.InvalidError(f"the name {name!r} is an alias of {alias!r}; choose another name")
    is_fixed = name in DERIVED
    if is_fixed or (not overwrite and (name in _FIELDS or name in NAMES)):
        hint = "choose another name" if is_fixed else "use overwrite=True or another name"
        raise _core.InvalidError(f"the field {name!r} exists; {hint}")
    if unit is not None and unit not in DIMENSIONS and unit not in ABSOLUTE:
        parse_unit(unit)
    _FIELDS[name] = UserField(_checked(name, formula, inputs), unit)


def _checked(name: str, formula: str | Function, inputs: Sequence[str] | None) -> Formula:
    if isinstance(formula, str):
        if inputs is not None:
            raise _core.InvalidError("an expression names its fields; leave out `inputs`")
        if name in _core.expression_fields(formula):
            raise _core.InvalidError(
                f"invalid formula of {name!r}: {formula!r:.80}; expected other fields than itself"
            )
        return formula
    if not callable(formula):
        raise TypeError(
            f"expected an expression or a function as the formula, found {formula!r:.80}"
        )
    if inputs is None:
        inputs = [
            parameter.name
            for parameter in inspect.signature(formula).parameters.values()
            if parameter.default is parameter.empty
            and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    if isinstance(inputs, str) or not inputs or name in inputs:
        raise _core.InvalidError(
            f"invalid inputs of {name!r}: {inputs!r:.80}; expected a list of names of other fields"
        )
    return tuple(inputs), _RealFunction(formula)


def remove(name: str) -> None:
    """Remove a field; see `ambar.fields.remove`."""
    if name not in _FIELDS:
        raise _core.NotFoundError(
            f"no field {name!r}; defined: {', '.join(_FIELDS) or 'no fields'}"
        )
    del _FIELDS[name]
