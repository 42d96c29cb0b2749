"""The settings of a collection: `ragged`, `encoding` and `on_mismatch`, chosen at its creation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from ambar import _core
from ambar._util.arguments import OpenMode, check_choice, lengths_of
from ambar.collection.storage.encodings import dtype_name
from ambar.collection.storage.records import Record
from ambar.store.error_bounds import ErrorBound, as_text, is_lossy, resolved
from ambar.store.group_description import Description
from ambar.store.store import Store
from ambar.store.writer import Profile

VERSION = 1
"""The version of the description of collections that is written, and the newest that is read."""
MISMATCHES = ("family", "cast", "raise")
"""The values of `on_mismatch`: what happens if dtypes of a variable differ between datasets."""


def checked_settings(
    ragged: Sequence[str] = (),
    encoding: Mapping[str, Mapping[str, Any]] | None = None,
    on_mismatch: str = "family",
) -> dict[str, Any]:
    """Return the settings of a new collection as JSON stores them.

    Raises ValueError for unknown and invalid settings: an error of the thread that writes would
    discard all changes.
    """
    check_choice("on_mismatch", on_mismatch, MISMATCHES)
    encoding = {} if encoding is None else encoding
    if not (
        isinstance(encoding, Mapping) and all(isinstance(v, Mapping) for v in encoding.values())
    ):
        raise _core.InvalidError(
            "invalid encoding: expected options by variable, such as "
            f"{{'temperature': {{'error_bound': 0.01}}}}, found {encoding!r:.80}"
        )
    stored = {name: _checked_options(name, options) for name, options in encoding.items()}
    return {"ragged": list(ragged), "encoding": stored, "on_mismatch": on_mismatch}


def _checked_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the encoding of a variable as JSON stores it; raises ValueError if it is invalid."""
    what = f"encoding of {name}"
    if unknown := set(options) - {"chunks", "profile", "error_bound"}:
        raise _core.InvalidError(
            f"{what}: unknown {', '.join(map(repr, sorted(unknown)))}; must be 'chunks', 'profile' "
            "or 'error_bound'"
        )
    stored = dict(options)
    if (chunks := options.get("chunks")) is not None:
        stored["chunks"] = list(lengths_of(what, "chunks", chunks))
        if 0 in stored["chunks"]:
            raise _core.InvalidError(
                f"{what}: invalid chunks: {chunks!r}; expected lengths of at least 1"
            )
    if (profile := options.get("profile")) is not None:
        check_choice(f"profile of {name}", profile, get_args(Profile))
    if (bound := options.get("error_bound")) is not None:
        stored["error_bound"] = _checked_bound(name, bound)
    return stored


def _checked_bound(name: str, bound: float | str) -> float | str:
    """Return the error bound of a variable as JSON stores it; raises ValueError if it is invalid.

    Bounds that depend on the value range are invalid.
    """
    if _core.bound_needs_range(as_text(bound)):
        raise _core.InvalidError(
            f"the error bound of {name!r}, {bound!r}, depends on the value range of all datasets, "
            "which is unknown while they are added; give an absolute or relative bound"
        )
    return resolved(bound)


def encoding_of(bounds: ErrorBound | None) -> dict[str, dict[str, float | str]] | None:
    """Return the setting `encoding` of a collection with error bounds by variable."""
    if bounds is None:
        return None
    if not isinstance(bounds, Mapping):
        raise _core.InvalidError(
            f"expected error bounds by variable, such as {{'temperature': 0.01}}, found {bounds!r}"
        )
    return {
        str(name): {"error_bound": _checked_bound(name, bound)} for name, bound in bounds.items()
    }


def settings_of(store: Store, mode: OpenMode = "r") -> dict[str, Any]:
    """Return the settings of a collection; raises ValueError if the store is not a collection."""
    about = store._ambar_attributes()
    if about.get("kind") != "collection":
        advice = "use ambar.open"
        if mode != "r":
            advice = 'choose another name, or replace the store with mode="w"'
        raise _core.InvalidError(
            f"{store.location}: expected a collection, found a store of the kind "
            f"{about.get('kind', 'arrays')!r}; {advice}"
        )
    description = Description(about, f"{store.location}: /")
    description.check_version(VERSION, "collections")
    encoding = description.object("encoding")
    return {
        "ragged": list(description.strings("ragged")),
        "encoding": {name: encoding.mapping(name) for name in encoding},
        "on_mismatch": description.string("on_mismatch"),
    }


def check_encoding(record: Record, encoding: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ValueError if an encoding does not apply to a variable of the dataset."""
    for name, options in encoding.items():
        variable = record.variables.get(name)
        if variable is None:
            continue
        what = f"dataset {record.name!r}: encoding of {name}"
        if is_lossy(options.get("error_bound")) and variable.type_name not in ("<f4", "<f8"):
            raise _core.InvalidError(
                f"{what}: an error bound needs float32 or float64, found "
                f"{dtype_name(variable.type_name, variable.times)}; leave it out"
            )
        chunks = options.get("chunks")
        if chunks is not None and len(chunks) != variable.values.ndim:
            raise _core.InvalidError(
                f"{what}: expected chunks for the dimensions {variable.dims}, found {tuple(chunks)}"
            )
