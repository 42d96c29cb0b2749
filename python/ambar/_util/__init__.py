"""What several parts of the package use, none of it about stores."""
