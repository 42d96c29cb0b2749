"""Sample meshes, and how meshes and their descriptions are compared."""
