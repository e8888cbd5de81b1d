"""Regularization in `ILQR.solve`: searches that fail end, and units of controls do not matter."""

import mujoco
import numpy as np
import pytest

from benchmarks import planners
from mujacobian import control

CART = """
<mujoco>
  <option timestep=".02" integrator="implicitfast"/>
  <worldbody>
    <body>
      <joint name="rail" type="slide" axis="1 0 0" damping=".1"/>
      <geom type="box" size=".1 .05 .05" mass="1" contype="0"/>
      <body>
        <joint name="pivot" axis="0 1 0" damping=".01"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.6" size=".02" mass=".2" contype="0"/>
        <site name="tip" pos="0 0 -.6"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="rail" gear="{gear}" ctrlrange="{lower} {upper}"/></actuator>
  <sensor><framepos name="tip" objtype="site" objname="tip"/></sensor>
</mujoco>
"""
KNOTS = 60
# until the regularization has grown so much that a search succeeds or ends
FAILED_SEARCHES = 12


def longest_run(flags: np.ndarray) -> int:
    """Return the length of the longest sequence of true flags."""
    return max(len(run) for run in "".join("x" if flag else " " for flag in flags).split(" "))


@pytest.mark.parametrize("mu", [1.0, 1e-6])
@pytest.mark.parametrize("seed", [1, 2, 5])
def test_failed_searches_do_not_repeat_until_the_limit(seed: int, mu: float) -> None:
    """With these starts, 0.1.0 repeated a search that failed, with the same regularization."""
    problem = planners.cartpole()
    planner = control.ILQR(problem.model, problem.cost, problem.horizon, threads=1, mu=mu)
    plan = planner.solve(problem.data, controls=planners.random_controls(problem, seed))
    assert plan.status == "converged"
    assert longest_run(plan.history.step == 0) <= FAILED_SEARCHES


@pytest.mark.parametrize("unit", [1 / 64, 64])
def test_units_of_controls_do_not_matter(unit: float) -> None:
    """Powers of two scale without rounding, so the iterations have the same costs."""
    first, other = (solve_in_units(each) for each in (1.0, unit))
    assert len(first.history.cost) > 10
    np.testing.assert_allclose(other.history.cost, first.history.cost, rtol=1e-9)
    np.testing.assert_array_equal(other.history.regularization, first.history.regularization)
    largest = abs(first.controls).max()
    np.testing.assert_allclose(other.controls * unit, first.controls, atol=1e-6 * largest)


def solve_in_units(unit: float) -> control.Plan:
    """Return the swing-up of a cart and pole whose control is a force in units of `unit` N."""
    text = CART.format(gear=10 * unit, lower=-1 / unit, upper=1 / unit)
    model = mujoco.MjModel.from_xml_string(text)
    terms = [
        control.Term("up", control.sensor(model, "tip") - (0, 0, 0.6)),
        control.Term("effort", control.controls(model) * unit, weight=1e-3),
    ]
    planner = control.ILQR(model, control.Cost(model, terms), KNOTS, threads=1)
    guess = np.sin(np.linspace(0, 9, KNOTS - 1))[:, None] / unit
    return planner.solve([0.0] * 4, controls=guess)
