"""A step of MuJoCo as a Crocoddyl action model: `pip install 'mujacobian[crocoddyl]'`.

Example:
  >>> import crocoddyl, numpy as np
  >>> from mujacobian.control import tasks
  >>> from mujacobian.control.crocoddyl import ActionModel
  >>> task = tasks.load("cartpole")
  >>> knots = [ActionModel(task.planned, task.cost, time=0.02 * k) for k in range(50)]
  >>> problem = crocoddyl.ShootingProblem(np.array([0, 3, 0, 0]), knots[:-1], knots[-1])
  >>> solver = crocoddyl.SolverBoxFDDP(problem)
"""

from __future__ import annotations

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._linearization import linearize
from mujacobian._rotation import exp, right_jacobian
from mujacobian.control.bounds import control_bounds
from mujacobian.control.cost import Cost
from mujacobian.errors import ArgumentError, MissingPackageError

try:
    import crocoddyl
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.control.crocoddyl needs Crocoddyl: pip install 'mujacobian[crocoddyl]'"
    ) from error

FIRST, SECOND = crocoddyl.Jcomponent.first, crocoddyl.Jcomponent.second
BAD = [
    int(warning)
    for warning in (
        mujoco.mjtWarning.mjWARN_BADQPOS,
        mujoco.mjtWarning.mjWARN_BADQVEL,
        mujoco.mjtWarning.mjWARN_BADQACC,
        mujoco.mjtWarning.mjWARN_BADCTRL,
    )
]


class State(crocoddyl.StateAbstract):  # type: ignore[misc]
    """The manifold of states (qpos, qvel, act): `nq + nv + na` numbers, `2 nv + na` dimensions.

    Rotations are perturbed in the frame of the body, as in `mj_integratePos` and
    `mujacobian.linearize`.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        self.rotations = [
            slice(first, first + 3)
            for kind, dof in zip(model.jnt_type, model.jnt_dofadr, strict=True)
            for first in _first_rotation(int(kind), int(dof))
        ]
        rest = model.nv + model.na
        crocoddyl.StateAbstract.__init__(self, model.nq + rest, model.nv + rest)

    def zero(self) -> Array:
        """Return the reference configuration at rest."""
        return np.concatenate([self.model.qpos0, np.zeros(self.model.nv + self.model.na)])

    def rand(self) -> Array:
        """Return a random state."""
        dx: Array = np.random.default_rng().uniform(-1, 1, (self.ndx,))
        return self.integrate(self.zero(), dx)

    def diff(self, x0: Array, x1: Array) -> Array:
        """Return the tangent vector from x0 to x1."""
        nq, nv = self.model.nq, self.model.nv
        dx = np.empty(self.ndx)
        mujoco.mj_differentiatePos(self.model, dx[:nv], 1.0, x0[:nq], x1[:nq])
        dx[nv:] = x1[nq:] - x0[nq:]
        return dx

    def integrate(self, x: Array, dx: Array) -> Array:
        """Return the state that is reached from x along dx."""
        nq, nv = self.model.nq, self.model.nv
        moved = np.array(x)
        mujoco.mj_integratePos(self.model, moved[:nq], np.ascontiguousarray(dx[:nv]), 1.0)
        moved[nq:] += dx[nv:]
        return moved

    def Jdiff(
        self, x0: Array, x1: Array, which: crocoddyl.Jcomponent = crocoddyl.Jcomponent.both
    ) -> Array | list[Array]:
        """Return the derivatives of `diff` with respect to its arguments."""
        dx = self.diff(x0, x1)
        first, second = -np.eye(self.ndx), np.eye(self.ndx)
        for turn in self.rotations:
            inverse = np.linalg.inv(right_jacobian(dx[turn]))
            first[turn, turn], second[turn, turn] = -inverse.T, inverse
        return _chosen(which, first, second)

    def Jintegrate(
        self, x: Array, dx: Array, which: crocoddyl.Jcomponent = crocoddyl.Jcomponent.both
    ) -> Array | list[Array]:
        """Return the derivatives of `integrate` with respect to its arguments."""
        first, second = np.eye(self.ndx), np.eye(self.ndx)
        for turn in self.rotations:
            second[turn, turn] = right_jacobian(dx[turn])
            first[turn, turn] = exp(dx[turn]).T
        return _chosen(which, first, second)

    def JintegrateTransport(
        self, x: Array, dx: Array, Jin: Array, which: crocoddyl.Jcomponent
    ) -> Array:
        """Return the transport of a Jacobian at x to the state that dx leads to."""
        return np.asarray(self.Jintegrate(x, dx, which) @ Jin)


class ActionModel(crocoddyl.ActionModelAbstract):  # type: ignore[misc]
    """One `mj_step` and its cost, with exact derivatives and a Gauss-Newton Hessian.

    As the terminal model of a problem, its cost is that of the state with zero control. If a step
    diverges, the next state is NaN, so that Crocoddyl's solvers shorten their step.

    Args:
      model: model for which `mujacobian.support` returns an empty list.
      cost: cost of the same model, without constraints, and without terms whose `knots` are
        "last" or an array.
      time: time, s, at which the targets of the cost are evaluated; by default 0.
    """

    def __init__(self, model: mujoco.MjModel, cost: Cost, time: float = 0.0) -> None:
        crocoddyl.ActionModelAbstract.__init__(self, State(model), model.nu)
        cost.require_unconstrained("an action model")
        for term in cost.terms:
            if not (term.is_uniform or callable(term.knots)):
                raise ArgumentError(
                    f'term "{term.name}": an action model is one knot and does not know its place '
                    "in the horizon: use a function of times for knots"
                )
        self.model, self.cost, self.times = model, cost, np.array([float(time)])
        self.scratch = mujoco.MjData(model)
        self.u_lb, self.u_ub = control_bounds(model)

    def calc(self, data: crocoddyl.ActionDataAbstract, x: Array, u: Array | None = None) -> None:
        """Write the next state and the cost."""
        self._enter(x, u)
        if u is None:
            mujoco.mj_forward(self.model, self.scratch)
            data.xnext = x
        else:
            mujoco.mj_step(self.model, self.scratch)
            data.xnext = np.concatenate([self.scratch.qpos, self.scratch.qvel, self.scratch.act])
            if self.scratch.warning.number[BAD].any():  # then MuJoCo has reset the state
                data.xnext = np.full(self.state.nx, np.nan)
        controls = np.zeros(self.nu) if u is None else u
        data.cost = self.cost([self.scratch.sensordata], [controls], self.times, [x])[0]

    def calcDiff(
        self, data: crocoddyl.ActionDataAbstract, x: Array, u: Array | None = None
    ) -> None:
        """Write the derivatives of the next state and the cost."""
        self._enter(x, u)
        mujoco.mj_forward(self.model, self.scratch)
        lin = linearize(self.model, self.scratch, forward=False)
        assert lin.C is not None
        assert lin.D is not None
        controls = np.zeros(self.nu) if u is None else u
        gradient, hessian = self.cost.expand(
            [self.scratch.sensordata], [controls], self.times, [lin.C], [lin.D], [x]
        )
        nx = self.state.ndx
        data.Lx, data.Lxx = gradient[0, :nx], hessian[0, :nx, :nx]
        if u is not None:
            data.Fx, data.Fu = lin.A, lin.B
            data.Lu = gradient[0, nx:]
            data.Lxu, data.Luu = hessian[0, :nx, nx:], hessian[0, nx:, nx:]

    def _enter(self, x: Array, u: Array | None) -> None:
        """Reset the scratch data and set its state and control."""
        mujoco.mj_resetData(self.model, self.scratch)
        nq, nv = self.model.nq, self.model.nv
        self.scratch.time = self.times[0]
        self.scratch.qpos[:], self.scratch.qvel[:] = x[:nq], x[nq : nq + nv]
        self.scratch.act[:] = x[nq + nv :]
        if u is not None:
            self.scratch.ctrl[:] = u


def _first_rotation(kind: int, dof: int) -> list[int]:
    """Return the first rotational dof of a free or ball joint in a list, which else is empty."""
    if kind == int(mujoco.mjtJoint.mjJNT_FREE):
        return [dof + 3]
    return [dof] if kind == int(mujoco.mjtJoint.mjJNT_BALL) else []


def _chosen(which: crocoddyl.Jcomponent, first: Array, second: Array) -> Array | list[Array]:
    if which == FIRST:
        return first
    return second if which == SECOND else [first, second]
