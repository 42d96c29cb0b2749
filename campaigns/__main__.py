"""The command line: ``python -m campaigns NAME`` or ``--all``."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

from campaigns.campaign import MissingToolError, Run, show

NAMES = (
    "resealed",
    "flips",
    "crashes",
    "faults",
    "forks",
    "readers",
    "exports",
    "hostile",
    "bombs",
    "c_calls",
    "memcheck",
)


def run_campaign(
    name: str, seed: int, seconds: float, keep: Path | None = None, case: int | None = None
) -> Run:
    """Run a campaign and return what it found."""
    module = importlib.import_module(f"campaigns.{name}")
    with tempfile.TemporaryDirectory(prefix=f"campaign-{name}-") as folder:
        run = Run(name, seed, seconds, Path(folder), keep, case)
        module.run(run)
    return run


def main() -> int:
    """Run the campaigns asked for; return 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m campaigns", description=__doc__)
    parser.add_argument("name", nargs="?", choices=NAMES)
    parser.add_argument("--all", action="store_true", help="run every campaign")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60, help="duration of each campaign")
    parser.add_argument("--keep", type=Path, help="folder for the files of findings")
    parser.add_argument("--case", type=int, help="run this case only, to repeat a finding")
    options = parser.parse_args()
    if options.all == (options.name is not None):
        parser.error("name one campaign, or give --all")
    found = 0
    for name in NAMES if options.all else [options.name]:
        try:
            run = run_campaign(name, options.seed, options.seconds, options.keep, options.case)
        except MissingToolError as missing:
            show(f"{name}: skipped: {missing}")
            continue
        show(run.result())
        found += len(run.findings)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
