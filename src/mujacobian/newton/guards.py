"""Checks that raise, with the name of the feature, where a step has no exact derivative."""

from __future__ import annotations

from typing import Any

import mujoco
import newton
import numpy as np
import warp as wp

from mujacobian.errors import ArgumentError, MujacobianError, UnsupportedFeatureError
from mujacobian.newton.parameters import KNOWN, NAMED, array_of

_REFUSED_JOINTS = {
    int(newton.JointType.DISTANCE): "DISTANCE",
    int(newton.JointType.ROD): "ROD",  # CABLE before Newton 1.7, still the name of the enumerator
}
# model arrays that MuJoCo uses and that have no gradient here, even if they require one
_WITHOUT_GRADIENT = (
    "joint_axis",
    "shape_margin", "shape_gap",
    *(
        f"mujoco.{name}"
        for name in (
            "solref", "geom_solimp", "geom_solmix", "gravcomp", "dof_ref", "dof_springref",
            "solreflimit", "solimplimit", "limit_margin", "solreffriction", "solimpfriction",
            "actuator_gear", "actuator_cranklength", "actuator_dynprm",
            "actuator_ctrlrange", "actuator_forcerange", "actuator_actrange",
            "tendon_springlength", "tendon_armature", "tendon_range",
            "tendon_limit_ke", "tendon_limit_kd", "tendon_coef",
        )
    ),
)  # fmt: skip
_OBSERVED = ("body_qdd", "body_parent_f", "qfrc_actuator", "contact_f")
_DIVERGED = tuple(
    int(kind)
    for kind in (
        mujoco.mjtWarning.mjWARN_BADQPOS,
        mujoco.mjtWarning.mjWARN_BADQVEL,
        mujoco.mjtWarning.mjWARN_BADQACC,
    )
)
_FULL = (int(mujoco.mjtWarning.mjWARN_CONTACTFULL), int(mujoco.mjtWarning.mjWARN_CNSTRFULL))


def require_options(model: newton.Model, options: dict[str, Any]) -> None:
    """Raise for solver options and joints that are not supported."""
    if options.get("use_mujoco_cpu") and not options.get("use_mujoco_contacts", True):
        raise UnsupportedFeatureError(
            "use_mujoco_contacts=False with use_mujoco_cpu=True",
            "MuJoCo C finds its own contacts: use mujoco_warp, which also runs on the CPU",
        )
    for joint, kind in enumerate(model.joint_type.numpy().tolist()):
        if kind in _REFUSED_JOINTS:
            raise UnsupportedFeatureError(
                f'joint "{model.joint_label[joint]}"',
                f"SolverMuJoCo has no {_REFUSED_JOINTS[kind]} joints",
            )


def require_parameters(model: newton.Model, names: tuple[str, ...]) -> None:
    """Raise for model arrays without a gradient: unknown, not supported or not requiring one."""
    for name in names:
        array = array_of(model, name)
        if array is None:
            raise ArgumentError(f"the model has no {name}")
        if name not in KNOWN:
            raise UnsupportedFeatureError(name, f"gradients are those of {', '.join(KNOWN)}")
        if not array.requires_grad:
            raise ArgumentError(
                f"{name} does not require gradients: use finalize(requires_grad=True)"
            )


def refuse_reset(interval: int) -> None:
    """Raise for a taped reset that writes MuJoCo's own coordinates."""
    if interval != 1:
        raise UnsupportedFeatureError(
            f"a reset on a tape with update_data_interval={interval}",
            "it overwrites coordinates that steps continue: reset outside of the tape",
        )


def require_contacts(solver: newton.solvers.SolverMuJoCo, contacts: newton.Contacts | None) -> None:
    """Raise if a step with contacts of Newton has none."""
    if solver.use_mujoco_cpu or solver.mjw_model.opt.run_collision_detection:
        return
    if contacts is None:
        raise ArgumentError(
            "a step with use_mujoco_contacts=False needs contacts: newton.CollisionPipeline"
        )


def refuse_given_contacts(given: bool) -> None:
    """Raise if a linearization would need contacts of Newton."""
    if given:
        raise UnsupportedFeatureError(
            "linearize with use_mujoco_contacts=False",
            "contacts of Newton depend on body_q, which is no input of a linearization: use a tape",
        )


def refuse_sleep(solver: newton.solvers.SolverMuJoCo) -> None:
    """Raise if a tree sleeps, before a step or after it."""
    if not solver.enable_sleeping:
        return
    asleep = np.argwhere(solver.mjw_data.tree_asleep.numpy() >= 0)
    if len(asleep):
        world, tree = asleep[0].tolist()
        body = solver.mjc_body_to_newton.numpy()[world, solver.mj_model.tree_bodyadr[tree]]
        raise UnsupportedFeatureError(
            f'sleep of body "{solver.model.body_label[body]}" in world {world}',
            "a body that sleeps has no derivative: use enable_sleeping=False, or a smaller"
            " sleep_tolerance",
        )
    if solver.nvmax < solver.mj_model.nv:
        raise UnsupportedFeatureError(
            f"nvmax={solver.nvmax}", f"nothing sleeps, so a step needs {solver.mj_model.nv} dofs"
        )


def refuse_capture(model: newton.Model) -> None:
    """Raise if a taped step is captured in a CUDA graph."""
    if model.device.is_capturing:
        raise UnsupportedFeatureError(
            "a captured step on a tape",
            "its derivative is computed on the host, and a graph does not replay work of the host."
            " Capture steps without a tape, or record them without a capture",
        )


def refuse_native(solver: newton.solvers.SolverMuJoCo) -> None:
    """Raise for what MuJoCo C and Newton cannot do with several worlds."""
    if solver.enable_sleeping:
        raise UnsupportedFeatureError(
            "enable_sleeping with use_mujoco_cpu=True", "Newton's sleeping needs mujoco_warp"
        )


def refuse_native_step(model: newton.Model, state: newton.State, observables: object) -> None:
    """Raise for outputs that Newton would read from mujoco_warp, and for a captured step."""
    if model.device.is_capturing:
        raise UnsupportedFeatureError(
            "a captured step with use_mujoco_cpu=True", "a graph does not replay work of the host"
        )
    for name, _ in _outputs(state, observables):
        raise UnsupportedFeatureError(
            f"{name} with several worlds and use_mujoco_cpu=True", "mujoco_warp computes it"
        )


def _outputs(state: newton.State, observables: object) -> list[tuple[str, wp.array]]:
    """Return the observables that a step computes, with their names."""
    owners = (state, getattr(state, "mujoco", None), observables)
    found = [(name, getattr(owner, name, None)) for owner in owners for name in _OBSERVED]
    return [(name, array) for name, array in found if array is not None]


def observed(state: newton.State, observables: object) -> list[tuple[str, wp.array]]:
    """Return the observables of a step that require gradients, with their names."""
    return [(name, array) for name, array in _outputs(state, observables) if array.requires_grad]


def refuse_observed(arrays: list[tuple[str, wp.array]]) -> None:
    """Raise if a loss depends on one of these observables."""
    for name, array in arrays:
        if array.grad.numpy().any():
            raise UnsupportedFeatureError(
                f"a loss on {name}", "losses are functions of joint_q, joint_qd, body_q and body_qd"
            )


def without_gradient(model: newton.Model, chosen: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Return copies of the arrays that require gradients but have none here.

    chosen: arrays whose gradients are computed.
    """
    names = (*_WITHOUT_GRADIENT, *(name for name in NAMED if name not in chosen))
    found = {name: array_of(model, name) for name in names}
    return {
        name: array.numpy().copy()
        for name, array in found.items()
        if array is not None and array.size and array.requires_grad
    }


def refuse_edits(old: dict[str, np.ndarray], model: newton.Model, chosen: tuple[str, ...]) -> None:
    """Raise if arrays without a gradient were edited while a tape records."""
    for name, values in without_gradient(model, chosen).items():
        if not np.array_equal(values, old.get(name, values)):
            raise UnsupportedFeatureError(
                f"an edit of {name} on a tape",
                f"gradients are those of {', '.join(KNOWN)}. Edit it before the tape records, or"
                f" set {name}.requires_grad = False",
            )


def require_chain(given: list[wp.array], results: tuple[wp.array | None, ...]) -> None:
    """Raise if inputs of a step require gradients but its results do not."""
    if any(array.requires_grad for array in given) and not all(
        array is None or array.requires_grad for array in results
    ):
        raise MujacobianError(
            "state_out does not require gradients, so no gradient can reach the inputs of the step:"
            " use model.state(requires_grad=True) or finalize(requires_grad=True)"
        )


def require_finite(*results: np.ndarray) -> None:
    """Raise if a result of a step is not finite."""
    if not all(np.isfinite(values).all() for values in results):
        raise MujacobianError("the step diverges: its result contains NaN or infinite values")


def refuse_full_memory(where: str = "") -> None:
    """Raise because MuJoCo C dropped contacts or constraints."""
    raise MujacobianError(
        f"{where}MuJoCo C has no room for all contacts or constraints, so it dropped some. Newton"
        " has no option for the memory of MuJoCo C: let fewer shapes collide"
    )


def refuse_divergence(where: str = "") -> None:
    """Raise because MuJoCo C reset a state."""
    raise MujacobianError(
        f"{where}the step diverges: MuJoCo detected NaN or diverging values and reset the state"
    )


class Watch:
    """The warnings that MuJoCo C adds in one step."""

    def __init__(self, data: mujoco.MjData) -> None:
        self.numbers = data.warning.number  # a view
        self.before = self.numbers.copy()
        self.numbers[:] = 0  # a step that diverges resets the counters of earlier warnings

    def judge(self) -> None:
        """Raise if the step diverged or dropped contacts or constraints."""
        more = self.numbers > 0
        self.numbers += self.before
        if not more.any():
            return
        if more[list(_FULL)].any():
            refuse_full_memory()
        if more[list(_DIVERGED)].any():
            refuse_divergence()
