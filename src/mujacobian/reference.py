"""Trusted numerical Jacobians of one `mj_step`, to compare analytic ones with.

A column is computed from central differences of the full `mj_step` with decreasing step sizes,
which are extrapolated to step zero (Richardson). The first step is as large as the scale of the
function, where rounding errors are harmless. The steps decrease until the extrapolation no longer
changes, and the entry of the tableau with the smallest error estimate is kept. The rounding errors
of the step are measured. If steps are on both sides of a clamp or a dead band, the extrapolation
continues until they are in one branch, so that the error estimate is honest. If left and right
differences disagree at the smallest step, the column is on a kink and gets an infinite error.

With constraints (`ConstrainedStep`), the solver must converge, and every evaluation reports its
branch: the rows, their zones, saturated impedances. The first step is the largest one whose two
evaluations are in the branch of the state. A column without such a step is on a kink. For curved
geoms MuJoCo's convex collider stops early, in a smooth way that differences do not reveal. These
states are differentiated at two tolerances of the collider, and trusted as far as both agree. Since
the collider minimizes distances, the derivative of a contact point is accurate only to about the
square root of the rounding errors.

`mujoco.mjd_transitionFD` is not used, because it is one of the methods to compare with.
"""

from mujacobian.check._branch import (
    CONE,
    LINEARNEG,
    LINEARPOS,
    QUADRATIC,
    SATISFIED,
    branch,
    zones,
)
from mujacobian.check._collider import is_deep, meets_curved
from mujacobian.check._comparison import TRUST, Comparison, compare
from mujacobian.check._convergence import converge
from mujacobian.check._extrapolation import SETTLED, differentiate
from mujacobian.check._probe import ConstrainedStep, Step, quiet
from mujacobian.check._reference import Reference, directional, jacobian

__all__ = [
    "CONE",
    "LINEARNEG",
    "LINEARPOS",
    "QUADRATIC",
    "SATISFIED",
    "SETTLED",
    "TRUST",
    "Comparison",
    "ConstrainedStep",
    "Reference",
    "Step",
    "branch",
    "compare",
    "converge",
    "differentiate",
    "directional",
    "is_deep",
    "jacobian",
    "meets_curved",
    "quiet",
    "zones",
]
