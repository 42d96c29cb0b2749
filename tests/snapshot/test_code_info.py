"""Run information of codes without a reader: units of fields, cosmology, stores that have it."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

import ambar

MASS = 1.989e43
INFO = ambar.CodeInfo(
    code="gadget",
    ndim=3,
    time=0.0,
    lower=(0.0, 0.0, 0.0),
    upper=(2.0, 2.0, 2.0),
    periodic=(True, True, True),
    unit_l=3.08567758128e24,
    unit_d=1e-29,
    unit_t=3e17,
    aexp=0.25,
    H0=70.0,
    omega_m=0.3,
    gamma=5 / 3,
    field_units={
        "particles/gas/mass": f"{MASS}*g",
        "particles/gas/Temperature": "K",
        "particles/gas/current": "cd/m**2",
        "cells/mass": "kg",
    },
    parameters={"Redshift": 3.0, "names": ["a", "b"]},
)


@pytest.fixture
def gas(tmp_path: Path) -> ambar.Particles:
    columns = {f"position_{axis}": np.array([0.5, 1.5]) for axis in "xyz"}
    columns |= {name: np.array([1.0, 2.0]) for name in ("mass", "Temperature", "current")}
    columns["velocity_x"] = np.array([3.0, 4.0])
    table = {"version": 1, "kind": "particles", "columns": list(columns), "ndim": 3, "boxlen": 2.0}
    table["positions"] = list(columns)[:3]
    about = {"version": 1, "kind": "snapshot", "source": {"format": "gadget"}, "missing": {}}
    about |= {"components": {"particles/gas": list(columns)}}
    with ambar.create(tmp_path / "gas.ambar") as writer:
        writer._create_group("/", {"ambar": {**about, "info": asdict(INFO)}})
        writer._create_group("particles/gas", {"ambar": table})
        for name, values in columns.items():
            writer.create_array(f"particles/gas/{name}", values, chunks=(2,))
    snapshot = ambar.open_snapshot(tmp_path / "gas.ambar")
    assert snapshot.info == INFO
    assert "gadget" in repr(snapshot)
    return snapshot.species["gas"]


def test_unknown_species_name_those_that_exist(gas: ambar.Particles, tmp_path: Path) -> None:
    snapshot = ambar.open_snapshot(tmp_path / "gas.ambar")
    with pytest.raises(KeyError, match="species 'Gas' .* did you mean 'gas'. available: gas"):
        snapshot.species["Gas"]
    with pytest.raises(KeyError, match="catalogue of halos 'fof' does not exist; available: none"):
        snapshot.halos["fof"]
    assert snapshot.species.get("stars") is None
    assert len(pickle.loads(pickle.dumps(snapshot.species))["gas"]) == len(gas)


def test_fields_have_units_of_their_own(gas: ambar.Particles) -> None:
    rows = gas.read(["mass", "Temperature", "velocity_x", "current", "mass * velocity_x"])
    np.testing.assert_allclose(rows.column("mass", "g"), [MASS, 2 * MASS])
    np.testing.assert_allclose(rows.column("Temperature", "nK"), [1e9, 2e9])
    np.testing.assert_allclose(
        rows.column("velocity_x", "km/s"), np.array([3, 4]) * INFO.units.velocity("km/s")
    )
    np.testing.assert_allclose(
        rows.column("mass * velocity_x", "g cm/s"),
        np.array([3, 8]) * MASS * INFO.units.unit_v,
    )
    assert gas.read(["mass"], where="mass > 1.5e43 kg").column("mass").tolist() == []
    assert gas.read(["mass"], where="mass > 3e43 g").column("mass").tolist() == [2.0]
    labels = gas.to_xarray()
    assert [labels[name].attrs["units"] for name in ("mass", "Temperature", "current")] == [
        f"{MASS}*g",
        "K",
        "cd/m**2",
    ]
    with pytest.raises(ambar.UnsupportedError, match=r"'cd/m\*\*2', which is not a unit"):
        rows.column("current", "g")
    # Formulas whose constants assume code units would be wrong.
    assert "G" not in gas._constants
    assert gas._constants["gamma"] == 5 / 3


def test_given_units_keep_those_of_fields() -> None:
    given = INFO.with_units(ambar.Units(1.0, 2.0, 3.0))
    assert given.units.time("s") == 3.0
    assert given.units_of("particles/gas").factor("mass", "g") == MASS
    assert given.units_of("cells").factor("mass", "g") == pytest.approx(1000)


def test_without_units_only_fields_are_converted() -> None:
    info = ambar.CodeInfo("x", 1, 0.0, (0.0,), (1.0,), field_units={"cells/speed": "km/s"})
    assert not info.physical
    assert info.units_of("cells").factor("speed", "m/s") == 1000.0
    with pytest.raises(ambar.UnsupportedError, match="does not state its units"):
        info.units_of("cells").factor("density", "g/cm3")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"upper": [1.0]}, "3 values of upper, found 1"),
        ({"ndim": 4}, "1 to 3 dimensions"),
        ({"unit_l": -1.0}, "unit_l"),
        ({"field_units": {"cells/x": 3}}, "text as the unit"),
        ({"field_units": 3}, "invalid run information"),
    ],
)
def test_invalid_information_is_refused(changed: dict[str, object], message: str) -> None:
    values = json.loads(json.dumps(asdict(INFO)))
    assert ambar.CodeInfo.from_dict(values) == INFO
    with pytest.raises(ambar.InvalidError, match=message):
        ambar.CodeInfo.from_dict({**values, **changed})
