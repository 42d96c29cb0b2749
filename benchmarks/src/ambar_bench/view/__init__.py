"""The viewer in a real browser: the first picture, pans and zooms."""
