"""Other programs' files of meshes that are cut short, empty or interpreted as another format."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.mesh.files import pyvista_readers
from tests.helpers.command_line import run

pytest.importorskip("pyvista")
pytest.importorskip("meshio")

import meshio
import pyvista as pv

RANDOM = np.random.default_rng(0)
POINTS = RANDOM.random((60, 3))
CORNERS = RANDOM.integers(0, 60, (80, 4))
TETRAHEDRA = meshio.Mesh(POINTS, [("tetra", CORNERS)])
TRIANGLES = meshio.Mesh(POINTS, [("triangle", CORNERS[:, :3])])
VALUES = meshio.Mesh(
    POINTS,
    [("tetra", CORNERS)],
    point_data={"a": RANDOM.random(60), "v": RANDOM.random((60, 3))},
    cell_data={"b": [RANDOM.random(80)]},
)
FILES = [
    ("x.msh", "gmsh", TETRAHEDRA, {}),
    ("x.msh", "gmsh", TETRAHEDRA, {"binary": False}),
    ("x.msh", "gmsh22", TETRAHEDRA, {}),
    ("x.msh", "ansys", TETRAHEDRA, {"binary": False}),
    ("x.mesh", "medit", TETRAHEDRA, {}),
    ("x.inp", "avsucd", VALUES, {}),
    ("x.su2", "su2", TETRAHEDRA, {}),
    ("x.off", "off", TRIANGLES, {}),
    ("x.bdf", "nastran", TETRAHEDRA, {}),
    ("x.avs", "avsucd", VALUES, {}),
    ("x.med", "med", TETRAHEDRA, {}),
    ("x.xdmf", "xdmf", TETRAHEDRA, {}),
    ("x.ply", "ply", TRIANGLES, {}),
    ("x.ply", "ply", TRIANGLES, {"binary": False}),
    ("x.stl", "stl", TRIANGLES, {"binary": True}),
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder of its own: XDMF names its HDF5 file as it was called."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "form", "mesh", "options"), FILES)
def test_cut_files_are_errors(
    name: str,
    form: str,
    mesh: Any,
    options: dict[str, bool],
    capfd: pytest.CaptureFixture[str],
) -> None:
    meshio.write(name, mesh, file_format=form, **options)
    capfd.readouterr()
    ambar.convert(name, "x.ambar", fsync=False)
    read = ambar.read_mesh("x.ambar")
    count = len(mesh.cells[0])
    assert read.n_points == 60 or form == "stl"
    assert count - 5 <= read.n_cells <= count  # VTK drops triangles without an area
    whole = Path(name).read_bytes()
    for part in [0, 0.003, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97]:
        Path(name).write_bytes(whole[: int(part * len(whole))])
        with pytest.raises(ambar.CorruptError, match=f"^{name}: "):
            ambar.convert(name, "y.ambar")
    assert not Path("y.ambar").exists()
    if form != "xdmf":  # whose XML library prints
        assert capfd.readouterr() == ("", "")


def test_abaqus_is_not_read_as_avs() -> None:
    meshio.write("wing.inp", TETRAHEDRA, file_format="abaqus")
    ambar.convert("wing.inp", "x.ambar", fsync=False)
    read = ambar.read_mesh("x.ambar")
    np.testing.assert_array_equal(read.points, POINTS)
    np.testing.assert_array_equal(read.cells_dict[10], CORNERS)
    lines = Path("wing.inp").read_text().splitlines(keepends=True)
    nodes = next(i for i, line in enumerate(lines) if line.startswith("*ELEMENT"))
    for cut in [0, 3, nodes - 10, nodes, nodes + 1]:
        Path("wing.inp").write_text("".join(lines[:cut]))
        with pytest.raises(
            ambar.CorruptError, match=r"^wing\.inp: .*(no points|conver|arrays|empty file)"
        ):
            ambar.convert("wing.inp", "y.ambar")
    Path("wing.inp").write_text("".join(lines[: nodes + 5])[:-6])
    with pytest.raises(ambar.CorruptError, match=r"^wing\.inp: "):
        ambar.convert("wing.inp", "y.ambar")


def test_points_alone_are_a_mesh() -> None:
    Path("x.obj").write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\n")
    ambar.convert("x.obj", "x.ambar", fsync=False)
    assert ambar.read_mesh("x.ambar").n_points == 3


def test_elements_are_counted() -> None:
    meshio.write("x.su2", TETRAHEDRA)
    lines = Path("x.su2").read_text().splitlines(keepends=True)
    Path("x.su2").write_text("".join(lines[:-5]))
    message = r"expected 60 points and 80 elements, .* but meshio finds 60 and 7\d"
    with pytest.raises(ambar.CorruptError, match=message):
        ambar.convert("x.su2", "x.ambar")


def converted(name: str) -> subprocess.CompletedProcess[str]:
    """Convert in a process of its own, which may take 30 s."""
    return subprocess.run(
        [sys.executable, "-m", "ambar", "convert", name, "x.ambar", "--overwrite"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_ansys_never_waits_for_a_bracket() -> None:
    """Convert in another process: loops of meshio do not end."""
    meshio.write("text.msh", TETRAHEDRA, file_format="ansys", binary=False)
    whole = Path("text.msh").read_bytes()
    assert converted("text.msh").returncode == 0
    np.testing.assert_array_equal(ambar.read_mesh("x.ambar").cells_dict[10], CORNERS)
    for cut in [whole.index(b"))\n(12") + 1, len(whole) - 2, whole.rindex(b"(12") + 5]:
        Path("text.msh").write_bytes(whole[:cut])
        done = converted("text.msh")
        assert (done.returncode, "text.msh: " in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("body", "error", "message"),
    [
        ("(3010 (1 1 2 1 3)(\n", ambar.UnsupportedError, "found a binary section at byte 18"),
        ("(10 (1 1 2 1 3)(\n0 0 0\n", ambar.CorruptError, "reached too early"),
        ("(77 (unknown)", ambar.CorruptError, "reached too early"),
        ("hello", ambar.CorruptError, "cannot be read"),
    ],
)
def test_damaged_ansys(body: str, error: type, message: str) -> None:
    Path("x.msh").write_text('(1 "other")\n(2 3)\n' + body)
    with pytest.raises(error, match=rf"^x\.msh: .*{message}"):
        ambar.convert("x.msh", "x.ambar")


def test_a_msh_of_neither_program() -> None:
    Path("x.msh").write_text("MESH dimension 3\n")
    with pytest.raises(ambar.CorruptError, match=r"x\.msh: .*neither with \$MeshFormat"):
        ambar.convert("x.msh", "x.ambar")


def test_readers_that_others_registered_come_first() -> None:
    meshio.write("x.off", TRIANGLES)
    pv.register_reader(".off", lambda *_, **__: pv.Cube())
    try:
        ambar.convert("x.off", "x.ambar", fsync=False)
    finally:
        pv.core.utilities.reader_registry._custom_ext_readers.pop(".off")
    assert ambar.read_mesh("x.ambar").n_cells == 6


def test_without_meshio(monkeypatch: pytest.MonkeyPatch) -> None:
    meshio.write("x.off", TRIANGLES)
    for module in ("ambar.mesh.files.formats", "ambar.collection.files.source_reader"):
        monkeypatch.setattr(f"{module}.find_spec", lambda name: None if name == "meshio" else 1)
    with pytest.raises(ambar.UnsupportedError, match=r"x\.off: .*pip install 'ambar\[mesh\]'"):
        ambar.convert("x.off", "x.ambar")


GRID = pv.ImageData(dimensions=(6, 5, 4))
GRID["a"] = RANDOM.random(GRID.n_points)
LEGACY = [
    pv.PolyData(POINTS, np.insert(CORNERS, 0, 4, axis=1)),
    GRID,
    GRID.cast_to_rectilinear_grid(),
    GRID.cast_to_structured_grid(),
    GRID.cast_to_unstructured_grid(),
]


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("mesh", LEGACY, ids=lambda mesh: type(mesh).__name__)
def test_cut_files_of_the_old_format_are_errors(mesh: Any, binary: bool) -> None:
    mesh.save("x.vtk", binary=binary)
    whole = Path("x.vtk").read_bytes()
    text = whole.rfind(b"METADATA") if whole.rstrip().endswith(b"INFORMATION 0") else -1
    values = text if text > 0 else len(whole)  # where the last array ends
    for cut in [75, *(int(values * part) for part in (0.1, 0.3, 0.5, 0.7, 0.9, 0.98))]:
        Path("x.vtk").write_bytes(whole[:cut])
        with pytest.raises(ambar.CorruptError, match=r"^x\.vtk: "):
            ambar.convert("x.vtk", "x.ambar")
    Path("x.vtk").write_bytes(whole.rstrip())  # as editors, and people, leave them
    ambar.convert("x.vtk", "x.ambar", fsync=False)
    assert ambar.read_mesh("x.ambar") == pv.read("x.vtk")


@pytest.mark.parametrize("suffix", ["vtu", "vtp", "vtk", "vtm"])
@pytest.mark.parametrize("content", [b"", b"hello\n", b"\0\xff", b'<?xml version="1.0"?><a/>'])
def test_messages_say_what_was_expected(
    suffix: str, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    Path(f"x.{suffix}").write_bytes(content)
    found = "but it cannot be read: " if content else "found an empty file"
    message = rf"^x\.{suffix}: expected a \.{suffix} file, {found}"
    with pytest.raises(ambar.CorruptError, match=message) as raised:
        ambar.convert(f"x.{suffix}", "x.ambar")
    assert ".cxx" not in str(raised.value)
    assert capfd.readouterr() == ("", "")


def test_a_missing_piece_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    pv.MultiBlock([pv.Sphere(), pv.Cube()]).save("x.vtm")
    piece = sorted(Path("x").iterdir())[0]
    piece.unlink()
    with pytest.raises(FileNotFoundError, match="x.vtm refers to a file") as raised:
        ambar.convert("x.vtm", "x.ambar")
    assert Path(raised.value.filename) == piece
    assert capfd.readouterr() == ("", "")


MIXED = """ply
format {} 1.0
comment mixed
element vertex 4
property float x
property float y
property float z
element face 200
property uchar red
property list uchar int vertex_indices
property list ushort float weights
end_header
"""


@pytest.mark.parametrize("order", ["<", ">"])
def test_lists_of_many_lengths_in_ply(order: str) -> None:
    from ambar.mesh.files.truncation_checks import check_length

    form = "binary_little_endian" if order == "<" else "binary_big_endian"
    whole = MIXED.format(form).encode() + RANDOM.random((4, 3)).astype("<f4").tobytes()
    for row in range(200):
        corners = np.arange(3 + (row % 2 if row > 80 else 0)).astype(order + "i4")
        weights = np.zeros(row % 3 if row > 150 else 300, order + "f4")
        count = np.array([len(weights)], order + "u2")
        whole += bytes([9, len(corners)]) + corners.tobytes() + count.tobytes() + weights.tobytes()
    for more in (b"", b"\n"):
        Path("x.ply").write_bytes(whole + more)
        check_length(Path("x.ply"))
    for cut in [*range(len(whole) - 40, len(whole)), len(whole) // 2, len(whole) // 20]:
        Path("x.ply").write_bytes(whole[:cut])
        with pytest.raises(ambar.CorruptError, match=r"rows of '(face|vertex)', found fewer"):
            check_length(Path("x.ply"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format ascii", "format utf8", "utf8"),
        ("format ascii 1.0\n", "", "header"),
        ("vertex 3", "vertex three", "three"),
        ("vertex 3", "vertex -3", "-3 rows"),
        ("vertex 3", "vertex 9", "expected 9 rows of 'vertex', found fewer"),
        ("element vertex 3\n", "", "header"),
        ("float z", "quad z", "quad"),
        ("list uchar", "list float", "a list of float values"),
        ("3 0 1 2\n", "3 0 1\n", "expected 1 rows of 'face'"),
        ("3 0 1 2\n", "\n", "expected 1 rows of 'face'"),
        ("3 0 1 2\n", "x\n", "expected 1 rows of 'face'"),
    ],
)
def test_damaged_ply(old: str, new: str, message: str) -> None:
    text = (
        "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
        "property float z\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
        "0 0 0\n1 0 0\n1 1 0\n3 0 1 2\n"
    )
    Path("x.ply").write_text(text)
    ambar.convert("x.ply", "x.ambar", fsync=False)
    assert ambar.read_mesh("x.ambar").n_cells == 1
    assert old in text
    Path("x.ply").write_text(text.replace(old, new))
    with pytest.raises(ambar.CorruptError, match=rf"^x\.ply: .*{message}"):
        ambar.convert("x.ply", "y.ambar")


def test_streamed_stl_has_no_count() -> None:
    pv.Sphere().save("x.stl")
    whole = Path("x.stl").read_bytes()
    with pytest.raises(
        ambar.CorruptError, match=r"x\.stl: expected 84,084 bytes for 1,680 triangles"
    ):
        Path("x.stl").write_bytes(whole[: 84 + 50 * 16])
        ambar.convert("x.stl", "x.ambar")
    Path("x.stl").write_bytes(whole[:80] + b"\xff" * 4 + whole[84:])
    ambar.convert("x.stl", "x.ambar", fsync=False)
    assert ambar.read_mesh("x.ambar").n_cells == 1680


TECPLOT = """TITLE = "t"
VARIABLES = "X", "Y", "P"
ZONE T="z", N=4, E=2, F=FEPOINT, ET=TRIANGLE
0 0 1
1 0 2
0 1 3
1 1 4
1 2 3
2 4 3
"""


def tecplot(path: Path) -> None:
    path.write_text(TECPLOT)


def image(path: Path) -> None:
    grid = pv.ImageData(dimensions=(5, 4, 1))
    grid["a"] = np.arange(20, dtype=np.uint8)
    grid.save(path)


def by_meshio(path: Path) -> None:
    meshio.write(path, TETRAHEDRA)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("x.dat", tecplot),
        ("x.tec", tecplot),
        ("x.tif", image),
        ("x.png", image),
        ("x.node", by_meshio),
        ("x.xmf", by_meshio),
        ("x.f3grid", by_meshio),
    ],
)
def test_whatever_the_libraries_read_is_a_mesh(
    name: str, write: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Formats that were in no list of ours were left to xarray, which found no engine."""
    write(Path(name))
    done = ambar.convert(name, "x.ambar", fsync=False)
    assert done.converted == [name]
    assert bool(done.left_out) == (name == "x.dat")  # meshio reads .tec
    assert ambar.open_mesh("x.ambar").n_points in (4, 20, 60)
    assert run(capsys, "convert", name, "y.ambar")[0] == 0


def test_files_that_nothing_reads_are_errors(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing was raised, and an older store of that name looked like the result."""
    ambar.write_mesh(pv.Cube(), "x.ambar", fsync=False)
    before = Path("x.ambar").read_bytes()
    Path("x.foo").write_bytes(b"something")
    with pytest.raises(ambar.UnsupportedError, match=r"x\.foo: expected a NetCDF .*RAMSES.*mesh"):
        ambar.convert("x.foo", "x.ambar", mode="w")
    code, _, err = run(capsys, "convert", "x.foo", "x.ambar", "--overwrite")
    assert code == 4
    assert "NetCDF" in err
    assert Path("x.ambar").read_bytes() == before


def test_files_of_netcdf_may_have_any_name() -> None:
    xr = pytest.importorskip("xarray")
    xr.Dataset({"a": ("x", np.arange(5.0))}).to_netcdf("x.foo")
    ambar.convert("x.foo", "x.ambar", fsync=False)
    assert len(ambar.open_collection("x.ambar")) == 1


def test_exodus_files_are_complete_and_their_rounded_points_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """VTK read other values from files of meshio: the report said that all arrays differ."""
    mesh = pv.ImageData(dimensions=(3, 3, 3)).cast_to_unstructured_grid()
    mesh.points = mesh.points.astype(np.float64) / 7
    mesh["a"], mesh["b"] = np.arange(27) / 3, np.arange(27, dtype=np.float32)
    ambar.write_mesh(mesh, "x.ambar", fsync=False)
    rounded = {"points": "rounded to float32 by VTK's reader of this format"}
    with pytest.warns(UserWarning, match="does not hold unchanged: points"):
        assert ambar.export("x.ambar", "x.exo").left_out == rounded
    assert np.array_equal(meshio.read("x.exo").points, mesh.points)
    found = pv.read("x.exo")[0][0]
    order = [mesh.find_closest_point(point) for point in found.points]
    for name in ("a", "b"):
        assert np.array_equal(found[name], mesh[name][order])
    done = ambar.convert("x.exo", "y.ambar", fsync=False)
    assert done.left_out == rounded
    mesh.points = mesh.points.astype(np.float32)
    ambar.write_mesh(mesh, "x.ambar", mode="w", fsync=False)
    assert ambar.export("x.ambar", "single.exo").left_out == {}
    assert ambar.convert("single.exo", "y.ambar", mode="w", fsync=False).left_out == {}
    # Without netCDF4 the precision is unknown.
    monkeypatch.setattr(pyvista_readers, "find_spec", {}.get)
    assert ambar.convert("x.exo", "y.ambar", mode="w", fsync=False).left_out == {}
