"""Stores: groups, arrays, writers, and the places that stores are in."""
