"""Rods on the bodies of a MuJoCo model: coupled simulation with exact gradients.

Example:
  >>> import mujoco, numpy as np
  >>> from mujacobian import rods
  >>> from mujacobian.rods.mujoco import Link, rollout
  >>> model = mujoco.MjModel.from_xml_string(
  ...     "<mujoco><option timestep='.002'/><worldbody><body name='arm'><joint axis='0 1 0'/>"
  ...     "<geom type='capsule' size='.02' fromto='0 0 0 .3 0 0'/></body></worldbody></mujoco>")
  >>> whip = rods.Rod(np.linspace([0.3, 0, 0], [0.6, 0, 0], 11), mass=0.02, radius=0.003,
  ...                 stretch=100, shear=100, bend=[1e-3] * 3)
  >>> places = [[0.3 + 0.03 * i, 0, 0] for i in range(2)]
  >>> grip = [rods.Attachment(whip.node(i), place, 50) for i, place in enumerate(places)]
  >>> world = rods.World(timestep=0.002, rods=[whip], attachments=grip)
  >>> made = rollout(model, mujoco.MjData(model), np.zeros((100, 0)), world,
  ...                [Link(each, "arm", place) for each, place in zip(grip, places)])
  >>> made.positions.shape
  (101, 11, 3)
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers, require_data, require_model, shaped
from mujacobian._manifold import Manifold
from mujacobian._rollout import rollout as simulate_model
from mujacobian._rotation import right_jacobian
from mujacobian._trajectory import Trajectory as ModelTrajectory
from mujacobian.errors import ArgumentError
from mujacobian.rods.attachment import Attachment
from mujacobian.rods.description import freeze, instance, instances
from mujacobian.rods.point import Point
from mujacobian.rods.rollout import rollout as simulate_rods
from mujacobian.rods.rotation import lift, project
from mujacobian.rods.state import State
from mujacobian.rods.trajectory import Trajectory as RodTrajectory
from mujacobian.rods.world import World


@dataclass(frozen=True, eq=False)
class Link:
    """An attachment to the world whose anchor moves with a body of the MuJoCo model.

    One link transmits a force. Three links that are not collinear also hold an orientation.

    Attributes:
      attachment: attachment of the world of rods to a position. The link replaces this position.
      body: name of a body of the MuJoCo model.
      offset: `(3,)`, m, position of the anchor in the axes of the body; by default its origin.
    """

    attachment: Attachment
    body: str
    offset: ArrayLike = (0, 0, 0)

    def __post_init__(self) -> None:
        instance("attachment", self.attachment, Attachment)
        instance("body", self.body, str)
        object.__setattr__(self, "offset", shaped("offset", self.offset, (3,)))
        freeze(self)


@dataclass(frozen=True)
class CoupledGradient:
    """Derivatives of a scalar function of a coupled trajectory.

    Attributes:
      model_state: `(2 nv + na,)`, derivatives with respect to the first state of the MuJoCo model,
        in tangent coordinates.
      controls: `(T, nu)`, derivatives with respect to the controls.
      rods_state: derivatives with respect to the first state of the rods.
    """

    model_state: Array
    controls: Array
    rods_state: State


@dataclass(frozen=True)
class _Carried:
    """A link with its names replaced by indices."""

    target: int  # index of the anchor
    body: int
    point: Point
    stiffness: float
    offset: Array  # position of the anchor in the axes of the body


def rollout(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    controls: ArrayLike,
    world: World,
    links: Sequence[Link],
    *,
    state: State | None = None,
) -> CoupledTrajectory:
    """Return the trajectory of T steps of both engines.

    In each step, the anchors follow the bodies of the MuJoCo model, and the rods take their step.
    Then the model takes its step under the spring forces at the end of the step of the rods
    (`xfrc_applied`). The rods are implicit, but the coupling is explicit: it is stable if k h^2 is
    well below the mass in the model that a spring of stiffness k pulls on.

    Args:
      model: MuJoCo model, whose time step equals that of `world`.
      data: initial state of the model, which is not changed. Its `xfrc_applied` is not used.
      controls: `(T, nu)`, controls of the model.
      world: world of rods.
      links: links between attachments of `world` and bodies of the model.
      state: initial state of the rods; by default `world.state()`.
    """
    # check the arguments
    require_model(model)
    require_data("data", model, data)
    instance("world", world, World)
    u = numbers("controls", controls)
    if u.ndim != 2 or u.shape[1] != model.nu or not len(u):
        raise ArgumentError(f"controls must have shape (T, {model.nu}), got {u.shape}")
    if abs(model.opt.timestep - world.timestep) > 1e-12:
        raise ArgumentError(f"time steps differ: {model.opt.timestep} and {world.timestep}")
    if world.order > 1:
        raise ArgumentError(
            "a world that is coupled with a model needs integrator='backward_euler'"
        )
    start, here = copy(data), copy(data)
    carried = _carry(model, world, links)
    rods_state = world.state() if state is None else state
    steps: list[tuple[ModelTrajectory, RodTrajectory]] = []
    for row in u:
        # anchors at the beginning of the step
        mujoco.mj_kinematics(model, here)
        mujoco.mj_comPos(model, here)
        targets = world.anchors.copy()
        for c in carried:
            targets[c.target] = _anchor(here, c)
        # step of the rods
        rods_step = simulate_rods(world, rods_state, targets=targets[None])
        # forces and torques of the springs on the bodies
        wrenches = np.zeros((1, model.nbody, 6))
        for c in carried:
            at = world.place(c.point, rods_step.positions[-1], rods_step.rotations[-1])
            force = c.stiffness * (at - targets[c.target])
            arm = targets[c.target] - here.xipos[c.body]
            wrenches[0, c.body] += [*force, *np.cross(arm, force)]
        # step of the model
        model_step = simulate_model(model, here, row[None], wrenches=wrenches, threads=1)
        steps.append((model_step, rods_step))
        here.ctrl[:] = row
        here.xfrc_applied[:] = wrenches[0]
        mujoco.mj_step(model, here)
        rods_state = rods_step.state
    return CoupledTrajectory(
        model,
        world,
        np.concatenate([s.states[:1] for s, _ in steps] + [steps[-1][0].states[1:]]),
        np.concatenate([r.positions[:1] for _, r in steps] + [steps[-1][1].positions[1:]]),
        np.concatenate([r.rotations[:1] for _, r in steps] + [steps[-1][1].rotations[1:]]),
        data=start,
        steps=steps,
        carried=carried,
    )


@dataclass(frozen=True, eq=False)
class CoupledTrajectory:
    """The result of `rollout`.

    Attributes:
      model: MuJoCo model.
      world: world of rods.
      states: `(T + 1, nq + nv + na)`, states of the model.
      positions: `(T + 1, points, 3)`, m, positions of the rods.
      rotations: `(T + 1, frames, 3, 3)`, rotations of the rods.
      data: data of the model, which `gradient` reads.
      steps: rollouts of both engines in each step, which `gradient` reads.
      carried: bodies that carry the links, which `gradient` reads.
    """

    model: mujoco.MjModel
    world: World
    states: Array
    positions: Array
    rotations: Array
    data: mujoco.MjData = field(repr=False)  # initial; it has the poses of mocap bodies
    steps: list[tuple[ModelTrajectory, RodTrajectory]] = field(repr=False)
    carried: list[_Carried] = field(repr=False)

    def gradient(
        self,
        d_states: ArrayLike | None = None,
        d_positions: ArrayLike | None = None,
        d_rotations: ArrayLike | None = None,
    ) -> CoupledGradient:
        """Return the exact gradient of a scalar, given its derivatives with respect to all states.

        Args:
          d_states: derivatives with respect to `states`, in their shape; by default zero.
          d_positions: derivatives with respect to `positions`, in their shape; by default zero.
          d_rotations: derivatives with respect to `rotations`, in their shape; by default zero.
        """
        # given cotangents of all states, in tangent coordinates
        manifold, world, T = Manifold(self.model), self.world, len(self.steps)
        s_bar = np.zeros((T + 1, manifold.nx))
        if d_states is not None:
            given = shaped("d_states", d_states, self.states.shape)
            s_bar = manifold.pull(self.states, given)
        x_bar, R_bar = np.zeros_like(self.positions), np.zeros((T + 1, world.n_frames, 3))
        if d_positions is not None:
            x_bar = shaped("d_positions", d_positions, self.positions.shape).copy()
        if d_rotations is not None:
            given = shaped("d_rotations", d_rotations, self.rotations.shape)
            R_bar = project(self.rotations, given)
        step_bar = np.zeros((world.n_points, 3)), np.zeros((world.n_frames, 3))
        controls = np.empty((T, self.model.nu))
        data = copy(self.data)
        for k in reversed(range(T)):
            # pull back through the step of the model
            model_step, rods_step = self.steps[k]
            last = np.stack([np.zeros(manifold.nx), s_bar[k + 1]])
            back = model_step.gradient(last, tangent=True)
            controls[k] = back.controls[0]
            s_bar[k] += back.state
            # kinematics at the beginning of the step
            data.qpos[:] = self.states[k, : self.model.nq]
            mujoco.mj_kinematics(self.model, data)
            mujoco.mj_comPos(self.model, data)
            # pull back through the forces of the springs                              (ROD-29)
            anchors_bar = np.zeros_like(world.anchors)
            wrenches_bar = np.zeros((self.model.nbody, 6))
            if back.wrenches is not None:
                wrenches_bar = back.wrenches[0]
            for c in self.carried:
                wrench_bar = wrenches_bar[c.body]
                self._pull_back_force(k, c, data, wrench_bar, x_bar, R_bar, s_bar, anchors_bar)
            # pull back through the step of the rods
            ends = np.stack([np.zeros_like(x_bar[0]), x_bar[k + 1]])
            turns = np.stack([np.zeros_like(R_bar[0]), R_bar[k + 1]])
            made = rods_step.pull_back(ends, turns, step_bar)
            x_bar[k] += made.positions
            R_bar[k] += made.rotations
            step_bar = made.step_positions, made.step_rotations
            # pull back through the positions of the anchors
            if made.inputs.targets is not None:
                anchors_bar += made.inputs.targets[0]
            for c in self.carried:
                s_bar[k] += self._through(data, c.body, _anchor(data, c), anchors_bar[c.target])
        # convert the cotangent of the step before the first one to velocities
        first, h = self.steps[0][1].first, world.timestep
        turning = right_jacobian(h * first.angular_velocities)
        spin = h * np.einsum("fij,fj->fi", turning, step_bar[1])
        turned = lift(first.rotations, R_bar[0])
        return CoupledGradient(s_bar[0], controls, State(x_bar[0], turned, h * step_bar[0], spin))

    def _pull_back_force(
        self,
        k: int,
        c: _Carried,
        data: mujoco.MjData,
        wrench_bar: Array,
        x_bar: Array,
        R_bar: Array,
        s_bar: Array,
        anchors_bar: Array,
    ) -> None:
        """Pull back through the wrench that a link applies to its body in step k."""
        _, rods_step = self.steps[k]
        R = rods_step.rotations[-1]
        anchor = _anchor(data, c)
        arm = anchor - data.xipos[c.body]
        force = c.stiffness * (self.world.place(c.point, rods_step.positions[-1], R) - anchor)
        force_bar = wrench_bar[:3] + np.cross(wrench_bar[3:], arm)
        arm_bar = np.cross(force, wrench_bar[3:])
        pull = c.stiffness * force_bar
        points, frames = self.world.points(c.point.owner), self.world.frames(c.point.owner)
        for i, weight in zip(c.point.points, c.point.weights, strict=True):
            x_bar[k + 1, points.start + i] += weight * pull
        if c.point.frame is not None:
            i = frames.start + c.point.frame
            R_bar[k + 1, i] += np.cross(R[i] @ c.point.offset, pull)
        anchors_bar[c.target] += arm_bar - pull
        s_bar[k] -= self._through(data, c.body, data.xipos[c.body], arm_bar)

    def _through(self, data: mujoco.MjData, body: int, point: Array, bar: Array) -> Array:
        """Return the cotangent of the state, given that of a point that is fixed to a body."""
        jacobian = np.zeros((3, self.model.nv))
        mujoco.mj_jac(self.model, data, jacobian, None, point, body)
        made = np.zeros(2 * self.model.nv + self.model.na)
        made[: self.model.nv] = jacobian.T @ bar
        return made


def _carry(model: mujoco.MjModel, world: World, links: Sequence[Link]) -> list[_Carried]:
    """Return the links with indices instead of names."""
    springs = [
        a
        for a in world.attachments
        if isinstance(a, Attachment) and not isinstance(a.second, Point)
    ]
    made: list[_Carried] = []
    for link in instances("links", links, Link):
        target = next((k for k, a in enumerate(springs) if a is link.attachment), None)
        if target is None:
            raise ArgumentError(
                "the attachment of a link must be in the world, and its second end a position"
            )
        if any(each.target == target for each in made):
            raise ArgumentError("two links have the same attachment")
        body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, link.body)
        if body < 0:
            raise ArgumentError(f"the model has no body '{link.body}'")
        a, offset = link.attachment, np.asarray(link.offset)
        made.append(_Carried(target, body, a.first, a.stiffness, offset))
    return made


def _anchor(data: mujoco.MjData, c: _Carried) -> Array:
    """Return the position of an anchor."""
    at: Array = data.xpos[c.body] + data.xmat[c.body].reshape(3, 3) @ c.offset
    return at
