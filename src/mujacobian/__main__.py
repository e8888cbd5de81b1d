"""`python -m mujacobian`: the command line."""

import sys

from mujacobian._cli import main

sys.exit(main())
