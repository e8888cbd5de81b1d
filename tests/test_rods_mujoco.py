"""Rods on the bodies of a MuJoCo model: the engines interact, and gradients are exact."""

from itertools import pairwise

import mujoco
import numpy as np
import pytest

from mujacobian import rods
from mujacobian.rods.mujoco import Link, rollout

XML = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <body name="arm">
      <joint name="shoulder" axis="0 1 0" damping="0.01"/>
      <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0"/>
      <body name="hand" pos=".3 0 0">
        <joint name="wrist" axis="0 0 1" damping="0.01"/>
        <geom type="box" size=".03 .02 .02" mass="0.1"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="shoulder"/><motor joint="wrist"/></actuator>
</mujoco>
"""
STEPS = 12


@pytest.fixture(scope="module")
def scene():
    model = mujoco.MjModel.from_xml_string(XML)
    rod = rods.Rod(
        np.linspace([0.3, 0, 0], [0.6, 0, 0], 7),
        mass=0.05,
        radius=0.01,
        stretch=100,
        shear=100,
        bend=[0.01] * 3,
    )
    points, places = [rod.node(0), rod.beside(0, [0.01, 0, 0])], [[0, 0, 0], [0.025, 0, 0.01]]
    grip = [rods.Attachment(point, [0, 0, 0], 80) for point in points]
    free = rods.Attachment(rod.node(-1), [0.7, 0, 0.1], 1)
    world = rods.World(timestep=0.002, rods=[rod], attachments=[grip[0], free, grip[1]])
    controls = np.random.default_rng(1).normal(size=(STEPS, 2))
    links = [Link(each, "hand", place) for each, place in zip(grip, places, strict=True)]
    return model, world, links, controls


def run(scene, qpos, qvel, controls, state=None):
    model, world, links, _ = scene
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = qpos, qvel
    return rollout(model, data, controls, world, links, state=state)


def test_they_act_on_each_other(scene):
    _, _, _, controls = scene
    made = run(scene, [0, 0], [0, 0], 0 * controls)
    alone = rods.rollout(scene[1], steps=STEPS)
    assert np.abs(made.positions[-1] - alone.positions[-1]).max() > 1e-6
    model = scene[0]
    data = mujoco.MjData(model)
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
    assert abs(made.states[-1, 0] - data.qpos[0]) > 1e-6


def test_momentum_goes_from_one_to_the_other():
    """A free body pulls a rod; the staggered forces are equal and opposite."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><option timestep='.001' gravity='0 0 0'/><worldbody><body name='ship'><freejoint/>"
        "<geom size='.1' mass='1'/></body></worldbody></mujoco>"
    )
    rod = rods.Rod(
        np.linspace([0.1, 0, 0], [0.5, 0, 0], 6),
        mass=0.1,
        radius=0.01,
        stretch=100,
        shear=100,
        bend=[0.1] * 3,
    )
    tow = rods.Attachment(rod.node(0), [0.1, 0, 0], 100)
    world = rods.World(timestep=0.001, gravity=(0, 0, 0), rods=[rod], attachments=[tow])
    data = mujoco.MjData(model)
    data.qvel[:] = [-1, 0.3, 0.2, 0, 0, 0]
    made = rollout(model, data, np.zeros((50, 0)), world, [Link(tow, "ship", [0.1, 0, 0])])
    velocity = np.diff(made.positions, axis=0) / 0.001
    total = made.states[1:, 7:10] + np.einsum("p,tpi->ti", world.parameters().mass, velocity)
    assert np.abs(velocity[-1]).max() > 0.05
    assert np.abs(total - [-1, 0.3, 0.2]).max() < 1e-9


def test_gradient_against_differences(scene):
    model, world, _, controls = scene
    rng = np.random.default_rng(2)
    made = run(scene, [0.1, 0.2], [1, 2], controls)
    weights = [rng.normal(size=x.shape) for x in (made.states, made.positions, made.rotations)]
    gradient = made.gradient(*weights)
    state = world.state()

    def value(qpos, qvel, u, x, v):
        there = rods.State(x, state.rotations, v, state.angular_velocities)
        moved = run(scene, qpos, qvel, u, there)
        parts = moved.states, moved.positions, moved.rotations
        return sum((w * p).sum() for w, p in zip(weights, parts, strict=True))

    base = [np.array([0.1, 0.2]), np.array([1.0, 2.0]), controls, state.positions, state.velocities]
    have = [
        gradient.model_state[: model.nv],
        gradient.model_state[model.nv :],
        gradient.controls,
        gradient.rods_state.positions,
        gradient.rods_state.velocities,
    ]
    for k, bar in enumerate(have):
        direction = rng.normal(size=bar.shape)

        def along(s, k=k, direction=direction):
            moved = list(base)
            moved[k] = base[k] + s * direction
            return value(*moved)

        d = [(along(s) - along(-s)) / (2 * s) for s in (2e-3, 1e-3, 5e-4)]
        e = [(4 * b - a) / 3 for a, b in pairwise(d)]
        wanted = (16 * e[1] - e[0]) / 15
        assert abs(wanted) > 1e-3
        assert abs((bar * direction).sum() - wanted) < 1e-7 * abs(wanted)


def test_gradient_on_a_moved_mocap_body():
    """The reverse pass also uses the pose of a mocap body in the initial data."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><worldbody><body name='cart' mocap='true'><geom size='.01'/><body name='arm'>"
        "<joint axis='0 1 0'/><geom type='capsule' size='.02' fromto='0 0 0 .3 0 0'/></body></body>"
        "</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    data.mocap_pos[0], data.mocap_quat[0] = [0.2, 0.1, 0.4], [np.cos(0.3), 0, 0, np.sin(0.3)]
    rod = rods.Rod(
        np.linspace([0.3, 0, 0], [0.6, 0, 0], 4),
        mass=0.05,
        radius=0.01,
        stretch=100,
        shear=100,
        bend=[0.01] * 3,
    )
    hold = rods.Attachment(rod.node(0), [0, 0, 0], 50)
    world = rods.World(timestep=0.002, rods=[rod], attachments=[hold])

    def run(angle):
        data.qpos[0] = angle
        return rollout(model, data, np.zeros((6, 0)), world, [Link(hold, "arm", [0.3, 0, 0])])

    made = run(0.1)
    weights = np.random.default_rng(3).normal(size=made.positions.shape)
    slope = made.gradient(d_positions=weights).model_state[0]
    ends = [(run(0.1 + s).positions * weights).sum() for s in (-2e-4, -1e-4, 1e-4, 2e-4)]
    wanted = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / 12e-4
    assert abs(wanted) > 1e-3
    assert abs(slope - wanted) < 1e-7 * abs(wanted)


def test_bad_links(scene):
    model, world, links, controls = scene
    data = mujoco.MjData(model)
    with pytest.raises(ValueError, match="no body 'foot'"):
        rollout(model, data, controls, world, [Link(links[0].attachment, "foot")])
    other = rods.Attachment(world.rods[0].node(0), [0, 0, 0], 1)
    with pytest.raises(ValueError, match="must be in the world"):
        rollout(model, data, controls, world, [Link(other, "arm")])
    with pytest.raises(ValueError, match="two links have the same"):
        rollout(model, data, controls, world, [links[0], links[0]])
    with pytest.raises(TypeError, match="body must be of type str"):
        Link(links[0].attachment, None)
    with pytest.raises(TypeError, match="links must be of type Link"):
        rollout(model, data, controls, world, [None])
    with pytest.raises(TypeError, match="world must be of type World"):
        rollout(model, data, controls, None, links)
    with pytest.raises(TypeError, match=r"data must be a mujoco\.MjData"):
        rollout(model, None, controls, world, links)
    other = mujoco.MjModel.from_xml_string("<mujoco/>")
    with pytest.raises(ValueError, match="data was made from another model"):
        rollout(model, mujoco.MjData(other), controls, world, links)
    with pytest.raises(ValueError, match="controls must have shape"):
        rollout(model, data, controls[:, :1], world, links)
    slow = rods.World(timestep=0.01, rods=world.rods, attachments=world.attachments)
    second = rods.World(
        timestep=0.002, rods=world.rods, attachments=world.attachments, integrator="bdf2"
    )
    with pytest.raises(ValueError, match="needs integrator='backward_euler'"):
        rollout(model, data, controls, second, links)
    with pytest.raises(ValueError, match="time steps differ"):
        rollout(model, data, controls, slow, links)
