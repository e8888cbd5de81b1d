"""The result of an identification, with its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._parameters import Parameters
from mujacobian._summary import html_table
from mujacobian.errors import ArgumentError
from mujacobian.sysid import archive, plot
from mujacobian.sysid.fit import Fit
from mujacobian.sysid.numerics import stdtrit
from mujacobian.sysid.problem import Iterate
from mujacobian.sysid.report import write_report
from mujacobian.sysid.starts import Start, describe_starts

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """Result of `identify`. Residuals are in units of the noise.

    Attributes:
      parameters: the identified parameters, as passed to `identify`.
      names: names of the values: of `parameters`, then of the calibration.
      units: units of the values.
      values: identified values, in the order of `names`.
      standard_errors: standard errors of the values; inf for undetermined parameters.
      covariance: covariance of the values. It is scaled by the variance of the residuals and
        includes the uncertainty of estimated first states (SID-5).
      model: copy of the model with the identified values.
      first_states: given or estimated first states per log, `(windows, nq + nv + na)`.
      residuals: predicted minus measured numbers per log: first all sensors, then all states.
      cost: half the sum of squares of all residuals, including priors; with a robust loss,
        half its sum.
      degrees_of_freedom: number of residuals minus the number of unknowns that they determine.
      reduced_chi_square: sum of squares divided by the degrees of freedom. It is near 1 if the
        model is right and the noise is as stated; nan without degrees of freedom. With a robust
        loss it is the factor of the covariance (SID-9), which is also near 1.
      undetermined: names of the parameters that the logs do not determine.
      identifiability: sentences about parameters that the logs determine only in combination, such
        as "Only the sum of ... is determined."; they hold near the identified values.
      on_bounds: names of the parameters whose unconstrained optimum is beyond a bound.
      history: the iterates at which Jacobians were computed, then the optimum.
      steps: number of simulated steps of all logs; each of them is also differentiated.
      converged: whether the optimizer and all first states converged.
      message: message of the optimizer.
      warnings: texts of the issued `IdentificationWarning`s.
      fits: the readings of the sensors of each log, measured and simulated.
      starts: all starts, the given one first. The values are those of the start with the least
        cost.
    """

    parameters: Parameters
    names: tuple[str, ...]
    units: tuple[str, ...]
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
    identifiability: tuple[str, ...]
    on_bounds: tuple[str, ...]
    history: tuple[Iterate, ...]
    steps: int
    converged: bool
    message: str
    warnings: tuple[str, ...]
    fits: tuple[Fit, ...]
    starts: tuple[Start, ...]

    def intervals(self, level: float = 0.95) -> Array:
        """Return confidence intervals `(n, 2)` of the values, from Student's t distribution.

        Args:
          level: probability that an interval contains the true value if the model is right, by
            default 0.95.
        """
        if not 0 < level < 1:
            raise ArgumentError(f"level must be between 0 and 1, got {level:g}")
        if self.degrees_of_freedom < 1:
            return np.tile([-np.inf, np.inf], (len(self.values), 1))
        half = stdtrit(self.degrees_of_freedom, (1 + level) / 2) * self.standard_errors
        return np.column_stack([self.values - half, self.values + half])

    def save(self, path: str | Path) -> None:
        """Write the result to a file in JSON, with all digits but without the model.

        Args:
          path: the file, which is replaced if it exists.
        """
        archive.save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, parameters: Parameters) -> Identification:
        """Return a result that `save` has written; all its numbers are bitwise the same.

        Args:
          path: the file.
          parameters: the parameters that were identified, of a model from which `model` is made.
            Their names must be those in the file.
        """
        return archive.load(cls, Path(path), parameters)

    def plot_fit(self, log: int = 0) -> Figure:
        """Return a figure of the measured and simulated readings of a log over time.

        Args:
          log: index of the log, by default 0.
        """
        if not 0 <= log < len(self.fits):
            raise ArgumentError(f"log must be from 0 to {len(self.fits) - 1}, got {log}")
        if np.isnan(self.fits[log].measured).all():
            raise ArgumentError(f"log {log} has no readings of sensors")
        return plot.draw_fit(self.fits[log])

    def plot_residuals(self) -> Figure:
        """Return a figure of the residuals of sensors over time, and a histogram of all residuals.

        Residuals of a right model look like noise, and their histogram like the normal density.
        """
        return plot.draw_residuals(self.fits, np.concatenate(self.residuals))

    def plot_intervals(self, level: float = 0.95) -> Figure:
        """Return a figure of the values with their confidence intervals and initial values.

        Args:
          level: as for `intervals`.
        """
        return plot.draw_intervals(self, level)

    def report(self, path: str | Path, *, title: str = "Identification") -> None:
        """Write all results with all figures to one HTML file, which needs no other file.

        Args:
          path: the file, which is replaced if it exists.
          title: title of the page.
        """
        write_report(self, Path(path), title)

    @property
    def spread(self) -> Array:
        """The largest minus the smallest value of each parameter among the optima of all starts."""
        found = np.array([start.values for start in self.starts if np.isfinite(start.cost)])
        return np.asarray(np.ptp(found, axis=0))

    def __repr__(self) -> str:
        state = "converged" if self.converged else "not converged"
        found = f"{len(self.values)} parameters, reduced chi-square {self.reduced_chi_square:.3g}"
        return f"<Identification: {found}, {state}, {len(self.warnings)} warnings>"

    def _repr_html_(self) -> str:
        entries = zip(
            self.names,
            self.values,
            self.standard_errors,
            self.intervals(),
            self.units,
            strict=True,
        )
        rows = [
            (name, f"{value:.6g}", f"{error:.2g}", f"{low:.6g} to {high:.6g}", unit)
            for name, value, error, (low, high), unit in entries
        ]
        header = ("parameter", "value", "standard error", "95 % interval", "unit")
        state = "converged" if self.converged else "not converged"
        title = f"Identification: reduced chi-square {self.reduced_chi_square:.4g}, {state}"
        return html_table(title, header, rows)

    def __str__(self) -> str:
        width = max(map(len, self.names))
        rows = zip(self.names, self.values, self.standard_errors, self.units, strict=True)
        lines = [f"{n:{width}} {v:12.6g} ± {e:<8.2g} {u}" for n, v, e, u in rows]
        lines += [
            f"cost {self.cost:.6g}, reduced chi-square {self.reduced_chi_square:.4g}"
            f" with {self.degrees_of_freedom} degrees of freedom",
            f"{'converged' if self.converged else 'not converged'}: {self.message}",
            f"not determined: {', '.join(self.undetermined) or 'none'}",
            f"on bounds: {', '.join(self.on_bounds) or 'none'}",
        ]
        if len(self.starts) > 1:
            lines.append(describe_starts(self.starts, self.reduced_chi_square))
        lines += self.identifiability
        return "\n".join(lines + [f"warning: {text}" for text in self.warnings])
