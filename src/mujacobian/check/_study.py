"""What is measured on one model: coverage, errors against the reference, times."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

from mujacobian._core import transition
from mujacobian._diagnostics import (
    COLLIDER_LIMIT,
    CONTACT_LIMIT,
    SOLVER_LIMIT,
    Diagnostics,
    diagnose,
)
from mujacobian._linearization import (
    Linearization,
    fd_count,
    linearize_without_selfcheck,
    support,
)
from mujacobian._notices import collider_advice, solver_advice, solver_text
from mujacobian.check._judge import Judge, stack
from mujacobian.check._probe import quiet
from mujacobian.check._states import states
from mujacobian.check._timing import beside_step, has_differences
from mujacobian.errors import (
    MujacobianError,
    NotConvergedWarning,
    Unsupported,
    UnsupportedFeatureError,
)

EPS = 1e-6  # step of mjd_transitionFD: the best for centred differences
MAX_COLUMNS = 240  # of a state that are judged; a random choice of them in larger models
ENOUGH = 0.5  # share of entries that the reference must know for a verdict
STAGES = 3  # of every state: reached, judged, timed
ROUNDS, BUDGET = 15, 0.002  # of a measurement of time, and seconds of one of its turns


@dataclass
class StateReport:
    """What was found at one state.

    `verdict` is "exact", "wrong", "refused", "unconverged" (the model's own settings stop the
    solver or the collider before the optimum that is differentiated), "loose" (exact with a
    converged collider, but the model's own `ccd_tolerance` is larger) or "unknown" (the reference
    cannot tell); `reason` explains any but the first. Errors are the worst relative ones of the
    blocks A to D that could be judged, over the `share` of trusted entries, against the step of the
    model as it is; times are in microseconds. `solver` is what `diagnose` calls `solver_error`,
    `collider` is the larger one of `collider_error` and `contact_error`. `converged` are the errors
    of an unconverged state against the converged step. `solver_share` and `collider_share` are the
    shares of the error that the solver and the collider account for; if both stop early, they are
    the same.
    """

    name: str
    rows: int = 0
    contacts: int = 0
    verdict: str = "exact"
    reason: str = ""
    sensors_refused: str = ""
    tolerance: float = 0.0
    columns: int = 0
    share: float = 0.0
    ours: dict[str, float] = field(default_factory=dict)
    fd: dict[str, float] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    solver: float = 0.0
    converged: dict[str, float] = field(default_factory=dict)
    solver_share: float = 0.0
    collider: float = 0.0
    collider_share: float = 0.0

    @property
    def speedup(self) -> float | None:
        """Centred finite differences over ours, `mj_forward` included in both."""
        return self.times["fd"] / self.times["ours"] if "fd" in self.times else None

    @property
    def per_step(self) -> float | None:
        """The derivative alone over one `mj_step`."""
        return self.times["derivative"] / self.times["step"] if self.times else None

    @property
    def exact(self) -> bool:
        """Whether all of A, B, C, D are exact here."""
        return self.verdict == "exact" and not self.sensors_refused


@dataclass
class Report:
    """Coverage of a model and what was found at its states."""

    model: mujoco.MjModel
    refused: list[Unsupported]
    states: list[StateReport] = field(default_factory=list)

    @property
    def exact(self) -> bool:
        """Whether every state is exact in all blocks."""
        return all(state.exact for state in self.states)


class Study:
    """A model, driven into `count` states from a seed; `run` fills `report`."""

    def __init__(self, model: mujoco.MjModel, count: int, seed: int) -> None:
        self.model, self.count, self.seed = model, count, seed
        self.report = Report(model, support(model))

    @property
    def stages(self) -> int:
        """How many stages `run` yields."""
        return STAGES * self.count

    def run(self) -> Iterator[str]:
        """Measure everything; yield a description before each stage."""
        found = states(self.model, self.count, self.seed)
        for k in range(self.count):
            yield f"state {k + 1}: moving there"
            with quiet():
                name, data = next(found)
                mujoco.mj_forward(self.model, data)
            state = StateReport(name, rows=int(data.nefc), contacts=int(data.ncon))
            self.report.states.append(state)
            yield f"{name}: reference"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotConvergedWarning)  # the report says it
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
            state.reason = f"the reference knows only {result.share:.0%} of the entries (kinks)"

    def _judge_own(
        self,
        judge: Judge,
        data: mujoco.MjData,
        J: NDArray[np.float64],
        theirs: NDArray[np.float64] | None,
        state: StateReport,
        found: Diagnostics,
    ) -> bool:
        """Judge against the model's own step, which has not converged; whether it differs.

        The errors in `state` are those against the converged step on entry.
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
        if state.solver > SOLVER_LIMIT:
            state.solver_share = share
            causes.append("the solver")
            texts.append(solver_text(state.solver, SOLVER_LIMIT))
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
        """All columns of A and B, or a random choice where there are too many."""
        count = 2 * self.model.nv + self.model.na + self.model.nu
        if count <= MAX_COLUMNS:
            return list(range(count))
        rng = np.random.default_rng(self.seed)
        return sorted(rng.choice(count, MAX_COLUMNS, replace=False).tolist())


def _percent(share: float) -> str:
    """A share that is called 100 % only if it is, but for rounding."""
    return f"{100 * share:.{2 if share > 0.999 else 0}f} %"


def _linearize(
    model: mujoco.MjModel, data: mujoco.MjData, state: StateReport
) -> Linearization | None:
    """Linearize with sensors, else without; None where that fails too, and why in `state`."""
    differences = fd_count()
    try:
        if model.nsensordata:
            try:
                return linearize_without_selfcheck(model, data)
            except UnsupportedFeatureError as error:
                state.sensors_refused = str(error)
        lin = linearize_without_selfcheck(model, data, sensors=False)
    except UnsupportedFeatureError as error:
        # the refusal of the dynamics came first, or it is not the sensors' alone
        state.verdict, state.reason, state.sensors_refused = "refused", str(error), ""
        return None
    except MujacobianError as error:
        state.verdict, state.reason = "refused", str(error)
        return None
    if fd_count() > differences:
        state.verdict, state.reason = "wrong", "a finite difference entered the result"
    return lin


def _blocks(model: mujoco.MjModel, sensors: bool) -> Linearization:
    """Arrays for the result of a transition."""
    nx, nu, ns = 2 * model.nv + model.na, model.nu, model.nsensordata
    A, B = np.zeros((nx, nx)), np.zeros((nx, nu))
    if not sensors:
        return Linearization(A, B)
    return Linearization(A, B, np.zeros((ns, nx)), np.zeros((ns, nu)))


def _differences(model: mujoco.MjModel, data: mujoco.MjData, *, sensors: bool) -> Linearization:
    """The centred `mjd_transitionFD` at the same state."""
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
    """Microseconds of a step, of centred differences, of ours and of ours without mj_forward."""
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
