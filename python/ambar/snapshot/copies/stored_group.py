"""The groups of cells, particles and rows in a store, of which some fields are copied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ambar import _core
from ambar.store.nodes import array_names
from ambar.store.store import Store

_FIELDS = {"amr": "fields", "particles": "columns", "table": "columns"}
"""The attribute with the names of the fields, by the kind of a group."""
BOUNDS = ("error_bounds", "requested_bounds", "medians")
"""The attributes that describe error bounds."""
ORDER = "order"
"""The attribute that names the column with the row of each particle in the files."""


class StoredGroup:
    """A group of cells, particles or rows in a store."""

    def __init__(self, store: Store, path: str) -> None:
        self.store = store
        self.path = path
        self.own: dict[str, Any] = store._ambar_attributes(path)
        self.kind = str(self.own.get("kind"))
        if self.kind not in _FIELDS:
            raise _core.CorruptError(
                f"{store.location}: /{path} has the kind {self.kind!r}, expected cells or a table; "
                "restore the store from a copy"
            )
        self.names_key = _FIELDS[self.kind]
        self.fields: list[str] = list(self.own[self.names_key])
        self.is_patches = self.own.get("layout") == "patches"
        self._array_names = array_names(self.own, f"{store.location}: /{path}")

    @property
    def required(self) -> set[str]:
        """Fields that a copy cannot do without: positions, and the order in the files."""
        return {*self.own.get("positions", ()), *filter(None, [self.own.get(ORDER)])}

    @property
    def _bases(self) -> list[str]:
        """The groups with arrays of fields: one for each level of patches."""
        if not self.is_patches:
            return [self.path]
        return [f"{self.path}/level_{level}" for level in range(len(self.own["levels"]))]

    @property
    def groups(self) -> list[str]:
        """The paths of this group and all groups below."""
        return [
            group
            for group in self.store.groups
            if group == self.path or group.startswith(f"{self.path}/")
        ]

    @property
    def ranges(self) -> list[str]:
        """The paths of the arrays with the ranges of fields."""
        found = [f"{base}/index/range" for base in self._bases]
        return [path for path in found if self.store._core.kind(f"/{path}") == "array"]

    @property
    def chunks(self) -> tuple[int, ...]:
        """The shape of the chunks of fields."""
        return self.store._array(f"{self.path}/{self.fields[0]}").chunks

    def array_name(self, field: str) -> str:
        """Return the name of the array of a field."""
        return self._array_names.get(field, field)

    def dtype(self, field: str) -> str:
        """Return the name of the dtype of a field."""
        return self.store._array(f"{self._bases[0]}/{self.array_name(field)}").type_name

    def arrays(self, fields: Iterable[str]) -> list[str]:
        """Return the paths of the arrays of some fields, and of all arrays besides fields."""
        of_fields = {self.array_name(field): field for field in self.fields}
        kept = set(fields)
        ranges = set(self.ranges)
        found = []
        for path in self.store:
            if not path.startswith(f"{self.path}/") or path in ranges:
                continue
            base, _, name = path.rpartition("/")
            if base not in self._bases or name not in of_fields or of_fields[name] in kept:
                found.append(path)
        return found

    def attributes_of(self, fields: list[str]) -> dict[str, Any]:
        """Return the attribute ``ambar`` of a copy with some of the fields."""
        own, kept = dict(self.own), set(fields)
        own[self.names_key] = fields
        for key in BOUNDS:
            if key in own:
                own[key] = {
                    name: value
                    for field in fields
                    for name, value in entries_of(own[key], field).items()
                }
        if "arrays" in own:
            names = self._array_names
            own["arrays"] = {field: name for field, name in names.items() if field in kept}
        if "components" in own:
            own["components"] = only_fields(own["components"], kept)
        if self.is_patches:
            own["levels"] = [
                {**level, "dropped": [name for name in level["dropped"] if name in kept]}
                for level in own["levels"]
            ]
        return {key: value for key, value in own.items() if key not in (*BOUNDS, "arrays") or value}


def entries_of(bounds: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return the entries of a field, and of parts of it."""
    return {
        name: value
        for name, value in bounds.items()
        if name == field or name.startswith(f"{field}@")
    }


def only_fields(components: Mapping[str, list[str]], fields: set[str]) -> dict[str, list[str]]:
    """Return the components with some of their fields."""
    kept = {
        name: [field for field in names if field in fields] for name, names in components.items()
    }
    return {name: names for name, names in kept.items() if names}
