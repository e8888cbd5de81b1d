"""Physical parameters of a model as a vector, and the constants that MuJoCo derives from them."""

from mujacobian._parameters.parameters import Parameters

__all__ = ["Parameters"]
