"""How exact and how fast the derivatives of one model are: the study of `mujacobian check`."""

from mujacobian.check._report import Report, StateReport
from mujacobian.check._study import Study

__all__ = ["Report", "StateReport", "Study"]
