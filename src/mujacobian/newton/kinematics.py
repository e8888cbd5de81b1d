"""Derivatives through Newton's forward kinematics, which fills body_q and body_qd after a step."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from types import SimpleNamespace

import newton
import numpy as np
import warp as wp
from numpy.typing import NDArray

from mujacobian.newton.host import by_world, write
from mujacobian.newton.internals import adjoint_launches, suspended_tape

Array = NDArray[np.float64]
Numbers = NDArray[np.float32]

_FRAMES = ("joint_X_p", "joint_X_c", "joint_axis", "body_com")


class Kinematics:
    """Forward kinematics of a model, whose frames are kept as they are now.

    On arrays of its own: those of the caller may have been overwritten since the step.
    """

    def __init__(self, model: newton.Model) -> None:
        model = copy.copy(model)
        for name in _FRAMES:
            setattr(model, name, wp.clone(getattr(model, name), requires_grad=False))
        self._q, self._qd, self._body_q, self._body_qd = (
            wp.clone(each, requires_grad=True)
            for each in (model.joint_q, model.joint_qd, model.body_q, model.body_qd)
        )
        bodies = SimpleNamespace(body_q=self._body_q, body_qd=self._body_qd)
        with suspended_tape(), wp.Tape() as tape:
            newton.eval_fk(model, self._q, self._qd, bodies)
        self._back = adjoint_launches(tape)

    def pull(
        self, joint: Sequence[Array], body: Sequence[Numbers], d_body: Sequence[Array]
    ) -> tuple[Array, Array]:
        """Derivatives with respect to poses and velocities of bodies, as those of coordinates.

        `joint` and `body` are what the kinematics were given and what they returned.
        """
        q, qd, body_q, body_qd = self._q, self._qd, self._body_q, self._body_qd
        values: list[NDArray[np.floating]] = [*joint, *body, *d_body]
        for array, new in zip(
            (q, qd, body_q, body_qd, body_q.grad, body_qd.grad), values, strict=True
        ):
            write(array, new)
        for array in (q, qd):
            array.grad.zero_()
        for launch in self._back:
            launch.launch()
        worlds = len(joint[0])
        return by_world(q.grad, worlds), by_world(qd.grad, worlds)
