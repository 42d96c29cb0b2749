"""Docstrings of the public interface follow numpydoc and are complete.

- Everything has a summary, a line that ends with a full stop.
- Functions and methods have an entry with a type for each parameter, and "Returns" or "Yields"
  unless they return None. Functions that have parameters, and methods that raise errors, have
  "Raises".
- Functions, methods and classes have examples, which `test_doctests.py` runs. An example of the
  class may replace that of a method that it calls.
- Classes document their parameters, or none if only ambar creates them. Each field of a dataclass
  is a parameter, or an attribute with a docstring.
- Special methods, properties, and methods that implement the interface of another package need
  only a summary.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pydoc
import re
from collections.abc import Iterator
from typing import Any

import pytest

import ambar
from ambar._util.properties import cached_property
from tests.helpers.paths import ROOT

for _package in ("mpi4py", "numcodecs", "virtualizarr", "xarray", "zarr"):
    pytest.importorskip(_package)

SUBMODULES = ("distributed", "fields", "hdf5", "xarray")
"""Public modules that say which names they offer."""
RAISES = re.compile(r"^\s+raise \w", re.MULTILINE)


def pages() -> list[str]:
    """Return the names below `ambar` that the pages of the reference list."""
    text = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    lists = re.findall(r"^\.\. autosummary::\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return re.findall(r"^   (\w[\w.]*)$", "".join(lists), re.MULTILINE)


def public() -> dict[str, Any]:
    """Return the public functions and classes by their names below `ambar`."""
    found = {name: pydoc.locate(f"ambar.{name}") for name in pages()}
    return {name: value for name, value in found.items() if callable(value)}


def documented(cls: type) -> dict[str, Any]:
    """Return the public methods and properties that ambar defines for a class."""
    bases = [base for base in cls.__mro__ if base.__module__.startswith("ambar")]
    found = {name: member for base in reversed(bases) for name, member in vars(base).items()}
    public = {name: member for name, member in found.items() if not name.startswith("_")}
    return {name: getattr(member, "__func__", member) for name, member in public.items()}


def has_interface_elsewhere(cls: type, name: str) -> bool:
    """Whether a base class of another package declares a member."""
    return any(
        name in vars(base) for base in cls.__mro__ if not base.__module__.startswith("ambar")
    )


def sections(value: Any) -> dict[str, str]:
    """Return the sections of a docstring by title; the first has the title ""."""
    text = (inspect.getdoc(value) or "") + "\n"
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def entries(found: dict[str, str], *titles: str) -> dict[str, str]:
    """Return the names and types of the entries of sections."""
    heads = re.findall(r"^\S.*$", "\n".join(found.get(title, "") for title in titles), re.MULTILINE)
    split = [head.partition(" : ") for head in heads]
    return {name.strip(): kind for names, _, kind in split for name in names.split(",")}


def parameters(function: Any) -> list[str]:
    """Return the parameters as numpydoc writes them, without `self` and `cls`."""
    stars: dict[Any, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    found = inspect.signature(function).parameters.values()
    names = [f"{stars.get(each.kind, '')}{each.name}" for each in found]
    return names[1:] if names[:1] in (["self"], ["cls"]) else names


def summary_problems(value: Any) -> Iterator[str]:
    first, _, rest = (inspect.getdoc(value) or "").partition("\n")
    if not first.endswith("."):
        yield "expected a summary: one line that ends with a full stop"
    elif rest and not rest.startswith("\n"):
        yield "expected an empty line after the summary"


def parameter_problems(value: Any, found: dict[str, str]) -> Iterator[str]:
    listed = entries(found, "Parameters", "Other Parameters")
    for name in [name for name in parameters(value) if name not in listed]:
        yield f"the parameter {name} has no entry"
    for name, kind in listed.items():
        if name not in parameters(value) and "**options" not in parameters(value):
            yield f"{name} is not a parameter"
        if not kind and not name.startswith("*"):
            yield f"the parameter {name} has no type"


def callable_problems(value: Any, shown: str) -> Iterator[str]:
    """Yield what is missing from a function or method; `shown` has the examples of its class."""
    found = sections(value)
    yield from parameter_problems(value, found)
    returned = inspect.signature(value).return_annotation
    if returned not in (None, "None") and not {"Returns", "Yields"} & set(found):
        yield f"returns {returned}, but has no section Returns"
    is_method = bool(shown)
    fails = RAISES.search(inspect.getsource(value)) if is_method else parameters(value)
    if fails and "Raises" not in found:
        yield "has no section Raises"
    if ">>> " not in found.get("Examples", "") and f".{value.__name__}(" not in shown:
        yield "has no example"


def class_problems(cls: type) -> Iterator[str]:
    found = sections(cls)
    if ">>> " not in found.get("Examples", ""):
        yield "has no example"
    listed = entries(found, "Parameters", "Attributes")
    if "Parameters" in found:
        yield from parameter_problems(cls, found)
    if dataclasses.is_dataclass(cls):
        module = "".join(
            inspect.getsource(base) for base in cls.__mro__ if dataclasses.is_dataclass(base)
        )
        for field in dataclasses.fields(cls):
            definition = rf'^    {field.name}: .*\n(?:        .*\n|    \)\n)*    """\S'
            described = re.search(definition, module, re.MULTILINE)
            if not (field.name.startswith("_") or field.name in listed or described):
                yield f"the field {field.name} has no docstring"


def problems() -> Iterator[str]:
    for name, value in public().items():
        yield from (f"{name}: {line}" for line in summary_problems(value))
        if not isinstance(value, type):
            yield from (f"{name}: {line}" for line in callable_problems(value, ""))
            continue
        if issubclass(value, BaseException):
            continue
        yield from (f"{name}: {line}" for line in class_problems(value))
        shown = inspect.getdoc(value) or " "
        for key, member in documented(value).items():
            path = f"{name}.{key}"
            is_method = inspect.isfunction(member)
            if is_method or isinstance(member, (property, cached_property)):
                yield from (f"{path}: {line}" for line in summary_problems(member))
            if is_method and not has_interface_elsewhere(value, key):
                yield from (f"{path}: {line}" for line in callable_problems(member, shown))


def test_every_public_name_is_on_one_page_of_the_reference() -> None:
    modules = {name: importlib.import_module(f"ambar.{name}") for name in SUBMODULES}
    expected = [f"{name}.{own}" for name, module in modules.items() for own in module.__all__]
    expected += set(ambar.__all__) - {"__version__", *modules}
    listed = pages()
    assert sorted(set(listed)) == sorted(listed)
    assert not set(expected) - set(listed)
    assert not [name for name in listed if pydoc.locate(f"ambar.{name}") is None]


def test_docstrings_are_complete() -> None:
    assert not (found := list(problems())), "\n".join(found)


def test_what_is_missing_is_found() -> None:
    def undocumented(path: str) -> int:
        """Return something.

        Parameters
        ----------
        paths
            Something.
        """
        return len(path)

    assert list(callable_problems(undocumented, "")) == [
        "the parameter path has no entry",
        "paths is not a parameter",
        "the parameter paths has no type",
        "returns int, but has no section Returns",
        "has no section Raises",
        "has no example",
    ]
