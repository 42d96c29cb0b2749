"""The page of cells and particles: a map that is panned and zoomed."""
