"""Selecting and reading datasets of a collection."""
