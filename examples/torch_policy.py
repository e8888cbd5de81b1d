"""Train a small PyTorch policy to balance a pole on a cart, with gradients of the simulator."""

import mujoco
import numpy as np
import torch

import mujacobian.torch

CARTPOLE = """
<mujoco model="cart and pole">
  <option timestep=".02" integrator="implicitfast"/>
  <worldbody>
    <body name="cart">
      <joint name="rail" type="slide" axis="1 0 0" damping=".1"/>
      <geom type="box" size=".1 .05 .05" mass="1" contype="0"/>
      <body name="pole">
        <joint name="pivot" axis="0 1 0" damping=".002"/>
        <geom type="capsule" fromto="0 0 0 0 0 .6" size=".02" mass=".2" contype="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="rail" gear="10"/></actuator>
</mujoco>
"""
STEPS, BATCH, EPOCHS = 40, 6, 30


def fallen(model: mujoco.MjModel, policy: torch.nn.Module, starts: torch.Tensor) -> torch.Tensor:
    """Return the mean deviation from the upright rest state over time and poles."""
    state, loss = starts, torch.zeros((), dtype=torch.float64)
    for _ in range(STEPS):
        state, _ = mujacobian.torch.step(model, state, policy(state), threads=1)
        position, angle, speed, spin = state.unbind(-1)
        loss = loss + (angle**2 + 0.1 * position**2 + 0.01 * (speed**2 + spin**2)).mean()
    return loss / STEPS


def main() -> tuple[float, float]:
    """Return the loss of poles that are not in the training set, before and after training."""
    torch.manual_seed(0)
    model = mujoco.MjModel.from_xml_string(CARTPOLE)
    rng = np.random.default_rng(0)
    starts = torch.tensor(rng.normal(size=(2 * BATCH, 4)) * [0.3, 0.2, 0.2, 0.2])
    policy = torch.nn.Sequential(
        torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1), torch.nn.Tanh()
    ).double()
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.05)

    with torch.no_grad():
        before = float(fallen(model, policy, starts[BATCH:]))
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        loss = fallen(model, policy, starts[:BATCH])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        after = float(fallen(model, policy, starts[BATCH:]))
    print(f"{EPOCHS} epochs of {BATCH} poles: loss of others {before:.3f} -> {after:.4f}")
    return before, after


if __name__ == "__main__":
    main()
