"""Exact Jacobians of one MuJoCo step."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mujacobian import _core
from mujacobian.arguments import numbers, require_model
from mujacobian.errors import ArgumentError, Unsupported, UnsupportedFeatureError
from mujacobian.summary import describe
from mujacobian.threads import thread_count

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class Linearization:
    """Derivatives of the next state and of the sensors of one step.

    With the state x = (q, v, act) in tangent coordinates, as `mujoco.mjd_transitionFD` has them
    (quaternions: rotations in the body's frame), `nx = 2 nv + na`, `ns = nsensordata`:

        dx' = A dx + B du + Bf df        A (nx, nx), B (nx, nu), Bf (nx, nv)
        ds  = C dx + D du + Df df        C (ns, nx), D (ns, nu), Df (ns, nv)

    where f is `qfrc_applied`. Blocks that were not asked for are None. Batches have a leading axis.
    """

    A: Array
    B: Array
    C: Array | None = None
    D: Array | None = None
    Bf: Array | None = None
    Df: Array | None = None

    def __repr__(self) -> str:
        return describe(
            "Linearization", A=self.A, B=self.B, C=self.C, D=self.D, Bf=self.Bf, Df=self.Df
        )


def linearize(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    sensors: bool = True,
    forces: bool = False,
    forward: bool = True,
) -> Linearization:
    """The exact Jacobians of one `mj_step` at the state in `data`.

    The derivative is that of the branch MuJoCo is in. What is not covered raises
    `UnsupportedFeatureError` with the element's name. The state in `data` is not changed; derived
    fields are as after `mj_forward`.

    Args:
      model: any model that MuJoCo loads.
      data: the state, controls and applied forces.
      sensors: also C and D (and Df).
      forces: also Bf (and Df), the derivatives with respect to `qfrc_applied`.
      forward: run `mj_forward` first. False if the caller has just done so on this state.

    Example:
      >>> import mujoco, mujacobian
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> mujacobian.linearize(model, mujoco.MjData(model)).A.shape
      (2, 2)
    """
    require_model(model)
    nv, nu, ns = model.nv, model.nu, model.nsensordata
    nx = 2 * nv + model.na
    lin = Linearization(
        A=np.empty((nx, nx)),
        B=np.empty((nx, nu)),
        C=np.empty((ns, nx)) if sensors else None,
        D=np.empty((ns, nu)) if sensors else None,
        Bf=np.empty((nx, nv)) if forces else None,
        Df=np.empty((ns, nv)) if forces and sensors else None,
    )
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
    )
    return lin


def linearize_batch(
    model: mujoco.MjModel,
    states: ArrayLike,
    controls: ArrayLike,
    *,
    sensors: bool = True,
    threads: int | None = None,
) -> Linearization:
    """The exact Jacobians at many states, with a leading axis, computed in parallel.

    Args:
      model: any model that MuJoCo loads.
      states: `(n, nstate)`, rows of `mj_getState(FULLPHYSICS)`, as in `mujoco.rollout`.
      controls: `(n, nu)`.
      sensors: also C and D.
      threads: number of threads, by default one per available core. Results do not depend on it.

    Everything that these rows do not hold is as after `mj_resetData`: applied forces are zero,
    mocap bodies are at their initial poses, equality constraints are active where `eq_active0` of
    the model says so (`eq_active` of a data is not used), and the solver has no warm start.
    """
    require_model(model)
    nstate = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    rows = _rows("states", states, nstate)
    inputs = _rows("controls", controls, model.nu)
    n = len(rows)
    if len(inputs) != n:
        raise ArgumentError(f"controls must have as many rows as states, {n}, got {len(inputs)}")
    threads = thread_count(threads)
    nx, ns = 2 * model.nv + model.na, model.nsensordata
    lin = Linearization(
        A=np.empty((n, nx, nx)),
        B=np.empty((n, nx, model.nu)),
        C=np.empty((n, ns, nx)) if sensors else None,
        D=np.empty((n, ns, model.nu)) if sensors else None,
    )
    _core.batch_into(
        model,
        states=rows,
        controls=inputs,
        nstate=nstate,
        n=n,
        A=lin.A,
        B=lin.B,
        C=lin.C,
        D=lin.D,
        threads=threads,
    )
    return lin


def wrench(
    model: mujoco.MjModel, data: mujoco.MjData, lin: Linearization, body: int
) -> tuple[Array, Array | None]:
    """Derivatives of the next state and of the sensors with respect to `xfrc_applied[body]`.

    Args:
      model: the model of `lin`.
      data: the data that `linearize` has just evaluated.
      lin: made with `forces=True`.
      body: index of the body. Its six columns are force, then torque, at its centre of mass.
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


def _rows(name: str, values: ArrayLike, width: int) -> Array:
    """`values` as a contiguous float64 array with rows of the given width."""
    array = numbers(name, values, finite=False)  # the core names what is not
    if array.ndim != 2 or array.shape[1] != width:
        raise ArgumentError(f"{name} must have shape (n, {width}), got {array.shape}")
    return array


def support(model: mujoco.MjModel) -> list[Unsupported]:
    """What in this model is not differentiated exactly; empty for a fully covered model.

    Constraint rows depend on the state and are not listed: they raise when they are active.
    """
    return [Unsupported(element, reason) for element, reason in _core.unsupported(model)]


def fd_count() -> int:
    """Number of finite differences that entered a result of this process.

    Those of `control.ILQR` with another backend than "analytic", which are there to be compared
    with. Nothing else in this package uses any.
    """
    return _core.difference_count()
