"""Stores from stores: copies of nodes, selections of steps and names, and merges."""
