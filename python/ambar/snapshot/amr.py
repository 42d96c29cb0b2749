"""The cells of an AMR hierarchy: selected as a table, or mapped to a regular grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar._util.arguments import check_number, explained_arguments, names_of
from ambar._util.optional import require
from ambar.snapshot.analysis.batches import FRACTION, Selection, with_fraction
from ambar.snapshot.derived.catalog import Formula, cell_formulas
from ambar.snapshot.derived.neighbours import VelocityGradients, gradient_formulas
from ambar.snapshot.field_names import CELL_COMPONENTS, WEIGHTS_OF_LINES
from ambar.snapshot.field_rows import FieldRows
from ambar.snapshot.interop.raster import Chunks, raster
from ambar.snapshot.maps.drawing import name_of_integral
from ambar.snapshot.maps.methods import CellMaps
from ambar.snapshot.regions import AXES, Box, Cut, Region, checked_levels, length_of_unit
from ambar.snapshot.table import Table

if TYPE_CHECKING:
    import xarray as xr

    from ambar._core import ComputedColumns, Condition
    from ambar._core import Region as CoreRegion
    from ambar.snapshot.loading import Source
    from ambar.snapshot.physics.cosmology import Cosmology


_HINTS = {
    **dict.fromkeys(
        ("resolution", "pixel_size"), "use map(), which has pixels of any size, or give a level"
    ),
    **dict.fromkeys(("where", "levels"), "use map() or read(), which have it"),
    **dict.fromkeys(("statistic", "center", "width", "depth", "up"), "use map(), which has it"),
}


@explained_arguments(_HINTS)
class Amr(FieldRows, CellMaps):
    """Leaf cells of all levels: of a tree (RAMSES) or of patches (AMReX).

    Cells of a tree are in the order of the Morton curve. Cells of patches are ordered by level, the
    coarsest first, and along the curve within a level.

    Values are in code units. Fields have the names of RAMSES' descriptors, or aliases as in Mera.jl
    (rho, vx, vy, vz, p, epot, ax, ...). Derived columns can be requested like fields: level
    (int32), x, y, z (cell centres, float64, code length), dx (cell size, float64, code length; also
    dy and dz if cells are not cubes), and ix, iy, iz (int64, the index of the cell on its level).

    Examples
    --------
    >>> amr = ambar.open_snapshot("run.ambar").amr
    >>> len(amr), amr.levels, amr.fields[:2]
    (49680, (4, 6), ['density', 'velocity_x'])
    >>> dense = amr.read(["x", "y", "z", "rho"], where="rho > 2")
    >>> image = amr.project("rho", axis="z", level=5)
    >>> image.sizes
    Frozen({'y': 32, 'x': 32})
    """

    _component = "amr"

    _core: _core.Amr

    def __init__(self, source: Source) -> None:
        self._core = source.amr()
        self._info = source.info
        self._source = source
        self._gradients = VelocityGradients(self)

    @property
    def _arguments(self) -> tuple[object, ...]:
        return (self._source,)

    @property
    def ndim(self) -> int:
        """Dimensions, 1 to 3."""
        return int(self._core.ndim)

    @property
    def levels(self) -> tuple[int, int]:
        """Coarsest and finest level with leaf cells; numbered as in RAMSES, or from 0 for AMReX."""
        return self._core.levels

    @property
    def boxlen(self) -> float:
        """Size of the box in x, code length."""
        return float(self._core.upper[0] - self._core.lower[0])

    @property
    def lower(self) -> tuple[float, ...]:
        """Lower corner of the box, code length."""
        return tuple(self._core.lower)

    @property
    def layout(self) -> str:
        """Layout of the cells: "tree" or "patches"."""
        return self._core.layout

    @property
    def cells_per_level(self) -> dict[int, int]:
        """Number of leaf cells of each level that has some."""
        return dict(self._core.cells_per_level)

    @property
    def chunk_count(self) -> int:
        """Number of chunks that each field is stored in."""
        return int(self._core.chunks)

    def __len__(self) -> int:
        """Return the number of leaf cells."""
        return int(self._core.cells_count)

    @property
    def _title(self) -> str:
        return self._source.location

    def _properties(self) -> dict[str, object]:
        low, high = self.levels
        return {
            "Layout": f"{self.layout}, {self.ndim}-D",
            "Cells": f"{len(self):,}",
            "Levels": f"{low} to {high}",
        }

    def cell_size(self, level: int) -> list[float]:
        """Return the sides of the cells of a level.

        Parameters
        ----------
        level : int
            The level.

        Returns
        -------
        list of float
            A side for each dimension, code length.

        Raises
        ------
        ValueError
            If the level does not exist.

        Examples
        --------
        >>> ambar.open_snapshot("run.ambar").amr.cell_size(2)
        [0.25, 0.25, 0.25]
        """
        try:
            return self._core.cell_size(level)
        except (OverflowError, ValueError) as error:
            raise _core.InvalidError(f"no cells of level {level}: {_why(error)}") from error

    def boxes(self, level: int) -> np.ndarray:
        """Return the boxes of a level of patches.

        Parameters
        ----------
        level : int
            The level; 0 is the coarsest.

        Returns
        -------
        numpy.ndarray
            int64 of shape (boxes, 2, ndim): the first cell, and the cell after the last one, in
            cell indices of the level.

        Raises
        ------
        ValueError
            If the cells are a tree, or the level does not exist.

        Examples
        --------
        >>> ambar.open_snapshot("plt00200").amr.boxes(0).tolist()
        [[[0, 0, 0], [10, 8, 8]], [[10, 0, 0], [16, 8, 8]]]
        """
        try:
            return self._core.boxes(level)
        except (OverflowError, ValueError) as error:
            raise _core.InvalidError(f"no boxes of level {level}: {_why(error)}") from error

    def read(
        self,
        fields: Sequence[str] | str | None = None,
        *,
        region: Region | None = None,
        cut: Cut = "center",
        levels: tuple[int, int] | None = None,
        where: str | None = None,
        threads: int | None = None,
    ) -> Table:
        """Read leaf cells; only the chunks that overlap the selection are read and decoded.

        Parameters
        ----------
        fields : str or sequence of str, optional
            Fields and derived columns to read. By default level, the cell centres, and every
            field but ``domain``.
        region : Region, optional
            Cells whose centre is inside, unless `cut` states otherwise. It extends across periodic
            faces of the box.
        cut : {"center", "whole", "fraction"}, default "center"
            Cells at the surface of the region: those whose centre is inside, or all that share
            volume with it. "fraction" adds the column ``region_fraction``: the fraction of the
            volume of each cell that is inside.
        levels : tuple of int, optional
            ``(lowest, highest)`` level of the leaf cells, both included. Refined cells are not
            among them; `Snapshot.load` and `ambar.convert` have a `max_level`, at which the tree
            ends.
        where : str, optional
            A condition on fields, for example ``"density > 1e-3 and not level == 7"``,
            ``"rho * vx**2 > 1"`` or ``"rho > 1e-24 g/cm3"``: comparisons, arithmetic, and numbers
            with units. Its fields need not be among `fields`.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        Table
            Columns with the requested names in the requested order, in code units; a row per cell.

        Raises
        ------
        KeyError
            If a field does not exist.
        ValueError
            If the region, the cut, the levels or the condition are invalid.
        CorruptError
            If a checksum differs, or a file is damaged.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> cells = amr.read(["level", "rho"], region=ambar.Sphere("bc", 0.2), where="rho > 1.5")
        >>> cells.columns, len(cells)
        (['level', 'rho'], 487)
        >>> len(amr.read("level", levels=(6, 6)))
        19904
        """
        selection = Selection(region, levels, where, threads, cut)
        rows, names = with_fraction(self, self._names(fields), selection)
        arrays = rows._read_request(
            rows._request(names, where),
            region=region,
            is_by_volume=selection.is_by_volume,
            levels=levels,
            threads=threads,
        )
        return Table(arrays, info=self._info, dim="cell")._with_units(rows._column_units(names))

    def _read_core(
        self,
        columns: Sequence[str],
        region: CoreRegion | None,
        levels: tuple[int, int] | None,
        condition: Condition | None,
        threads: int | None,
        chunks: tuple[int, int] | None,
        computed: ComputedColumns | None,
    ) -> dict[str, np.ndarray]:
        return self._core.cells(
            columns, region, checked_levels(levels), condition, threads, chunks, computed
        )

    def chunks_touched(
        self,
        *,
        region: Region | None = None,
        levels: tuple[int, int] | None = None,
        where: str | None = None,
    ) -> int:
        """Return how many of the `chunk_count` chunks of a field `read` decodes for a selection.

        Parameters
        ----------
        region : Region, optional
            As for `read`.
        levels : (int, int), optional
            As for `read`.
        where : str, optional
            As for `read`.

        Returns
        -------
        int
            From 0 to `chunk_count`.

        Raises
        ------
        KeyError
            If a field of the condition does not exist.
        ValueError
            If the region, the levels or the condition is invalid.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> amr.chunks_touched(where="rho > 1e30")
        0
        """
        request = self._request([], where)
        return self._core.chunks_touched(
            self._region(region), checked_levels(levels), request.condition, request.computed
        )

    def grid(
        self,
        field: str,
        *,
        level: int | None = None,
        region: Box | None = None,
        preview: bool = False,
        unit: str = "code",
        chunks: Chunks | None = None,
        threads: int | None = None,
    ) -> xr.DataArray:
        """Return a field on the regular grid of a level (a covering grid).

        Finer cells are averaged; coarser cells fill all grid cells that they cover. Grid cells
        without a cell are NaN.

        Parameters
        ----------
        field : str
            A field or derived column.
        level : int, optional
            Level of the grid. For a tree, the grid has ``2**level`` cells along a root cell; for
            patches, it is one of their levels. By default the finest level at which no side of the
            grid exceeds 256 cells, or 2048 cells in one and two dimensions.
        region : Box, optional
            The grid has all cells that the box overlaps. By default the whole domain.
        preview : bool, default False
            Whether to sample finer cells of patches instead of averaging all of them: only the
            coarser levels of their chunks are read and decoded. Ignored for trees.
        unit : str, default "code"
            Unit of the values: "code", or a unit of the quantity of the field ("g/cm3", "km/s").
        chunks : int, tuple of int or "auto", optional
            The shape of the chunks of a dask array, in grid cells by dimension; "auto" for about
            16 MiB per chunk. A chunk is read when it is computed. By default values are read into
            memory.
        threads : int, optional
            Number of threads; all cores by default.

        Returns
        -------
        xarray.DataArray
            float64; coordinates in code length. The dimensions are x, y, z in three dimensions. In
            two they are y, x: an image, whose rows are lines of pixels from the lowest upwards.

        Raises
        ------
        KeyError
            If the field does not exist.
        ValueError
            If the level, the region, the unit or `chunks` is invalid.
        LimitError
            If the grid exceeds the memory limit.
        ModuleNotFoundError
            If xarray is not installed, or, with `chunks`, dask.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> cube = amr.grid("rho", level=5, region=ambar.Box((0, 0, 0), (0.5, 0.5, 0.25)))
        >>> cube.shape, cube.dims
        ((16, 16, 8), ('x', 'y', 'z'))
        >>> amr.grid("rho", level=6, chunks=32).data.numblocks
        (2, 2, 2)
        """
        axes, options = range(self.ndim), {"preview": preview}
        return raster(self, "grid", field, axes, level, region, unit, chunks, threads, options)

    def slice(
        self,
        field: str,
        *,
        axis: str = "z",
        at: float = 0.5,
        level: int | None = None,
        region: Box | None = None,
        at_unit: str = "box",
        unit: str = "code",
        chunks: Chunks | None = None,
        threads: int | None = None,
    ) -> xr.DataArray:
        """Return a field on a plane perpendicular to an axis.

        Each grid cell has the value of the leaf cell at its position, or the mean of the leaf cells
        that are finer than the grid.

        Parameters
        ----------
        field, unit : str
            As for `grid`.
        region : Box, optional
            As for `grid`.
        chunks : int, tuple of int or "auto", optional
            As for `grid`.
        threads : int, optional
            As for `grid`.
        axis : {"x", "y", "z"}, default "z"
            The axis that is perpendicular to the plane.
        at : float, default 0.5
            Position of the plane on the axis, in `at_unit`.
        level : int, optional
            Level of the grid; by default the finest at which no side exceeds 2048 cells.
        at_unit : str, default "box"
            "box" (fraction of the size of the box along the axis), "code", or a unit of length.

        Returns
        -------
        xarray.DataArray
            float64, an image: the other dimensions in the order z, y, x, whose last one is
            horizontal; coordinates in code length.

        Raises
        ------
        KeyError
            If the field does not exist.
        ValueError
            If the axis, the position, the level, the region or a unit is invalid.

        Examples
        --------
        >>> image = ambar.open_snapshot("run.ambar").amr.slice("p", axis="y", at=0.25, level=5)
        >>> image.dims, image.shape
        (('z', 'x'), (32, 32))
        """
        number, others = self._axis(axis)
        start, end = self._core.lower[number], self._core.upper[number]
        check_number("at", at)
        if at_unit == "box":
            low, high, position = 0.0, 1.0, start + at * (end - start)
        else:
            length = length_of_unit(self._info, at_unit)
            low, high, position = start / length, end / length, at * length
        if not low <= at <= high:
            known = "a fraction of the box" if at_unit == "box" else f"a position in {at_unit!r}"
            raise _core.InvalidError(
                f"invalid at={at:g}: the plane is outside of the domain; expected {known} from "
                f"{low:g} to {high:g}"
            )
        options = {"axis": number, "at": position}
        image = raster(self, "slice", field, others, level, region, unit, chunks, threads, options)
        return image.assign_attrs(axis=axis, at=position)

    def project(
        self,
        field: str,
        *,
        axis: str = "z",
        level: int | None = None,
        weight: str | None = None,
        region: Box | None = None,
        unit: str = "code",
        chunks: Chunks | None = None,
        threads: int | None = None,
    ) -> xr.DataArray:
        """Return a field integrated, or averaged, along an axis.

        Parameters
        ----------
        field : str
            As for `slice`.
        region : Box, optional
            As for `slice`.
        chunks : int, tuple of int or "auto", optional
            As for `slice`.
        level, threads : int, optional
            As for `slice`.
        axis : {"x", "y", "z"}, default "z"
            The axis of the integral or average.
        weight : str, optional
            None: the integral of the field along the axis, in code units of field times length; for
            the density this is the surface density. Totals of a cell, such as "mass", have no
            integral. A field: the mean weighted with this field, for example the mass-weighted mean
            with "density" or "mass". "volume": the volume-weighted mean.
        unit : str, default "code"
            Unit of the result: "code", or a unit of its quantity, for example "Msol/pc2" for the
            density without `weight`.

        Returns
        -------
        xarray.DataArray
            float64, an image: the other dimensions in the order z, y, x, whose last one is
            horizontal; coordinates in code length.

        Raises
        ------
        KeyError
            If a field does not exist.
        ValueError
            If the axis, the level, the region or the unit is invalid, or a total of a cell would be
            integrated.

        Examples
        --------
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> surface = amr.project("rho", axis="z", level=5)
        >>> velocity = amr.project("vx", axis="z", level=5, weight="rho")
        >>> surface.shape == velocity.shape == (32, 32)
        True
        """
        number, others = self._axis(axis)
        weight = WEIGHTS_OF_LINES.get(weight or "", weight)
        how = {"axis": number, "weight": weight}
        image = raster(self, "project", field, others, level, region, unit, chunks, threads, how)
        if weight is None:
            name = name_of_integral(field, image.attrs["units"], along=str(axis))
            image.attrs["long_name"] = name
        return image.assign_attrs(axis=axis, weight=weight or "none: integral along the axis")

    def to_xarray(self, fields: Iterable[str] | str | None = None) -> xr.Dataset:
        """Return all leaf cells as a Dataset with the dimension "cell".

        Levels and cell centres are coordinates. Data in a store are dask arrays, of about 16 MiB a
        chunk, and are read when they are computed; other data are read into memory.

        Parameters
        ----------
        fields : str or iterable of str, optional
            Fields and derived columns; by default every field but ``domain``.

        Returns
        -------
        xarray.Dataset
            Values in code units.

        Raises
        ------
        KeyError
            If a field does not exist.
        ModuleNotFoundError
            If xarray is not installed, or, for data in a store, dask.

        Examples
        --------
        >>> cells = ambar.open_snapshot("run.ambar").amr.to_xarray(["rho"])
        >>> type(cells["rho"].data).__name__, list(cells.coords)
        ('Array', ['level', 'x', 'y', 'z'])
        >>> bool(cells["rho"].max().compute() > 1)
        True
        """
        names = self._default_columns
        if fields is not None:
            names = [*self._tree_columns, *names_of("fields", fields)]
        dataset = self._dataset(names, "cell")
        return dataset.set_coords([name for name in self._tree_columns if name in dataset])

    def to_vtk(
        self,
        fields: Sequence[str] | str | None = None,
        *,
        levels: tuple[int, int] | None = None,
        region: Box | None = None,
        threads: int | None = None,
    ) -> Any:
        """Return the cells as VTK overlapping AMR data, for ParaView and PyVista.

        Patches are the boxes of the plotfile. Cells of a tree are combined to boxes. Cells that a
        finer level covers are marked as refined and are not drawn.

        Parameters
        ----------
        fields : str or sequence of str, optional
            Fields and, for trees, derived columns; by default every field but ``domain``.
        levels : tuple of int, optional
            ``(lowest, highest)`` level. Refined cells of the highest level are drawn with their own
            values, or with the mean of the finer cells. By default all levels.
        region : Box, optional
            Cells inside, rounded outward to cells of the lowest level.
        threads : int, optional
            Number of threads that read boxes; all cores by default.

        Returns
        -------
        vtkmodules.vtkCommonDataModel.vtkOverlappingAMR
            Lengths and values in code units. Level 0 is the lowest level of a tree.

        Raises
        ------
        ValueError
            If the levels do not exist, or the region is not a box.
        KeyError
            If a field does not exist, or the region has no cells.
        ModuleNotFoundError
            If VTK is not installed.
        UnsupportedError
            If the cells have one dimension, or refinement ratios differ between dimensions.
        CorruptError
            If a checksum differs.

        Examples
        --------
        >>> mesh = ambar.open_snapshot("plt00200").amr.to_vtk("density")
        >>> mesh.GetNumberOfLevels()
        2
        """
        require("vtkmodules", purpose="to_vtk", install="ambar[mesh]")
        from ambar.snapshot.interop.vtk_amr import overlapping_amr

        return overlapping_amr(self, fields, levels, region, threads)

    @property
    def _default_columns(self) -> list[str]:
        return [*self._tree_columns, *(name for name in self.fields if name != "domain")]

    @property
    def _tree_columns(self) -> list[str]:
        return ["level", *AXES[: self.ndim]]

    @property
    def _columns(self) -> set[str]:
        return {*self._core.derived, *self.fields}

    def _formulas(self, cosmology: Cosmology | None) -> dict[str, list[Formula]]:  # noqa: ARG002
        coordinates = getattr(self._info, "coordinates", "cartesian")
        is_cartesian = coordinates == "cartesian"
        formulas = cell_formulas(self._core.derived, self.ndim, is_cartesian=is_cartesian)
        if is_cartesian:
            formulas |= gradient_formulas(self._gradients, self.ndim)
        if (region := self._region(self._fraction_of)) is not None:
            sides = [f"d{axis}" for axis in AXES if f"d{axis}" in self._core.derived]
            formulas[FRACTION] = [((*AXES[: self.ndim], *sides), region)]
        return formulas

    def _component_of(self, owner: str) -> bool:
        return owner in CELL_COMPONENTS

    def _axis(self, axis: str) -> tuple[int, list[int]]:
        axes = tuple(AXES[: self.ndim]) if self.ndim > 1 else ()
        if axis not in axes:
            advice = "map() has any direction: axis=(1, 1, 1), 'faceon', 'edgeon'"
            if self.ndim < 3:
                advice = "grid() returns data of one and two dimensions"
            if axis in tuple(AXES):
                needed = "three" if axis == "z" else "two or three"
                raise _core.InvalidError(
                    f"expected data of {needed} dimensions for the axis {axis!r}, found "
                    f"{self.ndim}; {advice}"
                )
            raise _core.InvalidError(
                f"invalid axis {axis!r}; must be one of {', '.join(axes or AXES)}; {advice}"
            )
        number = axes.index(axis)
        return number, [other for other in range(self.ndim) if other != number]


def _why(error: Exception) -> object:
    """Return why the core refused a level, for messages."""
    return "expected 0 to 255" if isinstance(error, OverflowError) else error
