"""How exact and how fast the derivatives of one model are: what `mujacobian check` shows."""

from mujacobian.check._study import Report, StateReport, Study

__all__ = ["Report", "StateReport", "Study"]
