"""Plotfiles over time: runs become series in one store, are resumed, and written again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import ambar
from tests.formats.test_amrex import same_files
from tests.helpers.amrex_plotfiles import write_plotfile
from tests.helpers.command_line import run
from tests.helpers.plotfile_writer import Box
from tests.helpers.sample_outputs import amrex_sample, output

yt = pytest.importorskip("yt")
yt.set_log_level(40)

STEPS = range(0, 500, 10)
DOMAIN = (16, 8, 8)
BOXES: list[list[Box]] = [
    [((0, 0, 0), (7, 7, 7)), ((8, 0, 0), (15, 7, 7))],
    [((8, 4, 4), (15, 11, 11)), ((16, 4, 4), (23, 11, 7))],
]


def wave(time: float) -> Callable[..., np.ndarray]:
    """Return a wave at a time, as a function of places."""
    return lambda *places: np.asarray(np.sin(5 * places[0] - time) + places[1])


def write_step(folder: Path, step: int, *, name: str | None = None, later: float = 0.0) -> Path:
    """Write the plotfile of a step, whose time is a tenth of it."""
    time = step / 10
    fields = {"density": wave(time + later), "Temp": wave(2 * time)}
    path = folder / (name or f"plt{step:05}")
    return write_plotfile(path, BOXES, fields, domain=DOMAIN, time=time, step=step)


@pytest.fixture(scope="module")
def plotfiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with plotfiles of a run, and other files of it."""
    folder = tmp_path_factory.mktemp("run")
    for step in STEPS:
        write_step(folder, step)
    (folder / "inputs").write_text("max_step = 490\n")
    return folder


KILLED = """
import os, signal, sys
import ambar

def kill(done, total):
    if done > 2050:
        os.kill(os.getpid(), signal.SIGKILL)

ambar.convert(sys.argv[1], sys.argv[2], mode="a", progress=kill)
"""


def test_a_killed_conversion_is_resumed_and_exported(
    plotfiles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "run.ambar"
    command = [sys.executable, "-c", KILLED, str(plotfiles), str(target)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    before = ambar.open_series(target)
    assert before.outputs == list(STEPS)[: len(before)]
    code, out, _ = run(capsys, "verify", target, "--no-progress")
    assert code == 0
    assert "no damage" in out
    assert 15 < len(before) < len(STEPS)
    code, out, _ = run(
        capsys, "convert", f"{plotfiles}/plt*", target, "--resume", "--no-progress", "--json"
    )
    assert code == 0
    assert f'"plt{STEPS[-1]:05}"' in out
    for options, message in (
        ({"error_bound": {"density": 0.1}}, r"expected error_bound=None.*'density': '0\.1'"),
        ({"profile": "small"}, "expected profile='balanced'.*found profile='small'"),
        ({"fields": "density"}, r"expected fields=None.*found fields=\['density'\]"),
        ({"covered": "keep"}, "expected covered='auto'.*found covered='keep'"),
    ):
        with pytest.raises(ValueError, match=message):
            ambar.convert(plotfiles, target, mode="a", **options)
    series = ambar.open(target)
    assert isinstance(series, ambar.Series)
    assert series.outputs == list(STEPS)
    assert series.times.tolist() == [step / 10 for step in STEPS]
    for number in (0, 250, 490):
        snapshot = series.output(number)
        assert isinstance(snapshot.info, ambar.AmrexInfo)
        assert snapshot.info.steps[0] == number
        theirs = yt.load(str(plotfiles / f"plt{number:05}"))
        assert float(theirs.current_time) == snapshot.info.time
        grid = theirs.covering_grid(1, theirs.domain_left_edge, (32, 16, 16))
        cut = snapshot.amr.slice("density", axis="z", at=0.3, level=1).to_numpy()
        np.testing.assert_array_equal(cut, grid["boxlib", "density"].d[:, :, 4].T)
    cuts = [snapshot.amr.slice("Temp", axis="z", at=0.3, level=0)[3, 2] for snapshot in series]
    native = ambar.open_snapshot(plotfiles / "plt00490")
    assert cuts[-1] == native.amr.slice("Temp", axis="z", at=0.3, level=0)[3, 2]
    assert len({float(cut) for cut in cuts}) == len(STEPS)
    assert ambar.convert(plotfiles, target, mode="a").skipped == [f"plt{n:05}" for n in STEPS]
    again = tmp_path / "again"
    assert run(capsys, "export", target, again, "--no-progress")[0] == 0
    (again / "inputs").write_bytes((plotfiles / "inputs").read_bytes())
    same_files(plotfiles, again)
    one = tmp_path / "one"
    assert run(capsys, "export", target, one, "--output", "250", "--no-progress")[0] == 0
    same_files(plotfiles / "plt00250", one)
    with pytest.raises(KeyError, match="no output 7"):
        ambar.export(target, tmp_path / "none", output=7)
    assert not (tmp_path / "none").exists()
    picture = tmp_path / "a.png"
    assert run(capsys, "plot", target, picture, "--output", "20", "--resolution", "32")[0] == 0
    code, out, _ = run(capsys, "info", target)
    assert code == 0
    assert "output_00490" in out
    assert "49" in out
    found = yt.load(str(target), output=250)
    assert float(found.current_time) == 25.0


def test_info_of_a_series_has_the_bounds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, target = tmp_path / "run", tmp_path / "run.ambar"
    for step in (0, 10):
        write_step(folder, step)
    bound = {"density": "1e-3 relative", "density@1": "lossless", "Temp": "1e-3 of range"}
    ambar.convert(folder, target, error_bound=bound)
    code, out, _ = run(capsys, "info", target)
    assert code == 0
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert "output time components" in rows  # no expansion factor
    assert rows[rows.index("error bound of to the original values given bound") + 1 :] == [
        "amr/density 0.001 relative 1e-3 relative",
        "amr/density@1 - lossless",
        "amr/Temp by output 1e-3 of range",
    ]


def test_unfinished_plotfiles_are_left_out_until_they_are_complete(tmp_path: Path) -> None:
    folder, target = tmp_path / "run", tmp_path / "run.ambar"
    for step in (0, 10):
        (write_step(folder, step) / "job_info").write_text("a run\n")
    write_step(folder, 20, name="plt00020.temp")
    write_step(folder, 10, name="plt00010.old.1234567", later=1.0)
    newest = write_step(folder, 30)
    (folder / "plt00040").mkdir()
    (folder / "chk00010").mkdir()
    done = ambar.convert(folder, target, mode="a")
    assert done.converted == ["plt00000", "plt00010"]
    assert set(done.left_out) == {
        "plt00010.old.1234567",
        "plt00020.temp",
        "plt00030",
        "plt00040",
    }
    assert "plt00010 has job_info" in done.left_out["plt00030"]
    (newest / "job_info").write_text("a run\n")
    cells = newest / "Level_1" / "Cell_H"
    aside = cells.rename(tmp_path / "Cell_H")
    (folder / "plt00020.temp").rename(folder / "plt00020")
    (folder / "plt00020" / "job_info").write_text("a run\n")
    done = ambar.convert([folder / name for name in ("plt00030", "plt00020")], target, mode="a")
    assert done.converted == ["plt00020"]
    assert "Level_1" in done.left_out["plt00030"]
    # The run starts again from a checkpoint, and writes the step 10 again.
    aside.rename(cells)
    shutil.rmtree(folder / "plt00010")
    (write_step(folder, 10, later=2.0) / "job_info").write_text("a run\n")
    seen: list[int] = []
    for snapshot in ambar.follow(target, timeout=0.2):
        seen.append(snapshot.info.steps[0])
    assert seen == [0, 10, 20]
    done = ambar.convert(f"{folder}/plt000?0", target, mode="a")
    assert (done.replaced, done.converted) == (["plt00010"], ["plt00030"])
    series = ambar.open_series(target)
    assert series.outputs == [0, 10, 20, 30]
    expected = ambar.open_snapshot(folder / "plt00010").amr.read(["density"])["density"]
    np.testing.assert_array_equal(series[1].amr.read(["density"])["density"], expected)
    later = write_step(folder, 50)
    (later / "job_info").write_text("a run\n")
    (later / "notes.txt").write_text("files of users do not count\n")
    newest = write_step(folder, 60)
    (newest / "job_info").write_text("a run\n")
    both = [later, newest]
    assert ambar.convert(both, target, mode="a").converted == ["plt00050", "plt00060"]
    # A step without a fingerprint was written in situ, and is not replaced.
    with ambar.create(target, "a") as writer:
        attributes = writer._core.attributes("/output_00060")
        del attributes["ambar"]["source"]["fingerprint"]
        writer._core.set_attributes("/output_00060", attributes)
    shutil.rmtree(newest)
    (write_step(folder, 60, later=3.0) / "job_info").write_text("a run\n")
    done = ambar.convert(both, target, mode="a")
    assert (done.skipped, done.replaced) == (["plt00050", "plt00060"], [])


def damage(plotfile: Path) -> None:
    """Truncate a file of a plotfile."""
    fabs = plotfile / "Level_1" / "Cell_D_00000"
    fabs.write_bytes(fabs.read_bytes()[:-8])


def other_source(case: str, folder: Path) -> Path:
    """Return a source that is not of the run in a folder."""
    path = folder / "notes"
    if case == "dimensions":
        flat: list[Box] = [((0, 0), (7, 7))]
        path = write_plotfile(folder / "plt00010", [flat], {"density": wave(0)}, domain=(8, 8))
    elif case == "domain":
        path = write_plotfile(folder / "plt00010", BOXES, domain=DOMAIN, size=2.0)
    elif case == "fields":
        path = write_plotfile(folder / "plt00010", BOXES, {"Bx": wave(0)}, domain=DOMAIN)
    elif case == "code":
        path = output("sedov")
    elif case == "foreign":
        path.mkdir()
        (path / "a.txt").write_text("no plotfile\n")
    elif case == "absent":
        path = folder / "plt00010"
    else:
        name = {"two runs": "small_plt00000", "no number": "final"}.get(case, "plt00010")
        path = write_step(folder / ("other" if case == "same number" else ""), 0, name=name)
    return path


BAD = {
    "truncated": "Cell_D_00000",
    "dimensions": "plt00010: expected 3 dimensions like plt00000, found 2",
    "domain": r"plt00010: expected a domain of size \[1.0, .* like plt00000, found \[2.0, ",
    "fields": "plt00010: expected the fields density, Temp like plt00000, found Bx",
    "code": "output_00002: expected a plotfile",
    "foreign": "notes: expected a plotfile.*a folder with a.txt",
    "absent": "plt00010: expected a plotfile.*found nothing",
    "two runs": "found plt00000, small_plt00000; convert those of one run, .*/plt00000",
    "same number": "with the same number",
    "no number": "final: expected a number at the end",
}


@pytest.mark.parametrize("case", BAD)
def test_sources_that_are_not_runs_leave_no_files(case: str, tmp_path: Path) -> None:
    target = tmp_path / "x.ambar"
    first = write_step(tmp_path / "run", 10 if case == "same number" else 0)
    if case == "truncated":
        damage(first)
    paths = [first, other_source(case, tmp_path / "run")]
    with pytest.raises(ambar.AmbarError, match=BAD[case]):
        ambar.convert(paths, target)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_plotfiles_of_another_domain_are_not_added_to_a_series(tmp_path: Path) -> None:
    """Only the numbers of dimensions were compared."""
    target, other = tmp_path / "run.ambar", tmp_path / "other"
    ambar.convert(write_step(tmp_path / "run", 0).parent, target, mode="a", fsync=False)
    fields = {"density": wave(0)}
    sizes = write_plotfile(other / "plt00010", BOXES, fields, domain=DOMAIN, size=2.0)
    cells = write_plotfile(tmp_path / "long" / "plt00020", BOXES, fields, domain=(32, 8, 8))
    ratio = write_step(other, 30)
    header = ratio / "Header"
    header.write_text(header.read_text().replace("(31,15,15)", "(63,31,31)"))
    for path, message in (
        (
            sizes,
            r"plt00010: expected a domain of size \[1.0.* the outputs in .*run.ambar, found \[2",
        ),
        (cells, "plt00020: expected a domain of 16 x 8 x 8 cells on level 0 like .*, found 32 x 8"),
        (ratio, "plt00030: expected a domain of 32 x 16 x 16 cells on level 1 .*, found 64 x 32"),
    ):
        with pytest.raises(ambar.InvalidError, match=message):
            ambar.convert(path, target, mode="a")
    later = tmp_path / "later.ambar"
    ambar.convert(cells.parent, later, mode="a", fsync=False)
    with pytest.raises(ambar.InvalidError, match="expected a domain of 16 x 8 x 8 cells on level"):
        ambar.convert(later, target, mode="a")
    with pytest.raises(ambar.InvalidError, match="expected a domain of 32 x 8 x 8 cells on level"):
        ambar.merge([later, target], tmp_path / "both.ambar")
    # A plotfile with fewer levels has the same domain.
    ambar.convert(
        write_plotfile(tmp_path / "plt00040", BOXES[:1], fields, domain=DOMAIN, step=40),
        target,
        mode="a",
        fsync=False,
    )
    assert ambar.open_series(target).outputs == [0, 40]


def test_bounds_of_levels_that_a_run_reaches_later(tmp_path: Path) -> None:
    fields = {"density": wave(0.0)}
    for step, boxes in ((0, BOXES[:1]), (10, BOXES)):
        write_plotfile(tmp_path / f"plt{step:05}", boxes, fields, domain=DOMAIN, step=step)
    bounds = {"density": 1e-2, "density@1:": 1e-4}
    target = tmp_path / "run.ambar"
    ambar.convert(tmp_path, target, error_bound=bounds)
    later = ambar.open_series(target).output(10).amr
    exact = ambar.open_snapshot(tmp_path / "plt00010").amr
    for level, bound in ((0, 1e-2), (1, 1e-4)):
        parts = (amr.read("density", levels=(level, level)) for amr in (later, exact))
        found, expected = (part["density"] for part in parts)
        assert 0.1 * bound < np.abs(found - expected).max() <= bound
    with pytest.raises(KeyError, match="such a level does not exist; levels: 0 to 0"):
        ambar.convert(tmp_path / "plt00000", tmp_path / "one.ambar", error_bound={"density@1": 1})


def test_domains_of_plotfiles_in_hdf5_are_compared(tmp_path: Path) -> None:
    for number in (0, 10):
        path = tmp_path / f"plt{number:05}.h5"
        shutil.copyfile(amrex_sample("advection_none.h5"), path)
    with h5py.File(path, "r+") as file:
        file["level_0"].attrs["prob_hi"] = 2 * file["level_0"].attrs["prob_hi"]
    with pytest.raises(ambar.InvalidError, match=r"plt00010.h5: expected a domain of size \["):
        ambar.convert(tmp_path, tmp_path / "run.ambar")


def test_a_field_that_is_added_later_is_a_warning(tmp_path: Path) -> None:
    first = write_step(tmp_path, 0)
    fields = {"density": wave(1), "Temp": wave(2), "tracer": wave(3)}
    later = write_plotfile(tmp_path / "plt00010", BOXES, fields, domain=DOMAIN, time=1.0, step=10)
    with pytest.warns(UserWarning, match=r"plt00010 has the fields density, Temp, tracer, plt000"):
        ambar.convert([first, later], tmp_path / "x.ambar")
    series = ambar.open_series(tmp_path / "x.ambar")
    assert [len(step.amr.fields) for step in series] == [2, 3]


def test_damaged_plotfiles_are_skipped_on_request(tmp_path: Path) -> None:
    folder, target = tmp_path / "run", tmp_path / "run.ambar"
    for step in (0, 10, 20):
        write_step(folder, step)
    damage(folder / "plt00010")
    done = ambar.convert(folder, target, on_error="skip")
    assert done.converted == ["plt00000", "plt00020"]
    assert "Cell_D_00000" in done.failed["plt00010"]
    with pytest.raises(ambar.InvalidError, match=r"2 dimensions.*one of 3"):
        flat: list[Box] = [((0, 0), (7, 7))]
        other = write_plotfile(tmp_path / "plt00070", [flat], {"density": wave(0)}, domain=(8, 8))
        ambar.convert(other, target, mode="a")
    single = tmp_path / "single.ambar"
    ambar.convert(folder / "plt00000", single)
    with pytest.raises(ambar.InvalidError, match="expected a series.*found a store of the kind"):
        ambar.convert(folder, single, mode="a")
    with pytest.raises(ambar.InvalidError, match="series of outputs of ramses, found one of amrex"):
        ambar.convert(output("sedov").parent, target, mode="a")
    with pytest.raises(ambar.InvalidError, match="3 plotfiles of AMReX: use one"):
        ambar.open(folder)
    # A series exported over an earlier export.
    ambar.export(target, tmp_path / "out")
    ambar.export(target, tmp_path / "out", mode="w")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == done.converted


def test_plotfiles_in_hdf5_become_a_series(tmp_path: Path) -> None:
    pytest.importorskip("h5py")
    folder, target = tmp_path / "run", tmp_path / "run.ambar"
    folder.mkdir()
    for step in (6, 12):
        shutil.copy(amrex_sample("advection_none.h5"), folder / f"plt{step:05}.h5")
    cut = folder / "plt00018.h5"
    cut.write_bytes((folder / "plt00006.h5").read_bytes()[:100_000])
    done = ambar.convert(folder, target)
    assert done.converted == ["plt00006.h5", "plt00012.h5"]
    assert "not complete" in done.left_out["plt00018.h5"]
    cut.unlink()
    series = ambar.open_series(target)
    assert series.outputs == [6, 12]
    native = ambar.open_snapshot(amrex_sample("advection_plt00006"))
    np.testing.assert_array_equal(series[1].amr.read()["phi"], native.amr.read()["phi"])
    os.utime(folder / "plt00012.h5", (1, 1))
    done = ambar.convert(folder, target, mode="a")
    assert (done.skipped, done.replaced) == (["plt00006.h5"], ["plt00012.h5"])
    ambar.export(target, tmp_path / "out")
    again = ambar.open_snapshot(tmp_path / "out" / "plt00012")
    np.testing.assert_array_equal(again.amr.read()["phi"], native.amr.read()["phi"])


def test_equal_names_of_plotfiles_are_found_before_an_export(tmp_path: Path) -> None:
    target = tmp_path / "run.ambar"
    for step in (0, 10):
        write_step(tmp_path / "run", step)
    ambar.convert(tmp_path / "run", target, fsync=False)
    with ambar.create(target, "a", fsync=False) as writer:
        attributes = ambar.open_store(target)._attributes("output_00010")
        attributes["ambar"]["source"]["name"] = "plt00000"
        writer._create_group("output_00010", attributes)
    with pytest.raises(ValueError, match="found 'plt00000' in /output_00000 and /output_00010"):
        ambar.export(target, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    ambar.export(target, tmp_path / "plt00010", output=10)
    same_files(tmp_path / "run" / "plt00010", tmp_path / "plt00010")
