"""The study of rate and distortion measures all methods, and writes what it found."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ambar
from ambar_bench.cli import app
from ambar_bench.rate import study
from ambar_bench.rate.public_fields import plot3d_values
from ambar_bench.rate.report import markdown
from ambar_bench.rate.study import (
    BOUNDS,
    METHODS,
    TARGETS,
    Field,
    Point,
    Study,
    Values,
    at_targets,
    measure,
    psnr,
    run_study,
)


def test_the_study_writes_its_tables(tmp_path: Path) -> None:
    pytest.importorskip("hdf5plugin", reason="hdf5plugin not installed")
    x = np.linspace(0, 6, 160)
    values = np.sin(x) * np.cos(x[:, None])
    np.save(tmp_path / "waves.npy", values)
    options = [str(tmp_path / "waves.npy"), "--no-synthetic", "--output", str(tmp_path / "found")]
    done = CliRunner().invoke(app, ["rate", *options])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "found" / "rate.json").read_text())
    assert found["targets"] == list(TARGETS)
    [field] = found["fields"]
    assert (field["name"], field["shape"], field["dtype"]) == ("waves", [160, 160], "float64")
    for numbers in (field["bytes"], field["encode_speed"], field["decode_speed"]):
        assert numbers.keys() == set(METHODS)
        assert all(len(row) == len(TARGETS) for row in numbers.values())
        for method in ("ambar balanced", "ambar small"):
            assert all(number > 0 for number in numbers[method])
    for method in METHODS:
        reached = [size for size in field["bytes"][method] if not math.isnan(size)]
        assert len(reached) >= 6
        assert 0 < reached[0] < reached[-1] < values.nbytes
        bounded = field["bounded_bytes"][method]
        assert len(bounded) == len(BOUNDS)
        assert 0 < bounded[0] < bounded[-1] < values.nbytes
    text = (tmp_path / "found" / "rate.md").read_text()
    assert "| waves, float64 160x160: balanced / small |" in text
    assert "| ambar balanced: decode |" in text
    assert "| waves: balanced / small |" in text
    assert "1 field" in done.output


def test_fields_have_bytes_and_speeds_at_the_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    def point(_method: str, _values: Values, target: float) -> Point:
        return Point(target, round(10 ** (target / 20)), 0.5, 0.25)

    monkeypatch.setattr(study, "METHODS", ("SPERR",))
    monkeypatch.setattr(study, "encode_at_psnr", point)
    monkeypatch.setattr(study, "encode_within", lambda *_: Point(0.0, 7, 1.0, 1.0))
    found = measure("values", np.zeros((1, 500, 500)))
    assert (found.shape, found.dtype) == ((500, 500), "float64")
    expected = [10 ** (target / 20) for target in TARGETS]
    assert found.bytes["SPERR"] == pytest.approx(expected, rel=0.01)
    assert found.encode_speed["SPERR"] == pytest.approx([4.0] * len(TARGETS))  # 2 MB in 0.5 s
    assert found.decode_speed["SPERR"] == pytest.approx([8.0] * len(TARGETS))
    assert found.bounded_bytes["SPERR"] == [7] * len(BOUNDS)


def test_the_table_has_changes_of_bytes_and_speeds() -> None:
    def numbers(ambar: float, peers: float) -> dict[str, list[float]]:
        return {
            method: [ambar if method.startswith("ambar") else peers] * len(TARGETS)
            for method in METHODS
        }

    def field(name: str, own: int, speed: float) -> Field:
        bounded = {method: [own if method.startswith("ambar") else 100] * 7 for method in METHODS}
        bounded["SZ3"] = [90] * 7
        lists = numbers(own, 100), numbers(speed, 30), numbers(40, 90)
        return Field(name, (8, 8), "float64", False, *lists, bounded)

    fields = [field("one", 50, 10), field("two", 200, 40)]
    lines = markdown(Study({"processor": "one", "packages": ""}, fields)).splitlines()
    rows = {line.split(" | ")[0]: line.split(" | ")[1] for line in lines if " | " in line}
    assert rows["| ambar small: geometric mean (worst)"] == "+0.0 (+100.0)"
    assert rows["| one, float64 8x8: balanced / small"] == "-50.0 / -50.0"
    assert rows["| ambar small: encode"] == "20"
    assert rows["| ambar small: decode"] == "40"
    assert rows["| SZ3: decode"] == "90"
    label = "| ambar small: geometric mean (worst; fields that are larger)"
    assert rows[label] == "+11.1 (+122.2; 1)"
    assert rows["| one: balanced / small"] == "-44.4 / -44.4"


def test_logarithms_are_interpolated_at_the_targets() -> None:
    points = [
        Point(math.inf, 10**9, 1.0, 1.0),
        Point(75.0, 1000, 8.0, 3.0),
        Point(45.0, 10, 1.0, 3.0),
    ]
    found = dict(zip(TARGETS, at_targets(points, "bytes"), strict=True))
    assert found[60] == pytest.approx(100)
    assert found[50] == pytest.approx(10 ** (1 + 2 * 5 / 30))
    assert [target for target in TARGETS if math.isnan(found[target])] == [40, 80, 90, 100, 110]
    seconds = dict(zip(TARGETS, at_targets(points, "encode_seconds"), strict=True))
    assert seconds[60] == pytest.approx(math.sqrt(8))
    assert np.isnan(at_targets(points[:1], "bytes")).all()


def test_the_psnr_is_relative_to_the_value_range() -> None:
    original = np.array([0.0, 10.0])
    assert psnr(original, np.array([0.1, 9.9])) == pytest.approx(40)
    assert psnr(original, original) == math.inf


def test_plot3d_solutions_are_read(tmp_path: Path) -> None:
    shape = (2, 3, 4)  # z, y, x
    fields = np.arange(5 * 24, dtype=">f4").reshape(5, *shape)
    header = np.array(shape[::-1], ">i4").tobytes() + np.full(4, 0.5, ">f4").tobytes()
    (tmp_path / "q.bin").write_bytes(header + fields.tobytes())
    np.testing.assert_array_equal(plot3d_values(tmp_path / "q.bin"), fields)


def test_a_study_without_fields_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "constant.npy", np.ones((200, 200)))
    with pytest.raises(ambar.InvalidError, match="at least 16,384 values that are not all equal"):
        run_study([tmp_path / "constant.npy"], with_synthetic=False)
