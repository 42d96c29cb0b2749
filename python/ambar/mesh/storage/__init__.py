"""How the description and the arrays of a mesh are stored, without VTK."""
