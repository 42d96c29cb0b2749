"""RAMSES outputs."""
