"""Weighted sums of Newton's states over a rollout: on a tape, and in double precision."""

from itertools import pairwise

import mujoco
import numpy as np
import warp as wp
from oracle import Oracle

STATE = ("joint_q", "joint_qd", "body_q", "body_qd")


@wp.kernel
def weigh(x: wp.array[float], w: wp.array[float], loss: wp.array[float]):
    i = wp.tid()
    wp.atomic_add(loss, 0, x[i] * w[i])


@wp.kernel
def weigh_poses(x: wp.array[wp.transform], w: wp.array2d[float], loss: wp.array[float]):
    i = wp.tid()
    for k in range(7):
        wp.atomic_add(loss, 0, x[i][k] * w[i, k])


@wp.kernel
def weigh_twists(x: wp.array[wp.spatial_vector], w: wp.array2d[float], loss: wp.array[float]):
    i = wp.tid()
    for k in range(6):
        wp.atomic_add(loss, 0, x[i][k] * w[i, k])


KERNELS = {"joint_q": weigh, "joint_qd": weigh, "body_q": weigh_poses, "body_qd": weigh_twists}


class Loss:
    """The loss: sum over chosen steps of w . (joint_q, joint_qd, body_q, body_qd)."""

    def __init__(self, model, steps, seed=5, names=STATE, running=True):
        rng = np.random.default_rng(seed)
        state = model.state()
        self.times = [t for t in range(1, steps + 1) if t == steps or (running and t % 2)]
        self.weights = {
            (name, t): rng.normal(size=getattr(state, name).numpy().shape).astype(np.float32)
            for t in self.times
            for name in names
        }
        self.value = wp.zeros(1, dtype=float, requires_grad=True)

    def add(self, t, state):
        """Launch the part of the loss for the state after t steps."""
        for (name, time), w in self.weights.items():
            if time == t:
                array = getattr(state, name)
                wp.launch(
                    KERNELS[name], dim=array.shape[0], inputs=[array, wp.array(w)],
                    outputs=[self.value],
                )  # fmt: skip

    def exact(self, t, oracle, q, v, world=0):
        """Return the same part in double precision, for one world."""
        total = 0.0
        bodies = None
        for (name, time), w in self.weights.items():
            if time != t:
                continue
            w = w.reshape(-1, oracle_rows(oracle, name), *w.shape[1:])[world].astype(float)
            if name == "joint_q":
                total += w @ q
            elif name == "joint_qd":
                total += w @ v
            else:
                bodies = bodies or poses(oracle, q, v)
                total += (w * bodies[name]).sum()
        return total


def oracle_rows(oracle, name):
    return {"joint_q": oracle.nq, "joint_qd": oracle.nv}.get(name, oracle.nbody)


def poses(oracle, q, v):
    """Return body_q and body_qd, by MuJoCo's kinematics."""
    m, d = oracle.mj, oracle.data
    if m.nmocap:
        d.mocap_pos, d.mocap_quat = (
            oracle.solver.mj_data.mocap_pos,
            oracle.solver.mj_data.mocap_quat,
        )
    d.qpos, d.qvel = oracle.push(q, v)
    mujoco.mj_kinematics(m, d)
    mujoco.mj_comPos(m, d)
    body_q, body_qd = np.zeros((oracle.nbody, 7)), np.zeros((oracle.nbody, 6))
    for b, n in enumerate(oracle.bodies):
        if n >= 0:
            jacobian = np.zeros((6, m.nv))
            mujoco.mj_jacBodyCom(m, d, jacobian[:3], jacobian[3:], b)
            body_q[n % oracle.nbody] = np.concatenate([d.xpos[b], np.roll(d.xquat[b], -1)])
            body_qd[n % oracle.nbody] = jacobian @ d.qvel
    return {"body_q": body_q, "body_qd": body_qd}


def coordinates(state):
    return state.joint_q.numpy().astype(float), state.joint_qd.numpy().astype(float)


def roundings(oracle, visited, u, dt):
    """Return the rounding of every state by single precision: (joint_q, joint_qd) per step."""
    act, made = np.zeros(oracle.mj.na), []
    for (q0, v0), (q1, v1) in pairwise(visited):
        q, v, act = oracle.step(*rows(oracle, q0, v0), act, u, dt)
        q1, v1 = rows(oracle, q1, v1)
        made.append((q1 - q, v1 - v))
    return made


def rows(oracle, q, v):
    """Return q and v of the world of the reference."""
    return q.reshape(-1, oracle.nq)[oracle.world], v.reshape(-1, oracle.nv)[oracle.world]


def inputs_of(state, control):
    found = {
        "joint_f": control.joint_f,
        "joint_target_q": control.joint_target_q,
        "joint_target_qd": control.joint_target_qd,
        "body_f": state.body_f,
    }
    direct = getattr(getattr(control, "mujoco", None), "ctrl", None)
    if direct is not None:
        found["ctrl"] = direct
    return {name: array for name, array in found.items() if array is not None and array.size}


def taped(solver, state, control, steps, dt, loss, pingpong=False, of=None):
    """Return the gradients of the loss by the tape, {name: array}, and the states of the rollout.

    The first state is `state`. body_f and the control are the same in all steps. `of` is an array
    of the model, whose gradient is also returned.
    """
    model = solver.model
    states = [model.state() for _ in range(2 if pingpong else steps + 1)]
    for name in ("joint_q", "joint_qd"):
        getattr(states[0], name).assign(getattr(state, name))
    for each in states:
        each.body_f = state.body_f
    start = states[0]
    if pingpong:  # the first state keeps its gradient in arrays of its own
        start = model.state()
        start.joint_q.assign(state.joint_q)
        start.joint_qd.assign(state.joint_qd)
        start.body_f = state.body_f
    loss.value.zero_()
    tape = wp.Tape()
    with tape:
        before = start
        visited = [coordinates(start)]
        for t in range(1, steps + 1):
            after = states[t % 2] if pingpong else states[t]
            solver.step(before, after, control, None, dt)
            loss.add(t, after)
            visited.append(coordinates(after))
            before = after
    tape.backward(loss.value)
    arrays = {"joint_q": start.joint_q, "joint_qd": start.joint_qd, **inputs_of(state, control)}
    if of is not None:
        arrays["of"] = of
    made = {name: a.grad.numpy().copy() for name, a in arrays.items() if a.requires_grad}
    tape.zero()
    return made, visited


class Exact:
    """The loss of a rollout in double precision, along the states of a taped rollout.

    Newton's arrays have single precision. The rounding of every state is added here as a constant,
    so that both rollouts have the same states. Otherwise their gradients would differ like those of
    two initial states.
    """

    def __init__(self, solver, state, control, steps, dt, loss, visited=None, oracle=None):
        self.oracle = o = oracle or Oracle(solver)
        self.steps, self.dt, self.loss = steps, dt, loss
        given = {"joint_q": state.joint_q, "joint_qd": state.joint_qd, **inputs_of(state, control)}
        self.x = {
            name: by_world(array.numpy().astype(float), solver)[o.world]
            for name, array in given.items()
        }
        self.added = [(0, 0)] * steps
        if visited is not None:
            self.added = roundings(o, visited, inputs_only(self.x), dt)

    def value(self, x):
        q, v, act = x["joint_q"], x["joint_qd"], np.zeros(self.oracle.mj.na)
        u, total = inputs_only(x), 0.0
        for t, (dq, dv) in enumerate(self.added, 1):
            q, v, act = self.oracle.step(q, v, act, u, self.dt)
            q, v = q + dq, v + dv
            total += self.loss.exact(t, self.oracle, q, v, self.oracle.world)
        return total

    def directional(self, name, direction, h=1e-3):
        """Return the derivative along a direction of an input, by extrapolated differences."""

        def central(step):
            ends = (
                self.value({**self.x, name: self.x[name] + s * direction}) for s in (step, -step)
            )
            return (next(ends) - next(ends)) / (2 * step)

        a, b, c = central(h), central(h / 2), central(h / 4)
        first, second = (4 * b - a) / 3, (4 * c - b) / 3
        return (16 * second - first) / 15

    def errors(self, gradients, directions=2, seed=7, h=1e-3, inputs=1e-3):
        """Return relative errors of gradients along random directions, {name: error}.

        h: length of the differences of states.
        inputs: length of the differences of inputs, which have much smaller effects.
        """
        rng, found = np.random.default_rng(seed), {}
        for name, gradient in gradients.items():
            g = by_world(gradient.astype(float), self.oracle.solver)[self.oracle.world]
            size = np.linalg.norm(g)
            for _ in range(directions):
                # partly along the gradient, so that the derivative has its size
                d = rng.normal(size=g.shape)
                d = d / np.linalg.norm(d) + (g / size if size else 0)
                step = h if name in ("joint_q", "joint_qd") else inputs
                error = abs((g * d).sum() - self.directional(name, d, step)) / max(size, 1e-9)
                found[name] = max(found.get(name, 0), error)
        return found


def inputs_only(x):
    return {name: x[name] for name in x if name not in ("joint_q", "joint_qd")}


def by_world(values, solver):
    return values.reshape(solver.mjw_data.nworld, -1, *values.shape[1:])
