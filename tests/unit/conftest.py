"""Make the module `primitives`, which `make test` builds, importable for these tests."""

import sys
from pathlib import Path

import pytest

BUILT = Path(__file__).resolve().parents[2] / "build" / "release" / "primitives"

# at the end, so that PYTHONPATH can put the one with sanitizers in front
sys.path.append(str(BUILT))
try:
    import primitives  # noqa: F401
except ModuleNotFoundError as error:
    raise pytest.UsageError(
        f"{BUILT} has no module 'primitives': run `make build/release/primitives/.built`"
    ) from error
