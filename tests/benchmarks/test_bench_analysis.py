"""The study of analysis runs every task with every tool and compares the results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ambar
from ambar_bench.analysis import report, study
from ambar_bench.analysis.tools import TASKS
from ambar_bench.cli import app
from tests.helpers.paths import RAMSES
from tests.helpers.sample_outputs import output


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> study.Study:
    """Return a study of ambar alone."""
    folder = tmp_path_factory.mktemp("study")
    return study.run_study(output("gravpart"), folder, peers=[], rounds=1, threads=1)


def test_every_task_is_measured_from_every_source(found: study.Study) -> None:
    ways = [(row.task, row.source) for row in found.rows]
    assert ways == [(task, source) for task in TASKS for source in ("balanced", "RAMSES")]
    for row in found.rows:
        assert row.note == ""
        assert row.result
        assert row.seconds > 0
        assert row.peak_bytes >= row.idle_bytes > 0
    assert found.store_bytes["balanced"] < found.output_bytes


def test_reports(found: study.Study, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text = report.markdown(found)
    assert text.count("| ambar balanced |") == len(TASKS)
    written = report.write(found, tmp_path)
    assert [file.name for file in written] == ["results.json", "results.md", "results.png"]
    values = json.loads(written[0].read_text())
    assert values["rows"][0]["times_faster"] == {"yt": None, "pynbody": None}


def test_peers_have_equal_results(tmp_path: Path) -> None:
    pytest.importorskip("yt")
    call = ["analysis", str(output("sedov")), "--rounds", "1", "--tasks", "sphere"]
    printed = CliRunner().invoke(app, [*call, "--json", "--scratch", str(tmp_path)])
    assert printed.exit_code == 0, printed.output
    rows = json.loads(printed.stdout)["rows"]
    assert {row["tool"] for row in rows} >= {"ambar", "yt"}
    assert [(row["name"], row["note"]) for row in rows if row["note"]] == []
    by_yt = [row for row in rows if row["tool"] == "yt"]
    assert [row["times_faster"]["yt"] for row in by_yt if row["source"] == "RAMSES"] == [1.0]
    assert [row["result"] for row in by_yt if row["source"] == "balanced"]


def test_other_results_are_noted() -> None:
    assert study.agrees([1.0, 2.0], [1.0, 2.0 + 1e-7])
    assert not study.agrees([1.0, 2.0], [1.0, 2.1])
    assert not study.agrees([1.0], [1.0, 2.0])


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="no task 'sum'; available: sphere"):
        study.run_study(output("sedov"), tmp_path, tasks=["sum"])
    flat = RAMSES / "sedov2d_small" / "output_00002"
    with pytest.raises(ambar.UnsupportedError, match="expected an output of 3 dimensions"):
        study.run_study(flat, tmp_path)
