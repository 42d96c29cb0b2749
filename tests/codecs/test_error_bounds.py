"""Error bounds of all kinds, through the interfaces that take them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ambar
import ambar.xarray
from ambar import _core
from ambar.cli import app
from ambar.codecs import checked_bound
from ambar.store.error_bounds import is_kept, resolved
from ambar.store.store import Store
from ambar.store.writer import Profile
from tests.helpers.amrex_plotfiles import write_plotfile
from tests.helpers.sample_outputs import output

BOUNDS = [
    "1e-3 relative",
    "1e-3 relative above 1e-26",
    "10 bits",
    "1e-27 rms",
    "1e-4 of range",
    "60 dB",
]


def open_store(path: Path) -> Any:
    """Return the store at a path, whatever it holds."""
    return Store._open(path)


def density(dtype: str = "f8") -> np.ndarray:
    """Return a positive field over many orders of magnitude."""
    z, y, x = np.indices((24, 20, 28)) * 0.2
    field: np.ndarray = np.exp(3 * (np.sin(x) + np.cos(1.3 * y) + np.sin(0.7 * z))) * 1e-27
    return field.astype(dtype)


def check(bound: str, values: np.ndarray, found: np.ndarray) -> None:
    span = (float(values.min()), float(values.max()))
    errors = found.astype("f8") - values.astype("f8")
    assert errors.any()
    assert is_kept(resolved(bound, span), values, errors)
    assert found.min() > 0


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("bound", BOUNDS)
def test_arrays_keep_their_bounds(bound: str, dtype: str, tmp_path: Path) -> None:
    values = density(dtype)
    path = tmp_path / "x.ambar"
    with ambar.create(path) as writer:
        writer.create_array("density", values, error_bound=bound)
    array = ambar.open_store(path)["density"]
    check(bound, values, array.read())
    stated = array.error_bound
    span = (float(values.min()), float(values.max()))
    assert stated == resolved(bound, span)
    assert ambar.compare(path, path).held


def rough(shape: tuple[int, ...]) -> np.ndarray:
    """Return values that no prediction makes exact."""
    return np.random.default_rng(3).normal(size=shape)


def assert_chunks_keep_rms(
    root: float, values: np.ndarray, found: np.ndarray, chunks: tuple[int, int]
) -> None:
    for i in range(0, values.shape[0], chunks[0]):
        for j in range(0, values.shape[1], chunks[1]):
            chunk = slice(i, i + chunks[0]), slice(j, j + chunks[1])
            squares = (found[chunk] - values[chunk]) ** 2
            finite = np.isfinite(values[chunk])
            if finite.any():
                assert 0 < squares[finite].mean() <= root**2, chunk


CHUNKS = (32, 32)


@pytest.mark.parametrize("profile", ["fast", "balanced", "small"])
def test_padding_does_not_count_in_mean_squared_errors(profile: Profile, tmp_path: Path) -> None:
    values = rough((34, 33))
    holes = values.copy()
    holes[33, :20] = np.nan
    with ambar.create(tmp_path / "x", profile=profile) as writer:
        for name, part in (("values", values), ("holes", holes)):
            writer.create_array(name, part, chunks=CHUNKS, error_bound="0.1 rms")
    store = ambar.open_store(tmp_path / "x")
    assert_chunks_keep_rms(0.1, values, store["values"].read(), CHUNKS)
    assert_chunks_keep_rms(0.1, holes, store["holes"].read(), CHUNKS)


@pytest.mark.parametrize("fast", [False, True])
def test_padding_of_zarr_does_not_count_in_mean_squared_errors(*, fast: bool) -> None:
    zarr = pytest.importorskip("zarr")
    from ambar.codecs.zarr_python import AmbarCodec

    values = rough((34, 33))
    array = zarr.create_array(
        {}, shape=values.shape, chunks=CHUNKS, dtype="f8", compressors=None, filters=None,
        serializer=AmbarCodec(error_bound="0.1 rms", fast=fast),
    )  # fmt: skip
    array[...] = values
    assert_chunks_keep_rms(0.1, values, array[...], CHUNKS)


def test_parsing_names_what_is_expected() -> None:
    for wrong in ("", "1e-3 of", "2 relative", "0 bits", "1e-3 relativ", "nan"):
        with pytest.raises(ValueError, match="invalid error bound"):
            _core.error_bound(wrong)
    with pytest.raises(ValueError, match=r"mapping: {'a': '0.5', 'b': '1e-4 of range'}"):
        resolved("a=0.5, b=1e-4 of range")
    with pytest.raises(ValueError, match="value range"):
        resolved("80 dB")
    assert _core.error_bound("1e-3 of range", (0.0, 2.0)) == 2e-3
    assert _core.error_bound("0") == _core.error_bound("lossless") == 0.0


@pytest.mark.parametrize("bound", BOUNDS[:4])
def test_numcodecs_and_zarr_python(bound: str, tmp_path: Path) -> None:
    numcodecs = pytest.importorskip("numcodecs")
    zarr = pytest.importorskip("zarr")
    from ambar.codecs.numcodecs_api import AmbarCodec
    from ambar.codecs.zarr_python import AmbarCodec as Zarr3

    values = density()
    codec = AmbarCodec(bound)
    check(bound, values.ravel(), codec.decode(codec.encode(values)))
    assert numcodecs.get_codec(codec.get_config()).error_bound == codec.error_bound
    array = zarr.create_array(
        str(tmp_path / "x.zarr"), shape=values.shape, dtype="f8", chunks=values.shape,
        serializer=Zarr3(error_bound=bound), compressors=None,
    )  # fmt: skip
    array[:] = values
    check(bound, values, zarr.open_array(str(tmp_path / "x.zarr"))[:])


def test_codecs_refuse_bounds_of_a_range() -> None:
    for wrong in ("1e-3 of range", "80 dB", True, None, -1.0):
        with pytest.raises(ValueError):
            checked_bound(wrong)


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_hdf5_filter(bound: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    from ambar import hdf5

    if not hdf5.is_available():
        pytest.skip("no plugin in this installation")
    values = density("f4")
    span = (float(values.min()), float(values.max()))
    options: dict[str, Any] = hdf5.filter(bound, value_range=span)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("density", data=values, chunks=values.shape, **options)
    with h5py.File(tmp_path / "x.h5") as file:
        check(bound, values, file["density"][:])


def test_xarray_encodings(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    values = density()
    data = xr.Dataset({"density": (("z", "y", "x"), values)})
    data.ambar.write(tmp_path / "x.ambar", encoding={"density": {"error_bound": "1e-3 relative"}})
    found = xr.open_dataset(tmp_path / "x.ambar", engine="ambar").density.values
    check("1e-3 relative", values, found)


PLACES = ["level", "x", "y", "z"]


def relative_errors(target: Path, source: Path, field: str) -> tuple[dict[str, np.ndarray], Any]:
    """Return levels and centres of cells, and the relative errors of a field."""
    true, found = (
        ambar.open_snapshot(path).amr.read([field, *PLACES]) for path in (source, target)
    )
    order, other = (np.lexsort([cells[name] for name in PLACES[::-1]]) for cells in (true, found))
    cells = {name: true[name][order] for name in PLACES}
    values = true[field][order]
    return cells, np.abs(found[field][other] - values) / np.abs(values)


LEVELS_AND_BOXES = {
    "density": "1e-2 relative",
    "density@6": "1e-3 relative",
    "density@[0:0.3, 0:0.3, :]": "1e-5 relative",
    "pressure": "1e-2 relative",
    "pressure@6": "1e-3 relative",
}


@pytest.mark.parametrize("profile", ["fast", "balanced", "small"])
def test_levels_and_boxes_of_trees(profile: Any, tmp_path: Path) -> None:
    source, target = output("sedov"), tmp_path / "x.ambar"
    levels = ambar.open_snapshot(source).amr.read(["level"])["level"]
    finest, coarsest = int(levels.max()), int(levels.min())
    assert finest > coarsest
    bounds = {key.replace("@6", f"@{finest}"): bound for key, bound in LEVELS_AND_BOXES.items()}
    ambar.convert(source, target, error_bound=bounds, profile=profile, fsync=False)
    cells, errors = relative_errors(target, source, "density")
    in_box = (cells["x"] <= 0.3) & (cells["y"] <= 0.3)
    on_level = cells["level"] == finest
    # The tree is one chunk, which has the strictest bound of its cells.
    assert 0 < errors.max() <= 1e-2
    assert errors[on_level].max() <= 1e-3
    assert errors[in_box].max() <= 1e-5
    cells, errors = relative_errors(target, source, "pressure")
    assert 0 < errors[on_level].max() <= 1e-3
    store = open_store(target)
    (group,) = (path for path in store.groups if path.strip("/") == "amr")
    own = store._ambar_attributes(group)
    assert own["requested_bounds"] == bounds
    assert own["error_bounds"]["density"] == "1e-5 relative"
    found = ambar.compare(source, target)
    assert found.held
    asked = {one.field: one.bounds for one in found.fields}
    assert asked["density"] == {key: bounds[key] for key in bounds if key.startswith("density")}
    stricter = {**bounds, f"density@{coarsest}": "1e-7 relative"}
    assert not ambar.compare(source, target, ["density"], bound=stricter).held
    assert ambar.compare(source, target, ["density"], bound=bounds).held


def test_components_and_particles(tmp_path: Path) -> None:
    source, target = output("gravpart"), tmp_path / "x.ambar"
    bounds = {
        "hydro/*": "1e-4 relative",
        "hydro/vel*": "1e-3 of range",
        "rho": "1e-2 relative",
        "particles/vel*": "1e-3 of range",
        "particles/velocity_x@[0:0.5, :, :]": "1e-5 of range",
    }
    ambar.convert(source, target, error_bound=bounds, fsync=False)
    found = ambar.compare(source, target)
    assert found.held
    asked = {one.field: one.bounds for one in found.fields}
    assert asked["density"] == {"density": "1e-2 relative"}
    assert asked["pressure"] == {"pressure": "1e-4 relative"}
    assert asked["velocity_y"] == {"velocity_y": "1e-3 of range"}
    assert all("relative" not in str(asked[name]) for name in asked if name.startswith("accel"))
    (particles,) = (one for one in found.tables if one.component == "particles")
    columns = {one.column: one for one in particles.columns}
    assert len(columns["velocity_x"].bounds) == 2
    assert columns["velocity_y"].bounds == {"velocity_y": "1e-3 of range"}
    assert columns["velocity_y"].max_error > 0
    assert columns["mass"].max_error == 0
    given = {"particles/velocity_y": "1e-3 of range"}
    assert ambar.compare(source, target, ["particles"], bound=given).held
    given = {"particles/velocity_y": "1e-9 of range"}
    assert not ambar.compare(source, target, ["particles"], bound=given).held


@pytest.mark.parametrize(
    ("bounds", "error", "message"),
    [
        ({"densty": 1.0}, KeyError, "did you mean density"),
        ({"hydro/densty": 1.0}, KeyError, "did you mean density"),
        ({"xyz_*": 1.0}, KeyError, "does not exist; available: .*density"),
        ({"density@40": 1.0}, KeyError, "level does not exist; levels: "),
        ({"rt/*": 1.0}, KeyError, "does not exist"),
        ({"density@[0:1]": 1.0}, ValueError, "a box of 3 dimensions"),
        ({"density@x": 1.0}, ValueError, "not a level"),
        ({"particles/mass@3:": 1.0}, ValueError, "no levels"),
        ({"density": 1.0, "density@5:": "1e-3 relative"}, ValueError, "be compared"),
    ],
)
def test_bounds_of_nothing_are_errors(
    bounds: Any, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        ambar.convert(output("gravpart"), tmp_path / "x.ambar", error_bound=bounds)
    assert not (tmp_path / "x.ambar").exists()


def test_levels_and_boxes_of_plotfiles(tmp_path: Path) -> None:
    boxes: list[Any] = [[((0, 0, 0), (127, 31, 31))], [((32, 16, 16), (95, 47, 47))]]
    source = write_plotfile(tmp_path / "plt00000", boxes, domain=(128, 32, 32))
    target = tmp_path / "x.ambar"
    bounds = {
        "density": "1e-2 relative",
        "density@1": "1e-4 relative",
        "density@[0:0.2, :, :]": "1e-6 relative",
        "Temp@0": "1e-3",
    }
    ambar.convert(source, target, error_bound=bounds, covered="keep", fsync=False)
    cells, errors = relative_errors(target, source, "density")
    assert 1e-4 < errors.max() <= 1e-2
    assert 1e-6 < errors[cells["level"] == 1].max() <= 1e-4
    assert 0 < errors[cells["x"] <= 0.2].max() <= 1e-6
    cells, errors = relative_errors(target, source, "Temp")
    assert errors[cells["level"] == 0].max() > 0
    assert errors[cells["level"] == 1].max() == 0
    found = ambar.compare(source, target)
    assert found.held
    own = open_store(target)._ambar_attributes("amr")
    assert own["requested_bounds"] == {
        "density": "1e-2 relative",
        "density@1": "1e-4 relative",
        "density@[0:0.2, :, :]": "1e-6 relative",
        "Temp@0": "1e-3",
    }
    for wrong, error, message in (
        ({"Tmep": 1.0}, KeyError, "did you mean Temp"),
        ({"Temp@2": 1.0}, KeyError, "levels: 0 to 1"),
        ({"DM/mass": 1.0}, KeyError, "species"),
        ({"Temp@[0:1]": 1.0}, ValueError, "3 dimensions"),
    ):
        with pytest.raises(error, match=message):
            ambar.convert(source, tmp_path / "y.ambar", error_bound=wrong)


def averaged(*places: np.ndarray) -> np.ndarray:
    """Return a linear field: coarse cells are the averages of finer ones, except for rounding."""
    return np.asarray(sum(places) + 1.0)


@pytest.mark.parametrize("bound", ["1e-6", *BOUNDS])
def test_covered_cells_are_dropped(bound: str, tmp_path: Path) -> None:
    source = write_plotfile(tmp_path / "plt00000", fields={"a": averaged})
    bound = bound.replace("e-27", "e-6").replace("e-26", "e-1")
    stores = {}
    for covered in ("auto", "keep"):
        stores[covered] = tmp_path / f"{covered}.ambar"
        ambar.convert(source, stores[covered], error_bound=bound, covered=covered, fsync=False)
        found = ambar.compare(source, stores[covered])
        assert found.held
        assert found.fields[0].bounds == {"a": bound}
    (level, _) = open_store(stores["auto"])._ambar_attributes("amr")["levels"]
    assert level["dropped"] == ([] if "bits" in bound else ["a"])
    read = [
        ambar.open_snapshot(path).amr.grid("a", level=0).to_numpy()
        for path in (source, stores["auto"])
    ]
    errors = (read[1] - read[0]).ravel()
    span = (float(read[0].min()), float(read[0].max()))
    assert is_kept(resolved(bound, span), read[0].ravel(), errors)


def test_loose_bounds_are_warned_of(tmp_path: Path) -> None:
    source, target = write_plotfile(tmp_path / "plt00000"), tmp_path / "x.ambar"
    loose = "error bound of 'density', '1e-1 of range'"
    with pytest.warns(UserWarning, match=f"{loose}.*median magnitude.*'0.1 relative'") as caught:
        ambar.convert(source, target, error_bound="1e-1 of range", fsync=False)
    assert len(caught) == 1
    with pytest.warns(UserWarning, match=loose):
        assert ambar.compare(source, target).held
    with pytest.warns(UserWarning, match="'0.5 of range'"):
        ambar.compare(source, target, ["density"], bound="0.5 of range")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ambar.convert(source, target, error_bound="1e-1 relative", mode="w", fsync=False)
        ambar.compare(source, target)


def test_the_command_line(tmp_path: Path) -> None:
    source, target = write_plotfile(tmp_path / "plt00000"), tmp_path / "x.ambar"
    bounds = "density=1e-1 of range,density@1@[0:0.5,:,:]=1e-2 of range,T*=1e-3 relative"
    run = CliRunner().invoke
    result = run(app, ["convert", str(source), str(target), "--error-bound", bounds])
    assert result.exit_code == 0, result.output
    assert result.stderr.count("warning: the error bound of 'density'") == 1
    asked = {
        "density": "1e-1 of range",
        "density@1@[0:0.5, :, :]": "1e-2 of range",
        "Temp": "1e-3 relative",
    }
    result = run(app, ["info", str(target), "--json"])
    (group,) = (one for one in json.loads(result.stdout)["groups"] if one["path"] == "amr")
    assert group["requested_bounds"] == asked
    for command in (["info", str(target)], ["compare", str(source), str(target)]):
        result = run(app, command)
        assert result.exit_code == 0, result.output
        assert "density@1@[0:0.5, :, :]" in result.stdout
        assert "1e-3 relative" in result.stdout
    result = run(app, ["compare", str(source), str(target), "--json", "--bound", "T*=1e-9"])
    assert result.exit_code == 1
    fields = {one["field"]: one for one in json.loads(result.stdout)["fields"]}
    assert fields["Temp"]["bounds"] == {"Temp": "1e-9"}
    assert fields["Temp"]["held"] is False
    result = run(app, ["compare", str(source), str(target), "--bound", "Tmep=1e-9"])
    assert isinstance(result.exception, KeyError)
    assert "did you mean Temp" in str(result.exception)


def test_collections_take_bounds_that_need_no_range(tmp_path: Path) -> None:
    xr = pytest.importorskip("xarray")
    values = density()[0]
    for number in range(2):
        data = xr.Dataset({"density": (("y", "x"), values * (1 + number))})
        data.to_netcdf(tmp_path / f"{number}.nc", engine="scipy")
    for bound in BOUNDS[:3]:
        target = tmp_path / "x.ambar"
        ambar.ingest(
            sorted(tmp_path.glob("*.nc")),
            target,
            error_bound={"density": bound},
            mode="w",
            fsync=False,
        )
        found = ambar.open_collection(target).load("1").density.values
        check(bound, 2 * values.ravel(), found.ravel())
    for bound in BOUNDS[4:]:
        with pytest.raises(ValueError, match="value range of all datasets"):
            ambar.ingest(tmp_path, target, error_bound={"density": bound}, mode="w")
