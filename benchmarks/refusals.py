"""Linearization without sensors if a sensor is not supported, and the reason."""

import mujoco

import mujacobian


def linearize(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[mujacobian.Linearization, str]:
    """Return the linearization, without sensors if one is not supported, and that error."""
    try:
        return mujacobian.linearize(model, data), ""
    except mujacobian.UnsupportedFeatureError as error:
        if error.sensor is None:
            raise
        return mujacobian.linearize(model, data, sensors=False), reason(error)


def reason(error: mujacobian.UnsupportedFeatureError) -> str:
    """Return the element that is not supported, and the reason."""
    return f"{error.element}: {error.reason}"
