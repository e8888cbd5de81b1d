"""Description of the machine that runs the benchmarks."""

import platform
from pathlib import Path

import mujoco

from mujacobian import _core


def machine() -> str:
    """Return the processor and the versions that were measured."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor() or platform.machine()
    return f"{cpu}, MuJoCo {mujoco.__version__}, mujacobian {_core.version()}"
