"""Derived fields: computed from stored fields, chunk by chunk, when they are read.

Cells and particles have many derived fields, such as "temperature", "sound_speed" and
"velocity_cylindrical_theta": see `Amr.derived_fields`. `add` defines more. They work wherever a
field name does: in `read`, conditions, grids, slices, projections, dask arrays and plots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ambar.snapshot.derived import registry

if TYPE_CHECKING:
    from ambar.snapshot.amr import Amr
    from ambar.snapshot.particles import Particles
    from ambar.snapshot.snapshot import Snapshot

__all__ = ["add", "available", "remove"]


def add(
    name: str,
    formula: str | Callable[..., Any],
    unit: str | None = None,
    *,
    inputs: Sequence[str] | None = None,
    overwrite: bool = False,
) -> None:
    """Define a derived field, for all snapshots that have its inputs.

    Parameters
    ----------
    name : str
        Name of the field: letters, digits and ``_``.
    formula : str or callable
        An expression of fields, derived fields and numbers, with ``+ - * / **``, ``abs``, ``sqrt``,
        ``log10``, ``min`` and ``max``; conditions on it skip chunks. Or a function of float64
        arrays that returns a real number for each row. It is called once for each chunk, so that it
        must not depend on other rows.
    unit : str, optional
        A quantity in code units ("velocity", "density"; "temperature" is in K), or an expression of
        units ("km/s", "Msun/yr"). For a function, the unit of the values that it returns; unknown
        by default. The values of an expression have the unit that follows from its fields, code
        units as a rule, and `unit` states only its dimension: choose the unit of results with
        ``unit=`` of `mean`, `project` and others. If it does not follow, for example in a run
        without units, `unit` is that of the values.
    inputs : sequence of str, optional
        The fields that a function takes; by default the names of its parameters.
    overwrite : bool, default False
        Whether a derived field of this name is replaced. A stored field never is.

    Raises
    ------
    ValueError
        If the name, the formula or the unit is invalid, the name is an alias, or the field exists.
        When the field is read: if its expression has another dimension than `unit`.

    Examples
    --------
    >>> ambar.fields.add("speed_of_gas", "sqrt(vx**2 + vy**2 + vz**2)")
    >>> ambar.fields.add("log_density", lambda density: np.log(density))
    >>> amr = ambar.open_snapshot("run.ambar").amr
    >>> amr.read(["speed_of_gas", "log_density"], where="speed_of_gas > 0.1").columns
    ['speed_of_gas', 'log_density']
    >>> ambar.fields.remove("speed_of_gas")
    >>> ambar.fields.remove("log_density")
    """
    registry.add(name, formula, unit, inputs=inputs, overwrite=overwrite)


def remove(name: str) -> None:
    """Remove a derived field that `add` defined.

    Parameters
    ----------
    name : str
        Name of the field.

    Raises
    ------
    KeyError
        If `add` did not define it.

    Examples
    --------
    >>> ambar.fields.add("double_density", "2 * rho")
    >>> ambar.fields.remove("double_density")
    """
    registry.remove(name)


def available(data: Snapshot | Amr | Particles) -> dict[str, str]:
    """Return the derived fields whose inputs exist, with their units.

    Parameters
    ----------
    data : Snapshot, Amr or Particles
        Cells or particles; a snapshot for its cells.

    Returns
    -------
    dict of str to str
        The unit of the values by name: "code", "dimensionless", or an expression such as "K".

    Raises
    ------
    KeyError
        If a snapshot has no cells.

    Examples
    --------
    >>> fields = ambar.fields.available(ambar.open_snapshot("run.ambar"))
    >>> fields["temperature"], fields["mach_number"], fields["cell_mass"]
    ('K', 'dimensionless', 'code')
    """
    from ambar.snapshot.field_rows import FieldRows

    rows = data if isinstance(data, FieldRows) else data.amr
    names = rows.derived_fields
    units = rows._column_units(names)
    return {name: units.label(name, "code") for name in names}
