"""The public interface: names and signatures, compared with a committed list."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pyvista as pv

import ambar
from tests.helpers.paths import ROOT
from tests.helpers.sample_outputs import output

SNAPSHOT = ROOT / "tests" / "project" / "public_interface.txt"


def signature(value: Any) -> str:
    """Return the names, kinds and defaults of the parameters of a callable."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in found.parameters.values()
    ]
    return str(inspect.Signature(parameters))


def members(name: str, value: type) -> Iterator[str]:
    """Yield the public members of a class that ambar defines, one a line, inherited ones too."""
    bases = [base for base in reversed(value.__mro__) if base.__module__.startswith("ambar")]
    found = {key: member for base in bases for key, member in vars(base).items()}
    for key, member in sorted(found.items()):
        if key.startswith("_"):
            continue
        if isinstance(member, (classmethod, staticmethod)):
            yield f"{name}.{key}{signature(member.__func__)}"
        elif inspect.isfunction(member):
            yield f"{name}.{key}{signature(member)}"
        else:
            yield f"{name}.{key}"


def interface() -> list[str]:
    """Return the public names of ambar, with signatures."""
    lines: list[str] = []
    for name in sorted(ambar.__all__):
        value = getattr(ambar, name)
        if isinstance(value, type):
            bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
            lines += [f"class {name}({bases})", *members(name, value)]
        elif inspect.ismodule(value):
            functions = ((own, getattr(value, own)) for own in sorted(value.__all__))
            lines += [f"{name}.{own}{signature(function)}" for own, function in functions]
        elif callable(value):
            lines.append(f"{name}{signature(value)}")
        else:
            lines.append(name)
    return lines


def test_the_public_interface_is_the_committed_one() -> None:
    """A change of the interface is a change of the list, which a review sees.

    ``python -m tests.project.test_public_interface`` writes the list.
    """
    assert interface() == SNAPSHOT.read_text().splitlines()


def test_typed_openers_return_their_type_and_refuse_others(tmp_path: Path) -> None:
    snapshot, mesh, arrays = (tmp_path / name for name in ("s.ambar", "m.ambar", "a.ambar"))
    ambar.convert(output("sedov"), snapshot, fsync=False)
    ambar.write_mesh(pv.Sphere(), mesh, fsync=False)
    with ambar.create(arrays, fsync=False) as writer:
        writer.create_array("x", np.arange(3.0))
    assert type(ambar.open_snapshot(snapshot)) is ambar.Snapshot
    assert type(ambar.open_snapshot(output("sedov"))) is ambar.Snapshot
    assert type(ambar.open_mesh(mesh)) is ambar.Mesh
    for path in (snapshot, mesh, arrays):
        assert type(ambar.open_store(path)) is ambar.Store
        for opener in (ambar.open_series, ambar.open_mesh_series):
            with pytest.raises(ValueError, match="expected a (mesh )?series, found a "):
                opener(path)
    with pytest.raises(ValueError, match="expected a snapshot, found a Mesh"):
        ambar.open_snapshot(mesh)
    with pytest.raises(ValueError, match="'grid' is not a kind; must be one of store, snapshot"):
        ambar.open(mesh, kind="grid")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        ambar.open_store(tmp_path / "nothing.ambar")


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(interface()) + "\n")
