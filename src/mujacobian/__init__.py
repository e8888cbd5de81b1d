"""Exact, analytic derivatives of MuJoCo's step."""

from mujacobian import layout as _layout

_layout.install()

from mujacobian._core import inverse, transition  # noqa: E402
from mujacobian.diagnostics import Diagnostics, diagnose  # noqa: E402
from mujacobian.errors import MujacobianError, Unsupported, UnsupportedFeatureError  # noqa: E402
from mujacobian.linearization import (  # noqa: E402
    Linearization,
    fd_count,
    linearize,
    linearize_batch,
    support,
)

__all__ = [
    "Diagnostics",
    "Linearization",
    "MujacobianError",
    "Unsupported",
    "UnsupportedFeatureError",
    "diagnose",
    "fd_count",
    "inverse",
    "linearize",
    "linearize_batch",
    "support",
    "transition",
]
