"""Error of a linearization against the numerical reference."""

import mujoco
import numpy as np

import mujacobian
from benchmarks.speed import EPS
from mujacobian import reference

METHODS = ("fd", "fdc", "ours")


class Reference:
    """[A B] at one state by extrapolated central differences of mj_step."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        ref = reference.jacobian(model, data)
        rows, self.blocks = ref.blocks[-2], ref.blocks[:-1]
        self.J, self.err = ref.J[:rows], ref.err[:rows]

    def error(self, J: np.ndarray) -> np.ndarray:
        """Return the relative error of every entry of J.

        The error is relative to the largest entry of its column within its block of rows. Entries
        for which the reference is not accurate enough count as zero.
        """
        matrix: np.ndarray = reference.compare(J, self.J, self.err, self.blocks).matrix
        return matrix


def jacobian(
    method: str, model: mujoco.MjModel, data: mujoco.MjData, eps: float = EPS
) -> np.ndarray:
    """Return [A B] by one of METHODS."""
    nx = 2 * model.nv + model.na
    A, B = np.zeros((nx, nx)), np.zeros((nx, model.nu))
    if method == "ours":
        mujacobian.transition(model, data, A, B)
    else:
        mujoco.mjd_transitionFD(model, data, eps, method == "fdc", A, B, None, None)
    return np.hstack([A, B])
