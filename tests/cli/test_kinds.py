"""The registry of kinds: kinds of other packages, and options that do not apply to a kind."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ambar
from ambar.cli import app
from ambar.kinds import registry
from ambar.mesh.steps import steps_of
from tests.helpers.paths import EXAMPLES
from tests.helpers.sample_outputs import output

OUTPUT = output("sedov")


@pytest.fixture
def probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the example as a package would be, and return a file of its kind."""
    for name, reference in {"probe": "probe_kind:PROBE", "broken": "no_such_module:KIND"}.items():
        folder = tmp_path / "site" / f"{name}-1.0.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "entry_points.txt").write_text(f"[ambar.kinds]\n{name} = {reference}\n")
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.syspath_prepend(tmp_path / "site")
    registry.external_kinds.cache_clear()
    file = tmp_path / "record.txt"
    file.write_text("# probe: time pressure\n0.0 1.5\n0.5 2.5\n")
    return file


@pytest.fixture(autouse=True)
def _forget_kinds() -> Iterator[None]:
    yield
    registry.external_kinds.cache_clear()


@pytest.mark.filterwarnings("ignore:ambar.kinds. no_such_module")
def test_a_store_of_another_kind_is_copied_as_arrays(probe: Path) -> None:
    store, target = probe.with_name("record.ambar"), probe.with_name("copy.ambar")
    ambar.convert(probe, store)
    ambar.convert(store, target, profile="small")
    copied: Any = ambar.open(target)
    assert (copied.times.tolist(), copied.pressure.tolist()) == ([0.0, 0.5], [1.5, 2.5])
    with pytest.raises(ambar.UnsupportedError, match="found the kind 'probe'"):
        ambar.merge([store, target], probe.with_name("x.ambar"))


@pytest.mark.filterwarnings("ignore:ambar.kinds. no_such_module")
def test_a_kind_of_another_package_is_opened_converted_and_summarized(probe: Path) -> None:
    from ambar.kinds.registry import overview

    probed: Any = ambar.open(probe)
    assert probed.pressure.tolist() == [1.5, 2.5]
    store = probe.with_name("record.ambar")
    done = ambar.convert(probe, store)
    assert done.source_bytes == probe.stat().st_size
    stored: Any = ambar.open(store)
    np.testing.assert_array_equal(stored.times, [0.0, 0.5])
    assert overview(store)["samples"] == 2
    shown = CliRunner().invoke(app, ["info", str(store)])
    assert shown.exit_code == 0, shown.output
    assert "samples  2" in shown.output
    with pytest.raises(ValueError, match="expected meshes or cells, found the kind 'probe'"):
        steps_of(store)
    with pytest.raises(ValueError, match="levels does not apply to the kind 'probe'"):
        ambar.convert(probe, probe.with_name("x.ambar"), levels=(1, 2))
    with pytest.raises(
        ValueError, match="did you mean levels.*options of this kind: components, fields, halos"
    ):
        ambar.convert(OUTPUT, probe.with_name("x.ambar"), level=(1, 2))
    with pytest.raises(ambar.UnsupportedError, match="to export, found the kind 'probe'"):
        ambar.export(store, probe.with_name("x"))
    with pytest.raises(ValueError, match="'probe' cannot be compared"):
        ambar.compare(store, store)


def test_a_kind_that_cannot_be_imported_is_left_out(probe: Path) -> None:
    with pytest.warns(UserWarning, match="no_such_module:KIND cannot be loaded"):
        kinds = registry.external_kinds()
    assert [kind.name for kind in kinds] == ["probe"]
    probed: Any = ambar.open(probe)
    assert probed.times.tolist() == [0.0, 0.5]


def test_without_its_package_a_store_is_one_of_plain_arrays(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "x.ambar") as writer:
        writer.create_group("", {"ambar": {"kind": "probe", "version": 1}})
        writer.create_array("time", np.arange(3.0))
    assert isinstance(ambar.open(tmp_path / "x.ambar"), ambar.Store)


def test_options_that_do_not_apply_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(
        ambar.InvalidError, match="reorder does not apply to the kind 'RAMSES"
    ) as found:
        ambar.convert(OUTPUT, tmp_path / "x.ambar", reorder=True)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)


def test_opening_a_store_loads_only_its_own_kind(tmp_path: Path) -> None:
    with ambar.create(tmp_path / "x.ambar") as writer:
        writer.create_array("a", np.arange(3.0))
    code = (
        "import sys, ambar; ambar.open(sys.argv[1]); "
        "print([name for name in sys.modules if name in ('ambar.mesh', 'ambar.collection')])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x.ambar")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
