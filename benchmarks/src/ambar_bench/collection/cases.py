"""The cases of the study, those of Atlas' own benchmark, and the datasets they consist of.

The numbers, the generator and the slice are those of maris-development/atlas,
atlas-python/benchmarks (0.13), so that its published figures and these speak of the same work.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import ambar

if TYPE_CHECKING:
    import xarray as xr

Values = np.ndarray[Any, np.dtype[Any]]
BATCH_BYTES = 1 << 30
"""Raw bytes of the datasets that are generated at a time, at most (one dataset at least)."""


@dataclass(frozen=True)
class Variable:
    """A variable: normally distributed white noise."""

    name: str
    dtype: str
    units: str
    mean: float
    deviation: float
    bounds: tuple[float, float] | None = None
    """What values are clipped to."""


@dataclass(frozen=True)
class Dimension:
    """A dimension; its coordinate is evenly spaced from `first` to `last`, or hourly times."""

    name: str
    size: int
    first: float = math.nan
    last: float = math.nan

    def coordinate(self) -> Values:
        """Return the coordinate: float32, or datetime64[ns] without `first`."""
        if math.isnan(self.first):
            start = np.datetime64("2024-01-01", "ns")
            return start + np.arange(self.size) * np.timedelta64(1, "h")
        return np.linspace(self.first, self.last, self.size, dtype=np.float32)


@dataclass(frozen=True)
class Case:
    """Datasets of like schema."""

    name: str
    variables: tuple[Variable, ...]
    dimensions: tuple[Dimension, ...]
    identifier: str
    """The attribute that holds a dataset's number."""
    chunks: tuple[int, ...] | None = None
    """Chunks that peers use; None: an array is one chunk. ambar chooses its own."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of every variable."""
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def names(self) -> list[str]:
        """Of the variables."""
        return [variable.name for variable in self.variables]

    @property
    def dataset_bytes(self) -> int:
        """Raw bytes of a dataset's variables."""
        cells = math.prod(self.shape)
        return sum(cells * np.dtype(variable.dtype).itemsize for variable in self.variables)

    def with_variables(self, count: int | None) -> Case:
        """Return the case with its first `count` variables, or copies named with _2, _3, ...

        Raises
        ------
        ValueError
            If there were none.
        """
        if count is None:
            return self
        if count < 1:
            raise ambar.InvalidError(f"expected 1 or more variables, found {count}")
        there = len(self.variables)
        chosen = [
            self.variables[number]
            if number < there
            else replace(
                self.variables[number % there],
                name=f"{self.variables[number % there].name}_{number // there + 1}",
                bounds=None,  # the original clips the variable that is named humidity alone
            )
            for number in range(count)
        ]
        return replace(self, variables=tuple(chosen))

    def window(self, fraction: float, offset: int = 0) -> dict[str, slice]:
        """Return the slice that is read: `fraction` of every dimension, from `offset` on.

        It has one element a dimension at least, and begins earlier than `offset` where it would
        not fit else.
        """
        found = {}
        for dimension in self.dimensions:
            size = min(max(1, int(fraction * dimension.size)), dimension.size)
            start = min(offset, dimension.size - size)
            found[dimension.name] = slice(start, start + size)
        return found

    def values(self, number: int) -> dict[str, Values]:
        """Return the variables of dataset `number`."""
        generator = np.random.default_rng(number)
        found = {}
        for variable in self.variables:
            noise = generator.normal(scale=variable.deviation, size=self.shape)
            array = (variable.mean + noise).astype(variable.dtype)
            if variable.bounds is not None:
                array = np.clip(array, *variable.bounds).astype(variable.dtype)
            found[variable.name] = array
        return found

    def dataset(self, number: int) -> xr.Dataset:
        """Return dataset `number`, with coordinates, units and its number as an attribute."""
        import xarray as xr

        names = [dimension.name for dimension in self.dimensions]
        values = self.values(number)
        return xr.Dataset(
            {v.name: (names, values[v.name], {"units": v.units}) for v in self.variables},
            coords={dim.name: (dim.name, dim.coordinate()) for dim in self.dimensions},
            attrs={self.identifier: number},
        )

    def batches(self, datasets: int) -> Iterator[list[tuple[str, xr.Dataset]]]:
        """Yield all datasets with their names, as many at a time as memory is meant to hold."""
        step = max(1, BATCH_BYTES // self.dataset_bytes)
        for start in range(0, datasets, step):
            numbers = range(start, min(start + step, datasets))
            yield [(dataset_name(number), self.dataset(number)) for number in numbers]


def dataset_name(number: int) -> str:
    """Return the name of a dataset: ds_0042."""
    return f"ds_{number:04d}"


def find_case(name: str) -> Case:
    """Return the case called `name`.

    Raises
    ------
    KeyError
        If the case does not exist.
    """
    if name not in CASES:
        raise ambar.NotFoundError(f"no case {name!r}; available: {', '.join(CASES)}")
    return CASES[name]


CASES = {
    case.name: case
    for case in (
        Case(
            name="profile",
            variables=(
                Variable("temperature", "float32", "celsius", 10, 4),
                Variable("salinity", "float32", "psu", 35, 1.5),
            ),
            dimensions=(Dimension("depth", 50, 0, 500), Dimension("time", 168)),
            identifier="cast_id",
        ),
        Case(
            name="gridded",
            variables=(
                Variable("temperature", "float32", "celsius", 15, 5),
                Variable("pressure", "float64", "hPa", 1013, 8),
                Variable("humidity", "float32", "percent", 65, 15, (0, 100)),
            ),
            dimensions=(
                Dimension("lon", 100, -180, 180),
                Dimension("lat", 100, -90, 90),
                Dimension("time", 48),
            ),
            identifier="grid_id",
            chunks=(50, 50, 24),
        ),
        Case(
            name="sensors",
            variables=(
                Variable("temperature", "float32", "celsius", 18, 2),
                Variable("pressure", "float64", "hPa", 1013.25, 3),
                Variable("humidity", "float32", "percent", 60, 10, (0, 100)),
            ),
            dimensions=(Dimension("time", 24),),
            identifier="station_id",
        ),
    )
}
