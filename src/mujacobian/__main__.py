"""`python -m mujacobian`: the command line."""

import sys

from mujacobian.cli import main

sys.exit(main())
