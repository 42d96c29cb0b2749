"""Statistics, profiles and centers of cells and particles, computed batch by batch."""
