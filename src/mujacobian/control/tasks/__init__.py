"""Tasks for the planner: models, costs, initial states and measures of success.

Each task is one Python file and one model file. `load` returns a task by name; copy its files to
make your own.
"""

from mujacobian.control.tasks.gait import TROT, Feet, Gait
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.registry import load, names
from mujacobian.control.tasks.task import Outcome, Task

__all__ = ["TROT", "Feet", "Gait", "Outcome", "Task", "load", "names", "readings"]
