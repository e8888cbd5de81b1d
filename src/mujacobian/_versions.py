"""Releases of MuJoCo that the tests cover. `make test-versions` runs on each of them."""

from __future__ import annotations

import warnings

import mujoco

from mujacobian.errors import UntestedVersionWarning

OLDEST_TESTED = "3.15"
NEWEST_TESTED = "4.0"


def release(version: str) -> tuple[int, int]:
    """Return the numbers of the release that a version such as 3.15.0 belongs to."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def warn_if_untested() -> None:
    """Warn if the installed MuJoCo is newer than any tested release."""
    if release(mujoco.__version__) <= release(NEWEST_TESTED):
        return
    warnings.warn(
        f"mujacobian is not tested with MuJoCo {mujoco.__version__}: the newest tested release is "
        f"{NEWEST_TESTED}. Check your model with `mujacobian check MODEL.xml`, or install "
        f"'mujoco=={NEWEST_TESTED}.*'. To silence this warning, call "
        'warnings.filterwarnings("ignore", "mujacobian is not tested") before the import.',
        UntestedVersionWarning,
        stacklevel=3,  # the line that imports mujacobian
    )
