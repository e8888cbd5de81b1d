"""Linearizations without the sensors that have no exact derivative, and what stands in the way."""

import mujoco

import mujacobian


def linearize(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[mujacobian.Linearization, str]:
    """Return the linearization, without sensors if one is refused, and that refusal."""
    try:
        return mujacobian.linearize(model, data), ""
    except mujacobian.UnsupportedFeatureError as error:
        if not error.element.startswith("sensor"):
            raise
        return mujacobian.linearize(model, data, sensors=False), reason(error)


def reason(error: mujacobian.UnsupportedFeatureError) -> str:
    """Return the element that is not covered and why."""
    return f"{error.element}: {error.reason}"
