"""Pictures of plain arrays and of collections."""
