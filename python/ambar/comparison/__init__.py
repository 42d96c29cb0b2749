"""Comparison of two versions of the same data."""
