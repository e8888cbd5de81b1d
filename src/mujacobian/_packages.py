"""Optional packages that the command line needs."""

from __future__ import annotations

import importlib.util

from mujacobian.errors import MujacobianError


def require_matplotlib() -> None:
    """Raise an error with the `pip` command if matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise MujacobianError("--plot needs matplotlib: pip install 'mujacobian[plot]'")
