"""Physical constants, expressions of units, and cosmology."""
