"""Optimal plans as pure functions of batches of arrays, which PyTorch and JAX call on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mujacobian._arguments import Array, count, numbers
from mujacobian._manifold import Manifold
from mujacobian.control.ilqr import ILQR
from mujacobian.errors import ArgumentError, ArgumentTypeError

Inputs = dict[str, Any]
DIFFERENTIATED = ("state", "weights", "targets")


@dataclass(frozen=True)
class HostPlan:
    """Optimal plans of a planner. Inputs are arrays by name, and all have a leading batch axis.

    Attributes:
      planner: the planner.
      iterations: maximum number of iterations of a plan.
    """

    planner: ILQR
    iterations: int

    def __post_init__(self) -> None:
        _require_planner(self.planner)
        if self.planner.derivatives != "analytic":
            raise ArgumentError(
                'the planner must have derivatives="analytic", got '
                f'derivatives="{self.planner.derivatives}"'
            )
        count("iterations", self.iterations)
        self.planner.cost.require_second_derivatives()
        self.planner.cost.require_unconstrained("a differentiable plan")

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs, without a batch axis."""
        cost, T = self.planner.cost, self.planner.horizon
        rows = sum(len(cost.terms[k].residual) for k in cost.own)
        return {
            "state": (cost.nstate,),
            "weights": (len(cost.terms),),
            "targets": (rows,),
            "controls": (T - 1, cost.nu),
        }

    @property
    def defaults(self) -> dict[str, Array]:
        """Values of the inputs that have a default."""
        shapes = self.shapes
        zeros = {name: np.zeros(shapes[name]) for name in ("targets", "controls")}
        return {"weights": self.planner.cost.weights.copy(), **zeros}

    def solve(self, inputs: Inputs) -> tuple[Array, Array]:
        """Return the states and controls of the optimal plans."""
        # a NaN would switch a row off
        inputs = inputs | {"targets": numbers("targets", inputs["targets"])}
        made = []
        for state, variant, controls in _each(inputs):
            plan = self.planner.solve_variant(state, variant, controls, self.iterations)
            made.append((plan.states, plan.controls))
        states, controls = (np.stack(results) for results in zip(*made, strict=True))
        return states, controls

    def pull_back(self, inputs: Inputs, *arrays: Array) -> Inputs:
        """Return the gradients by state, weights and targets; `controls` are the optimal ones."""
        states = arrays[0]
        d_states, d_controls = map(numbers, ("d_states", "d_controls"), arrays[1:])
        manifold = Manifold(self.planner.model)
        rows = manifold.pull(states, d_states)
        made = []
        for (state, variant, controls), dx, du in zip(_each(inputs), rows, d_controls, strict=True):
            made.append(self.planner.pull_back_variant(state, variant, controls, dx, du))
        state, weights, targets = (np.stack(results) for results in zip(*made, strict=True))
        lifted = manifold.lift(inputs["state"], state)
        return dict(zip(DIFFERENTIATED, (lifted, weights, targets), strict=True))


def _require_planner(planner: object) -> None:
    if not isinstance(planner, ILQR):
        raise ArgumentTypeError(f"planner must be a control.ILQR, got {type(planner).__name__}")


def _each(inputs: Inputs) -> list[tuple[Array, tuple[Array, Array], Array]]:
    """Return the state, the weights and targets, and the controls of every plan of a batch."""
    state, weights, targets, controls = (
        inputs[name] for name in ("state", "weights", "targets", "controls")
    )
    return list(zip(state, zip(weights, targets, strict=True), controls, strict=True))
