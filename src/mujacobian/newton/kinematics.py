"""Derivatives through Newton's forward kinematics, which fills body_q and body_qd after a step."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import newton
import numpy as np
import warp as wp
from numpy.typing import NDArray

from mujacobian.newton.internals import suspended_tape

Array = NDArray[np.float64]

_FRAMES = ("joint_X_p", "joint_X_c", "joint_axis", "body_com")


class Kinematics:
    """Forward kinematics of a model, whose frames are kept as they are now."""

    def __init__(self, model: newton.Model) -> None:
        self.model = copy.copy(model)
        for name in _FRAMES:
            setattr(self.model, name, wp.clone(getattr(model, name), requires_grad=False))

    def pull(
        self, joint_q: Array, joint_qd: Array, d_body_q: Array, d_body_qd: Array
    ) -> tuple[Array, Array]:
        """Derivatives with respect to poses and velocities of bodies, as those of coordinates.

        On arrays of our own: those of the caller may have been overwritten since.
        """
        model = self.model
        device = model.device
        q, qd = (
            wp.array(each.ravel(), dtype=wp.float32, device=device, requires_grad=True)
            for each in (joint_q, joint_qd)
        )
        bodies = SimpleNamespace(
            body_q=wp.clone(model.body_q, requires_grad=True),
            body_qd=wp.clone(model.body_qd, requires_grad=True),
        )
        with suspended_tape():
            with wp.Tape() as tape:
                newton.eval_fk(model, q, qd, bodies)
            bodies.body_q.grad.assign(d_body_q.astype(np.float32))
            bodies.body_qd.grad.assign(d_body_qd.astype(np.float32))
            tape.backward()
        return (
            q.grad.numpy().astype(np.float64).reshape(joint_q.shape),
            qd.grad.numpy().astype(np.float64).reshape(joint_qd.shape),
        )
