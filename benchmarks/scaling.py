"""Growth of the time of a linearization: chains, free bodies, contacts, batches on threads."""

from collections.abc import Callable, Iterable, Iterator

import mujoco
import numpy as np

import mujacobian
from benchmarks import piles
from benchmarks.robots import random_data
from benchmarks.speed import transition_calls
from benchmarks.timing import beside_step, best, once

LINKS = (10, 20, 40, 60, 80, 100, 140, 200)
BODIES = (1, 2, 5, 10, 20, 50, 100)
CACHED = 100  # up to this nv the solve stays in the cache and costs the same per column
BATCH = 200
CROWDS: tuple[tuple[str, Callable[[], tuple[mujoco.MjModel, mujoco.MjData]]], ...] = (
    ("hand", piles.grasp),
    ("10 stacked", lambda: piles.stacks(10)),
    ("30 stacked", lambda: piles.stacks(30)),
    ("100 stacked", lambda: piles.stacks(100)),
    ("30 heaped", lambda: piles.heap(30)),
    ("100 heaped", lambda: piles.heap(100)),
    ("standing cylinders", lambda: piles.cylinders(lying=False, converged=False)),
    ("the same, converged", lambda: piles.cylinders(lying=False, converged=True)),
    ("lying cylinders", lambda: piles.cylinders(lying=True, converged=False)),
    ("the same, converged", lambda: piles.cylinders(lying=True, converged=True)),
)
AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


def chain(links: int) -> mujoco.MjModel:
    """Return a chain of hinges about x, y and z in turn, each with a motor."""
    spec = mujoco.MjSpec()
    body = spec.worldbody
    for k in range(links):
        body = body.add_body(
            pos=[0, 0, -0.2], mass=1, ipos=[0, 0, -0.1], inertia=[0.01, 0.01, 0.002]
        )
        body.explicitinertial = True
        body.add_joint(name=f"joint{k}", type=mujoco.mjtJoint.mjJNT_HINGE, axis=AXES[k % 3])
        spec.add_actuator(name=f"motor{k}", target=f"joint{k}", trntype=mujoco.mjtTrn.mjTRN_JOINT)
    return _without_constraints(spec)


def free_bodies(count: int) -> mujoco.MjModel:
    """Return a scene of free rigid bodies that do not touch."""
    spec = mujoco.MjSpec()
    for k in range(count):
        body = spec.worldbody.add_body(pos=[k, 0, 1], mass=1, inertia=[0.01, 0.02, 0.03])
        body.explicitinertial = True
        body.add_freejoint()
    return _without_constraints(spec)


def _without_constraints(spec: mujoco.MjSpec) -> mujoco.MjModel:
    model = spec.compile()
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    return model


def growth(
    build: Callable[[int], mujoco.MjModel], sizes: Iterable[int], rounds: int
) -> Iterator[dict[str, float]]:
    """Yield times per size: ours, mj_forward, writing dense outputs, everything but the solve."""
    for size in sizes:
        model = build(size)
        times = best(_calls(model, random_data(model, seed=size)), rounds)
        row = {"size": size, "nv": model.nv, **times}
        if model.nu and model.nv <= CACHED:
            # the time of the solve is proportional to its columns: nv for B, 2 nv for A
            row["unsolved"] = 2 * times["B"] - times["A"]
        yield row


def _calls(model: mujoco.MjModel, data: mujoco.MjData) -> dict[str, Callable[[], object]]:
    """Return the calls that are timed on one model."""
    A, B = np.zeros((2 * model.nv, 2 * model.nv)), np.zeros((2 * model.nv, model.nu))
    scratch = mujoco.MjData(model)
    mujoco.mj_copyData(scratch, model, data)
    calls: dict[str, Callable[[], object]] = {
        "ours": lambda: mujacobian.transition(model, data, A, B),
        "fill": lambda: (A.fill(0.0), B.fill(0.0)),
        "forward": lambda: mujoco.mj_forward(model, scratch),
    }
    if model.nu:
        calls["A"] = lambda: mujacobian.transition(model, data, A, forward=False)
        calls["B"] = lambda: mujacobian.transition(model, data, None, B, forward=False)
    return calls


def crowds(rounds: int) -> Iterator[dict[str, float | str]]:
    """Yield times of scenes with many contacts: a step, the derivative alone, differences."""
    for name, build in CROWDS:
        model, data = build()
        calls = transition_calls(model, data)
        nx = 2 * model.nv
        A = np.zeros((nx, nx))
        timed = {"bare": calls["bare"], "fill": lambda A=A: A.fill(0.0)}
        times = beside_step(model, data, timed, rounds)
        yield {
            "name": name,
            "nv": model.nv,
            "contacts": data.ncon,
            "islands": data.nisland,
            "fdc": once(calls["fdc"]),
            "per island": (times["bare"] - times["fill"]) / max(1, data.nisland),
            **times,
        }


def batch(model: mujoco.MjModel, rounds: int) -> dict[str, float]:
    """Return the microseconds per state of linearize_batch, on one thread and on two."""
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    states = np.empty((BATCH, mujoco.mj_stateSize(model, spec)))
    controls = np.empty((BATCH, model.nu))
    for k in range(BATCH):
        data = random_data(model, seed=k)
        mujoco.mj_getState(model, data, states[k], spec)
        controls[k] = data.ctrl
    times = best(
        {
            f"threads{n}": lambda n=n: mujacobian.linearize_batch(
                model, states, controls, threads=n
            )
            for n in (1, 2)
        },
        rounds,
    )
    one, two = times["threads1"] / BATCH, times["threads2"] / BATCH
    return {"states": BATCH, "one": one, "two": two, "speedup": one / two}
