"""The study of writing from workers: every version writes the same values."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("distributed")

from distributed import Client

from ambar_bench.distributed import model, study, writers


def test_all_versions_write_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "PLANE", (64, 128))
    shape = (3 * writers.ROWS, *writers.PLANE)
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"
    ) as client:
        for version, write in writers.WRITERS.items():
            target = f"{tmp_path}/{version}.ambar"
            write(target, shape, "balanced", client, None)
            writers.check(target, shape, is_whole=True)


def test_the_report_compares_with_one_process(tmp_path: Path) -> None:
    rows = [
        study.Row("process", "file", 1, False, 4.0, 200, 50),
        study.Row("tasks", "file", 2, False, 2.0, 90, 50),
        study.Row("tasks", "objects", 2, True, 3.0, 90, 50),
    ]
    found = study.Study(100, "balanced", 1, {"cores": "2"}, rows)
    text = study.write(found, tmp_path)[1].read_text()
    assert "| `ambar.distributed`, tasks of dask | a file | 2 |  | 2.0 | 2.00 | 90 | 50.0 |" in text
    assert "| objects on S3 | 2 | one | 3.0 |  | 90 | 50.0 |" in text


def test_the_model_is_limited_by_the_scheduler(tmp_path: Path) -> None:
    found = model.model(model.Costs(0.2, 0.2, 16e6, 1e-3, 1e-3, 1e-5, {}))
    assert found.file[0] == pytest.approx(1e5 * 0.421 / 48 + 1)
    assert found.file[-1] == pytest.approx(100 + 1)
    assert found.objects[0] > found.file[0]
    assert "A model, not a measurement" in model.write(found, tmp_path)[1].read_text()
