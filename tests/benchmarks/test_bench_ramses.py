"""The RAMSES study measures every way, compares what they load, and refuses what is not there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ambar_bench.cli import app
from ambar_bench.ramses import report, study
from tests.helpers.ramses_outputs import without, write_output
from tests.helpers.ramses_outputs.variants import FULL

COMPONENTS = ("particles", "all")
SMALL = replace(FULL, number=2, specials=False)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> study.Study:
    """Return a study without peers."""
    folder = tmp_path_factory.mktemp("study")
    output = write_output(folder, SMALL).folder
    return study.run_study(output, folder, components=COMPONENTS, peers=[], rounds=2, threads=2)


def test_every_way_of_every_component_is_a_row(found: study.Study) -> None:
    ways = {(row.component, row.source, row.threads) for row in found.rows}
    sources = ("RAMSES", "fast", "balanced", "small")
    assert ways == {(c, s, n) for c in COMPONENTS for s in sources for n in (1, 2)}
    assert len(ways) == len(found.rows)


def test_rows_hold_what_was_measured(found: study.Study) -> None:
    for row in found.rows:
        assert len(row.warm) == 2
        assert 0 < row.import_seconds < row.first_seconds
        assert 0 < row.seconds < row.first_seconds
        assert row.peak_bytes > row.column_bytes > 0
        assert row.disk_bytes > 0
        assert row.note == ""
    by_part = {row.component: row.column_bytes for row in found.rows}
    assert by_part["particles"] < by_part["all"]
    files = {file.name: file.stat().st_size for file in Path(found.path).iterdir()}
    particles = sum(size for name, size in files.items() if name.startswith("part_0"))
    assert found.component_bytes["particles"] == particles
    assert found.output_bytes == sum(files.values())


def test_columns_that_differ_are_reported() -> None:
    ours = {"density": [8.0, 1.0, 0.5], "x": [8.0, 1.0, 0.2]}
    assert study.differences(ours, {**ours, "mass": [8.0, 1.0, 1.0]}) == ""
    assert study.differences(ours, {"x": ours["x"]}) == "lacks density"
    other = {"density": ours["density"], "x": [8.0, 1.0, 0.2001]}
    assert study.differences(ours, other) == "other values in x"


def test_a_missing_component_stops_the_study_before_anything_is_measured(tmp_path: Path) -> None:
    output = write_output(tmp_path, without(SMALL, "particles")).folder
    told: list[str] = []
    with pytest.raises(KeyError, match=r"no particles.*--components hydro,gravity,rt"):
        study.run_study(output, tmp_path, report=told.append)
    assert told == []
    with pytest.raises(KeyError, match="no component 'gas'"):
        study.run_study(output, tmp_path, components=["gas"], report=told.append)


def test_peers_load_the_same(tmp_path: Path) -> None:
    pytest.importorskip("yt")
    pytest.importorskip("osyris")
    spec = without(replace(SMALL, domains=2), "groups", "sinks", "clumps")
    output = write_output(tmp_path, spec).folder
    components = ("gravity", "all")
    found = study.run_study(
        output, tmp_path, components=components, profiles=["fast"], rounds=1, threads=1
    )
    assert {row.reader for row in found.rows} >= {"ambar", "yt", "osyris"}
    assert [(row.name, row.component, row.note) for row in found.rows if row.note] == []
    assert found.fastest_peer("all") is not None


def test_the_command_prints_tables_and_writes_results(tmp_path: Path) -> None:
    output = write_output(tmp_path, SMALL).folder
    options = ["--components", "hydro", "--rounds", "1", "--profiles", "fast", "--peers", ""]
    call = ["ramses", str(output), *options, "--threads", "1", "--cold"]
    told = CliRunner().invoke(app, [*call, "-o", str(tmp_path / "results")])
    assert told.exit_code == 0, told.output
    assert "ambar fast, 1 thread" in told.output
    values = json.loads((tmp_path / "results" / "results.json").read_text())
    names = [row["name"] for row in values["rows"]]
    assert names == ["ambar on RAMSES, 1 thread", "ambar fast, 1 thread"]
    assert values["cold"]
    text = (tmp_path / "results" / "results.md").read_text()
    assert text.count("| ambar") == 2
    printed = CliRunner().invoke(app, [*call, "--json"])
    assert json.loads(printed.stdout)["rows"][0]["component"] == "hydro"


def test_the_chart_is_drawn(found: study.Study, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report.chart(found, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").read_bytes()[:4] == b"\x89PNG"
