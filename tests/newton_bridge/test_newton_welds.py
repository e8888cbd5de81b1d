"""Gradients of the data of welds, against new solvers, with MuJoCo C and mujoco_warp.

MuJoCo measures the relative pose of a weld that gives none. With MuJoCo C, Newton 1.7 replaces the
measured pose by zeros, and the weld then has no orientation.
"""

import newton
import numpy as np
import pytest
import scenes
from losses import Exact, Loss, taped
from oracle import Oracle

from mujacobian.errors import UnsupportedFeatureError
from mujacobian.newton import DifferentiableMuJoCo

DT = 0.002
H = 1e-4  # length of the differences
# error of the differences along edits that are rounded to single precision
TOLERANCE = 2e-5
XML = """
<mujoco>
  <worldbody>
    <body name="a" pos="0 0 1" euler="10 20 30"><joint axis="0 1 0"/>
      <geom size="0.1" pos="0.1 0.05 0.02"/>
      <body name="b" pos="0.3 0 0"><joint axis="1 0 0"/><geom size="0.1" pos="0 0.1 0.1"/></body>
    </body>
    <body name="c" pos="0.2 0.6 1.2" euler="5 -10 20"><freejoint/><geom size="0.1"/></body>
  </worldbody>
  <equality><weld body1="b" body2="c" anchor="0.1 0.2 0.3" torquescale="0.7" {pose}/></equality>
</mujoco>
"""
# a quaternion of length 1.02, and a pose that MuJoCo measures
POSES = {"given": 'relpose="0 0.5 0.3 1 0.2 -0.1 0.05"', "measured": ""}
ARRAYS = [f"equality_constraint_{name}" for name in ("anchor", "relpose", "torquescale")]


def weld(pose):
    b = scenes.Builder()
    b.add_mjcf(XML.format(pose=POSES[pose]))
    return b.finalize(requires_grad=True)


def moving(model):
    """Return a state near the initial one, in which the bodies move, and a control."""
    rng = np.random.default_rng(2)
    state, control = model.state(), model.control()
    q = state.joint_q.numpy()
    q += (0.05 * rng.normal(size=q.shape)).astype(np.float32)
    q[5:9] /= np.linalg.norm(q[5:9])
    state.joint_q.assign(q)
    state.joint_qd.assign(rng.normal(size=model.joint_dof_count).astype(np.float32))
    return state, control


@pytest.mark.parametrize("cpu", [True, False])
@pytest.mark.parametrize("pose", POSES)
@pytest.mark.parametrize("name", ARRAYS)
def test_gradient(name, pose, cpu):
    model, options = weld(pose), {"use_mujoco_cpu": cpu, "tolerance": 1e-10}
    array = getattr(model.mujoco, name)
    array.requires_grad = True
    solver = DifferentiableMuJoCo(model, parameters=[f"mujoco.{name}"], **options)
    state, control = moving(model)
    loss = Loss(model, 1)
    gradients, visited = taped(solver, state, control, 1, DT, loss, of=array)
    found, base = gradients["of"].astype(float), array.numpy().copy()
    # MuJoCo does not use a relative pose that it measures, and a weld without an orientation has no
    # torque
    unused = pose == "measured" and (cpu, name) in ((False, ARRAYS[1]), (True, ARRAYS[2]))
    assert found.any() != unused
    if unused:
        return
    exact = Exact(solver, state, control, 1, DT, loss, visited)
    assert exact.oracle.data.nefc == 6
    for direction in np.eye(base.size):
        values, arrays = [], []
        for sign in (1, -1):
            moved = base + sign * H * direction.reshape(base.shape)
            array.assign(moved.astype(np.float32))
            arrays.append(array.numpy().astype(float))
            exact.oracle = Oracle(newton.solvers.SolverMuJoCo(model, **options))
            values.append(exact.value(exact.x))
        array.assign(base)
        wanted = (values[0] - values[1]) / (2 * H)
        got = (found * (arrays[0] - arrays[1])).sum() / (2 * H)
        print(name, pose, cpu, direction.argmax(), got, wanted)
        assert abs(got - wanted) < TOLERANCE * np.abs(found).max()


@pytest.mark.parametrize(
    "build", [lambda: weld("measured"), lambda: scenes.loop("fixed")], ids=["weld", "loop"]
)
@pytest.mark.parametrize("name", ["joint_X_p", "joint_X_c"])
def test_frames_from_which_poses_are_measured(build, name):
    with pytest.raises(UnsupportedFeatureError, match=r"relative poses|close loops"):
        DifferentiableMuJoCo(build(), parameters=[name])
