"""Schedules of the contact width in `ILQR.solve`."""

import mujoco
import numpy as np
import pytest

from mujacobian import control

PUSHER = """
<mujoco>
  <option timestep=".02" integrator="implicitfast"/>
  <worldbody>
    <body name="tip"><joint name="tip" type="slide" axis="1 0 0" damping="2"/>
      <geom type="sphere" size=".03" mass=".5"/></body>
    <body name="box" pos=".15 0 0"><joint type="slide" axis="1 0 0" damping="3"/>
      <geom type="box" size=".07 .07 .05" mass="1"/></body>
  </worldbody>
  <actuator><motor joint="tip" ctrlrange="-20 20"/></actuator>
</mujoco>
"""
HORIZON = 30
# a replayed plan is the same simulation
REPLAY = 1e-12


def pusher():
    """Return a tip that pushes a box along a line, with its cost."""
    spec = mujoco.MjSpec.from_string(PUSHER)
    rows = control.residuals(spec)
    box, tip = (rows.position(name, kind="body")[0] for name in ("box", "tip"))
    terms = [
        control.Term("place", box - 0.4, control.L2(0.05), weight=5),
        control.Term("near", box - tip - 0.1, control.L2(0.05)),
        control.Term("effort", rows.controls(), weight=1e-3),
    ]
    model = spec.compile()
    return model, control.Cost(model, terms)


def test_a_schedule_of_widths_ends_with_the_model_itself():
    model, cost = pusher()
    planner, numbers = control.ILQR(model, cost, HORIZON), []
    plan = planner.solve(
        mujoco.MjData(model),
        iterations=90,
        widths=(0.05, 0.01),
        callback=lambda each: numbers.append(each.number),
    )
    assert numbers.count(0) >= 3  # three plans have begun
    assert len(plan.history.cost) <= 30
    assert plan.cost < plan.initial_cost or plan.status == "converged"
    # the plan is a simulation of the model with its own contacts
    data = mujoco.MjData(model)
    for state, ctrl in zip(plan.states[1:], plan.controls, strict=True):
        data.ctrl[:] = ctrl
        mujoco.mj_step(model, data)
        assert np.allclose(np.concatenate([data.qpos, data.qvel]), state, rtol=0, atol=REPLAY)
    assert data.qpos[1] > 0.1  # the box has moved
    first = planner.solve(mujoco.MjData(model), iterations=30)
    again = control.ILQR(model, cost, HORIZON).solve(mujoco.MjData(model), iterations=30, widths=())
    assert np.array_equal(first.controls, again.controls)


def test_a_callback_stops_the_whole_schedule():
    model, cost = pusher()
    seen = []

    def stop(each):
        seen.append(each)
        return len(seen) == 4

    plan = control.ILQR(model, cost, HORIZON).solve(
        mujoco.MjData(model), widths=[0.05, 0.01], callback=stop
    )
    assert plan.status == "stopped"
    assert len(seen) == 4
    assert np.isfinite(plan.cost)


@pytest.mark.parametrize("widths", [(0.01, 0.05), (0.0,), (-1.0,), (0.1, 0.1), np.ones((2, 2))])
def test_wrong_widths_raise(widths):
    model, cost = pusher()
    with pytest.raises(ValueError, match="widths must be positive lengths in descending order"):
        control.ILQR(model, cost, HORIZON).solve(mujoco.MjData(model), widths=widths)
    with pytest.raises(ValueError, match="widths"):
        control.ILQR(model, cost, HORIZON).solve(mujoco.MjData(model), widths=[np.nan])
