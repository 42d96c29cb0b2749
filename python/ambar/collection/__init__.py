"""The kind `collection`: any number of named datasets of like schema in one store.

A dataset belongs to a family: all of one schema and shape, whose variables lie side by side in one
array each, so that a slice of all datasets is one read. `docs/format.md`, 4.6, says how they lie in
the store.
"""

from ambar.collection.collection import Collection
from ambar.collection.opening import open_collection
from ambar.collection.ragged import Ragged
from ambar.collection.reading import Bulk
from ambar.collection.schema import Schema

__all__ = ["Bulk", "Collection", "Ragged", "Schema", "open_collection"]
