"""Pictures of snapshots and series: what to draw, images and lines of it, and panels of these."""
