"""A build for AVX2 raises on a processor without it, before it executes such an instruction."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mujacobian import _core

QEMU = shutil.which("qemu-x86_64")
# the module without the package around it, so that the emulator does not have to import MuJoCo
PROGRAM = f"""
import sys, types
package = types.ModuleType("mujacobian")
package.__path__ = [{str(Path(_core.__file__).parent)!r}]
sys.modules["mujacobian"] = package
import mujacobian._core
print("imported for", *mujacobian._core.processor_features())
"""

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="AVX2 is a feature of x86-64"),
    pytest.mark.skipif(QEMU is None, reason="needs qemu-x86_64 (Debian: apt install qemu-user)"),
    pytest.mark.skipif("AVX2" not in _core.processor_features(), reason="a build without AVX2"),
    pytest.mark.skipif("LD_PRELOAD" in os.environ, reason="sanitizers do not run in the emulator"),
]


def import_on(processor):
    command = [QEMU, "-cpu", processor, sys.executable, "-c", PROGRAM]
    return subprocess.run(command, capture_output=True, text=True)


def test_a_processor_without_avx2_is_refused():
    result = import_on("SandyBridge")
    assert result.returncode == 1
    assert "mujacobian.errors.UnusableError" in result.stderr
    assert "needs a processor with AVX2 and FMA" in result.stderr
    assert "MUJACOBIAN_GENERIC=ON" in result.stderr


def test_a_processor_without_avx_is_refused():
    result = import_on("Nehalem")
    assert result.returncode == 1
    assert "mujacobian.errors.UnusableError" in result.stderr


def test_a_processor_with_avx2_imports_the_module():
    result = import_on("Haswell")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "imported for AVX2 FMA\n"
