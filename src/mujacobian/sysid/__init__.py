"""System identification: fit model parameters to logs by least squares with exact Jacobians."""

from mujacobian.sysid.calibration import Calibration
from mujacobian.sysid.identify import identify
from mujacobian.sysid.log import Log
from mujacobian.sysid.problem import Iterate
from mujacobian.sysid.quality import IdentificationWarning
from mujacobian.sysid.result import Identification
from mujacobian.sysid.starts import Start

__all__ = [
    "Calibration",
    "Identification",
    "IdentificationWarning",
    "Iterate",
    "Log",
    "Start",
    "identify",
]
