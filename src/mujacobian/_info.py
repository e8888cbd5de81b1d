"""Facts about this installation: versions, processor, MuJoCo's layout."""

from __future__ import annotations

import platform

import mujoco
import numpy as np

from mujacobian import _core, _layout


def gather() -> dict[str, str]:
    """Facts by name, in the order in which they are shown."""
    places = _layout.find_places()
    absent = [
        f"{field[0]}.{field[1]}"
        for field, (offset, _) in zip(_core.fields(), places, strict=True)
        if offset < 0
    ]
    fields = f"{len(places) - len(absent)} of {len(places)} fields found"
    sizes = ", ".join(
        f"{name} {_layout.struct_size(name)}" for name in ("mjModel", "mjData", "mjContact")
    )
    return {
        "mujacobian": _core.version(),
        "mujoco": mujoco.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor features": ", ".join(_core.processor_features()) or "compiler's default",
        "MuJoCo layout": fields + (f" (absent: {', '.join(absent)})" if absent else ""),
        "struct sizes": f"{sizes} bytes",
    }
