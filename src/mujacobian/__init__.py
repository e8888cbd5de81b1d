"""Exact, analytic derivatives of MuJoCo's step.

`__all__` lists the functions and classes of this package. The submodules `check`, `control`,
`errors`, `reference` and `rods`, and those that need an optional package (`gym`, `jax`,
`mujoco_sysid`, `newton`, `optimize`, `ray`, `sysid`, `torch`), are imported at their first use:
`import mujacobian` is enough for `mujacobian.sysid.identify`.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from mujacobian import _layout, _versions

_layout.install()
_versions.warn_if_untested()

from mujacobian._batch import linearize_batch  # noqa: E402
from mujacobian._callbacks import callbacks  # noqa: E402
from mujacobian._convergence import converged  # noqa: E402
from mujacobian._core import hessian_into, inverse  # noqa: E402
from mujacobian._diagnostics import Diagnostics, diagnose  # noqa: E402
from mujacobian._differenced import Differenced  # noqa: E402
from mujacobian._gradient import Gradient  # noqa: E402
from mujacobian._hessian import Hessian, hessian, hessian_batch, hvp  # noqa: E402
from mujacobian._linearization import (  # noqa: E402
    Linearization,
    linearize,
    transition,
    wrench,
)
from mujacobian._parameters import Parameters  # noqa: E402
from mujacobian._product import Pullback, jvp, vjp  # noqa: E402
from mujacobian._pushforward import Jacobian  # noqa: E402
from mujacobian._rollout import rollout  # noqa: E402
from mujacobian._single import single  # noqa: E402
from mujacobian._smoothing import smoothed  # noqa: E402
from mujacobian._support import fd_count, support  # noqa: E402
from mujacobian._trajectory import Trajectory  # noqa: E402
from mujacobian.check._selfcheck import selfcheck_count  # noqa: E402
from mujacobian.errors import (  # noqa: E402
    ColliderNotConvergedWarning,
    MujacobianError,
    SelfCheckError,
    SolverNotConvergedWarning,
    Unsupported,
    UnsupportedFeatureError,
)

__all__ = [
    "ColliderNotConvergedWarning",
    "Diagnostics",
    "Differenced",
    "Gradient",
    "Hessian",
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
    "callbacks",
    "converged",
    "diagnose",
    "fd_count",
    "hessian",
    "hessian_batch",
    "hessian_into",
    "hvp",
    "inverse",
    "jvp",
    "linearize",
    "linearize_batch",
    "rollout",
    "selfcheck_count",
    "single",
    "smoothed",
    "support",
    "transition",
    "vjp",
    "wrench",
]

_SUBMODULES = ("check", "control", "errors", "reference", "rods")
# They need optional packages. `dir` does not list them: `help` imports everything that it lists.
_BRIDGES = ("gym", "jax", "mujoco_sysid", "newton", "optimize", "ray", "sysid", "torch")

# Messages and pickled results name the public path of a class.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__

if _TYPE_CHECKING:
    from mujacobian import check as check
    from mujacobian import control as control
    from mujacobian import errors as errors
    from mujacobian import gym as gym
    from mujacobian import jax as jax
    from mujacobian import mujoco_sysid as mujoco_sysid
    from mujacobian import newton as newton
    from mujacobian import optimize as optimize
    from mujacobian import ray as ray
    from mujacobian import reference as reference
    from mujacobian import rods as rods
    from mujacobian import sysid as sysid
    from mujacobian import torch as torch
else:

    def __getattr__(name: str) -> object:
        """Import a submodule at its first use."""
        if name in (*_SUBMODULES, *_BRIDGES):
            return _import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names."""
    return sorted([*__all__, *_SUBMODULES])
