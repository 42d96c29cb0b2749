"""Examples in docstrings of the public interface run as written, on `example_files`."""

from __future__ import annotations

import doctest
import importlib
import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ambar
from ambar._util.properties import cached_property

pytest.importorskip("netCDF4")
pytest.importorskip("pyvista")
pytest.importorskip("xarray")

from tests.helpers import example_files
from tests.helpers.mpi_programs import SOURCES, Mpi, each_mpi, python_run

MODULES = (
    "ambar.codecs",
    "ambar.codecs.numcodecs_api",
    "ambar.codecs.zarr_python",
    "ambar.distributed",
    "ambar.hdf5",
    "ambar.interop.xarray.engine",
    "ambar.mesh.viewers.pyvista_reader",
    "ambar.mesh.viewers.pyvista_writer",
    "ambar.mpi",
    "ambar.samples",
    "ambar.virtualizarr",
    "ambar.xarray",
)
"""Public modules, and those of entry points; `ambar` itself offers the names in ``__all__``."""
NAMES = {"ambar": ambar, "np": np}
"""Names that an example may use without an import."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FINDER = doctest.DocTestFinder(recurse=False)


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the public classes and functions of a module."""
    for name in getattr(module, "__all__", vars(module)):
        value = getattr(module, name)
        ours = (getattr(value, "__module__", None) or "").startswith("ambar")
        if ours and not name.startswith("_") and callable(value):
            yield f"{module.__name__}.{name}", value


def members(value: Any) -> dict[str, Any]:
    """Return the members of a class, also those of its bases that are not public."""
    classes = value.__mro__ if isinstance(value, type) else ()
    bases = [base for base in classes if base is value or is_private(base)]
    return {key: member for base in reversed(bases) for key, member in vars(base).items()}


def is_private(base: type) -> bool:
    """Return whether only subclasses of a class of ambar are public."""
    return base.__module__.startswith("ambar.") and base.__name__ not in ambar.__all__


def documented() -> Iterator[tuple[str, Any]]:
    """Yield everything public that can have a docstring, by its dotted name."""
    for name in ("ambar", *MODULES):
        module = importlib.import_module(name)
        yield name, module
        for path, value in public(module):
            yield path, value
            for key, member in members(value).items():
                function = getattr(member, "__func__", member)
                if inspect.isroutine(function) or isinstance(member, (property, cached_property)):
                    yield f"{path}.{key}", function


def examples() -> list[doctest.DocTest]:
    """Return the docstrings that have examples."""
    found = [test for path, value in documented() for test in FINDER.find(value, path, False)]
    return [test for test in found if test.examples]


EXAMPLES = examples()
OF_MPI = [test.name for test in EXAMPLES if test.name.startswith("ambar.mpi.")]
"""These initialize MPI: they run in processes of their own."""


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example_files")
    example_files.make_inputs(folder)
    example_files.make_stores(folder)
    return folder


@pytest.mark.parametrize(
    "test", [test for test in EXAMPLES if test.name not in OF_MPI], ids=lambda test: test.name
)
def test_examples_run_as_written(
    test: doctest.DocTest, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if test.name == "ambar.write_fits":
        pytest.importorskip("astropy")
    if test.name in {"ambar.get_include", "ambar.get_library"}:
        native = tmp_path / "site-packages/ambar/native"
        (native / "include").mkdir(parents=True)
        (native / "libambar.so.0").touch()
        monkeypatch.setattr("ambar.config._NATIVE", native)
        monkeypatch.setattr("ambar.config._LIBRARY", native / "libambar.so.0")
    example_files.copy(files, tmp_path)
    monkeypatch.chdir(tmp_path)
    test.globs = dict(NAMES)
    printed: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        # Matplotlib 3.10.0 uses names that pyparsing has deprecated since.
        warnings.filterwarnings(
            "ignore", category=DeprecationWarning, module="matplotlib|pyparsing"
        )
        result = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=printed.append)
    assert not result.failed, "".join(printed)


@each_mpi
@pytest.mark.parametrize("name", OF_MPI)
def test_examples_run_on_two_ranks(
    mpi: Mpi, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    python_run(mpi, 2, tmp_path, SOURCES / "docstring.py", name)


def test_no_example_is_left_out() -> None:
    assert EXAMPLES
    skipped = [test.name for test in EXAMPLES for e in test.examples if doctest.SKIP in e.options]
    assert skipped == []
