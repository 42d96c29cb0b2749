"""Maps of cells and particles along any direction."""
