"""yt datasets made of snapshots: equal to what yt reads from RAMSES' files itself."""

from __future__ import annotations

import numpy as np
import pytest

import ambar
from conftest import output

yt = pytest.importorskip("yt")
yt.set_log_level(40)


def ordered(data, names: list[str]) -> dict[str, np.ndarray]:
    place = [data["index", axis].to("code_length").d for axis in "zyx"]
    order = np.lexsort(place)
    columns = {name: data["gas", name].d[order] for name in names}
    return columns | {axis: values[order] for axis, values in zip("zyx", place, strict=True)}


def test_cells_equal_yts_own(gravpart: ambar.Snapshot) -> None:
    ours = gravpart.to_yt()
    theirs = yt.load(str(output("gravpart") / "info_00002.txt"))
    found = ordered(ours.all_data(), ["density", "velocity_x", "pressure"])
    expected = ordered(theirs.all_data(), ["density", "velocity_x", "pressure"])
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)


def test_yt_selects_projects_and_slices(gravpart: ambar.Snapshot) -> None:
    dataset = gravpart.amr.to_yt(["density"])
    cells = gravpart.amr.cells(["density", "dx"])
    mass = (cells["density"] * cells["dx"] ** 3).sum()
    projection = dataset.proj(("gas", "density"), 2)
    area = projection["pdx"] * projection["pdy"] * 4
    projected = (projection["gas", "density"] * area).sum().to("code_mass")
    assert float(projected) == pytest.approx(mass, rel=1e-10)
    ball = dataset.sphere([0.5] * 3, (0.25, "code_length"))
    inside = gravpart.amr.cells(["density"], region=ambar.Sphere("bc", 0.25))
    assert ball["gas", "density"].size == inside.rows
    assert dataset.slice(2, 0.3)["gas", "density"].size > 0
    assert float(dataset.current_time.to("code_time")) == pytest.approx(gravpart.info.time)


def test_particles(gravpart: ambar.Snapshot) -> None:
    dataset = gravpart.particles.to_yt()
    data = dataset.all_data()
    rows = gravpart.particles.read()
    assert float(data["io", "particle_mass"].to("code_mass").d.sum()) == pytest.approx(
        rows["mass"].sum()
    )
    np.testing.assert_array_equal(
        np.sort(data["io", "particle_index"].d), np.sort(rows["identity"])
    )


def test_what_yt_cannot_take_is_refused() -> None:
    part = ambar.read_ramses(output("sedov"), region=ambar.Sphere("bc", 0.2))
    with pytest.raises(ambar.UnsupportedError, match="fill"):
        part.to_yt()
