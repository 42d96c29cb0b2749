"""A writer of stores and a dictionary of NumPy arrays, which do the same and must agree.

Hypothesis chooses the sequences of calls, and shortens a sequence that fails.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
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

GROUPS = ("g", "g/h", "other")
PATHS = ("a", "b", "g/a", "g/h/b", "g", "g/h")
"""Paths of arrays; some are those of groups, where a call may have to fail."""
DTYPES = ("f8", "f4", "i4", "u1", "bool", "c16", "M8[ns]", "S3", str)
BOUND = 1e-3

paths = st.sampled_from(PATHS)
seeds = st.integers(0, 2**32 - 1)
shapes = st.lists(st.integers(0, 7), max_size=3).map(tuple)
attributes = st.dictionaries(
    st.sampled_from(["x", "y"]), st.integers(-(2**63), 2**64 - 1) | st.text(max_size=3)
)


def make(dtype: Any, shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Return random values, of which many are equal."""
    numbers = np.random.default_rng(seed).integers(0, 5, shape)
    if dtype is str:
        return np.array([f"text {number}" for number in numbers.ravel()], object).reshape(shape)
    if dtype == "S3":
        return numbers.astype("S3")
    return numbers.astype("i8").astype(dtype)


@dataclass
class StoredArray:
    """What an array is expected to contain."""

    values: np.ndarray
    dtype: Any
    attributes: dict[str, Any]
    bound: float = 0.0

    def check(self, array: ambar.Array) -> None:
        read = np.asarray(array[...], object if self.dtype is str else None)
        assert array.shape == read.shape == self.values.shape
        assert array.attrs == self.attributes
        if self.bound:
            assert np.all(np.abs(read - self.values) <= self.bound)
        else:
            np.testing.assert_array_equal(read, self.values)
            assert array.dtype == self.values.dtype


@dataclass
class Contents:
    """What a store is expected to contain."""

    arrays: dict[str, StoredArray] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=lambda: {"": {}})

    def add_parents(self, path: str) -> None:
        while path:
            path = path.rpartition("/")[0]
            self.groups.setdefault(path, {})

    def parents_are_groups(self, path: str) -> bool:
        parts = path.split("/")
        return not any("/".join(parts[:n]) in self.arrays for n in range(1, len(parts)))

    def remove(self, path: str) -> None:
        below = f"{path}/"
        for nodes in (self.arrays, self.groups):
            for name in list(nodes):
                if name == path or name.startswith(below):
                    del nodes[name]

    def check(self, store: ambar.Store) -> None:
        assert sorted(store) == sorted(self.arrays)
        assert sorted(store.groups) == sorted(self.groups)
        for path, expected in self.groups.items():
            found = store[path].attrs
            assert {name: found[name] for name in found if name != "ambar"} == expected, path
        for path, array in self.arrays.items():
            array.check(store[path])


class WriterMachine(RuleBasedStateMachine):
    """Calls methods of a writer, and checks the store after each commit and each abort."""

    directory = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "x.ambar"
        self.writer: ambar.Writer | None = None
        self.committed: Contents | None = None
        self.pending = Contents()
        self.readers: list[tuple[ambar.Store, Contents]] = []

    def teardown(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.readers.clear()
        shutil.rmtree(self.folder)

    @property
    def open_writer(self) -> ambar.Writer:
        assert self.writer is not None
        return self.writer

    @invariant()
    def only_commits_are_visible(self) -> None:
        if self.committed is None:
            assert not self.path.exists()

    @initialize(mode=st.sampled_from(["w-", "w", "a"]))
    def create(self, mode: Any) -> None:
        self.writer = ambar.create(self.path, mode, directory=self.directory, fsync=False)

    @precondition(lambda self: self.writer is None)
    @rule(mode=st.sampled_from(["w", "a", "a", "a"]), profile=st.sampled_from(["fast", "balanced"]))
    def open(self, mode: Any, profile: Any) -> None:
        if self.committed is not None:
            with pytest.raises(FileExistsError):
                ambar.create(self.path, directory=self.directory)
        self.writer = ambar.create(
            self.path, mode, directory=self.directory, profile=profile, fsync=False
        )
        adds = mode == "a" and self.committed is not None
        self.pending = deepcopy(self.committed) if adds and self.committed else Contents()

    @precondition(lambda self: self.writer)
    @rule(
        path=paths,
        dtype=st.sampled_from(DTYPES),
        shape=shapes,
        seed=seeds,
        given=attributes,
        chunk=st.none() | st.integers(1, 4),
        has_bound=st.booleans(),
        has_data=st.booleans(),
    )
    def create_array(
        self,
        path: str,
        dtype: Any,
        shape: tuple[int, ...],
        seed: int,
        given: dict[str, Any],
        chunk: int | None,
        has_bound: bool,
        has_data: bool,
    ) -> None:
        bound = BOUND if has_bound and dtype in ("f4", "f8") else None
        options: dict[str, Any] = {"attrs": given, "error_bound": bound}
        if chunk is not None and shape:
            options["chunks"] = (chunk,) * len(shape)
        values = make(dtype, shape, seed)
        if not has_data:
            values = np.full_like(values, "") if dtype is str else np.zeros_like(values)
            options |= {"shape": shape, "dtype": dtype}
        data = values if has_data else None
        if path in self.pending.groups or not self.pending.parents_are_groups(path):
            with pytest.raises(ValueError, match="exists as a node|cannot be below"):
                self.open_writer.create_array(path, data, **options)
            return
        self.open_writer.create_array(path, data, **options)
        self.pending.arrays[path] = StoredArray(values, dtype, given, bound or 0.0)
        self.pending.add_parents(path)

    @precondition(lambda self: self.writer)
    @rule(path=st.sampled_from(GROUPS), given=attributes)
    def create_group(self, path: str, given: dict[str, Any]) -> None:
        if path in self.pending.arrays or not self.pending.parents_are_groups(path):
            with pytest.raises(ValueError, match="exists as a node|cannot be below"):
                self.open_writer.create_group(path, given)
            return
        self.open_writer.create_group(path, given)
        self.pending.add_parents(path)
        self.pending.groups[path] = given

    @precondition(lambda self: self.writer)
    @rule(path=st.sampled_from(sorted({*PATHS, *GROUPS})), given=attributes)
    def set_attributes(self, path: str, given: dict[str, Any]) -> None:
        if path in self.pending.arrays:
            self.open_writer[path].attrs = given
            self.pending.arrays[path].attributes = given
        elif path in self.pending.groups:
            self.open_writer[path].attrs = given
            self.pending.groups[path] = given
        else:
            with pytest.raises(KeyError):
                self.open_writer[path].attrs = given

    @precondition(lambda self: self.writer)
    @rule(path=st.sampled_from(sorted({*PATHS, *GROUPS})), given=attributes)
    def update_attributes(self, path: str, given: dict[str, Any]) -> None:
        array = self.pending.arrays.get(path)
        expected = self.pending.groups.get(path) if array is None else array.attributes
        if expected is None:
            with pytest.raises(KeyError):
                self.open_writer[path]
            return
        attrs = self.open_writer[path].attrs
        if expected:
            expected = dict(list(expected.items())[1:])
            del attrs[next(iter(attrs))]
        expected = {**expected, **given}
        attrs.update(given)
        if array is None:
            self.pending.groups[path] = expected
        else:
            array.attributes = expected
        assert list(attrs.items()) == list(expected.items())

    @precondition(lambda self: self.writer)
    @rule(path=paths, data=st.data(), seed=seeds)
    def write_region(self, path: str, data: st.DataObject, seed: int) -> None:
        array = self.pending.arrays.get(path)
        if array is None:
            with pytest.raises(KeyError):
                self.open_writer.write_region(path, np.zeros(1), (0,))
            return
        shape = array.values.shape
        start = tuple(data.draw(st.integers(0, size)) for size in shape)
        stop = tuple(
            data.draw(st.integers(first, size)) for first, size in zip(start, shape, strict=True)
        )
        region: Any = (*map(slice, start, stop), ...)
        values = make(array.dtype, array.values[region].shape, seed)
        self.open_writer.write_region(path, values, start)
        array.values = array.values.copy()
        array.values[region] = values

    @precondition(lambda self: self.writer)
    @rule(path=paths, counts=st.lists(st.integers(0, 5), min_size=1, max_size=2), seed=seeds)
    def append(self, path: str, counts: list[int], seed: int) -> None:
        array = self.pending.arrays.get(path)
        if array is None:
            with pytest.raises(KeyError):
                self.open_writer.append(path, np.zeros(1))
            return
        if not array.values.ndim:
            with pytest.raises(ValueError, match="both need rows"):
                self.open_writer.append(path, make(array.dtype, (1,), seed))
            return
        pieces = [make(array.dtype, (n, *array.values.shape[1:]), seed + n) for n in counts]
        self.open_writer.append(path, *pieces)
        array.values = np.concatenate([array.values, *pieces])

    @precondition(lambda self: self.writer)
    @rule(path=st.sampled_from(sorted({*PATHS, *GROUPS})))
    def remove(self, path: str) -> None:
        if path not in self.pending.arrays and path not in self.pending.groups:
            with pytest.raises(KeyError):
                self.open_writer.remove(path)
            return
        self.open_writer.remove(path)
        self.pending.remove(path)

    @precondition(lambda self: self.writer)
    @rule()
    def commit(self) -> None:
        self.open_writer.commit()
        self.committed = deepcopy(self.pending)
        self.check_store()

    @precondition(lambda self: self.writer)
    @rule(commits=st.booleans())
    def close(self, commits: bool) -> None:
        """Leave the ``with`` block of the writer, with or without an exception."""
        if commits:
            with self.open_writer:
                pass
            self.committed = deepcopy(self.pending)
        else:
            with pytest.raises(InterruptedError), self.open_writer:
                raise InterruptedError
        self.writer = None
        self.check_store()

    @precondition(lambda self: self.committed)
    @rule()
    def keep_a_reader(self) -> None:
        assert self.committed is not None
        self.readers.append((ambar.open_store(self.path), deepcopy(self.committed)))

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def read_an_earlier_commit(self, data: st.DataObject) -> None:
        """A file keeps earlier commits; a folder may have to refuse, but never mixes two."""
        store, contents = data.draw(st.sampled_from(self.readers))
        with contextlib.suppress(*[ambar.BusyError] if self.directory else []):
            contents.check(store)

    @precondition(lambda self: self.committed and self.writer is None and not self.directory)
    @rule()
    def compact(self) -> None:
        ambar.compact(self.path)
        self.check_store()

    def check_store(self) -> None:
        if self.committed is not None:
            store = ambar.open_store(self.path)
            self.committed.check(store)
            store.verify()


class FolderWriterMachine(WriterMachine):
    """The same with a store that is a folder."""

    directory = True


@pytest.mark.parametrize(("machine", "share"), [(WriterMachine, 2), (FolderWriterMachine, 4)])
def test_a_writer_does_what_a_dictionary_of_arrays_does(
    machine: type[WriterMachine], share: int
) -> None:
    """A share of the usual number of examples, because each one writes many arrays."""
    profile = hypothesis.settings()
    settings = hypothesis.settings(profile, max_examples=profile.max_examples // share)
    run_state_machine_as_test(machine, settings=settings)
