"""Newton's step in double precision, written from its kernels, and differences of it.

It handles one world at a time with plain matrices, and uses no code of the bridge.
"""

import copy

import mujoco
import newton
import numpy as np
from scipy.spatial.transform import Rotation

from mujacobian.reference import converge

FREE, BALL = newton.JointType.FREE, newton.JointType.BALL
KINEMATIC = int(newton.BodyFlags.KINEMATIC)


def rotation(q):
    return Rotation.from_quat(q)


class Oracle:
    """The step of one world of a solver, with its current MuJoCo C model."""

    def __init__(self, solver, mj=None, world=0):
        self.solver, self.model, self.world = solver, solver.model, world
        self.mj = copy.copy(solver.mj_model) if mj is None else mj
        converge(self.mj)
        collider = self.mj.opt.ccd_tolerance, solver.mj_model.opt.ccd_tolerance
        self.mj.opt.ccd_tolerance = min(collider)
        self.data = mujoco.MjData(self.mj)
        m, W = self.model, solver.mjw_data.nworld
        J = m.joint_count // W
        self.joints = range(J * world, J * (world + 1))
        self.nq, self.nv = m.joint_coord_count // W, m.joint_dof_count // W
        self.nbody = m.body_count // W
        self.kind, self.child = m.joint_type.numpy(), m.joint_child.numpy()
        self.q0 = m.joint_q_start.numpy() - world * self.nq
        self.v0 = m.joint_qd_start.numpy() - world * self.nv
        self.X_p, self.X_c = (a.numpy().astype(float) for a in (m.joint_X_p, m.joint_X_c))
        self.com = m.body_com.numpy().astype(float)
        self.flags = m.body_flags.numpy()
        self.mj_q, self.mj_v = solver.mj_q_start.numpy(), solver.mj_qd_start.numpy()
        self.ref = np.zeros(m.joint_dof_count)
        if hasattr(m, "mujoco") and hasattr(m.mujoco, "dof_ref"):
            self.ref = m.mujoco.dof_ref.numpy().astype(float)
        self.ref = self.ref[world * self.nv :]
        self.bodies = solver.mjc_body_to_newton.numpy()[world]
        self.R_p = [rotation(x[3:]) for x in self.X_p]
        self.R_c = [rotation(x[3:]) for x in self.X_c]
        self.actuators = []  # source, index, target, axis, ball
        if solver.mjc_actuator_ctrl_source is not None:
            fields = (
                solver.mjc_actuator_ctrl_source,
                solver.mjc_actuator_to_newton_idx,
                solver.mjc_actuator_to_newton_target_q_idx,
                solver.mjc_actuator_to_target_q_axis_idx,
                solver.mjc_actuator_to_newton_ball_jnt,
            )
            self.actuators = list(zip(*(each.numpy() for each in fields), strict=True))

    def push(self, q, v):
        qpos, qvel = np.zeros(self.mj.nq), np.zeros(self.mj.nv)
        for j in self.joints:
            k, u = self.mj_q[j % len(self.joints)], self.mj_v[j % len(self.joints)]
            if k < 0:
                continue
            a, b = q[self.q0[j] : self.q0[j + 1]], v[self.v0[j] : self.v0[j + 1]]
            R_p, R_c = self.R_p[j], self.R_c[j]
            if self.kind[j] == FREE:
                r = rotation(a[3:])
                R = R_p * r * R_c.inv()
                p = self.X_p[j, :3] + R_p.apply(a[:3]) - R.apply(self.X_c[j, :3])
                w = R_p.apply(b[3:])
                qpos[k : k + 7] = np.concatenate([p, np.roll(R.as_quat(), 1)])
                qvel[u : u + 3] = R_p.apply(b[:3]) - np.cross(w, R.apply(self.com[self.child[j]]))
                qvel[u + 3 : u + 6] = R.inv().apply(w)
            elif self.kind[j] == BALL:
                r = rotation(a)
                qpos[k : k + 4] = np.roll((R_c * r * R_c.inv()).as_quat(), 1)
                qvel[u : u + 3] = (R_c * r.inv()).apply(b)
            else:
                qpos[k : k + len(a)] = a + self.ref[self.v0[j] : self.v0[j + 1]]
                qvel[u : u + len(b)] = b
        return qpos, qvel

    def pull(self, qpos, qvel, q, v):
        """Return Newton's coordinates; kinematic joints keep q and v, loop joints are zero."""
        q, v = q.copy(), v.copy()
        for j in self.joints:
            k, u = self.mj_q[j % len(self.joints)], self.mj_v[j % len(self.joints)]
            a, b = slice(self.q0[j], self.q0[j + 1]), slice(self.v0[j], self.v0[j + 1])
            if k < 0:
                q[a], v[b] = 0, 0
                if self.kind[j] == BALL:
                    q[a.stop - 1] = 1
            if k < 0 or self.flags[self.child[j]] & KINEMATIC:
                continue
            R_p, R_c = self.R_p[j], self.R_c[j]
            if self.kind[j] == FREE:
                R = rotation(np.roll(qpos[k + 3 : k + 7], -1))
                p = qpos[k : k + 3] + R.apply(self.X_c[j, :3]) - self.X_p[j, :3]
                r = (R_p.inv() * R * R_c).as_quat()
                w = R.apply(qvel[u + 3 : u + 6])
                c = R.apply(self.com[self.child[j]])
                q[a] = np.concatenate([R_p.inv().apply(p), self.near(r, q[a][3:])])
                v[b] = np.concatenate(
                    [R_p.inv().apply(qvel[u : u + 3] + np.cross(w, c)), R_p.inv().apply(w)]
                )
            elif self.kind[j] == BALL:
                R = rotation(np.roll(qpos[k : k + 4], -1))
                q[a] = self.near((R_c.inv() * R * R_c).as_quat(), q[a])
                v[b] = (R_c.inv() * R).apply(qvel[u : u + 3])
            else:
                n = self.q0[j + 1] - self.q0[j]
                q[a] = qpos[k : k + n] - self.ref[b]
                v[b] = qvel[u : u + n]
        return q, v

    @staticmethod
    def near(r, q):
        return r if r @ q >= 0 else -r

    def actions(self, q, u):
        """Return ctrl, qfrc_applied and xfrc_applied of inputs {name: numbers}."""
        J = len(self.joints)
        ctrl, qfrc = np.zeros(self.mj.nu), np.zeros(self.mj.nv)
        xfrc = np.zeros((self.mj.nbody, 6))
        for k, (source, place, target, axis, ball) in enumerate(self.actuators):
            ball = ball % J + J * self.world
            if source == 1:
                ctrl[k] = u["ctrl"][place]
            elif place >= 0 and axis < 0:
                ctrl[k] = u["joint_target_q"][target] + self.ref[place]
            elif place >= 0:
                r = rotation(u["joint_target_q"][target : target + 4])
                ctrl[k] = self.R_c[ball].apply(r.as_rotvec())[axis]
            elif axis < 0:
                ctrl[k] = u["joint_target_qd"][-place - 2]
            else:
                first = -place - 2 - axis
                r = rotation(q[self.q0[ball] : self.q0[ball + 1]])
                turned = self.R_c[ball] * r.inv()
                ctrl[k] = turned.apply(u["joint_target_qd"][first : first + 3])[axis]
        place = {int(n) % self.nbody: b for b, n in enumerate(self.bodies) if n >= 0}
        for n, b in place.items():
            if not self.flags[n] & KINEMATIC:
                xfrc[b] = u["body_f"][n]
        for j in self.joints:
            k = self.mj_v[j % J]
            if k < 0 or self.flags[self.child[j]] & KINEMATIC:
                continue
            f = u["joint_f"][self.v0[j] : self.v0[j + 1]]
            if self.kind[j] == FREE:
                xfrc[place[self.child[j] % self.nbody]] += f
            elif self.kind[j] == BALL:
                r = rotation(q[self.q0[j] : self.q0[j + 1]])
                qfrc[k : k + 3] = (self.R_c[j] * r.inv()).apply(f)
            else:
                qfrc[k : k + len(f)] = f
        return ctrl, qfrc, xfrc

    def step(self, q, v, act, u, dt):
        """Return the next q, v and act."""
        d = self.data
        mujoco.mj_resetData(self.mj, d)
        self.mj.opt.timestep = dt
        if self.mj.nmocap:
            source = self.solver.mj_data
            d.mocap_pos, d.mocap_quat = source.mocap_pos, source.mocap_quat
        if self.mj.neq:
            d.eq_active = self.solver.mj_data.eq_active
        d.qpos, d.qvel = self.push(q, v)
        d.act = act
        d.ctrl, d.qfrc_applied, d.xfrc_applied = self.actions(q, u)
        mujoco.mj_step(self.mj, d)
        return *self.pull(d.qpos, d.qvel, q, v), d.act.copy()

    def boxplus(self, q, xi):
        """Return q displaced by tangent coordinates, in which q moves along joint_qd."""
        q = q.copy()
        for j in self.joints:
            a, t = slice(self.q0[j], self.q0[j + 1]), xi[self.v0[j] : self.v0[j + 1]]
            if self.kind[j] == FREE:
                r = rotation(q[a][3:])
                R_c = self.R_c[j]
                lever = R_c.inv().apply(self.com[self.child[j]] - self.X_c[j, :3])
                moved = Rotation.from_rotvec(t[3:]) * r
                p = q[a][:3] + r.apply(lever) + t[:3] - moved.apply(lever)
                q[a] = np.concatenate([p, self.near(moved.as_quat(), q[a][3:])])
            elif self.kind[j] == BALL:
                moved = (Rotation.from_rotvec(t) * rotation(q[a])).as_quat()
                q[a] = self.near(moved, q[a])
            else:
                q[a] += t
        return q

    def boxminus(self, q1, q0):
        """Return the tangent coordinates of the displacement from q0 to q1."""
        xi = np.zeros(self.nv)
        for j in self.joints:
            a, b = slice(self.q0[j], self.q0[j + 1]), slice(self.v0[j], self.v0[j + 1])
            if self.kind[j] == FREE:
                r0, r1 = rotation(q0[a][3:]), rotation(q1[a][3:])
                R_c = self.R_c[j]
                lever = R_c.inv().apply(self.com[self.child[j]] - self.X_c[j, :3])
                p = q1[a][:3] + r1.apply(lever) - q0[a][:3] - r0.apply(lever)
                xi[b] = np.concatenate([p, (r1 * r0.inv()).as_rotvec()])
            elif self.kind[j] == BALL:
                xi[b] = (rotation(q1[a]) * rotation(q0[a]).inv()).as_rotvec()
            else:
                xi[b] = q1[a] - q0[a]
        return xi


def differences(f, n, h=1e-3):
    """Return the Jacobian of f at 0 by central differences extrapolated twice, and their error."""
    columns, errors = [], []
    for k in range(n):
        e = np.zeros(n)
        e[k] = 1

        def central(step, e=e):
            return (f(step * e) - f(-step * e)) / (2 * step)

        a, b, c = central(h), central(h / 2), central(h / 4)
        first, second = (4 * b - a) / 3, (4 * c - b) / 3
        columns.append((16 * second - first) / 15)
        errors.append(np.abs(second - first).max(initial=0))
    return np.array(columns).T, np.array(errors)
