"""Parts of meshes: the cells that touch a box, and the order in which few chunks hold them."""
