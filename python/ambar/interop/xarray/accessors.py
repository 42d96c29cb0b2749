"""The accessor ``.ambar`` of xarray's datasets, arrays and trees. Importing registers it."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import xarray as xr

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ambar.interop.xarray.dataset_writer import Mode, RegionLike
    from ambar.store.writer import Profile

# The names with which xarray stores an array that is not named like a variable.
_ARRAY_NAME = "__xarray_dataarray_name__"
_ARRAY_VARIABLE = "__xarray_dataarray_variable__"


# Options of to_zarr that are accepted and have no effect.
_IGNORED = (
    "align_chunks",
    "chunkmanager_store_kwargs",
    "consolidated",
    "safe_chunks",
    "write_empty_chunks",
    "zarr_format",
)


def _check_ignored(options: Mapping[str, Any]) -> None:
    if unknown := [name for name in options if name not in _IGNORED]:
        raise TypeError(f"write() got an unexpected keyword argument {unknown[0]!r}")
    if options.get("zarr_format") not in (None, 3):
        raise ValueError(
            f"invalid zarr_format {options['zarr_format']!r}: stores have format 3; leave it out"
        )


class DatasetAccessor:
    """The attribute ``ambar`` of an `xarray.Dataset`, after ``import ambar.xarray``.

    Examples
    --------
    >>> import xarray as xr, ambar.xarray
    >>> dataset = xr.Dataset({"temperature": ("time", np.arange(4.0))})
    >>> dataset.ambar.write("weather.ambar")
    >>> xr.open_dataset("weather.ambar").temperature.values
    array([0., 1., 2., 3.])
    """

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def write(
        self,
        path: str | os.PathLike[str],
        group: str | None = None,
        mode: Mode | None = None,
        *,
        region: RegionLike | None = None,
        append_dim: Hashable | None = None,
        encoding: Mapping[Any, Mapping[str, Any]] | None = None,
        compute: bool = True,
        profile: Profile = "balanced",
        directory: bool | None = None,
        threads: int | None = None,
        fsync: bool = True,
        storage_options: Mapping[str, object] | None = None,
        **of_zarr: Any,
    ) -> Any:
        """Write the dataset as a group of a store, as ``Dataset.to_zarr`` does.

        One commit at the end makes everything visible. Chunks of dask arrays are written as they
        are computed; chunks that do not fit those of the store are merged or split.

        Parameters
        ----------
        path : str or path-like
            The store: a file, a folder or a URL. One object, ``"s3://bucket/data.ambar"``, is
            written as a whole: only in the modes "w-" and "w".
        group : str, optional
            The path of the group; the root by default.
        mode : {"w-", "w", "a", "a-", "r+"}, optional
            "w-" (default): create the group; an error if it exists. "w": replace it. "a": create
            it, or write new and existing variables. "a-": the same with `append_dim`, but
            variables without this dimension stay unchanged. "r+": write existing variables. The
            default with `append_dim` is "a", with `region` "r+".
        region : dict of slice, or "auto", optional
            The part of each dimension to write: a slice, or "auto" for the place of the dataset's
            coordinate values in the store. "auto" alone applies to all dimensions. Each variable
            must have at least one of these dimensions.
        append_dim : hashable, optional
            The dimension along which variables become longer.
        encoding : mapping, optional
            For each variable "chunks" and "shards" (shapes), "fill_value", "profile",
            "error_bound" (a number or such as ``"1e-3 of range"``), and those of the CF
            conventions: "dtype", "_FillValue", "scale_factor", "add_offset", "units", "calendar".
        compute : bool, default True
            Whether to compute dask arrays. If False, the metadata and the values in memory are
            written, and the result writes the rest; with `append_dim` everything.
        profile : {"balanced", "fast", "small", "raw"}, default "balanced"
            As for `ambar.create`.
        directory : bool, optional
            As for `ambar.create`; applies only to a new store.
        threads : int, optional
            As for `ambar.create`.
        fsync : bool, default True
            As for `ambar.create`.
        storage_options : mapping, optional
            As for `ambar.create`.
        **of_zarr
            Other options of ``to_zarr``, such as `consolidated`; they have no effect.

        Returns
        -------
        None or dask.delayed.Delayed
            With ``compute=False``, an object whose ``compute()`` writes the rest.

        Raises
        ------
        FileExistsError
            If the group exists, in mode "w-".
        FileNotFoundError
            If the group does not exist, in mode "r+".
        ValueError
            If variables do not fit the existing ones, or an encoding is invalid.
        TypeError
            If JSON cannot represent an attribute, or an option is unknown.
        BusyError
            If another writer has the store open.

        Examples
        --------
        >>> import xarray as xr, ambar.xarray
        >>> for day in range(3):
        ...     today = xr.Dataset({"rain": ("day", [float(day)])}, coords={"day": [day]})
        ...     today.ambar.write("rain.ambar", append_dim="day" if day else None)
        >>> xr.open_dataset("rain.ambar").rain.values
        array([0., 1., 2.])

        With an error bound, values are stored in less space:

        >>> values = np.random.default_rng(1).normal(280, 5, (256, 256))
        >>> dataset = xr.Dataset({"temperature": (("y", "x"), values)})
        >>> dataset.ambar.write("t.ambar", encoding={"temperature": {"error_bound": 0.01}})
        >>> found = xr.open_dataset("t.ambar")
        >>> 0 < float(abs(found - dataset).temperature.max()) <= 0.01
        True
        """
        from ambar.interop.xarray.dataset_writer import Node, Options, write_nodes

        _check_ignored(of_zarr)
        base = (group or "").strip("/")
        node = Node(base, self._dataset, dict(encoding or {}))
        options = Options(profile, directory, threads, fsync, storage_options)
        return write_nodes([node], path, base, mode, options, region, append_dim, compute)

    def plot(
        self,
        variables: str | Sequence[str] | None = None,
        *,
        ax: Axes | None = None,
        log: bool | None = None,
        limits: tuple[float, float] | None = None,
        colors: str | None = None,
    ) -> Any:
        """Draw variables, each in a panel, as `DataArrayAccessor.plot` does.

        Parameters
        ----------
        variables : str or sequence of str, optional
            Variables; by default all of numbers that have one or two dimensions, except those of
            size 1, and of profiles those of fields.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, for one variable; by default a new figure of pyplot.
        log, limits, colors : optional
            As for `DataArrayAccessor.plot`.

        Returns
        -------
        matplotlib.axes.Axes or numpy.ndarray
            The axes; of several variables a flat array of them, row by row.

        Raises
        ------
        KeyError
            If a variable does not exist.
        ValueError
            If there is no variable to draw, or an option is invalid.
        ModuleNotFoundError
            If matplotlib is not installed.

        Examples
        --------
        >>> import ambar.xarray
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> profiles = amr.profile("radius", ["density", "pressure"], bins=8)
        >>> [axes.get_ylabel() for axes in profiles.ambar.plot()]
        ['density [code units]', 'pressure [code units]']
        """
        from ambar.pictures.results import arrays_to_draw, draw

        arrays = arrays_to_draw(self._dataset, variables)
        return draw(arrays, ax, log=log, limits=limits, colors=colors)


class DataArrayAccessor:
    """The attribute ``ambar`` of an `xarray.DataArray`, after ``import ambar.xarray``.

    Examples
    --------
    >>> import xarray as xr, ambar.xarray
    >>> xr.DataArray(np.arange(3), dims="x", name="count").ambar.write("counts.ambar")
    >>> xr.open_dataset("counts.ambar")["count"].values
    array([0, 1, 2])
    """

    def __init__(self, array: xr.DataArray) -> None:
        self._array = array

    def write(self, path: str | os.PathLike[str], *args: Any, **options: Any) -> Any:
        """Write the array as a dataset of one variable, which `xarray.open_dataarray` reads.

        Parameters
        ----------
        path : str or path-like
            The store: a file, a folder or a URL. One object, ``"s3://bucket/data.ambar"``, is
            written as a whole: only in the modes "w-" and "w".
        *args, **options
            As for `DatasetAccessor.write`.

        Returns
        -------
        None or dask.delayed.Delayed
            As for `DatasetAccessor.write`.

        Raises
        ------
        FileExistsError, FileNotFoundError, ValueError, TypeError, BusyError
            As for `DatasetAccessor.write`.

        Examples
        --------
        >>> import xarray as xr, ambar.xarray
        >>> xr.DataArray(np.arange(3), dims="x").ambar.write("numbers.ambar")
        >>> xr.open_dataarray("numbers.ambar").values
        array([0, 1, 2])
        """
        name = self._array.name
        if name is None or name in self._array.coords or name in self._array.dims:
            dataset = self._array.to_dataset(name=_ARRAY_VARIABLE)
            if name is not None:
                dataset.attrs[_ARRAY_NAME] = name
        else:
            dataset = self._array.to_dataset()
        return DatasetAccessor(dataset).write(path, *args, **options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        log: bool | None = None,
        limits: tuple[float, float] | None = None,
        colors: str | None = None,
        label: str | None = None,
    ) -> Axes:
        """Draw a map, slice, projection, phase diagram or histogram, or any array as these.

        Unlike ``plot()`` of xarray, colours are those of ``ambar plot``, axes with logarithmic bins
        are logarithmic, and axes of equal units have equal scales. Several lines on the same axes
        have a legend.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default a new figure of pyplot.
        log : bool, optional
            Whether colours, or the values of a line, are logarithmic; by default where the values
            extend over decades. Of lines, only positive values in bins may be: over more than a
            factor of 100.
        limits : tuple of float, optional
            The values at the ends of the colours or of the axis.
        colors : str, optional
            A colour map of matplotlib.
        label : str, optional
            The name of a line in the legend; by default that of the array.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ValueError
            If the array has other than one or two dimensions or no values, or an option is invalid.
        ModuleNotFoundError
            If matplotlib is not installed.

        Examples
        --------
        >>> import ambar.xarray
        >>> amr = ambar.open_snapshot("run.ambar").amr
        >>> axes = amr.phase("density", "pressure", log=True).ambar.plot()
        >>> axes.get_xscale(), axes.get_xlabel()
        ('log', 'density [code units]')
        """
        from ambar.pictures.results import draw

        axes: Axes = draw(
            [self._array], ax, log=log, limits=limits, colors=colors, line_label=label
        )
        return axes


class DataTreeAccessor:
    """The attribute ``ambar`` of an `xarray.DataTree`, after ``import ambar.xarray``.

    Examples
    --------
    >>> import xarray as xr, ambar.xarray
    >>> tree = xr.DataTree.from_dict({"run/last": xr.Dataset({"energy": ("step", [1.0])})})
    >>> tree.ambar.write("nested.ambar", profile="small")
    >>> list(ambar.open_store("nested.ambar"))
    ['run/last/energy']
    """

    def __init__(self, tree: xr.DataTree) -> None:
        self._tree = tree

    def write(
        self,
        path: str | os.PathLike[str],
        group: str | None = None,
        mode: Mode | None = None,
        *,
        encoding: Mapping[str, Any] | None = None,
        write_inherited_coords: bool = False,
        compute: bool = True,
        profile: Profile = "balanced",
        directory: bool | None = None,
        threads: int | None = None,
        fsync: bool = True,
        storage_options: Mapping[str, object] | None = None,
        **of_zarr: Any,
    ) -> Any:
        """Write the tree, with a group for each node, as ``DataTree.to_zarr`` does.

        Parameters
        ----------
        path : str or path-like
            The store: a file, a folder or a URL. One object, ``"s3://bucket/data.ambar"``, is
            written as a whole: only in the modes "w-" and "w".
        group : str, optional
            The group of the root of the tree; the root of the store by default.
        mode : {"w-", "w", "a", "r+"}, optional
            As for `DatasetAccessor.write`.
        encoding : mapping, optional
            By the path of a node in the tree, the encodings of its variables.
        write_inherited_coords : bool, default False
            Whether to write the coordinates that a node inherits also with the node.
        compute : bool, default True
            As for `DatasetAccessor.write`.
        profile : {"balanced", "fast", "small", "raw"}, default "balanced"
            As for `ambar.create`.
        directory : bool, optional
            As for `ambar.create`; applies only to a new store.
        threads : int, optional
            As for `ambar.create`.
        fsync : bool, default True
            As for `ambar.create`.
        storage_options : mapping, optional
            As for `ambar.create`.
        **of_zarr
            As for `DatasetAccessor.write`.

        Returns
        -------
        None or dask.delayed.Delayed
            As for `DatasetAccessor.write`.

        Raises
        ------
        ValueError
            If `encoding` has groups that the tree does not have. Other errors are those of
            `DatasetAccessor.write`.

        Examples
        --------
        >>> import xarray as xr, ambar.xarray
        >>> tree = xr.DataTree.from_dict({"/run": xr.Dataset({"energy": ("step", [1.0, 2.0])})})
        >>> tree.ambar.write("tree.ambar")
        >>> xr.open_datatree("tree.ambar")["run/energy"].values
        array([1., 2.])
        """
        from ambar.interop.xarray.dataset_writer import Options, nodes_of_tree, write_nodes

        _check_ignored(of_zarr)
        base = (group or "").strip("/")
        nodes = nodes_of_tree(
            self._tree, base, encoding, write_inherited_coords=write_inherited_coords
        )
        options = Options(profile, directory, threads, fsync, storage_options)
        return write_nodes(list(nodes), path, base, mode, options, compute=compute)


xr.register_dataset_accessor("ambar")(DatasetAccessor)
xr.register_dataarray_accessor("ambar")(DataArrayAccessor)
xr.register_datatree_accessor("ambar")(DataTreeAccessor)
