"""Tasks for the planner: models, costs, initial states and measures of success.

Each task is one Python file and one model file. `load` returns a task by name; copy its files to
make your own.
"""

import warnings

from mujacobian.control.gait import Gait as _Gait
from mujacobian.control.tasks.gait import TROT, Feet
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.registry import load, names
from mujacobian.control.tasks.task import Outcome, Task

__all__ = ["TROT", "Feet", "Outcome", "Task", "load", "names", "readings"]


def __getattr__(name: str) -> object:
    """Return `Gait` under its former, deprecated name."""
    if name == "Gait":
        warnings.warn("tasks.Gait is now control.Gait", DeprecationWarning, stacklevel=2)
        return _Gait
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
