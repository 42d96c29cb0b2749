"""The kind `collection`: any number of named datasets of like schema in one store.

A dataset belongs to a family: datasets of equal schema and shape. Each variable of a family is one
array, so that a slice of all datasets is one read. `docs/format.md`, 4.6, specifies the layout.
"""

from ambar.collection.attribute_columns import AttributeColumns
from ambar.collection.collection import Collection
from ambar.collection.openers import open_collection
from ambar.collection.read.bulk_read import CollectionData
from ambar.collection.schema import DatasetFamily, Schema
from ambar.collection.storage.ragged import RaggedArray

__all__ = [
    "AttributeColumns",
    "Collection",
    "CollectionData",
    "DatasetFamily",
    "RaggedArray",
    "Schema",
    "open_collection",
]
