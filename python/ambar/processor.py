"""The check that this machine's processor has what the library was built for."""

from __future__ import annotations

import os
from pathlib import Path

# What x86-64-v3 adds and the compiler uses, as Linux names it.
_NEEDED = ("avx2", "bmi1", "bmi2", "fma", "movbe", "abm")
# Of all cores, the first one tells; its entry is shorter than this.
_FIRST_ENTRY = 8192


def check_processor() -> None:
    """Raise ImportError on an x86-64 processor on which loading the library would crash."""
    if os.uname().machine != "x86_64" or os.environ.get("AMBAR_CHECK_PROCESSOR") == "0":
        return
    try:
        with Path("/proc/cpuinfo").open(encoding="ascii", errors="replace") as info:
            text = info.read(_FIRST_ENTRY)
    except OSError:  # not Linux: nothing is known
        return
    missing = missing_flags(text)
    if missing:
        raise ImportError(
            f"this build of ambar needs a processor with {', '.join(missing)} (x86-64-v3); build "
            'it from source with RUSTFLAGS="-C target-cpu=x86-64", and set AMBAR_CHECK_PROCESSOR=0'
        )


def missing_flags(cpuinfo: str) -> list[str]:
    """Return what the first processor of a /proc/cpuinfo lacks; nothing where it has no list."""
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            flags = set(value.split())
            return [flag for flag in _NEEDED if flag not in flags]
    return []
