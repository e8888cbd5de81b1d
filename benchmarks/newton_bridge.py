"""Time a step of the Newton bridge, forward and backward: `make bench-newton`.

Everything runs on one thread, and MuJoCo C takes the forward step. Candidates take turns, and the
best of many rounds counts. The vector-Jacobian product of the core is also measured alone. The rest
of the backward pass reads and writes Warp arrays. If the loss depends on body_q, it also launches
the adjoint of Newton's kinematics.
"""

import argparse
import os
from collections.abc import Callable

import mujoco
import newton
import numpy as np
import warp as wp
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.machine import machine
from benchmarks.timing import beside_step
from mujacobian import _core
from mujacobian.check._probe import STATE
from mujacobian.newton import DifferentiableMuJoCo
from mujacobian.newton.adjoint import TapedStep

DT = 0.005
LINK = """
<body pos="{place}"><joint axis="{axis}" damping="0.2" armature="0.01"/>
  <geom type="capsule" fromto="0 0 0 0.02 0 -0.16" size="0.025" contype="0" conaffinity="0"/>
  {rest}
</body>
"""
FOOT = '<geom type="sphere" pos="0.02 0 -0.18" size="0.03" friction="0.8"/>'
TRUNK = """
<body pos="0 0 {height}"><freejoint/>
  <geom type="box" size="0.3 0.12 0.05" contype="0" conaffinity="0"/>
  {limbs}
</body>
"""
GROUND = '<geom type="plane" size="5 5 0.1" friction="0.6"/>'


def limb(joints: int, place: str, end: str) -> str:
    """Return the MJCF of a chain of links on hinges with alternating axes."""
    body = end
    for k in reversed(range(joints)):
        at = "0.02 0 -0.16" if k else place
        body = LINK.format(place=at, axis="1 0.2 0" if k % 2 else "0.1 1 0", rest=body)
    return body


def arm(joints: int) -> str:
    """Return a hanging chain of hinges without contacts."""
    return limb(joints, "0 0 2", "")


def walker(legs: int, joints: int) -> str:
    """Return a trunk with legs, each of which stands on the ground."""
    places = [f"{x:.2f} {y} 0" for x in np.linspace(-0.25, 0.25, legs // 2) for y in (-0.15, 0.15)]
    limbs = "".join(limb(joints, place, FOOT) for place in places)
    return GROUND + TRUNK.format(height=0.16 * joints + 0.048, limbs=limbs)


ROBOTS = {
    "arm": lambda: arm(6),
    "quadruped": lambda: walker(4, 3),
    "six legs": lambda: walker(6, 5),
}
TIMES = {
    "step": "`mj_step` alone",
    "newton": "`SolverMuJoCo.step`",
    "outside": "`DifferentiableMuJoCo.step`",
    "taped": "the same on a tape",
    "core": "the core's product",
    "conversions": "conversions from and to Newton's arrays",
    "backward": "both: backward of one step",
    "parameters": "with gradients of all parameters",
    "launches": "launches, if a loss depends on `body_q`",
    "bodies": "backward of such a loss, all of it",
}
RATIOS = {
    ("core", "step"): "the core's product / `mj_step`",
    ("backward", "newton"): "backward / `SolverMuJoCo.step`",
    ("bodies", "newton"): "with a loss on `body_q` / `SolverMuJoCo.step`",
    ("taped", "newton"): "on a tape / `SolverMuJoCo.step`",
}


class Bench:
    """One taped step of a robot, and the calls that are timed."""

    def __init__(self, xml: str) -> None:
        builder = newton.ModelBuilder()
        newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
        builder.add_mjcf(f"<mujoco><worldbody>{xml}</worldbody></mujoco>")
        self.model = builder.finalize(requires_grad=True)
        self.plain = newton.solvers.SolverMuJoCo(self.model, use_mujoco_cpu=True)
        self.solver = DifferentiableMuJoCo(self.model, use_mujoco_cpu=True, parameters=())
        self.full = DifferentiableMuJoCo(self.model, use_mujoco_cpu=True)
        self.before, self.after = self.model.state(), self.model.state()
        self.control = self.model.control()
        speeds = 0.3 * np.random.default_rng(0).normal(size=self.model.joint_dof_count)
        self.before.joint_qd.assign(speeds.astype(np.float32))

    def step(self, solver: newton.solvers.SolverMuJoCo) -> None:
        """Take the step."""
        solver.step(self.before, self.after, self.control, None, DT)

    def taped(self, solver: DifferentiableMuJoCo) -> wp.Tape:
        """Return a tape with the step."""
        with wp.Tape() as tape:
            self.step(solver)
        return tape

    def backward(self, solver: DifferentiableMuJoCo, *names: str) -> Callable[[], None]:
        """Return a call that runs a tape backward, with gradients of one for these arrays."""
        tape = self.taped(solver)
        seeds = [getattr(self.after, name).grad.numpy() for name in names]

        def run() -> None:
            for seed in seeds:
                seed[...] = 1
            tape.backward()

        return run

    def product(self, taken: TapedStep) -> Callable[[], None]:
        """Return the call of the core in the backward pass."""
        model, data = taken.snapshot.worlds.at(0), taken.snapshot.worlds.data
        start = taken.rows[0][None]
        ctrl, force = np.zeros((1, model.nu)), np.zeros((1, model.nv))
        wrench, params = np.zeros((1, model.nbody, 6)), np.zeros(0)
        seed = np.empty(2 * model.nv + model.na)

        def run() -> None:
            seed[:] = 1
            _core.pull_back_into(
                model, data, start, 1, None, None, [], ctrl, force, wrench, None, params, None,
                seed, 0,
            )  # fmt: skip

        return run

    def times(self, rounds: int) -> dict[str, float]:
        """Return the microseconds per call of all candidates, measured in turns."""
        tape = self.taped(self.solver)
        taken = tape.launches[-1].__self__
        data = mujoco.MjData(self.solver.mj_model)
        mujoco.mj_setState(data.model, data, taken.rows[0], STATE)
        candidates = {
            "warm": lambda: self.step(self.plain),  # loads Python into the caches again
            "newton": lambda: self.step(self.plain),
            "outside": lambda: self.step(self.solver),
            "taped": lambda: self.taped(self.solver),
            "core": self.product(taken),
            "backward": self.backward(self.solver, "joint_q", "joint_qd"),
            "parameters": self.backward(self.full, "joint_q", "joint_qd"),
            "bodies": self.backward(self.solver, "joint_q", "joint_qd", "body_q"),
        }
        found = beside_step(data.model, data, candidates, rounds, budget=0.002)
        found["conversions"] = found["backward"] - found["core"]
        found["launches"] = found["bodies"] - found["backward"]
        return found


def main() -> None:
    """Measure, and print a table and its rows for docs/newton.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.newton_bridge", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="turns per candidate")
    rounds = parser.parse_args().rounds
    wp.config.quiet = True
    head, times = ["microseconds"], []
    for name, xml in ROBOTS.items():
        bench = Bench(xml())
        times.append(bench.times(rounds))
        contact = bench.solver.mj_data.contact
        touching = (contact.dist < contact.includemargin).sum()
        head.append(f"{name}: {bench.solver.mj_model.nv} dofs, {touching} contacts")
    lines = [
        *([label, *(f"{each[key]:.0f}" for each in times)] for key, label in TIMES.items()),
        *([label, *(f"{each[a] / each[b]:.1f}" for each in times)]
          for (a, b), label in RATIOS.items()),
    ]  # fmt: skip
    table = Table(title=f"{machine()}, load {os.getloadavg()[0]:.1f}", box=box.SIMPLE_HEAD)
    for k, name in enumerate(head):
        table.add_column(name, justify="right" if k else "left")
    for line in lines:
        table.add_row(*line)
    Console(width=110).print(table)
    for line in (head, ["---"] * len(head), *lines):
        print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
