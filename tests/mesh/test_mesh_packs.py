"""Small arrays are stored beside the description of their mesh, and damage to either is named."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.mesh.storage import packs
from ambar.mesh.storage.packs import decode_pack, encode_pack, join_streams, split_streams
from ambar.mesh.storage.references import references_in
from tests.helpers.paths import ROOT

pytest.importorskip("pyvista")

import pyvista as pv

from tests.helpers.mesh.comparison import assert_same
from tests.helpers.mesh.descriptions import plain, together

RANDOM = np.random.default_rng(5)
DTYPES = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", [*DTYPES, "float32", "float64"])
@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (300, 3), (0, 3), (6, 7, 20), (9, 9, 9, 3)])
def test_packs_come_back(dtype: str, shape: tuple[int, ...]) -> None:
    values = RANDOM.integers(0, 2, shape).astype(dtype)
    if dtype.startswith("float"):
        values = np.where(values > 0, RANDOM.random(shape), np.nan).astype(dtype)
    about, stream = encode_pack(values, predict=True)
    data = join_streams(json.dumps({"packed": [about, {"values": ["x"]}]}), [stream])
    first, second = split_streams(data)["packed"]
    read = decode_pack(first, "here")
    assert read.dtype == values.dtype
    assert read.tobytes() == values.tobytes()
    assert decode_pack(second, "here").tolist() == ["x"]


def test_a_small_mesh_is_a_single_entry(tmp_path: Path) -> None:
    mesh = pv.Plane(i_resolution=20, j_resolution=20)
    path = tmp_path / "x.ambar"
    ambar.write_mesh(mesh, path, fsync=False)
    assert path.stat().st_size < 3200  # 14 KiB of normals and coordinates, 12 of corners
    assert list(ambar.open_store(path)) == []
    assert_same(ambar.read_mesh(path), mesh)
    mesh["noise"] = RANDOM.random((mesh.n_points, 2))
    ambar.write_mesh(mesh, path, fsync=False, mode="w")
    assert list(ambar.open_store(path)) == ["description"]
    assert_same(ambar.read_mesh(path), mesh)
    assert ambar.read_mesh(path, point_data=["noise"]).point_data.keys() == ["noise"]


def test_storage_of_small_arrays(tmp_path: Path) -> None:
    mesh = pv.MultiBlock([pv.Plane(i_resolution=20, j_resolution=20), pv.Cube()])
    mesh[0].cell_data["noise"] = RANDOM.integers(0, 250, (400, 2)).astype("uint8")
    mesh[1].cell_data["label"] = list("abcdef")
    path = tmp_path / "x.ambar"
    user = {"at": [99, 99], "and": {"at": "this"}}
    ambar.write_mesh(mesh, path, fsync=False, user_dict=user)
    opened = ambar.open_mesh(path)
    (noise,) = [array for array in opened.arrays if array.name == "noise"]
    assert (noise.association, noise.dtype, noise.shape) == ("cell", "uint8", (400, 2))
    assert noise.block == (0,)
    assert noise.paths == ()
    assert noise.codecs.split()[0] == "bytes"
    assert (noise.chunk_count, noise.nbytes) == (1, 800)
    assert 700 < noise.stored_bytes <= 820
    (label,) = [array for array in opened.arrays if array.name == "label"]
    assert (label.dtype, label.nbytes, label.stored_bytes) == ("string", 48, 0)
    assert math.isnan(label.ratio)
    found = [*opened.arrays, *opened.geometry]
    _, streams = plain(opened.store)
    assert abs(sum(array.stored_bytes for array in found) - sum(map(len, streams))) < len(found)
    shapes = {(array.name, array.block): array.shape for array in opened.geometry}
    assert shapes["polygons/corners", (0,)] == (400, 4)
    assert shapes["points", (1,)] == mesh[1].points.shape


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": [9, 0, 400]}, "pack 9 of small arrays, which does not exist"),
        ({"at": [0, -1, 400]}, "is not a reference to an array"),
        ({"at": [0, 0, 2**40]}, r"ends at 1099511627776, of \d+ values"),
        ({"dtype": None}, "geometry 'points' has dtype 'None'"),
        ({"shape": "x"}, "pack 0 .* is damaged"),
        ({"codecs": ...}, "pack 0 .* is damaged .*codecs"),
    ],
)
def test_storage_of_damaged_descriptions(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    mesh = pv.Cube().points_to_double()
    mesh.clear_data()
    ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    about, streams = plain(ambar.open_store(tmp_path / "x.ambar"))
    assert len(about["packed"]) > 0
    for key, value in change.items():
        place = next(references_in(about)) if key == "at" else about["packed"][0]
        place[key] = value
        if value is ...:
            del place[key]
    with ambar.create(tmp_path / "y.ambar", fsync=False) as writer:
        writer._create_group("", {"ambar": together(about, streams)})
    with pytest.raises(ambar.CorruptError, match=f"y.ambar: .*{message}"):
        [array.to_dict() for array in ambar.open_mesh(tmp_path / "y.ambar").geometry]


def test_many_blocks_do_not_fill_the_description(tmp_path: Path) -> None:
    clouds = [pv.PolyData(RANDOM.random((150, 3)).astype("f4")) for _ in range(300)]
    blocks = pv.MultiBlock(clouds)
    path = tmp_path / "x.ambar"
    ambar.write_mesh(blocks, path, fsync=False)
    store = ambar.open_store(path)
    assert list(store) == ["packed/0", "packed/1"]
    assert store["packed/0"].shape == (300 * 150 * 3,)
    assert_same(ambar.read_mesh(path), blocks)


def _packed() -> tuple[dict[str, Any], bytes]:
    return encode_pack(np.arange(100, dtype=np.float64))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cut short"),
        (b"\xff" * 9, "invalid"),
        (join_streams("[]", []), "not a JSON object"),
        (join_streams("{", []), "Expecting"),
        (join_streams("{}", [b"more"]), "4 bytes are left after the last pack"),
        (join_streams('{"packed": [{"bytes": 9}]}', [b"less"]), "9 bytes, of 4"),
        (join_streams('{"packed": [{"bytes": -1}]}', [b""]), "-1 bytes"),
        (join_streams('{"packed": [{"bytes": "x"}]}', [b""]), "'x' bytes"),
    ],
)
def test_damaged_descriptions_are_refused(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        split_streams(data)
    path = tmp_path / "x.ambar"
    about = {"kind": "mesh", "version": 1, "data": base64.b85encode(data).decode()}
    with ambar.create(path, fsync=False) as writer:
        writer._create_group("", {"ambar": about})
    with pytest.raises(ambar.CorruptError, match="the description of the mesh is damaged"):
        ambar.read_mesh(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("dtype", "object", "dtype 'object'"),
        ("shape", [2**40], "1099511627776 values"),
        ("shape", [-1], "a shape"),
        ("shape", [101], "."),
        ("codecs", "bytes gzip", "codec"),
        ("codecs", None, "codec"),
        ("stream", b"\0" * 30, "."),
    ],
)
def test_damaged_packs_are_refused(key: str, value: Any, message: str) -> None:
    about, stream = _packed()
    with pytest.raises(ambar.CorruptError, match=f"here: a pack .* is damaged .*{message}"):
        decode_pack({**about, "stream": stream, key: value}, "here")


def test_the_dictionary_is_that_of_the_format() -> None:
    page = (ROOT / "docs" / "format.md").read_text()
    block = page.split("The dictionary is the following lines without their ends:\n\n```\n")[1]
    assert block.split("\n```")[0].replace("\n", "").encode() == packs.DICTIONARY


def test_a_description_of_another_dtype_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.ambar"
    about = {"kind": "mesh", "version": 1, "description": "description"}
    with ambar.create(path, fsync=False) as writer:
        writer._create_group("", {"ambar": about})
        writer.create_array("description", np.array(['{"type": "PolyData"}'], object))
    with pytest.raises(ambar.CorruptError, match="expected an array of uint8, found object"):
        ambar.read_mesh(path)
