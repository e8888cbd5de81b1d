"""The cores that are compared: mujacobian.rods in several kinds of coordinates of rotations."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import mujacobian.rods  # noqa: F401

BUILD = Path(__file__).parents[2] / "build" / "bench-rods" / "benchmarks" / "rods"
NAMES = ("lie", "vectors", "vectors_analytic")


def load(folder: Path) -> dict[str, ModuleType]:
    """Return the compiled cores."""
    sys.path.insert(0, str(folder))
    return {name: importlib.import_module(f"rods_{name}") for name in NAMES}


@contextmanager
def using(core: ModuleType) -> Iterator[None]:
    """Let mujacobian.rods use this core. Worlds belong to the core that they are made with."""
    with ExitStack() as stack:
        for name in ("rollout", "trajectory", "world"):
            module = sys.modules[f"mujacobian.rods.{name}"]
            stack.enter_context(patch.object(module, "_core", core))
        yield
