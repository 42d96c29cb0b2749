"""The changes of a collection since its last commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from ambar import _core
from ambar.collection.storage.catalogue import Catalogue
from ambar.collection.storage.encodings import dtype_name
from ambar.collection.storage.family import Column, Families, Family
from ambar.collection.storage.records import DeferredValues, Record, Variable, check_name, retyped
from ambar.collection.storage.settings import VERSION, check_encoding
from ambar.collection.write.family_writer import FEW, FamilyWriter
from ambar.collection.write.writer_thread import WriterThread
from ambar.store.dtypes import can_convert, convert_exactly
from ambar.store.store import Store
from ambar.store.writer import Writer


class PendingChanges:
    """The changes of a collection since its last commit."""

    def __init__(
        self,
        writer: Writer,
        catalogue: Catalogue,
        families: Families,
        settings: Mapping[str, Any],
        store: Store | None,
        *,
        is_object: bool,
    ) -> None:
        self._writer = writer
        self._catalogue = catalogue
        self._families = families
        self._settings = settings
        self._store = store
        self._is_object = is_object
        # The message of the only commit of an object, which appears when it is closed.
        self._message: str | None = None
        self._writers: dict[int, FamilyWriter] = {}
        self._thread = WriterThread()
        self._first: dict[str, Column] = {}
        for family in families:
            for name, column in family.columns.items():
                self._first.setdefault(name, column)
        self.pending = False
        """Whether there are changes."""

    def check(self) -> None:
        """Raise an error of writing, if any; changes since the last commit are lost then.

        Raises ValueError in a forked child, which must not use the writer of its parent.
        """
        self._thread.check()
        self._writer._core.check()

    def add(self, record: Record) -> None:
        """Add a dataset of a new name."""
        if record.name in self._catalogue:
            raise exists_already(record.name)
        number, row = self._put(record)
        self._catalogue.add(record.name, number, row)

    def add_rows(
        self, record: Record, names: Sequence[str], values: Mapping[str, np.ndarray]
    ) -> None:
        """Add datasets of new names that differ from `record` in nothing but their values.

        `values` are those of all datasets (datasets, ...), by variable.
        """
        count, added = self._catalogue.count_new(names), 0
        if count > FEW:
            placed, writer = self._place(record)
            rows = {
                name: _convert_rows(values[name][:count], variable.values.dtype)
                for name, variable in placed.variables.items()
            }
            if all(part is not None for part in rows.values()):
                at = writer.add_rows(placed, cast("dict[str, np.ndarray]", rows))
                self._catalogue.add_many(names[:count], writer.number, at)
                added = count
        # Few datasets may yet change the family; the first invalid name or value raises its error.
        for at in range(added, len(names)):
            check_name(names[at])
            variables = {
                name: variable._replace(values=np.array(values[name][at]))
                for name, variable in record.variables.items()
            }
            self.add(record._replace(name=names[at], variables=variables))

    def replace(self, record: Record) -> None:
        """Replace the dataset of this name."""
        self._catalogue.position(record.name)
        self._catalogue.move(record.name, *self._put(record))

    def remove(self, names: set[str]) -> None:
        """Remove datasets; raises KeyError, and removes none, if one does not exist."""
        for name in names:
            self._catalogue.position(name)
        self._catalogue.remove(names)
        self.pending = True

    def rename(self, old: str, new: str) -> None:
        """Rename a dataset."""
        self._catalogue.rename(old, new)
        self.pending = True

    def commit(self, message: str = "") -> None:
        """Write and commit all changes; those of an object are committed by `close`."""
        if self._is_object:
            self._message = message or self._message or ""
        else:
            self._commit(message)

    def _commit(self, message: str) -> None:
        self.check()
        for writer in self._writers.values():
            writer.finish()
        self._thread.wait()
        runs = self._catalogue.write(self._writer)
        about = {
            "kind": "collection",
            "version": VERSION,
            "datasets": len(self._catalogue),
            "families": len(self._families),
            "index": runs,
            **self._settings,
        }
        self._writer._create_group("/", {"ambar": about})
        self._writer.commit(message)
        self._catalogue.committed()
        self.pending = False

    def close(self) -> None:
        """Close the store; changes since the last commit are lost."""
        if self._message is not None:
            self._commit(self._message)
        self._thread.close()
        self._writer.close()

    def abort(self) -> None:
        """Close the store after an error; an upload leaves nothing."""
        self._thread.close()
        self._writer._abort()

    def _put(self, record: Record) -> tuple[int, int]:
        record, writer = self._place(record)
        return writer.number, writer.add(record)

    def _place(self, record: Record) -> tuple[Record, FamilyWriter]:
        """Return a dataset with the required dtypes, and the writer of its family."""
        record = self._matched(record)
        check_encoding(record, self._settings["encoding"])
        family = self._families.place(record, self._can_change)
        for name, variable in record.variables.items():
            if name not in self._first:
                self._first[name] = Column.of(variable)
        if family.number not in self._writers:
            writer = FamilyWriter(self._writer, family, self._settings["encoding"], self._thread)
            if self._store is not None and family.rows:
                writer.load(self._store)
            self._writers[family.number] = writer
        self.pending = True
        return record, self._writers[family.number]

    def _can_change(self, family: Family) -> bool:
        writer = self._writers.get(family.number)
        return writer is not None and writer.can_change

    def _matched(self, record: Record) -> Record:
        """Return the dataset with the dtypes that the setting `on_mismatch` requires."""
        policy = self._settings["on_mismatch"]
        changed: dict[str, Variable] = {}
        for name, given in record.variables.items():
            first = self._first.get(name)
            if first is None or _same_type(first, given):
                continue
            variable = retyped(given, first.type_name)
            if variable is not given:
                changed[name] = variable
                continue
            if policy == "family":
                continue
            if policy == "raise" or not _is_castable(variable, first):
                raise _core.InvalidError(
                    f"dataset {record.name!r}: {name} has dtype {_dtype(variable)}, expected "
                    f"{_dtype(first)} as in the first dataset; convert it, or create the "
                    "collection with on_mismatch='family'"
                )
            if isinstance(variable.values, DeferredValues):
                values = variable.values.astype(first.type_name)
            elif (values := convert_exactly(variable.values, first.type_name)) is None:
                raise _core.InvalidError(
                    f"dataset {record.name!r}: {name} has values of {_dtype(variable)} that "
                    f"{_dtype(first)}, the dtype of the first dataset, cannot represent; convert "
                    "them, or create the collection with on_mismatch='family'"
                )
            changed[name] = variable._replace(values=values, type_name=first.type_name)
        if not changed:
            return record
        return record._replace(variables={**record.variables, **changed})


def exists_already(name: str) -> _core.InvalidError:
    """Return the error for a dataset whose name a collection has."""
    return _core.InvalidError(
        f"a dataset {name!r} exists already; replace it, or choose another name"
    )


def _same_type(first: Column, variable: Variable) -> bool:
    return (first.type_name, first.times) == (variable.type_name, variable.times)


def _dtype(variable: Variable | Column) -> str:
    return dtype_name(variable.type_name, variable.times)


def _is_castable(variable: Variable, first: Column) -> bool:
    strings = ("string", "bytes")
    if variable.times or first.times or {first.type_name, variable.type_name}.intersection(strings):
        return False
    return can_convert(variable.values.dtype, np.dtype(first.type_name))


def _convert_rows(values: np.ndarray, dtype: np.dtype[Any]) -> np.ndarray | None:
    """Return values in another dtype; None if it cannot represent these numbers."""
    if can_convert(values.dtype, dtype):
        return convert_exactly(values, dtype)
    return values.astype(dtype, copy=False)
