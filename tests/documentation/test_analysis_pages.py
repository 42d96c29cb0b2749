"""The pages on statistics and on other tools run as written, and the tools return the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.pages import read_page, run_blocks
from tests.helpers.paths import RAMSES_CASES

pytest.importorskip("netCDF4")
pytest.importorskip("pyvista")
pytest.importorskip("xarray")

from tests.helpers import example_files


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder with the store run.ambar and its RAMSES output, and one of a galaxy."""
    example_files.make_inputs(tmp_path)
    example_files.make_stores(tmp_path)
    ambar.convert(
        RAMSES_CASES / "stars_3d" / "output_00002", tmp_path / "galaxy.ambar", fsync=False
    )
    monkeypatch.chdir(tmp_path)


def page_of(tool: str) -> str:
    """Return the page for users of a tool."""
    return read_page(f"docs/howto/from-{tool}")


def rows(tool: str) -> list[tuple[str, str]]:
    """Return the code in the two columns of the table of a page."""
    lines = [line for line in page_of(tool).splitlines() if line.startswith("| `")]
    return [
        (theirs.strip().strip("`"), ours.strip().strip("`"))
        for _, theirs, ours, _ in (line.split("|") for line in lines)
    ]


def names(tool: str) -> dict[str, Any]:
    """Return the names that the code blocks of a page define."""
    return run_blocks(page_of(tool))


def numbers(value: Any) -> np.ndarray:
    """Return all numbers of a result: in order if they are few, otherwise sorted."""
    if isinstance(value, (list, tuple)):
        return np.concatenate([numbers(part) for part in value])
    flat = np.nan_to_num(np.asarray(value, np.float64)).ravel()
    return flat if flat.size <= 16 else np.sort(flat)


def assert_equal_pairs(tool: str) -> None:
    found = names(tool)
    for theirs, ours in rows(tool):
        if "add_field" in theirs:  # defines a field, and has no result
            continue
        expected = numbers(eval(theirs, found))  # noqa: S307
        result = numbers(eval(ours, found))  # noqa: S307
        scale = np.abs(expected).max()
        np.testing.assert_allclose(result, expected, 1e-8, 1e-9 * scale, err_msg=ours)


def test_the_page_on_statistics_runs_as_written() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    ambar.convert("sedov", "sedov.ambar", fsync=False)
    found = run_blocks(read_page("docs/howto/statistics"))
    pytest.importorskip("matplotlib.pyplot").close("all")
    assert [row["mass"] for row in found["rows"]] == pytest.approx([0.125, 0.125])
    assert float(found["diagram"].sum()) > 0
    stars = found["galaxy"].particles.read(["age", "mass"])
    masses, edges = np.histogram(
        stars.column("age", "Myr"), 10, (0, 0.1), weights=stars.column("mass", "Msol")
    )
    np.testing.assert_allclose(found["rate"], masses / (np.diff(edges) * 1e6), rtol=1e-12)
    assert masses.any()


def test_the_page_on_maps_runs_as_written() -> None:
    pytest.importorskip("astropy")
    pytest.importorskip("matplotlib").use("Agg")
    run_blocks(read_page("docs/howto/maps"))
    assert Path("cube.fits").exists()


def test_the_page_on_stores_from_stores_runs_as_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ambar.convert("sedov", "sedov.ambar", fsync=False)
    run_blocks(read_page("docs/howto/stores-from-stores"), {"ambar": ambar})
    assert capsys.readouterr().out == "{'density': 0.060000000000000005}\n"
    assert ambar.open_series("both.ambar").outputs == [1, 2]


def test_the_page_on_yt_runs_as_written() -> None:
    pytest.importorskip("yt").set_log_level(40)
    pytest.importorskip("matplotlib").use("Agg")
    ambar.convert("sedov", "sedov.ambar", fsync=False)
    found = run_blocks(read_page("docs/howto/yt"))
    assert float(found["ds"].length_unit.to("cm")) == 3.0e24


def test_calls_for_meras_run() -> None:
    found = names("mera")
    code = [ours for _, ours in rows("mera") if not ours.startswith("ambar ")]
    assert len(code) == 31
    for line in code:
        exec(line, found)  # noqa: S102
    ambar.fields.remove("ram")


def test_yt_returns_the_same() -> None:
    pytest.importorskip("yt").set_log_level(40)
    assert_equal_pairs("yt")


def test_pynbody_returns_the_same() -> None:
    pytest.importorskip("pynbody")
    assert_equal_pairs("pynbody")
