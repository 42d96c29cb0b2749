"""Parts of meshes: the cells in a region, rows of an array."""
