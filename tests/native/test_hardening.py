"""The compiled libraries export and permit no more than they must."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from ambar import _core
from tests.helpers.c_programs import installed
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not (shutil.which("nm") and shutil.which("readelf")),
    reason="nm and readelf (binutils) look into libraries of Linux",
)


@pytest.fixture(params=["_core", "libambar.so", "libh5z_ambar.so"])
def library(request: pytest.FixtureRequest) -> Path:
    """Return the Python module, the C library or the filter for HDF5."""
    if request.param == "_core":
        return Path(_core.__file__)
    folder = "lib" if request.param == "libambar.so" else "lib/hdf5/plugin"
    return installed() / folder / request.param


def output(library: Path, *command: str) -> str:
    """Return what a program prints of a library."""
    done = subprocess.run([*command, library], capture_output=True, text=True, check=True)
    return done.stdout


def declared_functions(header: Path) -> set[str]:
    """Return the functions that a header declares."""
    return set(re.findall(r"^(?!typedef)[\w ]+[ *](ambar_\w+)\(", header.read_text(), re.MULTILINE))


def test_only_the_interface_is_exported(library: Path) -> None:
    """Other functions were exported by the module, and could replace another library's."""
    expected = {
        "libambar.so": declared_functions(ROOT / "include" / "ambar.h"),
        "libh5z_ambar.so": {"H5PLget_plugin_info", "H5PLget_plugin_type"},
    }.get(library.name, {"PyInit__core"})
    symbols = output(library, "nm", "--dynamic", "--defined-only").split("\n")
    assert {line.split()[-1] for line in symbols if line} == expected


def test_addresses_are_read_only_and_no_stack_is_executed(library: Path) -> None:
    """Full RELRO: all addresses are resolved at the start, and nothing writes to them later."""
    segments = output(library, "readelf", "--segments", "--wide").split("\n")
    assert any("GNU_RELRO" in line for line in segments)
    stack = next(line for line in segments if "GNU_STACK" in line)
    assert "RWE" not in stack.split()
    assert not any("RWE" in line for line in segments)
    dynamic = output(library, "readelf", "--dynamic", "--wide")
    assert "BIND_NOW" in dynamic or "NOW" in dynamic
    assert "TEXTREL" not in dynamic
    assert "RUNPATH" not in dynamic
    assert "RPATH" not in dynamic


def test_the_parts_in_c_are_guarded_against_overflows_of_the_stack(library: Path) -> None:
    """zstd, lz4 and Blosc parse what a file says; a broken stack ends the process immediately."""
    if library.name == "libh5z_ambar.so":
        pytest.skip("the filter has nothing of them")
    assert "__stack_chk_fail" in output(library, "nm", "--dynamic", "--undefined-only")


def test_wheels_carry_no_debug_information() -> None:
    """A library of 115 MB was shipped, most of it symbols and line tables."""
    place = ROOT / "pyproject.toml"
    assert tomllib.loads(place.read_text())["tool"]["maturin"]["strip"] is True


def test_the_c_library_names_its_interface() -> None:
    """Programs ask for libambar.so.0, so that an incompatible library is never loaded instead."""
    names = output(installed() / "lib" / "libambar.so", "readelf", "--dynamic", "--wide")
    assert re.search(r"\(SONAME\) .*\[libambar\.so\.0\]", names)


def test_sources_of_the_bindings_have_object_names_of_their_own() -> None:
    """The shims of MPI in C and Fortran both became ambar_mpi.o, and one replaced the other."""
    sources = [path for path in (ROOT / "include").rglob("*") if path.suffix in {".c", ".f90"}]
    names = [path.stem for path in sources]
    assert len(names) > 3
    assert len(set(names)) == len(names)
