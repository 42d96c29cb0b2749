"""A collection and a dictionary of datasets of xarray, which do the same and must agree.

Hypothesis chooses the sequences of calls, and shortens a sequence that fails.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any, TypeAlias

import hypothesis
import numpy as np
import pytest
import xarray as xr
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import ambar
from ambar.collection.storage import catalogue
from ambar.collection.write import family_writer

NAMES = ("a", "b", "c", "d", "e")
Model: TypeAlias = dict[str, xr.Dataset]

names = st.sampled_from(NAMES)


@st.composite
def datasets(draw: st.DrawFn) -> xr.Dataset:
    """Return a dataset with some of three variables: ragged numbers, ragged text, a grid."""
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    variables: dict[str, Any] = {}
    length = draw(st.integers(0, 4))
    if draw(st.booleans()) or length == 0:
        variables["v"] = (
            "z",
            rng.integers(0, 9, length).astype(draw(st.sampled_from(["f8", "i4"]))),
        )
    if draw(st.booleans()):
        variables["s"] = ("z", np.array([f"text {n}" for n in range(length)], object))
    if draw(st.booleans()):
        shape = draw(st.sampled_from([(2, 3), (2, 1)]))
        variables["w"] = (("y", "x"), rng.normal(size=shape), {"units": "K"})
    attrs = draw(st.dictionaries(st.sampled_from(["p", "q"]), st.integers(0, 2)))
    return xr.Dataset(
        variables, {"x": np.arange(3.0)} if "w" in variables and shape[1] == 3 else {}, attrs
    )


class CollectionMachine(RuleBasedStateMachine):
    """Calls methods of a collection, and checks it after each commit and each abort."""

    directory = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "x.ambar"
        self.writer: ambar.Collection | None = None
        self.committed: Model | None = None
        self.pending: Model = {}
        self.is_changed = False
        self.readers: list[tuple[ambar.Collection, Model]] = []

    def teardown(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.readers.clear()
        shutil.rmtree(self.folder)

    @property
    def open_writer(self) -> ambar.Collection:
        assert self.writer is not None
        return self.writer

    @invariant()
    def names_agree(self) -> None:
        assert self.path.exists() == (self.committed is not None)
        if self.writer is not None:
            assert self.writer.names == list(self.pending)

    @initialize(mode=st.sampled_from(["w-", "w", "a"]), ragged=st.sampled_from([(), ("z",)]))
    def create(self, mode: Any, ragged: tuple[str, ...]) -> None:
        self.ragged = ragged
        self.writer = ambar.open_collection(
            self.path, mode, ragged=ragged, directory=self.directory, fsync=False
        )

    @precondition(lambda self: self.writer is None)
    @rule(mode=st.sampled_from(["w", "a", "a", "a"]))
    def open(self, mode: Any) -> None:
        if self.committed is not None:
            with pytest.raises(FileExistsError):
                ambar.open_collection(self.path, "w-", directory=self.directory)
        self.writer = ambar.open_collection(
            self.path, mode, ragged=self.ragged, directory=self.directory, fsync=False
        )
        self.pending = dict(self.committed or {}) if mode == "a" else {}
        self.is_changed = False

    @precondition(lambda self: self.writer is not None)
    @rule(name=names, dataset=datasets())
    def add(self, name: str, dataset: xr.Dataset) -> None:
        if name in self.pending:
            with pytest.raises(ValueError, match=repr(name)):
                self.open_writer.add(name, dataset)
            return
        self.open_writer.add(name, dataset)
        self.pending[name] = dataset
        self.is_changed = True

    @precondition(lambda self: self.writer is not None)
    @rule(name=names, dataset=datasets())
    def replace(self, name: str, dataset: xr.Dataset) -> None:
        if name not in self.pending:
            with pytest.raises(KeyError):
                self.open_writer.replace(name, dataset)
            return
        self.open_writer.replace(name, dataset)
        self.pending[name] = dataset
        self.is_changed = True

    @precondition(lambda self: self.writer is not None)
    @rule(removed=st.sets(names, min_size=1, max_size=2))
    def remove(self, removed: set[str]) -> None:
        if not removed <= self.pending.keys():
            with pytest.raises(KeyError):
                self.open_writer.remove(removed)
            return
        self.open_writer.remove(removed)
        for name in removed:
            del self.pending[name]
        self.is_changed = True

    @precondition(lambda self: self.writer is not None)
    @rule(old=names, new=names)
    def rename(self, old: str, new: str) -> None:
        if old not in self.pending or new in self.pending:
            with pytest.raises((KeyError, ValueError)):
                self.open_writer.rename(old, new)
            return
        self.open_writer.rename(old, new)
        self.pending = {new if name == old else name: d for name, d in self.pending.items()}
        self.is_changed = True

    @precondition(lambda self: self.writer is not None)
    @rule(name=names, more=st.integers(0, 3))
    def extend(self, name: str, more: int) -> None:
        known = self.pending.get(name)
        if known is None or self.is_changed or "z" not in known.dims:
            with pytest.raises((KeyError, ValueError)):
                self.open_writer.extend(name, {"v": ("z", np.zeros(more))}, "z")
            return
        ends = {
            key: (
                "z",
                np.full(more, "more", object) if key == "s" else np.arange(more).astype(v.dtype),
            )
            for key, v in known.data_vars.items()
            if v.dims == ("z",)
        }
        extension = known.drop_dims("z").assign(ends)
        self.open_writer.extend(name, extension, "z")
        joined = {
            key: ("z", np.concatenate([known[key].values, values]))
            for key, (_, values) in ends.items()
        }
        self.pending[name] = known.drop_dims("z").assign(joined)
        self.is_changed = True

    @precondition(lambda self: self.writer is not None)
    @rule()
    def commit(self) -> None:
        self.open_writer.commit()
        self.committed, self.is_changed = dict(self.pending), False
        self.check_store()

    @precondition(lambda self: self.writer is not None)
    @rule(commits=st.booleans())
    def close(self, commits: bool) -> None:
        """Leave the ``with`` block of the collection, with or without an exception."""
        if commits:
            with self.open_writer:
                pass
            self.committed = dict(self.pending)
        else:
            with pytest.raises(InterruptedError), self.open_writer:
                raise InterruptedError
        self.writer = None
        self.check_store()

    @precondition(lambda self: self.writer is not None and self.committed is not None)
    @rule()
    def read_with_the_writer(self) -> None:
        if not self.is_changed:
            check(self.open_writer, self.pending)
        elif self.pending:
            with pytest.raises(ValueError, match="call commit"):
                self.open_writer.load(next(iter(self.pending)))

    @precondition(lambda self: self.committed is not None)
    @rule()
    def keep_a_reader(self) -> None:
        self.readers.append((ambar.open_collection(self.path), dict(self.committed or {})))

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def read_an_earlier_commit(self, data: st.DataObject) -> None:
        """A file keeps earlier commits; a folder may have to refuse, but never mixes two."""
        reader, model = data.draw(st.sampled_from(self.readers))
        with contextlib.suppress(*[ambar.BusyError] if self.directory else []):
            check(reader, model)

    @precondition(lambda self: self.committed is not None and self.writer is None)
    @rule()
    def compact(self) -> None:
        if not self.directory:
            ambar.compact(self.path)
        self.check_store()

    def check_store(self) -> None:
        if self.committed is not None:
            collection = ambar.open_collection(self.path)
            check(collection, self.committed)
            collection.verify()


class FolderCollectionMachine(CollectionMachine):
    """The same with a store that is a folder."""

    directory = True


def check(collection: ambar.Collection, model: Model) -> None:
    """Check all datasets, read one by one and together, and their attributes and statistics."""
    assert collection.names == list(model)
    for name, expected in model.items():
        xr.testing.assert_identical(collection.load(name), expected)
        xr.testing.assert_identical(collection[name].load(), expected)
    for key in ("v", "s", "w"):
        having = [name for name, dataset in model.items() if key in dataset]
        if not having:
            continue
        read = collection.read(key, stack=False)
        assert read.names == list(model)
        assert read.missing[key].tolist() == [name not in having for name in model]
        for name, values in zip(model, read[key], strict=True):
            if name in having:
                np.testing.assert_array_equal(values, model[name][key].values)
        table = collection.stats(key)
        assert table["dataset"].tolist() == having
        assert table["count"].tolist() == [model[name][key].size for name in having]
    for key in ("p", "q"):
        attributes = [dataset.attrs.get(key) for dataset in model.values()]
        if any(value is not None for value in attributes):
            assert collection.attrs[key].tolist() == attributes


@pytest.mark.parametrize("has_tails", [False, True])
@pytest.mark.parametrize("machine", [CollectionMachine, FolderCollectionMachine])
def test_a_collection_does_what_a_dictionary_of_datasets_does(
    machine: type[CollectionMachine], has_tails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenth of the usual number of examples, because each one writes several files."""
    if has_tails:
        monkeypatch.setattr(family_writer, "MAX_BYTES", 300)
        monkeypatch.setattr(catalogue, "MAX_TAIL", 1)
    profile = hypothesis.settings()
    settings = hypothesis.settings(profile, max_examples=profile.max_examples // 10)
    run_state_machine_as_test(machine, settings=settings)
