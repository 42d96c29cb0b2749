"""Run the study of the HDF5 filter and keep its results here: python benchmarks/hdf5/run.py."""

from __future__ import annotations

import sys
from pathlib import Path

from ambar.cli import main

if __name__ == "__main__":
    results = str(Path(__file__).parent / "results")
    main(["bench", "hdf5", "--output", results, *sys.argv[1:]])
