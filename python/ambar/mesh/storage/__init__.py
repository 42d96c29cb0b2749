"""How the description and the arrays of a mesh are stored; VTK is not loaded."""
