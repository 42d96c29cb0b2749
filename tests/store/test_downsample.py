"""Reading at lower resolution: values, bytes fetched, damage."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers import plotfiles
from tests.helpers.range_server import RangeServer
from tests.helpers.sample_outputs import amrex_sample

SHAPE = (128, 100, 64)


def field(shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Return a smooth field with some noise."""
    axes = np.meshgrid(*(np.linspace(0, 5, n) for n in shape), indexing="ij")
    noise = np.random.default_rng(5).normal(scale=0.01, size=shape)
    return (sum(np.sin((2 + i) * x) for i, x in enumerate(axes)) + noise).astype("f4")


def written(path: Path) -> Path:
    with ambar.create(path, fsync=False) as writer:
        values = field()
        writer.create_array("bounded", values, chunks=(64, 64, 64), error_bound=1e-3)
        writer.create_array(
            "sharded", values, chunks=(64, 64, 64), shards=(128, 128, 64), error_bound=1e-3
        )
        writer.create_array("doubles", values.astype("f8"), chunks=(64, 64, 64), error_bound=1e-4)
        writer.create_array("lossless", values, chunks=(64, 64, 64))
        writer.create_array("raw", values, chunks=(64, 64, 64), profile="raw")
        writer.create_array("row", values.reshape(-1), error_bound=1e-3)
        writer.create_array("odd", values, chunks=(61, 50, 64), error_bound=1e-3)
        writer.create_array("four", values.reshape(2, 64, 100, 64), error_bound=1e-3)
    return path


def test_values_are_those_of_striding(tmp_path: Path) -> None:
    store = ambar.open_store(written(tmp_path / "a.ambar"))
    for name in ("bounded", "sharded", "doubles", "lossless", "raw", "row", "odd", "four"):
        array = store[name]
        whole = array.read()
        for step in (1, 2, 3, 4, 8, 12, 16, 1000):
            key = (slice(None, None, step),) * whole.ndim
            np.testing.assert_array_equal(array.read(downsample=step), whole[key])
            np.testing.assert_array_equal(array[key], whole[key])
    array, whole = store["bounded"], store["bounded"].read()
    for key, strides in (
        (np.s_[4:100, ::-1], np.s_[::4, ::4, ::4]),
        (np.s_[3, 8:90:2, 1:], np.s_[::4, ::4]),
        (np.s_[[5, 2, 60], :, 64:64], np.s_[:, ::4, ::4]),
        (np.s_[[5, 2, 60], :, 8:], np.s_[:, ::4, ::4]),
        (np.s_[..., 7], np.s_[::4, ::4]),
        (np.s_[64:, 64:, ::2], np.s_[::4, ::4, ::4]),
    ):
        np.testing.assert_array_equal(array.read(key, downsample=4), whole[key][strides])


@pytest.mark.parametrize("step", [0, -2, 1.5, "2"])
def test_steps_that_are_not_positive_integers(tmp_path: Path, step: Any) -> None:
    store = ambar.open_store(written(tmp_path / "a.ambar"))
    with pytest.raises(ValueError, match="not a positive integer"):
        store["bounded"].read(downsample=step)


def test_out(tmp_path: Path) -> None:
    array = ambar.open_store(written(tmp_path / "a.ambar"))["bounded"]
    out = np.zeros((32, 25, 16), "f4")
    assert array.read(downsample=4, out=out) is out
    np.testing.assert_array_equal(out, array.read()[::4, ::4, ::4])


def fetched(server: RangeServer) -> int:
    """Return the number of bytes asked for since the last call."""
    ranges = [what.removeprefix("bytes=").split("-") for what in server.take() if "-" in what]
    return sum(int(last) - int(first) + 1 for first, last in ranges)


@pytest.mark.parametrize("name", ["bounded", "sharded"])
def test_fewer_bytes_are_fetched(tmp_path: Path, name: str) -> None:
    # Behind what is read when a store is opened.
    with ambar.create(tmp_path / "a.ambar", fsync=False) as writer:
        shards = (128, 128, 128) if name == "sharded" else None
        writer.create_array(
            "x", field((128,) * 3), chunks=(64,) * 3, shards=shards, error_bound=1e-3
        )
        writer.create_array("behind", np.random.default_rng(2).random(100_000))
    whole = ambar.open_store(tmp_path / "a.ambar")["x"].read()
    taken = {}
    with RangeServer(tmp_path) as server:
        for step in (1, 2, 4, 8):
            array = ambar.open_store(f"{server.url}/a.ambar")["x"]
            server.take()
            values = array.read(downsample=step)
            np.testing.assert_array_equal(values, whole[::step, ::step, ::step])
            taken[step] = fetched(server)
    assert taken[2] < 0.6 * taken[1], taken
    assert taken[4] < 0.4 * taken[1], taken
    assert taken[8] < 0.3 * taken[1], taken


def test_damage_is_found_in_what_is_decoded(tmp_path: Path) -> None:
    """Coarse levels are read where finer ones are damaged, and damage of theirs is reported."""
    path = written(tmp_path / "a.ambar")
    sound = path.read_bytes()
    array = ambar.open_store(path)["bounded"]
    expected = array.read(downsample=4)
    found = ambar._core.Store(str(path)).array("/bounded").chunk_ranges()[0]
    offset, length = found.offset, found.length
    for at, is_coarse in [(offset + 120, True), (offset + length * 9 // 10, False)]:
        damaged = bytearray(sound)
        damaged[at] ^= 4
        path.write_bytes(damaged)
        array = ambar.open_store(path)["bounded"]
        with pytest.raises(ambar.CorruptError):
            array.read()
        if is_coarse:
            with pytest.raises(ambar.CorruptError):
                array.read(downsample=4)
        else:
            np.testing.assert_array_equal(array.read(downsample=4), expected)


def test_swapped_chunks_are_refused(tmp_path: Path) -> None:
    """The tag of a chunk is checked when only its first bytes are decoded."""
    values = field((64, 64, 64))
    stores = []
    for number in range(2):
        path = tmp_path / f"{number}.ambar"
        with ambar.create(path, fsync=False) as writer:
            shifted = np.roll(values, number * 7, axis=2)
            writer.create_array("x", shifted, chunks=(64, 64, 64), error_bound=1e-3)
        found = ambar._core.Store(str(path)).array("/x").chunk_ranges()[0]
        offset, length = found.offset, found.length
        stores.append((path, offset, length))
    (path, offset, length), (other, start, size) = stores
    if size > length:
        (path, offset, length), (other, start, size) = stores[::-1]
    data = bytearray(path.read_bytes())
    content = other.read_bytes()[start : start + size]
    data[offset : offset + size] = content
    data[offset + length - 8 : offset + length] = content[-8:]
    path.write_bytes(data)
    with pytest.raises(ambar.CorruptError):
        ambar.open_store(path)["x"].read(downsample=4)
    assert math.prod(ambar.open_store(other)["x"].read(downsample=4).shape) == 16**3


def test_previews_are_samples(tmp_path: Path) -> None:
    plotfiles.write(tmp_path / "plt")
    ambar.convert(tmp_path / "plt", tmp_path / "p.ambar", error_bound="1e-6 of range")
    amr = ambar.open_snapshot(tmp_path / "p.ambar").amr
    fine = amr.grid("Temp", level=1).to_numpy()
    exact = amr.grid("Temp", level=0).to_numpy()
    preview = amr.grid("Temp", level=0, preview=True)
    covered = plotfiles.covered()
    expected = np.where(covered, fine[::2, ::2, ::2], exact)
    np.testing.assert_array_equal(preview.to_numpy(), expected)
    np.testing.assert_array_equal(amr.grid("Temp", level=1, preview=True).to_numpy(), fine)


def test_previews_of_many_blocks(tmp_path: Path) -> None:
    """A preview's values are means of some of the leaf cells in a grid cell."""
    sample = amrex_sample("advection_plt00006")
    ambar.convert(sample, tmp_path / "p.ambar", error_bound="1e-5 of range")
    amr = ambar.open_snapshot(tmp_path / "p.ambar").amr
    name, finest = amr.fields[0], amr.levels[1]
    fine = amr.grid(name, level=finest).to_numpy()
    for level in range(finest):
        preview = amr.grid(name, level=level, preview=True).to_numpy()
        ratios = [a // b for a, b in zip(fine.shape, preview.shape, strict=True)]
        cut = [n for pair in zip(preview.shape, ratios, strict=True) for n in pair]
        axes = tuple(range(1, 2 * fine.ndim, 2))
        inside = fine.reshape(cut)
        assert (preview >= inside.min(axis=axes) - 1e-12).all()
        assert (preview <= inside.max(axis=axes) + 1e-12).all()
