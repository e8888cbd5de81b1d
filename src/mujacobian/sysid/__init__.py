"""System identification: parameters of a model from logs, and the design of experiments."""

from mujacobian.sysid.calibration import Calibration
from mujacobian.sysid.excitation import Excitation, excite
from mujacobian.sysid.fit import Fit
from mujacobian.sysid.identify import identify
from mujacobian.sysid.log import Log
from mujacobian.sysid.problem import Iterate
from mujacobian.sysid.quality import IdentificationWarning
from mujacobian.sysid.result import Identification
from mujacobian.sysid.starts import Start

__all__ = [
    "Calibration",
    "Excitation",
    "Fit",
    "Identification",
    "IdentificationWarning",
    "Iterate",
    "Log",
    "Start",
    "excite",
    "identify",
]
