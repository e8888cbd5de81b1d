"""The figure of a run: all poses have one scale and one floor."""

from dataclasses import replace
from itertools import pairwise

import mujoco
import numpy as np
import pytest

from mujacobian.control import plot, tasks
from mujacobian.control.sketch import Sketch, floor_height
from mujacobian.errors import ArgumentError

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure


@pytest.fixture(scope="module")
def cartpole():
    """Return the task and the result of a short run, whose states the tests replace."""
    task = tasks.load("cartpole")
    return task, task.mpc(threads=1).run(task.start(None), 0.1, progress=False)


def poses(cartpole, places, angles):
    """Return the drawings of a cart at these places with these angles of its pole."""
    task, result = cartpole
    n = len(places)
    states = np.stack([places, angles, np.zeros(n), np.zeros(n)], axis=1)
    return plot.Poses(task, replace(result, states=states, times=np.arange(n) / 10))


def drawn(shown):
    """Return the corners of all shapes that are drawn, by pose, and the lines."""
    axes = Figure().subplots()
    shown.draw(axes)
    shapes = [patch.get_xy() for patch in axes.patches]
    per_pose = len(shapes) // len(shown.sketches)
    return axes, [shapes[k : k + per_pose] for k in range(0, len(shapes), per_pose)]


def test_the_cart_stays_on_its_rail(cartpole):
    """The cart is at its height and at its own place in every window, whatever the pole does."""
    places, angles = np.linspace(-0.2, 0.2, plot.POSES), np.linspace(0, 3, plot.POSES)
    shown = poses(cartpole, places, angles)
    assert not shown.travels
    axes, found = drawn(shown)
    carts = np.array([min(each, key=len) for each in found])  # boxes have the fewest corners
    assert np.allclose(carts[:, :, 1], carts[0, :, 1])
    middles = (carts[:, :, 0].min(axis=1) + carts[:, :, 0].max(axis=1)) / 2
    assert np.allclose(middles - shown.shift * np.arange(plot.POSES), places)
    floors = [line for line in axes.lines if len(set(line.get_ydata())) == 1]
    assert len(floors) == plot.POSES
    assert all(line.get_ydata()[0] == 0 for line in floors)
    ends = [np.array(line.get_xdata()) for line in floors]
    assert all(after[0] > before[1] for before, after in pairwise(ends))


def test_a_model_that_travels_is_drawn_along_its_way(cartpole):
    shown = poses(cartpole, np.linspace(0, 6, plot.POSES), np.zeros(plot.POSES))
    assert shown.travels
    assert shown.shift == 0
    axes, _ = drawn(shown)
    (floor,) = [line for line in axes.lines if len(set(line.get_ydata())) == 1]
    assert floor.get_xdata()[1] - floor.get_xdata()[0] > 6
    near = poses(cartpole, np.linspace(0, 2, plot.POSES), np.zeros(plot.POSES))
    assert near.travels
    assert 0 < near.shift < 0.3
    assert "each shifted by" in drawn(near)[0].get_title()


def test_a_run_of_one_step_has_one_pose(cartpole):
    shown = poses(cartpole, np.zeros(1), np.zeros(1))
    assert len(shown.sketches) == 1
    drawn(shown)


def test_geoms_in_one_plane_keep_their_order(cartpole):
    """The tip is in front of the pole in every pose, whatever rounding does to their depths."""
    shown = poses(cartpole, np.zeros(plot.POSES), np.linspace(-3, 3, plot.POSES))
    for sketch in shown.sketches:
        colors = [color.tolist() for _, color in sketch.shapes]
        assert np.allclose(colors, [color for _, color in shown.sketches[0].shapes])


def test_the_floor_is_where_the_model_stands():
    """A ball on a raised floor touches the strip of floor between its front and its back."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><geom type='plane' size='1 1 1' pos='0 0 .5'/>"
        "<body pos='2 3 .6'><freejoint/><geom size='.1'/></body></worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    assert floor_height(model) == 0.5
    level = Sketch(model, data, -90, 0)
    assert level.near == pytest.approx(0.5)
    assert level.far == pytest.approx(0.5)
    assert level.bottom == pytest.approx(0.5)
    assert (level.left + level.right) / 2 == pytest.approx(2)
    above = Sketch(model, data, -90, 30)
    foot = 0.5 * np.cos(np.radians(30)) + 3 * np.sin(np.radians(30))
    assert above.near < foot < above.far
    assert (above.near + above.far) / 2 == pytest.approx(foot)


def test_a_model_without_shapes_is_an_error():
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    with pytest.raises(ArgumentError, match="nothing to draw"):
        Sketch(model, mujoco.MjData(model), 0, 0)
