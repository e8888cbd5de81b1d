"""Learn the weights of an MPC cost from the controls of an expert, by gradients of the optimum."""

from pathlib import Path

import mujoco
import numpy as np
import torch

import mujacobian.control.torch
from mujacobian import control

CART = """
<mujoco model="cart and pole">
  <option timestep=".04" integrator="implicitfast"/>
  <worldbody>
    <body name="cart">
      <joint name="rail" type="slide" axis="1 0 0" damping=".1"/>
      <geom type="box" size=".1 .05 .05" mass="1" contype="0"/>
      <body name="pole">
        <joint name="pivot" axis="0 1 0" damping=".01"/>
        <geom type="capsule" fromto="0 0 0 0 0 .6" size=".02" mass=".2" contype="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="rail" gear="10" ctrllimited="true" ctrlrange="-.5 .5"/></actuator>
  <sensor>
    <jointpos name="place" joint="rail"/><jointpos name="angle" joint="pivot"/>
    <jointvel name="speed" joint="rail"/><jointvel name="spin" joint="pivot"/>
  </sensor>
</mujoco>
"""
NAMES = ("place", "angle", "speed", "spin")
EXPERT = np.array([2.0, 5.0, 0.5, 0.1])  # weights of the expert; the weight of the effort is known
EFFORT = 0.1
HORIZON, PLANS, ITERATIONS = 25, 3, 30


def make_planner() -> control.ILQR:
    """Return a planner that brings the cart to its place and the pole upright."""
    model = mujoco.MjModel.from_xml_string(CART)
    terms = [control.Term(name, control.sensor(model, name)) for name in NAMES]
    terms.append(control.Term("effort", control.controls(model)))
    cost = control.Cost(model, terms)
    return control.ILQR(model, cost, HORIZON, hessian="auto", tolerance=1e-12, threads=1)


def plan(planner: control.ILQR, states: torch.Tensor, logs: torch.Tensor) -> torch.Tensor:
    """Return the optimal controls for the logarithms of the weights."""
    weights = torch.cat([logs.exp(), torch.tensor([EFFORT]).double()])
    return mujacobian.control.torch.plan(planner, states, weights=weights)[1]


def main(picture: str | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean squared error of the controls, and the weights, in all evaluations."""
    planner = make_planner()
    rng = np.random.default_rng(0)
    states = torch.tensor(rng.normal(size=(PLANS, 4)) * [0.5, 0.2, 0.2, 0.2])
    expert = plan(planner, states, torch.tensor(np.log(EXPERT)))

    logs = torch.zeros(len(NAMES), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [logs], lr=1.0, max_iter=ITERATIONS, line_search_fn="strong_wolfe"
    )
    errors, weights = [], []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = ((plan(planner, states, logs) - expert) ** 2).mean()
        loss.backward()
        errors.append(loss.item())
        weights.append(logs.detach().exp().numpy().copy())
        return loss

    optimizer.step(closure)
    last = ", ".join(
        f"{name} {w:.3f} ({e:g})" for name, w, e in zip(NAMES, weights[-1], EXPERT, strict=True)
    )
    print(f"{len(errors)} evaluations: error {errors[0]:.1e} -> {errors[-1]:.1e}")
    print(f"weights (those of the expert): {last}")
    if picture is not None:
        draw(np.array(errors), np.array(weights), picture)
    return np.array(errors), np.array(weights)


def draw(errors: np.ndarray, weights: np.ndarray, picture: str) -> None:
    """Draw the error of the controls, and the weights."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy(errors)
    left.set(xlabel="evaluation", ylabel="mean squared error of controls")
    for name, row, goal in zip(NAMES, weights.T, EXPERT, strict=True):
        (line,) = right.semilogy(row, label=name)
        right.axhline(goal, color=line.get_color(), linestyle=":")
    right.set(xlabel="evaluation", ylabel="weight (dotted: expert)")
    right.legend(loc="lower right")
    Path(picture).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main("build/imitate_mpc.png")
