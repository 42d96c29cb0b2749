"""Gives xarray's objects their accessor ``.ambar`` as soon as xarray is there, without loading it.

``import ambar`` comes before ``import xarray`` in most programs, and must cost next to nothing.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def register() -> None:
    """Register the accessor now, if xarray is loaded, else right after it will have been."""
    if hasattr(sys.modules.get("xarray"), "register_datatree_accessor"):
        importlib.import_module("ambar.xarray")
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds xarray as it would be found anyway, once; nothing else."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name != "xarray":
            return None
        with contextlib.suppress(ValueError):  # two threads came here at once
            sys.meta_path.remove(self)
        spec = find_spec("xarray")
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class _Loader:
    """Loads xarray, then the accessor; gives way to xarray's own loader while it does so."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        # An xarray too old for the accessor is to work as it did.
        with contextlib.suppress(ImportError, AttributeError):
            importlib.import_module("ambar.xarray")
