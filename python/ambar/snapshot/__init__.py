"""Outputs of a simulation: cells, particles, regions, fields and units."""
