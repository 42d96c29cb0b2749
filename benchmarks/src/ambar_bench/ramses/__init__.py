"""The study of loading RAMSES outputs: `ambar-bench ramses`."""
