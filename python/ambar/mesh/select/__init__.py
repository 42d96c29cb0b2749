"""Parts of meshes: cells that touch a box, rows of an array."""
