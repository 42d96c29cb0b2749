"""Writing from xarray: what is on disk, loss, dask's schedulers, appending, commits."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
import ambar.xarray

xr = pytest.importorskip("xarray")
da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.ambar"


def sample() -> Any:
    """Return a dataset with what the CF conventions encode."""
    random = np.random.default_rng(1)
    temperature = random.normal(280, 10, (20, 8, 9)).astype("f4")
    temperature[3, 2, 1] = np.nan
    dataset = xr.Dataset(
        {
            "temperature": (("time", "y", "x"), temperature, {"units": "K"}),
            "packed": (("time", "y"), random.integers(0, 99, (20, 8)) / 4),
            "flag": ("time", np.arange(20) % 3 == 0),
            "name": ("x", np.array([f"station {i}" for i in range(9)], dtype=object)),
            "code": ("x", np.array(["ab", "c", ""] * 3)),
            "scalar": ((), 3.5),
            "spin": ("x", np.arange(9) * (1 + 2j)),
        },
        coords={
            "time": xr.date_range("2024-01-01", periods=20, freq="6h"),
            "x": np.arange(9.0),
            "lead": ("time", np.arange(20).astype("m8[h]").astype("m8[ns]")),
            "lon": (("y", "x"), random.random((8, 9))),
        },
        attrs={"title": "a sample", "numbers": [1, 2, 3]},
    )
    dataset["packed"].encoding = {
        "dtype": "i2",
        "scale_factor": 0.25,
        "add_offset": 0.5,
        "_FillValue": -99,
    }
    dataset["time"].encoding = {"units": "hours since 2000-01-01", "calendar": "standard"}
    return dataset


def reopened(path: Path, **options: Any) -> Any:
    return xr.open_dataset(path, engine="ambar", **options)


@pytest.mark.parametrize("chunked", [False, True], ids=["memory", "dask"])
def test_zarr_python_reads_what_xarray_wrote(path: Path, chunked: bool) -> None:
    zarr = pytest.importorskip("zarr")
    dataset = sample()
    written = dataset.chunk({"time": 7}) if chunked else dataset
    written.ambar.write(path)
    ours = reopened(path)
    xr.testing.assert_identical(ours.load(), dataset)
    with zarr.storage.ZipStore(path, mode="r") as store:
        theirs = xr.open_zarr(store, chunks=None).load()
    assert theirs.attrs.pop("ambar")["version"] == 1
    xr.testing.assert_identical(theirs, dataset)
    assert theirs["packed"].encoding["dtype"] == np.int16
    assert theirs["packed"].encoding["_FillValue"] == -99
    assert theirs["time"].encoding["units"] == "hours since 2000-01-01"


def test_xarray_writes_by_zarr_what_ambar_reads(tmp_path: Path) -> None:
    pytest.importorskip("zarr")
    dataset = sample()
    dataset.to_zarr(tmp_path / "x.zarr", zarr_format=3)
    xr.testing.assert_identical(reopened(tmp_path / "x.zarr").load(), dataset)


def test_attributes_that_are_not_finite_are_read_from_zarr(tmp_path: Path) -> None:
    """zarr-python writes them as NaN and Infinity, which JSON does not have."""
    pytest.importorskip("zarr")
    attrs = {"missing_value": np.nan, "valid_range": [-np.inf, np.inf], "text": 'NaN, "NaN", [NaN'}
    dataset = xr.Dataset({"v": ("x", [1.0, 2.0], attrs)}, attrs=attrs)
    dataset.to_zarr(tmp_path / "x.zarr", zarr_format=3)
    found = ambar.open_store(tmp_path / "x.zarr")
    assert repr(dict(found["v"].attrs)) == repr({**attrs, "_FillValue": "AAAAAAAA+H8="})
    assert repr(reopened(tmp_path / "x.zarr", mask_and_scale=False).attrs) == repr(attrs)


def test_times_of_numpy_are_no_attributes(path: Path) -> None:
    for value in (np.datetime64("2024-01-01", "ns"), np.array([1], "m8[ns]")):
        with pytest.raises(TypeError, match="'t' is of type (datetime64|ndarray)"):
            xr.Dataset(attrs={"t": value}).ambar.write(path, mode="w")


def test_variables_that_stay_unchanged_are_not_encoded(path: Path) -> None:
    def day(number: int, hour: int) -> Any:
        when = np.datetime64("2000-01-01", "ns") + np.timedelta64(hour, "h")
        return xr.Dataset({"v": ("t", [float(number)]), "when": ((), when)})

    day(1, 0).ambar.write(path)
    day(2, 3).ambar.write(path, append_dim="t", mode="a-")
    assert reopened(path).v.values.tolist() == [1.0, 2.0]
    assert reopened(path).when.values == np.datetime64("2000-01-01")


def test_lossless_bounds_allow_every_encoding(path: Path) -> None:
    dataset = xr.Dataset({"a": ("x", [1.0, -1.0])})
    for bound in (0, "lossless"):
        encoding = {"error_bound": bound, "dtype": "f4", "_FillValue": -1.0}
        dataset.ambar.write(path, mode="w", encoding={"a": encoding})
        np.testing.assert_array_equal(reopened(path).a, [1.0, np.nan])


def test_the_layout_follows_dask(path: Path) -> None:
    data = da.zeros((64, 256, 256), chunks=(16, 256, 256), dtype="f4")
    dataset = xr.Dataset({"a": (("t", "y", "x"), data)})
    dataset.ambar.write(path)
    array = ambar.open_store(path)["a"]
    assert array.shards == (16, 256, 256)
    assert array.chunks == (16, 32, 32)
    assert reopened(path, chunks={})["a"].chunks == dataset["a"].chunks


@pytest.mark.parametrize(
    "chunks", [(1, 30, 17), ((7, 9, 4, 5), 30, 17), (25, (11, 19), (1, 16)), (4, 4, 4), (1, 1, 17)]
)
def test_any_dask_chunks_are_written_right(path: Path, chunks: Any) -> None:
    values = np.random.default_rng(0).random((25, 30, 17))
    for encoding in ({}, {"chunks": (5, 7, 6)}, {"chunks": (2, 3, 4), "shards": (8, 9, 8)}):
        dataset = xr.Dataset({"a": (("t", "y", "x"), da.from_array(values, chunks))})
        dataset.ambar.write(path, mode="w", encoding={"a": encoding} if encoding else None)
        store = ambar.open_store(path)
        np.testing.assert_array_equal(store["a"].read(), values)
        # Every shard was written once: the file has no dead bytes.
        assert store.usage()["dead"] == 0
        assert "chunks" not in encoding or store["a"].chunks == encoding["chunks"]


def test_small_arrays_in_large_shards(path: Path) -> None:
    for length in (1, 2, 3, 5):
        dataset = xr.Dataset({"a": ("x", da.arange(length, chunks=1))})
        dataset.ambar.write(path, mode="w", encoding={"a": {"chunks": (2,), "shards": (4,)}})
        np.testing.assert_array_equal(ambar.open_store(path)["a"].read(), np.arange(length))
        dataset.ambar.write(path, append_dim="x")
        np.testing.assert_array_equal(ambar.open_store(path)["a"].read(), [*range(length)] * 2)


def test_an_error_bound_is_an_encoding(path: Path) -> None:
    random = np.random.default_rng(0)
    smooth = np.cumsum(random.normal(size=(40, 128, 128)), axis=0).astype("f4")
    smooth[0, 0, :3] = [np.nan, np.inf, -np.inf]
    finite = np.isfinite(smooth)
    extent = float(smooth[finite].max() - smooth[finite].min())
    for chunks in (None, {"t": 10}):
        dataset = xr.Dataset({"a": (("t", "y", "x"), smooth), "b": (("t", "y", "x"), smooth)})
        dataset = dataset if chunks is None else dataset.chunk(chunks)
        encoding = {"a": {"error_bound": "1e-3 of range"}, "b": {"profile": "fast"}}
        dataset.ambar.write(path, mode="w", encoding=encoding)
        store = ambar.open_store(path)
        assert store["b"].error_bound is None
        assert store["a"].error_bound == pytest.approx(1e-3 * extent, rel=1e-6)
        read = reopened(path).load()
        np.testing.assert_array_equal(read["b"], smooth)
        error = np.abs(read["a"].values[finite].astype("f8") - smooth[finite])
        assert 0 < error.max() <= 1e-3 * extent * (1 + 1e-6)
        np.testing.assert_array_equal(read["a"].values[~finite], smooth[~finite])
        assert store["a"].stored_bytes < store["b"].stored_bytes / 3
        # What is read back carries no bound: written again, it is not moved again.
        read.ambar.write(path, mode="w")
        assert ambar.open_store(path)["a"].error_bound is None


def test_a_bound_leaves_missing_values_what_they_are(path: Path) -> None:
    dataset = xr.Dataset({"a": ("x", np.array([1.0, np.nan, 2.0]))})
    for mask in ("_FillValue", "missing_value"):
        encoding = {"a": {"error_bound": 0.1, mask: -999.0}}
        with pytest.raises(ValueError, match="missing values"):
            dataset.ambar.write(path, encoding=encoding)
    with pytest.raises(ValueError, match="error bound"):
        dataset.chunk().ambar.write(path, encoding={"a": {"error_bound": "much"}})
    with pytest.raises(ValueError, match="float32 and float64"):
        dataset.chunk().fillna(0).astype(int).ambar.write(path, encoding={"a": {"error_bound": 1}})
    assert not path.exists()


@pytest.mark.parametrize(
    "conversion", [{"scale_factor": 10.0}, {"add_offset": 1e5}, {"dtype": "f4"}, {"dtype": "i2"}]
)
def test_a_bound_refuses_encodings_that_change_values(
    path: Path, conversion: dict[str, Any]
) -> None:
    dataset = xr.Dataset({"a": ("x", np.linspace(1e5, 2e5, 500))})
    encoding = {"a": {"error_bound": 0.01, **conversion}}
    key = next(iter(conversion))
    with pytest.raises(ambar.InvalidError, match=f"'a' has an error bound.*{key}="):
        dataset.ambar.write(path, encoding=encoding)
    assert not path.exists()
    dataset.ambar.write(path, encoding={"a": {"error_bound": 0.01, "dtype": "f8"}})
    assert float(abs(reopened(path) - dataset)["a"].max()) <= 0.01


@pytest.mark.parametrize("chunked", [False, True], ids=["memory", "dask"])
def test_values_of_another_dtype_do_not_break_a_bound(path: Path, chunked: bool) -> None:
    values = 1e6 + np.random.default_rng(0).random((20, 50))
    dataset = xr.Dataset({"a": (("t", "x"), values)})
    first = dataset.astype("f4").isel(t=slice(0, 10))
    first.ambar.write(path, encoding={"a": {"error_bound": 0.07}})
    later = dataset.isel(t=slice(10, 20))
    later = later.chunk() if chunked else later
    with pytest.raises(ambar.InvalidError, match=r"'a' is float32 .* found float64.*astype"):
        later.ambar.write(path, append_dim="t")
    later.astype(">f4").ambar.write(path, append_dim="t")
    assert float(abs(reopened(path) - dataset.astype("f4"))["a"].max()) <= 0.07


def test_a_bound_outlasts_values_that_are_missing(path: Path) -> None:
    values = np.random.default_rng(0).random((6, 50))
    values[0] = np.nan
    dataset = xr.Dataset({"a": (("t", "x"), values)})
    encoding = {"error_bound": "0.01", "chunks": (1, 50)}
    dataset.isel(t=slice(0, 1)).ambar.write(path, encoding={"a": encoding})
    dataset.isel(t=slice(1, 6)).ambar.write(path, append_dim="t")
    assert ambar.open_store(path)["a"].error_bound == 0.01
    assert 0 < float(abs(reopened(path) - dataset)["a"].max()) <= 0.01


@pytest.mark.parametrize("chunked", [False, True], ids=["memory", "dask"])
@pytest.mark.parametrize("value", [np.nan, 3.0])
def test_a_bound_of_an_unknown_range_is_announced(path: Path, value: float, chunked: bool) -> None:
    first = xr.Dataset({"a": (("t", "x"), np.full((2, 50), value))})
    first = first.chunk() if chunked else first
    encoding: dict[str, Any] = {"error_bound": "1e-3 of range"}
    with pytest.warns(UserWarning, match="the error bound '1e-3 of range' is 0"):
        first.ambar.write(path, encoding={"a": encoding})
    encoding["value_range"] = (0, 10)
    first.ambar.write(path, mode="w", encoding={"a": encoding})
    assert ambar.open_store(path)["a"].error_bound == 0.01
    encoding["value_range"] = (0, 2)
    if value == 3.0:
        with pytest.raises(ambar.InvalidError, match="found values from 3 to 3"):
            first.ambar.write(path, mode="w", encoding={"a": encoding})
    empty = first.isel(t=slice(0, 0))
    with pytest.raises(ambar.InvalidError, match="value_range"):
        empty.ambar.write(path, mode="w", encoding={"a": {"error_bound": "60 dB"}})


def test_chunks_that_lose_their_bound_are_announced(path: Path) -> None:
    values = np.random.default_rng(0).random((5, 50))
    dataset = xr.Dataset({"a": (("t", "x"), values)})
    encoding = {"error_bound": 0.01, "chunks": (2, 50)}
    dataset.isel(t=slice(0, 3)).ambar.write(path, encoding={"a": encoding})
    with pytest.warns(UserWarning, match=r"a: appended rows share a chunk of 2 rows"):
        dataset.isel(t=slice(3, 4)).ambar.write(path, append_dim="t")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset.isel(t=slice(4, 5)).ambar.write(path, append_dim="t")
    with pytest.warns(UserWarning, match=r"a: the array becomes longer .* \(at most 0\.01\)"):
        xr.zeros_like(dataset).ambar.write(path, append_dim="x")
    assert ambar.open_store(path)["a"].error_bound is None


def test_times_that_the_stored_units_cannot_hold_are_refused(path: Path) -> None:
    times = np.datetime64("2020-01-01", "ns") + np.arange(3) * np.timedelta64(6, "h")
    dataset = xr.Dataset({"a": ("t", np.arange(3.0))}, coords={"t": times})
    first, later = dataset.isel(t=slice(0, 1)), dataset.isel(t=slice(1, 3))
    first.ambar.write(path)
    with pytest.warns(UserWarning, match="int"), pytest.raises(ValueError, match=r"'t' .*'days"):
        later.ambar.write(path, append_dim="t")
    first.ambar.write(path, mode="w", encoding={"t": {"units": "hours since 2020-01-01"}})
    later.ambar.write(path, append_dim="t")
    xr.testing.assert_identical(reopened(path).load(), dataset)


def test_longer_strings_need_an_array_of_objects(path: Path) -> None:
    """The advice was to convert them, which would cut them."""
    first, later = (xr.Dataset({"s": ("t", np.array([text]))}) for text in ("a", "longer"))
    first.ambar.write(path)
    with pytest.raises(ValueError, match=r"has <U1, the dataset has <U6; create .*astype\(object"):
        later.ambar.write(path, append_dim="t")
    first.astype(object).ambar.write(path, mode="w")
    later.ambar.write(path, append_dim="t")
    assert xr.open_dataset(path, engine="ambar").s.values.tolist() == ["a", "longer"]


def test_appended_datasets_have_all_variables(path: Path) -> None:
    dataset = xr.Dataset({name: ("t", np.arange(4.0)) for name in ("a", "b")})
    dataset.ambar.write(path)
    with pytest.raises(ValueError, match=r"lacks \['b'\]"):
        dataset.drop_vars("b").ambar.write(path, append_dim="t")
    with pytest.raises(ValueError, match="the store lacks variable 'c'.* 4 instead of 8"):
        dataset.assign(c=dataset["a"]).ambar.write(path, append_dim="t")
    xr.testing.assert_identical(reopened(path).load(), dataset)


def test_integers_that_overflow_are_refused(path: Path) -> None:
    dataset = xr.Dataset({"a": ("t", np.arange(4, dtype="i2"))})
    dataset.ambar.write(path)
    dataset.astype("i8").ambar.write(path, append_dim="t")
    with pytest.raises(ValueError, match="int16, found values from 100000 to 100003"):
        (dataset.astype("i8") + 100_000).ambar.write(path, append_dim="t")


def test_a_second_bound_is_announced(path: Path, tmp_path: Path) -> None:
    values = np.random.default_rng(0).random(5000)
    xr.Dataset({"a": ("t", values)}).ambar.write(path, encoding={"a": {"error_bound": 0.1}})
    again = reopened(path).load()
    with pytest.warns(UserWarning, match="'a' was read from an array with the error bound 1e-1"):
        again.ambar.write(tmp_path / "again.ambar", encoding={"a": {"error_bound": 0.2}})


def test_values_within_a_bound_are_moved_once(path: Path) -> None:
    values = np.random.default_rng(0).random((40, 50))
    dataset = xr.Dataset({"a": (("t", "x"), values)})
    first = dataset.isel(t=slice(0, 20))
    first.ambar.write(path, encoding={"a": {"error_bound": 0.01, "chunks": (8, 50)}})
    once = reopened(path)["a"].values
    dataset.isel(t=slice(20, 40)).ambar.write(path, append_dim="t")
    again = dataset.isel(t=slice(10, 15), x=slice(5, 9)) + 1
    again.ambar.write(path, region={"t": slice(10, 15), "x": slice(5, 9)})
    read = reopened(path)["a"].values
    expected = values.copy()
    expected[10:15, 5:9] += 1
    assert np.abs(read - expected).max() <= 0.01
    untouched = np.ones((20, 50), dtype=bool)
    untouched[10:15, 5:9] = False
    np.testing.assert_array_equal(read[:20][untouched], once[untouched])


@pytest.mark.parametrize("dim", ["t", "x"])
@pytest.mark.parametrize("chunked", [False, True], ids=["memory", "dask"])
def test_appending_along_any_dimension(path: Path, dim: str, chunked: bool) -> None:
    parts = [sample().isel(x=slice(0, 4 + i)).rename(time="t") for i in range(3)]
    if dim == "t":
        parts = [sample().rename(time="t").isel(t=slice(i, i + 3)) for i in (0, 3, 6)]
    fixed = [name for name in parts[0].variables if dim not in parts[0][name].dims]
    for number, whole in enumerate(parts):
        part = whole.drop_vars(fixed) if number else whole
        if chunked:
            part = part.chunk({"t": 2})
        part.ambar.write(path, append_dim=dim if number else None)
    expected = xr.concat([part.drop_vars(fixed) for part in parts], dim)
    expected = expected.assign({name: parts[0][name] for name in fixed}).set_coords("lon")
    xr.testing.assert_equal(reopened(path).load(), expected)


def test_a_failed_write_leaves_the_last_commit(path: Path) -> None:
    dataset = xr.Dataset({"a": ("x", np.arange(5.0))})
    dataset.ambar.write(path)

    def fails(_: np.ndarray) -> np.ndarray:
        raise RuntimeError("no value")

    bad = da.ones(5, chunks=1).map_blocks(fails, dtype="f8", meta=np.empty(0))
    for options in ({"mode": "w"}, {"mode": "a"}, {"append_dim": "x"}):
        with pytest.raises(RuntimeError, match="no value"):
            xr.Dataset({"a": ("x", bad)}).ambar.write(path, **options)
        xr.testing.assert_identical(reopened(path).load(), dataset)


def test_a_dataset_may_be_written_over_itself(path: Path) -> None:
    dataset = xr.Dataset({"a": ("x", np.arange(1000.0)), "b": ("x", np.arange(1000))})
    dataset.ambar.write(path)
    options: list[dict[str, int] | None] = [None, {}]
    for chunks in options:
        (reopened(path, chunks=chunks) * 2).ambar.write(path, mode="w")
    (reopened(path).chunk(x=300) * 2).ambar.write(path, mode="a")
    xr.testing.assert_equal(reopened(path).load(), dataset * 8)


def test_dask_holds_a_few_chunks_only(path: Path) -> None:
    lock = threading.Lock()
    made: list[int] = []
    most = 0
    write = ambar.Writer.write_region
    blocks = 64

    def block(_: Any) -> np.ndarray:
        nonlocal most
        with lock:
            made.append(1)
            most = max(most, len(made))
        return np.zeros((4, 1000))

    def written(self: ambar.Writer, *args: Any) -> None:
        write(self, *args)
        with lock:
            made.pop()

    data = da.zeros((4 * blocks, 1000), chunks=(4, 1000)).map_blocks(
        block, dtype="f8", meta=np.empty((0, 0))
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ambar.Writer, "write_region", written)
        with dask.config.set(scheduler="threads", num_workers=4):
            xr.Dataset({"a": (("t", "x"), data)}).ambar.write(path)
    assert len(made) == 0
    assert most <= 8
    assert ambar.open_store(path).usage()["dead"] == 0


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_dasks_own_schedulers(path: Path, scheduler: str) -> None:
    values = np.arange(6000.0).reshape(60, 100)
    dataset = xr.Dataset({"a": (("t", "x"), da.from_array(values, (7, 50)) + 1)})
    # Without a pool, dask starts new processes for each computation.
    with (
        ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool,
        dask.config.set(scheduler=scheduler, pool=pool if scheduler == "processes" else None),
    ):
        dataset.ambar.write(path)
        (dataset * 2).ambar.write(path, append_dim="t")
        both = np.concatenate([values + 1, 2 * (values + 1)])
        np.testing.assert_array_equal(reopened(path, chunks={})["a"].compute(), both)


def test_a_cluster(path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    values = np.arange(6000.0).reshape(60, 100)
    dataset = xr.Dataset({"a": (("t", "x"), da.from_array(values, (7, 50)) + 1)})
    with (
        distributed.LocalCluster(
            2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        dataset.ambar.write(path)
        np.testing.assert_array_equal(reopened(path, chunks={})["a"].compute(), values + 1)
        dataset.ambar.write(path.with_suffix(""), directory=True)
        folder = xr.open_dataset(path.with_suffix(""), engine="ambar", chunks={})
        np.testing.assert_array_equal(folder["a"].compute(), values + 1)
        delayed = (dataset * 3).ambar.write(path, mode="w", compute=False)
        delayed.compute()
        np.testing.assert_array_equal(reopened(path, chunks={})["a"].compute(), 3 * (values + 1))


def test_delayed_writes(path: Path) -> None:
    values = np.arange(24.0).reshape(6, 4)
    data = {"a": (("t", "x"), da.from_array(values, 2)), "b": ("t", np.arange(6))}
    delayed = xr.Dataset(data).ambar.write(path, compute=False)
    early = reopened(path)
    assert np.isnan(early["a"]).all()
    np.testing.assert_array_equal(early["b"], np.arange(6))
    delayed.compute()
    np.testing.assert_array_equal(reopened(path)["a"], values)
    more = xr.Dataset(data).ambar.write(path, append_dim="t", compute=False)
    assert reopened(path).sizes["t"] == 6
    more.compute()
    np.testing.assert_array_equal(reopened(path)["a"], np.concatenate([values, values]))


def test_parts_are_filled_in_by_regions(path: Path) -> None:
    values = np.arange(400.0).reshape(20, 20)
    whole = xr.Dataset(
        {"a": (("y", "x"), da.zeros((20, 20), chunks=10))}, coords={"x": np.arange(20) * 2}
    )
    whole.ambar.write(path, compute=False)
    filled = xr.Dataset({"a": (("y", "x"), values)}, coords={"x": np.arange(20) * 2})
    for y in range(0, 20, 5):
        part = filled.isel(y=slice(y, y + 5), x=slice(0, 10))
        part.ambar.write(path, region={"y": slice(y, y + 5), "x": "auto"})
    read = reopened(path)["a"].values
    np.testing.assert_array_equal(read[:, :10], values[:, :10])
    assert np.isnan(read[:, 10:]).all()


def test_trees(path: Path) -> None:
    tree = xr.DataTree.from_dict(
        {
            "/": sample(),
            "/fine": xr.Dataset({"a": ("z", np.arange(5.0))}, {"z": np.arange(5)}),
            "/fine/er": xr.Dataset({"a": ("w", da.arange(6.0, chunks=2))}),
        }
    )
    tree.ambar.write(path, encoding={"/fine": {"a": {"error_bound": 0.1}}})
    read = xr.open_datatree(path, engine="ambar")
    xr.testing.assert_identical(read["/fine/er"].load(), tree["/fine/er"].load())
    xr.testing.assert_identical(read["/"].to_dataset().load(), sample())
    assert ambar.open_store(path)["fine/a"].error_bound == 0.1
    with pytest.raises(FileExistsError, match="replace it with mode='w'"):
        tree.ambar.write(path)
    tree["/fine"].ambar.write(path, group="copy/of", mode="a")
    copied = xr.open_datatree(path, engine="ambar", group="copy/of")
    assert set(copied.groups) == {"/", "/er"}
    np.testing.assert_array_equal(copied["a"], np.arange(5.0))
    delayed = tree.chunk().ambar.write(path, mode="w", compute=False)
    assert not xr.open_datatree(path, engine="ambar").load().equals(tree)
    delayed.compute()
    xr.testing.assert_equal(xr.open_datatree(path, engine="ambar").load(), tree)


def test_replacing_a_group_leaves_the_others(path: Path) -> None:
    dataset = xr.Dataset({"a": ("x", np.arange(5.0))})
    dataset.ambar.write(path, group="one")
    dataset.ambar.write(path, group="two")
    dataset.rename(a="b").ambar.write(path, group="one", mode="w")
    assert set(reopened(path, group="one").data_vars) == {"b"}
    assert set(reopened(path, group="two").data_vars) == {"a"}
    with pytest.raises(FileNotFoundError, match="create it with mode='a'"):
        dataset.ambar.write(path, group="three", mode="r+")


def test_a_group_stays_of_its_kind(path: Path) -> None:
    with ambar.create(path) as writer:
        writer.create_group("", {"ambar": {"kind": "something", "version": 1}, "old": 1})
    xr.Dataset({"a": ("x", [1])}, attrs={"new": 2}).ambar.write(path, mode="a")
    assert ambar.open_store(path)._ambar_attributes()["kind"] == "something"
    assert reopened(path).attrs == {"new": 2}
    with pytest.raises(ValueError, match='"ambar" is reserved'):
        xr.Dataset(attrs={"ambar": {"kind": "mesh"}}).ambar.write(path, mode="a")


def test_a_folder_and_a_damaged_file(tmp_path: Path) -> None:
    dataset = sample()
    folder = tmp_path / "folder"
    dataset.chunk({"time": 5}).ambar.write(folder, directory=True, profile="fast")
    xr.testing.assert_identical(reopened(folder).load(), dataset)
    dataset.ambar.write(folder, mode="w")
    assert folder.is_dir()
    damaged = tmp_path / "x.ambar"
    damaged.write_bytes(b"PK nothing")
    dataset.ambar.write(damaged, mode="w", fsync=False)
    xr.testing.assert_identical(reopened(damaged).load(), dataset)


def test_arrays_alone(path: Path) -> None:
    array = xr.DataArray(np.arange(4.0), dims="x", coords={"x": [1, 2, 3, 4]})
    for name in (None, "a", "x"):
        named = array.rename(name)
        named.ambar.write(path, mode="w")
        xr.testing.assert_identical(xr.open_dataarray(path, engine="ambar"), named)


def test_attributes_that_json_lacks(path: Path) -> None:
    dataset = xr.Dataset(
        {"a": ("x", [1.0], {"limit": np.float32(np.inf), "n": np.int64(3)})}, attrs={"v": np.nan}
    )
    dataset.ambar.write(path)
    found = reopened(path)
    assert found["a"].attrs == {"limit": np.inf, "n": 3}
    assert repr(found.attrs) == "{'v': nan}"
    zarr = pytest.importorskip("zarr")
    masked = xr.Dataset({"a": ("x", [1.0, np.nan])})
    masked.a.encoding = {"missing_value": np.nan, "_FillValue": np.nan}
    masked.ambar.write(path.with_name("masked.ambar"))
    assert repr(reopened(path.with_name("masked.ambar"))["a"].encoding["missing_value"]) == "nan"
    with zarr.storage.ZipStore(path.with_name("masked.ambar"), mode="r") as store:
        np.testing.assert_array_equal(xr.open_zarr(store, consolidated=False)["a"], [1.0, np.nan])
    reopened(path).ambar.write(path.with_name("again.ambar"))
    xr.testing.assert_identical(reopened(path.with_name("again.ambar")), found)
    with pytest.raises(TypeError, match="'what' is of type object"):
        xr.Dataset(attrs={"what": object()}).ambar.write(path, mode="w")
    with pytest.raises(ValueError, match="'/' separates groups"):
        xr.Dataset({"a/b": ("x", [1])}).ambar.write(path, mode="w")


def test_options_of_zarr_may_stay(path: Path) -> None:
    dataset = xr.Dataset({"a": ("x", [1])})
    dataset.ambar.write(path, consolidated=True, safe_chunks=False, zarr_format=3)
    with pytest.raises(ValueError, match="format 3"):
        dataset.ambar.write(path, mode="w", zarr_format=2)
    with pytest.raises(TypeError, match="'chunky'"):
        dataset.ambar.write(path, mode="w", chunky=True)


def test_lists_of_indices_are_read_as_such(path: Path) -> None:
    values = np.random.default_rng(0).random((50, 60, 7))
    xr.Dataset({"a": (("t", "y", "x"), values)}).ambar.write(path)
    array = reopened(path)["a"]
    where = {"t": [40, 3, 3, -1], "y": slice(50, 2, -7), "x": 2}
    np.testing.assert_array_equal(array.isel(where), values[[40, 3, 3, -1]][:, 50:2:-7, 2])
    np.testing.assert_array_equal(
        array.isel(t=np.array([5, 1]), y=np.array([0, 59, 0])), values[np.ix_([5, 1], [0, 59, 0])]
    )
    points = {"t": ("p", [1, 2, 49]), "y": ("p", [9, 9, 0])}
    picked = array.isel({dim: xr.DataArray(at[1], dims=at[0]) for dim, at in points.items()})
    np.testing.assert_array_equal(picked, values[[1, 2, 49], [9, 9, 0]])
    mask = values[:, 0, 0] > 0.5
    np.testing.assert_array_equal(array[mask], values[mask])


ORDERS = {
    "accessor first": "import ambar.xarray, xarray as xr",
    "xarray first": "import xarray as xr, ambar.xarray",
}


@pytest.mark.parametrize("order", ORDERS)
def test_importing_the_accessor_registers_it_in_any_order(order: str, path: Path) -> None:
    lines = [
        ORDERS[order],
        f"xr.Dataset({{'a': ('x', [1, 2])}}).ambar.write({str(path)!r})",
        "xr.DataArray([1]).ambar, xr.DataTree().ambar",
        f"print(xr.open_dataset({str(path)!r})['a'].sum().item(), xr.__spec__.loader.name)",
    ]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["3", "xarray"]


def test_importing_ambar_loads_no_xarray() -> None:
    code = (
        "import sys, json; finders = list(sys.meta_path); import ambar; "
        "assert sys.meta_path == finders; print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert not {"xarray", "pandas", "dask"} & set(json.loads(done.stdout))


@pytest.mark.parametrize("chunked", [False, True], ids=["numpy", "dask"])
def test_chunks_of_a_dataset_that_was_read_can_be_changed(tmp_path: Path, chunked: bool) -> None:
    """The shards that it was read with made the write fail."""
    path, copy = tmp_path / "x.ambar", tmp_path / "copy.ambar"
    values = np.arange(400.0).reshape(20, 20)
    dataset = xr.Dataset({"a": (("y", "x"), values)})
    dataset.ambar.write(path, encoding={"a": {"chunks": (2, 2), "shards": (10, 10)}})
    read = xr.open_dataset(path, engine="ambar", chunks={} if chunked else None)
    assert (read.a.encoding["chunks"], read.a.encoding["shards"]) == ((2, 2), (10, 10))
    read.a.encoding["chunks"] = (4, 5)
    read.ambar.write(copy)
    written = xr.open_dataset(copy, engine="ambar")
    assert written.a.encoding["chunks"] == (4, 5)
    np.testing.assert_array_equal(written.a, values)
    # Those that still fit are kept; without chunks both are chosen anew.
    read.a.encoding["chunks"] = (5, 5)
    read.ambar.write(copy, mode="w")
    assert xr.open_dataset(copy, engine="ambar").a.encoding["shards"] == (10, 10)
    del read.a.encoding["chunks"]
    read.ambar.write(copy, mode="w")
    np.testing.assert_array_equal(xr.open_dataset(copy, engine="ambar").a, values)
    # What a call asks for is not passed over.
    with pytest.raises(ValueError, match="expected a multiple"):
        read.ambar.write(copy, mode="w", encoding={"a": {"chunks": (4, 4), "shards": (10, 10)}})


@pytest.mark.parametrize("lengths", [(3, 5), (1, 1), (None, 4)])
def test_objects_that_are_arrays_are_refused(
    lengths: tuple[int | None, ...], tmp_path: Path
) -> None:
    values = np.empty(2, object)
    for number, length in enumerate(lengths):
        values[number] = None if length is None else np.zeros(length, "f4")
    dataset = xr.Dataset({"good": ("x", [1.0, 2.0]), "tracks": ("x", values)})
    expected = r"variable 'tracks' has objects that are arrays \(ndarray of float32\).*pad the arr"
    with pytest.raises(ambar.UnsupportedError, match=expected):
        dataset.ambar.write(tmp_path / "x.ambar")
    with pytest.raises(ValueError, match="'tracks'.*mixed native types"):
        dataset.assign(tracks=("x", np.array(["a", 1.5], object))).ambar.write(tmp_path / "x.ambar")


def test_writing_to_http_is_refused(tmp_path: Path) -> None:
    url = "https://host/x.ambar"
    dataset = xr.Dataset({"a": ("x", [1.0])})
    calls = (
        lambda: dataset.ambar.write(url, mode="w"),
        lambda: dataset.a.ambar.write(url, mode="w"),
        lambda: ambar.create(url),
        lambda: ambar.open_collection(url, "w-"),
        lambda: ambar.ingest(tmp_path / "x.nc", url),
        lambda: ambar.write_mesh(None, url),
    )
    dataset.to_netcdf(tmp_path / "x.nc")
    for call in calls:
        with pytest.raises(ambar.UnsupportedError, match="expected s3://BUCKET/KEY"):
            call()
    for change in (lambda: ambar.create(url, "a"), lambda: ambar.open_collection(url, "a")):
        with pytest.raises(ambar.UnsupportedError, match="written as a whole"):
            change()
    for keep in (
        lambda: ambar.compact(url),
        lambda: ambar.repair(url),
        lambda: ambar.export(tmp_path / "x.ambar", url),
    ):
        with pytest.raises(ambar.UnsupportedError, match="found a URL|use a local file"):
            keep()
