"""Solve five planning problems from random controls: python -m benchmarks.planners.

Every solve has the default settings, one thread and 100 iterations. `--against PYTHON` runs the
same problems with the mujacobian of another environment, in turns, and compares processor times.
"""

import argparse
import copy
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np

from mujacobian import control
from mujacobian.control import tasks

ITERATIONS = 100
SPLINE = 9  # points of the random controls, which are interpolated linearly
SMALL = 0.02  # size of the first random controls, relative to half the range
NEAR = 1.02  # costs up to this factor of the best one belong to the best plans
LEGS = ("FL", "RL", "FR", "RR")

HOPPER = """
<mujoco>
  <option timestep=".01" integrator="implicitfast" cone="elliptic"/>
  <default>
    <joint axis="0 -1 0" damping="1" armature=".05"/>
    <geom type="capsule" size=".05" friction=".9" solimp="0 .95 .02"/>
    <motor gear="200" ctrlrange="-1 1"/>
  </default>
  <worldbody>
    <geom type="plane" size="20 2 .1"/>
    <body name="torso" pos="0 0 1.25">
      <joint name="x" type="slide" axis="1 0 0" damping="0" armature="0"/>
      <joint name="z" type="slide" axis="0 0 1" damping="0" armature="0"/>
      <joint name="pitch" axis="0 1 0" damping="0" armature="0"/>
      <geom fromto="0 0 .2 0 0 -.2"/>
      <site name="torso"/>
      <body pos="0 0 -.2">
        <joint name="hip" range="-150 20"/>
        <geom fromto="0 0 0 0 0 -.45"/>
        <body pos="0 0 -.45">
          <joint name="knee" range="-150 0"/>
          <geom fromto="0 0 0 0 0 -.5" size=".04"/>
          <body pos="0 0 -.5">
            <joint name="ankle" range="-45 45"/>
            <geom fromto="-.13 0 -.04 .26 0 -.04" size=".06"/>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="hip"/><motor joint="knee"/><motor joint="ankle"/>
  </actuator>
  <sensor>
    <framepos name="position" objtype="site" objname="torso"/>
    <framezaxis name="up" objtype="site" objname="torso"/>
    <framelinvel name="velocity" objtype="site" objname="torso"/>
  </sensor>
</mujoco>
"""
PUSH = """
<mujoco>
  <option timestep=".01" integrator="implicitfast"/>
  <default><geom solimp="0 .95 .001"/></default>
  <worldbody>
    <geom type="plane" size="2 2 .1"/>
    <body pos="-.2 0 .05">
      <joint name="tip_x" type="slide" axis="1 0 0" damping="2"/>
      <joint name="tip_y" type="slide" axis="0 1 0" damping="2"/>
      <geom name="tip" type="sphere" size=".03" mass=".5"/>
    </body>
    <body pos="0 0 .05">
      <joint name="x" type="slide" axis="1 0 0"/>
      <joint name="y" type="slide" axis="0 1 0"/>
      <joint type="slide" axis="0 0 1"/>
      <joint axis="0 0 1"/>
      <geom type="box" size=".07 .07 .05" mass="1" friction=".5"/>
      <site name="box"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="tip_x" ctrlrange="-20 20"/><motor joint="tip_y" ctrlrange="-20 20"/>
  </actuator>
  <sensor>
    <framepos name="box" objtype="site" objname="box"/>
    <framexaxis name="axis" objtype="site" objname="box"/>
    <framepos name="tip" objtype="geom" objname="tip"/>
    <jointvel name="vx" joint="x"/>
    <jointvel name="vy" joint="y"/>
  </sensor>
</mujoco>
"""


class Problem(NamedTuple):
    """A planning problem, and the size of its random controls, relative to half the range."""

    model: mujoco.MjModel
    cost: control.Cost
    horizon: int
    data: mujoco.MjData
    size: float


class Solved(NamedTuple):
    """The result of one solve, whose time is processor time in seconds."""

    cost: float
    iterations: int
    seconds: float


def main() -> None:
    """Solve the problems and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planners", description=__doc__)
    parser.add_argument("problems", nargs="*", help=f"by default all: {', '.join(PROBLEMS)}")
    parser.add_argument("--starts", type=int, default=10, help="number of random controls")
    parser.add_argument("--first", type=int, default=0, help="seed of the first random controls")
    parser.add_argument("--against", metavar="PYTHON", help="Python of another environment")
    parser.add_argument("--json", action="store_true", help="print the results of all solves")
    arguments = parser.parse_args()
    names = arguments.problems or list(PROBLEMS)
    seeds = range(arguments.first, arguments.first + arguments.starts)
    if arguments.json:
        print(json.dumps({name: list(solve(name, seeds)) for name in names}))
        return
    if arguments.against:
        compare(names, seeds, arguments.against)
        return
    print("| problem | knots | median cost | lowest | highest | best plans | iterations | s |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in names:
        horizon = PROBLEMS[name]().horizon
        print(f"| {name} | {horizon} | {row(list(solve(name, seeds)))} |", flush=True)


def row(solved: list[Solved]) -> str:
    """Return the columns of a table that describe the solves of one problem."""
    costs, iterations, seconds = np.array(solved).T
    near = int((costs <= NEAR * costs.min()).sum())
    return (
        f"{np.median(costs):.4g} | {costs.min():.4g} | {costs.max():.4g} | {near} of {len(costs)} "
        f"| {np.median(iterations):.0f} | {seconds.mean():.2f}"
    )


def compare(names: list[str], seeds: range, python: str) -> None:
    """Print medians of this environment and of another one, which take turns at every start."""
    print("| problem | median cost | of the other | processor time, ratio to the other |")
    print("|---|---:|---:|---:|")
    for name in names:
        own, other = [], []
        for seed in seeds:
            own += _in_process(sys.executable, name, seed)
            other += _in_process(python, name, seed)
        costs, times = (
            [[each[k] for each in solved] for solved in (own, other)] for k in ("cost", "seconds")
        )
        ratio = sum(times[0]) / sum(times[1])
        print(
            f"| {name} | {np.median(costs[0]):.4g} | {np.median(costs[1]):.4g} | {ratio:.2f} |",
            flush=True,
        )


def _in_process(python: str, name: str, seed: int) -> list[dict[str, float]]:
    """Return the result of a solve in a process of its own."""
    options = ["--json", "--starts", "1", "--first", str(seed)]
    out = subprocess.run(
        [python, "-W", "ignore", "-m", "benchmarks.planners", name, *options],
        cwd=Path(__file__).parents[1],
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    return [Solved(*each)._asdict() for each in json.loads(out)[name]]


def solve(name: str, seeds: range) -> Iterator[Solved]:
    """Yield the results from random initial controls with these seeds."""
    problem = PROBLEMS[name]()
    for seed in seeds:
        controls = random_controls(problem, seed)
        begun = time.process_time()
        planner = control.ILQR(problem.model, problem.cost, problem.horizon, threads=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MuJoCo's solver along trajectories on the way
            plan = planner.solve(problem.data, controls=controls, iterations=ITERATIONS)
        yield Solved(plan.cost, len(plan.history.cost), time.process_time() - begun)


def random_controls(problem: Problem, seed: int) -> np.ndarray:
    """Return controls around the `ctrl` of the initial state, which are small for seed 0."""
    lower, upper = problem.model.actuator_ctrlrange.T
    size = problem.size if seed else SMALL
    drawn = np.random.default_rng(seed).normal(size=(SPLINE, len(lower)))
    points = size * (upper - lower) / 2 * drawn
    times, at = np.linspace(0, 1, SPLINE), np.linspace(0, 1, problem.horizon - 1)
    smooth = np.stack([np.interp(at, times, column) for column in points.T], axis=1)
    return (smooth + problem.data.ctrl).clip(lower, upper)


def cartpole() -> Problem:
    """Return the swing-up of the task."""
    return _of_task("cartpole", 0.5)


def arm() -> Problem:
    """Return the reach around a bollard of the task."""
    return _of_task("arm", 0.3)


def jump() -> Problem:
    """Return a jump of the Unitree A1 in place."""
    problem = _of_task("a1_trot", 0.2)
    model = problem.model
    joints = [f"{leg}_{joint}" for leg in LEGS for joint in ("abduction", "hip", "knee")]
    angles = control.stack(*(control.sensor(model, f"{joint}_angle") for joint in joints))
    torques = control.stack(*(control.sensor(model, f"{joint}_torque") for joint in joints))
    trunk, up = control.sensor(model, "trunk"), control.sensor(model, "up")
    home = model.key("home").qpos[7:]
    terms = [
        control.Term("height", trunk[2], control.SmoothAbs(0.05), 5.0, _jump_height),
        control.Term("up", up - [0, 0, 1], control.Quadratic(), 2.0),
        control.Term("place", trunk[:2], control.Quadratic(), 2.0),
        control.Term("posture", angles - home, control.Quadratic(), 0.02),
        control.Term("effort", 0.02 * torques, control.Quadratic(), 0.03),
    ]
    return problem._replace(cost=control.Cost(model, terms), horizon=60)


def _jump_height(times: np.ndarray) -> np.ndarray:
    """Return the desired height of the trunk: in the air, then after the landing."""
    is_high, is_over = (times > 0.28) & (times < 0.34), times > 0.52
    return np.where(is_high, 0.5, np.where(is_over, 0.27, np.nan))[:, None]


def hopper() -> Problem:
    """Return a planar hopper that should move at 1 m/s."""
    model = mujoco.MjModel.from_xml_string(HOPPER)
    data = mujoco.MjData(model)
    data.qpos[1], data.qpos[3:] = -0.1, (-0.4, -0.8, 0.4)
    place, up = control.sensor(model, "position"), control.sensor(model, "up")
    speed = control.sensor(model, "velocity")[0]
    terms = [
        control.Term("speed", speed, control.SmoothAbs(0.2), 1.0, 1.0),
        control.Term("height", place[2], control.SmoothAbs(0.1), 2.0, 1.15),
        control.Term("up", up[0], control.Quadratic(), 1.0),
        control.Term("effort", control.controls(model), control.Quadratic(), 0.05),
    ]
    return Problem(model, control.Cost(model, terms), 80, data, 0.3)


def push() -> Problem:
    """Return a ball that pushes a box to a place, with contacts that are 1 mm wide."""
    model = mujoco.MjModel.from_xml_string(PUSH)
    box, axis = control.sensor(model, "box"), control.sensor(model, "axis")
    away = (box - control.sensor(model, "tip"))[:2]
    speeds = control.stack(control.sensor(model, "vx"), control.sensor(model, "vy"))
    terms = [
        control.Term("place", 10 * box[:2], control.L2(0.1), 2.0, (3.0, 1.5)),
        control.Term("turn", axis[1], control.Quadratic(), 0.5),
        control.Term("near", 10 * away, control.L2(0.5), 0.2),
        control.Term("still", speeds, control.Quadratic(), 0.05),
        control.Term("effort", control.controls(model) / 20, control.Quadratic(), 0.05),
    ]
    return Problem(model, control.Cost(model, terms), 100, mujoco.MjData(model), 0.2)


def _of_task(name: str, size: float) -> Problem:
    """Return the problem of a task, whose contacts have the width of the simulated model."""
    task = tasks.load(name)
    model = copy.copy(task.planned)
    model.geom_solimp[:, 2] = task.model.geom_solimp[:, 2]
    return Problem(model, task.cost, task.horizon, task.start(None), size)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "cartpole": cartpole,
    "arm": arm,
    "jump": jump,
    "hopper": hopper,
    "push": push,
}

if __name__ == "__main__":
    main()
