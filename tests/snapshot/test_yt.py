"""yt datasets made of snapshots: equal to what yt reads from RAMSES' files itself."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from tests.helpers.ramses_outputs import Spec, write_output
from tests.helpers.ramses_outputs.variants import MHD, SYNTHETIC
from tests.helpers.sample_outputs import amrex_sample, output

yt = pytest.importorskip("yt")
yt.set_log_level(40)


def ordered(data: Any, names: list[str]) -> dict[str, np.ndarray]:
    place = [data["index", axis].to("code_length").d for axis in "zyx"]
    order = np.lexsort(place)
    columns = {name: data["gas", name].d[order] for name in names}
    return columns | {axis: values[order] for axis, values in zip("zyx", place, strict=True)}


def test_cells_equal_yts_own(gravpart: ambar.Snapshot) -> None:
    ours = gravpart.amr.to_yt()
    theirs = yt.load(str(output("gravpart") / "info_00002.txt"))
    found = ordered(ours.all_data(), ["density", "velocity_x", "pressure"])
    expected = ordered(theirs.all_data(), ["density", "velocity_x", "pressure"])
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)


def test_yt_selects_projects_and_slices(gravpart: ambar.Snapshot) -> None:
    dataset = gravpart.amr.to_yt(["density"])
    cells = gravpart.amr.read(["density", "dx"])
    mass = (cells["density"] * cells["dx"] ** 3).sum()
    projection = dataset.proj(("gas", "density"), 2)
    area = projection["pdx"] * projection["pdy"] * 4
    projected = (projection["gas", "density"] * area).sum().to("code_mass")
    assert float(projected) == pytest.approx(mass, rel=1e-10)
    ball = dataset.sphere([0.5] * 3, (0.25, "code_length"))
    inside = gravpart.amr.read(["density"], region=ambar.Sphere("bc", 0.25))
    assert ball["gas", "density"].size == len(inside)
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


def both(folder: Path, spec: Spec, *, cosmological: bool = False) -> Any:
    """Return our dataset of a synthetic output, and yt's own."""
    run = write_output(folder, spec).folder
    snapshot = ambar.open_snapshot(run).load()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = snapshot.to_yt()
    theirs = yt.load(str(run / f"info_{spec.number:05d}.txt"), cosmological=cosmological)
    return snapshot, ours, theirs


def assert_equal_fields(ours: Any, theirs: Any, names: list[str]) -> None:
    """Assert that fields of gas agree in cgs, cell by cell."""
    places = [ds.all_data()["index", "ones"].size for ds in (ours, theirs)]
    assert places[0] == places[1]
    found, expected = (ordered(ds.all_data(), names) for ds in (ours, theirs))
    for name in (*names, *"xyz"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-9, err_msg=name)


def test_units_and_gamma_are_those_of_yts_own_reader(tmp_path: Path) -> None:
    """code_length was 1/boxlen of what yt's own reader has, and gamma 5/3 for every run."""
    spec = replace(SYNTHETIC["plain"], boxlen=2.5, particles=SYNTHETIC["everything"].particles)
    snapshot, ours, theirs = both(tmp_path, spec)
    assert ours.gamma == theirs.gamma == snapshot.info.gamma != 5 / 3
    units = "length mass time velocity density pressure magnetic specific_energy temperature"
    for name in units.split():
        unit = f"code_{name}"
        ratio = ours.quan(1.0, unit) / theirs.quan(1.0, unit).in_cgs()
        assert float(ratio.to("dimensionless")) == pytest.approx(1.0, rel=1e-10), unit
    assert ours.domain_right_edge.tolist() == theirs.domain_right_edge.tolist()
    assert float(ours.current_time / theirs.current_time) == pytest.approx(1)
    assert_equal_fields(ours, theirs, ["density", "pressure", "velocity_x", "sound_speed"])
    assert_equal_fields(ours, theirs, ["cell_volume", "cell_mass", "temperature_over_mu"])
    particles = snapshot.particles.to_yt().all_data()
    for name in ("particle_position_x", "particle_velocity_y", "particle_mass"):
        found, expected = particles["io", name], theirs.all_data()["io", name]
        np.testing.assert_allclose(np.sort(found.in_cgs()), np.sort(expected.in_cgs()), rtol=1e-9)
        code = found.to(expected.units)
        np.testing.assert_allclose(np.sort(code.d), np.sort(expected.d), rtol=1e-9)


def test_the_store_has_the_gamma_of_the_run(stores: dict[str, Path]) -> None:
    snapshot = ambar.open_snapshot(stores["sedov"])
    theirs = yt.load(str(output("sedov") / "info_00002.txt"))
    _ = theirs.index
    assert snapshot.to_yt().gamma == theirs.gamma == pytest.approx(1.4)


def test_gravity_temperature_and_magnetic_fields_are_gas(tmp_path: Path) -> None:
    """There were no fields of gas of these names."""
    _, ours, theirs = both(tmp_path / "gravity", replace(SYNTHETIC["plain"], gravity="plain"))
    names = ["acceleration_x", "acceleration_z", "potential", "temperature"]
    assert_equal_fields(ours, theirs, names)
    potential = ours.all_data()["gas", "gravitational_potential"]
    np.testing.assert_array_equal(potential, ours.all_data()["gas", "potential"])
    _, ours, theirs = both(tmp_path / "mhd", Spec(hydro=MHD))
    names = ["magnetic_field_x_left", "magnetic_field_y", "magnetic_field_strength", "metallicity"]
    assert_equal_fields(ours, theirs, names)


def test_cosmology_is_that_of_yts_own_reader(tmp_path: Path) -> None:
    """Time was the (negative) conformal time, the redshift 0, and there were no comoving units."""
    spec = SYNTHETIC["cosmological"]
    snapshot, ours, theirs = both(tmp_path, spec, cosmological=True)
    assert ours.cosmological_simulation
    for name in ("current_redshift", "omega_lambda", "omega_matter", "hubble_constant"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name)), name
    for one in (ours, snapshot.particles.to_yt()):
        ratio = one.current_time.to("Gyr") / theirs.current_time.to("Gyr")
        assert float(ratio) == pytest.approx(1, rel=1e-3)
        found = one.quan(1.0, "code_length").to("Mpccm")
        expected = theirs.quan(1.0, "code_length").to("Mpccm")
        assert float(found.d) == pytest.approx(float(expected.d))
        assert float(one.quan(1.0, "h").in_base("cgs").d) == pytest.approx(one.hubble_constant)
    assert ours.cosmology is not None
    assert ours.critical_density.in_cgs().d == pytest.approx(theirs.critical_density.in_cgs().d)


def test_conformal_birth_times_are_not_taken_for_times(tmp_path: Path) -> None:
    """A cosmological run writes conformal times: converted as times they were -2254 Myr."""
    spec = replace(SYNTHETIC["v0_particles"], expansion=0.125)
    snapshot = ambar.open_snapshot(write_output(tmp_path / "expanding", spec).folder).load()
    table = snapshot.particles.read()
    assert np.isfinite(table["birth_time"]).all()
    np.testing.assert_array_equal(table.column("birth_time"), table["birth_time"])
    since_big_bang = table.column("birth", "Myr")
    assert ((since_big_bang >= 0) & (since_big_bang < 14e3 * 100)).all()
    units = snapshot.info.units
    np.testing.assert_array_equal(units.convert(table["birth"], "birth", "Myr"), since_big_bang)
    for convert in (
        lambda: units.factor("birth_time", "Myr"),
        lambda: snapshot.particles.read("mass", where="birth_time > 100 Myr"),
        lambda: ambar.Units(1.0, 1.0, 1.0, cosmological=True).convert(1.0, "birth_time", "Myr"),
    ):
        with pytest.raises(ambar.UnsupportedError, match="conformal"):
            convert()
    assert snapshot.info.units.time("Myr") > 0
    with pytest.warns(UserWarning, match="birth_time"):
        dataset = snapshot.particles.to_yt()
    assert ("io", "creation_time") not in dataset.field_list
    # In a run that does not expand, birth times are times.
    spec = replace(spec, expansion=1.0)
    snapshot = ambar.open_snapshot(write_output(tmp_path / "static", spec).folder).load()
    table = snapshot.particles.read()
    factor = snapshot.info.units.time("Myr")
    np.testing.assert_allclose(table.column("birth_time", "Myr"), table["birth_time"] * factor)
    found = snapshot.particles.to_yt().all_data()["io", "creation_time"].to("Myr")
    np.testing.assert_allclose(np.sort(found.d), np.sort(table["birth_time"]) * factor)


def test_what_is_left_out_is_named(gravpart: ambar.Snapshot) -> None:
    with pytest.warns(UserWarning, match="leaves out particles"):
        gravpart.to_yt()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gravpart.amr.to_yt()


def test_particles_of_plotfiles_keep_their_lengths() -> None:
    snapshot = ambar.open_snapshot(amrex_sample("nyx64_plt00040"))
    dataset = snapshot.particles.to_yt()
    rows = snapshot.particles.read()
    found = dataset.all_data()["io", "particle_position_x"].to("code_length")
    np.testing.assert_allclose(np.sort(found.d), np.sort(rows["position_x"]), rtol=1e-6)


def test_what_yt_cannot_take_is_refused() -> None:
    part = ambar.open_snapshot(output("sedov")).load(region=ambar.Sphere("bc", 0.2))
    with pytest.raises(ambar.UnsupportedError, match="fill"):
        part.to_yt()
