"""AMReX checkpoints: written again bit for bit, with ghost cells, nodal values and other files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.formats.test_amrex import same_files
from tests.helpers.command_line import run
from tests.helpers.plotfile_writer import Box, _precision

BOXES: list[list[Box]] = [
    [((0, 0, 0), (15, 15, 15)), ((16, 0, 0), (31, 15, 15)), ((0, 16, 0), (31, 31, 15))],
    [((8, 8, 8), (23, 23, 23)), ((24, 8, 8), (39, 15, 23))],
]


def write_multifab(
    place: Path,
    boxes: list[Box],
    components: int,
    nodal: tuple[int, int, int],
    ghosts: int,
    dtype: str,
) -> None:
    """Write the FABs and the header of a MultiFab, as VisMF does, with two FABs in each file."""
    random = np.random.default_rng(len(place.name) + components)
    kind = f"({','.join(map(str, nodal))})"
    contents: dict[str, bytes] = {}
    lines = ["1", "1", str(components), str(ghosts), f"({len(boxes)} 0"]
    on_disk = []
    for number, (lo, hi) in enumerate(boxes):
        name = f"{place.name}_D_{number // 2:05}"
        low = [a - ghosts for a in lo]
        high = [b + ghosts + n for b, n in zip(hi, nodal, strict=True)]
        shape = [components, *(b - a + 1 for a, b in zip(low, high, strict=True))]
        values = np.cumsum(random.standard_normal(shape), axis=1).astype(dtype)
        values[0, 0, 0, 0] = np.nan
        corners = " ".join(f"({','.join(map(str, end))})" for end in (low, high))
        head = f"FAB {_precision(values.dtype)}({corners} {kind}) {components}\n"
        before = contents.setdefault(name, b"")
        on_disk.append(f"FabOnDisk: {name} {len(before)}")
        contents[name] = before + head.encode() + b"".join(f.tobytes(order="F") for f in values)
        lines.append(f"(({','.join(map(str, lo))}) ({','.join(map(str, hi))}) {kind})")
    place.parent.mkdir(parents=True, exist_ok=True)
    lines += [")", str(len(boxes)), *on_disk, ""]
    Path(f"{place}_H").write_text("\n".join(lines))
    for name, content in contents.items():
        (place.parent / name).write_bytes(content)


def write_checkpoint(folder: Path) -> Path:
    """Write a checkpoint in the layout of AMReX's class Amr, with particles and other files."""
    for level, boxes in enumerate(BOXES):
        place = folder / f"Level_{level}"
        write_multifab(place / "SD_0_New_MF", boxes, 3, (0, 0, 0), 2, "<f8")
        write_multifab(place / "SD_1_New_MF", boxes, 1, (1, 0, 0), 0, "<f8")
        write_multifab(place / "SD_2_Old_MF", boxes, 1, (1, 1, 1), 1, "<f4")
        write_multifab(place / "SD_3_New_MF", boxes, 1, (0, 0, 0), 0, ">f8")
    (folder / "Header").write_text("CheckPointVersion_1.0\n3\n0.25\n1\n1\n")
    (folder / "FullBackup").mkdir()
    (folder / "state.bin").write_bytes(bytes(range(256)) * 5)
    (folder / "empty").write_bytes(b"")
    species = folder / "tracers" / "Level_0"
    species.mkdir(parents=True)
    (folder / "tracers" / "Header").write_text("Version_Two_Dot_One_double\n3\n")
    (species / "Particle_H").write_text("(1 0\n)\n")
    numbers = np.arange(3000, dtype="<i4").tobytes() + np.linspace(0, 1, 6001).tobytes()
    (species / "DATA_00000").write_bytes(numbers)
    return folder


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint") / "chk00100")


def test_a_checkpoint_is_named_by_what_opens_stores(checkpoint: Path) -> None:
    with pytest.raises(
        ambar.InvalidError, match="found a folder of the kind 'checkpoint'; convert"
    ):
        ambar.open(checkpoint)


def test_a_checkpoint_is_written_again_bit_for_bit(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, again = tmp_path / "chk.ambar", tmp_path / "chk00100_again"
    code, _, _ = run(capsys, "convert", checkpoint, target, "--no-progress")
    assert code == 0
    store = ambar.open(target)
    assert isinstance(store, ambar.Store)
    store.verify()
    assert run(capsys, "export", target, again, "--no-progress")[0] == 0
    same_files(checkpoint, again)
    assert (again / "FullBackup").is_dir()
    code, out, _ = run(capsys, "info", target)
    assert code == 0
    for text in ("chk00100", "Level_1/SD_0_New_MF", r"nodes \(1,0,0\)", "Level_0/SD_3_New_MF"):
        assert re.search(text, out), text
    # The arrays have the values: FABs of equal shape are rows.
    shapes = [store[path].shape for path in store if path.startswith("values/")]
    assert (3, 3, 20, 20, 20) in shapes
    ambar.convert(checkpoint, target, mode="w", profile="raw")
    ambar.export(target, again, mode="w")
    same_files(checkpoint, again)


def test_small_and_many_arrays_are_the_same_files(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of large checkpoints, arrays are written before all files are read."""
    from ambar.formats.amrex import checkpoint as module

    for name in ("_ARRAY_BYTES", "_SMALL_BYTES", "_PENDING_BYTES", "_CACHED_BYTES"):
        monkeypatch.setattr(module, name, 50_000)
    target = tmp_path / "chk.ambar"
    ambar.convert(checkpoint, target)
    store = ambar.open_store(target)
    sizes = [store[path].nbytes for path in store if path.startswith("values/")]
    assert len(sizes) > 15
    assert max(sizes) < 100_000  # a FAB of 192,000 bytes is divided
    ambar.export(target, tmp_path / "again")
    same_files(checkpoint, tmp_path / "again")


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("truncated", "SD_0_New_MF_D_00000: expected .* bytes of the FAB at byte"),
        ("missing", "SD_1_New_MF_D_00001: the file does not exist"),
        ("header", "SD_2_Old_MF_D_00000: expected the header of a FAB at byte"),
        ("link", "expected files and folders"),
    ],
)
def test_damaged_checkpoints_leave_nothing_behind(case: str, why: str, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "chk")
    level = folder / "Level_0"
    if case == "truncated":
        path = level / "SD_0_New_MF_D_00000"
        path.write_bytes(path.read_bytes()[:-8])
    elif case == "missing":
        (level / "SD_1_New_MF_D_00001").unlink()
    elif case == "header":
        path = level / "SD_2_Old_MF_D_00000"
        path.write_bytes(path.read_bytes() + b"more")
    else:
        (folder / "link").symlink_to(level)
    with pytest.raises(ambar.AmbarError, match=why):
        ambar.convert(folder, tmp_path / "x.ambar")
    assert [path.name for path in tmp_path.iterdir()] == ["chk"]


@pytest.mark.parametrize(
    ("box", "components"),
    [
        ("((0,0,0) (4294967295,2147483647,0) (0,0,0))", 1),  # 2^63 values
        ("((0,0) (1,1,1) (0,0,0))", 1),
        ("((0,0,) (1,1,1) (0,0,0))", 1),
        ("((4,0,0) (1,1,1) (0,0,0))", 1),
        ("((0,0,0) (1,1,1) (0,0,0))", 0),
    ],
)
def test_invalid_headers_of_fabs_are_refused(box: str, components: int, tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path / "chk")
    place = folder / "Level_0" / "SD_0_New_MF_D_00000"
    head = f"FAB {_precision(np.dtype('<f8'))}{box} {components}\n"
    place.write_bytes(head.encode() + bytes(64))
    with pytest.raises(ambar.CorruptError, match="SD_0_New_MF_D_00000: expected"):
        ambar.convert(folder, tmp_path / "x.ambar")
    assert not (tmp_path / "x.ambar").exists()


def test_invalid_requests_and_stores_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    target = tmp_path / "x.ambar"
    with pytest.raises(ValueError, match="without loss"):
        ambar.convert(checkpoint, target, error_bound=1e-3)
    with pytest.raises(ValueError, match="components"):
        ambar.convert(checkpoint, target, components=["cells"])
    assert not target.exists()
    ambar.convert(checkpoint, target)
    with pytest.raises(ValueError, match="as a whole"):
        ambar.convert(checkpoint, target, mode="a")
    with pytest.raises(ValueError, match="without loss"):
        ambar.convert(target, tmp_path / "z.ambar", error_bound=1e-3)
    with pytest.raises(ValueError, match="fields does not apply"):
        ambar.convert(target, tmp_path / "z.ambar", fields=["values/0"])
    ambar.convert(target, tmp_path / "z.ambar", profile="small")
    ambar.export(tmp_path / "z.ambar", tmp_path / "copy")
    same_files(checkpoint, tmp_path / "copy")
    names = ambar.open_store(target)["files"][:]
    for name in ("../outside", "/outside"):
        with ambar.create(tmp_path / "y.ambar", "w") as writer:
            store = ambar.open_store(target)
            for path in store:
                writer.create_array(path, store[path][:])
            writer.create_array("files", np.array([name, *names[1:]]))
            writer._create_group("/", store.attrs)
        with pytest.raises(ambar.CorruptError, match="outside"):
            ambar.export(tmp_path / "y.ambar", tmp_path / "again")
    segments = ambar.open_store(target)["segments"][:]
    for place, value, why in (
        ((-1, 0), 99, "other files than"),
        ((3, 1), 99, "the array values/99 .* is missing"),
        ((3, 2), 2**62, "values that values/. lacks"),
        ((3, 3), -1, "values that values/. lacks"),
        ((3, 3), 0, r"expected \d.* bytes of files in the segments"),
    ):
        changed = segments.copy()
        changed[place] = value
        with ambar.create(tmp_path / "y.ambar", "a") as writer:
            writer.create_array("files", names)
            writer.create_array("segments", changed)
        with pytest.raises(ambar.CorruptError, match=why):
            ambar.export(tmp_path / "y.ambar", tmp_path / "again")
    assert not (tmp_path / "again").exists()
