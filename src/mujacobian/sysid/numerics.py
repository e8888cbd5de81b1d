"""The functions of the optional package scipy that system identification uses."""

from mujacobian.errors import MissingPackageError

try:
    from scipy.optimize import least_squares, minimize
    from scipy.special import gammaincinv, stdtrit
except ImportError as error:
    raise MissingPackageError(
        "mujacobian.sysid needs scipy: pip install 'mujacobian[sysid]'", name="scipy"
    ) from error

__all__ = ["gammaincinv", "least_squares", "minimize", "stdtrit"]
