"""Validate rods against closed forms and differential equations; print errors and orders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from scipy.integrate import solve_ivp
from scipy.linalg import eigh
from scipy.optimize import brentq

from mujacobian import _core, rods
from mujacobian._rotation import log, skew
from mujacobian.rods.model import compiled
from mujacobian.rods.trajectory import core_inputs

EXACT = 1e-7  # largest error of results that do not depend on the resolution
STIFF = 1e6  # stretch and shear of rods that are nearly inextensible, N


@dataclass
class Case:
    """Errors of a case at increasing resolutions."""

    name: str
    reference: str
    quantity: str  # what is refined
    resolutions: Sequence[int]
    errors: list[float]
    measure: str  # what the error is

    @property
    def order(self) -> float:
        """The order between the two finest resolutions; infinite for exact results."""
        if max(self.errors) < EXACT:
            return np.inf
        fine, coarse = self.errors[-1], self.errors[-2]
        return float(np.log(coarse / fine) / np.log(self.resolutions[-1] / self.resolutions[-2]))


def straight(n: int, **options: object) -> rods.Rod:
    """Return a straight rod of length one along x."""
    given: dict[str, object] = {
        "mass": 0.3,
        "radius": 0.01,
        "stretch": STIFF,
        "shear": STIFF,
        "bend": [1, 1, 1],
        "bending": "tangent",
    }
    nodes = np.linspace([0, 0, 0], [1, 0, 0], n + 1)
    return rods.Rod(nodes, **(given | options))  # type: ignore[arg-type]


def settle(world: rods.World, force: Sequence[float], pieces: int = 20) -> rods.Equilibrium:
    """Return the equilibrium under a force at the last point, which grows in pieces."""
    state, forces = world.state(), np.zeros((world.n_points, 3))
    for part in np.arange(1, pieces + 1) / pieces:
        forces[-1] = part * np.asarray(force)
        made = rods.equilibrium(world, state, forces=forces)
        state = made.state
    return made


def elastica(load: float) -> Case:
    """Tip of a clamped beam under a transverse load, P L^2 / EI = load."""

    def bent(_: float, y: np.ndarray) -> list[float]:
        return [y[1], -load * np.cos(y[0]), np.cos(y[0]), np.sin(y[0])]

    def shoot(first: float) -> np.ndarray:
        made = solve_ivp(bent, (0, 1), [0, first, 0, 0], rtol=1e-12, atol=1e-12)
        last: np.ndarray = made.y[:, -1]
        return last

    exact = shoot(brentq(lambda first: shoot(first)[1], 0, load + 1, xtol=1e-13))[2:]
    errors, counts = [], (10, 20, 40, 80)
    for n in counts:
        world = rods.World(timestep=1, gravity=(0, 0, 0), rods=[straight(n, clamp_start=True)])
        tip = settle(world, [0, 0, load]).positions[-1]
        errors.append(float(np.hypot(tip[0] - exact[0], tip[2] - exact[1])))
    return Case(f"elastica, P L^2/EI = {load:g}", "shooting", "edges", counts, errors, "tip / L")


def hessian_at(world: rods.World, made: rods.Equilibrium) -> tuple[np.ndarray, np.ndarray]:
    """Return the Hessian of the potential energy and the mass matrix of the free unknowns."""
    n = 3 * (world.n_points + world.n_frames)
    x, R = made.positions, made.rotations
    model = compiled(world, world.parameters(), order=0)
    full = np.empty((n, n))
    halves = np.empty((world.n_points, 3)), np.empty((world.n_frames, 3))
    rows = core_inputs(world, made.inputs)
    past = np.stack([x, x]), np.stack([R, R])
    _core.rods_evaluate_into(model, 0, *past, rows, x, R, *halves, full)
    p = world.parameters()
    mass = np.zeros((n, n))
    mass[: 3 * world.n_points, : 3 * world.n_points] = np.diag(np.repeat(p.mass, 3))
    for k in range(world.n_frames):
        at = slice(3 * (world.n_points + k), 3 * (world.n_points + k) + 3)
        mass[at, at] = R[k] @ p.inertia[k] @ R[k].T
    free = np.repeat(np.concatenate(world.fixed()), 3) == 0
    return full[np.ix_(free, free)], mass[np.ix_(free, free)]


def buckling() -> Case:
    """Load at which the smallest eigenvalue of a clamped column is zero."""
    exact, errors, counts = np.pi**2 / 4, [], (10, 20, 40, 80)
    for n in counts:
        world = rods.World(timestep=1, gravity=(0, 0, 0), rods=[straight(n, clamp_start=True)])

        def smallest(load: float, world: rods.World = world) -> float:
            made = settle(world, [-load, 0, 0], 1)
            return float(np.linalg.eigvalsh(hessian_at(world, made)[0])[0])

        found = brentq(smallest, 0.8 * exact, 1.2 * exact, xtol=1e-10)
        errors.append(abs(found / exact - 1))
    return Case("Euler column", "pi^2 EI/(4 L^2)", "edges", counts, errors, "relative load")


def frequency(kind: str) -> Case:
    """Lowest frequency of a clamped rod in bending or torsion."""
    errors, counts, r, m = [], (10, 20, 40, 80), 1e-3, 0.3
    bend = [1, 1, 1] if kind == "bending" else [1e3, 1e3, 1e-6]
    exact = 1.8751040687119611**2 * np.sqrt(1 / m)
    if kind == "torsion":
        exact = np.pi / 2 * np.sqrt(1e-6 / (m * r**2 / 2))
    for n in counts:
        rod = straight(n, clamp_start=True, bend=bend, mass=m, radius=r)
        world = rods.World(timestep=1, gravity=(0, 0, 0), rods=[rod])
        squares = eigh(*hessian_at(world, rods.equilibrium(world)), eigvals_only=True)
        errors.append(abs(float(np.sqrt(squares[0])) / exact - 1))
    reference = "1.875^2 sqrt(EI/(m L^3))" if kind == "bending" else "pi/(2 L) sqrt(GJ/(rho Ip))"
    return Case(f"{kind} frequency, clamped", reference, "edges", counts, errors, "relative")


def catenary() -> Case:
    """Sag of a rope whose length is 1.5 times its span."""
    span = 1 / 1.5
    a = brentq(lambda a: 2 * a * np.sinh(span / (2 * a)) - 1, 0.05, 10, xtol=1e-14)
    exact, errors, counts = a * (np.cosh(span / (2 * a)) - 1), [], (20, 40, 80)
    for n in counts:
        s = np.linspace(-0.5, 0.5, n + 1)
        nodes = np.stack([a * np.arcsinh(s / a), 0 * s, np.sqrt(a**2 + s**2)], axis=1)
        rope = rods.Rod(
            nodes,
            mass=1,
            radius=1e-3,
            stretch=1e7,
            shear=1,
            bend=[1e-7] * 3,
            rest_lengths=np.full(n, 1 / n),
            rest_curvature=[0, 0, 0],
            fixed_nodes=[0, n],
        )
        made = rods.equilibrium(rods.World(timestep=1, rods=[rope]))
        sag = made.positions[0, 2] - made.positions[n // 2, 2]
        errors.append(abs(float(sag) / exact - 1))
    return Case("catenary, L = 1.5 span", "closed form", "edges", counts, errors, "relative sag")


def spring() -> Case:
    """Extension of a helical spring with two turns under an axial load."""
    R, pitch, turns, load = 0.1, 0.01, 2, 1e-3
    slope, errors, counts = np.arctan(pitch / (2 * np.pi * R)), [], (12, 24, 48, 96)
    length = turns * 2 * np.pi * R / np.cos(slope)
    exact = load * R**2 * length  # EI = GJ = 1
    for each in counts:
        t = np.linspace(0, 2 * np.pi * turns, each * turns + 1)
        nodes = np.stack([R * np.cos(t), R * np.sin(t), pitch * t / (2 * np.pi)], axis=1)
        wire = rods.Rod(
            nodes,
            1,
            1e-3,
            stretch=STIFF,
            shear=STIFF,
            bend=[1, 1, 1],
            clamp_start=True,
            bending="tangent",
        )
        top = rods.RigidBody(1, [1, 1, 1], position=[0, 0, nodes[-1, 2]])
        end = wire.frame(-1)
        axes = np.asarray(wire.frames)[-1]
        links = [
            rods.Attachment(wire.node(-1), top.at([R, 0, 0]), 1e6),
            # the last half of an edge bends, too
            rods.Weld(end, top.frame, 2 / wire.rest_lengths[-1], second_axes=axes),
        ]
        world = rods.World(
            timestep=1, gravity=(0, 0, 0), rods=[wire], bodies=[top], attachments=links
        )
        made = settle(world, [0, 0, load], 1)
        errors.append(abs(float(made.positions[-1, 2] - nodes[-1, 2]) / exact - 1))
    reference = "P R^2 L / EI, with EI = GJ"
    return Case("helical spring", reference, "edges per turn", counts, errors, "relative")


def top(integrator: str) -> Case:
    """Orientation of a free body with three different moments after one second at 5 rad/s."""
    moments, spin = np.array([1.0, 2.0, 2.5]), np.array([0.3, 5.0, 0.2])

    def rates(_: float, y: np.ndarray) -> np.ndarray:
        R = y[:9].reshape(3, 3)
        w = R @ (R.T @ y[9:] / moments)
        return np.concatenate([(skew(w) @ R).ravel(), np.zeros(3)])

    start = np.concatenate([np.eye(3).ravel(), moments * spin])
    end = solve_ivp(rates, (0, 1), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:9, -1]
    errors, counts = [], (200, 400, 800, 1600)
    for steps in counts:
        body = rods.RigidBody(1, moments, angular_velocity=spin)
        world = rods.World(
            timestep=1 / steps, gravity=(0, 0, 0), bodies=[body], integrator=integrator
        )
        R = rods.rollout(world, steps=steps).rotations[-1, 0]
        errors.append(float(np.linalg.norm(log(R @ end.reshape(3, 3).T))))
    return Case(f"Euler top, {integrator}", "scipy DOP853", "steps", counts, errors, "rad")


def swing(integrator: str) -> Case:
    """Tip of a damped beam that falls for 0.3 s; the reference is extrapolated BDF2."""

    def tip(steps: int, integrator: str) -> np.ndarray:
        beam = straight(
            10, mass=0.5, stretch=1e3, shear=1e3, bend=[0.1] * 3, bend_damping=2e-3,
            clamp_start=True,
        )  # fmt: skip
        world = rods.World(timestep=0.3 / steps, rods=[beam], integrator=integrator)
        last: np.ndarray = rods.rollout(world, steps=steps).positions[-1, -1]
        return last

    exact = (4 * tip(6400, "bdf2") - tip(3200, "bdf2")) / 3
    counts = (100, 200, 400, 800)
    errors = [float(np.linalg.norm(tip(steps, integrator) - exact)) for steps in counts]
    return Case(f"falling beam, {integrator}", "extrapolation", "steps", counts, errors, "m")


def rolling() -> Case:
    """Speed of a sphere that has slid at 1 m/s and rolls."""
    errors, counts = [], (500, 1000, 2000, 4000)
    for steps in counts:
        at = [0, 0, 0.05 - 0.5 * 9.81 / 1e4]
        ball = rods.RigidBody(0.5, [5e-4] * 3, position=at, velocity=[1, 0, 0])
        floor = rods.Contact([ball.at()], rods.Plane(), 1e4, 0.3, radius=0.05, slip=1e-4)
        world = rods.World(timestep=0.4 / steps, bodies=[ball], contacts=[floor], integrator="bdf2")
        v = rods.rollout(world, steps=steps).state.velocities[0, 0]
        errors.append(abs(float(v) - 5 / 7))
    return Case("rolling sphere, bdf2", "5/7 of its speed", "steps", counts, errors, "m/s")


def slope() -> Case:
    """Acceleration of a block on a slope of 35 degrees with the coefficient 0.5."""
    angle, errors, counts = np.radians(35), [], (100, 200, 400)
    exact = 9.81 * (np.sin(angle) - 0.5 * np.cos(angle))
    gravity = 9.81 * np.array([np.sin(angle), 0, -np.cos(angle)])
    for steps in counts:
        depth = 9.81 * np.cos(angle) / 4 / 1e4
        block = rods.RigidBody(1, [0.1] * 3, position=[0, 0, 0.05 - depth], velocity=[1, 0, 0])
        feet = [block.at([x, y, -0.05]) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]
        floor = rods.Contact(feet, rods.Plane(), 1e4, 0.5, slip=1e-4)
        world = rods.World(
            timestep=0.4 / steps, gravity=gravity, bodies=[block], contacts=[floor],
            integrator="bdf2",
        )  # fmt: skip
        v = rods.rollout(world, steps=steps).velocities[:, 0, 0]
        middle = steps // 2
        errors.append(abs((v[-1] - v[middle]) / 0.2 / exact - 1))
    return Case("slope of 35 degrees", "g (sin - mu cos)", "steps", counts, errors, "relative")


CASES: list[Callable[[], Case]] = [
    lambda: elastica(1.0),
    lambda: elastica(5.0),
    buckling,
    lambda: frequency("bending"),
    lambda: frequency("torsion"),
    spring,
    catenary,
    lambda: top("backward_euler"),
    lambda: top("bdf2"),
    lambda: swing("backward_euler"),
    lambda: swing("bdf2"),
    rolling,
    slope,
]


def main() -> None:
    """Print the table of all cases."""
    table = Table(box=box.MARKDOWN)
    for column in ("case", "reference", "refined", "errors", "of", "order"):
        table.add_column(column)
    for make in CASES:
        case = make()
        steps = f"{case.quantity} {', '.join(map(str, case.resolutions))}"
        errors = ", ".join(f"{e:.1e}" for e in case.errors)
        order = "exact" if np.isinf(case.order) else f"{case.order:.2f}"
        table.add_row(case.name, case.reference, steps, errors, case.measure, order)
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
