"""Lets `python3 -m stocktake` run the command line."""

import sys

from stocktake.cli import main

sys.exit(main(sys.argv[1:]))
