"""Collections: any number of named datasets of like schema in one store, read all at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ambar import _core
from ambar._util.locking import WriterLock, locked
from ambar._util.properties import cached_property
from ambar.collection.read.bulk_read import Bulk, Reader, decoded, isel_dims
from ambar.collection.read.dataset_selector import Chooser
from ambar.collection.read.indexing import Piece, by_family, split_by_labels
from ambar.collection.read.row_cache import blocks_of
from ambar.collection.schema import Schema
from ambar.collection.storage.attributes import texts_of
from ambar.collection.storage.catalogue import Catalogue
from ambar.collection.storage.families import Families
from ambar.collection.storage.family import Family, load
from ambar.collection.storage.metadata_columns import Columns, arrow_column
from ambar.collection.storage.ragged import Ragged
from ambar.collection.storage.records import Input, Record, as_record, grown, record_of, variable_of
from ambar.collection.write.pending_changes import Changes, checked_settings
from ambar.snapshot.table import Table
from ambar.store.cache import OpenedStore, Remote, StoreKey, open_last, place_of
from ambar.store.commit_context import Closing
from ambar.store.group_description import Description
from ambar.store.store import Store
from ambar.store.writer import Profile, Writer, create

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


class Collection(Closing):
    """Named datasets in one store; made by `Collection.create` or `open_collection`.

    Leaving its ``with`` block commits what was added, unless by an exception. What was added can be
    read after the commit.

    Threads may share a collection. Open for writing, it runs one method at a time: each `add`,
    `replace`, `extend`, `remove`, `rename` and `commit` happens as a whole, in any order between
    threads, and a commit has all changes whose methods returned before it. Reads take turns with
    them. Open for reading, it reads in all threads in parallel.
    """

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
        # As lazy arrays keep it.
        self.path: StoreKey = path if isinstance(path, Remote) else place_of(path)
        self._threads = threads
        self.settings = settings
        """What it was made with: `ragged`, `encoding` and `on_mismatch`."""
        if store is None:
            self._catalogue, self._families = Catalogue(), Families([], settings["ragged"])
        else:
            self._catalogue = Catalogue.read(store)
            about = Description(store.ambar_attributes(), f"{store.location}: /")
            count = about.integer("families")
            families = [load(store, number) for number in range(count)]
            self._families = Families(families, settings["ragged"])
            self._catalogue.check([family.rows for family in families], store.location)
        self._changes = None
        if writer is not None:
            self._changes = Changes(writer, self._catalogue, self._families, settings, store)
        if store is not None:
            self.__dict__["store"] = store

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        overwrite: bool = False,
        directory: bool = False,
        fsync: bool = True,
        profile: Profile = "balanced",
        threads: int | None = None,
        ragged: Sequence[str] = (),
        encoding: Mapping[str, Mapping[str, Any]] | None = None,
        on_mismatch: Literal["family", "cast", "raise"] = "family",
    ) -> Collection:
        """Return a new, empty collection, which appears under its name with the first commit.

        Parameters
        ----------
        path, overwrite, directory, fsync, profile, threads
            As for `ambar.create`.
        ragged
            Dimensions whose lengths are known to differ between datasets: values lie end to end
            from the first dataset on. Others become ragged when a second length is met. A variable
            has at most one ragged dimension, and before it only dimensions of length 1; datasets
            for which that does not hold are refused (if listed here), or become families by shape.
        encoding
            By variable: ``{"chunks": (50, 168)}``, the part of one dataset that a chunk holds;
            ``{"profile": "small"}``; ``{"error_bound": 0.01}``, absolute.
        on_mismatch
            What to do with a variable of another dtype than that of the first dataset that has it:
            keep it as it is, in another "family"; "cast" it, as NumPy does within a kind; "raise".

        Raises
        ------
        FileExistsError
            If `path` exists.
        BusyError
            If another writer has it open.
        ValueError
            If an option is unknown.
        """
        settings = checked_settings(ragged, encoding, on_mismatch)
        writer = create(
            path,
            "w" if overwrite else "w-",
            directory=directory,
            fsync=fsync,
            profile=profile,
            threads=threads,
        )
        return cls(path, None, writer, settings, threads)

    # Adding and removing

    def add(self, name: str, dataset: Input) -> None:
        """Add a dataset of xarray, or a mapping from names to arrays.

        A mapping's values may be ``(dims, array)`` and ``(dims, array, attributes)`` too. Raises
        ValueError if the name is taken, UnsupportedError for values that cannot be stored.
        """
        self._add(as_record(name, dataset))

    @locked
    def _add(self, record: Record) -> None:
        self._changing.add(record)

    def add_many(self, datasets: Iterable[tuple[str, Input]]) -> None:
        """Add datasets, given with their names; they are encoded together, on all cores.

        Datasets that other threads add meanwhile may come between them.
        """
        for name, dataset in datasets:
            self.add(name, dataset)

    def replace(self, name: str, dataset: Input) -> None:
        """Put a dataset in the place of the one of that name; raises KeyError if it lacks."""
        self._replace(as_record(name, dataset))

    @locked
    def _replace(self, record: Record) -> None:
        self._changing.replace(record)

    @locked
    def extend(self, name: str, dataset: Input, dim: str) -> None:
        """Let a dataset grow along `dim`; variables that lack it must be as they were.

        Raises
        ------
        KeyError
            If the dataset does not exist.
        ValueError
            If the two have other variables, or `dim` is none of them.
        """
        self._changing.replace(grown(self._record(name), as_record(name, dataset), dim))

    @locked
    def remove(self, names: str | Iterable[str]) -> None:
        """Take datasets out; their bytes stay in the store."""
        wanted = {names} if isinstance(names, str) else set(names)
        for name in wanted:
            self._catalogue.position(name)
        self._changing.touch()
        self._catalogue.remove(wanted)

    @locked
    def rename(self, old: str, new: str) -> None:
        """Give a dataset another name; raises KeyError, ValueError if the new is taken."""
        self._changing.touch()
        self._catalogue.rename(old, new)

    @locked
    def commit(self) -> None:
        """Make everything done so far visible to readers, all at once, and durable."""
        self._changing.commit()
        for cached in ("store", "opened", "reader", "_columns", "_chooser", "models"):
            self.__dict__.pop(cached, None)

    def check(self) -> None:
        """Raise the error that writing met, if any, in which case what is not committed is lost.

        Whatever is done next raises it too; this tells it from errors of what is done next.
        """
        if self._changes is not None:
            self._changes.check()

    def close(self) -> None:
        """Give up what was not committed, and let other writers in.

        In a forked child it does nothing: the file is the parent's.
        """
        if isinstance(self._lock, WriterLock) and self._lock.is_foreign:
            return
        with self._lock:
            if self._changes is not None:
                self._changes.close()
                self._changes = None

    def _succeeded(self) -> None:
        if self._changes is not None:
            self.commit()

    # Looking

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
    def families(self) -> list[Family]:
        """The families: datasets of one schema and shape, or ragged along one dimension."""
        return list(self._families)

    @property
    @locked
    def schema(self) -> Schema:
        """The variables of all datasets, and what differs between them."""
        numbers, counts = np.unique(self._catalogue.places[:, 0], return_counts=True)
        return Schema(self._families, dict(zip(numbers.tolist(), counts.tolist(), strict=True)))

    @property
    @locked
    def variables(self) -> list[str]:
        """The names of the variables of all datasets."""
        return list(dict.fromkeys(name for family in self._families for name in family.columns))

    @property
    @locked
    def places(self) -> np.ndarray:
        """Where the datasets lie: uint32 (datasets, 2), the family's number and the row there."""
        return self._catalogue.places.copy()

    @property
    @locked
    def attribute_names(self) -> list[str]:
        """The names of the attributes of all datasets."""
        return self._chooser.attribute_names

    @locked
    def attributes(self, name: str) -> dict[str, Any]:
        """Return the attributes of a dataset; raises KeyError if it does not exist."""
        family, row = self.place(name)
        return self._columns.attributes(family, None, row)

    @locked
    def attribute_columns(self) -> dict[str, np.ndarray]:
        """Return every attribute of datasets as a column (datasets,); None where one lacks it."""
        return {key: self._chooser.attribute(key) for key in self.attribute_names}

    @locked
    def attribute_table(self) -> Table:
        """Return the datasets' names and attributes as a table, for Arrow, pandas and polars.

        Attributes of several types, and those that datasets lack, are texts there: JSON, or empty.
        """
        columns = {key: arrow_column(values) for key, values in self.attribute_columns().items()}
        return Table({"dataset": np.array(self.names, dtype=str), **columns}, dim="dataset")

    def verify(
        self,
        *,
        threads: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> dict[str, int]:
        """Check every checksum of the last commit; as `ambar.Store.verify`."""
        return self.store.verify(threads=threads, progress=progress)

    @locked
    def choose(self, datasets: Any = None) -> list[str]:
        """Return the names of the datasets that are chosen as `read` lets one do."""
        names = self._catalogue.names
        return [names[position] for position in self._chooser.positions(datasets)]

    @locked
    def stats(self, variable: str) -> Table:
        """Return min, max, count and nulls of a variable in each dataset that has it.

        From the store's statistics alone: no values are read. Texts and complex numbers have
        neither min nor max.
        """
        columns = self._chooser.statistics(variable)
        having = columns.pop("having")
        names = np.array(self.names, dtype=str)[having]
        kept = {key: column[having] for key, column in columns.items()}
        return Table({"dataset": names, **kept}, dim="dataset")

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
        stack: bool = True,
    ) -> Bulk:
        """Read variables of many datasets at once.

        Parameters
        ----------
        variables
            Names; all by default.
        datasets
            Names, positions, a slice of positions, a mask, or a condition on attributes and
            statistics such as ``'platform == "argo" and temperature.max > 20'``; all by default.
        isel, sel
            Parts of dimensions by index (integers, slices, lists, masks), or by the labels of their
            coordinates (labels, slices with both ends, lists).
        out
            Arrays to read into, of the shape and dtype of the result: one a variable, by name.
        stack
            Whether ragged values of one length are returned as an array.

        Returns
        -------
        Bulk
            A mapping from variables to arrays (datasets, ...), or `Ragged` where shapes differ; its
            `missing` says which datasets lack a variable.

        Raises
        ------
        KeyError
            If no dataset has a variable, or there is no dataset of a name, no such label.
        ValueError
            If a selection or `out` does not fit.
        IndexError
            If an index is outside.
        """
        at = self._chooser.positions(datasets)
        known = self.variables
        wanted = (
            known if variables is None else [variables] if isinstance(variables, str) else variables
        )
        isel = dict(isel or {})
        places = self._catalogue.places[at]
        pieces = by_family(list(self._families), places, isel)
        families = [piece.family for piece in pieces]
        isel_dims({**isel, **(sel or {})}, families or list(self._families), list(wanted))
        if sel:
            split = (split_by_labels(piece, sel, self.reader.coordinate) for piece in pieces)
            pieces = [part for parts in split for part in parts]
        arrays: dict[str, np.ndarray | Ragged] = {}
        missing = {}
        for name in wanted:
            if not any(name in piece.family.columns for piece in pieces):
                raise _core.NotFoundError(f"no variable {name!r}; available: {', '.join(known)}")
            into = out.get(name) if isinstance(out, Mapping) else out
            arrays[name], missing[name] = self.reader.read(name, pieces, len(at), into, stack)
        names = self._catalogue.names
        return Bulk([names[position] for position in at], missing, arrays)

    @locked
    def __getitem__(self, name: str) -> xr.Dataset:
        """Return a dataset; its values are read when they are used."""
        from ambar.collection.views import one

        return one(self, name)

    @locked
    def load(self, name: str) -> xr.Dataset:
        """Return a dataset with its values; quicker than lazily where many are read in a row."""
        from ambar.collection.views import loaded

        return loaded(self, name)

    @locked
    def to_xarray(self, names: Sequence[str] | None = None) -> xr.Dataset:
        """Return all datasets, or those named, as one, lazily, with a dimension "dataset".

        Of ragged datasets it is a contiguous ragged array (CF conventions, section 9.3.3), loaded.
        Raises ValueError where their shapes or types differ otherwise.
        """
        from ambar.collection.views import stacked

        return stacked(self, self.names if names is None else list(names))

    def to_xarray_many(self, names: Iterable[str]) -> dict[str, xr.Dataset]:
        """Return several datasets by name, loaded."""
        return {name: self.load(name) for name in names}

    def to_dataframe(
        self, names: Sequence[str] | None = None, variables: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the values of all datasets, or those named, each row with its dataset's name.

        A dataset's rows are those of `xarray.Dataset.to_dataframe`: all combinations of indices
        along its dimensions; one row if it has none. Columns that a dataset lacks are null there.

        Parameters
        ----------
        names
            The datasets; all by default.
        variables
            Data variables to keep, with their coordinates; all by default. Choose those of equal
            dimensions where variables have different ones: their combinations are many rows.

        Raises
        ------
        KeyError
            If a dataset does not exist, or no dataset has one of the variables.
        ValueError
            If a dataset's variables cannot be the columns of one table.
        """
        import pandas as pd

        from ambar.collection.views import frame_of

        for variable in variables or ():
            if variable not in self.variables:
                raise _core.NotFoundError(
                    f"no dataset has a variable {variable!r}; available: "
                    f"{', '.join(self.variables)}"
                )
        wanted = self.names if names is None else names
        frames = [frame_of(name, self.load(name), variables) for name in wanted]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    # What views read

    @cached_property
    def store(self) -> Store:
        """The store, as of the last commit."""
        return open_last(self.path)

    @cached_property
    def opened(self) -> OpenedStore:
        """The store, as lazy arrays keep it: they stay with the last commit of now."""
        return OpenedStore.of(self.path, self.store)

    @cached_property
    def reader(self) -> Reader:
        """What reads of the last commit's families."""
        return Reader(self.store, self._threads)

    @locked
    def place(self, name: str) -> tuple[Family, int]:
        """Return the family of a dataset and its row there; raises KeyError."""
        at = self._catalogue.position(name)
        self._check_committed()
        family, row = self._catalogue.places[at].tolist()
        return self._families[family], row

    def shared(self, family: Family, variable: str) -> np.ndarray:
        """Return the values of a variable that all datasets of a family have in common."""
        return self.reader.coordinate(family, variable, np.empty(0, np.int64))

    def variable_attributes(self, family: Family, variable: str, row: int) -> dict[str, Any]:
        """Return the attributes of a variable in one dataset."""
        return self._columns.attributes(family, variable, row)

    @cached_property
    def _columns(self) -> Columns:
        return Columns(self.store)

    @cached_property
    def _chooser(self) -> Chooser:
        self._check_committed()
        return Chooser(self._catalogue, self._families, self._columns)

    @cached_property
    def models(self) -> dict[int, xr.Dataset]:
        """By the number of a family, a dataset that others are like but for their values."""
        return {}

    def value(self, family: Family, variable: str, row: int) -> np.ndarray:
        """Return the values of a variable in one dataset."""
        column = family.columns[variable]
        if column.shared:
            return self.shared(family, variable)
        if family.ragged_dim(variable) is not None:
            piece = Piece(family, np.array([row]), np.zeros(1, np.int64), {})
            return np.asarray(self.reader.read(variable, [piece], 1, None, stack=True)[0][0])
        self.reader.array(family, variable)
        return decoded(column, blocks_of(self.store).row(family.path(variable), row))

    def _record(self, name: str) -> Record:
        """Return a dataset as it would be added."""
        family, row = self.place(name)
        variables = {}
        for key, column in family.columns.items():
            values = self.value(family, key, row)
            attributes = self.variable_attributes(family, key, row)
            variables[key] = variable_of(
                (name, key), column.dims, values, attributes, column.coordinate, column.type_name
            )
        return record_of(name, variables, texts_of((name,), self.attributes(name)))

    @property
    def _changing(self) -> Changes:
        if self._changes is None:
            raise _core.InvalidError(
                f"{self.path} is open for reading; open it with mode='a' to change it"
            )
        self._changes.check()
        # What is known of the datasets is known anew after the commit.
        self.__dict__.pop("_chooser", None)
        return self._changes

    def _check_committed(self) -> None:
        if self._changes is not None and self._changes.pending:
            raise _core.InvalidError("what was added or changed is to be read after commit()")

    @locked
    def __repr__(self) -> str:
        """Return the numbers of datasets and variables, and what differs."""
        schema = self.schema
        lines = [f"<ambar.Collection: {len(self):,} datasets of {len(self._families)} families>"]
        return "\n".join([*lines, *repr(schema).splitlines()[1:]])
