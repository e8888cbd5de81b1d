"""The examples in docstrings run and print what they say."""

import doctest
import importlib
import pkgutil
import sys

import pytest

import mujacobian
import mujacobian.rods

BRIDGES = ("torch", "jax", "mujoco_sysid")  # to packages that need not be installed
MODULES = sorted(
    each.name for each in pkgutil.iter_modules(mujacobian.__path__) if each.name != "__main__"
)
MODULES += sorted(f"rods.{each.name}" for each in pkgutil.iter_modules(mujacobian.rods.__path__))


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
