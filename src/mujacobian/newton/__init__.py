"""Newton's SolverMuJoCo with exact gradients: `pip install 'mujacobian[newton]'`."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

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

__all__ = [
    "PARAMETERS",
    "DifferentiableMuJoCo",
    "Layout",
    "NewtonLinearization",
    "TorchStep",
    "torch_step",
]

if _TYPE_CHECKING:
    from mujacobian.newton.torch_bridge import TorchStep, torch_step
else:

    def __getattr__(name: str) -> object:
        """Import the functions for PyTorch at their first use."""
        if name not in ("TorchStep", "torch_step"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from mujacobian.newton import torch_bridge

        return getattr(torch_bridge, name)
