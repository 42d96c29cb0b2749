"""Stores whose file is in memory: opened, read, refused like files; meshes written there."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar import _core

VALUES = np.random.default_rng(0).random((200, 300))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("memory") / "x.ambar"
    with ambar.create(path, fsync=False) as writer:
        writer.create_group("", {"title": "a run"})
        writer.create_array("cube", VALUES, dims=("y", "x"), chunks=(50, 50))
        writer.create_array("text", np.array(["a", "žluť"], dtype=object), dims=("n",))
    return path.read_bytes()


class Slow(io.RawIOBase):
    """A binary file without a place that it could be wound to."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, size: int = -1) -> bytes:
        assert size == -1
        return self._data


@pytest.mark.parametrize("form", [bytes, bytearray, memoryview, io.BytesIO, Slow])
def test_bytes_are_opened(form: Any, file: bytes) -> None:
    place = form(file)
    if form is io.BytesIO:
        place.seek(100)  # all of it counts, wherever it stands
    store = ambar.open(place)
    assert isinstance(store, ambar.Store)
    assert store.attrs["title"] == "a run"
    np.testing.assert_array_equal(store["cube"][7:70:3, ::-1], VALUES[7:70:3, ::-1])
    assert store.read_together(["cube", "text"])["text"].tolist() == ["a", "žluť"]
    assert store.verify()["chunks"] > 20
    assert store.usage()["total"] == len(file)
    assert "<" in store.location


def test_files_that_are_open_tell_their_names(file: bytes, tmp_path: Path) -> None:
    (tmp_path / "open.ambar").write_bytes(file)
    with (tmp_path / "open.ambar").open("rb") as opened:
        store = ambar.open_store(opened)
    assert store.location.endswith("open.ambar")
    np.testing.assert_array_equal(store["cube"][3], VALUES[3])
    with (
        (tmp_path / "text.txt").open("w+") as opened,
        pytest.raises(
            ValueError, match="text.txt: expected bytes, found str; open the file as 'rb'"
        ),
    ):
        ambar.open_store(opened)  # type: ignore[arg-type]


def test_memory_is_not_released_while_it_is_read() -> None:
    whole = bytearray(100)
    with pytest.raises(ambar.CorruptError):
        ambar.open(whole)
    whole.append(1)  # of what could not be opened nothing is held


def test_bytes_that_others_can_change_are_copied(file: bytes) -> None:
    held = bytearray(file)
    store = ambar.open_store(held)
    held.clear()
    np.testing.assert_array_equal(store["cube"][:], VALUES)
    held = bytearray(file)
    held[store._core.array("/cube").chunk_ranges()[0].offset + 5] ^= 1
    with pytest.raises(ambar.CorruptError, match="<bytes in memory>.*cube"):
        ambar.open_store(held)["cube"][:]


def test_damaged_bytes_are_refused(file: bytes) -> None:
    for damaged in (b"", b"PK", file[:100], file[: len(file) // 2], file[:-1], file[1:]):
        with pytest.raises(ambar.CorruptError, match="<bytes in memory>"):
            ambar.open_store(damaged)
    rng = np.random.default_rng(1)
    for _ in range(300):
        changed = bytearray(file)
        changed[rng.integers(len(file))] ^= 1 << int(rng.integers(8))
        try:
            store = ambar.open_store(changed)
            values = store["cube"][:]
            texts = store["text"][:].tolist()
        except ambar.AmbarError:
            continue
        np.testing.assert_array_equal(values, VALUES)
        assert texts == ["a", "žluť"]


def test_what_is_no_place(file: bytes) -> None:
    with pytest.raises(
        ValueError, match="store: 7; expected a path, a URL, bytes or a binary file"
    ):
        ambar.open(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="storage_options are for URLs"):
        ambar.open(file, storage_options={"region": "x"})
    with pytest.raises(ValueError, match="expected a C-contiguous memoryview"):
        ambar.open(memoryview(file)[::2])


def test_collections_and_snapshots_in_memory(stores: dict[str, Path], tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    with ambar.open_collection(tmp_path / "c.ambar", "w-", fsync=False) as profiles:
        for number in range(3):
            profiles.add(f"d{number}", xr.Dataset({"t": ("z", np.arange(5.0) + number)}))
    found = ambar.open((tmp_path / "c.ambar").read_bytes())
    assert isinstance(found, ambar.Collection)
    np.testing.assert_array_equal(found["d2"].t, np.arange(5.0) + 2)
    again = pickle.loads(pickle.dumps(found["d1"]))
    np.testing.assert_array_equal(again.t, np.arange(5.0) + 1)
    here, held = (
        ambar.open_snapshot(stores["gravpart"]),
        ambar.open_snapshot(stores["gravpart"].read_bytes()),
    )
    assert held.info == here.info
    first, second = (each.amr.read(["density"])["density"] for each in (here, held))
    np.testing.assert_array_equal(first, second)


def test_xarray_opens_bytes(file: bytes) -> None:
    xr = pytest.importorskip("xarray")
    dataset = xr.open_dataset(file, engine="ambar", drop_variables=["text"])
    np.testing.assert_array_equal(dataset.cube[3:5], VALUES[3:5])


def test_meshes_are_written_to_memory_and_read(tmp_path: Path) -> None:
    pv = pytest.importorskip("pyvista")
    mesh = pv.Sphere()
    mesh["x"] = np.arange(mesh.n_points)
    mesh.user_dict = {"a": 1}
    file = io.BytesIO(b"before")
    file.seek(0, io.SEEK_END)
    ambar.write_mesh(mesh, file, user_dict={"a": 1})
    held = file.getvalue()
    assert held.startswith(b"before")
    held = held[6:]
    for form in (bytes, memoryview, io.BytesIO):
        assert ambar.read_mesh(form(held)) == mesh
    opened = ambar.open(held)
    assert isinstance(opened, ambar.Mesh)
    assert opened.user_dict == {"a": 1}
    assert opened.read_array("x", rows=slice(5, 7)).tolist() == [5, 6]
    box = ambar.Box((0, 0, 0), (1, 1, 1))
    expected = mesh.find_cells_within_bounds((0, 1, 0, 1, 0, 1))
    assert ambar.read_mesh(held, region=box).n_cells == len(expected)
    assert list(opened.store) == ["description"]
    assert not any(array.paths for array in opened.arrays)
    ambar.write_mesh(mesh, tmp_path / "x.ambar", user_dict={"a": 1})
    assert (tmp_path / "x.ambar").stat().st_size == len(held)
    with pytest.raises(ValueError, match="user_dict"):
        ambar.write_mesh(mesh, io.BytesIO(), user_dict={"a": object()})


def test_stores_in_memory_do_not_change_with_the_bytes_they_were_opened_from(
    tmp_path: Path,
) -> None:
    """The reader kept the caller's memory, which other threads could change under its checks."""
    with ambar.create(tmp_path / "x.ambar", fsync=False) as writer:
        writer.create_array("x", np.arange(1000.0))
    content = (tmp_path / "x.ambar").read_bytes()
    buffers: list[Any] = [bytearray(content), np.frombuffer(bytearray(content), "u1")]
    for data in buffers:
        store = ambar.open_store(memoryview(data))
        memoryview(data).cast("B")[:] = bytes(len(content))
        np.testing.assert_array_equal(store["x"][:], np.arange(1000.0))
    view = memoryview(content)
    np.testing.assert_array_equal(ambar.open_store(view)["x"][:], np.arange(1000.0))


def test_values_may_be_decoded_over_their_own_stream() -> None:
    """Stream and values in the same memory were read and written at the same time."""
    values = np.random.default_rng(1).integers(0, 9, 5000)
    dtype = "int64"
    codecs, stream = _core.encode_bare_array(values, dtype, [5000], False)
    memory = np.zeros(values.nbytes, "u1")
    memory[100 : 100 + len(stream)] = np.frombuffer(stream, "u1")
    _core.decode_bare_array(codecs, dtype, [5000], memory[100 : 100 + len(stream)], memory)
    np.testing.assert_array_equal(memory.view("i8"), values)
