"""The elements of a model without exact derivatives, and the number of finite differences."""

from __future__ import annotations

import mujoco

from mujacobian import _core
from mujacobian._parameters import Parameters
from mujacobian._product import bind
from mujacobian.errors import ArgumentError, Unsupported


def support(
    model: mujoco.MjModel, order: int = 1, *, params: Parameters | None = None
) -> list[Unsupported]:
    """Return the elements of this model without exact derivatives; empty if all are covered.

    Constraints depend on the state and are not listed. They raise an error when they are active.
    With `order=2` the list also contains the options, actuators and sensors for which `hessian`
    raises an error if they are active. Contacts and distances between parallel features, and
    equalities whose impedance has a power below 2, raise only in single states and are not listed.
    With `params` the list also contains the elements that prevent derivatives with respect to these
    parameters, first or second ones, among them sensors that depend on them.

    Args:
      model: any model that MuJoCo loads.
      order: 1 for first derivatives, 2 for second ones.
      params: parameters with respect to which derivatives are taken, too.

    Example:
      >>> import mujoco, mujacobian
      >>> model = mujoco.MjModel.from_xml_string(
      ...     "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>"
      ...     "</worldbody></mujoco>")
      >>> mujacobian.support(model)
      []
    """
    if order not in (1, 2):
        raise ArgumentError(f"order must be 1 or 2, got {order!r}")
    core = [] if params is None else bind(params, model).core
    found = _core.unsupported(model, order, core)
    return [Unsupported(element, reason) for element, reason in found]


def fd_count() -> int:
    """Return the number of finite differences that entered a result of this process.

    Only the argument fallback="fd" and the finite-difference backends of `control.ILQR` increase
    this counter, by the number of steps of MuJoCo. Everything else in the package is analytic.
    """
    return _core.difference_count()
