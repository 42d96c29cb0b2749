"""URLs of stores, and the options of the services behind them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+")


def is_url(place: str | os.PathLike[str]) -> bool:
    """Whether `place` is a URL rather than a path."""
    return isinstance(place, str) and _URL.match(place) is not None


def is_object(place: str | os.PathLike[str]) -> bool:
    """Whether `place` is the URL of a single object, which is written as a whole."""
    return is_url(place) and not urlsplit(os.fspath(place)).path.endswith("/")


def refuse_empty(argument: str, *places: object) -> None:
    """Raise ValueError for an empty path, which pathlib interprets as the current folder."""
    for place in places:
        if isinstance(place, (str, os.PathLike)) and not os.fspath(place):
            from ambar import _core

            raise _core.InvalidError(
                f"invalid {argument}: ''; expected a path or a URL, found an empty string; check "
                "the variable that it comes from"
            )


def folder_of(place: str | os.PathLike[str]) -> Path:
    """Return the folder of the store at a path; of a URL, the current folder."""
    return Path.cwd() if is_url(place) else Path(place).absolute().parent


def refuse_url(
    place: str | os.PathLike[str], advice: str = "use a local file, and upload it"
) -> None:
    """Raise UnsupportedError if files, or a store that is changed in place, would be at a URL."""
    refuse_empty("path", place)
    text = os.fspath(place)
    if is_url(text) or _is_joined(text):
        from ambar._core import UnsupportedError

        raise UnsupportedError(
            f"{without_secrets(text)}: expected a path on this machine, found a URL; {advice}"
        )


def check_url(
    place: str | os.PathLike[str],
    mode: str,
    storage_options: Mapping[str, object] | None = None,
) -> None:
    """Check the path or URL of a store to write.

    Raises
    ------
    ValueError
        If the path is empty, there are options for a path, or `pathlib` has joined the slashes of
        a URL.
    UnsupportedError
        If an object, which is written as a whole, would be changed.
    """
    from ambar import _core

    refuse_empty("path", place)
    text = os.fspath(place)
    if not is_url(place) and (is_url(text) or _is_joined(text)):
        raise _core.InvalidError(
            f"{text}: expected a URL as a string, such as 's3://bucket/run.ambar', found a path "
            "object; pathlib changes URLs"
        )
    if storage_options and not is_url(place):
        raise _core.InvalidError(
            f"{text}: storage_options are for URLs (s3://..., https://...), not for paths"
        )
    if mode == "a" and is_object(place):
        raise _core.UnsupportedError(
            f'{text}: mode="a" changes a store, and an object is written as a whole; write it '
            'again with mode="w", or write to a URL that ends with "/"'
        )


def _is_joined(text: str) -> bool:
    """Whether a path is a URL whose slashes pathlib has joined: "s3:/bucket/key"."""
    scheme, _, rest = text.partition(":/")
    return bool(_SCHEME.fullmatch(scheme) and rest) and not Path(f"{scheme}:").exists()


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
