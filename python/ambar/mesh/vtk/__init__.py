"""VTK objects as descriptions and arrays, and back."""
