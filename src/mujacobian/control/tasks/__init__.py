"""Tasks for the planner, by name: models, costs, first states and measures of success.

Each is one file with its model beside it, to run (`load`) or to copy.
"""

from mujacobian.control.tasks.gait import TROT, Feet, Gait
from mujacobian.control.tasks.readings import readings
from mujacobian.control.tasks.registry import load, names
from mujacobian.control.tasks.task import Outcome, Task

__all__ = ["TROT", "Feet", "Gait", "Outcome", "Task", "load", "names", "readings"]
