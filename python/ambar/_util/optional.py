"""Optional libraries, loaded when first used; an error says how to install a missing one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def require(module: str, *, purpose: str, install: str) -> Any:
    """Return a module that is not among ambar's requirements.

    Parameters
    ----------
    module
        Its name, such as ``"pyvista"``.
    purpose
        What needs it, as the start of a sentence: ``"reading mesh files"``.
    install
        What pip installs: ``"ambar[mesh]"``.

    Raises
    ------
    ModuleNotFoundError
        If it is not installed; the message says how to install it.
    """
    if find_spec(module) is None:
        raise missing(module, purpose=purpose, install=install)
    return import_module(module)


def require_any(modules: Sequence[str], *, purpose: str, install: str) -> None:
    """Raise ModuleNotFoundError, which names the first module, if none of them is installed."""
    if not any(map(find_spec, modules)):
        raise missing(modules[0], purpose=purpose, install=install)


def missing(module: str, *, purpose: str, install: str) -> ModuleNotFoundError:
    """Return the error for a module that is not installed."""
    return ModuleNotFoundError(
        f"{purpose} needs {module}, which is not installed; run: pip install '{install}'",
        name=module,
    )


def load_object(reference: str) -> Any:
    """Return an object of a module that is imported now: ``"package.module:name"``.

    Examples
    --------
    >>> load_object("math:pi") > 3
    True
    """
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)
