"""Meshes in files of other programs: read, converted step by step, and written."""
