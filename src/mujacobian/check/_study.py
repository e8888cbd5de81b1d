"""Measurements on one model: coverage, errors relative to the reference, times."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._core import transition
from mujacobian._diagnostics import (
    COLLIDER_LIMIT,
    CONTACT_LIMIT,
    Diagnostics,
    diagnose,
)
from mujacobian._linearization import Linearization, linearize_without_selfcheck
from mujacobian._manifold import tangent_size
from mujacobian._notices import collider_advice, solver_advice, solver_text
from mujacobian._support import fd_count, support
from mujacobian.check._judge import Judge, stack
from mujacobian.check._probe import quiet
from mujacobian.check._report import Report, StateReport
from mujacobian.check._state_file import StateFile
from mujacobian.check._states import states as driven_states
from mujacobian.check._timing import beside_step, has_differences
from mujacobian.errors import (
    MujacobianError,
    NotConvergedWarning,
    UnsupportedFeatureError,
)

EPS = 1e-6  # step of mjd_transitionFD at which centered differences are most accurate
MAX_COLUMNS = 240  # compared columns of a state; larger models get a random choice
ENOUGH = 0.5  # share of trusted entries that a verdict needs
STAGES = 3  # of every state: simulation, reference, times
ROUNDS, BUDGET = 15, 0.002  # turns of each timed function, and seconds of a turn


class Study:
    """A study of a model at some states. `run` fills `report`.

    `states` is the number of states that the model is driven to by random controls, or the path of
    a file with states (`StateFile`). The random controls, and the random choice of columns if a
    model is large, depend on the seed.
    """

    def __init__(self, model: mujoco.MjModel, states: int | Path, seed: int) -> None:
        self.model, self.seed = model, seed
        self._found: Iterator[tuple[str, mujoco.MjData]]
        if isinstance(states, Path):
            file = StateFile(model, states)
            self.count, self._found = len(file), iter(file)
            self.report = Report(model, support(model), file=str(states))
        else:
            self.count, self._found = states, driven_states(model, states, seed)
            self.report = Report(model, support(model))

    @property
    def stages(self) -> int:
        """The number of stages that `run` yields."""
        return STAGES * self.count

    def run(self) -> Iterator[str]:
        """Measure everything; yield a description before each stage."""
        for k in range(self.count):
            yield f"state {k + 1}: moving there"
            with quiet():
                name, data = next(self._found)
                mujoco.mj_forward(self.model, data)
            state = StateReport(name, rows=int(data.nefc), contacts=int(data.ncon))
            self.report.states.append(state)
            yield f"{name}: reference"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConvergedWarning)  # the report has it
                lin = _linearize(self.model, data, state)
                if lin is not None:
                    self._judge(data, lin, state)
            yield f"{name}: times"
            if lin is not None:
                state.times = _time(self.model, data, lin)

    def _judge(self, data: mujoco.MjData, lin: Linearization, state: StateReport) -> None:
        try:
            judge = Judge(self.model, data, columns=self._columns())
        except ArithmeticError as error:
            state.verdict, state.reason = "unknown", str(error)
            return
        J = stack(lin)
        result = judge.compare(J)
        state.tolerance, state.share = judge.tolerance, result.share
        state.columns = len(judge.columns)
        state.ours = judge.block_errors(result)
        theirs = None
        if has_differences(self.model):
            theirs = stack(_differences(self.model, data, sensors=lin.C is not None))
            state.fd = judge.block_errors(judge.compare(theirs))
        found = diagnose(self.model, data)
        state.solver = found.solver_error
        state.collider = max(found.collider_error, found.contact_error)
        if not found.converged and self._judge_own(judge, data, J, theirs, state, found):
            return
        if result.error > judge.tolerance:
            state.verdict, state.reason = "wrong", judge.describe(result, J)
            best_case = judge.error_when_converged(data, sensors=lin.C is not None)
            if best_case <= judge.tolerance:
                state.verdict = "loose"
            if best_case < result.error:
                state.reason += f"; {best_case:.0e} with a converged solver and collider"
        elif result.share < ENOUGH:
            state.verdict = "unknown"
            state.reason = (
                f"the reference is accurate for only {result.share:.0%} of the entries (kinks)"
            )

    def _judge_own(
        self,
        judge: Judge,
        data: mujoco.MjData,
        J: NDArray[np.float64],
        theirs: NDArray[np.float64] | None,
        state: StateReport,
        found: Diagnostics,
    ) -> bool:
        """Compare with the model's own step, which has not converged; return whether they differ.

        On entry, `state` has the errors relative to the converged step.
        """
        own = judge.at_own_settings(data)
        result = judge.compare_with(own, J)
        if result.error <= judge.tolerance:
            return False
        state.converged, state.ours = state.ours, judge.block_errors(result)
        if theirs is not None:
            state.fd = judge.block_errors(judge.compare_with(own, theirs))
        left = max(state.converged.values(), default=0.0)
        share = max(0.0, 1 - left / result.error)
        causes, texts, advice = [], [], []
        if state.solver > found.solver_limit:
            state.solver_share = share
            causes.append("the solver")
            texts.append(solver_text(state.solver, found.solver_limit))
            advice.append(solver_advice(self.model))
        if not found.collider_converged:
            state.collider_share = share
            causes.append("the collider")
            texts.append(found.collider.partition(": ")[2])
            excess = max(found.collider_error / COLLIDER_LIMIT, found.contact_error / CONTACT_LIMIT)
            advice.append(collider_advice(self.model, excess))
        cause, plural = " and ".join(causes), len(causes) > 1
        state.verdict = "unconverged"
        state.reason = (
            f"{cause} {'stop' if plural else 'stops'} early at the model's own settings: "
            f"{', and '.join(texts)}. Ours differs from differences of that mj_step by "
            f"{result.error:.0e}, and from those of the converged step by {left:.0e}: {cause} "
            f"{'account' if plural else 'accounts'} for {_percent(share)} of the error. "
            f"{'. '.join(advice)}"
        )
        return True

    def _columns(self) -> list[int]:
        """Return all columns of A and B, or a random choice if there are too many."""
        count = tangent_size(self.model) + self.model.nu
        if count <= MAX_COLUMNS:
            return list(range(count))
        rng = np.random.default_rng(self.seed)
        return sorted(rng.choice(count, MAX_COLUMNS, replace=False).tolist())


def _percent(share: float) -> str:
    """Return a share in percent, which is 100 % only if it is, up to rounding."""
    return f"{100 * share:.{2 if share > 0.999 else 0}f} %"


def _linearize(
    model: mujoco.MjModel, data: mujoco.MjData, state: StateReport
) -> Linearization | None:
    """Linearize, if necessary without sensors; write the reason of a failure to `state`."""
    differences = fd_count()
    try:
        if model.nsensordata:
            try:
                return linearize_without_selfcheck(model, data)
            except UnsupportedFeatureError as error:
                state.sensors_refused = str(error)
        lin = linearize_without_selfcheck(model, data, sensors=False)
    except UnsupportedFeatureError as error:
        # the dynamics are not supported, whatever the sensors are
        state.verdict, state.reason, state.sensors_refused = "refused", str(error), ""
        return None
    except MujacobianError as error:
        state.verdict, state.reason = "refused", str(error)
        return None
    if fd_count() > differences:
        state.verdict, state.reason = "wrong", "a finite difference entered the result"
    return lin


def _blocks(model: mujoco.MjModel, sensors: bool) -> Linearization:
    """Return arrays for the result of a transition."""
    nx, nu, ns = tangent_size(model), model.nu, model.nsensordata
    A, B = np.zeros((nx, nx)), np.zeros((nx, nu))
    if not sensors:
        return Linearization(A, B)
    return Linearization(A, B, np.zeros((ns, nx)), np.zeros((ns, nu)))


def _differences(model: mujoco.MjModel, data: mujoco.MjData, *, sensors: bool) -> Linearization:
    """Return the result of centered `mjd_transitionFD` at the same state."""
    blocks = _blocks(model, sensors)
    scratch = mujoco.MjData(model)
    mujoco.mj_copyData(scratch, model, data)
    with quiet():
        _fill_with_differences(model, scratch, blocks)
    return blocks


def _fill_with_differences(
    model: mujoco.MjModel, data: mujoco.MjData, blocks: Linearization
) -> None:
    A, B, C, D = (
        block if block is not None and block.size else None
        for block in (blocks.A, blocks.B, blocks.C, blocks.D)
    )
    mujoco.mjd_transitionFD(model, data, EPS, True, A, B, C, D)


def _time(model: mujoco.MjModel, data: mujoco.MjData, lin: Linearization) -> dict[str, float]:
    """Return the microseconds of a step, of centered differences, and of our functions."""
    blocks = _blocks(model, lin.C is not None)
    outputs = blocks.A, blocks.B, blocks.C, blocks.D
    calls = {
        "ours": lambda: transition(model, data, *outputs),
        "derivative": lambda: transition(model, data, *outputs, forward=False),
    }
    if has_differences(model):
        calls["fd"] = lambda: _fill_with_differences(model, data, blocks)
    with quiet():
        return beside_step(model, data, calls, ROUNDS, BUDGET)
