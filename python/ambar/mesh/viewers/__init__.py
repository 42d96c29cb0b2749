"""Meshes in PyVista and ParaView: readers, a writer, an accessor."""
