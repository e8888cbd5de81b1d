"""Exact Jacobians of one MuJoCo step."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import mujoco
import numpy as np

from mujacobian import _callbacks, _core
from mujacobian._arguments import Array, require_model
from mujacobian._differenced import Differenced, require_fallback
from mujacobian._manifold import tangent_size
from mujacobian._summary import describe
from mujacobian.errors import ArgumentError, UnsupportedFeatureError

# Compare every result with the reference. The environment is read once, at import.
SELFCHECK = os.environ.get("MUJACOBIAN_SELFCHECK", "0") not in ("", "0")


@dataclass(frozen=True, repr=False)
class Linearization:
    """Derivatives of the next state and of the sensors of one step.

    The state is x = (q, v, act) in the tangent coordinates of `mujoco.mjd_transitionFD`, in which
    quaternions are rotations in the body's frame. With `nx = 2 nv + na` and `ns = nsensordata`:

        dx' = A dx + B du + Bf df        A (nx, nx), B (nx, nu), Bf (nx, nv)
        ds  = C dx + D du + Df df        C (ns, nx), D (ns, nu), Df (ns, nv)

    where f is `qfrc_applied`. Blocks that were not requested are None. Batches have a leading axis.
    With `linearize(history=True)`, the samples of all histories follow in x, so that nx is larger.

    Attributes:
      A: derivatives of the next state with respect to the state.
      B: derivatives of the next state with respect to the controls.
      C: derivatives of the sensors with respect to the state.
      D: derivatives of the sensors with respect to the controls.
      Bf: derivatives of the next state with respect to the applied forces.
      Df: derivatives of the sensors with respect to the applied forces.
      differenced: what is a finite difference, with the element and the reason; empty without
        `fallback`, or if everything is exact.
    """

    A: Array
    B: Array
    C: Array | None = None
    D: Array | None = None
    Bf: Array | None = None
    Df: Array | None = None
    differenced: tuple[Differenced, ...] = ()

    @property
    def blocks(self) -> dict[str, Array]:
        """The blocks that were computed, by name."""
        given = {name: getattr(self, name) for name in ("A", "B", "C", "D", "Bf", "Df")}
        return {name: block for name, block in given.items() if block is not None}

    def __repr__(self) -> str:
        facts = [f"differenced: {each}" for each in self.differenced]
        return describe(
            "Linearization", facts, A=self.A, B=self.B, C=self.C, D=self.D, Bf=self.Bf, Df=self.Df
        )


def linearize(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    sensors: bool = True,
    forces: bool = False,
    forward: bool = True,
    history: bool = False,
    fallback: str | None = None,
) -> Linearization:
    """Return the exact Jacobians of one `mj_step` at the state in `data`.

    They are the derivatives of the branch that MuJoCo is in. An active element without an exact
    derivative raises `UnsupportedFeatureError` with its name. The state in `data` is not changed.
    The fields that MuJoCo computes from it are as after `mj_forward`.

    Args:
      model: any model that MuJoCo loads.
      data: the state, controls and applied forces.
      sensors: compute C and D (and Df), too.
      forces: compute Bf (and Df), too: the derivatives with respect to `qfrc_applied`.
      forward: run `mj_forward` first. Use False if you have just called it on this state.
      history: append the samples in the histories of delayed actuators and, with `sensors`, of
        sensors with a delay or an interval to the state: x = (q, v, act, samples), the oldest
        sample first. By default the histories are constants, so that delayed controls have columns
        of zeros in B. `fallback` must be None.
      fallback: "fd" replaces derivatives that do not exist in exact form by finite differences
        instead of raising an error: the rows of a sensor, or the whole step. `differenced` lists
        them with their estimated errors, and `fd_count` counts them. By default None.

    Example:
      >>> import mujoco, mujacobian
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> mujacobian.linearize(model, mujoco.MjData(model)).A.shape
      (2, 2)
    """
    if history:
        from mujacobian._history_state import linearize_with_history  # it imports this module

        if fallback is not None:
            raise ArgumentError("fallback must be None with history=True")
        require_model(model)
        return linearize_with_history(model, data, sensors=sensors, forces=forces, forward=forward)
    if fallback is None:
        lin = linearize_without_selfcheck(
            model, data, sensors=sensors, forces=forces, forward=forward
        )
    else:
        from mujacobian import _fallback  # it imports this module

        require_model(model)
        require_fallback(fallback)
        lin = _fallback.linearize(model, data, sensors=sensors, forces=forces, forward=forward)
    if SELFCHECK:
        from mujacobian.check._selfcheck import verify  # it imports this module

        verify(model, data, lin.blocks)
    return lin


def linearize_without_selfcheck(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    sensors: bool = True,
    forces: bool = False,
    forward: bool = True,
    wanted: Sequence[bool] | None = None,
) -> Linearization:
    """Return what `linearize` returns, also in a program that compares every result.

    If `wanted` is given, the rows of all other sensors are zero.
    """
    require_model(model)
    if _callbacks.current() is not _callbacks.NONE:
        return _linearize_closed_loop(model, data, sensors, forces, forward, wanted)
    return linearize_open_loop(model, data, sensors, forces, forward, wanted)


def linearize_open_loop(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    sensors: bool,
    forces: bool,
    forward: bool,
    wanted: Sequence[bool] | None = None,
    *,
    control: bool = False,
    passive: bool = False,
    open_histories: bool = False,
) -> Linearization:
    """Return the Jacobians of the open loop; `control` and `passive`: ignore these callbacks.

    With `open_histories`, the controls are those that delayed actuators read, and sensors with a
    history are differentiated as if the step computed them.
    """
    make = np.empty if wanted is None else np.zeros
    lin = allocate(model, make, sensors=sensors, forces=forces)
    _core.linearize_into(
        model,
        data,
        A=lin.A,
        B=lin.B,
        C=lin.C,
        D=lin.D,
        Bf=lin.Bf,
        Df=lin.Df,
        forward=forward,
        control=control,
        passive=passive,
        wanted=wanted or (),
        open_histories=open_histories,
    )
    return lin


def allocate(
    model: mujoco.MjModel,
    make: Callable[[tuple[int, int]], Array],
    *,
    sensors: bool,
    forces: bool,
) -> Linearization:
    """Return the blocks of a linearization, made by `make(shape)`."""
    nv, nu, ns = model.nv, model.nu, model.nsensordata
    nx = tangent_size(model)
    return Linearization(
        A=make((nx, nx)),
        B=make((nx, nu)),
        C=make((ns, nx)) if sensors else None,
        D=make((ns, nu)) if sensors else None,
        Bf=make((nx, nv)) if forces else None,
        Df=make((ns, nv)) if forces and sensors else None,
    )


def _linearize_closed_loop(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    sensors: bool,
    forces: bool,
    forward: bool,
    wanted: Sequence[bool] | None,
) -> Linearization:
    """Return the Jacobians of a step with callbacks, by the chain rule.

    The control callback runs between the velocity stage and the actuators, and the passive
    callback adds a generalized force, as `qfrc_applied` does: (EXT-5), (EXT-6)

        A + B du/dx + Bf dp/dx,   B du/du,   C + D du/dx + Df dp/dx,   D du/du

    The rows of user sensors are those of their Jacobian.
    """
    known = _callbacks.current()
    control, passive = known.differentiates_control, known.differentiates_passive
    if control or passive:
        _callbacks.require_single_stage(model)
    given = np.ones(model.nsensor, bool) if wanted is None else np.array(wanted, bool)
    user = _callbacks.is_user_sensor(model) & given
    senses = sensors and known.differentiates_sensor and bool(user.any())
    if senses:
        wanted = (given & ~user).tolist()
    ctrl = data.ctrl.copy()  # mj_forward sets it to the result of the callback
    lin = linearize_open_loop(
        model, data, sensors, forces or passive, forward, wanted, control=control, passive=passive
    )
    A, B, C, D = lin.A, lin.B, lin.C, lin.D
    if passive:
        assert lin.Bf is not None
        slopes = _callbacks.passive_slopes(model, data)
        A = A + lin.Bf @ slopes
        C = C if C is None or lin.Df is None else C + lin.Df @ slopes
    if control:
        data.ctrl[:] = ctrl
        state, before = _callbacks.control_slopes(model, data)
        A, B = A + B @ state, B @ before
        if C is not None and D is not None:
            C, D = C + D @ state, D @ before
    Bf, Df = (lin.Bf, lin.Df) if forces else (None, None)
    if senses and C is not None and D is not None:
        data.ctrl[:] = ctrl
        rows = _callbacks.user_rows(model)
        C[rows], D[rows], by_force = _callbacks.sensor_slopes(model, data, forces=forces)
        if Df is not None:
            Df[rows] = by_force
    return Linearization(A, B, C, D, Bf, Df)


@functools.wraps(_core.transition, assigned=("__doc__",))
def checked_transition(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    A: Array | None = None,
    B: Array | None = None,
    C: Array | None = None,
    D: Array | None = None,
    *,
    forward: bool = True,
    fallback: str | None = None,
) -> tuple[Differenced, ...] | None:
    """Fill the blocks and compare them with the reference."""
    from mujacobian.check._selfcheck import verify  # it imports this module

    made = _core.transition(model, data, A, B, C, D, forward=forward, fallback=fallback)
    verify(model, data, {"A": A, "B": B, "C": C, "D": D})
    return cast("tuple[Differenced, ...] | None", made)


transition = checked_transition if SELFCHECK else _core.transition


def wrench(
    model: mujoco.MjModel, data: mujoco.MjData, lin: Linearization, body: int
) -> tuple[Array, Array | None]:
    """Return the derivatives of the next state and sensors with respect to `xfrc_applied[body]`.

    Args:
      model: the model of `lin`.
      data: the data that `linearize` has just evaluated.
      lin: a result of `linearize(forces=True)`.
      body: index of the body. The six columns are force, then torque, at its center of mass.

    Example:
      >>> import mujoco, mujacobian
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> data = mujoco.MjData(model)
      >>> lin = mujacobian.linearize(model, data, forces=True)
      >>> d_next, d_sensors = mujacobian.wrench(model, data, lin, body=1)
      >>> d_next.shape
      (2, 6)
    """
    if lin.Bf is None:
        raise ArgumentError("lin has no derivatives of applied forces: use linearize(forces=True)")
    if model.opt.integrator == int(mujoco.mjtIntegrator.mjINT_RK4):
        raise UnsupportedFeatureError(
            "xfrc_applied", "the integrator RK4 applies it at several poses"
        )
    if not 0 <= body < model.nbody:
        raise ArgumentError(f"body must be between 0 and {model.nbody - 1}, got {body}")
    # a wrench acts as J^T (force, torque) on the joints
    jacobian = np.zeros((6, model.nv))
    mujoco.mj_jacBodyCom(model, data, jacobian[:3], jacobian[3:], body)
    return lin.Bf @ jacobian.T, None if lin.Df is None else lin.Df @ jacobian.T
