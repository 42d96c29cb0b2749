"""The pages: cells and particles, arrays, collections, and meshes."""
