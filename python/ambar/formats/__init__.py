"""Output of simulation codes, read without conversion."""
