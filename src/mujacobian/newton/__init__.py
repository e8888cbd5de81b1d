"""Newton's SolverMuJoCo with exact gradients: `pip install 'mujacobian[newton]'`."""

from mujacobian.errors import MissingPackageError

try:
    import newton  # noqa: F401
    import warp  # noqa: F401
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.newton needs Newton: pip install 'mujacobian[newton]'"
    ) from error

from mujacobian.newton.layout import Layout
from mujacobian.newton.linearization import NewtonLinearization
from mujacobian.newton.parameters import KNOWN as PARAMETERS
from mujacobian.newton.solver import DifferentiableMuJoCo

__all__ = ["PARAMETERS", "DifferentiableMuJoCo", "Layout", "NewtonLinearization"]
