"""Cost of PyTorch and JAX on top of the core.

`python -m benchmarks.transforms` prints the processor time of rollouts with their gradients, from
PyTorch and JAX, next to the time of the core for the same steps. All calls take turns in one run,
and the least times count, so that the ratios are meaningful on a busy machine, too.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np

import mujacobian.torch
from benchmarks.timing import once, processor
from mujacobian import _core

import torch  # isort: skip

HOPPER = Path(__file__).parent.parent / "examples" / "hopper.xml"
INTEGRATION = mujoco.mjtState.mjSTATE_INTEGRATION
SCAN = 100  # steps of a scan in JAX
BLOCK = 64  # steps that are timed together

Call = Callable[[], object]


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default=str(HOPPER), help="MJCF file")
    parser.add_argument("--rounds", type=int, default=200, help="repetitions of 64 steps")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = mujoco.MjModel.from_xml_path(options.model)
    report_torch(model, options.rounds)
    report_threads(model, max(options.rounds // 10, 3))
    report_jax(model, max(options.rounds // 10, 3))


def report_torch(model: mujoco.MjModel, rounds: int) -> None:
    """Print microseconds of a rollout with its gradient, and the ratio to the core."""
    print("| rollouts x steps | core | PyTorch | ratio | difference |\n|---|---|---|---|---|")
    for n, T in ((1, 1), (16, 1), (16, 4), (64, 50)):
        calls = {"core": core_call(model, n, T), "torch": torch_call(model, n, T, 1)}
        core, ours = in_blocks(calls, rounds * BLOCK // (n * T), max(BLOCK // (n * T), 1))
        extra = f"{ours / core:.2f} | {ours - core:.0f} us"
        print(f"| {n} x {T} | {core:.0f} us | {ours:.0f} us | {extra} |")
    (empty,) = in_blocks({"empty": empty_call(model)}, rounds, BLOCK)
    print(f"\nA `torch.autograd.Function` without work, with its gradient: {empty:.0f} us\n")


def in_blocks(calls: dict[str, Call], rounds: int, size: int) -> list[float]:
    """Return microseconds of the calls, which take turns in blocks, so that caches are warm."""

    def block(call: Call) -> Call:
        return lambda: [call() for _ in range(size)]

    times = processor({name: block(call) for name, call in calls.items()}, rounds // size + 3)
    return [1e3 * time / size for time in times.values()]


def report_threads(model: mujoco.MjModel, rounds: int) -> None:
    """Print the wall-clock time with two threads relative to one."""
    print("| rollouts x steps | two threads / one thread |\n|---|---|")
    for n, T in ((16, 1), (16, 4), (64, 50)):
        calls = [torch_call(model, n, T, threads) for threads in (1, 2)]
        best = [float("inf")] * 2
        for _ in range(rounds):
            best = [min(least, once(call)) for least, call in zip(best, calls, strict=True)]
        print(f"| {n} x {T} | {best[1] / best[0]:.2f} |")


def first_state(model: mujoco.MjModel) -> np.ndarray:
    """Return (qpos, qvel, act) after mj_resetData."""
    data = mujoco.MjData(model)
    return np.concatenate([data.qpos, data.qvel, data.act])


def core_call(model: mujoco.MjModel, n: int, T: int, *, gradient: bool = True) -> Call:
    """Return the work of n rollouts of T steps, and of their gradients, in the core."""
    data = mujoco.MjData(model)
    first = np.empty(mujoco.mj_stateSize(model, INTEGRATION))
    mujoco.mj_getState(model, data, first, INTEGRATION)
    nx = 2 * model.nv + model.na
    controls, start = np.zeros((T, model.nu)), np.empty((T, len(first)))
    states, made = np.empty((T + 1, model.nq + model.nv + model.na)), np.empty((T, model.nu))
    d_states, cotangent = np.ones((T, nx)), np.empty(nx)

    def call() -> None:
        for _ in range(n):
            _core.simulate_into(
                model, data, first, T, controls, None, None, None, 1, start, states, None
            )
            if not gradient:
                continue
            cotangent[:] = 1
            _core.pull_back_into(
                model, data, start, T, d_states, None, [], made, None, None, None, None, None,
                cotangent, 0,
            )  # fmt: skip

    return call


def torch_call(model: mujoco.MjModel, n: int, T: int, threads: int) -> Call:
    """Return the same work from PyTorch."""
    state = torch.tensor(first_state(model)).repeat(n, 1).requires_grad_()
    controls = torch.zeros(n, T, model.nu, dtype=torch.float64, requires_grad=True)
    weights = torch.ones(n, T + 1, state.shape[1], dtype=torch.float64)

    def call() -> None:
        states, _ = mujacobian.torch.rollout(model, state, controls, threads=threads)
        torch.autograd.grad(states, (state, controls), weights)

    return call


def empty_call(model: mujoco.MjModel) -> Call:
    """Return a call of a function of PyTorch without work, and of its gradient."""
    state = torch.tensor(first_state(model)).requires_grad_()
    weights = torch.ones_like(state)

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # noqa: ANN001, ANN205
            return x.clone()

        @staticmethod
        def backward(ctx, d_x):  # noqa: ANN001, ANN205
            return d_x

    def call() -> None:
        torch.autograd.grad(Nothing.apply(state), state, weights)

    return call


def report_jax(model: mujoco.MjModel, rounds: int) -> None:
    """Print microseconds per step of a scan in JAX, and the ratio to the core.

    A step of a scan begins without a warm start of the solver, as the first step of a rollout, so
    that the core simulates rollouts of one step.
    """
    import jax

    import mujacobian.jax

    jax.config.update("jax_enable_x64", True)
    state, controls = first_state(model), np.zeros((SCAN, model.nu))

    def last(x, us):  # noqa: ANN001, ANN202
        def step(x, u):  # noqa: ANN001, ANN202
            return mujacobian.jax.step(model, x, u, threads=1)[0], None

        return jax.lax.scan(step, x, us)[0].sum()

    value, gradient = jax.jit(last), jax.jit(jax.grad(last, (0, 1)))
    calls: dict[str, Call] = {
        "simulation": core_call(model, SCAN, 1, gradient=False),
        "scan": lambda: jax.block_until_ready(value(state, controls)),
        "with gradient": core_call(model, SCAN, 1),
        "grad of scan": lambda: jax.block_until_ready(gradient(state, controls)),
    }
    for call in calls.values():
        call()
    times = {name: 1e3 * x / SCAN for name, x in processor(calls, rounds).items()}
    print(f"\n| {SCAN} steps in `jit` of `scan` | core | JAX | ratio |\n|---|---|---|---|")
    for label, core, ours in (
        ("simulation", "simulation", "scan"),
        ("gradient", "with gradient", "grad of scan"),
    ):
        a, b = times[core], times[ours]
        print(f"| {label} | {a:.1f} us per step | {b:.1f} us per step | {b / a:.2f} |")


if __name__ == "__main__":
    main()
