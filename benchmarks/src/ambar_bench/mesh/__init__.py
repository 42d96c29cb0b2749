"""The study of meshes: VTK objects in files of every kind, written and read."""
