"""The examples in docstrings run and print the documented output."""

import doctest
import importlib
import pkgutil
import sys

import pytest

import mujacobian
import mujacobian.control
import mujacobian.rods

# modules that need optional packages
BRIDGES = ("torch", "jax", "mujoco_sysid", "crocoddyl", "newton")
MODULES = sorted(
    prefix + each.name
    for package, prefix in (
        (mujacobian, ""),
        (mujacobian.control, "control."),
        (mujacobian.rods, "rods."),
    )
    for each in pkgutil.iter_modules(package.__path__)
    if each.name != "__main__"
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    try:
        importlib.import_module(f"mujacobian.{name}")
    except ImportError as error:
        if name.split(".")[-1] not in BRIDGES:
            raise
        pytest.skip(str(error))
    # functions may hide modules of the same name in the package
    assert doctest.testmod(sys.modules[f"mujacobian.{name}"]).failed == 0
