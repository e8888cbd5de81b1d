"""Newton's step with contacts of its pipeline in double precision, written from its kernels.

The contacts keep their points on the bodies, their normals and their materials. Distances and
positions follow from the poses of the bodies.
"""

import mujoco
import numpy as np
from losses import poses
from oracle import Oracle, rotation

MATERIALS = ("includemargin", "friction", "solref", "solreffriction", "solimp")
SIDES = ("point", "offset", "margin")


class GivenOracle(Oracle):
    """The step of a solver that has taken one step with the given contacts."""

    def __init__(self, solver, contacts):
        super().__init__(solver, solver._current_snapshot().worlds.models[0])
        assert solver.mjw_data.nworld == 1
        model, made = solver.model, solver.mjw_data.contact
        used = int(contacts.rigid_contact_count.numpy()[0])
        # the solver converts contacts in sequence if there is one world and none is skipped
        assert int(solver.mjw_data.nacon.numpy()[0]) == used
        self.materials = [getattr(made, name).numpy()[:used].astype(float) for name in MATERIALS]
        self.shapes = np.column_stack([made.dim.numpy(), made.geom.numpy()])[:used]
        self.normal = contacts.rigid_contact_normal.numpy()[:used].astype(float)
        self.rounding = 0.0, 0.0  # of distances and positions in a step in single precision
        self.sides = []
        for side in "01":
            shape = getattr(contacts, f"rigid_contact_shape{side}").numpy()[:used]
            values = [getattr(contacts, f"rigid_contact_{n}{side}").numpy()[:used] for n in SIDES]
            margin = model.shape_margin.numpy()[shape].astype(float)
            self.sides.append(
                (model.shape_body.numpy()[shape], *(v.astype(float) for v in values), margin)
            )

    def contacts(self, body_q):
        """Return the distances and positions of all contacts (NWT-12)."""
        ends, surfaces, thickness = [], [], 0.0
        for bodies, point, offset, thick, margin in self.sides:
            scale = np.divide(thick - margin, thick, out=np.zeros_like(thick), where=thick != 0)
            end, surface = point.copy(), point + scale[:, None] * offset
            for k, body in enumerate(bodies):
                if body >= 0:
                    at, turn = body_q[body, :3], rotation(body_q[body, 3:])
                    end[k], surface[k] = at + turn.apply(end[k]), at + turn.apply(surface[k])
            ends.append(end)
            surfaces.append(surface)
            thickness = thickness + thick - margin
        distance = (self.normal * (ends[1] - ends[0])).sum(axis=1) - thickness
        position = 0.5 * (surfaces[0] + surfaces[1])
        return distance + self.rounding[0], position + self.rounding[1]

    def given_step(self, q, v, u, body_q, dt):
        """Return the next q and v."""
        m, d = self.mj, self.data
        mujoco.mj_resetData(m, d)
        m.opt.timestep = dt
        d.qpos, d.qvel = self.push(q, v)
        d.ctrl, d.qfrc_applied, d.xfrc_applied = self.actions(q, u)
        mujoco.mj_fwdPosition(m, d)
        assert d.ncon == 0
        for k, (distance, position) in enumerate(zip(*self.contacts(body_q), strict=True)):
            self._add(k, distance, position)
        mujoco.mj_makeConstraint(m, d)
        mujoco.mj_projectConstraint(m, d)
        mujoco.mj_fwdVelocity(m, d)
        mujoco.mj_fwdActuation(m, d)
        mujoco.mj_fwdAcceleration(m, d)
        mujoco.mj_fwdConstraint(m, d)
        mujoco.mj_implicit(m, d)
        return self.pull(d.qpos, d.qvel, q, v)

    def body_q(self, q, v):
        return poses(self, q, v)["body_q"]

    def _add(self, k, distance, position):
        """Add a contact to the data if it is within its margin."""
        margin, friction, solref, solreffriction, solimp = (each[k] for each in self.materials)
        if distance >= margin:
            return
        made = mujoco.MjContact()
        normal = self.normal[k] / np.linalg.norm(self.normal[k])
        hint = np.array([0.0, 1, 0] if abs(normal[1]) < 0.5 else [0.0, 0, 1])
        tangent = hint - normal * (normal @ hint)
        tangent /= np.linalg.norm(tangent)
        made.frame = np.concatenate([normal, tangent, np.cross(normal, tangent)])
        made.dist, made.pos, made.includemargin = distance, position, margin
        made.friction, made.solref = friction, solref
        made.solreffriction, made.solimp = solreffriction, solimp
        made.dim, *pair = self.shapes[k].tolist()
        made.geom, made.flex, made.exclude = pair, [-1, -1], 0
        mujoco.mj_addContact(self.mj, self.data, made)
