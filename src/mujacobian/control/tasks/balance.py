"""Terms of the cost of a model that walks on two feet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from mujacobian import control
from mujacobian._arguments import Array
from mujacobian.control.gait import Gait


def terms(
    gait: Gait, capture: control.Rows, feet: Sequence[control.Rows], lean: float
) -> list[control.Term]:
    """Return terms that keep the capture point over the supporting feet.

    Args:
      gait: gait of the two feet.
      capture: position of the capture point, m.
      feet: positions of the feet, m, in the order of the gait.
      lean: weight of the supporting foot in the point of balance on one foot.
    """
    return [
        control.Term(
            f"balance on {name}",
            (capture - share * feet[0] - (1 - share) * feet[1])[:2],
            control.L2(0.05),
            2.0,
            partial(still_if, gait, swings),
        )
        for name, share, swings in (
            ("both", 0.5, (False, False)),
            ("right", lean, (False, True)),
            ("left", 1 - lean, (True, False)),
        )
    ]


def walking_terms(
    gait: Gait,
    up: Sequence[control.Rows],
    ahead: Sequence[control.Rows],
    feet: Sequence[control.Rows],
) -> list[control.Term]:
    """Return terms that keep axes vertical or pointing ahead, and lift the feet as the gait says.

    Args:
      gait: gait of the two feet.
      up: axes that should point up.
      ahead: axes that should not point to the side.
      feet: positions of the feet, m, in the order of the gait.
    """
    return [
        control.Term(
            "upright", control.stack(*(axis[:2] for axis in up)), control.SmoothAbs(0.1), 0.3
        ),
        control.Term(
            "ahead", control.stack(*(axis[1] for axis in ahead)), control.Quadratic(), 0.5
        ),
        control.Term(
            "gait",
            control.stack(*(foot[2] for foot in feet)),
            control.SmoothAbs(0.03),
            10.0,
            gait.lift,
        ),
    ]


def still_if(gait: Gait, swings: tuple[bool, bool], times: Array) -> Array:
    """Return targets `(n, 2)`: zero while exactly these feet swing, else NaN, which is none."""
    now = (gait.lift(times) > 0) == swings
    return np.where(now.all(axis=1)[:, None], np.zeros(2), np.nan)
