"""Finds what a requested name means: a stored column, a derived field, or arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ambar import _core
from ambar.snapshot.derived.catalog import (
    INTERNAL,
    NAMES,
    NUMBERS,
    SHORT_NAMES,
    SOURCES,
    Catalog,
    Formula,
)
from ambar.snapshot.derived.neighbours import GradientField
from ambar.snapshot.derived.registry import FIELDS
from ambar.snapshot.field_names import ALIASES, DENSITIES_OF_TOTALS, quantity_of
from ambar.snapshot.physics.unit_expressions import Unit, parse_unit, unit_of_arithmetic
from ambar.snapshot.units import ABSOLUTE, DIMENSIONS, GIVE_UNITS, Units

if TYPE_CHECKING:
    from ambar.snapshot.run_info import RunInfo

Definition = tuple[str, str | tuple[list[str], Callable[..., Any] | _core.Region]]
"""A column and its formula, in the names of columns."""

_CONSTANT = re.compile(r"\{(\w+)\}")
_DIMENSIONAL = re.compile(r"\{(?:G|kelvin|number_density|electric|poynting)\}")
"""Constants with units, so that the unit of an expression is not that of its fields."""
_DEEPEST = 64
_OPERATORS = re.compile(r"[-+*/(]")
_HINTS = {
    "gamma": "the ratio of specific heats; give it with with_parameters(gamma=5/3)",
    "G": f"physical units; give them with {GIVE_UNITS}",
    "kelvin": f"physical units; give them with {GIVE_UNITS}",
    "number_density": f"physical units; give them with {GIVE_UNITS}",
    **dict.fromkeys(("electric", "magnetic", "poynting"), "fields with units, as of openPMD"),
}


class MissingError(Exception):
    """A derived field is not available: the reason; or a column does not exist: no text."""


class UnknownFieldError(MissingError):
    """A field in arithmetic does not exist: its name is `field`."""

    def __init__(self, field: str) -> None:
        super().__init__(f"the field {field!r}")
        self.field = field


class _CycleError(MissingError):
    """Fields of the user depend on each other."""


@dataclass(frozen=True)
class Context:
    """What derived fields depend on, besides the formulas of the user."""

    stored: Callable[[str], str | None]
    """Returns the stored or derived column of the core that a name means."""
    plain: Callable[[str], str]
    """Returns a name without its component: "rho" for "hydro/rho"."""
    catalog: Callable[[], Catalog]
    constants: Mapping[str, float]
    units: Units


class Resolution:
    """Columns for requested names, and the definitions that they need."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._definitions: dict[str, Formula] = {}
        self._units: dict[str, Unit | None] = {}
        self._dimensional: set[str] = set()
        self._open: list[str] = []
        self._catalog: Catalog | None = None

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The definitions of computed columns in order of dependency."""
        return tuple(
            (name, formula if isinstance(formula, str) else (list(formula[0]), formula[1]))
            for name, formula in self._definitions.items()
        )

    def column(self, name: str, *, arithmetic: bool = True) -> str:
        """Return the column that a name, or arithmetic of fields, means.

        Raises
        ------
        MissingError
            If it does not exist, with the reason.
        ValueError
            If an expression is invalid, or a field of the user hides a stored one.
        """
        stored = self._context.stored(name)
        plain = self._context.plain(name)
        if stored is not None:
            if plain in FIELDS:
                raise _core.InvalidError(
                    f"the field {plain!r} of ambar.fields.add has the name of a stored field; "
                    "choose another name and remove it with ambar.fields.remove"
                )
            return stored
        others = (*ALIASES.get(plain, ()), SHORT_NAMES.get(plain, plain))
        for known in (plain, *others):
            if known != plain and self._context.stored(known) is not None:
                return self.column(known, arithmetic=False)
            if known in FIELDS or known in self._formulas:
                return self._define(known)
        if not SOURCES.intersection((plain, *others)) and NAMES.intersection((plain, *others)):
            raise MissingError(f"{plain!r} is not defined for these data")
        if arithmetic and _OPERATORS.search(name):
            formula = self._compiled(name, is_inline=True)  # may replace `_definitions`
            self._definitions.setdefault(name, formula)
            return name
        raise MissingError("")

    def unit(self, column: str) -> Unit | None:
        """Return the unit of the values of a column; None if it is unknown."""
        if column in self._units:
            return self._units[column]
        if column in self._definitions:
            found = self._unit_of_definition(column)
        else:
            found = self._context.units._unit_of_name(column)
        self._units[column] = found
        return found

    def _unit_of_definition(self, column: str) -> Unit | None:
        formula = self._definitions[column]
        found = None
        if isinstance(formula, str) and column not in self._dimensional:
            found = unit_of_arithmetic(formula, self.unit)
        if user := FIELDS.get(column):
            return self._unit_of_user(column, user.unit, found)
        if found is None and column in self._formulas:
            found = self._code_unit(quantity_of(column))
        return found

    def _unit_of_user(self, name: str, stated: str | None, inferred: Unit | None) -> Unit | None:
        """Return the unit of a field of the user: that of its expression, otherwise the stated one.

        Raises
        ------
        ValueError
            If both are known, and differ in dimension.
        """
        if stated is None:
            return inferred
        is_quantity = stated in DIMENSIONS or stated in ABSOLUTE
        unit = self._code_unit(stated) if is_quantity else parse_unit(stated)
        if inferred is None or unit is None:
            return unit
        if not unit.is_like(inferred):
            raise _core.InvalidError(
                f"the field {name!r} of ambar.fields.add has the unit {stated!r}, of dimension "
                f"{unit.text}, but its expression has the dimension {inferred.text}; correct one "
                "of them, or use a function if numbers in the expression have units"
            )
        return inferred

    def _code_unit(self, quantity: str | None) -> Unit | None:
        if quantity in ABSOLUTE:
            return ABSOLUTE[quantity]
        if quantity is None or not self._context.units.factors:
            return None
        return self._context.units._code_unit(quantity)

    @property
    def _formulas(self) -> Catalog:
        if self._catalog is None:
            self._catalog = self._context.catalog()
        return self._catalog

    def _define(self, name: str) -> str:
        """Define a field of the user or of the catalog by the first formula that is available."""
        if name in self._definitions:
            return name
        if name in self._open:
            cycle = [*self._open[self._open.index(name) :], name]
            raise _CycleError(f"fields depend on each other: {' -> '.join(cycle)}")
        if len(self._open) >= _DEEPEST:
            raise _core.InvalidError(
                f"too many derived fields depend on each other: {self._open[0]!r} needs more than "
                f"{_DEEPEST} in a chain"
            )
        formulas = [FIELDS[name].formula] if name in FIELDS else self._formulas[name]
        reasons: list[str] = []
        circular: _CycleError | None = None
        self._open.append(name)
        try:
            for formula in formulas:
                before = dict(self._definitions)
                try:
                    compiled = self._compiled(formula)
                except MissingError as error:
                    self._definitions = before
                    reasons.append(str(error))
                    circular = error if isinstance(error, _CycleError) else circular
                    continue
                self._definitions[name] = compiled
                if isinstance(formula, str) and _DIMENSIONAL.search(formula):
                    self._dimensional.add(name)
                if name in FIELDS:
                    self.unit(name)  # raises InvalidError if the stated unit does not fit
                return name
        finally:
            self._open.pop()
        if circular is not None:
            raise circular
        if name in SOURCES and not any("with_" in reason for reason in reasons):
            raise MissingError("")
        raise MissingError(f"{name!r} needs {' or '.join(dict.fromkeys(reasons))}")

    def _compiled(self, formula: Formula, *, is_inline: bool = False) -> Formula:
        """Return a formula with constants, and in the names of columns."""
        if not isinstance(formula, str):
            inputs, function = formula
            return tuple(self._input(name) for name in inputs), function
        text = formula if is_inline else _CONSTANT.sub(self._constant, formula)
        for name in _core.expression_fields(text):
            column = self._input(name)
            if column != name:
                self._definitions.setdefault(name, f"`{column}`")
        return text

    def _input(self, name: str) -> str:
        try:
            return self.column(name, arithmetic=False)
        except MissingError as error:
            if str(error):
                raise
            raise UnknownFieldError(name) from None

    def _constant(self, match: re.Match[str]) -> str:
        name = match[1]
        number = NUMBERS.get(name, self._context.constants.get(name))
        if number is None:
            raise MissingError(_HINTS[name])
        return repr(float(number))


def check_integrals(columns: Mapping[str, str], info: RunInfo) -> None:
    """Refuse integrals along a line of sight that are not defined.

    Those of totals of a cell depend on the sizes of cells, and curvilinear coordinates are not
    lengths.

    Parameters
    ----------
    columns
        The columns of the fields to integrate, by requested name.
    info
        The information on the run.

    Raises
    ------
    ValueError
        If one of them is a total; the message names its density. If the data have three dimensions
        and are not in Cartesian coordinates.
    """
    coordinates = getattr(info, "coordinates", "cartesian")
    if info.ndim == 3 and coordinates != "cartesian":
        raise _core.InvalidError(
            f"expected Cartesian coordinates for an integral along the line of sight, found "
            f"{coordinates} ones; draw a slice, or give a weight for a mean along a coordinate"
        )
    for name, column in columns.items():
        if column == "cell_volume":
            advice = "use a mean with weight='volume', or sum('cell_volume')"
        elif density := DENSITIES_OF_TOTALS.get(column):
            advice = f"integrate its density, {density!r}, or give a weight for a mean"
        else:
            continue
        raise _core.InvalidError(
            f"expected a field with a value per volume for an integral along the line of sight, "
            f"found {name!r}, the total of each cell; {advice}"
        )


def computed_columns(definitions: Sequence[Definition]) -> _core.ComputedColumns | None:
    """Return definitions for the core; None without any. Functions read what they need before."""
    for _, formula in definitions:
        if not isinstance(formula, str) and isinstance(formula[1], GradientField):
            formula[1].prepare()
    return _core.ComputedColumns(definitions) if definitions else None


def needed_definitions(definitions: Sequence[Definition], column: str) -> tuple[Definition, ...]:
    """Return the definitions that a column needs."""
    needed, kept = {column}, []
    for name, formula in reversed(definitions):
        if name in needed:
            inputs = _core.expression_fields(formula) if isinstance(formula, str) else formula[0]
            needed.update(inputs)
            kept.append((name, formula))
    return tuple(reversed(kept))


def available(context: Context) -> list[str]:
    """Return the names of the derived fields whose inputs exist."""
    names: Iterable[str] = dict.fromkeys([*FIELDS, *context.catalog()])
    found = []
    for name in names:
        if name not in INTERNAL and context.stored(name) is None:
            try:
                Resolution(context).column(name)
            except (MissingError, _core.InvalidError):
                continue
            found.append(name)
    return found
