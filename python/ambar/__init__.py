"""One store for simulation output: open, convert and read it.

Everything here is loaded when it is first used, so that ``import ambar`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ambar._core import (
        AmbarError,
        BusyError,
        CorruptError,
        InvalidError,
        LimitError,
        NotFoundError,
        UnsupportedError,
        compact,
        repair,
    )
    from ambar.amr import Amr
    from ambar.array import Array
    from ambar.conversion import Conversion, convert, read_ramses
    from ambar.info import Info
    from ambar.opening import open  # noqa: A004
    from ambar.regions import Box, Shell, Sphere
    from ambar.rows import Particles
    from ambar.series import Series
    from ambar.snapshot import Snapshot
    from ambar.store import Store
    from ambar.table import Table
    from ambar.units import Units
    from ambar.writer import Writer, append, create

    __version__: str

_HOMES = {
    "ambar._core": (
        "AmbarError",
        "BusyError",
        "CorruptError",
        "InvalidError",
        "LimitError",
        "NotFoundError",
        "UnsupportedError",
        "compact",
        "repair",
    ),
    "ambar.amr": ("Amr",),
    "ambar.array": ("Array",),
    "ambar.conversion": ("Conversion", "convert", "read_ramses"),
    "ambar.info": ("Info",),
    "ambar.opening": ("open",),
    "ambar.regions": ("Box", "Shell", "Sphere"),
    "ambar.rows": ("Particles",),
    "ambar.series": ("Series",),
    "ambar.snapshot": ("Snapshot",),
    "ambar.store": ("Store",),
    "ambar.table": ("Table",),
    "ambar.units": ("Units",),
    "ambar.writer": ("Writer", "append", "create"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # noqa: PLE0604, RUF022 - the names are those of _HOMES
    *_HOME_OF,
    "__version__",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("ambar")
    elif name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'ambar' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
