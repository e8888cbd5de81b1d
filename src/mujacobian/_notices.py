"""Warnings about results that differ from those of `mj_step`: once per model.

The core collects notices while it computes (`cpp/layout/notice.h`) and calls `notice` at the end of
a call. The threads of `_threads.each` keep their warnings until the end of the call. The thread of
the caller shows them, because the filters of `warnings` apply there.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from weakref import WeakKeyDictionary

import mujoco
import numpy as np

from mujacobian import _core
from mujacobian.errors import ColliderNotConvergedWarning, SolverNotConvergedWarning

PACKAGE = str(Path(__file__).parent)
CCD_TOLERANCE, CCD_ITERATIONS = _core.converged_collider()
SLOPE_LENGTH = _core.slope_length()

# a warning, with the model that it is about or None
Found = tuple[mujoco.MjModel | None, Warning]

# classes of the warnings shown so far, per model; copies of a model share its set
_seen: WeakKeyDictionary[mujoco.MjModel, set[type[Warning]]] = WeakKeyDictionary()
_lock = threading.Lock()
_thread = threading.local()


def notice(
    model: mujoco.MjModel,
    kind: str,
    value: float,
    limit: float,
    first: int,
    second: int,
    excess: float,
) -> None:
    """Warn about a model, or keep the warning if the thread has a list of warnings.

    `first` and `second` are ids of the elements that the notice is about, -1 if there are none.
    `excess` is the largest ratio of an error of the collider to its limit.
    """
    category, make = _WARNINGS[kind]
    if category in _seen.get(model, ()):
        return  # fast, because in a loop every call comes here
    warning = make(model, value, limit, first, second, excess)
    show([(model, warning)])


def warn(warning: Warning) -> None:
    """Show a warning that is not about a model, at the line that called this package."""
    show([(None, warning)])


def show(found: Sequence[Found]) -> None:
    """Show the warnings that are new, or keep them if the thread has a list of warnings."""
    kept = getattr(_thread, "waiting", None)
    if kept is not None:
        kept.extend(found)
        return
    for model, warning in found:
        if model is None:
            warnings.warn(warning, stacklevel=_level())
            continue
        with _lock:
            seen = _seen.setdefault(model, set())
            known = type(warning) in seen
            seen.add(type(warning))
        if not known:
            warnings.warn(warning, stacklevel=_level())


@contextmanager
def waiting(found: list[Found]) -> Iterator[None]:
    """Keep the warnings of this thread in `found` for another thread to `show`."""
    before = getattr(_thread, "waiting", None)
    _thread.waiting = found
    try:
        yield
    finally:
        _thread.waiting = before


def share(model: mujoco.MjModel, copy: mujoco.MjModel) -> None:
    """Let a copy of a model have one warning of each class together with the model."""
    with _lock:
        _seen[copy] = _seen.setdefault(model, set())


def _level() -> int:
    """Return the stack level, counted from the caller, of the line that called this package.

    Other packages may be in between, such as an optimizer to which this package passes a function.
    """
    level, found, frame = 1, 1, sys._getframe(1)
    while frame.f_back is not None:
        level += 1
        if frame.f_code.co_filename.startswith(PACKAGE):
            found = level
        frame = frame.f_back
    return found


def _solver(
    model: mujoco.MjModel, value: float, limit: float, _first: int, _second: int, _excess: float
) -> SolverNotConvergedWarning:
    return SolverNotConvergedWarning(
        f"MuJoCo's constraint solver stopped before it converged: {solver_text(value, limit)}. "
        "The derivative is that of the converged step, so mj_step itself moves differently. "
        f"{solver_advice(model)}",
        value,
        limit,
    )


def solver_text(value: float, limit: float) -> str:
    """Return a phrase with the distance of the acceleration from the optimum."""
    return (
        f"the acceleration of mj_step is {value:.1e} away from the optimum, relative to the "
        f"largest acceleration beside it (limit {limit:.1e})"
    )


def solver_advice(model: mujoco.MjModel) -> str:
    """Return a sentence with the options that make the solver converge."""
    opt = model.opt
    solver = mujoco.mjtSolver(opt.solver).name.removeprefix("mjSOL_")
    return (
        "Simulate mujacobian.converged(model), or set options of the solver yourself: "
        f"iterations (now {opt.iterations}), ls_iterations (now {opt.ls_iterations}), "
        f"tolerance (now {opt.tolerance:.0e}), solver (now {solver})"
    )


def _contact(
    model: mujoco.MjModel, value: float, limit: float, first: int, second: int, excess: float
) -> ColliderNotConvergedWarning:
    names = _names(model, first, second)
    what = (
        f"its contact between {names} is {value:.1e} away from the optimum, in m and rad "
        f"(limit {limit:.0e})"
        if np.isfinite(value)
        else f"it finds another number of contacts between {names} than if it converges"
    )
    return _collider_warning(model, what, value, limit, excess)


def _collider(
    model: mujoco.MjModel, value: float, limit: float, first: int, second: int, excess: float
) -> ColliderNotConvergedWarning:
    names = _names(model, first, second)
    what = f"{collider_text(value, limit)}. The least accurate contact is that of {names}"
    return _collider_warning(model, what, value, limit, excess)


def _slope(
    model: mujoco.MjModel, value: float, limit: float, first: int, second: int, excess: float
) -> ColliderNotConvergedWarning:
    names = _names(model, first, second)
    what = (
        f"its contact between {names} follows facets instead of the surfaces, so that slopes of "
        f"mj_step over {SLOPE_LENGTH:.0e} m or rad may differ by {value:.1e}, relative to the "
        f"largest slope beside them (limit {limit:.0e})"
    )
    return _collider_warning(model, what, value, limit, excess)


def collider_text(value: float, limit: float) -> str:
    """Return a phrase with the distance of the acceleration from that with converged contacts."""
    return (
        f"the acceleration of mj_step is {value:.1e} away from that with a converged collider, "
        f"relative to the largest acceleration beside it (limit {limit:.0e})"
    )


def _collider_warning(
    model: mujoco.MjModel, what: str, value: float, limit: float, excess: float
) -> ColliderNotConvergedWarning:
    return ColliderNotConvergedWarning(
        f"MuJoCo's convex collider stopped before it converged: {what}. "
        "The derivative is that of the converged step, so mj_step itself moves differently. "
        f"{collider_advice(model, excess)}",
        value,
        limit,
    )


def _names(model: mujoco.MjModel, first: int, second: int) -> str:
    return " and ".join(_geom(model, geom) for geom in (first, second))


def _geom(model: mujoco.MjModel, geom: int) -> str:
    name = model.geom(geom).name
    return f'geom "{name}"' if name else f"geom {geom}"


def collider_advice(model: mujoco.MjModel, excess: float) -> str:
    """Return a sentence with the options that make the collider converge.

    `excess` is its error divided by the limit. The error is proportional to the square root of the
    tolerance.
    """
    opt = model.opt
    needed = max(opt.ccd_tolerance / excess**2, CCD_TOLERANCE)
    return (
        "Simulate mujacobian.converged(model), or set options of the collider yourself: "
        f"ccd_tolerance to {10.0 ** np.floor(np.log10(needed)):.0e} (now {opt.ccd_tolerance:.0e}), "
        f"with enough ccd_iterations (now {opt.ccd_iterations}, {CCD_ITERATIONS} suffice)"
    )


_WARNINGS: dict[
    str, tuple[type[Warning], Callable[[mujoco.MjModel, float, float, int, int, float], Warning]]
] = {
    "solver": (SolverNotConvergedWarning, _solver),
    "contact": (ColliderNotConvergedWarning, _contact),
    "collider": (ColliderNotConvergedWarning, _collider),
    "slope": (ColliderNotConvergedWarning, _slope),
}
