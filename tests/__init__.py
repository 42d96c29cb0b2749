"""Tests of the Python package, by subject; helpers are in `tests.helpers`."""
