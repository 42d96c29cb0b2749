"""Copies of snapshots and series of outputs, and merges of series."""
