"""Parameters written into a model, with the fields that MuJoCo's compiler precomputes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import mujoco
import numpy as np

from mujacobian._arguments import Array
from mujacobian._parameters.entries import Entry, write
from mujacobian._parameters.fields import QUATERNIONS
from mujacobian._parameters.inertia import from_log_cholesky, write_inertia
from mujacobian._parameters.placement import (
    bound_body,
    bound_geom,
    release,
    release_inertial_frame,
)


def write_entries(
    model: mujoco.MjModel,
    entries: Sequence[Entry],
    values: Iterable[float],
    inertias: Mapping[int, Array],
) -> None:
    """Write the values of the entries into the model, and update frames and bounds.

    `inertias` are the log-Cholesky coordinates of bodies, which are written together.
    """

    def of(*fields: str) -> list[int]:
        return list(dict.fromkeys(e.element for e in entries if e.field in fields))

    # nothing else moves with the frames that change
    for body in of("body_ipos", "body_log_cholesky"):
        release_inertial_frame(model, body)
    for geom in of("geom_pos", "geom_quat"):
        release(model, "geom", geom)

    for entry, value in zip(entries, values, strict=True):
        if entry.field != "body_log_cholesky":
            write(model, entry, value)
    for field in (*QUATERNIONS, "jnt_axis"):
        for element in of(field):
            getattr(model, field)[element] /= np.linalg.norm(getattr(model, field)[element])
    for body, theta in inertias.items():
        write_inertia(model, body, from_log_cholesky(theta)[0])

    # bounds of geoms, and of bodies whose geoms or inertial frames have changed
    for geom in of("geom_size"):
        bound_geom(model, geom)
    geoms = of("geom_pos", "geom_quat", "geom_size")
    for body in {*of("body_ipos", "body_log_cholesky"), *model.geom_bodyid[geoms].tolist()}:
        bound_body(model, body)
