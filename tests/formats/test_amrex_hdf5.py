"""AMReX plotfiles in HDF5: against the native one of the same run, and damaged ones."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import ambar
from ambar.formats.amrex.hdf5 import Hdf5Plotfile, is_hdf5_plotfile, read_hdf5
from tests.helpers.sample_outputs import amrex_sample

NAMES = ["phi", "phi2", "gradx", "grady", "gradz", "phi32"]


@pytest.fixture(params=["advection_none.h5", "advection_mdset.h5"])
def plotfile(request: pytest.FixtureRequest) -> Hdf5Plotfile:
    return read_hdf5(amrex_sample(request.param))


def native(folder: Path, level: int) -> dict[tuple[int, ...], np.ndarray]:
    """Return the FABs of a level of a native plotfile by their boxes, read without ambar."""
    found = {}
    for path in sorted((folder / f"Level_{level}").glob("Cell_D_*")):
        content = path.read_bytes()
        for line in re.finditer(rb"FAB \(\(8, .*?\)\)\)(\(.*\)) 6\n", content):
            corners = [int(x) for x in re.findall(rb"-?\d+", line[1])][:6]
            shape = [corners[d + 3] - corners[d] + 1 for d in range(3)]
            values = np.frombuffer(content, "<f8", 6 * np.prod(shape), line.end())
            found[tuple(corners)] = values.reshape([*shape, 6], order="F")
    return found


def test_both_layouts_hold_what_the_native_plotfile_holds(plotfile: Hdf5Plotfile) -> None:
    folder = amrex_sample("advection_plt00006")
    assert plotfile.names == NAMES
    assert (plotfile.ndim, plotfile.dtype, plotfile.coordinates) == (3, np.dtype("f8"), 0)
    assert plotfile.single == ("none" in plotfile.path.name)
    assert [level.ratio for level in plotfile.levels] == [2, 2, 1]
    assert [len(level.boxes) for level in plotfile.levels] == [8, 18, 34]
    compared = 0
    for number, level in enumerate(plotfile.levels):
        expected = native(folder, number)
        assert len(expected) == len(level.boxes)
        for index, box in enumerate(level.boxes):
            fab = expected[tuple(box.ravel().tolist())]
            for component, name in enumerate(NAMES):
                values = plotfile.read(number, index, name)
                assert values.flags.f_contiguous
                np.testing.assert_array_equal(values, fab[..., component])
                compared += values.size
    assert compared == 6 * (32768 + 51200 + 110592)


def test_geometry_and_time(plotfile: Hdf5Plotfile) -> None:
    assert plotfile.time == 0.13213504454862224
    np.testing.assert_array_equal(plotfile.lower, [0, 0, 0])
    np.testing.assert_array_equal(plotfile.upper, [1, 1, 1])
    for number, level in enumerate(plotfile.levels):
        cells = 32 << number
        np.testing.assert_array_equal(level.domain, [[0] * 3, [cells - 1] * 3])
        np.testing.assert_array_equal(level.cell_size, [1 / cells] * 3)
        assert (level.boxes.dtype, level.boxes.shape[1:]) == (np.dtype("i8"), (2, 3))
        assert (level.step, level.time) == (6 << number, plotfile.time)


def test_what_is_not_there_is_an_error(plotfile: Hdf5Plotfile, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no field 'rho'"):
        plotfile.read(0, 0, "rho")
    for level, box in [(0, 8), (3, 0), (0, -1), (-1, 0)]:
        with pytest.raises(KeyError, match="no box"):
            plotfile.read(level, box, "phi")
    with pytest.raises(KeyError):
        read_hdf5(tmp_path / "none.h5")


def damage_offsets(file: h5py.File) -> None:
    file["level_1/data:offsets=0"][3] += 1


def damage_boxes(file: h5py.File) -> None:
    boxes = file["level_0/boxes"][()]
    boxes["hi_i"][2] = -5
    file["level_0/boxes"][...] = boxes


def damage_length(file: h5py.File) -> None:
    values = file["level_2/data:datatype=0"][:-1]
    del file["level_2/data:datatype=0"]
    file["level_2/data:datatype=0"] = values


def damage_group(file: h5py.File) -> None:
    del file["level_2"]


def damage_names(file: h5py.File) -> None:
    file.attrs["component_1"] = "phi"


def damage_type(file: h5py.File) -> None:
    values = file["level_0/data:datatype=0"][()].astype("i4")
    del file["level_0/data:datatype=0"]
    file["level_0/data:datatype=0"] = values


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_offsets, "data:offsets=0"),
        (damage_boxes, "boxes"),
        (damage_length, "level_2/data:datatype=0"),
        (damage_group, "level_2"),
        (damage_names, "component_0"),
        (damage_type, "float32 or float64"),
    ],
)
def test_damage_is_named(damage: object, message: str, tmp_path: Path) -> None:
    for name in ("advection_none.h5", "advection_mdset.h5"):
        path = tmp_path / name
        shutil.copyfile(amrex_sample(name), path)
        with h5py.File(path, "r+") as file:
            damage(file)  # type: ignore[operator]
        with pytest.raises(ambar.CorruptError, match=message):
            read_hdf5(path)


def test_damaged_values_are_named_once(tmp_path: Path) -> None:
    """The message was that of the cause, after the name of its class: CorruptError: ..."""
    path, key = tmp_path / "x.h5", "data:datatype=0"
    shutil.copyfile(amrex_sample("advection_none.h5"), path)
    with h5py.File(path, "r+") as file:
        values = file["level_0"][key][()]
        del file["level_0"][key]
        data = file["level_0"].create_dataset(key, data=values, chunks=(4096,), fletcher32=True)
        place = data.id.get_chunk_info(0).byte_offset
    with path.open("r+b") as raw:
        raw.seek(place)
        raw.write(b"damaged!")
    with pytest.raises(ambar.CorruptError) as raised:
        ambar.open_snapshot(path).amr.read(["phi"])
    assert str(raised.value).startswith(f"{path}: level_0/{key}: Can't")
    with pytest.raises(ambar.CorruptError) as raised:
        ambar.convert(path, tmp_path / "x.ambar")
    assert str(raised.value).startswith(f"{path}: level_0/{key}: Can't")


def test_files_cut_short_and_other_files_are_errors(tmp_path: Path) -> None:
    content = amrex_sample("advection_none.h5").read_bytes()
    path = tmp_path / "cut.h5"
    for length in (0, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ambar.CorruptError):
            read_hdf5(path)
    with h5py.File(path, "w") as file:
        file["x"] = 1
    with pytest.raises(ambar.CorruptError, match="not a plotfile"):
        read_hdf5(path)
    assert not is_hdf5_plotfile(path)
    assert not is_hdf5_plotfile(tmp_path)
    assert is_hdf5_plotfile(amrex_sample("advection_none.h5"))


def test_one_and_two_dimensions_in_single_precision(tmp_path: Path) -> None:
    for ndim in (1, 2):
        axes = "ijk"[:ndim]
        corner = np.dtype([(f"{end}_{axis}", "i4") for end in ("lo", "hi") for axis in axes])
        boxes = np.array([(-2,) * ndim + (3,) * ndim, (4,) * ndim + (5,) * ndim], corner)
        cells = [6**ndim, 2**ndim]
        path = tmp_path / f"{ndim}.h5"
        values = np.arange(2 * sum(cells), dtype=">f4")
        with h5py.File(path, "w") as file:
            attributes: dict[str, Any] = {
                "dim": ndim,
                "num_components": 2,
                "component_0": np.bytes_("a"),
            }
            attributes |= {"component_1": "b", "num_levels": 1, "time": 2.5}
            file.attrs.update(attributes | {"coordinate_system": 1})
            level = file.create_group("level_0")
            level.attrs.update({"Vec_dx": [0.5] * ndim, "ref_ratio": 1, "steps": 4, "time": 2.5})
            level.attrs.update({"ngrid": 2, "prob_lo": [0.0] * ndim, "prob_hi": [4.0] * ndim})
            level.attrs["prob_domain"] = np.array((-2,) * ndim + (5,) * ndim, corner)
            level["boxes"] = boxes
            level["data:offsets=0"] = np.cumsum([0, 2 * cells[0], 2 * cells[1]])
            level["data:datatype=0"] = values
        with read_hdf5(path) as plotfile:
            assert (plotfile.dtype, plotfile.coordinates) == (np.dtype("f4"), 1)
            np.testing.assert_array_equal(plotfile.levels[0].domain, [[-2] * ndim, [5] * ndim])
            last = plotfile.read(0, 1, "b")
            assert last.shape == (2,) * ndim
            np.testing.assert_array_equal(last.ravel("F"), values[-cells[1] :])
