"""Fields of trees within error bounds: from the cells around, and read like any others."""

import zipfile
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.store.writer import Profile
from tests.helpers.sample_outputs import by_place, output, truth

CASES = ["sedov", "gravpart"]
BOUND = 1e-3
FIELDS = ["density", "velocity_x", "velocity_y", "velocity_z", "pressure"]
PROFILES: list[Profile] = ["fast", "balanced", "small"]
PLACES = ["level", "ix", "iy", "iz"]


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Stores within a bound by case and profile."""
    folder = tmp_path_factory.mktemp("bounded")
    made = {}
    for case in CASES:
        for profile in PROFILES:
            target = folder / f"{case}-{profile}.ambar"
            ambar.convert(
                output(case),
                target,
                components=["hydro"],
                error_bound=f"{BOUND} of range",
                profile=profile,
                fsync=False,
            )
            made[case, profile] = target
    return made


def size(target: Any, field: str) -> Any:
    """Return the bytes that the values of a field take."""
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(zarr.storage.ZipStore(target, mode="r"), mode="r")
    return group[f"amr/{field}"].nbytes_stored()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("profile", ["fast", "balanced", "small"])
def test_every_cell_is_within_the_bound_of_its_true_value(
    bounded: Any, case: str, profile: Profile
) -> None:
    true = truth(case)
    got = ambar.open_snapshot(bounded[case, profile]).amr.read([*FIELDS, *PLACES])
    want, cells = by_place(true), by_place(got)
    for name in PLACES:
        assert np.array_equal(true[name][want], got[name][cells]), name
    for name in FIELDS:
        span = float(true[name].max() - true[name].min())
        error = np.abs(true[name][want] - got[name][cells]).max()
        assert 0 < error <= BOUND * span, name


@pytest.mark.parametrize("case", CASES)
def test_cells_around_make_fields_smaller(bounded: Any, case: str) -> None:
    sizes = {
        profile: sum(size(bounded[case, profile], name) for name in FIELDS)
        for profile in ["fast", "balanced", "small"]
    }
    assert sizes["balanced"] < sizes["fast"]
    assert sizes["small"] < 0.8 * sizes["balanced"]


@pytest.mark.parametrize("case", CASES)
def test_zarr_and_selections_see_the_same_values(bounded: Any, case: str) -> None:
    zarr = pytest.importorskip("zarr")
    target = bounded[case, "small"]
    amr = ambar.open_snapshot(target).amr
    whole = amr.read([*FIELDS, "level", "x", "y", "z"])
    group = zarr.open_group(zarr.storage.ZipStore(target, mode="r"), mode="r")
    for name in FIELDS:
        assert np.array_equal(group[f"amr/{name}"][...], whole[name]), name
    finest = int(whole["level"].max())
    part = amr.read(FIELDS, levels=(finest, finest), where="density > 0")
    chosen = (whole["level"] == finest) & (whole["density"] > 0)
    assert 0 < np.count_nonzero(chosen) < len(chosen)
    for name in FIELDS:
        assert np.array_equal(part[name], whole[name][chosen]), name


def test_numcodecs_decodes_the_stream_of_a_chunk(bounded: Any) -> None:
    numcodecs = pytest.importorskip("numcodecs")
    target = bounded["sedov", "small"]
    whole = ambar.open_snapshot(target).amr.read(["density"])["density"]
    with zipfile.ZipFile(target) as store:
        chunk = store.read("amr/density/c/0")
    stream = chunk[:-4]  # without the checksum of the codec crc32c
    assert (stream[0], stream[2] & 3) == (1, 2), "version, and the layout of cells"
    values = numcodecs.get_codec({"id": "ambar", "error_bound": 1.0}).decode(stream)
    assert np.array_equal(values[: len(whole)], whole)


@pytest.mark.parametrize("case", CASES)
def test_comparisons_say_that_the_bound_is_kept(bounded: Any, case: str) -> None:
    found = ambar.compare(output(case), bounded[case, "small"])
    assert [one.field for one in found.fields] == FIELDS
    for one in found.fields:
        assert one.held, one.field
        assert one.all.max_error > 0, one.field
