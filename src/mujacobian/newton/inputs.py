"""Newton's controls, joint forces and body forces as inputs of MuJoCo."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import newton
import numpy as np
import warp as wp

from mujacobian._arguments import Array
from mujacobian._rotation import cross, left, lifted, logarithm, pull_logarithm, turn, unit
from mujacobian.errors import MujacobianError, UnsupportedFeatureError
from mujacobian.newton.coordinates import Coordinates, FrameCotangents, Start
from mujacobian.newton.internals import Indices, Maps

_KINEMATIC = int(newton.BodyFlags.KINEMATIC)
NAMES = ("joint_f", "joint_target_q", "joint_target_qd", "ctrl", "body_f")

# values or cotangents of MuJoCo's ctrl, qfrc_applied and xfrc_applied
Actions = tuple[Array, Array, Array]


def arrays(state: newton.State, control: newton.Control | None) -> dict[str, wp.array]:
    """Return the input arrays of a step by name, without those that the model lacks."""
    if control is None:
        raise MujacobianError(
            "a step that is differentiated needs a control: use model.control(). Without one,"
            " MuJoCo applies the inputs of an earlier step again"
        )
    found = {
        "joint_f": control.joint_f,
        "joint_target_q": control.joint_target_q,
        "joint_target_qd": control.joint_target_qd,
        "ctrl": getattr(getattr(control, "mujoco", None), "ctrl", None),
        "body_f": state.body_f,
    }
    return {name: array for name, array in found.items() if array is not None and array.size}


def wrenches(names: Iterable[str], inputs: Inputs) -> list[str]:
    """Return the inputs that act as wrenches on bodies, in whole or in part."""
    acts = {"body_f": True, "joint_f": len(inputs.free_dof) > 0}
    return [name for name in names if acts.get(name)]


class Inputs:
    """The inputs of a model, in all worlds."""

    def __init__(
        self, model: newton.Model, maps: Maps, coordinates: Coordinates, gravcomp: Array
    ) -> None:
        W = maps.worlds
        self.worlds, self.nu, self.nbody = W, len(maps.actuator), len(maps.body)
        self.coordinates, self.actuators = coordinates, maps.actuators
        self.coordinate_targets = bool(model.use_coord_layout_targets)
        flags = model.body_flags.numpy().reshape(W, -1)
        mapped = np.flatnonzero(maps.body >= 0)
        self.mj_body, self.body = mapped, maps.body[mapped]
        self.movable = (flags[:, self.body] & _KINEMATIC) == 0
        child = model.joint_child.numpy().reshape(W, -1)[0]
        start = model.joint_qd_start.numpy().astype(np.intp)
        place = {body: k for k, body in enumerate(self.body)}
        free = [
            (place[child[j]], start[j])
            for j in np.flatnonzero(coordinates.kind == int(newton.JointType.FREE))
            if maps.v_start[j] >= 0
        ]
        pairs = np.array(free, dtype=np.intp).reshape(-1, 2)
        self.free_place, self.free_dof = pairs[:, 0], pairs[:, 1, None] + np.arange(6)
        self.weight, self.foreign = _extra_weight(model, W, self.body, gravcomp[:, mapped])
        # joint_f of kinematic joints has no effect
        acts = ~coordinates.kinematic_v
        self.scalar_acts = acts[:, coordinates.scalar.v]
        self.ball_acts = acts[:, coordinates.ball.v]

    def only(self, world: int) -> Inputs:
        """Return the inputs of one world, as if there were no other."""
        made = copy.copy(self)
        made.worlds, made.coordinates = 1, self.coordinates.only(world)
        for name in ("movable", "weight", "scalar_acts", "ball_acts"):
            setattr(made, name, getattr(self, name)[world : world + 1])
        return made

    def to_mujoco(self, at: Start, given: dict[str, Array]) -> Actions:
        """Return ctrl, qfrc_applied and xfrc_applied of Newton's inputs, (worlds, ...) (NWT-3)."""
        c, W = self.coordinates, self.worlds
        ctrl, qfrc = np.zeros((W, self.nu)), np.zeros((W, c.mj_nv))
        xfrc = np.zeros((W, self.nbody, 6))
        act = self.actuators
        if "joint_target_q" in given:
            target = given["joint_target_q"]
            ctrl[:, act.position[:, 0]] = target[:, act.position[:, 1]] + self._references()
            for k, vector in self._ball_targets(target):
                ctrl[:, act.ball_position[k, 0]] = vector[:, act.ball_position[k, 2]]
        if "joint_target_qd" in given:
            target = given["joint_target_qd"]
            ctrl[:, act.velocity[:, 0]] = target[:, act.velocity[:, 1]]
            if len(act.ball_velocity):
                turned = c.into_ball(at, target[:, c.ball.v])
                for actuator, _, axis, joint in act.ball_velocity:
                    ctrl[:, actuator] = turned[:, c.ball_of[joint], axis]
        if "ctrl" in given:
            ctrl[:, act.direct[:, 0]] = given["ctrl"][:, act.direct[:, 1]]
        if "body_f" in given:
            xfrc[:, self.mj_body] = np.where(
                self.movable[..., None], given["body_f"][:, self.body] + self.weight, 0
            )
        if "joint_f" in given:
            force = given["joint_f"]
            qfrc[:, c.scalar.mj_v] = np.where(self.scalar_acts, force[:, c.scalar.v], 0)
            if len(c.ball.q):
                torque = np.where(self.ball_acts, force[:, c.ball.v], 0)
                qfrc[:, c.ball.mj_v] = c.into_ball(at, torque)
            places = self.mj_body[self.free_place]
            movable = self.movable[:, self.free_place, None]
            xfrc[:, places] += np.where(movable, force[:, self.free_dof], 0)
        return ctrl, qfrc, xfrc

    def pull(
        self, at: Start, given: dict[str, Array], d: Actions
    ) -> tuple[dict[str, Array], Array]:
        """Pull cotangents of MuJoCo's inputs back to Newton's inputs and to joint_q (NWT-4).

        joint_q enters because it rotates the torques and velocity targets of ball joints.
        """
        c, act = self.coordinates, self.actuators
        d_ctrl, d_qfrc, d_xfrc = d
        lead = d_ctrl.shape[:-1]
        made = {name: np.zeros((*lead, *array.shape[1:])) for name, array in given.items()}
        phi = np.zeros((*lead, *c.ball.v.shape))  # cotangents of rotations after ball quaternions
        if "joint_target_q" in made and self.nu:
            _scatter(made["joint_target_q"], act.position, d_ctrl)
            self._pull_ball_targets(given["joint_target_q"], d_ctrl, made["joint_target_q"])
        if "joint_target_qd" in made and self.nu:
            result = made["joint_target_qd"]
            _scatter(result, act.velocity, d_ctrl)
            if len(act.ball_velocity):
                s = np.zeros((*lead, *c.ball.v.shape))
                for actuator, _, axis, joint in act.ball_velocity:
                    s[..., c.ball_of[joint], axis] += d_ctrl[..., actuator]
                turned, vectors = c.pull_ball(at, given["joint_target_qd"][:, c.ball.v], s)
                result[..., c.ball.v] += vectors
                phi += turned
        if "ctrl" in made:
            _scatter(made["ctrl"], act.direct, d_ctrl)
        at_bodies = np.where(self.movable[..., None], d_xfrc[..., self.mj_body, :], 0)
        if "body_f" in made:
            made["body_f"][..., self.body, :] = at_bodies
        if "joint_f" in made:
            result = made["joint_f"]
            result[..., c.scalar.v] = np.where(self.scalar_acts, d_qfrc[..., c.scalar.mj_v], 0)
            if len(c.ball.q):
                s = np.where(self.ball_acts, d_qfrc[..., c.ball.mj_v], 0)
                turned, vectors = c.pull_ball(at, given["joint_f"][:, c.ball.v], s)
                result[..., c.ball.v] = vectors
                phi += turned
            result[..., self.free_dof] = at_bodies[..., self.free_place, :]
        d_q = np.zeros((*lead, c.nq))
        if len(c.ball.q):
            d_q[..., c.ball.q] = lifted(at.joint_q[..., c.ball.q], phi)
        return made, d_q

    def pull_frames(
        self, to: FrameCotangents, at: Start, given: dict[str, Array], d: Actions
    ) -> None:
        """Add cotangents of the child anchors of ball joints, which turn their inputs (NWT-21)."""
        c, (d_ctrl, d_qfrc, _) = self.coordinates, d
        if not len(c.ball.q):
            return
        phi = np.zeros((self.worlds, *c.ball.v.shape))
        if "joint_f" in given:
            s = np.where(self.ball_acts, d_qfrc[:, c.ball.mj_v], 0)
            phi -= c.pull_ball(at, given["joint_f"][:, c.ball.v], s)[0]
        if "joint_target_qd" in given and len(self.actuators.ball_velocity):
            s = np.zeros_like(phi)
            for actuator, _, axis, joint in self.actuators.ball_velocity:
                s[:, c.ball_of[joint], axis] += d_ctrl[:, actuator]
            phi -= c.pull_ball(at, given["joint_target_qd"][:, c.ball.v], s)[0]
        if "joint_target_q" in given:
            for actuator, start, axis, joint in self.actuators.ball_position:
                ball = c.ball_of[joint]
                a = logarithm(self._target_quaternion(given["joint_target_q"], start))
                row = c.ball_R_c[:, ball, axis]
                phi[:, ball] += cross(a, row) * d_ctrl[:, actuator, None]
        to.child[:, c.ball_joint, 3:] += phi

    def _references(self) -> Array:
        """Return the difference of MuJoCo's and Newton's coordinates, per position actuator."""
        c = self.coordinates
        full = np.zeros((self.worlds, c.nq))
        full[:, c.scalar.q] = c.reference
        if not self.coordinate_targets:
            dofs = np.zeros((self.worlds, c.nv))
            dofs[:, c.scalar.v] = c.reference
            full = dofs
        return full[:, self.actuators.position[:, 1]]

    def _ball_targets(self, target: Array) -> list[tuple[int, Array]]:
        """Return the index and target rotation vector of every position actuator of a ball joint.

        The vector is in the frame in which MuJoCo measures the length of this actuator.
        """
        c, result = self.coordinates, []
        for k, (_, start, _, joint) in enumerate(self.actuators.ball_position):
            R_c = c.ball_R_c[:, c.ball_of[joint]]
            result.append((k, turn(R_c, logarithm(self._target_quaternion(target, start)))))
        return result

    def _target_quaternion(self, target: Array, start: int) -> Array:
        if not self.coordinate_targets:
            raise UnsupportedFeatureError(
                "a ball joint's target",
                "Euler angles are not supported: set newton.use_coord_layout_targets = True before"
                " making the model",
            )
        return unit(target[:, start : start + 4])

    def _pull_ball_targets(self, target: Array, d_ctrl: Array, result: Array) -> None:
        c = self.coordinates
        for actuator, start, axis, joint in self.actuators.ball_position:
            q = self._target_quaternion(target, start)
            norm = np.linalg.norm(target[:, start : start + 4], axis=-1, keepdims=True)
            a = logarithm(q)
            row = c.ball_R_c[:, c.ball_of[joint], axis]  # row of R_c: direction of the component
            phi = pull_logarithm(a, row) * d_ctrl[..., actuator, None]
            result[..., start : start + 4] += 2 * left(q, phi) / norm


def _scatter(result: Array, places: Indices, values: Array) -> None:
    """Add `values[a]` to `result[b]` for every row (a, b) of `places`."""
    if len(places):
        np.add.at(result, (..., places[:, 1]), values[..., places[:, 0]])  # type: ignore[arg-type]


def _extra_weight(
    model: newton.Model, worlds: int, bodies: Indices, gravcomp: Array
) -> tuple[Array, bool]:
    """Return the wrenches that correct gravity, and whether a body is simulated in another world.

    A body of another world has the gravity of its own world, and MuJoCo applies the gravity of the
    world that it simulates the body in.
    """
    mass = model.body_mass.numpy().astype(np.float64).reshape(worlds, -1)[:, bodies]
    own = model.body_world.numpy().reshape(worlds, -1)[:, bodies]
    gravity = model.gravity.numpy().astype(np.float64)
    here = np.arange(worlds)[:, None]
    force = (mass * (1 - gravcomp))[..., None] * (gravity[own] - gravity[here])
    foreign = bool((own % len(gravity) != here).any())
    return np.concatenate([force, np.zeros_like(force)], axis=-1), foreign
