"""Run the RAMSES study and keep its results here: python benchmarks/ramses/run.py output_00300."""

from __future__ import annotations

import sys
from pathlib import Path

from ambar.cli import main

if __name__ == "__main__":
    results = str(Path(__file__).parent / "results")
    main(["bench", "ramses", "--output", results, *sys.argv[1:]])
