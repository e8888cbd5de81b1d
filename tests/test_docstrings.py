"""The examples in docstrings run and print the documented output."""

import doctest
import importlib
import pkgutil

import pytest

import mujacobian

# modules that need optional packages
BRIDGES = ("torch", "jax", "mujoco_sysid", "crocoddyl", "newton", "ray", "gym")
MODULES = [
    "mujacobian",
    *(
        each.name
        for each in pkgutil.walk_packages(mujacobian.__path__, "mujacobian.")
        if not each.name.endswith("__main__")
    ),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        if name.split(".")[-1] not in BRIDGES:
            raise
        pytest.skip(str(error))
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("function", [mujacobian.transition, mujacobian.inverse])
def test_examples_of_the_core(function):
    name = function.__name__
    example = doctest.DocTestParser().get_doctest(function.__doc__, {}, name, None, None)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0
