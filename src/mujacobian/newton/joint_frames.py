"""Gradients of joint frames and centers of mass, by which coordinates and wrenches are measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import newton
import numpy as np

from mujacobian._arguments import Array
from mujacobian._rotation import lifted
from mujacobian.newton.coordinates import Coordinates, FrameCotangents, Start
from mujacobian.newton.frame_parameters import CHILD, COM, PARENT
from mujacobian.newton.inputs import Inputs
from mujacobian.newton.internals import Maps

if TYPE_CHECKING:
    from mujacobian.newton.snapshot import InputCotangents


class JointFrames:
    """The frames of all joints in Newton's coordinates, beside their effect on MuJoCo's model.

    Attributes:
      wanted: arrays whose gradients are computed.
    """

    def __init__(
        self,
        model: newton.Model,
        maps: Maps,
        coordinates: Coordinates,
        inputs: Inputs,
        wanted: Sequence[str],
    ) -> None:
        self.wanted = [name for name in (COM, PARENT, CHILD) if name in wanted]
        self._coordinates, self._inputs = coordinates, inputs
        W = maps.worlds
        self._child = model.joint_child.numpy().astype(np.intp)
        self._bodies = model.body_count
        self._quaternions = {
            name: getattr(model, name).numpy().astype(np.float64)[:, 3:].reshape(W, -1, 4)
            for name in self.wanted
            if name != COM
        }

    def pull(
        self,
        result: tuple[Array, Array, Array, Array],
        at: Start,
        given: dict[str, Array],
        made: InputCotangents,
        carried: bool,
    ) -> dict[str, Array]:
        """Return gradients of the arrays (NWT-18 to NWT-21).

        result: qpos and qvel after the step, and cotangents of Newton's coordinates after it.
        at, given: coordinates and inputs at the start of the step.
        made: cotangents of MuJoCo's inputs.
        carried: whether the step begins with MuJoCo's own coordinates.
        """
        c = self._coordinates
        to = FrameCotangents.zeros(c.worlds, c.joints)
        c.pull_result_frames(to, *result)
        if not carried:
            c.pull_start_frames(to, at, made.q, made.v)
        self._inputs.pull_frames(to, at, given, made.actions)
        found = {}
        for name, moved in ((PARENT, to.parent), (CHILD, to.child)):
            if name in self.wanted:
                turned = lifted(self._quaternions[name], moved[..., 3:])
                found[name] = np.concatenate([moved[..., :3], turned], axis=-1)
        if COM in self.wanted:
            found[COM] = np.zeros((self._bodies, 3))
            np.add.at(found[COM], self._child, to.com.reshape(-1, 3))
            if made.centers is not None:
                self._add_centers(found[COM], made.centers)
        return found

    def _add_centers(self, to: Array, centers: Array) -> None:
        """Add the gradients of the centers at which wrenches act, per world and MuJoCo body."""
        inputs = self._inputs
        bodies = to.reshape(inputs.worlds, -1, 3)
        acts = np.where(inputs.movable[..., None], centers[:, inputs.mj_body], 0)
        bodies[:, inputs.body] += acts
