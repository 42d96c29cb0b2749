"""The study of collections measures every row, and finds out what reads other values or crashes."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ambar_bench.cli import app
from ambar_bench.collection import report, scale_report, study
from ambar_bench.collection.cases import CASES, Case, dataset_name
from ambar_bench.collection.layouts import Layout, lacking, stacked
from ambar_bench.collection.rows import LAYOUTS, READERS
from ambar_bench.collection.scale import Scale, run_scale
from ambar_bench.collection.turns import Plan, take_turns
from ambar_bench.collection.worker import digest, expected
from ambar_bench.process import Worker

xr = pytest.importorskip("xarray")
SENSORS = CASES["sensors"]


def run_sensors(scratch: Path, keys: Sequence[str] | None = None) -> study.Study:
    """Return a study of some rows, or of all whose libraries are there."""
    made = study.run_study(
        "sensors", scratch, datasets=[3], offset=1, keys=keys, rounds=2, threads=2
    )
    assert list(scratch.iterdir()) == []
    return made


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> study.Study:
    """Return a study of three rows."""
    keys = ["zarr-loop", "ambar-bulk", "ambar-xarray"]
    made = run_sensors(tmp_path_factory.mktemp("study"), keys)
    assert [row.key for row in made.rows] == keys
    return made


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Scale:
    return run_scale("sensors", tmp_path_factory.mktemp("scale"), datasets=12, rounds=2)


def test_datasets_are_those_of_the_original() -> None:
    generator = np.random.default_rng(7)
    temperature = (15.0 + generator.normal(scale=5.0, size=(100, 100, 48))).astype("float32")
    generator.normal(scale=8.0, size=(100, 100, 48))
    humidity = (65.0 + generator.normal(scale=15.0, size=(100, 100, 48))).astype("float32")
    made = CASES["gridded"].dataset(7)
    assert made.attrs == {"grid_id": 7}
    assert made["temperature"].identical(
        xr.DataArray(temperature, made.coords, ("lon", "lat", "time"), "temperature").assign_attrs(
            units="celsius"
        )
    )
    assert made["pressure"].dtype == np.float64
    np.testing.assert_array_equal(made["humidity"], np.clip(humidity, 0, 100))
    assert made["humidity"].dtype == np.float32
    assert made["lon"].dtype == np.float32
    assert made["lon"].values[[0, -1]].tolist() == [-180, 180]
    assert made["time"].values[1] == np.datetime64("2024-01-01T01", "ns")
    # 134 MB at 1000 datasets of 4 variables, 7.68 GB
    assert CASES["profile"].with_variables(4).dataset_bytes == 134_400
    assert CASES["gridded"].dataset_bytes == 7_680_000


def test_variables_are_cut_or_copied() -> None:
    assert SENSORS.with_variables(None) is SENSORS
    assert SENSORS.with_variables(1).names == ["temperature"]
    assert CASES["profile"].with_variables(5).names == [
        "temperature",
        "salinity",
        "temperature_2",
        "salinity_2",
        "temperature_3",
    ]
    with pytest.raises(ValueError, match="1 or more"):
        SENSORS.with_variables(0)


def test_the_slice_fits_whatever_its_offset() -> None:
    profile = CASES["profile"]
    assert profile.window(0.25) == {"depth": slice(0, 12), "time": slice(0, 42)}
    assert profile.window(0.25, 7) == {"depth": slice(7, 19), "time": slice(7, 49)}
    assert profile.window(0.25, 100) == {"depth": slice(38, 50), "time": slice(100, 142)}
    assert SENSORS.window(0.001) == {"time": slice(0, 1)}
    assert SENSORS.window(1.0, 5) == {"time": slice(0, 24)}


def test_batches_hold_every_dataset_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ambar_bench.collection.cases.BATCH_BYTES", 2 * SENSORS.dataset_bytes)
    batches = list(SENSORS.batches(5))
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert [name for batch in batches for name, _ in batch] == [dataset_name(n) for n in range(5)]
    assert batches[1][1][1].attrs == {"station_id": 3}


@pytest.mark.campaign
def test_every_row_whose_library_is_there_is_measured(tmp_path: Path) -> None:
    found = run_sensors(tmp_path)
    installed = [key for key, reader in READERS.items() if not lacking(reader.layout)]
    assert [key for key in installed if key.startswith("ambar")] == [
        "ambar-bulk",
        "ambar-loop",
        "ambar-lazy",
        "ambar-xarray",
        "ambar-dask",
    ]
    # netCDF4 crashes at times where several threads are; the study then leaves its row out.
    sure = [key for key in installed if not key.startswith("netcdf")]
    measured = [row.key for row in found.at(3)]
    assert [key for key in measured if not key.startswith("netcdf")] == sure
    assert found.window == {"time": (1, 7)}
    assert set(found.left_out) == {READERS[key].name for key in READERS if key not in measured}
    for key in set(READERS) - set(installed):
        assert found.left_out[READERS[key].name].endswith("not installed")


def test_rows_hold_what_was_measured(found: study.Study) -> None:
    for row in found.rows:
        assert len(row.write) == 2
        assert len(row.read) == 1
        assert min(row.write) > 0
        assert row.first > 0
        assert row.read_seconds == row.read[0] > 0
        # 24 values of 16 bytes a dataset: all have those, and none a hundred times as much
        assert row.datasets * 24 * 16 / 2 < row.bytes < 100_000
        assert row.files >= 1
    sizes = {row.bytes for row in found.at(3) if row.layout == "ambar"}
    assert len(sizes) == 1


def test_a_median_of_the_first_alone_is_marked(found: study.Study) -> None:
    row = replace(found.rows[0], first=2.5, read=[])
    assert row.read_seconds == 2.5
    assert report.cells_of(row, found)[2] == "2.500 *"
    assert report.cells_of(replace(row, read=[0.5, 0.25, 1]), found)[2] == "0.500"


@pytest.mark.campaign
@pytest.mark.parametrize("key", ["netcdf", "zarr-groups", "hdf5", "tensorstore", "atlas"])
def test_peers_keep_chunks_and_slices_of_grids(key: str, tmp_path: Path) -> None:
    if missing := lacking(LAYOUTS[key]):
        pytest.skip(f"{', '.join(missing)} not installed")
    keys = [name for name, reader in READERS.items() if reader.layout.key == key]
    made = study.run_study("gridded", tmp_path, datasets=[2], offset=45, keys=keys, rounds=1)
    # netCDF4 is not safe on dask's threads: at times it crashes or fails, which the study reports.
    unsafe = {READERS["netcdf-dask"].name}
    assert set(made.left_out) <= unsafe, made.left_out
    assert [row.key for row in made.rows] == [
        name for name in keys if READERS[name].name not in made.left_out
    ]


def test_other_values_are_found_out() -> None:
    truth = expected(SENSORS, 2, 0.25, 0)
    values = {name: np.stack([SENSORS.values(n)[name][:6] for n in range(2)]) for name in truth}
    right = {name: digest(array) for name, array in values.items()}
    assert study.differences(truth, right) == ""
    values["pressure"][1, 5] = np.nextafter(values["pressure"][1, 5], 0)
    wrong = {name: digest(array) for name, array in values.items()}
    assert study.differences(truth, wrong) == "it reads other values of pressure"
    wider = right | {"humidity": digest(values["humidity"].astype("f8"))}
    assert study.differences(truth, wider) == "it reads other values of humidity"


def test_what_was_read_is_stacked() -> None:
    values = np.arange(6.0).reshape(2, 3)
    each = [{"a": row} for row in values]
    for loaded in ({"a": values}, xr.Dataset({"a": (("n", "x"), values)}), each):
        np.testing.assert_array_equal(stacked(loaded, "a"), values)


class Scripted(Worker):
    """A worker that runs a script instead."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.task["script"]]


ANSWER = "print('{\"seconds\": 1}', flush=True)"
CRASH = "import os; os.abort()"


@pytest.mark.parametrize(
    ("script", "answers", "crashes", "failed"),
    [
        (f"import sys\nfor _ in sys.stdin: {ANSWER}", 3, 0, ""),
        (f"input(); {ANSWER}; input(); {CRASH}", 3, 2, ""),
        (f"input(); {CRASH}", 0, 3, "it crashed 3 times in a row, by signal 6"),
        ("input(); raise SystemExit('no such file')", 0, 0, "no such file"),
        ("raise SystemExit", 0, 0, "it ended with code 0"),
    ],
)
def test_a_process_that_crashes_begins_anew(
    script: str, answers: int, crashes: int, failed: str
) -> None:
    with Scripted({"script": script}, "") as worker:
        for _ in range(3):
            if not worker.failed:
                worker.turn()
    assert len(worker.answers) == answers
    assert worker.crashes == crashes
    assert worker.failed == failed


def test_a_process_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ambar_bench.process.TURN_LIMIT", 0.05)
    with Scripted({"script": "import time; input(); time.sleep(60)"}, "") as worker:
        worker.turn()
    assert worker.failed == "it crashed 3 times in a row, by signal 9"


class Paced(Worker):
    """A worker without a process, whose turns take a given number of seconds."""

    def turn(self) -> None:
        self.answers.append({"seconds": self.task["seconds"]})


def _plan(case: Case, rounds: int, patience: float, told: Sequence[str]) -> Plan:
    return Plan(case, None, 2, 1, rounds, patience, Path(), list(told).append)


def test_slow_rows_get_fewer_turns() -> None:
    order: list[str] = []

    class Told(Paced):
        def turn(self) -> None:
            super().turn()
            order.append(self.task["name"])

    workers: dict[str, Worker] = {
        name: Told({"name": name, "seconds": seconds}, "")
        for name, seconds in (("a", 1), ("b", 40))
    }
    take_turns(_plan(SENSORS, 3, 60, []), workers)
    assert order == ["a", "b", "b", "a", "a"]


def test_large_stores_are_measured_one_by_one() -> None:
    readers = [READERS[key] for key in ("zarr-dask", "atlas-bulk", "zarr-loop")]
    assert list(study._groups(readers, 2 << 30)) == [readers]
    assert list(study._groups(readers, (2 << 30) + 1)) == [
        [READERS["zarr-dask"], READERS["zarr-loop"]],
        [READERS["atlas-bulk"]],
    ]


def test_a_layout_that_cannot_be_written_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Worker.command

    def broken(self: Worker) -> list[str]:
        if self.task["do"] == "write" and self.task["key"] == "zarr":
            return [sys.executable, "-c", "input(); raise SystemExit('disk full')"]
        return original(self)

    monkeypatch.setattr(Worker, "command", broken)
    keys = ["zarr-loop", "ambar-bulk"]
    made = study.run_study("sensors", tmp_path, datasets=[2], keys=keys, rounds=1)
    assert [row.key for row in made.rows] == ["ambar-bulk"]
    assert made.left_out == {"zarr, loop": "writing it failed: disk full"}


def test_invalid_requests_are_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no case 'waves'; available: profile, gridded"):
        study.run_study("waves", tmp_path)
    with pytest.raises(KeyError, match="no row 'atlas'; available: netcdf-dask"):
        study.run_study("sensors", tmp_path, keys=["atlas"])
    for wrong in ({"datasets": [0]}, {"fraction": 0.0}, {"fraction": 1.5}, {"offset": -1}):
        options: dict[str, Any] = wrong
        with pytest.raises(ValueError, match="expected"):
            study.run_study("sensors", tmp_path, **options)
    with pytest.raises(ValueError, match="expected 1 or more"):
        run_scale("sensors", tmp_path, datasets=0)


def _times(found: study.Study, key: str, **changed: Any) -> study.Row:
    return replace(found.rows[0], key=key, name=key, datasets=2, crashes=0, **changed)


def test_reports_say_how_rows_compare(found: study.Study, tmp_path: Path) -> None:
    rows = [
        _times(found, "zarr-dask", read=[20.0], write=[9.0], ours=False, layout="zarr"),
        _times(found, "atlas-bulk", read=[0.5], write=[3.0], ours=False, layout="a", bytes=200),
        _times(found, "atlas-loop", read=[6.0], write=[3.0], ours=False, layout="a", bytes=200),
        _times(found, "ambar-bulk", read=[0.02], write=[1.5], ours=True, layout="b", bytes=180),
        _times(found, "ambar-loop", read=[0.5], write=[1.5], ours=True, layout="b", bytes=180),
    ]
    rows[0].crashes = 2
    made = replace(found, datasets=[2], rows=rows, left_out={"x": "y not installed"})
    text = report.markdown(made)
    assert "reads 25.0 times as fast as atlas-bulk, 1,000.0 times as fast as zarr+dask." in text
    assert "ambar has 90.0 % of Atlas' bytes, and writes 2.00 times as fast." in text
    assert "ambar's loop of xarray is 12.0 times as fast as Atlas'." in text
    assert "zarr-dask, 2 datasets: crashed and began anew 2 times." in text
    assert "left out: x: y not installed." in text
    assert "| ambar-bulk | 1.500 * | 0.020 * | 25 |" in text
    written = report.write(made, tmp_path)
    assert [path.name for path in written[:2]] == ["sensors_offset1.json", "sensors_offset1.md"]
    values = json.loads(written[0].read_text())
    assert values["rows"][3]["times_faster"] == 25
    assert values["rows"][3]["read_seconds"] == 0.02


def test_charts_are_drawn(found: study.Study, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for path in report.write(found, tmp_path)[2:]:
        assert path.read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in tmp_path.glob("*.png")} == {
        "sensors_offset1_read.png",
        "sensors_offset1_write.png",
    }


def test_single_datasets_are_measured_at_scale(scaled: Scale, tmp_path: Path) -> None:
    atlas: type[Layout] = LAYOUTS["atlas"]
    installed = ["ambar"] if lacking(atlas) else ["atlas", "ambar"]
    assert [row.key for row in scaled.rows] == installed
    assert len(scaled.left_out) == 2 - len(installed)
    for row in scaled.rows:
        for times in (row.write, row.open, row.by_name, row.first_by_name, row.loop, row.add):
            assert len(times) == 2
            assert min(times) > 0
        # Atlas 0.13 writes the last one's attributes over others' where each is flushed
        assert (row.other_attributes == 0) == row.ours
        # all of them take longer than one
        assert row.median("loop") > row.median("by_name")
    written = scale_report.write(scaled, tmp_path)
    assert [path.name for path in written] == ["scale_12.json", "scale_12.md"]
    assert "| ambar |" in written[1].read_text()


def test_the_command_measures_and_prints(tmp_path: Path) -> None:
    command = ["collection", "--case", "sensors", "--datasets", "3,2", "--rounds", "1"]
    command += ["--rows", "ambar-bulk", "--scratch", str(tmp_path / "new"), "--n-vars", "1"]
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.output
    values = json.loads(done.stdout)
    assert [(row["key"], row["datasets"]) for row in values["rows"]] == [
        ("ambar-bulk", 2),
        ("ambar-bulk", 3),
    ]
    assert values["variables"] == ["temperature"]
    assert list((tmp_path / "new").iterdir()) == []
    done = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "sensors.md" in done.stdout.replace("\n", "")
    scale = ["collection", "--case", "sensors", "--scale", "3", "--rounds", "1"]
    done = CliRunner().invoke(app, scale)
    assert done.exit_code == 0, done.output
    assert "by name ms" in done.stdout


def test_the_study_of_very_many_datasets_prints_and_writes(tmp_path: Path) -> None:
    command = ["million", "--datasets", "3", "-o", str(tmp_path)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "bytes written" in done.stdout
    values = json.loads((tmp_path / "million_3.json").read_text())
    assert list(values["steps"]) == ["create", "open", "read", "append"]
    assert values["steps"]["append"]["bytes"] > 0
    assert "| append |" in (tmp_path / "million_3.md").read_text()


@pytest.mark.parametrize("wrong", ["0", "ten", "", "1,-2"])
def test_the_command_refuses_what_is_no_number_of_datasets(wrong: str) -> None:
    done = CliRunner().invoke(app, ["collection", "--datasets", wrong])
    assert done.exit_code == 2
