"""The cases of `make validate-rods` that are quick converge with their orders."""

import pytest

from benchmarks import rods_validation as validation

QUICK = {
    "elastica": lambda: validation.elastica(5.0),
    "buckling": validation.buckling,
    "bending": lambda: validation.frequency("bending"),
    "torsion": lambda: validation.frequency("torsion"),
    "spring": validation.spring,
    "catenary": validation.catenary,
    "top": lambda: validation.top("bdf2"),
    "swing": lambda: validation.swing("bdf2"),
    "rolling": validation.rolling,
    "slope": validation.slope,
}


@pytest.mark.parametrize("name", QUICK)
def test_second_order(name):
    case = QUICK[name]()
    assert case.order > 1.9
    assert max(case.errors) < 0.1
