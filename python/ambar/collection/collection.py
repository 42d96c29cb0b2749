"""Collections: any number of named datasets of like schema in one store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ambar import _core
from ambar._util.commit_context import CommitContext
from ambar._util.locking import WriterLock, locked
from ambar._util.optional import require
from ambar._util.progress import Progress
from ambar._util.properties import cached_property
from ambar.collection import representation
from ambar.collection.attribute_columns import AttributeColumns
from ambar.collection.read.bulk_read import CollectionData, Reader, check_dims
from ambar.collection.read.indexing import by_family
from ambar.collection.read.labels import select_labels
from ambar.collection.read.metadata import Metadata
from ambar.collection.schema import DatasetFamily, Schema
from ambar.collection.storage.attributes import attributes_as_json
from ambar.collection.storage.catalogue import Catalogue
from ambar.collection.storage.family import Families, Family, load
from ambar.collection.storage.records import (
    Input,
    Record,
    as_record,
    extended,
    record_of,
    variable_of,
)
from ambar.collection.storage.settings import settings_of
from ambar.collection.write.dataset_stack import DatasetStack
from ambar.collection.write.pending_changes import PendingChanges
from ambar.kinds.figures import draw_object
from ambar.kinds.viewable import Viewable
from ambar.parallel.cluster import Scheduler
from ambar.snapshot.table import Table
from ambar.store.cache import OpenedStore, Remote, StoreKey, open_last, place_of
from ambar.store.group_description import Description
from ambar.store.store import Refreshable, Store
from ambar.store.urls import is_object
from ambar.store.writer import Writer

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes


class Collection(CommitContext, Refreshable, Viewable):
    """Named datasets in one store, opened by `ambar.open_collection`.

    ``collection[name]`` is a dataset as a lazy `xarray.Dataset`; `read` reads variables of many
    datasets in one call. Iteration yields the names of the datasets, and ``len()`` counts them.

    A collection that is open for writing is a context manager: it commits at the end of its block,
    but not after an exception. Added and changed datasets can be read after the commit.

    Threads may share a collection. A collection that is open for writing runs one method at a
    time: each `add`, `replace`, `extend`, `remove`, `rename` and `commit` happens as a whole, and a
    commit has all changes whose methods returned before it. A collection that is open for reading
    reads in all threads in parallel.

    Examples
    --------
    >>> collection = ambar.open_collection("profiles.ambar")
    >>> collection
    <ambar.Collection> ...profiles.ambar
      Datasets:    4
      Families:    1
      Size:        ...
      Attributes:  platform
      Variables:
        temperature  (depth: 30)  float32  480 B as ...
        depth        (depth: 30)  float64  240 B as ...
    >>> collection.names
    ['station_0040', 'station_0041', 'station_0042', 'station_0043']
    """

    _kind = "collection"

    def __init__(
        self,
        path: str | os.PathLike[str] | StoreKey,
        store: Store | None,
        writer: Writer | None,
        settings: Mapping[str, Any],
        threads: int | None = None,
    ) -> None:
        # Held by every method of a collection that is open for writing.
        self._lock: AbstractContextManager[None] = nullcontext() if writer is None else WriterLock()
        self._key: StoreKey = path if isinstance(path, Remote) else place_of(path)
        self._threads = threads
        self._settings = settings
        reopen = partial(open_last, self._key)
        if store is None:
            self._families = Families(str(self._key), [], settings["ragged"])
            self._catalogue = Catalogue(str(self._key), self._families, reopen)
        else:
            about = Description(store._ambar_attributes(), f"{store.location}: /")
            count = about.integer("families")
            families = [load(store, number) for number in range(count)]
            self._families = Families(store.location, families, settings["ragged"])
            runs = about.integers("index")
            self._catalogue = Catalogue(store.location, self._families, reopen, store, runs)
        self._changes: PendingChanges | None = None
        if writer is not None:
            self._changes = PendingChanges(
                writer,
                self._catalogue,
                self._families,
                settings,
                store,
                is_object=isinstance(self._key, Remote) and is_object(self._key.url),
            )
        if store is not None:
            self.__dict__["store"] = store

    # Changes

    def add(self, name: str, dataset: Input) -> None:
        """Add a dataset.

        Parameters
        ----------
        name : str
            The name of the dataset, of at least one character.
        dataset : xarray.Dataset or mapping
            The variables. The values of a mapping are arrays, ``(dims, array)`` or
            ``(dims, array, attrs)``. The collection copies them.

        Raises
        ------
        ValueError
            If a dataset of this name exists, a dimension has two lengths, a variable has a
            repeated dimension, or an attribute cannot be stored.
        UnsupportedError
            If the values of a variable have a type that cannot be stored.

        Examples
        --------
        >>> with ambar.open_collection("casts.ambar", "w-") as casts:
        ...     casts.add("cast1", {"oxygen": ("depth", [210.0, 195.5], {"units": "umol/kg"})})
        >>> ambar.open_collection("casts.ambar")["cast1"].oxygen.attrs
        {'units': 'umol/kg'}
        """
        self._add(as_record(name, dataset))

    @locked
    def _add(self, record: Record) -> None:
        self._changing.add(record)

    def add_many(
        self,
        datasets: Mapping[str, Input] | Iterable[tuple[str, Input]],
        *,
        scheduler: Scheduler | None = None,
    ) -> None:
        """Add datasets.

        Parameters
        ----------
        datasets : mapping or iterable of (str, dataset)
            The datasets by name, or pairs of name and dataset; each dataset as for `add`. Datasets
            that other threads add in the meantime may come between them.
        scheduler : str or distributed.Client, optional
            A dask cluster whose workers read and encode datasets that are opened lazily, such as
            those of ``xarray.open_dataset``, as for `ambar.ingest`. After an error of a worker,
            none is added.

        Raises
        ------
        ValueError, UnsupportedError
            As for `add`. The datasets before the invalid one are added.

        Examples
        --------
        >>> with ambar.open_collection("casts.ambar", "w-") as casts:
        ...     casts.add_many({f"cast{n}": {"oxygen": np.full(3, n)} for n in range(100)})
        >>> len(ambar.open_collection("casts.ambar"))
        100
        """
        items = datasets.items() if isinstance(datasets, Mapping) else datasets
        if scheduler is not None:
            from ambar.collection.cluster import add_on_cluster

            add_on_cluster(self, list(items), scheduler)
            return
        stack = DatasetStack()
        try:
            for name, dataset in items:
                if stack.take(name, dataset):
                    continue
                self._add_stack(stack)
                if not stack.take(name, dataset):
                    record = as_record(name, dataset)
                    self._add(record)
                    stack.start(record, dataset)
        finally:
            self._add_stack(stack)

    @locked
    def _add_stack(self, stack: DatasetStack) -> None:
        if stack.names:
            self._changing.add_rows(*stack.pop())

    def replace(self, name: str, dataset: Input) -> None:
        """Replace a dataset by another one, which keeps its name and position.

        The store keeps the bytes of the old values until `ambar.compact`.

        Parameters
        ----------
        name : str
            The name of an existing dataset.
        dataset : xarray.Dataset or mapping
            The new variables, as for `add`.

        Raises
        ------
        KeyError
            If the dataset does not exist.
        ValueError, UnsupportedError
            As for `add`.

        Examples
        --------
        >>> with ambar.open_collection("profiles.ambar", "a") as collection:
        ...     collection.replace("station_0041", {"temperature": ("depth", np.zeros(2))})
        >>> ambar.open_collection("profiles.ambar")["station_0041"].temperature.values
        array([0., 0.])
        """
        self._replace(as_record(name, dataset))

    @locked
    def _replace(self, record: Record) -> None:
        self._changing.replace(record)

    @locked
    def extend(self, name: str, dataset: Input, dim: str) -> None:
        """Append values to a dataset along a dimension.

        Parameters
        ----------
        name : str
            The name of an existing dataset.
        dataset : xarray.Dataset or mapping
            The values to append, as for `add`, with the same variables. Variables without the
            dimension `dim` must be equal to the existing ones.
        dim : str
            The dimension.

        Raises
        ------
        KeyError
            If the dataset does not exist.
        ValueError
            If the variables differ, `dim` is not a dimension of the dataset, or a variable without
            `dim` has other values.

        Examples
        --------
        >>> with ambar.open_collection("casts.ambar", "w-") as casts:
        ...     casts.add("cast1", {"oxygen": ("depth", [210, 195])})
        ...     casts.commit()
        ...     casts.extend("cast1", {"oxygen": ("depth", [180])}, "depth")
        >>> ambar.open_collection("casts.ambar")["cast1"].oxygen.values
        array([210, 195, 180])
        """
        self._changing.replace(extended(self._record(name), as_record(name, dataset), dim))

    @locked
    def remove(self, names: str | Iterable[str]) -> None:
        """Remove datasets. The store keeps their bytes until `ambar.compact`.

        Parameters
        ----------
        names : str or iterable of str
            The names of existing datasets.

        Raises
        ------
        KeyError
            If a dataset does not exist; then none is removed.

        Examples
        --------
        >>> with ambar.open_collection("profiles.ambar", "a") as collection:
        ...     collection.remove(["station_0040", "station_0043"])
        >>> ambar.open_collection("profiles.ambar").names
        ['station_0041', 'station_0042']
        """
        self._changing.remove({names} if isinstance(names, str) else set(names))

    @locked
    def rename(self, old: str, new: str) -> None:
        """Rename a dataset, which keeps its position.

        Parameters
        ----------
        old : str
            The name of an existing dataset.
        new : str
            The new name.

        Raises
        ------
        KeyError
            If the dataset does not exist.
        ValueError
            If another dataset has the new name.

        Examples
        --------
        >>> with ambar.open_collection("profiles.ambar", "a") as collection:
        ...     collection.rename("station_0040", "reference")
        >>> ambar.open_collection("profiles.ambar").names[0]
        'reference'
        """
        self._changing.rename(old, new)

    @locked
    def commit(self, message: str = "") -> None:
        """Commit all changes: readers see all of them, or none after a crash.

        The end of a ``with`` block commits too.

        Parameters
        ----------
        message : str, optional
            A message for `ambar.log`, of at most 4096 bytes.

        Raises
        ------
        ValueError
            If the message is too long.
        OSError
            If the file system reports an error. All changes since the last commit are lost then.

        Examples
        --------
        >>> with ambar.open_collection("casts.ambar", "w-") as casts:
        ...     for number in range(3):
        ...         casts.add(f"cast{number}", {"oxygen": np.arange(3)})
        ...         casts.commit()
        """
        self._changing.commit(message)
        for cached in ("store", "_opened", "_reader", "_metadata", "_views"):
            self.__dict__.pop(cached, None)

    def _check(self) -> None:
        """Raise an error of the thread that writes; changes since the last commit are lost then.

        All later methods raise it too. `ingest` separates it from errors of a single dataset.
        """
        if self._changes is not None:
            self._changes.check()

    def close(self) -> None:
        """Discard changes since the last commit, and close the store.

        Another writer can open the store then. In a forked child the method does nothing.

        Examples
        --------
        >>> casts = ambar.open_collection("casts.ambar", "w-")
        >>> casts.add("cast1", {"oxygen": np.arange(3)})
        >>> casts.close()
        >>> ambar.open_collection("casts.ambar")
        Traceback (most recent call last):
        ...
        FileNotFoundError: ...
        """
        self._end(PendingChanges.close)

    def _succeeded(self) -> None:
        if self._changes is not None:
            self.commit()

    def _abort(self) -> None:
        self._end(PendingChanges.abort)

    def _end(self, end: Callable[[PendingChanges], None]) -> None:
        if isinstance(self._lock, WriterLock) and self._lock.is_foreign:
            return
        with self._lock:
            if self._changes is not None:
                end(self._changes)
                self._changes = None

    # Metadata

    @property
    def location(self) -> str:
        """The path or URL of the store."""
        return str(self._key)

    @property
    def settings(self) -> dict[str, Any]:
        """The options at the creation of the collection: `ragged`, `encoding`, `on_mismatch`."""
        return dict(self._settings)

    @property
    @locked
    def names(self) -> list[str]:
        """The names of the datasets, in the order in which they were added."""
        return list(self._catalogue.names)

    def __contains__(self, name: object) -> bool:
        return name in self._catalogue

    def __len__(self) -> int:
        """Return the number of datasets."""
        return len(self._catalogue)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    @property
    @locked
    def families(self) -> list[DatasetFamily]:
        """The families: datasets of equal schema, whose variables share arrays.

        Examples
        --------
        >>> ambar.open_collection("profiles.ambar").families[0].sizes
        {'depth': 30}
        """
        counts = self._counts()
        return [
            DatasetFamily(
                number=family.number,
                datasets=counts.get(family.number, 0),
                sizes=dict(family.sizes),
                ragged=tuple(family.ragged),
                variables=tuple(family.columns),
            )
            for family in self._families
        ]

    def _counts(self) -> dict[int, int]:
        """Return the number of datasets by the number of their family."""
        numbers, counts = np.unique(self._places[:, 0], return_counts=True)
        return dict(zip(numbers.tolist(), counts.tolist(), strict=True))

    @property
    @locked
    def schema(self) -> Schema:
        """The variables of all datasets, and the differences between datasets.

        Examples
        --------
        >>> ambar.open_collection("profiles.ambar").schema
        <ambar.Schema> 2 variables of 4 datasets
          temperature  (depth: 30)  float32
          depth        (depth: 30)  float64
        """
        return Schema(self._families, self._counts())

    @property
    @locked
    def variables(self) -> list[str]:
        """The names of the variables of all datasets."""
        return self._families.variables

    @property
    def _places(self) -> np.ndarray:
        """The families and rows of the datasets: uint32 (datasets, 2)."""
        return self._catalogue.places

    @property
    def attrs(self) -> AttributeColumns:
        """The attributes of the datasets as columns: a mapping from name to array (datasets,).

        Examples
        --------
        >>> attrs = ambar.open_collection("profiles.ambar").attrs
        >>> list(attrs)
        ['platform']
        >>> attrs["platform"].tolist()
        ['glider', 'argo', 'glider', 'argo']
        """
        return AttributeColumns(self)

    @locked
    def attrs_table(self) -> Table:
        """Return the names and attributes of the datasets as a table, for Arrow, pandas and polars.

        Attributes of several types, and attributes that some datasets lack, become strings: JSON,
        or an empty string. An attribute ``dataset`` is the column ``attrs.dataset``.

        Returns
        -------
        Table
            A row for each dataset, the columns ``dataset`` and the attributes.

        Examples
        --------
        >>> ambar.open_collection("profiles.ambar").attrs_table().to_pandas()
                dataset platform
        0  station_0040   glider
        1  station_0041     argo
        2  station_0042   glider
        3  station_0043     argo
        """
        return self._metadata.attributes_table()

    def verify(
        self,
        *,
        threads: int | None = None,
        progress: Progress | bool | None = None,
    ) -> dict[str, int]:
        """Check all checksums of the last commit, as `ambar.Store.verify` does, and the catalog.

        Parameters
        ----------
        threads : int, optional
            The number of threads; all cores by default.
        progress : callable or bool, optional
            A function called with the number of checked bytes and of all bytes, or True for a bar
            on the terminal.

        Returns
        -------
        dict
            The numbers of checked bytes, entries and chunks.

        Raises
        ------
        CorruptError
            If the store is damaged; the message lists the damage.

        Examples
        --------
        >>> ambar.open_collection("profiles.ambar").verify()
        {'bytes': ..., 'entries': ..., 'chunks': ...}
        """
        checked = self.store.verify(threads=threads, progress=progress)
        self._catalogue.verify()
        return checked

    @locked
    def choose(self, datasets: Any = None) -> list[str]:
        """Return the names of some datasets.

        Parameters
        ----------
        datasets : optional
            Names, positions, a slice, a mask or a condition, as for `read`; all by default.

        Returns
        -------
        list of str

        Raises
        ------
        KeyError
            If a dataset, or an attribute or variable of the condition, does not exist.
        IndexError
            If a position is out of range.
        ValueError
            If the selection or the condition is invalid.

        Examples
        --------
        >>> ambar.open_collection("profiles.ambar").choose('platform == "argo"')
        ['station_0041', 'station_0043']
        """
        return self._catalogue.names_at(self._metadata.positions(datasets))

    @locked
    def stats(self, variable: str) -> Table:
        """Return statistics of a variable in each dataset that has it.

        The store has these statistics; no values are read.

        Parameters
        ----------
        variable : str
            The name of the variable.

        Returns
        -------
        Table
            The columns ``dataset``, ``min``, ``max``, ``count`` (of values) and ``nulls`` (of NaN,
            NaT and missing strings). Strings and complex numbers have no ``min`` and ``max``.
            Those of a dataset without values are NaN or NaT, which makes a column of integers
            float64; a column of larger integers than that represents has objects and None.

        Raises
        ------
        KeyError
            If no dataset has the variable.

        Examples
        --------
        >>> ambar.open_collection("profiles.ambar").stats("temperature").to_pandas()
                dataset   min   max  count  nulls
        0  station_0040  44.0  60.0     30      0
        1  station_0041  45.0  61.0     30      0
        2  station_0042  46.0  62.0     30      0
        3  station_0043  47.0  63.0     30      0
        """
        return self._metadata.statistics_table(variable)

    # Reading

    @locked
    def read(
        self,
        variables: str | Sequence[str] | None = None,
        datasets: Any = None,
        *,
        isel: Mapping[str, Any] | None = None,
        sel: Mapping[str, Any] | None = None,
        out: np.ndarray | Mapping[str, np.ndarray] | None = None,
        stack: bool = False,
    ) -> CollectionData:
        """Read variables of many datasets in one call.

        Parameters
        ----------
        variables : str or sequence of str, optional
            The names of the variables; by default all of the selected datasets.
        datasets : optional
            The datasets; all by default. Names, positions, a slice of positions, a mask, or a
            condition on attributes, on variables of one value and on statistics such as
            ``'platform == "argo" and temperature.max > 20'``.
        isel : mapping, optional
            Parts of dimensions by index: integers, slices, lists or masks.
        sel : mapping, optional
            Parts of dimensions by the labels of their coordinates: labels, lists of labels, or
            slices that include both ends. A string such as "2024-01-02" is the beginning of that
            day, and at the end of a slice its end: ``slice("2024-01-01", "2024-01-02")`` is two
            days. Objects of `datetime.date`, `numpy.datetime64` and `pandas.Timestamp` are moments.
            Ragged dimensions are selected by `isel` alone. It does not apply to datasets without
            the variables.
        out : ndarray or mapping of str to ndarray, optional
            Arrays to read into, of the shape and dtype of the result: one array, or an array for
            each variable.
        stack : bool, default False
            Whether values with a ragged dimension are returned as an array if the shapes of all
            datasets are equal. If the shapes differ, the result is a `RaggedArray` and no error is
            raised.

        Returns
        -------
        CollectionData
            A mapping from variables to arrays (datasets, ...); to a `RaggedArray` if a dimension is
            ragged, or the shapes of the datasets differ.

        Raises
        ------
        KeyError
            If no selected dataset has a variable, or a dataset or a label does not exist.
        TypeError
            If `variables` are not names.
        ValueError
            If a dimension does not exist, a coordinate has a label repeatedly, or `out` has another
            shape or dtype.
        IndexError
            If an index is out of range.

        Examples
        --------
        >>> collection = ambar.open_collection("profiles.ambar")
        >>> data = collection.read("temperature", isel={"depth": slice(0, 12)})
        >>> data["temperature"].shape
        (4, 12)
        >>> warm = collection.read("temperature", 'platform == "argo" and temperature.max > 62')
        >>> warm.names
        ['station_0043']
        """
        at = self._metadata.positions(datasets)
        families = self._families
        wanted = None if variables is None else families.checked_names(variables)
        isel, sel = isel or {}, sel or {}
        names = self._catalogue.names_at(at)
        pieces = by_family(families, self._catalogue.places_at(at), isel)
        if wanted is None:
            wanted = list(dict.fromkeys(name for piece in pieces for name in piece.family.columns))
        check_dims({**isel, **sel}, pieces, wanted)
        pieces = select_labels(pieces, sel, wanted, self._reader.coordinate, names)
        return self._reader.read_many(wanted, pieces, names, out, stack)

    @locked
    def __getitem__(self, name: str) -> xr.Dataset:
        """Return a dataset; its values are read when they are used.

        Raises KeyError if the dataset does not exist, TypeError for positions and slices.
        """
        require("xarray", purpose="a dataset", install="ambar[xarray]")
        from ambar.collection.views import lazy_dataset

        return lazy_dataset(self, name)

    @locked
    def load(self, name: str) -> xr.Dataset:
        """Return a dataset with its values in memory.

        This is faster than ``collection[name].load()``, in particular for neighbouring datasets.

        Parameters
        ----------
        name : str
            The name of the dataset.

        Returns
        -------
        xarray.Dataset

        Raises
        ------
        KeyError
            If the dataset does not exist.

        Examples
        --------
        >>> ambar.open_collection("profiles.ambar").load("station_0041").temperature.max().item()
        61.0
        """
        require("xarray", purpose="load", install="ambar[xarray]")
        from ambar.collection.views import load_dataset

        return load_dataset(self, name)

    @locked
    def to_xarray(self, datasets: Any = None) -> xr.Dataset:
        """Return datasets of one family as one lazy dataset, with the dimension ``dataset``.

        Datasets of a ragged family become a contiguous ragged array (CF conventions, section
        9.3.3), with its values in memory.

        Parameters
        ----------
        datasets : optional
            Names, positions, a slice, a mask or a condition, as for `read`; all by default.

        Returns
        -------
        xarray.Dataset

        Raises
        ------
        KeyError
            If a dataset does not exist.
        ValueError
            If the datasets are of several families: variables, shapes or types differ. The message
            has the datasets of each.

        Examples
        --------
        >>> whole = ambar.open_collection("profiles.ambar").to_xarray()
        >>> whole.temperature.mean("dataset").sizes
        Frozen({'depth': 30})
        >>> ambar.open_collection("profiles.ambar").to_xarray('platform == "argo"').sizes["dataset"]
        2
        """
        require("xarray", purpose="to_xarray", install="ambar[xarray]")
        from ambar.collection.views import stack_datasets

        return stack_datasets(self, self.choose(datasets))

    @locked
    def to_dataframe(
        self, variables: str | Sequence[str] | None = None, datasets: Any = None
    ) -> pd.DataFrame:
        """Return the values of datasets as a table of pandas, with the dataset's name in each row.

        The rows of a dataset are those of `xarray.Dataset.to_dataframe`: all combinations of
        indices along its dimensions, or one row without dimensions. Columns that a dataset lacks
        are null there.

        Parameters
        ----------
        variables : str or sequence of str, optional
            The data variables, with their coordinates; all by default. Choose variables of equal
            dimensions if the dimensions differ: there are many combinations of indices.
        datasets : optional
            Names, positions, a slice, a mask or a condition, as for `read`; all by default.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        KeyError
            If a dataset does not exist, or no dataset has one of the variables.
        IndexError
            If a position is out of range.
        ValueError
            If the selection is invalid, or the variables of a dataset cannot be the columns of one
            table.

        Examples
        --------
        >>> frame = ambar.open_collection("profiles.ambar").to_dataframe()
        >>> frame.groupby("dataset").temperature.max()["station_0041"].item()
        61.0
        >>> argo = ambar.open_collection("profiles.ambar").to_dataframe(
        ...     "temperature", 'platform == "argo"'
        ... )
        >>> argo.dataset.unique().tolist()
        ['station_0041', 'station_0043']
        """
        require("xarray", purpose="to_dataframe", install="ambar[xarray]")
        from ambar.collection.views import tabulate_datasets

        wanted = None if variables is None else self._families.checked_names(variables)
        return tabulate_datasets(self, self.choose(datasets), wanted)

    def plot(
        self,
        variables: str | Sequence[str] | None = None,
        datasets: str | None = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> Any:
        """Draw positions of the datasets and profiles of some, as ``ambar plot`` does.

        Parameters
        ----------
        variables : str or sequence of str, optional
            Variables of one dimension, each in a panel; by default a usual one of numbers.
        datasets : str, optional
            A condition, as for `read`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on, for one panel; by default a new figure of pyplot.
        **options
            Options of ``ambar plot``: `log`, `limits`, `colors` and `title`.

        Returns
        -------
        matplotlib.axes.Axes or numpy.ndarray
            The axes; of several panels an array of them.

        Raises
        ------
        KeyError
            If no dataset has a variable.
        ValueError
            If an option is invalid, or no dataset is selected.
        ModuleNotFoundError
            If matplotlib is not installed.

        Examples
        --------
        >>> axes = ambar.open_collection("profiles.ambar").plot("temperature")
        >>> len(axes.lines), axes.get_ylabel()
        (4, 'depth')
        """
        from ambar.pictures.collection import draw
        from ambar.pictures.options import CollectionPlot

        options = {**options, "where": datasets}
        kind = ("collection", CollectionPlot)
        return draw_object(draw, self, kind, self.location, variables, ax, options)

    # Internals of the package: used by the modules of collections

    @cached_property
    def store(self) -> Store:
        """The store of the last commit: arrays of families, as docs/format.md describes."""
        return open_last(self._key)

    def _refreshable_store(self) -> Store:
        if self._changes is not None:
            raise _core.InvalidError(
                f"{self.location} is open for writing: no other process can change it; close it"
            )
        return self.store

    def _switch_to(self, store: Store) -> None:
        opened = Collection(self._key, store, None, settings_of(store), self._threads)
        self.__dict__ = opened.__dict__

    @cached_property
    def _opened(self) -> OpenedStore:
        """The store for lazy arrays, which stay with the current commit."""
        return OpenedStore.of(self._key, self.store)

    @cached_property
    def _reader(self) -> Reader:
        self._check_committed()
        return Reader(self.store, self._threads)

    @cached_property
    def _metadata(self) -> Metadata:
        self._check_committed()
        return Metadata(self.store, self._catalogue, self._families, self._reader)

    @locked
    def _place(self, name: str) -> tuple[Family, int]:
        """Return the family of a dataset and its row there.

        Raises KeyError if the dataset does not exist.
        """
        at = self._catalogue.position(name)
        self._check_committed()
        family, row = self._catalogue.place(at)
        return self._families[family], row

    @cached_property
    def _views(self) -> dict[Any, Any]:
        """Datasets and lazy arrays that `views` shares between the datasets of a family."""
        return {}

    def _record(self, name: str) -> Record:
        """Return a dataset as it would be added."""
        family, row = self._place(name)
        variables = {
            key: variable_of(
                (name, key),
                column.dims,
                self._reader.value(family, key, row),
                self._metadata.attributes(family, key, row),
                column.coordinate,
                column.type_name,
            )
            for key, column in family.columns.items()
        }
        attributes = self._metadata.attributes(family, None, row)
        return record_of(name, variables, attributes_as_json((name,), attributes))

    @property
    def _changing(self) -> PendingChanges:
        if self._changes is None:
            raise _core.InvalidError(
                f"{self.location} is open for reading; open it with mode='a' to change it"
            )
        self._changes.check()
        # Making them again checks that all changes are committed.
        self.__dict__.pop("_reader", None)
        self.__dict__.pop("_metadata", None)
        return self._changes

    def _check_committed(self) -> None:
        if self._changes is not None and self._changes.pending:
            raise _core.InvalidError("the collection has changes; call commit() before reading")

    @locked
    def __repr__(self) -> str:
        return representation.as_text(self)

    @locked
    def _repr_html_(self) -> str:
        return representation.as_html(self)
