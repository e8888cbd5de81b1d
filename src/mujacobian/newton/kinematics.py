"""Derivatives of Newton's forward kinematics, which computes body_q and body_qd after a step."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from types import SimpleNamespace

import newton
import numpy as np
import warp as wp
from numpy.typing import NDArray

from mujacobian._arguments import Array
from mujacobian.newton.host import by_world, write
from mujacobian.newton.internals import adjoint_launches, suspended_tape

Numbers = NDArray[np.float32]

_FRAMES = ("joint_X_p", "joint_X_c", "joint_axis", "body_com")
Frames = dict[str, Array]


class Kinematics:
    """Forward kinematics of a model, with a copy of its current frames."""

    def __init__(self, model: newton.Model, wanted: Sequence[str]) -> None:
        """Copy the frames of the model; `wanted` are the arrays that need gradients."""
        self._model = copy.copy(model)
        self._wanted = [name for name in _FRAMES if name in wanted]
        for name in _FRAMES:
            cloned = wp.clone(getattr(model, name), requires_grad=name in wanted)
            setattr(self._model, name, cloned)

    def pull(
        self, joint: Sequence[Array], body: Sequence[Numbers], d_body: Sequence[Array]
    ) -> tuple[Array, Array, Frames]:
        """Pull cotangents of body poses and velocities back to joint coordinates and to frames.

        joint: joint_q and joint_qd, the input of the kinematics.
        body: body_q and body_qd, its output.
        d_body: cotangents of body_q and body_qd.
        """
        (q, qd, *bodies), launches = self._adjoint
        values: list[NDArray[np.floating]] = [*joint, *body, *d_body]
        own = (q, qd, *bodies, *(each.grad for each in bodies))
        for array, new in zip(own, values, strict=True):
            write(array, new)
        frames = {name: getattr(self._model, name) for name in self._wanted}
        for array in (q, qd, *frames.values()):
            array.grad.zero_()
        for launch in launches:
            launch.launch()
        worlds = len(joint[0])
        made = {name: array.grad.numpy().astype(np.float64) for name, array in frames.items()}
        return by_world(q.grad, worlds), by_world(qd.grad, worlds), made

    @cached_property
    def _adjoint(self) -> tuple[list[wp.array], list[wp.Launch]]:
        """Own arrays of joint_q, joint_qd, body_q and body_qd, and launches of their adjoint.

        The arrays of the caller may have been overwritten since the step.
        """
        model = self._model
        own = [
            wp.clone(each, requires_grad=True)
            for each in (model.joint_q, model.joint_qd, model.body_q, model.body_qd)
        ]
        bodies = SimpleNamespace(body_q=own[2], body_qd=own[3])
        with suspended_tape(), wp.Tape() as tape:
            newton.eval_fk(model, own[0], own[1], bodies)
        return own, adjoint_launches(tape)
