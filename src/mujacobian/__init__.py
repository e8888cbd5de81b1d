"""Exact, analytic derivatives of MuJoCo's step."""

from mujacobian import layout as _layout

_layout.install()

from mujacobian._core import inverse  # noqa: E402
from mujacobian.diagnostics import Diagnostics, diagnose  # noqa: E402
from mujacobian.errors import (  # noqa: E402
    MujacobianError,
    SelfCheckError,
    Unsupported,
    UnsupportedFeatureError,
)
from mujacobian.linearization import (  # noqa: E402
    Linearization,
    fd_count,
    support,
    wrench,
)
from mujacobian.parameters import Parameters  # noqa: E402
from mujacobian.selfcheck import (  # noqa: E402
    linearize,
    linearize_batch,
    selfcheck_count,
    transition,
)

__all__ = [
    "Diagnostics",
    "Linearization",
    "MujacobianError",
    "Parameters",
    "SelfCheckError",
    "Unsupported",
    "UnsupportedFeatureError",
    "diagnose",
    "fd_count",
    "inverse",
    "linearize",
    "linearize_batch",
    "selfcheck_count",
    "support",
    "transition",
    "wrench",
]
