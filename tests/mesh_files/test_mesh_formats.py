"""Round trips through all formats of PyVista and meshio, as their registries name them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar

pytest.importorskip("pyvista")
pytest.importorskip("meshio")

import meshio
import pyvista as pv
from pyvista.core.utilities.reader import CLASS_READERS

from ambar.mesh.files.formats import is_mesh_file, is_vtk_xml, suffixes_to_write
from ambar.mesh.files.pyvista_readers import _files_of_ensight
from ambar.mesh.files.truncation_checks import check_length


def with_arrays(mesh: Any) -> Any:
    mesh.clear_data()
    mesh["pressure"] = np.random.default_rng(0).random(mesh.n_points)
    mesh.cell_data["number"] = np.arange(mesh.n_cells, dtype=np.int32)
    return mesh


GRID = pv.ImageData(dimensions=(4, 3, 2), spacing=(0.5, 0.25, 2))
PICTURE = pv.ImageData(dimensions=(4, 3, 1))
PICTURE["pressure"] = np.arange(12, dtype=np.uint8)
MESHES = {
    "tetrahedra": with_arrays(GRID.to_tetrahedra()),
    "triangles": with_arrays(pv.Sphere(theta_resolution=5, phi_resolution=5)),
    "image": with_arrays(GRID.copy()),
    "rectilinear": with_arrays(GRID.cast_to_rectilinear_grid()),
    "structured": with_arrays(GRID.cast_to_structured_grid()),
    "picture": PICTURE,
    "points": pv.PointSet(np.random.default_rng(0).random((9, 3))),
    "blocks": pv.MultiBlock({"a": with_arrays(pv.Cube()), "b": with_arrays(pv.Sphere())}),
}
# Formats of other cells or values, and writers of meshio with errors: .cgns, .h5m, .su2, .ugrid,
# .wkt and .xml.
REFUSED = {
    "tetrahedra": ".h5m .obj .off .ply .stl .svg .ugrid .wkt .xml",
    "triangles": ".cgns .ele .f3grid .h5m .node .su2 .svg .ugrid .wkt .xml",
    "image": ".jpeg .jpg .png .pnm .tif",
    "points": ".stl",
}
NEVER_READ = {".geo", ".iv", ".svg", ".xyz"}


ALIASES = [
    ".bmp",
    ".dato",
    ".dato.gz",
    ".e",
    ".ex2",
    ".fem",
    ".jpg",
    ".nas",
    ".nii.gz",
    ".post.gz",
    ".tiff",
    ".vol.gz",
    ".vtmb",
    ".xmf",
]


def suffixes(name: str) -> list[str]:
    """Return the suffixes of formats of a mesh.

    meshio writes the cells of any mesh: two types have all its formats, and points those that treat
    vertices differently. VTK's XML is left out, which other tests write.
    """
    mesh = MESHES[name]
    if name in ("tetrahedra", "triangles"):
        found = suffixes_to_write(mesh)
    elif name == "points":
        found = [".exo", ".h5m", ".msh", ".obj", ".stl", ".vtk", ".xyz"]
    else:
        found = list(getattr(mesh, "_WRITERS", ()))
    own = list(getattr(mesh, "_WRITERS", ())) if name in ("tetrahedra", "triangles") else []
    return [
        each
        for each in dict.fromkeys([*own, *found])
        if each not in ALIASES and not is_vtk_xml(each)
    ]


CASES = [(name, suffix) for name in MESHES for suffix in suffixes(name)]


@pytest.fixture
def without_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read files of the formats that may crash in this process only."""
    monkeypatch.setattr("ambar.mesh.files.pyvista_readers.check_in_process", lambda *_: None)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    for name, mesh in MESHES.items():
        ambar.write_mesh(mesh, folder / f"{name}.ambar", fsync=False)
    return folder


def read_directly(path: Path, suffix: str) -> Any:
    """Return the mesh that PyVista, or meshio for formats that PyVista leaves to it, reads."""
    is_of_plugin = suffix in (".pv", ".zvtk")  # of pyvista-zstd, if it is installed
    if is_of_plugin or (suffix in CLASS_READERS and suffix not in (".cgns", ".inp", ".xdmf")):
        return pv.read(path)
    name = "gmsh" if suffix == ".msh" else None
    return pv.from_meshio(meshio.read(path, name))


def leaves(mesh: Any) -> list[Any]:
    if isinstance(mesh, pv.MultiBlock):
        return [leaf for block in mesh for leaf in leaves(block)]
    return [] if mesh is None else [mesh]


def assert_same(found: Any, expected: Any, left_out: Any = ()) -> None:
    for pair in zip(leaves(found), leaves(expected), strict=True):
        one, two = (each.cast_to_unstructured_grid() for each in pair)
        np.testing.assert_array_equal(one.points, two.points)
        np.testing.assert_array_equal(one.cells, two.cells)
        if pv.CellType.POLY_VERTEX not in one.celltypes:  # VTK's reader of XDMF
            np.testing.assert_array_equal(one.celltypes, two.celltypes)
        for name in two.point_data.keys() + two.cell_data.keys():
            if name not in left_out:
                np.testing.assert_array_equal(one[name], two[name], err_msg=name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("without_trials")
@pytest.mark.parametrize(("name", "suffix"), CASES)
def test_exports_are_what_the_libraries_read(
    name: str, suffix: str, stores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mesh, target = MESHES[name], Path(f"x{suffix}")
    if suffix in REFUSED.get(name, "").split():
        with pytest.raises(ambar.UnsupportedError, match=rf"^x\{suffix}: .* cannot be written as"):
            ambar.export(stores / f"{name}.ambar", target)
        assert list(tmp_path.iterdir()) == []
        return
    left_out = ambar.export(stores / f"{name}.ambar", target).left_out
    if suffix in NEVER_READ:
        assert all("no library reads" in why for why in left_out.values())
        return
    ambar.convert(target, "y.ambar", fsync=False)
    found = ambar.read_mesh("y.ambar")
    assert_same(found, read_directly(target, suffix), left_out)
    # Nothing is lost without a word.
    whole = pv.merge(leaves(found)).clean() if name == "blocks" else pv.merge(leaves(found))
    if "cells" not in left_out and name not in ("points", "blocks"):
        assert found.GetNumberOfCells() == mesh.n_cells
    if suffix not in (".gif", ".jpeg", ".jpg", ".png") and name != "blocks":
        assert whole.bounds == pytest.approx(mesh.bounds, abs=1e-5)
    names = {array for leaf in leaves(found) for array in leaf.array_names}
    arrays = {array for leaf in leaves(mesh) for array in leaf.array_names}
    assert arrays - names <= left_out.keys()


def openfoam(folder: Path) -> Path:
    """Write a cube of one cell at two times; return the file that marks the case."""
    corners = [(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)]
    sides = ["0 2 3 1", "4 5 7 6", "0 1 5 4", "2 6 7 3", "0 4 6 2", "1 3 7 5"]
    points = " ".join(f"({x} {y} {z})" for x, y, z in corners)
    files = {
        "points": ("vectorField", f"8 ({points})"),
        "faces": ("faceList", f"6 ({' '.join(f'4({side})' for side in sides)})"),
        "owner": ("labelList", "6 (0 0 0 0 0 0)"),
        "neighbour": ("labelList", "0 ()"),
        "boundary": ("polyBoundaryMesh", "1 ( wall { type wall; nFaces 6; startFace 0; } )"),
    }
    files = {f"constant/polyMesh/{name}": content for name, content in files.items()}
    for time in ("0.5", "1.5"):
        values = f"internalField uniform {time}; boundaryField {{ wall {{ type zeroGradient; }} }}"
        files[f"{time}/p"] = ("volScalarField", f"dimensions [0 2 -2 0 0 0 0]; {values}")
    files["system/controlDict"] = ("dictionary", "startTime 0; endTime 2; deltaT 0.5;")
    for name, (kind, content) in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        head = f"FoamFile {{ version 2.0; format ascii; class {kind}; object {path.name}; }}"
        path.write_text(f"{head}\n{content}\n")
    (folder / "case.foam").touch()
    return folder / "case.foam"


def ensight(folder: Path) -> Path:
    """Write a tetrahedron at two times."""
    (folder / "x.case").write_text(
        "FORMAT\ntype: ensight gold\nGEOMETRY\nmodel: x.geo\nVARIABLE\n"
        "scalar per node: 1 p x.p**\nTIME\ntime set: 1\nnumber of steps: 2\n"
        "filename start number: 0\nfilename increment: 1\ntime values: 0.5 1.5\n"
    )
    lines = ["a", "b", "node id off", "element id off", "part", f"{1:10}", "wing", "coordinates"]
    lines += [f"{4:10}", *(f"{float(value):12.5e}" for value in "010000100001")]
    lines += ["tetra4", f"{1:10}", "".join(f"{corner:10}" for corner in (1, 2, 3, 4))]
    (folder / "x.geo").write_text("\n".join([*lines, ""]))
    for number, value in enumerate([0.5, 1.5]):
        lines = ["p", "part", f"{1:10}", "coordinates", *[f"{value:12.5e}"] * 4, ""]
        (folder / f"x.p{number:02}").write_text("\n".join(lines))
    return folder / "x.case"


def ensight_of_two_sets(folder: Path) -> Path:
    """Write a tetrahedron with a time set of its own, which comes first."""
    path = ensight(folder)
    static = "TIME\ntime set: 2\nnumber of steps: 1\ntime values: 0\ntime set: 1"
    text = path.read_text().replace("TIME\ntime set: 1", static)
    path.write_text(text.replace("model: x.geo", "model: 2 x.geo"))
    return path


def plot3d(folder: Path) -> Path:
    """Write a grid of 4 x 3 x 2 points at two times, with the density as `p`."""
    shape = np.array([4, 3, 2], np.int32).tobytes()
    grid = np.moveaxis(np.indices((4, 3, 2), np.float32), 0, -1).reshape(24, 3, order="F")
    (folder / "x.xyz").write_bytes(shape + grid.tobytes(order="F"))
    files = []
    for time in (0.5, 1.5):
        conditions = np.array([0.5, 0, 1e5, time], np.float32).tobytes()
        (folder / f"{time}.q").write_bytes(
            shape + conditions + np.full((5, 24), time, np.float32).tobytes()
        )
        files.append({"time": time, "xyz": "x.xyz", "q": f"{time}.q"})
    text = json.dumps({"auto-detect-format": True, "filenames": files})
    (folder / "x.p3d").write_text(text)
    return folder / "x.p3d"


def nek5000(folder: Path) -> Path:
    """Write a spectral element of 2 x 2 x 2 points at two times."""
    grid = np.moveaxis(np.indices((2, 2, 2), "<f4"), 0, -1).reshape(8, 3, order="F")
    for number, time in enumerate((0.5, 1.5)):
        head = f"#std 4  2  2  2 {1:10} {1:10} {time:20.13E} {number:9} {0:6} {1:6} XUPT"
        marks = np.array([6.54321], "<f4").tobytes() + np.array([1], "<i4").tobytes()
        values = np.full((5, 8), time, "<f4").tobytes()
        content = head.ljust(132).encode() + marks + grid.tobytes(order="F") + values
        (folder / f"x0.f{number:05}").write_bytes(content)
    (folder / "x.nek5000").write_text(
        "filetemplate: x%01d.f%05d\nfirsttimestep: 0\nnumtimesteps: 2\n"
    )
    return folder / "x.nek5000"


@pytest.mark.usefixtures("without_trials")
@pytest.mark.parametrize(
    ("write", "array"),
    [
        (openfoam, "p"),
        (ensight, "p"),
        (ensight_of_two_sets, "p"),
        (plot3d, "Density"),
        (nek5000, "Pressure"),
    ],
)
def test_several_files_with_times_become_a_series(write: Any, array: str, tmp_path: Path) -> None:
    path = write(tmp_path)
    done = ambar.convert(path, tmp_path / "x.ambar", fsync=False)
    if path.suffix == ".case":  # all files are counted, except for rounding to steps
        whole = sum(file.stat().st_size for file in tmp_path.iterdir() if file.stem == "x")
        assert 0 <= whole - (tmp_path / "x.ambar").stat().st_size - done.source_bytes < 2
    series = ambar.open_mesh_series(tmp_path / "x.ambar")
    assert series.times == [0.5, 1.5]
    for time, mesh in zip(series.times, series, strict=True):
        blocks = leaves(mesh.read())
        assert blocks[0].n_cells == (6 if write is plot3d else 1)
        assert {float(value) for value in blocks[0][array].ravel()} == {time}


def test_files_of_a_case_of_ensight_are_counted(tmp_path: Path) -> None:
    """Those in folders were not counted, and other files with a number of the case as name were."""
    path = ensight(tmp_path)
    for name in ("2", "my x.p", "x.p0a", "geo/x[1].geo"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    text = path.read_text().replace("model: x.geo", "model: 1 geo/x[1].geo\nmatch:")
    more = 'vector per node: 1 v "my x.p"\nvector per node: 1 w geo\nTIME'
    path.write_text(text.replace("TIME", more))
    found = sorted(str(file.relative_to(tmp_path)) for file in _files_of_ensight(path))
    assert found == ["geo/x[1].geo", "my x.p", "x.p00", "x.p01"]


def test_readers_that_end_the_process_are_tried_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VTK's reader of PNG crashes, that of Nek5000 calls exit, that of NRRD does not end."""
    PICTURE.save(tmp_path / "x.png")
    nek5000(tmp_path)
    (tmp_path / "x.nrrd").write_bytes(b"NRRD0004\ntype: float\ndimension: 3\nsizes: 4 3 2\nenc")
    for name in ("x.png", "x0.f00000"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 3])
    monkeypatch.setattr("ambar.mesh.files.trial._SECONDS", 2.0)
    for name in ("x.png", "x.nek5000", "x.nrrd"):
        with pytest.raises(ambar.CorruptError, match=f"{name}: expected a complete .*VTK's reader"):
            ambar.convert(tmp_path / name, tmp_path / "y.ambar")
    assert not (tmp_path / "y.ambar").exists()


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("x.nrrd", b"NRRD0004\ntype: uint16_t\ndimension: 3\nsizes: 4 3 2\nencoding: raw\n\n"),
        ("x.pnm", b"P6\n# a comment\n4 4 255\n"),
    ],
)
def test_images_with_too_few_values_are_errors(name: str, header: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(header + bytes(48))
    check_length(tmp_path / name)
    (tmp_path / name).write_bytes(header + bytes(47))
    with pytest.raises(ambar.CorruptError, match=f"{name}: expected 48 bytes of .*, found 47"):
        ambar.convert(tmp_path / name, tmp_path / "y.ambar")


class TimedSource(pv.BaseVTKReader):
    """Reads spheres whose radius is the time."""

    time = 1.0

    def Update(self) -> None:  # noqa: N802 - the name of VTK
        self._data_object = pv.Sphere(radius=self.time, theta_resolution=4, phi_resolution=4)

    def UpdateInformation(self) -> None:  # noqa: N802 - the name of VTK
        """Do nothing: the times are constants."""


class TimedReader(pv.BaseReader, pv.TimeReader):
    """A reader class of another package."""

    _class_reader = TimedSource
    _vtk_module_name = ""
    time_values = (1.0, 2.0)
    number_time_points = 2
    active_time_value = 1.0

    def time_point_value(self, time_point: int) -> float:
        return self.time_values[time_point]

    def set_active_time_point(self, time_point: int) -> None:
        self.reader.time = self.time_values[time_point]

    def set_active_time_value(self, time_value: float) -> None:
        self.reader.time = time_value


def write_probe(mesh: Any, path: str) -> None:
    Path(path).write_text(f"{mesh.n_cells} cells")


@pytest.mark.filterwarnings("ignore:.*does not hold unchanged")
def test_formats_of_other_packages(tmp_path: Path) -> None:
    (tmp_path / "x.probe").write_text("a mesh")
    with pytest.raises(ambar.UnsupportedError, match=r"x\.probe: expected a NetCDF"):
        ambar.convert(tmp_path / "x.probe", tmp_path / "x.ambar")
    reading, writing = pv.core.utilities.reader_registry, pv.core.utilities.writer_registry
    before = reading._save_registry_state(), writing._save_registry_state()
    pv.register_reader(".probe", lambda path, **_: pv.Cube() if Path(path).exists() else None)
    pv.register_reader(".timed", TimedReader)
    pv.register_writer(".report", write_probe)
    meshio.register_format("probe", [".by_meshio"], None, {"probe": meshio.off.write})
    try:
        ambar.convert(tmp_path / "x.probe", tmp_path / "x.ambar", fsync=False)
        (tmp_path / "x.timed").write_text("spheres")
        ambar.convert(tmp_path / "x.timed", tmp_path / "timed.ambar", fsync=False)
        ambar.write_mesh(MESHES["triangles"], tmp_path / "t.ambar", fsync=False)
        ambar.export(tmp_path / "t.ambar", tmp_path / "x.report")
        ambar.export(tmp_path / "t.ambar", tmp_path / "x.by_meshio")
    finally:
        reading._restore_registry_state(before[0])
        writing._restore_registry_state(before[1])
        meshio.deregister_format("probe")
    assert ambar.open_mesh(tmp_path / "x.ambar").n_cells == 6
    series = ambar.open_mesh_series(tmp_path / "timed.ambar")
    assert series.times == [1.0, 2.0]
    assert [mesh.read().length for mesh in series] == pytest.approx([12**0.5, 48**0.5], rel=0.1)
    assert (tmp_path / "x.report").read_text() == f"{MESHES['triangles'].n_cells} cells"
    assert (tmp_path / "x.by_meshio").read_text().startswith("OFF")
    # PyVista knows the package that reads these files.
    (tmp_path / "x.frd").write_text("    1C\n")
    with pytest.raises(ImportError, match="pip install pyvista-frd-reader"):
        ambar.convert(tmp_path / "x.frd", tmp_path / "y.ambar")


def dicom(number: int, values: np.ndarray) -> bytes:
    """Return a slice of a scan, with the tags that an image needs, in explicit little endian."""

    def element(group: int, tag: int, kind: str, content: str | int | bytes) -> bytes:
        if isinstance(content, int):
            content = content.to_bytes(2, "little")
        data = content.encode() if isinstance(content, str) else content
        data += (b"\0" if kind == "UI" else b" ") * (len(data) % 2)
        length = 4 if kind == "OW" else 2
        begin = np.array([group, tag], "<u2").tobytes() + kind.encode() + bytes(length - 2)
        return begin + len(data).to_bytes(length, "little") + data

    syntax = element(2, 0x10, "UI", "1.2.840.10008.1.2.1")
    meta = element(2, 0, "UL", len(syntax).to_bytes(4, "little")) + syntax
    rows, columns = values.shape
    numbers = {2: 1, 0x10: rows, 0x11: columns, 0x100: 16, 0x101: 16, 0x102: 15, 0x103: 0}
    image = {tag: element(0x28, tag, "US", value) for tag, value in numbers.items()}
    image[4] = element(0x28, 4, "CS", "MONOCHROME2")
    image[0x30] = element(0x28, 0x30, "DS", "0.5\\0.5")
    place = element(8, 0x18, "UI", f"1.2.3.{number}") + element(0x18, 0x50, "DS", "2.0")
    place += element(0x20, 0x0E, "UI", "1.2.3.4") + element(0x20, 0x13, "IS", str(number + 1))
    place += element(0x20, 0x32, "DS", f"0\\0\\{2 * number}")
    place += element(0x20, 0x37, "DS", "1\\0\\0\\0\\1\\0")
    tags = b"".join(image[tag] for tag in sorted(image))
    pixels = element(0x7FE0, 0x10, "OW", values.astype("<u2").tobytes())
    return bytes(128) + b"DICM" + meta + place + tags + pixels


def test_a_folder_of_dicom_is_an_image(tmp_path: Path) -> None:
    folder = tmp_path / "scan"
    folder.mkdir()
    values = np.random.default_rng(0).integers(0, 1000, (3, 4, 5))
    for number in range(3):
        (folder / f"{number}.dcm").write_bytes(dicom(number, values[number]))
    ambar.convert(folder, tmp_path / "x.ambar", fsync=False)
    found, expected = ambar.read_mesh(tmp_path / "x.ambar"), pv.read(folder)
    assert (found.dimensions, found.spacing) == ((5, 4, 3), (0.5, 0.5, 2.0))
    np.testing.assert_array_equal(found.active_scalars, expected.active_scalars)
    assert set(found.active_scalars.tolist()) == set(values.ravel().tolist())
    (folder / "notes.txt").touch()
    assert not is_mesh_file(folder)


def test_hdf5_is_a_mesh_by_its_content(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    MESHES["tetrahedra"].save(tmp_path / "x.vtkhdf")
    (tmp_path / "x.vtkhdf").rename(tmp_path / "x.hdf")
    with h5py.File(tmp_path / "y.hdf", "w") as file:
        file["values"] = np.arange(5.0)
    assert is_mesh_file(tmp_path / "x.hdf")
    assert not is_mesh_file(tmp_path / "y.hdf")
    ambar.convert(tmp_path / "x.hdf", tmp_path / "x.ambar", fsync=False)
    assert_same(ambar.read_mesh(tmp_path / "x.ambar"), MESHES["tetrahedra"])


def test_a_mesh_of_meshio_that_vtk_lacks_is_refused(tmp_path: Path) -> None:
    points, corners = np.zeros((6, 3)), [("triangle", [[0, 1, 2]])]
    half = meshio.Mesh(points, corners, point_data={"h": np.zeros(6, "f2")})
    with pytest.raises(ambar.UnsupportedError, match=r"triangle and the arrays h \(float16\)"):
        ambar.write_mesh(half, tmp_path / "x.ambar")
    other = meshio.Mesh(points, [("VTK_LAGRANGE_TRIANGLE", [range(6)])])
    with pytest.raises(ambar.UnsupportedError, match="the cells VTK_LAGRANGE_TRIANGLE"):
        ambar.write_mesh(other, tmp_path / "x.ambar")


def test_objects_of_meshio_keep_all_data(tmp_path: Path) -> None:
    mesh = meshio.Mesh(
        np.random.default_rng(0).random((5, 3)).astype(np.float32),
        [("tetra", [[0, 1, 2, 3]]), ("triangle", [[0, 1, 2], [1, 2, 4]])],
        point_data={"id": np.arange(5) + 2**60},
        cell_data={"mass": [np.array([1.5]), np.array([2.5, 3.5])]},
        point_sets={"left": np.array([0, 4])},
        cell_sets={"wall": [None, np.array([1])], "all": [np.array([0]), np.array([0, 1])]},
        field_data={"inlet": np.array([3, 2])},
    )
    mesh.cell_sets["odd"] = [np.array([-7]), np.array([99])]
    with pytest.warns(UserWarning, match=r"'odd' of the meshio\.Mesh is left out"):
        ambar.write_mesh(mesh, tmp_path / "x.ambar", fsync=False)
    found = ambar.read_mesh(tmp_path / "x.ambar")
    assert found.points.dtype == np.float32
    np.testing.assert_array_equal(found.points, mesh.points)
    assert found.celltypes.tolist() == [10, 5, 5]
    assert found["id"].tolist() == mesh.point_data["id"].tolist()
    assert found["mass"].tolist() == [1.5, 2.5, 3.5]
    assert found["left"].tolist() == [1, 0, 0, 0, 1]
    assert (found["wall"].tolist(), found["all"].tolist()) == ([0, 0, 1], [1, 1, 1])
    assert found.field_data["inlet"].tolist() == [3, 2]
    assert list(mesh.cell_sets) == ["wall", "all", "odd"]
