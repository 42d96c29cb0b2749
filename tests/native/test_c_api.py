"""The C API: compiled, linked both ways, found by pkg-config and CMake, and read by others."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ambar
from tests.helpers.c_programs import compile_program, installed, run_program
from tests.helpers.paths import PROGRAMS, ROOT

SOURCE = PROGRAMS / "c" / "store.c"


def expected(time: float) -> np.ndarray:
    """Return the field that the program writes, (z, y, x)."""
    z, y, x = np.meshgrid(np.arange(20.0), np.arange(30.0), np.arange(40.0), indexing="ij")
    return np.sin(0.1 * z) + np.cos(0.2 * y) * x + time


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_a_program_writes_and_zarr_reads(tmp_path: Path, static: bool) -> None:
    zarr = pytest.importorskip("zarr")
    program = compile_program(SOURCE, tmp_path / "store", flags=("-std=c99",), static=static)
    path = tmp_path / "x.ambar"
    printed = run_program(program, path)
    assert printed.split() == [
        '[{"kind":"group","name":"run"},{"kind":"group","name":"columns"}]',
        ambar.__version__,
    ] or printed.split() == [
        '[{"name":"run","kind":"group"},{"name":"columns","kind":"group"}]',
        ambar.__version__,
    ]
    assert zipfile.ZipFile(path).testzip() is None
    group = zarr.open_group(zarr.storage.ZipStore(path, mode="r"), mode="r")
    np.testing.assert_allclose(group["run/step_000000/density"][:], expected(0.0), rtol=1e-15)
    np.testing.assert_array_equal(group["columns/numbers"][:], np.arange(100000) * 3)
    assert group["run"].attrs["ambar"]["times"] == [0.0, 0.5]
    assert dict(group["columns"].attrs) == {"about": "rows"}
    store = ambar.open_store(path)
    bounded = store["run/step_000001/density"]
    assert np.abs(bounded[:] - expected(0.5)).max() <= 1e-3
    assert bounded.attrs["units"] == "g/cm^3"


def test_the_header_is_c_plus_plus_too(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("g++ is missing")
    source = tmp_path / "x.cpp"
    source.write_text(
        "#include <ambar.h>\n#include <cstdio>\nint main() { std::puts(ambar_version()); }\n"
    )
    program = compile_program(source, tmp_path / "x", "g++")
    assert run_program(program).strip() == ambar.__version__


def test_the_header_has_the_version_of_the_library(tmp_path: Path) -> None:
    source = tmp_path / "version.c"
    source.write_text(
        "#include <ambar.h>\n#include <stdio.h>\n#include <string.h>\n"
        "int main(void) {\n"
        '    printf("%d.%d.%d\\n", AMBAR_VERSION_MAJOR,\n'
        "           AMBAR_VERSION_MINOR, AMBAR_VERSION_PATCH);\n"
        "    return strcmp(AMBAR_VERSION, ambar_version());\n"
        "}\n"
    )
    program = compile_program(source, tmp_path / "version")
    assert run_program(program).strip() == ambar.__version__


def test_the_static_library_exports_the_api_alone() -> None:
    """The static library exported zstd, LZ4 and blosc, which clashed with a program's own."""
    if shutil.which("nm") is None:
        pytest.skip("nm is missing")
    header = (ROOT / "include" / "ambar.h").read_text()
    functions = set(re.findall(r"^[a-z].*?\b(ambar_[a-z0-9_]+)\(", header, re.MULTILINE))
    assert len(functions) > 40
    shown = run_program("nm", "-g", "--defined-only", installed() / "lib" / "libambar.a")
    assert {line.split()[-1] for line in shown.splitlines() if len(line.split()) == 3} == functions


def test_pkg_config_finds_it() -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is missing")
    folder = installed() / "lib" / "pkgconfig"
    told = [
        run_program("pkg-config", f"--with-path={folder}", what, "ambar")
        for what in ("--modversion", "--cflags", "--libs")
    ]
    assert told[0].strip() == ambar.__version__
    assert f"-I{installed()}/include" in told[1]
    assert "-lambar" in told[2]


def test_cmake_finds_it(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is missing")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\n"
        "project(x C)\n"
        "find_package(ambar 0.1 REQUIRED)\n"
        f"add_executable(x {SOURCE})\n"
        "target_link_libraries(x ambar::ambar m)\n"
    )
    build = tmp_path / "build"
    commands: list[list[str | Path]] = [
        ["cmake", "-S", tmp_path, "-B", build, f"-DCMAKE_PREFIX_PATH={installed()}"],
        ["cmake", "--build", build],
    ]
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    run_program(build / "x", tmp_path / "x.ambar")
