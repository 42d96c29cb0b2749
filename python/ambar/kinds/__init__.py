"""What all kinds of data have in common."""
