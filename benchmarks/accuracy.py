"""Error of a linearization against the numerical reference of the test suite."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import mujoco
import numpy as np

import mujacobian
from benchmarks.speed import EPS

METHODS = ("fd", "fdc", "ours")


class Reference:
    """[A B] at one state by extrapolated central differences of mj_step."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        ref = _tests_reference.jacobian(model, data)
        rows, self.blocks = ref.blocks[-2], ref.blocks[:-1]
        self.J, self.err = ref.J[:rows], ref.err[:rows]

    def error(self, J: np.ndarray) -> np.ndarray:
        """Return the relative error of every entry of J.

        It is relative to the largest entry of its column within its block of rows; entries that
        the reference itself does not know well enough count as zero.
        """
        matrix: np.ndarray = _tests_reference.compare(J, self.J, self.err, self.blocks).matrix
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


def _load_tests_reference() -> ModuleType:
    """Load tests/reference.py by its path: the tests are not an installed package."""
    path = Path(__file__).resolve().parent.parent / "tests" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["reference"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_tests_reference = _load_tests_reference()
