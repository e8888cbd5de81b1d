"""What an identification has found, and how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._parameters import Parameters
from mujacobian.errors import ArgumentError
from mujacobian.sysid.numerics import stdtrit
from mujacobian.sysid.problem import Iterate


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """What `identify` has found. Residuals are in units of the noise.

    values: the parameters, in the order of `parameters.names`.
    standard_errors: of the values; inf where the logs do not tell.
    covariance: of the values, with the variance of the residuals and, if first states were
        estimated, their uncertainty (SID-5).
    model: the model with the values.
    first_states: per log `(windows, nq + nv + na)`, given or estimated.
    residuals: per log, predicted minus measured: all sensors that were measured, then all states.
    cost: half the sum of all squares, those of the priors of first states included.
    degrees_of_freedom: measured numbers beyond those that the unknowns can fit.
    reduced_chi_square: the sum of squares over the degrees of freedom, 1 if the model is right and
        the noise as stated; nan without degrees of freedom.
    undetermined, on_bounds: names of parameters that the logs do not determine, and of those that
        would leave their bounds if they could.
    history: the points where Jacobians were taken, then the optimum.
    steps: simulated steps, of all logs; each is differentiated where it is simulated.
    converged, message: how the optimizer ended.
    warnings: what speaks against the result, as `IdentificationWarning` says it.
    """

    parameters: Parameters
    values: Array
    standard_errors: Array
    covariance: Array
    model: mujoco.MjModel
    first_states: tuple[Array, ...]
    residuals: tuple[Array, ...]
    cost: float
    degrees_of_freedom: int
    reduced_chi_square: float
    undetermined: tuple[str, ...]
    on_bounds: tuple[str, ...]
    history: tuple[Iterate, ...]
    steps: int
    converged: bool
    message: str
    warnings: tuple[str, ...]

    def intervals(self, level: float = 0.95) -> Array:
        """Confidence intervals `(n, 2)` of the values, from Student's distribution.

        level: probability with which each of them covers the true value, if the model is right.
        """
        if not 0 < level < 1:
            raise ArgumentError(f"level must be between 0 and 1, got {level:g}")
        if self.degrees_of_freedom < 1:
            return np.tile([-np.inf, np.inf], (len(self.values), 1))
        half = stdtrit(self.degrees_of_freedom, (1 + level) / 2) * self.standard_errors
        return np.column_stack([self.values - half, self.values + half])

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        found = f"{len(self.values)} parameters, reduced chi-square {self.reduced_chi_square:.3g}"
        return f"<Identification: {found}, {state}, {len(self.warnings)} warnings>"

    def __str__(self) -> str:
        names = self.parameters.names
        width = max(map(len, names))
        rows = zip(names, self.values, self.standard_errors, self.parameters.units, strict=True)
        lines = [f"{n:{width}} {v:12.6g} ± {e:<8.2g} {u}" for n, v, e, u in rows]
        lines += [
            f"cost {self.cost:.6g}, reduced chi-square {self.reduced_chi_square:.4g}"
            f" with {self.degrees_of_freedom} degrees of freedom",
            f"{'converged' if self.converged else 'not converged'}: {self.message}",
            f"not determined: {', '.join(self.undetermined) or 'none'}",
            f"on bounds: {', '.join(self.on_bounds) or 'none'}",
        ]
        return "\n".join(lines + [f"warning: {text}" for text in self.warnings])
