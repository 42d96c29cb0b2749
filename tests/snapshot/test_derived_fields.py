"""Derived fields equal those of yt, and NumPy's arithmetic, wherever a field name is taken."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.snapshot.derived.catalog import cell_formulas
from ambar.snapshot.physics.constants import BOLTZMANN, GRAVITATION, HYDROGEN_MASS
from tests.helpers.paths import RAMSES_CASES
from tests.helpers.plotfile_writer import Plotfile
from tests.helpers.ramses_outputs import Spec, write_output
from tests.helpers.ramses_outputs.variants import MHD, shared_data
from tests.helpers.sample_outputs import amrex_sample, output

CENTER, VELOCITY = (0.4, 0.55, 0.9), (0.02, -0.01, 0.03)


@pytest.fixture(autouse=True)
def _no_fields_remain() -> Iterator[None]:
    yield
    from ambar.snapshot.derived.registry import FIELDS

    for name in list(FIELDS):
        ambar.fields.remove(name)


def with_yt(folder: Path, number: int = 2) -> Any:
    yt = pytest.importorskip("yt")
    yt.set_log_level(40)
    return yt.load(str(folder / f"info_{number:05d}.txt"))


def assert_equals_yt(
    amr: ambar.Amr,
    data: Any,
    names: Sequence[str],
    units: dict[str, str] | None = None,
    factors: dict[str, float] | None = None,
) -> None:
    """Assert that fields of cells equal those of yt to 1e-12 of their largest values, in CGS."""
    place = [data["index", axis].to("code_length").d for axis in "zyx"]
    theirs = np.lexsort(place)
    cells = amr.read([*"zyx", *names])
    ours = np.lexsort([cells[axis] for axis in "zyx"])
    for name in names:
        kind = "index" if name.startswith(("radius", "cylindrical_", "spherical_")) else "gas"
        expected = data[kind, name].in_cgs()
        unit = (units or {}).get(name) or str(expected.units) or "rad"
        unit = "rad" if unit == "dimensionless" else unit
        found = cells.column(name, {"G": "Gauss"}.get(unit, unit.replace("gauss", "Gauss")))[ours]
        values = expected.d[theirs] * (factors or {}).get(name, 1.0)
        largest = np.abs(values[np.isfinite(values)]).max()
        np.testing.assert_allclose(found, values, rtol=1e-12, atol=1e-12 * largest, err_msg=name)


@pytest.mark.parametrize("axis", ["z", "x", (1.0, -2.0, 0.5)])
def test_fields_equal_yts(stores: dict[str, Path], axis: Any) -> None:
    dataset = with_yt(output("gravpart"))
    data = dataset.all_data()
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    normal = np.array([0.0, 0.0, 1.0] if axis == "z" else [1.0, 0, 0] if axis == "x" else axis)
    data.set_field_parameter("center", dataset.arr(CENTER, "code_length"))
    data.set_field_parameter("normal", normal / np.linalg.norm(normal))
    data.set_field_parameter("bulk_velocity", dataset.arr(VELOCITY, "code_velocity"))
    framed = amr.about(CENTER, axis=axis, velocity=VELOCITY)
    names = [
        *(f"velocity_spherical_{part}" for part in ("radius", "theta", "phi")),
        *(f"velocity_cylindrical_{part}" for part in ("radius", "theta", "z")),
        *(f"cylindrical_{part}" for part in ("radius", "theta", "z")),
        *("radius", "spherical_theta", "spherical_phi", "kinetic_energy_density"),
    ]
    assert_equals_yt(framed, data, names)
    # yt's angular momenta are not periodic.
    data.set_field_parameter("center", dataset.arr([0.5] * 3, "code_length"))
    momenta = [f"specific_angular_momentum_{own}" for own in "xyz"]
    assert_equals_yt(amr.about(velocity=VELOCITY), data, momenta)


def test_gas_equals_yts(stores: dict[str, Path]) -> None:
    dataset = with_yt(output("gravpart"))
    constants = dataset.units.physical_constants
    data, amr = dataset.all_data(), ambar.open_snapshot(stores["gravpart"]).amr
    gravity = float(np.sqrt(constants.G.in_cgs().d / GRAVITATION))
    kelvin = HYDROGEN_MASS / BOLTZMANN / float((constants.mh / constants.kboltz).in_cgs().d)
    names = ["cell_mass", "cell_volume", "sound_speed", "mach_number", "velocity_magnitude"]
    names += ["potential_energy", "dynamical_time", "temperature"]
    factors = {"dynamical_time": gravity, "temperature": kelvin}
    assert_equals_yt(amr.with_parameters(mu=1.0), data, names, factors=factors)


def test_magnetic_fields_equal_yts() -> None:
    shared = shared_data()
    if shared is None:
        pytest.skip("no outputs outside the repository: set AMBAR_TEST_DATA")
    folder = shared / "mhd_small" / "output_00002"
    data, amr = with_yt(folder).all_data(), ambar.open_snapshot(folder).amr
    names = ["magnetic_field_x", "magnetic_field_z", "magnetic_field_strength", "alfven_speed"]
    names += ["magnetic_pressure", "plasma_beta"]
    assert_equals_yt(amr, data, names)
    found = amr.read(["magnetic_field_magnitude", "magnetic_energy_density"])
    pressure = found.column("magnetic_field_magnitude", "Gauss") ** 2 / (8 * np.pi)
    np.testing.assert_allclose(found.column("magnetic_energy_density", "erg/cm3"), pressure)


def test_formulas(gravpart: ambar.Snapshot) -> None:
    amr, info = gravpart.amr, gravpart.info
    cells = amr.read(["rho", "p", "dx", "vx", "vy", "vz", "epot"])
    rho, p, dx = cells["rho"], cells["p"], cells["dx"]
    gamma = info.gamma  # type: ignore[union-attr] # of RAMSES
    assert gamma is not None
    g = GRAVITATION * info.units.unit_d * info.units.unit_t**2
    speed = np.sqrt(cells["vx"] ** 2 + cells["vy"] ** 2 + cells["vz"] ** 2)
    sound = np.sqrt(gamma * p / rho)
    radius = (3 / (4 * np.pi)) ** (1 / 3) * dx
    expected = {
        "entropy": p / rho**gamma,
        "specific_thermal_energy": p / rho / (gamma - 1),
        "thermal_energy": p / (gamma - 1) * dx**3,
        "kinetic_energy": 0.5 * rho * dx**3 * speed**2,
        "jeans_length": np.sqrt(np.pi * sound**2 / (g * rho)),
        "jeans_number": np.sqrt(np.pi * sound**2 / (g * rho)) / dx,
        "free_fall_time": np.sqrt(3 * np.pi / (32 * g * rho)),
        "virial_parameter": 5 * (p / rho + speed**2 / 3) * radius / (g * rho * dx**3),
        "gravitational_potential": cells["epot"],
        "temperature": p / rho * info.units.temperature("K"),
        "number_density": rho * info.units.density("nH") / 0.76 * 0.76,
    }
    found = amr.read(list(expected))
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)
    short = amr.read(["cs", "T", "v", "mach", "freefall_time", "r_sphere", "vϕ_cylinder"])
    np.testing.assert_allclose(short["v"] / short["cs"], short["mach"])
    assert short.columns[-1] == "vϕ_cylinder"
    assert set(expected) <= set(amr.derived_fields)


def test_names_are_taken_everywhere(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    cells = amr.read(["rho", "vx", "vy", "cell_mass", "dx"])
    speed = np.sqrt(cells["vx"] ** 2 + cells["vy"] ** 2)
    text = "sqrt(vx**2 + vy**2)"
    np.testing.assert_allclose(amr.read(text)[text], speed, rtol=1e-15)
    assert amr.dtype(text) == amr.dtype("T") == np.float64
    inside = amr.read(
        "rho", where=f"cell_mass > {float(np.median(cells['cell_mass']))!r} and level > 4"
    )
    assert 0 < len(inside) < len(amr)
    squares = amr.grid("density**2", level=4)
    squared = amr.grid("rho * rho", level=4)
    np.testing.assert_allclose(squares, squared)
    assert squares.attrs["units"] == "code"
    lazy = amr.grid("density**2", level=4, chunks=8)
    np.testing.assert_array_equal(lazy.compute(), squares)
    for options in ({}, {"weight": "cell_mass"}, {"weight": "rho * dx"}, {"weight": "volume"}):
        image = amr.project("sound_speed", level=4, **options)  # type: ignore[arg-type]
        parts = amr.project("sound_speed", level=4, chunks=8, **options)  # type: ignore[arg-type]
        np.testing.assert_allclose(parts.compute(), image, rtol=1e-12)
    mass = amr.project("density", level=4).sum() / 256
    np.testing.assert_allclose(mass, cells["cell_mass"].sum(), rtol=1e-12)
    whole = amr.to_xarray(["T", text])
    np.testing.assert_allclose(whole[text].compute(), speed)
    assert whole["T"].attrs["units"] == "K"
    assert amr.slice("T", level=4, unit="K").attrs["units"] == "K"
    touched = amr.chunks_touched(where="density**2 > 1e30 or T < -1")
    assert touched == 0


def test_units_reach_the_end(stores: dict[str, Path]) -> None:
    pint = pytest.importorskip("pint")
    registry = pint.UnitRegistry()
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    units = amr.info.units
    cells = amr.read(["cell_mass", "rho", "vx", "rho * vx**2", "T", "age_of_flow"][:-1])
    energy = cells.column("rho * vx**2", "erg/cm**3")
    expected = cells["rho"] * cells["vx"] ** 2 * units.unit_d * units.unit_v**2
    np.testing.assert_allclose(energy, expected, rtol=1e-12)
    rate = cells.column("cell_mass", "Msun")
    np.testing.assert_allclose(rate, cells["cell_mass"] * units.mass("Msol"), rtol=1e-12)
    assert cells.column("T", "K") is not cells["T"]
    np.testing.assert_array_equal(cells.column("T", "K"), cells["T"])
    surface = amr.project("rho", level=3, unit="Msun/pc**2")
    np.testing.assert_allclose(surface, amr.project("rho", level=3, unit="Msol/pc2"))
    assert surface.attrs["units"] == "Msun/pc**2"
    emission = amr.project("number_density**2", level=3, unit="pc/cm**6")
    raw = amr.project("number_density**2", level=3)
    np.testing.assert_allclose(emission, raw * units.length("pc"))
    for unit in ("g/cm**3", "kg/m3", "g cm-3", "g*cm**-3"):
        image = amr.slice("rho", level=3, unit=unit)
        found = registry.Unit(image.attrs["units"])
        assert found.dimensionality == registry.Unit("g/cm**3").dimensionality
    assert registry.Unit(amr.slice("mach_number", level=3).attrs["units"]).dimensionless
    assert amr.slice("rho", level=3, unit="nH").attrs["units"] == "1/cm**3"
    with pytest.raises(ambar.InvalidError, match=r"not a unit of density.*g/cm\*\*3, found cm/s"):
        amr.slice("rho", level=3, unit="km/s")
    with pytest.raises(ambar.InvalidError, match=r"not a unit of rho \* vx"):
        amr.slice("rho * vx", level=3, unit="km/s")
    hot = amr.read("T", where="T > 1e4 K and rho > 1e-30 g/cm3")
    plain = amr.read("T", where="T > 1e4")
    assert len(hot) == len(plain)
    fast = amr.read("vx", where="cs > 1 km/s")
    assert len(fast) == (amr.read("cs").column("cs", "km/s") > 1).sum()
    flux = amr.read("rho", where="rho * vx > 1e-30 Msun/yr/pc2")
    assert 0 < len(flux) < len(amr)


def test_fields_of_users(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    rho = amr.read("rho")["rho"]
    ambar.fields.add("twice", "2 * rho", "density")
    ambar.fields.add("four_times", "2 * twice")
    ambar.fields.add("log_rho", lambda density: np.log(1.0 * density))
    ambar.fields.add("shifted", np.add, "Msun/yr", inputs=["rho", "four_times"])
    found = amr.read(["four_times", "log_rho", "shifted"], where="log_rho > 0 and shifted > 0")
    holds = rho > 1
    np.testing.assert_allclose(found["four_times"], 4 * rho[holds])
    np.testing.assert_allclose(found["log_rho"], np.log(rho[holds]))
    np.testing.assert_allclose(found["shifted"], 5 * rho[holds])
    np.testing.assert_allclose(found.column("shifted", "g/s"), 5 * rho[holds] * 6.303077547088e25)
    np.testing.assert_allclose(
        found.column("four_times", "g/cm3"), found["four_times"] * amr.info.units.density("g/cm3")
    )
    units = ambar.fields.available(amr)
    assert units["twice"] == units["four_times"] == units["log_rho"] == "code"
    assert units["shifted"] == "Msun/yr"
    assert amr.derived_fields[:4] == ["twice", "four_times", "log_rho", "shifted"]
    lazy = amr.to_xarray(["log_rho"])["log_rho"]
    np.testing.assert_array_equal(lazy.compute(), amr.read("log_rho")["log_rho"])
    with pytest.raises(ambar.InvalidError, match="exists"):
        ambar.fields.add("twice", "rho")
    ambar.fields.add("twice", "3 * rho", overwrite=True)
    np.testing.assert_allclose(amr.read("four_times")["four_times"], 6 * rho)
    ambar.fields.remove("twice")
    with pytest.raises(KeyError, match="'four_times' needs the field 'twice'"):
        amr.read("four_times")
    assert "four_times" not in amr.derived_fields


def test_the_stated_unit_of_an_expression_is_its_dimension(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    formula, unit = "rho * velocity_spherical_radius", "Msun/yr/kpc**2"
    ambar.fields.add("mdot", formula, unit)
    ambar.fields.add("mdot_of_function", lambda density: density, unit)
    np.testing.assert_array_equal(amr.read("mdot")["mdot"], amr.read(formula)[formula])
    factor = amr.info.units.factor("rho * vx", unit)
    expected = amr.read(formula)[formula] * factor
    np.testing.assert_allclose(amr.read("mdot").column("mdot", unit), expected)
    assert amr.mean("mdot", unit=unit) == pytest.approx(amr.mean("mdot") * factor)
    for method in (amr.project, amr.slice):
        wanted = "Msun/yr/kpc" if method == amr.project else unit
        found = method("mdot", level=4, unit=wanted)
        assert found.attrs["units"] == wanted
        np.testing.assert_allclose(found, method(formula, level=4, unit=wanted))
    rho = amr.read("rho")["rho"]
    function = amr.read("mdot_of_function")
    np.testing.assert_array_equal(function.column("mdot_of_function", unit), rho)
    assert ambar.fields.available(amr)["mdot"] == "code"
    assert ambar.fields.available(amr)["mdot_of_function"] == unit
    for wrong in ("velocity", "km/s"):
        ambar.fields.add("mdot", formula, wrong, overwrite=True)
        with pytest.raises(
            ambar.InvalidError, match=rf"unit '{wrong}', of dimension cm/s, .*g/cm\*\*2/s"
        ):
            amr.read("mdot")
        assert "mdot" not in ambar.fields.available(amr)


def test_totals_of_cells_have_no_integral(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    calls: list[Callable[[str], Any]] = [
        lambda name: amr.project(name, level=3),
        lambda name: amr.map(["density", name], resolution=4),
        lambda name: amr.velocity_cube(name, bins=2, resolution=4),
    ]
    for name, advice in [
        ("mass", "'density'"),
        ("hydro/cell_mass", "'density'"),
        ("volume", "weight='volume'"),
        ("ekin", "'kinetic_energy_density'"),
        ("thermal_energy", "'thermal_energy_density'"),
        ("potential_energy", r"'density \* potential'"),
        ("lx", r"'density \* specific_angular_momentum_x'"),
    ]:
        for call in calls:
            with pytest.raises(ambar.InvalidError, match=f"found '{name}', the total.*{advice}"):
                call(name)
    assert amr.project("mass", level=3, weight="density").shape == (8, 8)
    assert amr.map("mass", statistic="maximum", resolution=4).shape == (4, 4)
    assert amr.slice("mass", level=3).shape == (8, 8)
    with pytest.raises(TypeError, match="expected the name of one field, found \\['density', 'vx"):
        amr.velocity_cube(["density", "vx"])  # type: ignore[arg-type]


def _stop(density: np.ndarray) -> np.ndarray:
    raise KeyboardInterrupt(density)


def test_errors(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["sedov"]).amr
    for name, formula, options in [
        ("x", "rho", {}),
        ("temperature", "rho", {}),
        ("2x", "rho", {}),
        ("own", "own + 1", {}),
        ("own", "rho +", {}),
        ("own", "rho", {"unit": "parsnips"}),
        ("own", "rho", {"inputs": ["rho"]}),
        ("own", np.add, {"inputs": []}),
    ]:
        with pytest.raises(ambar.InvalidError):
            ambar.fields.add(name, formula, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected an expression or a function"):
        ambar.fields.add("own", 3)  # type: ignore[arg-type]
    with pytest.raises(KeyError, match="no field 'own'"):
        ambar.fields.remove("own")
    ambar.fields.add("density", "2 * p", overwrite=True)
    with pytest.raises(ambar.InvalidError, match="the name of a stored field"):
        amr.read("density")
    ambar.fields.remove("density")
    ambar.fields.add("a_field", "b_field + 1")
    ambar.fields.add("b_field", "a_field + 1")
    for name in ("a_field", "2 * a_field"):
        with pytest.raises(
            KeyError,
            match="available: fields depend on each other: a_field -> b_field -> a_field['\"]?$",
        ):
            amr.read(name)
    ambar.fields.add("failing", lambda density: {"no": density}[str(len(density))])
    with pytest.raises(
        ambar.InvalidError, match="function of the field .failing. failed"
    ) as caught:
        amr.read("failing")
    assert isinstance(caught.value.__cause__, KeyError)
    assert amr.read("rho", where="level > 90").columns == ["rho"]
    ambar.fields.add("stopping", _stop, inputs=["density"])
    with pytest.raises(KeyboardInterrupt):
        amr.sum("stopping")
    ambar.fields.add("short", lambda density: density[:-1])
    with pytest.raises(ambar.InvalidError, match="short"):
        amr.read("short")
    with pytest.raises(KeyError, match=r"did you mean 'density'"):
        amr.read("densty")
    with pytest.raises(KeyError, match=r"did you mean 'sound_speed'"):
        amr.read("sound_sped")
    with pytest.raises(KeyError, match=r"needs the field 'potential'"):
        amr.read("potential_energy")
    with pytest.raises(KeyError, match=r"column \"nothing\" does not exist"):
        amr.read("2 * nothing")
    with pytest.raises(ambar.InvalidError, match="expression"):
        amr.read("2 * density +")
    for change in ({"axis": "w"}, {"axis": (0, 0, 0)}, {"velocity": (1, 2)}, {"center": (0, 0)}):
        with pytest.raises(ambar.InvalidError):
            amr.about(**change)
    for wrong in ({"gamma": 0}, {"mu": -1.0}, {"birth_times": "yesterday"}):
        with pytest.raises(ambar.InvalidError):
            amr.with_parameters(**wrong)


def test_frames_and_parameters_are_kept(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    view = amr.about(CENTER, velocity=VELOCITY).with_parameters(gamma=1.2)
    copied = pickle.loads(pickle.dumps(view))
    names = ["radius", "mach_number"]
    for name in names:
        np.testing.assert_array_equal(copied.read(name)[name], view.read(name)[name])
        assert (view.read(name)[name] != amr.read(name)[name]).any()
        lazy = view.to_xarray([name])[name].compute()
        np.testing.assert_array_equal(lazy, view.read(name)[name])


def test_distances_are_periodic_where_the_box_is(stores: dict[str, Path], tmp_path: Path) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    assert amr.read(["radius"])["radius"].max() < np.sqrt(3) / 2
    corner = amr.about((0.0, 0.05, 1.0))
    cells = corner.read([*"xyz", "radius"])
    place = np.stack([cells[axis] for axis in "xyz"]) - np.array([[0.0], [0.05], [1.0]])
    place -= np.round(place)
    np.testing.assert_allclose(cells["radius"], np.sqrt((place**2).sum(0)), rtol=1e-12)
    inside = corner.read("rho", where="radius < 0.2")
    assert len(inside) == len(amr.read("rho", region=ambar.Sphere((0.0, 0.05, 1.0), 0.2)))
    assert corner.chunks_touched(where="radius > 2") == 0
    walls = ambar.open_snapshot(write_output(tmp_path, Spec(walls=((1, 1),) * 3)).folder)
    assert walls.amr.about((0, 0, 0)).read("radius")["radius"].max() > 1


def test_magnetic_names_of_old_versions_and_planes(tmp_path: Path) -> None:
    plain = ambar.open_snapshot(
        write_output(tmp_path / "new", Spec(hydro=MHD, specials=False)).folder
    )
    cells = plain.amr.read(["B_x_left", "B_x_right", "magnetic_field_x"])
    mean = (cells["B_x_left"] + cells["B_x_right"]) / 2
    np.testing.assert_array_equal(cells["magnetic_field_x"], mean)
    planar = ambar.open_snapshot(RAMSES_CASES / "mhd_2d" / "output_00002").amr
    found = planar.read(["radius", "cell_volume", "dx", "x", "y", "magnetic_field_strength"])
    np.testing.assert_allclose(found["cell_volume"], found["dx"] ** 2)
    middle = np.hypot(found["x"] - planar.boxlen / 2, found["y"] - planar.boxlen / 2)
    np.testing.assert_allclose(found["radius"], middle)
    assert "spherical_theta" not in planar.derived_fields


def test_particles(gravpart: ambar.Snapshot) -> None:
    particles = gravpart.particles.about(CENTER, velocity=VELOCITY)
    rows = particles.read(["x", "y", "vx", "vy", "vz", "mass"])
    found = particles.read(["hz", "lz", "velocity_magnitude", "ekin", "radius", "vx * mass"])
    x, y = (rows[axis] - start for axis, start in zip("xy", CENTER, strict=False))
    x, y = x - np.round(x), y - np.round(y)
    u, v, w = (rows[f"v{axis}"] - own for axis, own in zip("xyz", VELOCITY, strict=True))
    np.testing.assert_allclose(found["hz"], x * v - y * u, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(found["lz"], rows["mass"] * (x * v - y * u), rtol=1e-11, atol=1e-18)
    np.testing.assert_allclose(found["ekin"], 0.5 * rows["mass"] * (u**2 + v**2 + w**2))
    np.testing.assert_allclose(found["vx * mass"], rows["vx"] * rows["mass"])
    assert len(particles.read("mass", where="radius < 0.2 and ekin >= 0")) > 0
    with pytest.raises(ambar.InvalidError, match="no levels"):
        particles._read_arrays(["mass"], levels=(1, 2))


def test_stars_have_ages() -> None:
    run = ambar.open_snapshot(RAMSES_CASES / "stars_3d" / "output_00002")
    stars = run.particles.read(["birth_time", "age"], where="family == 2")
    assert len(stars) > 0
    expected = run.info.time - stars["birth_time"]
    np.testing.assert_allclose(stars["age"], expected, atol=1e-15)
    assert expected.min() < stars["age"].min() == 0  # rounding made new stars younger
    np.testing.assert_allclose(
        stars.column("age", "Myr"), stars["age"] * run.info.units.time("Myr"), rtol=1e-12
    )
    young = run.particles.read("age", where="family == 2 and age < 100 Myr")
    assert len(young) == (stars.column("age", "Myr") < 100).sum()


def test_sinks_and_clumps_have_units_regions_and_fields() -> None:
    run = ambar.open_snapshot(RAMSES_CASES / "sinks_clumps_3d" / "output_00002")
    units = run.info.units
    names = ["msink", "lx", "cs**2", "acc_rate", "tform", "vx", "hz", "radius", "mass"]
    sinks = run.sinks.read(names)
    assert sinks["mass"] == sinks["msink"]
    momentum = units.unit_m * units.unit_l * units.unit_v
    assert sinks.column("lx", "g cm2/s") == pytest.approx(sinks["lx"] * momentum)
    assert sinks.column("acc_rate", "Msun/yr") == pytest.approx(
        sinks["acc_rate"] * units.mass("Msol") / units.time("yr")
    )
    assert sinks.column("cs**2", "km2/s2") == pytest.approx(
        sinks["cs**2"] * units.velocity("km/s") ** 2
    )
    place = run.sinks.read(["x", "y", "z"])
    center = [float(place[axis][0]) for axis in "xyz"]
    near = ambar.Sphere(center, 0.1, unit="code")
    assert len(run.sinks.read("msink", region=near)) == 1
    assert len(run.sinks.read("msink", region=ambar.Sphere((0.3, 0.3, 0.6), 0.1))) == 0
    clumps = run.clumps.about((0.3125, 0.30868, 0.60177)).read(["radius", "mass"])
    assert clumps["radius"][0] < 1e-5
    assert clumps.column("mass", "Msol")[0] == pytest.approx(0.2361805943 * units.mass("Msol"))


EPSILON_0, MU_0 = 8.8541878188e-12, 1.25663706127e-6  # SI, CODATA 2022
CODES: dict[str, tuple[list[str], dict[str, Callable[[Any], np.ndarray]]]] = {
    "Castro": (
        ["density", "xmom", "ymom", "zmom", "rho_e", "phiGrav"],
        {
            "velocity_y": lambda c: c["ymom"] / c["density"],
            "pressure": lambda c: (5 / 3 - 1) * c["rho_e"],
            "kinetic_energy_density": lambda c: (
                (c["xmom"] ** 2 + c["ymom"] ** 2 + c["zmom"] ** 2) / (2 * c["density"])
            ),
            "potential": lambda c: c["phiGrav"],
        },
    ),
    "Quokka": (
        ["gasDensity", *(f"{axis}-GasMomentum" for axis in "xyz"), "gasInternalEnergy", "scalar"],
        {
            "density": lambda c: c["gasDensity"],
            "velocity_z": lambda c: c["z-GasMomentum"] / c["gasDensity"],
            "sound_speed": lambda c: np.sqrt(
                5 / 3 * (5 / 3 - 1) * c["gasInternalEnergy"] / c["gasDensity"]
            ),
        },
    ),
    "WarpX": (
        ["Ex", "Ey", "Ez", "Bx", "By", "Bz"],
        {
            "electric_field_strength": lambda c: np.sqrt(
                c["Ex"] ** 2 + c["Ey"] ** 2 + c["Ez"] ** 2
            ),
            "electromagnetic_energy_density": lambda c: (
                EPSILON_0 / 2 * (c["Ex"] ** 2 + c["Ey"] ** 2 + c["Ez"] ** 2)
                + (c["Bx"] ** 2 + c["By"] ** 2 + c["Bz"] ** 2) / (2 * MU_0)
            ),
            "poynting_flux_z": lambda c: (c["Ex"] * c["By"] - c["Ey"] * c["Bx"]) / MU_0,
        },
    ),
}


@pytest.mark.parametrize("code", CODES)
def test_names_of_codes(code: str, tmp_path: Path) -> None:
    """Fields of a plotfile under the names of a code give those of the catalog."""
    names, expected = CODES[code]
    plotfile = shutil.copytree(amrex_sample("advection_plt00006"), tmp_path / "plt00006")
    header = (plotfile / "Header").read_text().split("\n")
    header[2:8] = names
    (plotfile / "Header").write_text("\n".join(header))
    amr = ambar.open_snapshot(plotfile).amr.with_parameters(gamma=5 / 3)
    cells = amr.read([*names, *expected])
    with np.errstate(invalid="ignore", divide="ignore"):
        for name, formula in expected.items():
            np.testing.assert_allclose(cells[name], formula(cells), rtol=1e-9, err_msg=name)


def test_plotfiles_by_the_names_of_their_codes() -> None:
    run = ambar.open_snapshot(amrex_sample("nyx64_plt00040"))
    amr = run.amr
    cells = amr.read(["density", "xmom", "velocity_x", "vx", "T", "Temp", "dx", "cell_mass"])
    np.testing.assert_allclose(cells["velocity_x"], cells["xmom"] / cells["density"])
    np.testing.assert_array_equal(cells["vx"], cells["velocity_x"])
    np.testing.assert_array_equal(cells["T"], cells["Temp"])
    np.testing.assert_allclose(cells["cell_mass"], cells["density"] * cells["dx"] ** 3)
    with pytest.raises(ambar.UnsupportedError, match="with_units"):
        cells.column("velocity_x", "km/s")
    assert "free_fall_time" not in amr.derived_fields
    with pytest.raises(KeyError, match=r"needs physical units.*with_units"):
        amr.read("free_fall_time")
    mpc, sun = 3.08567758128e24, 1.9891e33
    known = run.with_units(ambar.Units(mpc, sun / mpc**3, mpc / 1e5))
    given = pickle.loads(pickle.dumps(known))
    table = given.amr.read(["velocity_x", "free_fall_time", "cell_mass"])
    np.testing.assert_allclose(table.column("velocity_x", "km/s"), table["velocity_x"])
    np.testing.assert_allclose(table.column("cell_mass", "Msun"), table["cell_mass"])
    assert np.median(table.column("free_fall_time", "Gyr")) > 0.1
    sphere = ambar.Sphere("bc", 2, unit="Mpc")
    assert len(given.amr.read("density", region=sphere)) == len(
        amr.read("density", region=ambar.Sphere("bc", 2, unit="code"))
    )
    dark = given.particles.read(["velocity_x", "xvel", "kinetic_energy"])
    np.testing.assert_array_equal(dark["velocity_x"], dark["xvel"])
    charge = ambar.open_snapshot(amrex_sample("lwfa_f32")).amr
    assert "cell_mass" not in charge.derived_fields
    assert "electric_field_strength" in charge.derived_fields


def test_plotfiles_equal_yts() -> None:
    yt = pytest.importorskip("yt")
    yt.set_log_level(40)
    path = amrex_sample("nyx64_plt00040")
    data = yt.load(str(path)).all_data()
    names = ["velocity_x", "velocity_magnitude", "cell_mass", "radius", "velocity_spherical_theta"]
    cells = ambar.open_snapshot(path).amr.read([*"zyx", *names])
    place = [data["index", axis].to("code_length").d for axis in "zyx"]
    ours, theirs = np.lexsort([cells[axis] for axis in "zyx"]), np.lexsort(place)
    units = {"cell_mass": "code_mass", "radius": "code_length"}
    for name in names:
        values = data["index" if name == "radius" else "gas", name]
        expected = values.to(units.get(name, "code_velocity")).d[theirs]
        largest = np.abs(expected).max()
        np.testing.assert_allclose(
            cells[name][ours], expected, rtol=1e-12, atol=1e-12 * largest, err_msg=name
        )


def test_vectors_need_a_component_of_each_dimension(tmp_path: Path) -> None:
    folder = write_output(tmp_path, Spec(specials=False, gravity="plain")).folder
    names = ["density", "velocity_x", "velocity_y", "acceleration_x", "acceleration_y"]
    part = ambar.open_snapshot(folder).load(names).amr
    for name in ("velocity_magnitude", "velocity_spherical_radius", "acceleration_magnitude"):
        assert name not in part.derived_fields
        with pytest.raises(KeyError, match=r"needs the field '\w+_z'"):
            part.read(name)
    for name in ("velocity_divergence", "vorticity_z"):
        assert name not in part.derived_fields
        with pytest.raises(KeyError, match="needs the field 'velocity_z'"):
            part.read(name)
    planar = ambar.open_snapshot(RAMSES_CASES / "mhd_2d" / "output_00002").amr
    cells = planar.read(["velocity_magnitude", "vx", "vy", "vz"])
    speed = np.sqrt(cells["vx"] ** 2 + cells["vy"] ** 2 + cells["vz"] ** 2)
    np.testing.assert_allclose(cells["velocity_magnitude"], speed)


def test_masses_of_planes_are_per_length() -> None:
    planar = ambar.open_snapshot(RAMSES_CASES / "mhd_2d" / "output_00002").amr
    units = planar.info.units
    cells = planar.read("mass")
    np.testing.assert_allclose(
        cells.column("mass", "g/cm"), cells["mass"] * units.unit_d * units.unit_l**2
    )
    with pytest.raises(ambar.InvalidError, match=r"found g$|found g\b"):
        cells.column("mass", "g")


def test_fields_of_users_in_kelvin_and_stored_names(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    ambar.fields.add("T2", lambda temperature: 2 * temperature, "temperature")
    found = amr.read(["T2", "temperature"])
    np.testing.assert_array_equal(found.column("T2", "K"), 2 * found["temperature"])
    for name in ("rho", "T", "vx"):
        with pytest.raises(ambar.InvalidError, match="is an alias of"):
            ambar.fields.add(name, "2 * pressure", overwrite=True)
    ambar.fields.add("root", lambda density: np.sqrt(density - 1e9 + 0j))
    with pytest.raises(
        ambar.InvalidError, match="root.* failed: TypeError: expected real numbers, found complex"
    ):
        amr.read("root")
    previous = "density"
    for number in range(400):
        ambar.fields.add(f"f{number}", f"{previous} + 1")
        previous = f"f{number}"
    assert len(amr.read("f40")) == len(amr)
    with pytest.raises(ambar.InvalidError, match="too many derived fields"):
        amr.read("f399")


def test_a_stored_field_comes_before_a_formula(tmp_path: Path) -> None:
    hydro = ("density", "velocity_x", "velocity_y", "velocity_z", "pressure", "temperature")
    amr = ambar.open_snapshot(write_output(tmp_path, Spec(hydro=hydro, specials=False)).folder).amr
    both = amr.read(["temperature", "T"])
    np.testing.assert_array_equal(both["T"], both["temperature"])
    np.testing.assert_array_equal(amr.read("T")["T"], both["temperature"])


def test_conditions_in_the_units_of_fields(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    numbers = amr.read("number_density")["number_density"]
    middle = float(np.median(numbers))
    for where in (
        f"number_density > {middle!r}",
        f"number_density > {middle!r} and rho > 0 g/cm3",
    ):
        assert len(amr.read("rho", where=where)) == (numbers > middle).sum()
    ambar.fields.add("speed", "vx * 2", "km/s")
    speeds = amr.read("speed")["speed"]
    limit = 0.1 * amr.info.units.velocity("km/s")
    assert len(amr.read("rho", where=f"speed > {limit!r} km/s")) == (speeds > 0.1).sum() > 0
    ambar.fields.add("speed", lambda velocity_x: velocity_x * 2, "km/s", overwrite=True)
    assert len(amr.read("rho", where="speed > 1e4 cm/s")) == (speeds > 0.1).sum()
    with pytest.raises(ambar.InvalidError, match="dimension|unit"):
        amr.read("rho", where="speed > 1 kpc")


def test_exceptions_of_functions_are_the_cause(stores: dict[str, Path]) -> None:
    class OwnError(Exception):
        pass

    def fails(density: np.ndarray) -> np.ndarray:
        raise OwnError(density.dtype)

    ambar.fields.add("failing", fails)
    ambar.fields.add("twice_failing", "2 * failing")
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    calls: list[Callable[[], Any]] = [
        lambda: amr.read("failing"),
        lambda: amr.read("density", where="twice_failing > 1"),
        lambda: amr.slice("twice_failing", level=3),
        lambda: amr.project("failing", level=3, chunks=4).compute(),
        lambda: amr.mean("failing"),
        lambda: amr.map("failing", resolution=4),
        amr.to_xarray(["failing"])["failing"].compute,
    ]
    for call in calls:
        with pytest.raises(ambar.InvalidError, match="failing.* failed: .*OwnError") as caught:
            call()
        assert isinstance(caught.value.__cause__, OwnError)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vr", "'velocity_spherical_radius' or 'velocity_cylindrical_radius'?"),
        ("v_phi", "'velocity_spherical_phi' or 'velocity_cylindrical_theta'?"),
        ("velocity_radial", "'velocity_spherical_radius'"),
        ("temp", "'temperature'?"),
        ("machnumber", "'mach_number'?"),
        ("Density", "'density'?"),
        ("densty", "'density'?"),
        ("pressur", "'pressure'?"),
    ],
)
def test_unknown_names_have_suggestions(name: str, expected: str, stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    with pytest.raises(KeyError) as caught:
        amr.mean(name)
    assert expected in str(caught.value).partition("did you mean ")[2].partition(" available")[0]


@pytest.mark.parametrize(
    ("name", "where", "expected"),
    [
        ("Y(H20)", None, r'column "Y\(H20\)" does not exist; did you mean \'Y\(H2O\)\'\?'),
        ("density", "`Y(H20)` > 0", r"did you mean 'Y\(H2O\)'\?"),
        ("density * `Y(H20)`", None, r"did you mean 'Y\(H2O\)'\?"),
        ("density * densty", None, r'column "densty" does not exist; did you mean \'density\'\?'),
        ("density * Y(H2O)", None, r"did you mean `Y\(H2O\)`, between backquotes\?"),
        ("density", "Y(H20) > 0", r"did you mean `Y\(H2O\)`, between backquotes\?"),
        ("density", "sin(density) > 0", r'unknown function "sin"; available: .*, max$'),
    ],
)
def test_suggestions_for_names_with_brackets(
    name: str, where: str | None, expected: str, tmp_path: Path
) -> None:
    fields = ["density", "Y(H2)", "Y(O2)", "Y(H2O)", "Y(OH)"]
    plotfile = Plotfile(
        fields, (4, 4), (0, 0), (1, 1), [[((0, 0), (3, 3))]], lambda *_: np.ones((5, 4, 4))
    )
    plotfile.write(tmp_path / "plt00000")
    with pytest.raises((KeyError, ValueError), match=expected):
        ambar.open_snapshot(tmp_path / "plt00000").amr.read([name], where=where)


def test_internal_names_and_messages(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    hidden = {"relative_speed", "frame_velocity_x", "relative_position_x"}
    assert not hidden & {*amr.derived_fields, *ambar.fields.available(amr)}
    assert len(amr.read("relative_speed")) == len(amr)
    with pytest.raises(KeyError, match="jeanslength"):
        amr.read("jeanslength")


def test_centers_outside_of_a_periodic_box(stores: dict[str, Path]) -> None:
    amr = ambar.open_snapshot(stores["gravpart"]).amr
    inside, outside = amr.about((0.25, 0.5, 0.75)), amr.about((2.25, -1.5, 0.75))
    np.testing.assert_array_equal(inside.read("radius")["radius"], outside.read("radius")["radius"])


def test_rows_without_a_birth_time_have_no_age() -> None:
    rows = ambar.open_snapshot(RAMSES_CASES / "stars_3d" / "output_00002").particles.read(
        ["birth_time", "age"]
    )
    np.testing.assert_array_equal(np.isnan(rows["age"]), rows["birth_time"] == 0)
    assert (rows["birth_time"] == 0).any()


def test_sides_of_cells_that_are_not_cubes() -> None:
    catalog = cell_formulas(["dx", "dy", "dz"], 3, is_cartesian=True)
    assert catalog["jeans_number"] == ["jeans_length / max(max(dx, dy), dz)"]
    [virial] = catalog["virial_parameter"]
    assert isinstance(virial, str)
    assert virial.endswith("/ (density * (dx * dy * dz)**0.6666666666666666)")
    assert cell_formulas(["dx"], 3, is_cartesian=True)["jeans_number"] == ["jeans_length / dx"]
