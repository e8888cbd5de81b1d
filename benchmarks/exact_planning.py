"""Compare planning with Gauss-Newton and with exact Hessians: python -m benchmarks.exact_planning.

Four small problems are solved to the optimum. With MENAGERIE_ROOT, an iiwa reaches for a pose as in
the literature. The gradient is the largest derivative of the cost with respect to a control,
relative to its value along the first trajectory. `--price` measures an iteration on the trotting A1
instead, and `--trot` its closed loop.
"""

import argparse
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import mujoco
import numpy as np

import mujacobian
from benchmarks.timing import processor
from mujacobian.control import (
    ILQR,
    MPC,
    Cost,
    MPCResult,
    Plan,
    Term,
    controls,
    sensor,
    stack,
    tasks,
)
from mujacobian.control.sensitivity import control_gradient, costates
from mujacobian.control.term import Schedule

HESSIANS = ("gauss-newton", "auto", "exact")
TOLERANCE = 1e-15  # of the expected decrease, relative to the cost
MOST = 300  # iterations
KNOTS = 36  # of the trotting A1

ARM = """
<mujoco>
  <option timestep=".02" integrator="implicitfast"/>
  <default><geom type="capsule" size=".03" contype="0" conaffinity="0"/></default>
  <worldbody>
    <body>
      <joint name="a" axis="0 1 0" damping=".1"/><geom fromto="0 0 0 .4 0 0" mass="1"/>
      <body pos=".4 0 0">
        <joint name="b" axis="0 1 0" damping=".1"/><geom fromto="0 0 0 .4 0 0" mass="1"/>
        <body pos=".4 0 0">
          <joint name="c" axis="0 0 1" damping=".05"/><geom fromto="0 0 0 .3 0 0" mass=".5"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="a" gear="10"/><motor joint="b" gear="10"/><motor joint="c" gear="5"/>
  </actuator>
</mujoco>
"""
CART = """
<mujoco>
  <option timestep=".02" integrator="implicitfast"/>
  <default><geom contype="0" conaffinity="0"/></default>
  <worldbody>
    <body>
      <joint name="s" type="slide" axis="1 0 0" damping=".05"/>
      <geom type="box" size=".1 .05 .05" mass="1"/>
      <body>
        <joint name="h" axis="0 1 0" damping=".01"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.6" size=".03" mass=".3"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="s" gear="10"/></actuator>
</mujoco>
"""
TIP = """
<mujoco>
  <option timestep=".01" cone="{}" iterations="60" tolerance="0"/>
  <default>
    <geom solimp="0 .95 .01" solref=".03 1" friction=".5"/><joint armature=".02" damping=".3"/>
    <default class="link">
      <geom type="capsule" size=".03" mass="1" contype="0" conaffinity="0"/>
    </default>
  </default>
  <worldbody>
    <geom type="plane" size="9 9 .1"/>
    <body pos="0 0 .5">
      <joint name="a" axis="0 1 0"/><geom class="link" fromto="0 0 0 .4 0 0"/>
      <body pos=".4 0 0">
        <joint name="b" axis="0 1 0"/><geom class="link" fromto="0 0 0 .4 0 0"/>
        <body name="tip" pos=".4 0 0">
          <joint name="c" axis="0 0 1"/>
          <geom size=".05" mass=".2"/><geom pos="0 .1 0" size=".05" mass=".2"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="a" gear="20"/><motor joint="b" gear="20"/><motor joint="c" gear="2"/>
  </actuator>
</mujoco>
"""


@dataclass(frozen=True)
class Problem:
    """Reach a goal with quadratic costs of states and controls, and of the last state."""

    name: str
    model: mujoco.MjModel
    start: np.ndarray  # (2 nv,)
    goal: np.ndarray
    running: np.ndarray  # weights of the state, (2 nv,)
    effort: np.ndarray  # weights of the controls, (nu,)
    final: np.ndarray  # weights of the last state
    guess: np.ndarray  # controls, (T - 1, nu)

    def planner(self, hessian: str) -> ILQR:
        """Return the planner with one kind of Hessian."""
        m, T = self.model, len(self.guess) + 1
        names = [m.joint(j).name for j in range(m.njnt)]
        state = stack(*(sensor(m, f"{kind}_{name}") for kind in "qv" for name in names))
        end = (T - 1.5) * m.opt.timestep

        def before(target: np.ndarray) -> Schedule:
            return lambda t: np.where((t < end)[:, None], target, np.nan)

        def at(target: np.ndarray) -> Schedule:
            return lambda t: np.where((t > end)[:, None], target, np.nan)

        w, f, e = np.sqrt(self.running), np.sqrt(self.final), np.sqrt(self.effort)
        terms = [
            Term("running", state * w, weight=T, target=before(w * self.goal)),
            Term("effort", controls(m) * e, weight=T, target=before(0 * e)),
            Term("final", state * f, weight=T, target=at(f * self.goal)),
        ]
        return ILQR(m, Cost(m, terms), T, hessian=hessian, tolerance=TOLERANCE, threads=1, mu=1e-3)


def with_sensors(xml: str) -> mujoco.MjModel:
    """Return a model with sensors q_NAME and v_NAME of every joint."""
    return _sensed(mujoco.MjSpec.from_string(xml))


def _sensed(spec: mujoco.MjSpec) -> mujoco.MjModel:
    kinds = {"q": mujoco.mjtSensor.mjSENS_JOINTPOS, "v": mujoco.mjtSensor.mjSENS_JOINTVEL}
    for kind, type_ in kinds.items():
        for joint in spec.joints:
            spec.add_sensor(
                name=f"{kind}_{joint.name}",
                type=type_,
                objtype=mujoco.mjtObj.mjOBJ_JOINT,
                objname=joint.name,
            )
    return spec.compile()


def problems() -> Iterator[Problem]:
    """Yield the problems: sliding tips, a reaching arm, a cart-pole, an iiwa."""
    for cone in ("elliptic", "pyramidal"):
        yield sliding_tip(cone)
    v = np.ones(3)
    yield Problem(
        "arm reaches", with_sensors(ARM), np.zeros(6), np.array([1.2, -1.5, 0.8, 0, 0, 0]),
        0.02 * np.r_[0.1 * v, 0.01 * v], 0.02 * v, np.r_[100 * v, 10 * v], np.zeros((60, 3)),
    )  # fmt: skip
    yield Problem(
        "cart-pole swings up", with_sensors(CART), np.zeros(4), np.array([0, np.pi, 0, 0]),
        np.array([0.01, 0.01, 0.001, 0.001]), np.array([0.01]), np.array([50, 100, 10, 10.0]),
        0.1 * np.random.default_rng(0).standard_normal((100, 1)),
    )  # fmt: skip
    if root := os.environ.get("MENAGERIE_ROOT"):
        yield iiwa(Path(root) / "kuka_iiwa_14" / "iiwa14.xml")


def sliding_tip(cone: str) -> Problem:
    """Return an arm whose tip slides on a plane under a pressing force."""
    m = with_sensors(TIP.format(cone))

    def pose(a: float, height: float) -> list[float]:
        return [a, np.arcsin((0.5 - height - 0.4 * np.sin(a)) / 0.4) - a]

    start, goal = pose(0.9, 0.0495), pose(0.7, 0.0485)
    data = mujoco.MjData(m)
    data.qpos[:2] = start
    mujoco.mj_forward(m, data)
    J = np.zeros((3, m.nv))
    mujoco.mj_jacBody(m, data, J, None, m.body("tip").id)
    press = (data.qfrc_bias + J.T @ [0, 0, -12.0]) / m.actuator_gear[:, 0]
    return Problem(
        f"tip slides, {cone} cone", m, np.r_[start, np.zeros(4)], np.r_[goal, 0.3, np.zeros(3)],
        0.02 * np.r_[1, 1, 1, 0.01, 0.01, 0.01], 0.02 * np.ones(3),
        np.array([100, 100, 50, 5, 5, 5.0]), np.tile(press, (50, 1)),
    )  # fmt: skip


def iiwa(path: Path) -> Problem:
    """Return an iiwa with torque motors that compensates gravity and moves far in 2 s."""
    spec = mujoco.MjSpec.from_file(str(path))
    for element in [*spec.actuators, *spec.keys]:
        spec.delete(element)
    for body in spec.bodies:
        body.gravcomp = 1
    for joint in spec.joints:
        spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    spec.option.timestep = 0.01
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    v = np.ones(7)
    return Problem(
        "iiwa reaches", _sensed(spec), np.r_[0.1, 0.7, 0, -0.6, 0, 0.9, 0, 0 * v],
        np.r_[-0.6, -0.2, -0.5, 1.4, -0.3, -0.4, -0.5, 0 * v], 1e-4 * np.r_[v, 0.1 * v], 1e-5 * v,
        np.r_[100 * v, 10 * v], np.zeros((200, 7)),
    )  # fmt: skip


def gradient(planner: ILQR, start: np.ndarray, inputs: np.ndarray) -> float:
    """Return the largest derivative of the cost with respect to a control."""
    passes, row = planner._passes, planner.start_of(start)
    passes.begin(row)
    passes.follow(planner._optimization.open_loop(row, inputs), -1, np.inf)
    return float(abs(control_gradient(passes.expansion, costates(passes.expansion))).max())


def solve(problem: Problem, hessian: str) -> tuple[str, ...]:
    """Return a row of the table."""
    planner = problem.planner(hessian)
    first = gradient(planner, problem.start, problem.guess)
    # one beginning, so that the iterations are all of them
    simulated = mujacobian.rollout(problem.model, problem.start, problem.guess).states
    begun = time.process_time()
    plan = planner.solve(problem.start, controls=problem.guess, states=simulated, iterations=MOST)
    seconds = time.process_time() - begun
    last = gradient(planner, problem.start, plan.controls) / first
    n, exact = len(plan.history.cost), int(plan.history.exact.sum())
    each = f"{1e3 * seconds / n:.1f} ms"
    name = f'`"{hessian}"`'
    return problem.name, name, str(n), str(exact), f"{plan.cost:.10g}", f"{last:.0e}", each


def head(*names: str) -> None:
    """Print the first lines of a Markdown table."""
    row(*names)
    print("|" + "---|" * len(names))


def row(*cells: str) -> None:
    """Print a row of a Markdown table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def price(plans: int, rounds: int) -> None:
    """Print the processor time of one iteration on the trotting A1, after a number of plans."""
    task = tasks.load("a1_trot")
    planners = {
        name: ILQR(task.planned, task.cost, horizon=KNOTS, hessian=name, threads=1)
        for name in HESSIANS
    }
    data, plan = task.start(None), None
    for _ in range(plans):
        plan = planners["gauss-newton"].improve(data, plan)
        end = data.time + task.planned.opt.timestep - 0.5 * task.model.opt.timestep
        while data.time < end:
            state = np.concatenate([data.qpos, data.qvel, data.act])
            data.ctrl = plan.policy(data.time, state)
            mujoco.mj_step(task.model, data)
    made: dict[str, list[Plan]] = {name: [] for name in HESSIANS}

    def iterate(name: str) -> None:
        planners[name].reset()
        made[name].append(planners[name].improve(data, plan))

    times = processor({name: partial(iterate, name) for name in HESSIANS}, rounds)
    head("`hessian=`", f"one iteration, {KNOTS} knots", "ratio", "exact")
    for name, found in made.items():
        ratio = times[name] / times["gauss-newton"]
        exact = "yes" if found[-1].history.exact.all() else "no"
        row(f'`"{name}"`', f"{times[name]:.2f} ms", f"{ratio:.2f}", exact)


def trot(seconds: float, rounds: int) -> None:
    """Print the closed-loop cost and the speed of planning of the trotting A1."""
    results: dict[str, MPCResult] = {}

    def run(hessian: str) -> None:
        task = tasks.load("a1_trot")
        planner = ILQR(task.planned, task.cost, horizon=KNOTS, hessian=hessian, threads=1)
        results[hessian] = MPC(task.model, planner).run(task.start(None), seconds, progress=False)

    times = processor({name: partial(run, name) for name in ("gauss-newton", "auto")}, rounds)
    head(
        "`hessian=`",
        "mean cost",
        "plans per second of processor time",
        "plans that tried exact second derivatives",
    )
    for hessian, result in results.items():
        n, tried = len(result.timings), sum(each.curvature > 0 for each in result.timings)
        rate = f"{1e3 * n / times[hessian]:.0f}"
        row(f'`"{hessian}"`', f"{result.costs.mean():.5g}", rate, f"{tried} of {n}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--price", action="store_true", help="time of one iteration")
    parser.add_argument(
        "--trot", type=float, nargs="?", const=2.5, metavar="SECONDS", help="closed loop"
    )
    arguments = parser.parse_args()
    if arguments.price:
        price(plans=20, rounds=60)
    if arguments.trot:
        trot(arguments.trot, rounds=3)
    if arguments.price or arguments.trot:
        return
    head("problem", "`hessian=`", "iterations", "of these exact", "cost", "gradient", "each")
    for problem in problems():
        for hessian in HESSIANS:
            row(*solve(problem, hessian))


if __name__ == "__main__":
    main()
