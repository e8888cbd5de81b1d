"""Rows of a cost from a model specification, with the sensors that they need."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, shaped
from mujacobian.control.rows import Command, Reading, Rows, rows_of, stack
from mujacobian.control.specification import find_element, find_kind, unused_name
from mujacobian.errors import ArgumentError, ArgumentTypeError

SENSOR, OBJECT, JOINT = mujoco.mjtSensor, mujoco.mjtObj, mujoco.mjtJoint
# kinds of frames: their lists in a specification, and their types in sensors
FRAMES = {
    "site": ("sites", OBJECT.mjOBJ_SITE),
    "body": ("bodies", OBJECT.mjOBJ_XBODY),
    "geom": ("geoms", OBJECT.mjOBJ_GEOM),
    "camera": ("cameras", OBJECT.mjOBJ_CAMERA),
}
# kinds of objects that touch or have a distance
SOLIDS = {"geom": ("geoms", OBJECT.mjOBJ_GEOM), "body": ("bodies", OBJECT.mjOBJ_BODY)}
AXES = {"x": SENSOR.mjSENS_FRAMEXAXIS, "y": SENSOR.mjSENS_FRAMEYAXIS, "z": SENSOR.mjSENS_FRAMEZAXIS}
SCALAR_JOINTS = (JOINT.mjJNT_HINGE, JOINT.mjJNT_SLIDE)
NET_FORCE = (1 << 1, 3, 1)  # of a contact sensor: the force, summed over all contacts
FADING = 0.25  # of the clearance of a foot: width of the transition between slipping and swinging


class Residuals:
    """Rows of a cost for a model specification, made by `residuals`.

    Each method adds the sensors that it needs at the end of the specification and returns rows for
    a `Term`. Existing sensors do not change. A quantity that is asked for twice uses one sensor.
    Names of sensors consist of the quantity and its elements, such as "position:hand", and a number
    if this name is taken. Compile the specification after all rows are made.

    Elements are given by name. If elements of several kinds have the same name, `kind` selects one:
    "site", "body", "geom" or "camera". Frames of bodies are those of their joints, not of their
    inertia. Quantities are in the world frame unless `relative_to` is the name of a frame.
    """

    def __init__(self, spec: mujoco.MjSpec) -> None:
        if not isinstance(spec, mujoco.MjSpec):
            raise ArgumentTypeError(
                f"spec must be a mujoco.MjSpec, got {type(spec).__name__}: load the model with "
                "mujoco.MjSpec.from_file or mujoco.MjSpec.from_string"
            )
        self.spec = spec
        self._names: dict[tuple[object, ...], str] = {}

    def position(self, name: str, *, relative_to: str = "", kind: str = "") -> Rows:
        """Return the position of a frame, m, three rows."""
        return self._frame("position", SENSOR.mjSENS_FRAMEPOS, name, relative_to, kind)

    def orientation(
        self,
        name: str,
        target: ArrayLike = (1, 0, 0, 0),
        *,
        relative_to: str = "",
        kind: str = "",
    ) -> Rows:
        """Return the rotation from a target to the orientation of a frame, three rows.

        For a rotation by the angle a about a unit vector, the rows are 2 sin(a/2) times the vector
        in the frame of the target. They are about the rotation vector if the angle is small. They
        change their sign with the quaternion, so use a norm that is even.

        Args:
          name: frame.
          target: `(4,)`, desired orientation as a quaternion; by default no rotation.
          relative_to: frame in which the orientation is measured; by default the world.
          kind: kind of the frame.
        """
        w, x, y, z = _unit("target", shaped("target", target, (4,)))
        # the vector part of conj(target) q, which is linear in q
        vector = np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
        rows = self._frame("orientation", SENSOR.mjSENS_FRAMEQUAT, name, relative_to, kind)
        turned: Rows = 2 * vector @ rows
        return turned

    def axis(self, name: str, axis: str, *, relative_to: str = "", kind: str = "") -> Rows:
        """Return the direction of the axis "x", "y" or "z" of a frame, three rows."""
        if axis not in AXES:
            raise ArgumentError(f'axis must be "x", "y" or "z", got {axis!r}')
        return self._frame(f"{axis}_axis", AXES[axis], name, relative_to, kind)

    def velocity(self, name: str, *, relative_to: str = "", kind: str = "") -> Rows:
        """Return the velocity of the origin of a frame, m/s, three rows."""
        return self._frame("velocity", SENSOR.mjSENS_FRAMELINVEL, name, relative_to, kind)

    def angular_velocity(self, name: str, *, relative_to: str = "", kind: str = "") -> Rows:
        """Return the angular velocity of a frame, rad/s, three rows."""
        return self._frame("angular_velocity", SENSOR.mjSENS_FRAMEANGVEL, name, relative_to, kind)

    def joint_positions(self, *names: str) -> Rows:
        """Return the positions of hinge and slide joints, one row each; by default of all."""
        return self._joints("joint_position", SENSOR.mjSENS_JOINTPOS, names)

    def joint_velocities(self, *names: str) -> Rows:
        """Return the velocities of hinge and slide joints, one row each; by default of all."""
        return self._joints("joint_velocity", SENSOR.mjSENS_JOINTVEL, names)

    def joint_torques(self, *names: str) -> Rows:
        """Return the forces of actuators on hinge and slide joints, one row each; default: all."""
        return self._joints("joint_torque", SENSOR.mjSENS_JOINTACTFRC, names)

    def controls(self) -> Rows:
        """Return all controls, one row each."""
        count = len(self.spec.actuators)
        return rows_of([Command(k, count) for k in range(count)])

    def sensor(self, name: str) -> Rows:
        """Return the readings of a sensor that the specification already has."""
        found = find_element("sensor", name, self.spec.sensors)
        return rows_of([Reading(name, k) for k in range(found.get_data_size())])

    def center_of_mass(self, body: str = "world") -> Rows:
        """Return the center of mass of a body and its descendants, m, three rows."""
        return self._subtree("center_of_mass", SENSOR.mjSENS_SUBTREECOM, body)

    def center_of_mass_velocity(self, body: str = "world") -> Rows:
        """Return the velocity of the center of mass of a body and its descendants, m/s."""
        return self._subtree("center_of_mass_velocity", SENSOR.mjSENS_SUBTREELINVEL, body)

    def momentum(self, body: str = "world") -> Rows:
        """Return the linear momentum of a body and its descendants, kg m/s, three rows.

        The mass is that of the model for which the `Cost` is made.
        """
        return rows_of(
            [
                Reading(column.sensor, column.component, mass_of=body)
                for column in self.center_of_mass_velocity(body).columns
                if isinstance(column, Reading)
            ]
        )

    def angular_momentum(self, body: str = "world") -> Rows:
        """Return the angular momentum about the center of mass of a body and its descendants."""
        return self._subtree("angular_momentum", SENSOR.mjSENS_SUBTREEANGMOM, body)

    def distance(self, first: str, second: str, cutoff: float, *, kind: str = "") -> Rows:
        """Return the distance between two geoms or bodies, m, one row, negative inside.

        Args:
          first: geom or body, whose geoms are meant.
          second: geom or body.
          cutoff: largest distance that is measured, m; beyond it, the row is constant.
          kind: kind of both, "geom" or "body", if the names are ambiguous.
        """
        if not (np.isfinite(cutoff) and cutoff > 0):
            raise ArgumentError(f"cutoff must be a positive number, got {cutoff!r}")
        pair = self._solid(first, kind), self._solid(second, kind)
        if pair[0] == pair[1]:
            raise ArgumentError(f'"{first}" has no distance to itself')
        return self._add("distance", SENSOR.mjSENS_GEOMDIST, *pair, cutoff=float(cutoff))

    def contact_force(self, name: str, other: str = "", *, kind: str = "") -> Rows:
        """Return the net force of contacts on a geom or body in the world frame, N, three rows.

        Args:
          name: geom or body, without the descendants of the body.
          other: geom or body that it touches; by default any.
          kind: kind of both, "geom" or "body", if the names are ambiguous.
        """
        pair = [self._solid(each, kind) for each in (name, other) if each]
        # the sensor reports the force that the first object exerts
        return -self._add("contact_force", SENSOR.mjSENS_CONTACT, *pair, intprm=NET_FORCE)

    def foot_slip(
        self, name: str, clearance: float, *, ground: float = 0.0, kind: str = ""
    ) -> Rows:
        """Return the horizontal velocity of a foot near the ground, m/s, two rows.

        The velocity is multiplied by a smooth function of the height, which is 0.98 at the ground,
        1/2 at the clearance and 0.02 at twice the clearance.

        Args:
          name: frame at the foot.
          clearance: height above the ground, m, at which the foot counts as lifted.
          ground: height of the frame when the foot is down, m; by default 0.
          kind: kind of the frame.
        """
        if not (np.isfinite(clearance) and clearance > 0):
            raise ArgumentError(f"clearance must be a positive number, got {clearance!r}")
        height = self.position(name, kind=kind)[2] - ground
        # a logistic function
        near: Rows = 0.5 - 0.5 * np.tanh((height - clearance) / (2 * FADING * clearance))
        return self.velocity(name, kind=kind)[:2] * near

    def _frame(
        self, quantity: str, sensor: mujoco.mjtSensor, name: str, relative_to: str, kind: str
    ) -> Rows:
        frames = [find_kind(self.spec, "frame", name, FRAMES, kind)]
        if relative_to:
            frames.append(find_kind(self.spec, "frame", relative_to, FRAMES))
        return self._add(quantity, sensor, *frames)

    def _solid(self, name: str, kind: str) -> tuple[mujoco.mjtObj, str]:
        return find_kind(self.spec, "geom or body", name, SOLIDS, kind)

    def _subtree(self, quantity: str, sensor: mujoco.mjtSensor, body: str) -> Rows:
        find_element("body", body, self.spec.bodies)
        return self._add(quantity, sensor, (OBJECT.mjOBJ_BODY, body))

    def _joints(self, quantity: str, sensor: mujoco.mjtSensor, names: Sequence[str]) -> Rows:
        joints = self.spec.joints
        if names:
            chosen = [find_element("joint", name, joints) for name in names]
        else:
            chosen = [joint for joint in joints if joint.type in SCALAR_JOINTS]
        for joint in chosen:
            if joint.type not in SCALAR_JOINTS:
                raise ArgumentError(
                    f'joint "{joint.name}" is not a hinge or slide: use position, orientation, '
                    f'velocity and angular_velocity of its body "{joint.parent.name}"'
                )
            if not joint.name:
                raise ArgumentError(
                    f'a joint of body "{joint.parent.name}" has no name, which a sensor needs: '
                    "give it a name in the specification"
                )
        if not chosen:
            raise ArgumentError("the specification has no hinge or slide joints")
        target = OBJECT.mjOBJ_JOINT
        return stack(*(self._add(quantity, sensor, (target, joint.name)) for joint in chosen))

    def _add(
        self,
        quantity: str,
        sensor: mujoco.mjtSensor,
        *elements: tuple[mujoco.mjtObj, str],
        **fields: object,
    ) -> Rows:
        """Return the readings of a sensor of one or two elements, which is added if it is new."""
        key = (quantity, *elements, *fields.items())
        if key not in self._names:
            name = ":".join([quantity, *(name for _, name in elements)])
            self._names[key] = unused_name(name, self.spec.sensors)
            objects = dict(zip(("objtype", "objname"), elements[0], strict=True))
            if len(elements) > 1:
                objects |= dict(zip(("reftype", "refname"), elements[1], strict=True))
            self.spec.add_sensor(name=self._names[key], type=sensor, **objects, **fields)
        return self.sensor(self._names[key])


def residuals(spec: mujoco.MjSpec) -> Residuals:
    """Return an object that makes rows of a cost, and adds the sensors that they need to a model.

    Example:
      >>> import mujoco
      >>> from mujacobian import control
      >>> spec = mujoco.MjSpec.from_string(
      ...     "<mujoco><worldbody><body name='arm'><joint name='pivot' axis='0 1 0'/>"
      ...     "<geom size='.1' pos='.5 0 0'/><site name='tip' pos='1 0 0'/></body></worldbody>"
      ...     "<actuator><motor joint='pivot'/></actuator></mujoco>")
      >>> rows = control.residuals(spec)
      >>> terms = [
      ...     control.Term("reach", rows.position("tip") - [0, 0, 1], control.L2(0.1)),
      ...     control.Term("still", rows.joint_velocities(), weight=0.1),
      ...     control.Term("effort", rows.controls(), weight=0.01)]
      >>> model = spec.compile()
      >>> planner = control.ILQR(model, control.Cost(model, terms), horizon=50)
      >>> [model.sensor(k).name for k in range(model.nsensor)]
      ['position:tip', 'joint_velocity:pivot']
    """
    return Residuals(spec)


def _unit(name: str, quaternion: Array) -> Array:
    length = np.linalg.norm(quaternion)
    if length == 0:
        raise ArgumentError(f"{name} must be a quaternion that is not zero")
    unit: Array = quaternion / length
    return unit
