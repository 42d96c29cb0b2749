"""The pages of the other kinds: arrays, collections and meshes."""
