"""The attributes of the datasets of a collection, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ambar.collection.collection import Collection


class AttributeColumns(Mapping[str, np.ndarray]):
    """The attributes of the datasets of a collection: a lazy mapping from names to columns.

    A column is an array (datasets,), in the order of `Collection.names`. A column of objects has
    None for datasets that lack the attribute. The attributes of one dataset are
    ``collection[name].attrs``.

    Parameters
    ----------
    collection : Collection
        The collection, which `Collection.attrs` passes.

    Examples
    --------
    >>> attrs = ambar.open_collection("profiles.ambar").attrs
    >>> attrs
    <ambar.AttributeColumns> of 4 datasets: platform
    >>> attrs["platform"] == "argo"
    array([False,  True, False,  True])
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def __getitem__(self, name: str) -> np.ndarray:
        with self._collection._lock:
            return self._collection._metadata.attribute(name)

    def __iter__(self) -> Iterator[str]:
        with self._collection._lock:
            return iter(self._collection._metadata.attribute_names)

    # Mappings compare values, and the truth value of an array is ambiguous.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __len__(self) -> int:
        """Return the number of attributes."""
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __repr__(self) -> str:
        count = len(self._collection)
        return f"<ambar.AttributeColumns> of {count:,} datasets: {', '.join(self) or 'none'}"
