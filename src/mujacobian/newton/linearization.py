"""The Jacobians of one step in Newton's coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import newton
import numpy as np

from mujacobian._arguments import Array
from mujacobian._linearization import linearize_without_selfcheck
from mujacobian.errors import ArgumentError
from mujacobian.newton.guards import Watch
from mujacobian.newton.host import by_world
from mujacobian.newton.inputs import arrays, wrenches
from mujacobian.newton.layout import Layout, make_layout
from mujacobian.newton.snapshot import INTEGRATION, Snapshot


@dataclass(frozen=True)
class NewtonLinearization:
    """Derivatives of the state after one step of a world, in Newton's coordinates.

    With the state x = (joint_q, joint_qd, act) and all inputs u, `dx' = A dx + B du`. In tangent
    coordinates `joint_q` moves along `joint_qd`. The tangent of a free joint is the displacement of
    the center of mass and a rotation, both in the parent's frame. The tangent of a ball joint is a
    rotation in the parent's anchor frame. In ambient coordinates `joint_q` is the stored numbers,
    and results depend on its quaternions only through their normalized values.

    A: Jacobian of the next state with respect to the state.
    B: Jacobian of the next state with respect to the inputs.
    layout: names of the rows and columns.
    """

    A: Array
    B: Array
    layout: Layout

    def block(self, name: str) -> Array:
        """Return the columns of B of one input.

        Args:
          name: name of the input, a key of `layout.inputs` such as "joint_f".
        """
        if name not in self.layout.inputs:
            raise ArgumentError(
                f"B has no columns of {name!r}, only of {', '.join(self.layout.inputs)}"
            )
        return self.B[:, self.layout.inputs[name]]


def linearize_world(
    snapshot: Snapshot,
    solver: newton.solvers.SolverMuJoCo,
    state: newton.State,
    control: newton.Control | None,
    dt: float,
    world: int,
    *,
    tangent: bool,
) -> NewtonLinearization:
    """Return the Jacobians of the step of one world (NWT-7)."""
    # the start of the step in both coordinates; RK4 has no derivatives of wrenches
    W = snapshot.coordinates.worlds
    every = {name: by_world(array, W) for name, array in arrays(state, control).items()}
    joint_q, joint_qd = by_world(state.joint_q, W), by_world(state.joint_qd, W)
    start = snapshot.coordinates.start(joint_q, joint_qd)
    row = snapshot.rows(start, every, snapshot.hidden(solver))[world]
    given = {name: values[world : world + 1] for name, values in every.items()}
    if snapshot.moves_wrenches:
        for name in wrenches(every, snapshot.inputs):
            del given[name]
    q0, v0 = joint_q[world : world + 1], joint_qd[world : world + 1]
    inputs = snapshot.inputs.only(world)
    c = inputs.coordinates
    at = c.start(q0, v0)

    # linearize MuJoCo's step, with the Jacobians of all centers of mass, and take the step
    model, data = snapshot.worlds.at(world), snapshot.worlds.data
    model.opt.timestep = dt
    mujoco.mj_setState(model, data, row, INTEGRATION)
    watch = Watch(data)
    lin = linearize_without_selfcheck(model, data, sensors=False, forces=True)
    jacobians = np.zeros((model.nbody, 6, model.nv))
    for b in range(1, model.nbody):
        mujoco.mj_jacBodyCom(model, data, jacobians[b, :3], jacobians[b, 3:], b)
    mujoco.mj_step(model, data)
    watch.judge()
    qpos, qvel = data.qpos[None].copy(), data.qvel[None].copy()
    q1 = np.where(c.kinematic_q, q0, c.to_newton(qpos, qvel)[0])

    # one cotangent per component of the next state, in MuJoCo's coordinates
    layout = make_layout(
        solver.model, c, {name: values.shape[1:] for name, values in given.items()}, model.na,
        tangent,
    )  # fmt: skip
    size = len(layout.rows)
    unit = np.eye(size)[:, None, :]
    split = [layout.state[name] for name in ("joint_q", "joint_qd", "act")]
    d_xi, d_v, d_act = (unit[..., part] for part in split)
    written_q, written_v = c.written_q, c.written_v
    d_q = np.where(written_q, c.ambient(q1, d_xi) if tangent else d_xi, 0)
    d_v = np.where(written_v, d_v, 0)
    y_q, y_v = c.pull_result(qpos, qvel, d_q, d_v)
    y = np.concatenate([y_q, y_v, d_act], axis=-1)

    # pull them back to Newton's inputs
    x_q, x_v, x_act = np.split(y @ lin.A, [model.nv, 2 * model.nv], axis=-1)
    d_force = y @ lin.Bf
    d_wrench = np.tensordot(d_force, jacobians, axes=(-1, -1))
    g_q, g_v = c.pull_start(at, x_q, x_v)
    g_inputs, turned = inputs.pull(at, given, (y @ lin.B, d_force, d_wrench))
    g_q += turned + np.where(c.kinematic_q, d_q, 0)
    g_v += np.where(c.kinematic_v, d_v, 0)
    parts = (c.tangent(q0, g_q) if tangent else g_q, g_v, x_act)
    A = np.concatenate([part[:, 0] for part in parts], axis=-1)
    B = np.concatenate([np.zeros((size, 0)), *(g.reshape(size, -1) for g in g_inputs.values())], 1)
    return NewtonLinearization(A, B, layout)
