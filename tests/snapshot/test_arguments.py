"""Invalid arguments of cells and particles: the message names the data and what to do."""

from __future__ import annotations

import importlib.util
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.snapshot.field_names import quantity_of
from tests.helpers.paths import ROOT
from tests.helpers.sample_outputs import output

CASES = ROOT / "tests" / "data" / "ramses_cases"


def test_fields_of_sinks_and_clumps_have_units() -> None:
    assert {quantity_of(name) for name in ("msink", "mbh", "dmfsink", "mass_cl")} == {"mass"}
    assert {quantity_of(name) for name in ("rho_gas", "rho-", "rho+", "rho_av")} == {"density"}
    assert (quantity_of("peak_x"), quantity_of("vx_gas")) == ("length", "velocity")
    snapshot = ambar.open_snapshot(CASES / "sinks_clumps_3d" / "output_00002")
    sinks = snapshot.sinks.read(["msink"], where="msink > 0 Msol")
    factor = snapshot.info.units.mass("Msol")
    np.testing.assert_allclose(sinks.column("msink", "Msol"), sinks["msink"] * factor)
    assert len(snapshot.clumps.read("mass_cl", where="peak_x > -1 pc")) == len(snapshot.clumps)


@pytest.mark.parametrize(
    "region",
    [
        ambar.Box((5,) * 3, (6,) * 3),
        ambar.Sphere((5,) * 3, 0.1),
        ambar.SphericalShell((-1.1, 0.5, 0.5), 0.1, 0.9),
    ],
)
def test_regions_outside_the_box_are_refused(region: Any) -> None:
    snapshot = ambar.open_snapshot(output("gravpart"))
    for read in (snapshot.amr.read, snapshot.particles.read, snapshot.load):
        with pytest.raises(
            ambar.InvalidError,
            match="does not overlap the box.*check the unit|more than a side of the periodic box",
        ):
            read(region=region)
    # A region beside the periodic box is that of its image in the box.
    for x in (-0.05, 1.4):
        image, same = (ambar.Sphere((place, 0.5, 0.5), 0.1) for place in (x, x % 1))
        assert len(snapshot.amr.read("x", region=image)) > 0
        assert len(snapshot.amr.read("x", region=image)) == len(snapshot.amr.read("x", region=same))


def test_unknown_columns() -> None:
    snapshot = ambar.open_snapshot(output("gravpart"))
    amr, particles = snapshot.amr, snapshot.particles
    with pytest.raises(KeyError, match="output_00002: column .densty. .*did you mean 'density'"):
        amr.read("densty")
    with pytest.raises(KeyError, match=r"not a column of amr; use snapshot\.particles"):
        amr.read(where="`particles/mass` > 1")
    with pytest.raises(KeyError, match=r"not a column of particles; use snapshot\.amr"):
        particles.read("hydro/density")
    with pytest.raises(KeyError, match="between backquotes"):
        particles.read(where="particles/mass > 1")
    for name, fields in [
        ("sd", "'density'"),
        ("r", "'radius' or 'cylindrical_radius'"),
        ("div_v", "'velocity_divergence'"),
        ("etherm", "'thermal_energy' or 'specific_thermal_energy'"),
    ]:
        with pytest.raises(KeyError, match=f"did you mean {fields}[?] available: .*, and those of"):
            amr.read(name)
    with pytest.raises(KeyError, match=r"z, and those of derived_fields['\"]?$"):
        amr.read("nothing")
    for name in ("rt/Np1", "Np1", "photon_density_1"):
        with pytest.raises(KeyError, match="does not exist; .*; rt is missing: the output has no"):
            amr.read(name)


def test_a_missing_component_explains_an_unknown_column(tmp_path: Path) -> None:
    folder = tmp_path / "output_00002"
    shutil.copytree(output("gravpart"), folder)
    next(folder.glob("hydro_00002.out*")).unlink()
    with pytest.raises(KeyError, match="column .rho. does not exist.*; hydro is missing: "):
        ambar.open_snapshot(folder).amr.read("rho")


def test_arguments_of_another_type() -> None:
    amr = ambar.open_snapshot(output("gravpart")).amr
    calls: list[dict[str, Any]] = [{"fields": 3}, {"fields": [3]}, {"where": 3}]
    for call in calls:
        with pytest.raises(TypeError, match=r"expected .*found \[?3"):
            amr.read(**call)
    snapshot = ambar.open_snapshot(output("gravpart"))
    methods: list[Any] = [
        amr.map,
        amr.statistics,
        amr.to_xarray,
        amr.histogram,
        snapshot.particles.map,
        snapshot.load,
        snapshot.plot,
        partial(amr.profile, "radius"),
    ]
    for method in methods:
        with pytest.raises(TypeError, match=r"expected .*name.*, found \[3\]"):
            method([3])
    for method in (*methods[:3], *methods[4:]):
        with pytest.raises(TypeError, match="expected a name, or a list of names, found 3"):
            method(3)
    box: Any = ambar.OrientedBox
    for sides in (3, None, "abc", (1, 1)):
        with pytest.raises(ambar.InvalidError, match="expected three sides of a box, found"):
            amr.read("x", region=box("bc", sides))
    wrong: Any = True
    with pytest.raises(TypeError, match="expected the name of a field, found True"):
        amr.project("density", weight=wrong)
    wrong = 0
    with pytest.raises(ambar.InvalidError, match="invalid axis 0"):
        amr.slice("density", axis=wrong)
    with pytest.raises(ambar.InvalidError, match=r"'w'; .*map\(\) .*'faceon'"):
        amr.project("density", axis="w")
    with pytest.raises(ambar.InvalidError, match="at=5: .*a fraction of the box from 0 to 1"):
        amr.slice("density", at=5)
    for wrong in (0, "foo", (4, 4), 0.5):
        with pytest.raises(ambar.InvalidError, match=r"invalid chunks: .*expected 'auto'"):
            amr.grid("density", level=3, chunks=wrong)


def test_messages_about_arguments_name_what_to_use(tmp_path: Path) -> None:
    amr: Any = ambar.open_snapshot(output("gravpart")).amr
    opens: Any = ambar.open_snapshot
    calls: list[tuple[Any, str]] = [
        (lambda: amr.project("rho", resolution=256), r"^project\(\) got .*'resolution'; use map"),
        (lambda: amr.project("rho", pixel_size=0.1), "'pixel_size'; use map"),
        (lambda: amr.project("rho", where="rho > 1"), "'where'; use map"),
        (lambda: amr.sum("mass", "Msol"), r"^sum\(\) takes .*: field; found 'Msol' .* unit=, "),
        (lambda: amr.center_of_mass("kpc"), r"^center_of_mass\(\) .*: none; found 'kpc' .*unit="),
        (amr.mean, r"^mean\(\): missing a required argument: 'field'"),
        (lambda: opens(tmp_path, output=4), r"'output'; open_series\(path\)\.output"),
    ]
    for call, message in calls:
        with pytest.raises(TypeError, match=message):
            call()
    with pytest.raises(ambar.InvalidError, match=r"found a Sphere; read\(\) and map\(\) support"):
        amr.project("rho", region=ambar.Sphere("bc", 0.2))


def test_labels_of_projections() -> None:
    amr = ambar.open_snapshot(output("gravpart")).amr
    assert amr.project("density", level=3).attrs["units"] == "code"
    assert amr.project("density", level=3, weight="volume").attrs["units"] == "code"
    assert amr.project("density", level=3, unit="g/cm2").attrs["units"] == "g/cm**2"


def test_levels_without_cells_are_not_converted(tmp_path: Path) -> None:
    target = tmp_path / "x.ambar"
    with pytest.raises(ambar.InvalidError, match=r"no leaf cells of the levels \(9, 10\).*4 to 6"):
        ambar.convert(output("gravpart"), target, levels=(9, 10))
    assert not target.exists()


@pytest.mark.parametrize(("max_level", "levels"), [(None, (9, 12)), (6, (7, 7))])
def test_a_run_without_cells_of_the_levels_is_not_converted(
    max_level: int | None, levels: tuple[int, int], tmp_path: Path
) -> None:
    """A series of outputs without cells was written."""
    target, folder = tmp_path / "x.ambar", output("sedov").parent
    with pytest.raises(ambar.InvalidError, match=r"no leaf cells of .*; the outputs have .* 4 to"):
        ambar.convert(folder, target, levels=levels, max_level=max_level)
    assert not target.exists()


def test_outputs_without_cells_of_the_levels_are_reported(tmp_path: Path) -> None:
    folder, target = output("sedov").parent, tmp_path / "x.ambar"
    done = ambar.convert(folder, target, levels=(7, 7))
    assert done.left_out == {"cells of output_00002": "it has no leaf cells of the levels (7, 7)"}
    assert ambar.convert(folder, target, levels=(7, 7), mode="a").skipped == done.converted
    empty = ambar.open_series(target).output(2)
    assert np.isnan(empty.amr.profile("density", "pressure")["pressure"]).all()
    with pytest.raises(KeyError, match="output_00002: expected leaf cells, found none; leave"):
        empty.amr.to_vtk()
    with pytest.raises(KeyError, match="output_00002: expected leaf cells, found none"):
        ambar.export(target, tmp_path / "x.vtkhdf")
    if importlib.util.find_spec("yt"):
        with pytest.raises(
            ambar.UnsupportedError, match="that fill the box for yt, found no cells"
        ):
            empty.to_yt()


@pytest.mark.parametrize(
    ("region", "name"),
    [
        (ambar.Sphere("bc", -0.1), "radius"),
        (ambar.Cylinder("bc", 0.1, -0.1), "height"),
        (ambar.CylindricalShell("bc", -0.1, 0.1), "inner radius"),
        (ambar.OrientedBox("bc", (0.1, 0.1, -0.1)), "side"),
    ],
)
def test_negative_sizes_of_regions_are_named(region: ambar.Region, name: str) -> None:
    amr = ambar.open_snapshot(output("gravpart")).amr
    with pytest.raises(ValueError, match=rf"invalid {name}: -0\.1; expected a number >= 0"):
        amr.read("level", region=region)


def test_nan_is_not_an_extremum_to_use_as_a_center() -> None:
    """The position of the first NaN was the center."""
    amr = ambar.open_snapshot(output("gravpart")).amr
    found = amr.argmax("sqrt(vx)")
    assert np.isnan(found.value)
    advice = r"found NaN at \(.*\); exclude it with where='sqrt\(vx\) == sqrt\(vx\)'"
    with pytest.raises(ValueError, match=advice):
        amr.find_center("max:sqrt(vx)")
    peak = amr.find_center("max:sqrt(vx)", where="sqrt(vx) == sqrt(vx)")
    np.testing.assert_array_equal(peak, amr.argmax("vx").position)


@pytest.mark.parametrize("levels", [(0, 300), (-3, -1), (2**70, 2**71), (6, 4)])
def test_levels_that_cannot_exist(levels: tuple[int, int], tmp_path: Path) -> None:
    """An OverflowError, and a fault of ambar on the command line."""
    snapshot = ambar.open_snapshot(output("gravpart"))
    with pytest.raises(ambar.InvalidError, match=r"invalid levels: .* from 0 to 255"):
        snapshot.amr.read("density", levels=levels)
    with pytest.raises(ambar.InvalidError, match=r"invalid levels: .* from 0 to 255"):
        snapshot.load(levels=levels)
    with pytest.raises(ambar.InvalidError, match=r"invalid levels: .* from 0 to 255"):
        ambar.convert(output("gravpart"), tmp_path / "x.ambar", levels=levels)
    with pytest.raises(ambar.InvalidError, match=r"invalid max_level: .* from 0 to 255"):
        ambar.convert(output("gravpart"), tmp_path / "x.ambar", max_level=300)
    with pytest.raises(ambar.InvalidError, match="no cells of level -1: expected 0 to 255"):
        snapshot.amr.cell_size(-1)


@pytest.mark.parametrize(
    ("name", "value"),
    [("unit_l", "0.000E+00"), ("unit_t", "Infinity"), ("boxlen", "nan"), ("boxlen", "-0.1D+01")],
)
def test_invalid_scales_of_outputs_are_refused(name: str, value: str, tmp_path: Path) -> None:
    """Units of 0 were a ZeroDivisionError of pictures and comparisons."""
    run = tmp_path / "run"
    shutil.copytree(output("gravpart"), run / "output_00002")
    info = run / "output_00002" / "info_00002.txt"
    lines = [line for line in info.read_text().splitlines() if not line.startswith(name)]
    info.write_text("\n".join([*lines[:7], f"{name:<12}=  {value}", *lines[7:]]))
    message = rf"info_00002\.txt: invalid {name}: {value.replace('+', '.')}; expected a finite"
    for source in (run, run / "output_00002"):
        with pytest.raises(ambar.InvalidError, match=message):
            ambar.convert(source, tmp_path / "x.ambar")
    with pytest.raises(ambar.InvalidError, match=message):
        ambar.open(run / "output_00002")


def test_names_of_other_objects_and_methods() -> None:
    snapshot = ambar.open_snapshot(output("sedov"))
    with pytest.raises(AttributeError, match="'rt'; the fields of hydro, gravity and rt are in"):
        getattr(snapshot, "rt")  # noqa: B009 - unknown to type checkers
    assert not hasattr(snapshot, "nothing")
    ball = ambar.Sphere("max:density", 0.1)
    with pytest.raises(ValueError, match=r"run\.amr\.find_center\('max:density', unit='box'\)"):
        snapshot.amr.read("density", region=ball)
    with pytest.raises(TypeError, match='write units="nH"'):
        snapshot.amr.profile("radius", "density", unit="nH")  # type: ignore[call-arg]


def test_strings_that_are_not_unicode_are_refused(tmp_path: Path) -> None:
    """They were UnicodeEncodeErrors, and TypeErrors of the extension module."""
    bad, path = "v\udc80", tmp_path / "x.ambar"
    expected = pytest.raises(ambar.InvalidError, match=r"'v\\udc80.*found a lone surrogate; remove")
    with ambar.create(path) as writer:
        assert bad not in writer
        for refused in (
            lambda: writer.create_array(bad, [1.0]),
            lambda: writer.create_array("x", [1.0], dims=[bad]),
            lambda: writer.create_array("x", [1.0], error_bound=bad),
            lambda: writer.create_group(bad),
            lambda: writer.commit(bad),
        ):
            with expected:
                refused()
    assert bad not in ambar.open_store(path)
    with expected:
        ambar.open_store(path)[bad]
    with expected:
        ambar.tag(path, bad)
    source, target = output("gravpart"), tmp_path / "run.ambar"
    for name in ("components", "error_bound", "profile"):
        options: Any = {name: bad}
        with pytest.raises(ambar.InvalidError, match=f"invalid {name}: .* a lone surrogate"):
            ambar.convert(source, target, **options)
    with expected:
        ambar.open_snapshot(source).amr.read("density", where=f"{bad} > 1")
    with ambar.open_collection(tmp_path / "c.ambar", "w-") as collection:
        with expected:
            collection.add("a", {"v": (bad, [1.0])})
        collection.add("a", {"v": ("z", [1.0])})
    with expected:
        ambar.open_collection(tmp_path / "c.ambar").read("v", f"{bad} > 1")


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda run: run.amr.read("density").to_pandas(), "to_pandas needs pandas.*'pandas'"),
        (lambda run: run.amr.read("density").to_polars(), "to_polars needs polars.*'polars'"),
        (lambda run: run.amr.read("density").to_xarray(), r"needs xarray.*'ambar\[xarray\]'"),
        (lambda run: run.amr.to_xarray(), r"to_xarray needs xarray.*'ambar\[xarray\]'"),
        (lambda run: run.to_xarray(), r"to_xarray needs xarray.*'ambar\[xarray\]'"),
        (lambda run: run.amr.project("density"), r"project needs xarray.*'ambar\[xarray\]'"),
        (lambda run: run.amr.map("density"), r"a map needs xarray.*'ambar\[xarray\]'"),
        (lambda run: run.particles.map("mass"), r"a map needs xarray.*'ambar\[xarray\]'"),
        (lambda run: ambar.write_fits(run, "x.fits"), r"FITS needs astropy.*'ambar\[fits\]'"),
        (lambda run: ambar.read_mesh(run.location), r"vtkmodules.*'ambar\[mesh\]'"),
    ],
)
def test_errors_of_missing_packages_say_what_to_install(
    call: Any, why: str, stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = ambar.open_snapshot(stores["gravpart"])
    monkeypatch.setattr("ambar._util.optional.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match=why):
        call(run)


def test_arguments_of_wrong_types_name_the_argument(gravpart: ambar.Snapshot) -> None:
    amr: Any = gravpart.amr
    for unit in (3, None):
        with pytest.raises(TypeError, match="unit: expected a string such as 'code'"):
            amr.mean("density", unit=unit)
    with pytest.raises(TypeError, match="unit: expected a string .*, or a mapping"):
        amr.profile("radius", "density", units=3)
    for options in ({"bins": (4, 4, 4)}, {"log": (True,)}, {"range": ((0, 1),)}):
        name = next(iter(options))
        with pytest.raises(ValueError, match=f"invalid {name}: .*tuple of two, one for each"):
            amr.phase("density", "pressure", **options)
    with pytest.raises(ValueError, match="invalid range: 0; expected two numbers"):
        amr.phase("density", "pressure", range=(0, 1))
    with pytest.raises(ValueError, match="invalid edges of bins: 'x'"):
        amr.profile("radius", "density", bins="x")
    with pytest.raises(TypeError, match="gamma: expected a number, found 'x'"):
        amr.with_parameters(gamma="x")
    with pytest.raises(TypeError, match="at: expected a number, found 'x'"):
        amr.slice("density", at="x")
    text: Any = "0.1"
    regions = (
        ambar.Sphere("bc", text),
        ambar.Cylinder("bc", 0.1, height=text),
        ambar.Box((text, 0, 0), (1, 1, 1)),
    )
    for region in regions:
        with pytest.raises(TypeError, match=r"region: expected a number, found '0\.1'"):
            amr.read("density", region=region)
    number: Any = 0
    with pytest.raises(ValueError, match="corners of 3 numbers.*found 0"):
        amr.read("density", region=ambar.Box(number, number))
