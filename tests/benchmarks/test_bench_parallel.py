"""The study of many ranks measures every version, finds out what reads other values, leaves out."""

from __future__ import annotations

import ctypes
import json
import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ambar_bench.cli import app
from ambar_bench.files import size_on_disk
from ambar_bench.parallel import build as building
from ambar_bench.parallel import model, report, study, targets
from ambar_bench.parallel.launch import Launcher, Task, launcher
from ambar_bench.parallel.plan import Job, require
from ambar_bench.parallel.results import Back, Row, Study
from ambar_bench.parallel.versions import VERSIONS
from ambar_bench.process import Failure

for program in ("mpicc", "mpirun"):
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}", allow_module_level=True)

KEYS = ["serial-ascii", "ascii-multifile", "binary-multifile", "mpiio-collective"]
DOUBLES = 20_003


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Return a small study of versions that need nothing but MPI."""
    scratch = tmp_path_factory.mktemp("study")
    made = study.run_study(scratch, doubles=DOUBLES, ranks=[3], readers=[2], keys=KEYS, rounds=1)
    assert list(scratch.iterdir()) == []
    return made


def test_every_version_is_measured_on_every_number_of_ranks(found: Study) -> None:
    assert found.left_out == {}
    for data in ("random", "smooth"):
        assert [row.version for row in found.of(data, 3)] == KEYS
    assert found.machine["MPI"]
    for row in found.rows:
        assert len(row.write) == len(row.cold) == len(row.warm) == len(row.read_cpu) == 1
        assert min(row.write + row.write_cpu + row.cold + row.warm) > 0
        assert row.error == 0
        own_file = row.version.endswith("multifile")
        assert row.files == (3 if own_file else 1)
        text = "ascii" in row.version
        assert row.doubles == (DOUBLES // 10 if text else DOUBLES)
        assert row.length == row.doubles * (24 if text else 8)


def test_other_numbers_of_ranks_read_the_same_bits(found: Study) -> None:
    assert [(back.version, back.readers) for back in found.backs] == [(key, 2) for key in KEYS]
    assert all(back.writers == 4 and back.differing == 0 for back in found.backs)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    made = building.build(tmp_path_factory.mktemp("programs"), set())
    library = ctypes.CDLL(str(made.data))
    library.compare.restype = ctypes.c_uint64
    return library


def _values(library: ctypes.CDLL, kind: int, start: int, count: int) -> Any:
    values = np.empty(count)
    at = ctypes.c_void_p(values.ctypes.data)
    library.generate(kind, ctypes.c_uint64(start), ctypes.c_uint64(count), at)
    return values


def test_values_are_functions_of_their_places(data: ctypes.CDLL) -> None:
    for kind in (0, 1):
        whole = _values(data, kind, 0, 5000)
        parts = [_values(data, kind, start, 1250) for start in range(0, 5000, 1250)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()
    rough, smooth = _values(data, 0, 0, 100_000), _values(data, 1, 0, 100_000)
    assert 0 <= rough.min() < 0.001
    assert 0.999 < rough.max() < 1
    assert abs(rough.mean() - 0.5) < 0.005
    assert abs(np.corrcoef(rough[1:], rough[:-1])[0, 1]) < 0.02
    assert len(np.unique(rough * 2.0**53 % 1024)) == 1024  # the last bits are random too
    assert np.abs(smooth).max() <= 1
    assert np.corrcoef(smooth[1:], smooth[:-1])[0, 1] > 0.99
    assert np.abs(np.diff(smooth)).max() < 0.1  # where blocks meet as well


def test_other_values_are_found_out(data: ctypes.CDLL) -> None:
    def compared(values: Any) -> tuple[int, float]:
        largest, at = ctypes.c_double(), ctypes.c_void_p(values.ctypes.data)
        count = ctypes.c_uint64(len(values))
        return data.compare(1, ctypes.c_uint64(1000), count, at, ctypes.byref(largest)), (
            largest.value
        )

    values = _values(data, 1, 1000, 3000)
    assert compared(values) == (0, 0.0)
    values[7] += 0.25
    values[2999] += 0.5
    assert compared(values) == (2, pytest.approx(0.5))
    values[0] = np.nan
    assert compared(values) == (3, np.inf)


def test_a_read_of_other_values_has_no_figures() -> None:
    exact = Task(VERSIONS["ambar"], "smooth", 10, 1e-4, "warm")
    bounded = replace(exact, version=VERSIONS["ambar-bounded"])
    require(bounded, {"differing": 10, "error": 1e-4})
    with pytest.raises(Failure, match="an error of 0.0002 over 0.0001"):
        require(bounded, {"differing": 1, "error": 2e-4})
    with pytest.raises(Failure, match="it reads 1 other values"):
        require(exact, {"differing": 1, "error": 1e-300})


def test_what_fails_is_left_out_with_its_reason(tmp_path: Path) -> None:
    programs = building.build(tmp_path / "programs", {"binary"})
    task = Task(VERSIONS["binary-multifile"], "random", 100, 1e-4, "write,cold,warm")
    started = launcher(programs, None)
    with pytest.raises(Failure, match=r"rank 0: .*nowhere.*No such file or directory"):
        started.run(task, 1, tmp_path / "nowhere")
    unknown = replace(VERSIONS["binary-multifile"], key="cuneiform")
    with pytest.raises(Failure, match="no version 'cuneiform'"):
        started.run(replace(task, version=unknown), 1, tmp_path)
    with pytest.raises(Failure, match="1 ranks were started of 2"):  # as another MPI's mpirun does
        Launcher(programs, ["bash", "-c", '"${@:2}"']).run(task, 2, tmp_path)
    job = Job(Launcher(programs, ["false"]), task, 1, tmp_path / "turn")
    job.turn()
    assert job.failed == "it ended with code 1"
    assert not (tmp_path / "turn").exists()


def test_libraries_that_are_missing_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(building.PACKAGES, "netcdf", ("netcdf-does-not-exist",))
    monkeypatch.setenv("AMBAR_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("ADIOS2_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr(study, "find_spec", lambda _: None)
    keys = ["netcdf-collective", "adios2", "ambar", "python", "hdf5-zstd-1"]
    made = study.run_study(tmp_path, doubles=8, keys=keys)
    assert made.rows == []
    left_out = made.left_out
    assert left_out["netCDF-4, collective"] == "no netcdf_par.h was found"
    assert left_out["ADIOS2 BP5"] == "no adios2_c.h was found"
    assert "ambar_mpi.h: No such file" in left_out["ambar"]
    assert left_out["ambar, Python"] == "no module mpi4py"
    assert "HDF5, shuffle, zstd 1" in left_out
    assert "left out: ADIOS2 BP5: no adios2_c.h was found." in report.markdown(made)
    monkeypatch.setenv("MPICC", "mpicc-missing")
    with pytest.raises(KeyError, match="mpicc-missing: no such compiler"):
        study.run_study(tmp_path)


def test_arrays_that_do_not_fit_are_halved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 12_000))
    made = study.run_study(tmp_path, doubles=4000, keys=[], data=["smooth"])
    assert made.doubles == 1000
    assert made.text_doubles == 100
    assert "4,000 doubles were asked for; memory or disk have room for 1,000" in report.markdown(
        made
    )


@pytest.mark.parametrize("program", ["ambar", "rank"])
def test_ambar_is_measured_from_c_and_python(program: str, tmp_path: Path) -> None:
    if missing := building.build(tmp_path / "programs", {program}).missing:
        pytest.skip(f"ambar's library for C: {missing[program]}")
    if program == "rank":
        pytest.importorskip("mpi4py")
    keys = [version.key for version in VERSIONS.values() if version.program == program]
    made = study.run_study(
        tmp_path, doubles=DOUBLES, data=["smooth"], ranks=[2], readers=[3], keys=keys, rounds=1
    )
    assert made.left_out == {}
    assert [row.version for row in made.rows] == keys
    assert all(row.files == 1 for row in made.rows)
    bounded = ["bounded" in key for key in keys]
    assert [row.error > 0 for row in made.rows] == bounded
    assert max(row.error for row in made.rows) <= 1e-4
    assert [back.differing > 0 for back in made.backs] == bounded
    ratios = [row.ratio for row in made.rows]
    assert 0.5 < ratios[0] <= 1  # raw
    assert ratios[-1] > 2  # error-bounded


def test_holes_take_no_room(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        file.seek(1 << 20)
        file.write(b"end")
    assert 3 <= size_on_disk(tmp_path) < 1 << 17


def test_invalid_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no data 'rough'; available: random"):
        study.run_study(tmp_path, data=["rough"])
    with pytest.raises(KeyError, match="no version 'tape'; available: serial-ascii"):
        study.run_study(tmp_path, keys=["tape"])
    wrong: list[dict[str, Any]] = [
        {"doubles": 2},
        {"ranks": [0]},
        {"text_share": 0},
        {"bound": 0},
        {"bandwidths": [0]},
    ]
    for options in wrong:
        with pytest.raises(ValueError, match="expected"):
            study.run_study(tmp_path, **options)


def _row(version: str, data: str = "smooth", **changed: Any) -> Row:
    base = Row(version, data, 2, 1000, 8000, 8000, 1, [2.0], [1.0], [1.0], [0.5], [1.0], 0.0)
    return replace(base, **changed)


@pytest.fixture
def fabricated(found: Study) -> Study:
    rows = [
        _row("serial-ascii", write_cpu=[48.0]),
        _row("binary-multifile"),
        _row("pnetcdf-collective", write=[1.0, 3.0, 1.5], length=16000),
        _row("hdf5-zstd-1", bytes=5000, write_cpu=[8.0]),
        _row("ambar-raw", write=[2.1], cold=[1.5]),
        _row("ambar", bytes=4000, write_cpu=[2.0]),
        _row("ambar-bounded", bytes=100, write=[0.75], error=9e-5),
    ]
    backs = [Back("ambar", "smooth", 4, 3, 0.1, 0, 0.0), Back("ambar-raw", "smooth", 4, 3, 1, 5, 1)]
    return replace(found, doubles=1000, ranks=[2], rows=rows, backs=backs, rounds=3, readers=[3])


def test_requested_values_are_printed_beside_measured_ones(fabricated: Study) -> None:
    lines = targets.lines(fabricated)
    measured = [line.split("measured")[1] for line in lines]
    assert measured == [
        ": smooth: 1.05 (2 ranks)",
        ": smooth: 1.50 (2 ranks)",
        ": smooth: 1.00 (2 ranks)",
        ", ambar: smooth: 0.25 for ratio 2.000 to 1.600 (2 ranks)",
        ", ambar-bounded by the fastest of them: smooth: 0.50 of PnetCDF, collective (2 ranks)",
        ": other values: ambar-raw by 3 ranks",
    ]
    fabricated.backs.pop()
    assert targets.lines(fabricated)[-1].endswith("bit for bit; measured: so are all 1 reads")
    assert targets.lines(replace(fabricated, rows=[], backs=[])) == []


def test_the_model_divides_the_work_and_not_the_bytes(fabricated: Study) -> None:
    one = fabricated.row("ambar", "smooth", 2)
    serial = fabricated.row("serial-ascii", "smooth", 2)
    assert one is not None
    assert serial is not None
    scale = model.DOUBLES / 1000
    assert model.seconds(one, 2, 10) == pytest.approx(scale * (2 / 96 + 4000 / 1e10))
    assert model.seconds(serial, 64, 10) == pytest.approx(scale * (48 + 8000 / 1e10))
    assert "a model, not measured: smooth" in report.markdown(fabricated)


def test_reports_hold_tables_notes_and_charts(fabricated: Study, tmp_path: Path) -> None:
    text = report.markdown(fabricated)
    assert "| PnetCDF, collective | 1.500 | 0 | 1.000 | 0.500 | 1.00 | 1.00 | 0.0 | 1.000 |" in text
    assert "| ambar | 2.000 * |" in text
    assert "| ambar, raw | 1.000, WRONG by 1.0e+00 |" in text
    assert "PnetCDF, collective: its files have holes, and are 2.00 times longer" in text
    pytest.importorskip("matplotlib")
    written = report.write(fabricated, tmp_path)
    assert [path.name for path in written] == [
        "parallel_1000.json",
        "parallel_1000.md",
        "parallel_1000_random.png",
        "parallel_1000_smooth.png",
        "parallel_1000_model.png",
    ]
    for path in written[2:]:
        assert path.read_bytes().startswith(b"\x89PNG")
    values = json.loads(written[0].read_text())
    assert values["rows"][2]["median_write"] == 1.5
    assert values["rows"][5]["ratio"] == 2


def test_the_command_measures_and_prints(tmp_path: Path) -> None:
    command = ["parallel", "--doubles", "100", "--versions", "binary-multifile"]
    command += ["--ranks", "2", "--readers", "", "--bandwidth", "", "--rounds", "1"]
    command += ["--data", "smooth", "--scratch", str(tmp_path / "new")]
    done = CliRunner().invoke(app, [*command, "--json", "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    values = json.loads(done.stdout)
    assert [(row["version"], row["ranks"]) for row in values["rows"]] == [("binary-multifile", 2)]
    assert values["backs"] == []
    assert list((tmp_path / "new").iterdir()) == []
    assert "smooth, 2 ranks, 100 doubles" in (tmp_path / "out" / "parallel_100.md").read_text()


@pytest.mark.parametrize("wrong", [["--ranks", "two"], ["--bandwidth", "fast"]])
def test_the_command_refuses_what_is_no_list(wrong: list[str]) -> None:
    assert CliRunner().invoke(app, ["parallel", *wrong]).exit_code == 2
