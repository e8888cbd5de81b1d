"""Settings of a planner, which do not change after it was made."""

from __future__ import annotations

from dataclasses import dataclass

from mujacobian._arguments import Array, number, require_one_of
from mujacobian.errors import ArgumentError

REGULARIZATIONS = ("control", "state", "none")
INTERPOLATIONS = ("linear", "hold")
HESSIANS = ("gauss-newton", "exact", "auto")


@dataclass(frozen=True, eq=False)
class Settings:
    """The keyword arguments of `ILQR`, except for `fallback`, with their defaults filled in.

    `ILQR` checks `derivatives`, and `Regularization` checks the numbers of the regularization.
    """

    derivatives: str
    threads: int
    lower: Array
    upper: Array
    regularization: str
    mu: float
    mu_bounds: tuple[float, float]
    mu_factor: float
    step_sizes: Array
    acceptance: float
    tolerance: float
    interpolation: str
    eps: float
    warm_start: bool
    hessian: str

    def __post_init__(self) -> None:
        require_one_of("regularization", self.regularization, REGULARIZATIONS)
        require_one_of("interpolation", self.interpolation, INTERPOLATIONS)
        require_one_of("hessian", self.hessian, HESSIANS)
        if self.hessian != "gauss-newton" and self.derivatives != "analytic":
            raise ArgumentError(
                f'hessian="{self.hessian}" needs derivatives="analytic", got "{self.derivatives}"'
            )
        for name in ("mu", "mu_factor", "acceptance", "tolerance", "eps"):
            number(name, getattr(self, name))
        if not len(self.step_sizes) or (self.step_sizes <= 0).any():
            raise ArgumentError(f"step_sizes must be positive, got {self.step_sizes.tolist()}")
        if not self.eps > 0:
            raise ArgumentError(f"eps must be positive, got {self.eps!r}")
        for name, value in (("tolerance", self.tolerance), ("acceptance", self.acceptance)):
            if not value >= 0:
                raise ArgumentError(f"{name} must be at least 0, got {value!r}")
