"""The inputs of a rollout: controls, applied forces and poses of mocap bodies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mujacobian._arguments import Array

Rows = Array | None


@dataclass(frozen=True)
class Inputs:
    """The inputs of every step, rows of `(n, T, ...)`; None means: as in the first state.

    A row of `mocap` has the positions of all mocap bodies, then all quaternions, as in the core.
    """

    controls: Array
    forces: Array | None = None
    wrenches: Array | None = None
    mocap: Array | None = None

    def rows(self, k: int, first: int, last: int) -> dict[str, Rows]:
        """Return the inputs of rollout k in steps first .. last-1, by the names of the core."""

        def cut(values: Rows) -> Rows:
            return None if values is None else values[k, first:last]

        return {
            "ctrl": cut(self.controls),
            "force": cut(self.forces),
            "wrench": cut(self.wrenches),
            "mocap": cut(self.mocap),
        }

    def one(self, k: int) -> Inputs:
        """Return the inputs of rollout k, with a leading axis of length 1."""

        def cut(values: Rows) -> Rows:
            return None if values is None else values[k : k + 1]

        return Inputs(
            self.controls[k : k + 1], cut(self.forces), cut(self.wrenches), cut(self.mocap)
        )

    def poses(self) -> Array:
        """Return the poses of mocap bodies, `(n, T, nmocap, 7)`."""
        assert self.mocap is not None
        bodies = self.mocap.shape[-1] // 7
        position, quaternion = np.split(self.mocap, [3 * bodies], axis=-1)
        lead = self.mocap.shape[:-1]
        parts = position.reshape(*lead, bodies, 3), quaternion.reshape(*lead, bodies, 4)
        return np.concatenate(parts, axis=-1)
