"""Birth times of cosmological runs equal those of yt and pynbody."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ambar
from ambar.snapshot.physics.constants import YEAR
from ambar.snapshot.physics.cosmology import Cosmology
from tests.helpers.ramses_outputs import Spec, write_output
from tests.helpers.ramses_outputs.variants import OLD_PARTICLES

PARTICLES = (*OLD_PARTICLES[:9], ("family", "b"), ("tag", "b"), *OLD_PARTICLES[9:])
SPEC = Spec(expansion=0.5, particles=PARTICLES, specials=False)


def write(folder: Path, spec: Spec, times: tuple[float, float], namelist: str = "") -> Path:
    """Write an output whose particles were born uniformly between two times."""
    made = write_output(folder, spec)
    files = sorted(made.folder.glob("part_*.out*"))
    rng = np.random.default_rng(1)
    for path in files:
        rewrite_birth_times(path, spec, rng, times)
    with (made.folder / "namelist.txt").open("a") as text:
        text.write(namelist)
    return made.folder


def rewrite_birth_times(
    path: Path, spec: Spec, rng: np.random.Generator, times: tuple[float, float]
) -> None:
    data = bytearray(path.read_bytes())
    names = [name for name, _ in spec.particle_columns]
    position, index = 0, 0
    while position < len(data):
        size = int(np.frombuffer(data, "<i4", 1, position)[0])
        if index == 8 + names.index("birth_time"):
            born = rng.uniform(*times, size // 8)
            born[::7] = 0.0
            data[position + 4 : position + 4 + size] = born.tobytes()
        position, index = position + 8 + size, index + 1
    path.write_bytes(data)


def test_times_equal_integrals() -> None:
    quad = pytest.importorskip("scipy.integrate").quad
    universe = Cosmology(70.0, 0.3, 0.65, 0.05, 0.5)

    def rate(a: float) -> float:
        return float(np.sqrt(0.3 + 0.05 * a + 0.65 * a**3))

    for aexp in (1e-3, 0.02, 0.3, 0.999, 1.0, 1.4):
        conformal = quad(lambda a: 1 / (a**1.5 * rate(a)), 1, aexp, epsabs=0, epsrel=1e-12)[0]
        proper = quad(lambda a: np.sqrt(a) / rate(a), 0, aexp, epsabs=0, epsrel=1e-12)[0]
        found = universe.since_big_bang(np.array([conformal]))[0]
        assert found == pytest.approx(proper * universe.hubble_time, rel=1e-9)
    assert np.isnan(universe.ages(np.array([0.0, np.nan]))).all()
    assert universe.since_big_bang(np.array([-1e9]))[0] == pytest.approx(0, abs=1e-6 * YEAR * 1e9)


@pytest.mark.parametrize("kind", ["conformal", "namelist", "rt", "parameter"])
def test_ages_equal_yts(tmp_path: Path, kind: str) -> None:
    yt = pytest.importorskip("yt")
    from yt.utilities.lib import cosmology_time

    yt.set_log_level(40)
    is_proper = kind != "conformal"
    spec = replace(SPEC, groups=2) if kind == "rt" else SPEC
    times = (-0.9, -0.6) if is_proper else (-3.0, -1.2)
    namelist = "&SF_PARAMS\nuse_proper_time=.true.\n/\n" if kind == "namelist" else ""
    folder = write(tmp_path, spec, times, namelist)
    run = ambar.open_snapshot(folder)
    particles = run.particles
    if kind == "parameter":
        particles = particles.with_parameters(birth_times="proper")
    rows = particles.read(["identity", "birth_time", "age"])
    options: dict[str, Any] = {"cosmological": True, "use_conformal_time": not is_proper}
    dataset = yt.load(str(folder / f"info_{spec.number:05d}.txt"), **options)
    data = dataset.all_data()
    if is_proper:
        # As yt's star_age_from_physical_cosmo, which fails in yt 4.4.
        raw = rows["birth_time"]
        hubble_time = 1 / dataset.quan(dataset.hubble_constant * 100, "km/s/Mpc")
        today = cosmology_time.t_frw(dataset, 0.0)
        expected = (dataset.current_time - today - raw * hubble_time).to("Myr").d
    else:
        raw = data["io", "conformal_birth_time"].d
        expected = data["io", "star_age"].to("Myr").d
    order, theirs = np.argsort(rows["birth_time"]), np.argsort(raw)
    np.testing.assert_array_equal(rows["birth_time"][order], raw[theirs])
    stars = rows["birth_time"][order] != 0
    assert 0 < stars.sum() < len(stars)
    found = rows.column("age", "Myr")[order]
    # yt interpolates linearly in a table of 10,000 steps or fewer, and has another Gyr.
    np.testing.assert_allclose(found[stars], expected[theirs][stars], rtol=2e-3, atol=2)
    assert np.isnan(found[~stars]).all()
    born = rows.column("birth_time", "Myr")[order][stars]
    np.testing.assert_allclose(born + found[stars], run.info.age("Myr"))
    young = particles.read("age", where="age < 3000 Myr")
    assert len(young) == (found[stars] < 3000).sum()


def test_ages_equal_pynbodys(tmp_path: Path) -> None:
    pynbody = pytest.importorskip("pynbody")
    from pynbody.analysis import cosmology

    folder = write(tmp_path, SPEC, (-3.0, -1.2))
    rows = ambar.open_snapshot(folder).particles.read(["birth_time"], where="birth_time != 0")

    universe = pynbody.new(1)
    universe.properties.update(h=0.7, omegaM0=0.3, omegaL0=0.7, omegaB0=0.05, a=0.5)
    bins = np.geomspace(1e-3, 1, 10_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        redshifts = 1 / bins - 1
        tau = cosmology.tau(universe, z=redshifts, unit="0.01 s Mpc km^-1") * 0.7
        ages = cosmology.age(universe, z=redshifts)
    expected = np.interp(rows["birth_time"], np.asarray(tau), np.asarray(ages))
    np.testing.assert_allclose(rows.column("birth_time", "Gyr"), expected, rtol=1e-4)
