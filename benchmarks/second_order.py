"""Price and accuracy of second derivatives.

`python -m benchmarks.second_order` prints the price of `hessian` beyond `A` and `B` on the robots
of the speed table, and on the A1 and G1 of MuJoCo Menagerie that stand. With `--accuracy` it
compares `hessian` with extrapolated differences of `A` and `B` in states of every scene of the
Menagerie. With `--rollout` it compares the times of Hessian-vector products and of gradients of
rollouts of these robots: the first product of a trajectory, and further ones. The scenes come from
the checkout in the environment variable MENAGERIE_ROOT. The exit status is 1 if an error is above
the bound.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import mujoco
import numpy as np

import mujacobian
from benchmarks import robots
from benchmarks.states import driven
from benchmarks.timing import processor
from mujacobian import reference
from tests.oracle.second_order import column_errors

STANDING = ("unitree_a1", "unitree_g1")
SETTLING = 200  # steps before a robot stands
CALLS = 20  # per measurement of a price
ROUNDS = 200
BOUND = 1e-6  # relative to the largest entry
COLUMNS = 16  # that are compared per state
LARGEST = 80  # dofs
STEPS = 100  # of a rollout
FAMILIES = ("dof_damping", "body_mass")  # parameters of rollouts


def main() -> int:
    """Run the program; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--accuracy", action="store_true", help="compare with differences")
    parser.add_argument("--rollout", action="store_true", help="time products of rollouts")
    parser.add_argument("--scenes", default="", help="part of the names of scenes")
    parser.add_argument("--states", type=int, default=3, help="states per scene")
    options = parser.parse_args()
    root = Path(os.environ.get("MENAGERIE_ROOT", "."))
    if options.rollout:
        report_rollouts(root)
        return 0
    if options.accuracy:
        return report_accuracy(root, options.scenes, options.states)
    report_price(root)
    return 0


def report_price(root: Path) -> None:
    """Print microseconds of A and B, of the Hessian with them, and the price beyond A and B."""
    print("| model | nv | contacts | `A`, `B` | `hessian` | price beyond `A`, `B` |")
    print("|---|---|---|---|---|---|")
    for name, model, data in priced(root):
        mujoco.mj_forward(model, data)
        first, second = price(model, data)
        ratio = (second - first) / first
        times = f"{first:.1f} us | {second:.1f} us | {ratio:.2f}"
        print(f"| {name} | {model.nv} | {data.ncon} | {times} |")


def report_rollouts(root: Path) -> None:
    """Print milliseconds of gradients and Hessian-vector products of rollouts, on one thread."""
    print("| model | nv | parameters | gradient | first product | further products | ratios |")
    print("|---|---|---|---|---|---|---|")
    for name, model, data in priced(root):
        for items in ([], *([item] for item in FAMILIES)):
            params = mujacobian.Parameters(model, items) if items else None
            try:
                gradient, first, further = rollout_times(model, data, params)
            except mujacobian.MujacobianError as error:
                print(f"{name}: {error}", file=sys.stderr)
                break
            what = f"{len(params)} of `{items[0]}`" if params else ""
            times = f"{gradient:.1f} ms | {first:.1f} ms | {further:.1f} ms"
            times += f" | {first / gradient:.1f}, {further / gradient:.1f}"
            print(f"| {name} | {model.nv} | {what} | {times} |", flush=True)


def rollout_times(
    model: mujoco.MjModel, data: mujoco.MjData, params: mujacobian.Parameters | None
) -> tuple[float, float, float]:
    """Return milliseconds of the gradient, and of the first and a further product of a rollout."""
    rng = np.random.default_rng(0)
    controls = data.ctrl + 0.01 * rng.normal(size=(STEPS, model.nu))
    trajectory = mujacobian.rollout(model, data, controls, params=params, threads=1)
    d_states = rng.normal(size=trajectory.states.shape)
    along = [rng.normal(size=trajectory.states.shape[1]), rng.normal(size=controls.shape)]
    if params:
        along.append(rng.normal(size=len(params)))
    calls: dict[str, Callable[[], object]] = {
        "gradient": partial(trajectory.gradient, d_states),
        # a copy has no steps that an earlier product has kept
        "first": lambda: replace(trajectory).hvp(tuple(along), d_states),
        "kept": partial(trajectory.hvp, tuple(along), d_states),
        "further": partial(trajectory.hvp, tuple(along), d_states),
    }
    times = processor(calls, rounds=40)
    return times["gradient"], times["first"], times["further"]


def priced(root: Path) -> Iterator[tuple[str, mujoco.MjModel, mujoco.MjData]]:
    """Yield the models of the table; those that are not installed are left out."""
    for robot in robots.ROBOTS:
        try:
            model = robots.load(robot)
        except FileNotFoundError as error:
            print(error, file=sys.stderr)
            continue
        yield robot.name, model, robots.random_data(model, 0)
    for name in STANDING:
        path = root / name / "scene.xml"
        if not path.exists():
            print(f"no {path}: set MENAGERIE_ROOT", file=sys.stderr)
            continue
        model = mujoco.MjModel.from_xml_path(str(path))
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, 0)
        for _ in range(SETTLING):
            mujoco.mj_step(model, data)
        yield f"{name} standing", model, data


def price(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[float, float]:
    """Return microseconds of A and B, and of the Hessian, each with mj_forward."""
    nx, nu = 2 * model.nv + model.na, model.nu
    A, B = np.zeros((nx, nx)), np.zeros((nx, nu))
    xx, xu, uu = np.zeros((nx, nx)), np.zeros((nx, nu)), np.zeros((nu, nu))
    given = np.random.default_rng(0).normal(size=nx)

    def first() -> None:
        for _ in range(CALLS):
            mujacobian.transition(model, data, A, B)

    def second() -> None:
        for _ in range(CALLS):
            mujacobian.hessian_into(model, data, given, xx, xu, uu)

    times = processor({"first": first, "second": second}, rounds=ROUNDS)
    return 1e3 * times["first"] / CALLS, 1e3 * times["second"] / CALLS


def report_accuracy(root: Path, part: str, states: int) -> int:
    """Print the largest error of each scene; return 1 if one is above the bound."""
    print("| scene | nv | states | contacts | largest error | compared columns | not covered |")
    print("|---|---|---|---|---|---|---|")
    wrong = 0
    for path in sorted(root.glob("*/scene*.xml")):
        name = f"{path.parent.name}/{path.stem}"
        if part not in name:
            continue
        model = reference.converge(mujoco.MjModel.from_xml_path(str(path)))
        if model.nv > LARGEST:
            continue
        errors, contacts, compared, refused = [], 0, 0, set()
        for _, data in driven(model, states):
            try:
                found = column_errors(model, data, columns=COLUMNS, trust=BOUND / 10)
            except mujacobian.MujacobianError as error:
                refused.add(str(error)[:90])
                continue
            mujoco.mj_forward(model, data)
            contacts += data.ncon
            compared += len(found)
            errors += found
        worst = max(errors, default=0.0)
        wrong |= worst > BOUND
        why = "; ".join(sorted(refused))
        row = f"{name} | {model.nv} | {states} | {contacts} | {worst:.1e} | {compared} | {why}"
        print(f"| {row} |", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
