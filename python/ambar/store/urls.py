"""URLs of stores, and the options of the services behind them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+")


def is_url(place: str | os.PathLike[str]) -> bool:
    """Whether `place` is a URL rather than a path."""
    return isinstance(place, str) and _URL.match(place) is not None


def refuse_url(place: str | os.PathLike[str]) -> None:
    """Raise UnsupportedError if a store, or files, would be written to a URL."""
    text = os.fspath(place)
    # pathlib joins slashes: "s3://bucket/key" comes from the command line as "s3:/bucket/key".
    scheme, _, rest = text.partition(":/")
    joined = _SCHEME.fullmatch(scheme) and rest and not Path(f"{scheme}:").exists()
    if is_url(text) or joined:
        from ambar._core import UnsupportedError

        raise UnsupportedError(
            f"{text}: writing to object stores is not supported; write a local file and upload it"
        )


def without_secrets(url: str) -> str:
    """Return a URL without user, password, query and fragment."""
    scheme, _, rest = url.partition("://")
    place = re.split(r"[?#]", rest, maxsplit=1)[0]
    host, slash, path = place.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def core_options(options: Mapping[str, object] | None) -> dict[str, str] | None:
    """Return storage options as strings for the extension module; bools are lower case."""
    if options is None:
        return None
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
