"""Errors survive the transfer from another process."""

import pickle

import pytest

from mujacobian.errors import MujacobianError, SelfCheckError, UnsupportedFeatureError
from mujacobian.rods import ConvergenceError


@pytest.mark.parametrize(
    "error",
    [
        UnsupportedFeatureError('actuator "odd"', "a user type"),
        SelfCheckError("A[3, 1] is off", "A", 3, 1),
        ConvergenceError("step 4 did not converge", 4, 0.5),
    ],
    ids=lambda error: type(error).__name__,
)
def test_pickle(error: MujacobianError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
