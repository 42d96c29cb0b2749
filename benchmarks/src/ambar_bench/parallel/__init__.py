"""The study of one array written by many ranks: `ambar-bench parallel`."""
