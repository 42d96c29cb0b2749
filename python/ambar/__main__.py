"""``python -m ambar``: the command line."""

from ambar.cli import main

main()
