"""Trusted numerical Jacobians of one mj_step, for judging analytic ones.

Every column is a ladder of central differences of the full `mj_step`, extrapolated to zero step
(Richardson). The ladder starts at a step as large as the map's own scale, where rounding is
harmless, and shrinks until the extrapolation has settled; the entry of the tableau with the
smallest error estimate is kept. The rounding of the map is measured, not guessed. A ladder that
straddles a clamp or a dead band does not settle until its steps are inside one branch, so the
estimate stays honest; a column whose left and right differences disagree at the smallest step sits
on a kink and is excluded (infinite error).

With constraints (`ConstrainedStep`), the solver is converged and every probe reports its branch:
which rows exist, their zones, saturated impedances. The ladder starts at the largest step whose two
probes are in the branch of the state itself; a column without such a step sits on a kink. MuJoCo's
convex collider stops short of the contact of curved geoms, smoothly, which no ladder sees: such
states are differentiated at two tolerances of the collider, and trusted as far as these agree; and
since it measures only distances, the slope of a contact point is known to about the root of
rounding.

`mujoco.mjd_transitionFD` is not used: it is what we want to be better than.
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
