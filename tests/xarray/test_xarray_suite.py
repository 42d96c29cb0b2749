"""xarray's own tests of its backends, run on the engine "ambar".

Those of its Zarr backend are run with ``Dataset.to_zarr`` and ``open_zarr`` replaced by ours: so
modes, regions, appending, encodings and delayed writes mean what they mean there. EXCLUDED
lists the tests that are left out, with the reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

xr = pytest.importorskip("xarray")
pytest.importorskip("dask")
zarr = pytest.importorskip("zarr")
suite = pytest.importorskip("xarray.tests.test_backends")
trees = pytest.importorskip("xarray.tests.test_backends_datatree")

from xarray.tests.conftest import (  # noqa: E402, F401 - fixtures of the tests
    create_test_datatree,
    simple_datatree,
    time_unit,
)
from xarray.tests.test_backends_datatree import (  # noqa: E402, F401
    unaligned_datatree_zarr_factory,
)

import ambar.xarray  # noqa: E402, F401 - registers the accessor
from ambar.interop.xarray.dataset_writer import Options, Session  # noqa: E402
from ambar.interop.xarray.group_reader import GroupStore  # noqa: E402
from ambar.interop.xarray.group_writer import WritableGroup  # noqa: E402
from ambar.store.cache import OpenedStore, open_last  # noqa: E402

NOT_APPLICABLE = "does not apply"
_CODECS = "ambar chooses the codecs by a profile; compressors are not encodings of it"
_MERGED = "ambar's one writer merges chunks that overlap: none need be refused, none corrupts"
_CONSOLIDATED = "metadata are always consolidated"
_OF_ZARR = "looks into ZarrStore, which is not used"

EXCLUDED = {
    # What a netCDF file does and a Zarr store does not; ZarrBase leaves them out likewise.
    "TestCommonFormat.test_encoding_unlimited_dims": "every dimension can grow",
    "TestCommonFormat.test_encoding_kwarg_fixed_width_string": "strings are stored as strings",
    "TestCommonFormat.test_append_with_invalid_dim_raises": "the message of netCDF; see TestAsZarr",
    "TestCommonFormat.test_roundtrip_mask_and_scale[dtype1": "JSON's numbers are float64",
    "TestAsZarr.test_compressor_encoding": _CODECS,
    "TestAsZarr.test_check_encoding_is_consistent_after_append": _CODECS,
    "TestAsZarr.test_read_non_consolidated_warning": _CONSOLIDATED,
    "TestAsZarr.test_shard_encoding_with_dask": _MERGED,
    "TestAsZarr.test_chunk_encoding_with_dask": _MERGED,
    "TestRegionAuto.test_zarr_region_chunk_partial": _MERGED,
    "TestRegionAuto.test_zarr_append_chunk_partial": _MERGED,
    "TestRegionAuto.test_zarr_safe_chunk": _MERGED,
    "TestRegionAuto.test_zarr_region_index_write": _OF_ZARR,
    "TestTrees.test_to_zarr_default_write_mode": "writes into a folder that is not a store",
    "TestTrees.test_to_zarr_compute_false": "looks for the files of a folder; see test_xarray.py",
    "TestTrees.test_to_zarr_zip_store": _OF_ZARR,
    "TestTrees.test_zarr_encoding": _CODECS,
    "TestTrees.test_to_zarr_not_consolidated": _CONSOLIDATED,
    "TestTrees.test_zarr_engine_recognised": "about names that end in .zarr",
}

# Options of open_zarr without meaning for a store of ambar.
_WITHOUT_MEANING = (
    "backend_kwargs",
    "consolidated",
    "mode",
    "use_zarr_fill_value_as_mask",
    "zarr_format",
)


OPEN_GROUP = zarr.open_group


@pytest.fixture(autouse=True)
def _excluded(request: pytest.FixtureRequest) -> None:
    name = f"{request.cls.__name__}.{request.node.name}"
    if "zarr_format=2" in name:
        pytest.skip(f"{NOT_APPLICABLE}: a store is of Zarr format 3")
    for start, reason in EXCLUDED.items():
        if name.startswith(start):
            pytest.skip(f"{NOT_APPLICABLE}: {reason}")


@pytest.fixture
def default_zarr_format(request: pytest.FixtureRequest) -> Iterator[None]:
    """A store of ambar is of format 3."""
    for mark in request.node.iter_markers("skip_if_param"):
        if mark.kwargs.get("default_zarr_format") == 3 and mark.kwargs.get("condition", True):
            pytest.skip(f"{NOT_APPLICABLE}: {mark.kwargs['reason']}")
    with zarr.config.set(default_zarr_format=3):
        yield


@pytest.fixture
def zarr_format() -> int:
    return 3


@pytest.fixture(params=[False, True], ids=["memory", "dask"])
def use_dask(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def tmp_store(tmp_path: Path) -> str:
    return str(tmp_path / "x.ambar")


def options(named: dict[str, Any]) -> dict[str, Any]:
    return {key: named[key] for key in named if key not in _WITHOUT_MEANING}


def to_ambar(data: Any, store: Any = None, mode: Any = None, *args: Any, **named: Any) -> Any:
    for name, value in zip(("group", "encoding"), args, strict=False):
        named[name] = value
    return data.ambar.write(store, mode=mode, fsync=False, **named)


def open_ambar(path: Any, **named: Any) -> Any:
    return xr.open_dataset(path, engine="ambar", **{"chunks": {}, **options(named)})


class Written(WritableGroup):
    """A group that shows what was written to it."""

    def __init__(self, session: Session, path: Path) -> None:
        super().__init__(session, "", None)
        self._finish = session.finish
        self._file = path

    @property
    def ds(self) -> Any:
        """What zarr-python finds in it."""
        self._finish()
        return OPEN_GROUP(zarr.storage.ZipStore(self._file, mode="r"), mode="r")

    def load(self) -> Any:
        self._finish()
        path = str(self._file)
        return GroupStore(OpenedStore.of(path, open_last(path)), "").load()


class Ambar:
    """How the tests write and read."""

    engine = "ambar"

    @contextlib.contextmanager
    def create_store(self) -> Iterator[Written]:
        with (
            suite.create_tmp_file(suffix=".ambar") as path,
            Session(str(path), "", "w", Options(fsync=False)) as session,
        ):
            yield Written(session, Path(path))

    @contextlib.contextmanager
    def open(self, path: Any, **named: Any) -> Iterator[Any]:
        with xr.open_dataset(path, engine="ambar", **options(named)) as dataset:
            yield dataset


class TestCommonFormat(Ambar, suite.CFEncodedBase):  # type: ignore[name-defined]
    """What every backend must do."""

    def save(self, dataset: Any, path: Any, **named: Any) -> Any:
        return to_ambar(dataset, path, **{"mode": "w", **named})


@pytest.fixture
def ours_for_zarr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the tests of Zarr write and read stores of ambar, those of zarr-python read them."""
    open_dataset = xr.open_dataset

    def opened(path: Any, *args: Any, engine: Any = None, **named: Any) -> Any:
        if engine == "zarr":
            engine, named = "ambar", options(named)
        return open_dataset(path, *args, engine=engine, **named)

    def group(path: Any, *_: Any, **__: Any) -> Any:
        return OPEN_GROUP(zarr.storage.ZipStore(path, mode="r"), mode="r")

    monkeypatch.setattr(xr.Dataset, "to_zarr", to_ambar)
    monkeypatch.setattr(xr.DataArray, "to_zarr", to_ambar)
    monkeypatch.setattr(xr, "open_zarr", open_ambar)
    monkeypatch.setattr(xr, "open_dataset", opened)
    monkeypatch.setattr(zarr, "open_group", group)


@pytest.mark.usefixtures("ours_for_zarr")
class TestAsZarr(Ambar, suite.ZarrBase):  # type: ignore[name-defined]
    """What to_zarr and open_zarr do."""

    @contextlib.contextmanager
    def create_zarr_target(self) -> Iterator[str]:
        with suite.create_tmp_file(suffix=".ambar") as path:
            yield path

    def save(self, dataset: Any, store_target: Any, **named: Any) -> Any:
        return to_ambar(dataset, store_target, **named)

    def test_roundtrip_boolean_dtype_legacy_int8(self) -> None:
        pytest.skip(f"{NOT_APPLICABLE}: writes with zarr-python, and xarray reads it")

    def test_cache_members(self) -> None:
        pytest.skip(f"{NOT_APPLICABLE}: {_OF_ZARR}")


@pytest.mark.usefixtures("ours_for_zarr")
class TestRegionAuto(suite.TestZarrRegionAuto):  # type: ignore[name-defined]
    """Regions found by their coordinates."""

    @contextlib.contextmanager
    def create_zarr_target(self) -> Iterator[str]:
        with suite.create_tmp_file(suffix=".ambar") as path:
            yield path


@pytest.fixture
def our_trees_for_zarr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the tests of trees in Zarr write and read stores of ambar."""

    def ours(function: Any) -> Any:
        def opened(path: Any, **named: Any) -> Any:
            return function(path, **options({**named, "engine": "ambar"}))

        return opened

    for name in ("open_datatree", "open_groups"):
        monkeypatch.setattr(trees, name, ours(getattr(xr, name)))
    monkeypatch.setattr(xr, "open_dataset", ours(xr.open_dataset))
    monkeypatch.setattr(xr.DataTree, "to_zarr", to_ambar)
    monkeypatch.setattr(xr.Dataset, "to_zarr", to_ambar)


@pytest.mark.usefixtures("our_trees_for_zarr")
class TestTrees(trees.TestZarrDatatreeIO):  # type: ignore[name-defined]
    """What DataTree.to_zarr and open_datatree do."""

    engine = "ambar"
