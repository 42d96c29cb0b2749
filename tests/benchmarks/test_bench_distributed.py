"""The study of writing from workers: every version writes the same values."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("distributed")

from distributed import Client

from ambar_bench import distributed as study


def test_all_versions_write_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "PLANE", (64, 128))
    shape = (3 * study.ROWS, *study.PLANE)
    with Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"
    ) as client:
        for version, write in study.WRITERS.items():
            target = tmp_path / f"{version}.ambar"
            write(target, shape, "balanced", client)
            study._check(target, shape)


def test_the_report_compares_with_one_process(tmp_path: Path) -> None:
    rows = [study.Row("process", 1, 4.0, 200, 50), study.Row("tasks", 2, 2.0, 90, 50)]
    found = study.Study(100, "balanced", 1, {"cores": "2"}, rows)
    text = study.write(found, tmp_path)[1].read_text()
    assert "| `ambar.distributed`, tasks of dask | 2 | 2.0 | 2.00 | 90 | 50.0 |" in text
