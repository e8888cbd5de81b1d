"""Measurements of each core."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType

import numpy as np

from benchmarks.rods.cores import using
from examples import rods_perversion, rods_racket
from mujacobian import rods
from mujacobian._rotation import log, right_jacobian

Cores = dict[str, ModuleType]
SIZES = (100, 300, 1000, 3000, 10000)


@dataclass
class Step:
    """One step of a world: its start, and a state near its end."""

    world: rods.World
    previous: rods.State  # its velocities times the timestep are the previous step
    x: np.ndarray
    R: np.ndarray

    def arrays(self) -> list[object]:
        """Return the arguments of the cores: step, two earlier states, inputs, and (x, R)."""
        h, p = self.world.timestep, self.previous
        step = rods.exp(h * p.angular_velocities)
        past_x = np.stack([p.positions, p.positions - h * p.velocities])
        past_R = np.stack([p.rotations, np.swapaxes(step, -1, -2) @ p.rotations])
        inputs = [None, None, None, self.world.rest(), None]
        return [0, past_x, past_R, inputs, self.x, self.R]

    def time(self, core: ModuleType, repeats: int) -> tuple[float, float]:
        """Return the seconds of one assembly, and of one factorization and solve."""
        model = self.world.model()
        assembly, solve = core.rods_timings(model, *self.arrays(), repeats)
        return assembly, solve

    def derivatives(self, core: ModuleType) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient and the Hessian at (x, R)."""
        points, frames = np.empty_like(self.x), np.empty((len(self.R), 3))
        n = 3 * (len(points) + len(frames))
        hessian = np.empty((n, n))
        model = self.world.model()
        core.rods_evaluate_into(model, *self.arrays(), points, frames, hessian)
        return np.concatenate([points, frames]).ravel(), hessian


def middle(world: rods.World, trajectory: rods.Trajectory, k: int) -> Step:
    """Return step k of a trajectory, at the initial guess of Newton's method."""
    h = world.timestep
    x, R = trajectory.positions, trajectory.rotations
    turned = R[k] @ np.swapaxes(R[k - 1], -1, -2)
    previous = rods.State(x[k], R[k], (x[k] - x[k - 1]) / h, log(turned) / h)
    return Step(world, previous, 2 * x[k] - x[k - 1], np.ascontiguousarray(turned @ R[k]))


def in_each(cores: Cores, make: Callable[[], Step]) -> dict[str, Step]:
    """Return the same step for each core."""
    steps = {}
    for name, core in cores.items():
        with using(core):
            steps[name] = make()
    first = steps["lie"]
    return {
        name: replace(step, previous=first.previous, x=first.x, R=first.R)
        for name, step in steps.items()
    }


def best(calls: dict[str, Callable[[], np.ndarray]], rounds: int) -> dict[str, np.ndarray]:
    """Return the minimum of each number that the calls return; the calls take turns."""
    found: dict[str, np.ndarray] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            found[name] = np.minimum(call(), found.get(name, np.inf))
    return found


def disagreement(cores: Cores, steps: dict[str, Step]) -> float:
    """Return the difference of the gradients, after conversion to rotation vectors."""
    lie, _ = steps["lie"].derivatives(cores["lie"])
    points = 3 * len(steps["lie"].x)
    # exp(r + dr) = exp(Jl dr) exp(r) with Jl = Jr^T
    jacobian = right_jacobian(log(steps["lie"].R))
    turned = np.einsum("fij,fj->fi", jacobian, lie[points:].reshape(-1, 3))
    expected = np.concatenate([lie[:points], turned.ravel()])
    errors = [
        np.abs(steps[name].derivatives(cores[name])[0] - expected).max()
        for name in cores
        if name != "lie"
    ]
    return float(max(errors) / np.abs(expected).max())


def helical(cores: Cores, rounds: int) -> dict[str, np.ndarray]:
    """Return the microseconds of assembly and solve of the helical rod, and gradient errors."""

    def make() -> Step:
        world = rods_perversion.world(0.01)
        targets = rods_perversion.ends(1000)[:300]
        return middle(world, rods.rollout(world, targets=targets), 299)

    steps = in_each(cores, make)
    calls = {
        name: lambda name=name: 1e6 * np.array(steps[name].time(cores[name], 20)) for name in cores
    }
    return best(calls, rounds) | {"disagreement": disagreement(cores, steps)}


def inertia(cores: Cores, rounds: int, bodies: int = 500) -> dict[str, np.ndarray]:
    """Return the nanoseconds of the assembly of one free body, as a mean over many."""
    rng = np.random.default_rng(0)
    poses, spins = rods.exp(2 * rng.normal(size=(bodies, 3))), 5 * rng.normal(size=(bodies, 3))

    def make() -> Step:
        nuts = [
            rods.RigidBody(0.1, [1e-5, 2e-5, 2.8e-5], rotation=R, angular_velocity=w)
            for R, w in zip(poses, spins, strict=True)
        ]
        world = rods.World(timestep=0.01, gravity=(0, 0, 0), bodies=nuts)
        return middle(world, rods.rollout(world, steps=1), 1)

    steps = in_each(cores, make)
    calls = {
        name: lambda name=name: 1e9 / bodies * np.array(steps[name].time(cores[name], 50)[:1])
        for name in cores
    }
    return best(calls, rounds) | {"disagreement": disagreement(cores, steps)}


def simulation(cores: Cores, rounds: int, steps: int = 1000) -> dict[str, np.ndarray]:
    """Return the seconds and mean Newton iterations of the helical perversion."""

    def run(core: ModuleType) -> np.ndarray:
        with using(core):
            world = rods_perversion.world(0.01)
            begin = time.process_time()
            trajectory = rods.rollout(world, targets=rods_perversion.ends(1000)[:steps])
            taken = time.process_time() - begin
        return np.array([taken, trajectory.report.iterations.mean()])

    chosen = ("lie", "vectors")
    return best({name: lambda name=name: run(cores[name]) for name in chosen}, rounds)


def free_body(cores: Cores, timestep: float, steps: int = 2000) -> dict[str, dict[str, np.ndarray]]:
    """Return measurements along the flight of the nut, per core.

    They are the Newton iterations, the rotation angle, the condition number of the Hessian of
    inertia, and the residual after one iteration relative to the one before it.
    """
    made: dict[str, dict[str, np.ndarray]] = {}
    for name in ("lie", "vectors_analytic"):
        with using(cores[name]):
            nut = rods_racket.world(timestep)
            flight = rods.rollout(nut, steps=steps)
            chosen = range(1, steps, 10)
            rows = [_iteration(cores[name], cores["lie"], middle(nut, flight, k)) for k in chosen]
        numbers = np.array(rows).T
        angle = np.linalg.norm(log(flight.rotations[list(chosen), 0]), axis=-1)
        made[name] = {
            "iterations": flight.report.iterations,
            "angle": angle,
            "condition": numbers[0],
            "residual": numbers[1],
        }
    return made


def _iteration(core: ModuleType, lie: ModuleType, step: Step) -> tuple[float, float]:
    """Return the condition number, and the ratio of the torques after and before one iteration."""
    gradient, hessian = step.derivatives(core)
    gradient, hessian = gradient[3:], hessian[3:, 3:]
    move = -np.linalg.solve(hessian, gradient)
    R = step.R[0]
    after = rods.exp(move) @ R if core is lie else rods.exp(log(R) + move)
    torque = [_torque(lie, step, each) for each in (R, after)]
    return float(np.linalg.cond(hessian)), torque[1] / torque[0]


def _torque(lie: ModuleType, step: Step, R: np.ndarray) -> float:
    with using(lie):
        body = step.world.bodies[0]
        world = rods.World(timestep=step.world.timestep, gravity=(0, 0, 0), bodies=[body])
        moved = replace(step, world=world, R=np.ascontiguousarray(R[None]))
        return float(np.linalg.norm(moved.derivatives(lie)[0][3:]))


def growth(core: ModuleType, rounds: int, steps: int = 20) -> np.ndarray:
    """Return the microseconds per step and edge, for several numbers of edges."""

    def run(edges: int) -> np.ndarray:
        nodes = np.linspace([0, 0, 0], [edges / 20, 0, 0], edges + 1)
        rod = rods.Rod(
            nodes, 0.01 * edges, 0.02, stretch=2e3, shear=2e3, bend=[10, 10, 25], fixed_nodes=[0]
        )
        with using(core):
            world = rods.World(timestep=0.01, rods=[rod])
            begin = time.process_time()
            iterations = rods.rollout(world, steps=steps).report.iterations.sum()
            return np.array([1e6 * (time.process_time() - begin) / iterations / edges])

    found = best({str(n): lambda n=n: run(n) for n in SIZES}, rounds)
    return np.concatenate([found[str(n)] for n in SIZES])
