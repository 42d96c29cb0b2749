"""Readers of meshes for ParaView."""
