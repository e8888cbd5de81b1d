"""Throw a die so that it shows six: gradient descent through the bounce finds its spin."""

import mujoco
import numpy as np

import mujacobian

SCENE = """
<mujoco model="die">
  <option timestep=".002" integrator="implicitfast" cone="elliptic"/>
  <worldbody>
    <geom type="plane" size="2 2 .1"/>
    <body name="die">
      <freejoint/>
      <geom type="box" size=".02 .02 .02" mass=".03" condim="4" friction=".6" solref=".008 .3"/>
    </body>
  </worldbody>
</mujoco>
"""
STEPS = 110  # end in the bounce; the gradient of a die at rest vanishes
REST = 1500  # steps until the die is at rest
SPIN, QUATERNION = slice(10, 13), slice(3, 7)  # in a row of (qpos, qvel)


def throw(model: mujoco.MjModel, spin: np.ndarray, steps: int) -> mujacobian.Trajectory:
    """Return the flight with this initial angular velocity; the six is down initially."""
    hand = np.array([0, 0, 0.3, 0, 1, 0, 0, 0.5, 0, -1, *spin])
    return mujacobian.rollout(model, hand, np.zeros((steps, 0)))


def six_up(state: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the vertical component of the normal of the six, and its gradient."""
    _, x, y, _ = state[QUATERNION]
    return 1 - 2 * (x**2 + y**2), np.array([0, -4 * x, -4 * y, 0])


def loss(flight: mujacobian.Trajectory) -> tuple[float, np.ndarray]:
    """Return the loss, from final orientation and spin, and its derivative by the states."""
    end = flight.states[-1]
    height, d_height = six_up(end)
    d_states = np.zeros_like(flight.states)
    d_states[-1, QUATERNION] = -d_height
    d_states[-1, SPIN] = 2e-3 * end[SPIN]
    return 1 - height + 1e-3 * end[SPIN] @ end[SPIN], d_states


def descend(model: mujoco.MjModel, spin: np.ndarray, iterations: int = 30) -> np.ndarray:
    """Return a better spin, by gradient descent with a backtracking line search."""
    size = 1.0
    for _ in range(iterations):
        flight = throw(model, spin, STEPS)
        value, d_states = loss(flight)
        gradient = flight.gradient(d_states).state[SPIN]
        downhill = -gradient / np.linalg.norm(gradient)
        while loss(throw(model, spin + size * downhill, STEPS))[0] >= value:
            size /= 2
            if size < 1e-4:
                return spin
        spin = spin + size * downhill
        size *= 1.5
    return spin


def main() -> list[tuple[float, float]]:
    """Return the vertical component of the normal of the six at rest, before and after."""
    model = mujoco.MjModel.from_xml_string(SCENE)
    # contact forces begin softly, so the loss does not jump when a corner touches
    soft = mujacobian.smoothed(model, margin=0.002)
    rng = np.random.default_rng(0)
    heights = []
    for _ in range(6):
        first = 6 * rng.normal(size=3)
        spin = descend(soft, first)
        before, after = (six_up(throw(model, s, REST).states[-1])[0] for s in (first, spin))
        print(f"spin {first.round(1)} rests with the six at {before:+.2f},", end=" ")
        print(f"{spin.round(1)} at {after:+.2f}")
        heights.append((before, after))
    print(f"{sum(after > 0.99 for _, after in heights)} of {len(heights)} dice show six")
    return heights


if __name__ == "__main__":
    main()
