"""The wheel has the package and the C library; programs in C, C++ and Fortran need nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ambar
from tests.helpers.paths import EXAMPLES, PROGRAMS, ROOT

PACKAGE = ROOT / "python" / "ambar"
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "lib_core.so"
MATURIN = Path(sys.executable).with_name("maturin")
FILES_OF_THE_LIBRARY = {
    "lib/libambar.so.0",
    "lib/libambar.so",
    "lib/pkgconfig/ambar.pc",
    "lib/cmake/ambar/ambar-config.cmake",
    "lib/cmake/ambar/ambar-config-version.cmake",
}

pytestmark = pytest.mark.skipif(
    not (BUILT.exists() and MATURIN.exists()), reason="no extension was built here"
)


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    """Run a program; return what it prints."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    run("make", "--no-print-directory", "native", folder=ROOT)
    options = ["--release", "--locked", "--offline", "--compatibility", "linux"]
    options += ["--compression-level", "9"]
    command = [MATURIN, "build", *options, "--interpreter", sys.executable, "--out", folder]
    run(*map(str, command), folder=ROOT)
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of packages with nothing but what is in the wheel."""
    folder = tmp_path_factory.mktemp("site packages")
    with zipfile.ZipFile(wheel) as opened:
        opened.extractall(folder)
    return folder


@pytest.fixture
def options(site: Path, tmp_path: Path) -> Config:
    """Return what `python -m ambar.config` of the wheel prints."""
    return Config(site, tmp_path)


class Config:
    """`python -m ambar.config` of an installation."""

    def __init__(self, site: Path, folder: Path) -> None:
        self._site, self._folder = site, folder

    def __call__(self, *names: str) -> str:
        """Return what it prints."""
        command = [sys.executable, "-m", "ambar.config", *names]
        return run(*command, folder=self._folder, PYTHONPATH=os.fspath(self._site)).strip()


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
    sources = {
        f"ambar/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix != ".so" and path.parent.name != "__pycache__"
    }
    sources = {name for name in sources if not name.startswith("ambar/native/")}
    assert {"ambar/py.typed", "ambar/_core.pyi", "ambar/samples/implosion.ambar"} <= sources
    libraries = {"ambar/_core.abi3.so", "ambar/plugins/libh5z_ambar.so"}
    headers = {
        f"include/{path.relative_to(ROOT / 'include').as_posix()}"
        for path in (ROOT / "include").rglob("*")
        if path.is_file()
    }
    native = {f"ambar/native/{name}" for name in headers | FILES_OF_THE_LIBRARY}
    about = {name.partition("/")[2] for name in names if ".dist-info/" in name}
    assert {name for name in names if ".dist-info/" not in name} == sources | libraries | native
    assert {"METADATA", "entry_points.txt"} <= about
    assert {"licenses/LICENSE-APACHE", "licenses/LICENSE-MIT"} <= about
    assert wheel.stat().st_size < 16.0e6


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is missing")
def test_a_c_program_is_built_against_the_wheel(options: Config, tmp_path: Path) -> None:
    source = PROGRAMS / "c" / "store.c"
    command = f"gcc -o store '{source}' {options('--cflags', '--libs')} -lm"
    run("sh", "-c", command, folder=tmp_path)
    run("./store", "x.ambar", folder=tmp_path)
    assert ambar.open_store(tmp_path / "x.ambar")["columns/numbers"][3] == 9


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="gfortran is missing")
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="pkg-config is missing")
def test_a_fortran_program_is_built_against_the_wheel(options: Config, tmp_path: Path) -> None:
    """By pkg-config, in a folder whose name has a space."""
    folder = options("--fortran")
    modules = ["ambar_c", "ambar_reading", "ambar_writing", "ambar_in_situ", "ambar"]
    sources = [f"'{folder}/{name}.f90'" for name in modules]
    command = f"gfortran -o alone {' '.join(sources)} '{PROGRAMS / 'mpi' / 'alone.f90'}' "
    found = options("--pkgconfigdir")
    # `eval`, since pkg-config escapes the space for a shell.
    command = f'eval "{command} $(pkg-config --libs ambar)"'
    run("sh", "-c", command, folder=tmp_path, PKG_CONFIG_PATH=found)
    run("./alone", "x.ambar", folder=tmp_path)
    assert ambar.open_store(tmp_path / "x.ambar")["step_000001/u"][1, 2] == 9


PROJECT = f"""
cmake_minimum_required(VERSION 3.18)
project(solvers LANGUAGES C CXX Fortran)
find_package(ambar 0.1 REQUIRED COMPONENTS MPI Fortran HDF5)
add_executable(c {PROGRAMS}/c/store.c)
target_link_libraries(c ambar::ambar m)
add_executable(mpi {EXAMPLES}/mpi/heat.cpp)
target_link_libraries(mpi ambar::mpi)
add_executable(fortran {PROGRAMS}/mpi/alone.f90)
target_link_libraries(fortran ambar::fortran)
add_executable(fortran_mpi {EXAMPLES}/mpi/heat.f90)
target_link_libraries(fortran_mpi ambar::fortran_mpi)
add_executable(hdf5 {PROGRAMS}/hdf5/serial.c)
target_link_libraries(hdf5 ambar::hdf5 m)
file(GENERATE OUTPUT plugin.txt CONTENT "${{ambar_HDF5_PLUGIN_PATH}}")
"""


@pytest.mark.skipif(
    not all(map(shutil.which, ["cmake", "gcc", "g++", "gfortran", "mpicc", "h5cc"])),
    reason="cmake, a compiler, MPI or HDF5 is missing",
)
def test_cmake_builds_programs_of_all_components(options: Config, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-B", "build", f"-Dambar_DIR={options('--cmakedir')}", folder=tmp_path)
    run("cmake", "--build", "build", "--parallel", "2", folder=tmp_path)
    plugins = (tmp_path / "build" / "plugin.txt").read_text()
    assert Path(plugins) == Path(options("--hdf5-plugin"))
    run("build/c", "c.ambar", folder=tmp_path)
    run("build/fortran", "fortran.ambar", folder=tmp_path)
    run("build/mpi", "mpi.ambar", "2", "16", folder=tmp_path)
    run("build/fortran_mpi", "fortran_mpi.ambar", "2", "16", folder=tmp_path)
    for name in ("mpi", "fortran_mpi"):
        assert len(ambar.open_store(tmp_path / f"{name}.ambar").groups) > 2
    run("build/hdf5", "x.h5", folder=tmp_path, HDF5_PLUGIN_PATH=plugins)


def test_cmake_says_what_a_component_needs(options: Config, tmp_path: Path) -> None:
    for wanted, message in {"Fortran": "needs a compiler", "Fotran": "unknown component"}.items():
        (tmp_path / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.18)\nproject(x C)\n"
            f"find_package(ambar REQUIRED COMPONENTS {wanted})\n"
        )
        done = subprocess.run(
            ["cmake", "-B", tmp_path / "build", f"-Dambar_DIR={options('--cmakedir')}", tmp_path],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert message in " ".join(done.stderr.split())
