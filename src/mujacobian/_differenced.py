"""Reports of finite differences that replace derivatives without an exact form."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import mujoco

from mujacobian.errors import ArgumentError, DifferencedWarning


@dataclass(frozen=True)
class Differenced:
    """Derivatives that are finite differences, because an element has no exact ones.

    Differences are trusted where their estimated error is below a fifth of the tolerance of
    `mujacobian check`, 1e-6 in a state with contacts. They are not trusted on a kink or a jump,
    where the entry is the mean slope over a short distance, and where rounding errors are large.

    Attributes:
      element: type and name of the element, as in `UnsupportedFeatureError`.
      reason: the reason why it has no exact derivative.
      index: `()` at a single state; `(k,)` for state k of a batch, step k of a rollout or knot k of
        a plan; `(n, k)` for step k of rollout n.
      entries: number of entries of the result that are differences.
      untrusted: number of those entries that are not trusted.
      error: largest estimated error of the trusted entries, relative to the largest entry of the
        same column among positions, velocities, activations or the values of the same sensor.
    """

    element: str
    reason: str
    index: tuple[int, ...]
    entries: int
    untrusted: int
    error: float

    @property
    def is_trusted(self) -> bool:
        """Whether all entries are trusted."""
        return self.untrusted == 0

    def __str__(self) -> str:
        where = f"{', '.join(map(str, self.index))}: " if self.index else ""
        trust = (
            f", but {self.untrusted} of {self.entries} entries are not trusted: the step has a "
            "kink or a jump there, or rounding errors are too large"
            if self.untrusted
            else ""
        )
        return (
            f"{where}{self.element} has no exact derivative here: {self.reason}. Finite "
            f"differences have an estimated relative error of {self.error:.0e}{trust}"
        )


def require_fallback(fallback: str | None) -> None:
    """Raise if this is not a value of the argument `fallback`."""
    if fallback is not None and fallback != "fd":
        raise ArgumentError(f'fallback must be None or "fd", got {fallback!r}')


def may_difference(model: mujoco.MjModel, fallback: str | None) -> bool:
    """Return whether refused steps from recorded states are differenced.

    A record does not contain which trees sleep.
    """
    sleeps = bool(model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_SLEEP)
    return fallback is not None and not sleeps


def warn(differenced: Sequence[Differenced]) -> None:
    """Warn of differences in a gradient, for callers whose results contain no report."""
    if differenced:
        steps = len({each.index for each in differenced})
        warnings.warn(
            DifferencedWarning(
                f"the gradient contains finite differences of {steps} steps, for example "
                f"{differenced[0]}",
                tuple(differenced),
            ),
            stacklevel=3,
        )
