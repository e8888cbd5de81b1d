"""Exact, analytic derivatives of MuJoCo's step."""

from mujacobian import layout as _layout

_layout.install()

from mujacobian._core import inverse  # noqa: E402
from mujacobian.convergence import converged  # noqa: E402
from mujacobian.diagnostics import Diagnostics, diagnose  # noqa: E402
from mujacobian.errors import (  # noqa: E402
    ColliderNotConvergedWarning,
    MujacobianError,
    SelfCheckError,
    SolverNotConvergedWarning,
    Unsupported,
    UnsupportedFeatureError,
)
from mujacobian.gradient import Gradient  # noqa: E402
from mujacobian.linearization import (  # noqa: E402
    Linearization,
    fd_count,
    support,
    wrench,
)
from mujacobian.parameters import Parameters  # noqa: E402
from mujacobian.product import Pullback, jvp, vjp  # noqa: E402
from mujacobian.rollout import rollout  # noqa: E402
from mujacobian.selfcheck import (  # noqa: E402
    linearize,
    linearize_batch,
    selfcheck_count,
    transition,
)
from mujacobian.smoothing import smoothed  # noqa: E402
from mujacobian.trajectory import Jacobian, Trajectory  # noqa: E402

__all__ = [
    "ColliderNotConvergedWarning",
    "Diagnostics",
    "Gradient",
    "Jacobian",
    "Linearization",
    "MujacobianError",
    "Parameters",
    "Pullback",
    "SelfCheckError",
    "SolverNotConvergedWarning",
    "Trajectory",
    "Unsupported",
    "UnsupportedFeatureError",
    "converged",
    "diagnose",
    "fd_count",
    "inverse",
    "jvp",
    "linearize",
    "linearize_batch",
    "rollout",
    "selfcheck_count",
    "smoothed",
    "support",
    "transition",
    "vjp",
    "wrench",
]
