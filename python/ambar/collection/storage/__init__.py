"""How the datasets of a collection are stored: families, columns, the catalogue."""
