"""The scripts of `.ci` as modules."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from tests.helpers.paths import ROOT


def load(name: str) -> ModuleType:
    """Return a script as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
