"""Rods in difficult situations: rounding, failures that name their place, interrupts, copies."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

from mujacobian import rods
from tests.scenes.rods_cases import everything, inputs, weights

BALL = {"mass": 0.5, "inertia": [5e-4] * 3}


def column(n, stretch, part=0.99):
    """Return a world with a clamped column and forces at a part of its buckling load."""
    x = np.concatenate([[-0.5 / n], 0.5 / n + np.arange(n) / n, [1.0]])
    rod = rods.Rod(
        np.stack([x, 0 * x, 0 * x], axis=1),
        mass=0.1,
        radius=0.01,
        stretch=stretch,
        shear=2 * stretch,
        bend=[1.0] * 3,
        fixed_nodes=[0, 1],
        fixed_edges=[0],
    )
    forces = np.zeros((6, len(x), 3))
    forces[:, -1] = [-part * np.pi**2 / 4, 0, 1e-6]
    return rods.World(timestep=1e3, gravity=(0, 0, 0), rods=[rod]), forces


@pytest.mark.parametrize("n", [20, 40, 60])
@pytest.mark.parametrize("stretch", [1e4, 1e6, 1e8, 1e9])
def test_rounding_does_not_stall_a_stiff_column(n, stretch):
    """The energy of a small strain has large rounding errors, so the slope must decide."""
    world, forces = column(n, stretch)
    trajectory = rods.rollout(world, forces=forces)
    assert trajectory.report.iterations.max() < 30
    assert 1e-5 < trajectory.positions[-1, -1, 2] < 1e-3  # it bends, but does not buckle


def test_a_failure_names_the_unknown_and_the_contact():
    floor = rods.RigidBody(**BALL, fixed=True)
    ball = rods.RigidBody(**BALL, position=[0, 0, 0.05], velocity=[0, 0, -30])
    points = [ball.at([0.04, 0, 0]), ball.at([0, 0.03, -0.04]), ball.at([0, 0, 0.04])]
    contacts = [
        rods.Contact([ball.at()], rods.Plane(offset=-5), 1),
        rods.Contact(points, rods.Sphere(1, [0, 0, -1]), 1e4, 0.5, body=floor),
    ]
    world = rods.World(timestep=0.01, bodies=[floor, ball], contacts=contacts)
    with pytest.raises(rods.ConvergenceError, match="at body 1, where point 1 of contact 1") as e:
        rods.rollout(world, steps=5, iterations=1)
    assert e.value.unknown == "body 1"
    assert e.value.contact == (1, 1)
    again = pickle.loads(pickle.dumps(e.value))
    assert (again.unknown, again.contact, str(again)) == ("body 1", (1, 1), str(e.value))
    report = rods.rollout(world, steps=5, iterations=1, strict=False).report
    failed = ~report.converged
    assert failed.any()
    assert all(bool(name) == bad for name, bad in zip(report.unknowns, failed, strict=True))


def test_a_failure_names_a_folded_node():
    """A soft cantilever folds at its clamp by more than 90 degrees."""
    nodes = np.linspace([0, 0, 0], [1, 0, 0], 51)
    area, second = np.pi * 2.5e-3**2, np.pi * 2.5e-3**4 / 4
    beam = rods.Rod(
        nodes,
        mass=1e3 * area,
        radius=2.5e-3,
        stretch=1e7 * area,
        shear=2 / 3 * 1e7 * area,
        bend=[1e7 * second, 1e7 * second, 2 / 3 * 1e7 * second],
        fixed_nodes=[0],
        fixed_edges=[0],
    )
    world = rods.World(timestep=0.01, rods=[beam])
    with pytest.raises(
        rods.ConvergenceError, match=r"Rod 0 is bent by 9\d degrees at node 1;"
    ) as e:
        rods.rollout(world, steps=100)
    assert "of rod 0" in e.value.unknown


INTERRUPTED = """
import os, signal, threading, time
import numpy as np
from mujacobian import rods
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
n = 1000
rod = rods.Rod(np.linspace([0, 0, 0], [n / 20, 0, 0], n + 1), 1, 0.02, stretch=2e3, shear=2e3,
               bend=[10, 10, 25], fixed_nodes=[0])
world = rods.World(timestep=0.01, rods=[rod])
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begin = time.process_time()
try:
    rods.rollout(world, steps=100_000)
except KeyboardInterrupt:
    print("interrupted", time.process_time() - begin)
"""

ALIVE = """
import builtins
from mujacobian import rods
body = rods.RigidBody(1, [1, 1, 1])
builtins.kept = rods.rollout(rods.World(timestep=0.1, bodies=[body]), steps=1)
"""


def run(script):
    return subprocess.run(
        [sys.executable, "-c", script], text=True, capture_output=True, timeout=120, check=True
    )


def test_an_interrupt_stops_a_rollout():
    word, seconds = run(INTERRUPTED).stdout.split()
    assert word == "interrupted"
    assert float(seconds) < 10


def test_a_trajectory_that_is_alive_at_exit_is_no_leak():
    assert run(ALIVE).stderr == ""


@pytest.mark.parametrize("shift", [(0, 0), (0.003, 0), (0.02, 0.01)])
def test_sampled_boxes_stand_on_each_other(shift):
    """The corners alone miss the lower box, and the upper one falls through it."""
    half = 0.05
    box = rods.Box([half] * 3)
    low = rods.RigidBody(0.2, [3e-4] * 3, position=[0, 0, half], fixed=True)
    high = rods.RigidBody(0.2, [3e-4] * 3, position=[*shift, 3 * half])
    contacts = [
        rods.Contact([a.at(p) for p in box.samples(0.05)], box, 1e4, 0.5, slip=1e-2, body=b)
        for a, b in ((high, low), (low, high))
    ]
    world = rods.World(timestep=2e-3, bodies=[low, high], contacts=contacts)
    trajectory = rods.rollout(world, steps=300)
    assert abs(trajectory.positions[-1, 1, 2] - 3 * half) < 1e-3


def test_crossed_bars_hold():
    """Only their edges cross, far from all corners."""
    bar = rods.Box([0.2, 0.02, 0.02])
    turned = rods.exp([0, 0, np.pi / 2]) @ rods.exp([np.pi / 4, 0, 0])
    low = rods.RigidBody(0.2, [1e-3] * 3, rotation=rods.exp([np.pi / 4, 0, 0]), fixed=True)
    high = rods.RigidBody(0.2, [1e-3] * 3, position=[0, 0, 0.04 * 2**0.5], rotation=turned)
    contacts = [
        rods.Contact([a.at(p) for p in bar.samples(0.01)], bar, 1e4, 0.5, slip=1e-2, body=b)
        for a, b in ((high, low), (low, high))
    ]
    world = rods.World(timestep=2e-3, bodies=[low, high], contacts=contacts)
    trajectory = rods.rollout(world, steps=100, strict=False)
    assert trajectory.positions[-1, 1, 2] > 0.05


def test_samples_of_a_box():
    turn = rods.exp([0.3, -0.2, 0.5])
    box = rods.Box([0.1, 0.2, 0.05], [1, 2, 3], turn)
    at = (box.samples(0.07) - [1, 2, 3]) @ turn
    counts = np.array([4, 7, 3])  # points along each edge
    assert len(at) == counts.prod() - (counts - 2).prod()
    over = np.abs(at) - [0.1, 0.2, 0.05]
    assert np.abs(over.max(axis=1)).max() < 1e-12  # on the surface
    assert ((np.abs(over) < 1e-12).all(axis=1)).sum() == 8  # with the corners
    with pytest.raises(ValueError, match="is too small"):
        box.samples(1e-6)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_worlds_and_trajectories_can_be_copied(copied):
    world = everything()
    trajectory = rods.rollout(world, **inputs(world))
    scalar = weights(trajectory)
    wanted = trajectory.gradient(*scalar)
    other = copied(world)
    assert (
        rods.rollout(other, **inputs(other)).positions.tobytes() == trajectory.positions.tobytes()
    )
    assert not np.asarray(other.rods[0].nodes).flags.writeable
    assert not np.asarray(other.contacts[0].shape.normal).flags.writeable
    again = copied(trajectory)
    assert again.gradient(*scalar).params.bend.tobytes() == wanted.params.bend.tobytes()
    assert again.energies().total.tobytes() == trajectory.energies().total.tobytes()
    assert not again.positions.flags.writeable
    assert again.world.points(again.world.rods[0]) == world.points(world.rods[0])
