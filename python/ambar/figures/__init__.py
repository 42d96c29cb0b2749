"""Figures: colour scales, panels, pictures and movies in files, thumbnails."""
