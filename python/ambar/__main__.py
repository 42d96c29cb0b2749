"""``python -m ambar``: the command line."""

import sys

from ambar.cli import main

sys.exit(main())
