"""Time steps of many worlds of the Newton bridge: a part of `make bench-newton`.

mujoco_warp simulates on the CPU. Candidates take turns, and the best of several rounds counts.
Memory is the growth of the resident set beyond that of Newton's own solver.
"""

import os
import resource
import time
from collections.abc import Callable

import newton
import newton.examples
import numpy as np
import warp as wp

from mujacobian.newton import DifferentiableMuJoCo

DT = 1 / 600
ROUNDS = 10
SETTLING = 200  # steps after which the ants stand on the ground


def ants(worlds: int) -> newton.Model:
    """Return ants of Newton's assets on the ground."""
    one = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(one)
    place = wp.transform((0.0, 0.0, 0.55), wp.quat_identity())
    one.add_mjcf(newton.examples.get_asset("nv_ant.xml"), xform=place, ignore_names=["floor"])
    every = newton.ModelBuilder()
    every.replicate(one, worlds)
    every.add_ground_plane()
    return every.finalize(requires_grad=True)


def cartpoles(worlds: int) -> newton.Model:
    """Return the cartpoles of Newton's assets, which do not collide."""
    one = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(one)
    one.default_joint_cfg.armature = 0.1
    one.add_urdf(newton.examples.get_asset("cartpole.urdf"), enable_self_collisions=False)
    for shape in range(one.shape_count):
        one.shape_flags[shape] &= ~newton.ShapeFlags.COLLIDE_SHAPES
    every = newton.ModelBuilder()
    every.replicate(one, worlds, spacing=(1.0, 2.0, 0.0))
    return every.finalize(requires_grad=True)


def _resident() -> float:
    """Return the resident set of this process in megabytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6


def _best(*calls: Callable[[], None]) -> list[float]:
    """Return the least time of each call in milliseconds, measured in turns."""
    times = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for k, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            times[k] = min(times[k], 1e3 * (time.perf_counter() - begin))
    return times


def measure(name: str, model: newton.Model) -> list[str]:
    """Return a row of the table."""
    plain = newton.solvers.SolverMuJoCo(model)
    before, after, control = model.state(), model.state(), model.control()
    noise = np.random.default_rng(0).normal(size=model.joint_dof_count)
    before.joint_qd.assign((0.1 * noise).astype(np.float32))
    for _ in range(SETTLING):
        plain.step(before, after, control, None, DT)
        before, after = after, before
    native = DifferentiableMuJoCo(model, use_mujoco_cpu=True, parameters=())
    solver = DifferentiableMuJoCo(model, parameters=())
    resident = _resident()
    tape = wp.Tape()
    with tape:
        solver.step(before, after, control, None, DT)
    seeds = [after.joint_q.grad.numpy(), after.joint_qd.grad.numpy()]

    def backward() -> None:
        for seed in seeds:
            seed[...] = 1
        tape.backward()

    def taped() -> None:
        with wp.Tape():
            solver.step(before, after, control, None, DT)

    def notified() -> None:
        solver.notify_model_changed(int(newton.ModelFlags.ALL))
        solver._current_snapshot()

    backward()
    used = _resident() - resident
    step, in_c, on_tape, back = _best(
        lambda: plain.step(before, after, control, None, DT),
        lambda: native.step(before, after, control, None, DT),
        taped,
        backward,
    )
    contacts = int(solver.mjw_data.nacon.numpy()[0])
    begin = time.perf_counter()
    notified()
    notify = time.perf_counter() - begin
    return [
        f"{name}, {contacts} contacts", f"{step:.1f}", f"{in_c:.1f}", f"{on_tape:.1f}",
        f"{back:.1f}", f"{back / step:.2f}", f"{notify:.2f}", f"{used:.0f}",
    ]  # fmt: skip


HEAD = [
    "worlds", "`SolverMuJoCo.step` [ms]", "in MuJoCo C [ms]", "on a tape [ms]", "backward [ms]",
    "ratio", "`notify_model_changed` [s]", "memory [MB]",
]  # fmt: skip


def main() -> None:
    """Measure, and print rows for docs/newton.md."""
    wp.config.quiet = True
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    lines = [HEAD, ["---"] * len(HEAD)]
    lines += [measure("64 ants", ants(64)), measure("4096 cartpoles", cartpoles(4096))]
    for line in lines:
        print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
