"""Run the study of many ranks and keep its results here: python benchmarks/parallel/run.py."""

from __future__ import annotations

import sys
from pathlib import Path

from ambar.cli import main

if __name__ == "__main__":
    results = str(Path(__file__).parent / "results")
    main(["bench", "parallel", "--output", results, *sys.argv[1:]])
