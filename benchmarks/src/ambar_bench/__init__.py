"""Benchmarks of ambar against its peers; a study has a folder, and a command of `ambar-bench`."""
