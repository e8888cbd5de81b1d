"""Releases of MuJoCo: a newer one than the tested ones causes a warning at import, once."""

import re
import subprocess
import sys
import warnings
from importlib import metadata

import mujoco
import pytest

from mujacobian import _versions
from mujacobian.errors import UntestedVersionWarning


def following(release: str) -> str:
    """Return the version after all versions of a release."""
    major, minor = release.split(".")
    return f"{major}.{int(minor) + 1}.0"


def test_a_newer_release_is_named_with_the_tested_one(monkeypatch):
    newer = following(_versions.NEWEST_TESTED)
    monkeypatch.setattr(mujoco, "__version__", newer)
    with pytest.warns(UntestedVersionWarning) as caught:
        _versions.warn_if_untested()
    (warning,) = caught
    message = str(warning.message)
    assert f"not tested with MuJoCo {newer}" in message
    assert f"the newest tested release is {_versions.NEWEST_TESTED}." in message


@pytest.mark.parametrize("patch", ["0", "9", "1.dev3"])
@pytest.mark.parametrize("release", [_versions.OLDEST_TESTED, _versions.NEWEST_TESTED])
def test_versions_of_tested_releases_are_silent(monkeypatch, release, patch):
    monkeypatch.setattr(mujoco, "__version__", f"{release}.{patch}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _versions.warn_if_untested()


def imported(before: str = "") -> str:
    """Return what a program prints that imports mujacobian twice on a newer MuJoCo."""
    program = (
        f"import mujoco, warnings; mujoco.__version__ = '999.0.0'\n{before}\n"
        "import mujacobian\nimport mujacobian.errors\nfrom mujacobian import linearize\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_import_warns_once():
    assert imported().count("UntestedVersionWarning") == 1


def test_the_message_says_how_to_silence_the_warning():
    advice = re.search(r"warnings\.filterwarnings\(.*?\)", imported())
    assert advice is not None
    assert imported(advice[0]) == ""


def test_the_oldest_release_is_the_one_that_the_package_requires():
    required = [line for line in metadata.requires("mujacobian") if "extra" not in line]
    assert f"mujoco>={_versions.OLDEST_TESTED}" in required
