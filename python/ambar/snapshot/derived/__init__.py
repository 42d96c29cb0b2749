"""Fields that are computed from others when they are read."""
