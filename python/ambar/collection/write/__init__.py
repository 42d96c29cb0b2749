"""Adding datasets to a collection."""
