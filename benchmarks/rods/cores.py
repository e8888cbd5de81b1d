"""The compared cores: mujacobian.rods with several coordinates of rotations."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import mujacobian.rods  # noqa: F401
from mujacobian import _core

BUILD = Path(__file__).parents[2] / "build" / "bench-rods" / "benchmarks" / "rods"
VECTORS = ("vectors", "vectors_analytic")


def load(folder: Path) -> dict[str, ModuleType]:
    """Return the core of the package, and the cores in rotation vectors."""
    sys.path.insert(0, str(folder))
    return {"lie": _core} | {name: importlib.import_module(f"rods_{name}") for name in VECTORS}


@contextmanager
def using(core: ModuleType) -> Iterator[None]:
    """Make mujacobian.rods use this core. A world belongs to the core that created it."""
    with ExitStack() as stack:
        for name in ("model", "rollout", "trajectory"):
            module = sys.modules[f"mujacobian.rods.{name}"]
            stack.enter_context(patch.object(module, "_core", core))
        yield
