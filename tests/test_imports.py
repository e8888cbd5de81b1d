"""The public names, and packages that only a bridge needs: imported with it, not before."""

import importlib
import pickle
import subprocess
import sys

import pytest

import mujacobian

# functions and classes, then submodules that need no optional package
NAMES = [
    *("ColliderNotConvergedWarning", "Diagnostics", "Differenced", "Gradient", "Hessian"),
    *("Jacobian", "Linearization", "MujacobianError", "Parameters", "Pullback", "SelfCheckError"),
    *("SolverNotConvergedWarning", "Trajectory", "Unsupported", "UnsupportedFeatureError"),
    *("callbacks", "converged", "diagnose", "fd_count", "hessian", "hessian_batch"),
    *("hessian_into", "hvp", "inverse"),
    *("jvp", "linearize", "linearize_batch", "rollout", "selfcheck_count", "single"),
    *("smoothed", "support", "transition", "vjp", "wrench"),
]
SUBMODULES = ["check", "control", "errors", "reference", "rods"]


def test_dir_lists_the_public_names_and_nothing_else():
    assert sorted(mujacobian.__all__) == sorted(NAMES)
    assert dir(mujacobian) == sorted(NAMES + SUBMODULES)


def test_classes_have_the_path_by_which_users_import_them():
    for name in NAMES:
        value = getattr(mujacobian, name)
        if isinstance(value, type):
            assert value.__module__ == "mujacobian"
            assert pickle.loads(pickle.dumps(value)) is value


@pytest.mark.parametrize("name", [*SUBMODULES, "optimize", "sysid"])
def test_submodules_are_imported_at_their_first_use(name):
    code = f"import mujacobian; print(mujacobian.{name}.__name__)"
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert made.stdout.strip() == f"mujacobian.{name}"


@pytest.mark.parametrize("name", [*SUBMODULES, "optimize", "sysid"])
def test_submodules_list_names_that_exist(name):
    module = importlib.import_module(f"mujacobian.{name}")
    assert len(module.__all__) == len(set(module.__all__))
    for each in module.__all__:
        assert not each.startswith("_")
        assert hasattr(module, each)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'mujacobian' has no attribute 'linearise'"):
        mujacobian.linearise  # noqa: B018


def test_a_missing_package_is_named_with_the_pip_line():
    """Importing mujacobian does not import the package either."""
    code = (
        "import sys, mujacobian\n"
        "assert not {'torch', 'jax', 'newton', 'ray', 'gymnasium'} & set(sys.modules)\n"
        "sys.modules.update(torch=None, jax=None, newton=None, ray=None, gymnasium=None)\n"
        "for name in ('torch', 'jax', 'newton', 'ray', 'gym'):\n"
        "  for load in (lambda: __import__('mujacobian.' + name),\n"
        "               lambda: getattr(mujacobian, name)):\n"
        "    try: load()\n"
        "    except ImportError as error: print(error)\n"
    )
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for name in ("torch", "jax", "newton", "ray", "gym"):
        assert made.stdout.count(f"pip install 'mujacobian[{name}]'") == 2
