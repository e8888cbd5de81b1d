"""The incremental potential of a step of rods, from its definition, with forty digits.

The reference shares no code with the core. Its derivatives are central differences with steps of
1e-11, whose error is about 1e-18.
"""

from functools import cache
from itertools import combinations, pairwise

import mpmath as mp
import numpy as np
from scipy.optimize import minimize

from mujacobian import rods

mp.mp.dps = 40
STEP = mp.mpf(10) ** -11
BARRIER = 0.001  # of the nearest points of segments, relative to the square of both radii
SMALLEST = mp.mpf(10) ** -mp.mp.dps


def precise(values):
    """Return the same numbers with forty digits."""
    array = np.asarray(values)
    made = np.empty(array.shape, dtype=object)
    for index, value in np.ndenumerate(array):
        made[index] = value if isinstance(value, mp.mpf) else mp.mpf(float(value))
    return made


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def norm(a):
    return mp.sqrt(dot(a, a))


def exp(w):
    """Return the rotation by Rodrigues' formula, with series."""
    S = precise(np.zeros((3, 3)))
    S[2, 1], S[0, 2], S[1, 0] = w
    S = S - S.T
    term = total = precise(np.eye(3))
    k = 0
    while max(abs(x) for x in term.flat) > SMALLEST:
        k += 1
        term = term.dot(S) / k
        total = total + term
    return total


def orthonormal(R):
    """Return the rotation nearest to R with forty digits, without the rounding errors of R."""
    R = precise(R)
    for _ in range(4):
        R = R.dot(3 * precise(np.eye(3)) - R.T.dot(R)) / 2
    return R


def distance(shape, y):
    """Return the signed distance of a shape."""
    if isinstance(shape, rods.Plane):
        return dot(precise(shape.normal), y) - mp.mpf(shape.offset)
    if isinstance(shape, rods.Tube):
        v = precise(shape.vertices)
        apart = [norm(y - v[0])] + [segment(y, a, b) for a, b in pairwise(v)]
        return min(apart) - mp.mpf(shape.radius)
    if isinstance(shape, rods.Box):
        local = precise(shape.axes).T.dot(y - precise(shape.center))
        over = [abs(a) - h for a, h in zip(local, precise(shape.half), strict=True)]
        outside = norm([max(o, mp.mpf(0)) for o in over])
        return outside if outside > 0 else max(over)
    if isinstance(shape, rods.Mesh):
        return spline(shape, y)
    if isinstance(shape, rods.Union):
        return min(distance(part, y) for part in shape.parts)
    return -distance(shape.shape, y)


def spline(mesh, y):
    """Return the cubic spline of the samples of a mesh, from its basis functions (Cox-de Boor)."""

    def basis(x, degree):
        """Return the B-spline with the support 0 .. degree + 1."""
        if degree == 0:
            return mp.mpf(0 <= x < 1)
        right = basis(x - 1, degree - 1)
        return (x * basis(x, degree - 1) + (degree + 1 - x) * right) / degree

    at = (y - precise(mesh.origin)) / mp.mpf(mesh.cell)
    low = [int(a) - 1 for a in at]
    near = precise(mesh.distances[tuple(slice(i - 1, i + 5) for i in low)])
    for axis in range(3):
        lines = np.moveaxis(near, axis, 0)
        lines = (8 * lines[1:-1] - lines[:-2] - lines[2:]) / 6
        weights = [basis(at[axis] - low[axis] + 2 - k, 3) for k in range(4)]
        near = sum(w * line for w, line in zip(weights, lines, strict=True))[None]
        near = np.moveaxis(near, 0, axis)
    return near.item()


def segment(y, a, b):
    t = dot(y - a, b - a) / dot(b - a, b - a)
    return norm(y - a - min(max(t, mp.mpf(0)), mp.mpf(1)) * (b - a))


class Variables:
    """Everything that the potential of a step depends on, by name, with forty digits."""

    def __init__(self, world, k, state, past, inputs, params):
        """`k` is the index of the step, and `past` has the earlier states, newest first."""
        self.world, self.k = world, k
        self.values = {
            "x": precise(state[0]),
            "R": np.array([orthonormal(R) for R in state[1]]).reshape(-1, 3, 3),
            "past_x": precise(past[0]),
            "past_R": np.array([orthonormal(R) for R in past[1].reshape(-1, 3, 3)]).reshape(
                past[1].shape
            ),
            **{name: precise(values) for name, values in vars(params).items()},
            **{name: precise(values) for name, values in inputs.items()},
        }

    def moved(self, changes):
        """Return the values, changed by (name, index, amount); rotations by exp from the left."""
        values, turns = dict(self.values), {}
        for name, index, amount in changes:
            if name.endswith("R"):
                turns.setdefault((name, index[:-1]), precise(np.zeros(3)))[index[-1]] += amount
                continue
            values[name] = values[name].copy()
            values[name][index] += amount
            if name == "inertia" and index[1] != index[2]:
                values[name][index[0], index[2], index[1]] += amount
        for name in {name for name, _ in turns}:
            values[name] = values[name].copy()
        for (name, k), turn in turns.items():
            values[name][k] = exp(turn).dot(values[name][k])
        return values

    def energy(self, *changes):
        return potential(self.world, self.k, self.moved(changes))

    def slope(self, variable):
        """Return the first derivative with respect to a (name, index)."""
        up, down = (self.energy((*variable, sign * STEP)) for sign in (1, -1))
        return float((up - down) / (2 * STEP))

    def mixed(self, direction, variable):
        """Return the mixed derivative by a (name, index) and along all (name, index, part)."""

        def energy(a, b):
            along = [(name, index, a * STEP * mp.mpf(part)) for name, index, part in direction]
            return self.energy(*along, (*variable, b * STEP))

        total = energy(1, 1) - energy(1, -1) - energy(-1, 1) + energy(-1, -1)
        return float(total / (4 * STEP**2))


class Formula:
    """The difference formulas of step k for first and second derivatives at its end."""

    def __init__(self, world, k):
        self.h, self.second = mp.mpf(world.timestep), world.integrator == "bdf2"
        self.k = k

    def velocity(self, states, k):
        """Return the derivative at state k of a list of states, newest first."""
        if self.second and k > 1:
            return (3 * states[0] - 4 * states[1] + states[2]) / (2 * self.h)
        return (states[0] - states[1]) / self.h

    def rate(self, states):
        return self.velocity(states, self.k + 1)

    def acceleration(self, states):
        k = self.k + 1
        v = [self.velocity(states[j:], k - j) for j in range(min(k + 1, 3))]
        return self.velocity(v, k)

    def weight(self):
        """Return the derivative of a rate with respect to the newest state."""
        return self.rate([mp.mpf(1), mp.mpf(0), mp.mpf(0)])


def newest_first(v, name):
    return [v[name], *v[f"past_{name}"]]


def potential(world, k, v):
    """Return the incremental potential of step k."""
    h, total, formula = mp.mpf(world.timestep), mp.mpf(0), Formula(world, k)
    total += inertia(world, v, formula)
    for rod in world.rods:
        total += elastic(world, rod, v, formula)
    target = 0
    for a, stiffness in zip(world.attachments, v["attachment"], strict=True):
        if isinstance(a, rods.Weld):
            A = v["R"][world.frames(a.first.owner).start + a.first.frame].dot(precise(a.first_axes))
            B = precise(a.second_axes)
            if a.second is not None:
                B = v["R"][world.frames(a.second.owner).start + a.second.frame].dot(B)
            total += stiffness / 4 * dot((A - B).flat, (A - B).flat)
            continue
        w = place(world, a.first, v["x"], v["R"])
        if isinstance(a.second, rods.Point):
            w = w - place(world, a.second, v["x"], v["R"])
        else:
            w = w - (v["targets"][target] if "targets" in v else precise(a.second))
            target += 1
        total += stiffness / 2 * dot(w, w)
    for cable, tension in zip(world.cables, v.get("tensions", []), strict=False):
        at = [place(world, p, v["x"], v["R"]) for p in cable.path]
        total += tension * sum(norm(b - a) for a, b in pairwise(at))
    for k, contact in enumerate(world.contacts):
        coefficients = v["contact"][k], v["friction"][k]
        if isinstance(contact, rods.SegmentContact):
            for a, b in combinations(contact.all_segments, 2):
                if a.owner is not b.owner:
                    total += press(world, contact, (a, b), v, h, *coefficients)
            continue
        for point in contact.points:
            total += touch(world, contact, point, v, h, *coefficients)
    return total


def inertia(world, v, formula):
    total, w = mp.mpf(0), formula.weight()
    positions, rotations = newest_first(v, "x"), newest_first(v, "R")
    for i, x in enumerate(v["x"]):
        # the derivatives of these squares are the inertial force and the drag
        a = formula.acceleration([each[i] for each in positions])
        change = formula.rate([each[i] for each in positions])
        total += v["mass"][i] / (2 * w**2) * dot(a, a)
        total += v["drag"][i] / (2 * w) * dot(change, change)
        total -= v["mass"][i] * dot(precise(world.gravity), x)
        if "forces" in v:
            total -= dot(v["forces"][i], x)
    for i, R in enumerate(v["R"]):
        J, a = moment(v["inertia"][i]), formula.acceleration([each[i] for each in rotations])
        change = formula.rate([each[i] for each in rotations])
        total += dot(a.dot(J).flat, a.flat) / (2 * w**2)
        total += v["spin_drag"][i] / (4 * w) * dot(change.flat, change.flat)
        if "torques" in v:
            second = formula.second and formula.k > 0
            lever = 2 * rotations[1][i] - rotations[2][i] if second else rotations[1][i]
            D = R.dot(lever.T)
            turned = [D[2, 1] - D[1, 2], D[0, 2] - D[2, 0], D[1, 0] - D[0, 1]]
            total -= dot(v["torques"][i], turned) / 2
    return total


def moment(inertia):
    return sum(inertia[i, i] for i in range(3)) / 2 * precise(np.eye(3)) - inertia


def elastic(world, rod, v, formula):
    total, w = mp.mpf(0), formula.weight()
    positions, rotations = newest_first(v, "x"), newest_first(v, "R")
    points, frames = world.points(rod).start, world.frames(rod).start
    edges, bends = world.edges(rod).start, world.bends(rod).start
    lengths = v["length"][world.edges(rod)]
    for k, rest in enumerate(lengths):
        start, end = points + k, points + (k + 1) % rod.sizes[0]
        e = v["x"][end] - v["x"][start]
        rate = formula.rate([norm(x[end] - x[start]) for x in positions])
        total += v["stretch"][edges + k] / 2 * rest * (1 - norm(e) / rest) ** 2
        total += v["stretch_damping"][edges + k] / (2 * w) * rate**2 / rest
        aligned = dot(e, v["R"][frames + k][:, 2]) / norm(e)
        total += v["shear"][edges + k] / 2 * rest * (1 - aligned)
    ends = [None] * rod.clamp_start, [None] * rod.clamp_end  # walls
    chain = [*ends[0], *range(rod.edges), *ends[1], *range(rod.closed)]
    for k, pair in enumerate(pairwise(chain)):
        mean = sum(lengths[i] for i in pair if i is not None) / 2

        def omega(R, pair=pair, mean=mean):
            walls = precise(rod.frames[0]), precise(rod.frames[-1])
            A, B = (
                orthonormal(wall) if i is None else R[frames + i]
                for i, wall in zip(pair, walls, strict=True)
            )
            average, slope = (A + B) / 2, (B - A) / mean
            S = average.T.dot(slope)
            if rod.bending == "tangent":
                # 4 cos^2(angle / 2) from |A - B|^2 = 8 sin^2(angle / 2)
                S = S * 4 / (4 - dot((A - B).flat, (A - B).flat) / 2)
            return np.array([S[2, 1], S[0, 2], S[1, 0]])

        now, rate = omega(v["R"]), formula.rate([omega(R) for R in rotations])
        rest = v["rest"][bends + k] if "rest" in v else precise(rod.rest_curvature)[k]
        for c in range(3):
            total += mean / 2 * v["bend"][bends + k][c] * (now[c] - rest[c]) ** 2
            viscous = v["bend_damping"][bends + k][c]
            total += mean / (2 * w) * viscous * rate[c] ** 2
    return total


def place(world, p, x, R):
    first = world.points(p.owner).start
    at = precise(np.zeros(3))
    for i, weight in zip(p.points, p.weights, strict=True):
        at = at + mp.mpf(weight) * x[first + i]
    if p.frame is not None:
        at = at + R[world.frames(p.owner).start + p.frame].dot(precise(p.offset))
    return at


def rolled(world, contact, point, v, arm):
    """Return the displacement of the touching point relative to the center, in the body's axes."""
    first = world.frames(point.owner).start
    if point.frame is not None:
        frames = [point.frame]
    else:
        node, edges = point.points[0], point.owner.edges
        frames = [k for k in (node - 1, node) if 0 <= k < edges]
    R, before = v["R"], v["past_R"][0]
    body = None if contact.body is None else world.frames(contact.body).start
    out = arm if body is None else before[body].dot(arm)  # in world axes
    ends = [R[first + k].dot(before[first + k].T.dot(out)) for k in frames]
    end = sum(ends[1:], ends[0]) / len(ends)
    return end - arm if body is None else R[body].T.dot(end) - arm


def touch(world, contact, point, v, h, stiffness, friction):
    def local(x, R):
        at = place(world, point, x, R)
        if contact.body is None:
            return at
        i, f = world.points(contact.body).start, world.frames(contact.body).start
        return R[f].T.dot(at - x[i])

    def normal(y):
        made = precise(np.zeros(3))
        for k in range(3):
            d = precise(np.zeros(3))
            d[k] = mp.mpf(10) ** -20
            up, down = distance(contact.shape, y + d), distance(contact.shape, y - d)
            made[k] = (up - down) / (2 * d[k])
        return made / norm(made)

    y, before = local(v["x"], v["R"]), local(v["past_x"][0], v["past_R"][0])
    radius = mp.mpf(contact.radius)
    total = stiffness / 2 * max(mp.mpf(0), radius - distance(contact.shape, y)) ** 2
    pressure = stiffness * max(mp.mpf(0), radius - distance(contact.shape, before))
    if pressure > 0:
        n, moved, scale = normal(before), y - before, h * mp.mpf(contact.slip)
        if contact.rolling:
            moved = moved + rolled(world, contact, point, v, -radius * n)
        u = moved - dot(n, moved) * n
        total += friction * pressure * (mp.sqrt(dot(u, u) + scale**2) - scale)
    return total


def on_segment(world, s, fraction, x, R):
    start, end = (place(world, p, x, R) for p in (s.start, s.end))
    return (1 - fraction) * start + fraction * end


def closest(world, pair, x, R):
    """Return the fractions of two segments at which the smooth distance is least, and it."""
    ends = [on_segment(world, s, mp.mpf(end), x, R) for s in pair for end in (0, 1)]
    barrier = mp.mpf(BARRIER) * sum(mp.mpf(s.radius) for s in pair) ** 2
    return least(tuple(np.concatenate(ends)), barrier)


@cache
def least(ends, barrier):
    a, end_a, b, end_b = np.reshape(np.array(ends), (4, 3))
    exact = (a - b, end_a - a, end_b - b, barrier)
    offset, e, f, _ = exact
    rounded = [np.array(each, dtype=float) for each in exact]

    def square(s, t, log, values):
        offset, e, f, barrier = values
        w = offset + s * e - t * f
        return dot(w, w) - barrier * log(16 * s * (1 - s) * t * (1 - t))

    # minimize over the logits of s and t, then refine by Newton's method with forty digits
    def sigmoid(y):
        return 1 / (1 + np.exp(-y))

    begin = minimize(
        lambda y: square(*sigmoid(y), np.log, rounded),
        [0, 0],
        method="Nelder-Mead",
        options={"xatol": 1e-5, "fatol": 1e-12},
    )
    s, t = (mp.mpf(each) for each in sigmoid(begin.x))
    for _ in range(6):
        w = offset + s * e - t * f
        slopes = [barrier * (1 / (1 - each) - 1 / each) for each in (s, t)]
        bends = [barrier * (1 / (1 - each) ** 2 + 1 / each**2) for each in (s, t)]
        g = mp.matrix([2 * dot(w, e) + slopes[0], -2 * dot(w, f) + slopes[1]])
        mixed = -2 * dot(e, f)
        H = mp.matrix([[2 * dot(e, e) + bends[0], mixed], [mixed, 2 * dot(f, f) + bends[1]]])
        step = mp.lu_solve(H, -g)
        s, t = s + step[0], t + step[1]
    assert max(abs(step[0]), abs(step[1])) < mp.mpf(10) ** -35
    return s, t, mp.sqrt(square(s, t, mp.log, exact))


def press(world, contact, pair, v, h, stiffness, friction):
    """Return the energy of contact and friction of two segments."""
    reach = sum(mp.mpf(s.radius) for s in pair)
    zero = mp.mpf(0)
    _, _, distance = closest(world, pair, v["x"], v["R"])
    total = stiffness / 2 * max(zero, reach - distance) ** 2
    x, R = v["past_x"][0], v["past_R"][0]
    *fractions, distance = closest(world, pair, x, R)
    pressure = stiffness * max(zero, reach - distance)
    if pressure == 0:
        return total
    a, b = (on_segment(world, s, u, x, R) for s, u in zip(pair, fractions, strict=True))
    n = (a - b) / norm(a - b)
    touching = (a * mp.mpf(pair[1].radius) + b * mp.mpf(pair[0].radius)) / reach
    ends = []
    for s, u, center in zip(pair, fractions, (a, b), strict=True):
        f = world.frames(s.owner).start + s.frame
        arm = v["R"][f].dot(R[f].T.dot(touching - center))
        ends.append(on_segment(world, s, u, v["x"], v["R"]) + arm)
    moved, scale = ends[0] - ends[1], h * mp.mpf(contact.slip)
    u = moved - dot(n, moved) * n
    return total + friction * pressure * (mp.sqrt(dot(u, u) + scale**2) - scale)
