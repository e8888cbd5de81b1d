"""Strains, internal forces and contact forces along a trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mujacobian import _core
from mujacobian._arguments import Array
from mujacobian._summary import summarize
from mujacobian.rods.start import state_before

if TYPE_CHECKING:
    from mujacobian.rods.trajectory import Trajectory


@dataclass(frozen=True, repr=False)
class Internal:
    """Strains and elastic forces of the rods in each state, without damping.

    Attributes:
      strain: `(T + 1, edges)`, length divided by the rest length, minus one.
      shear: `(T + 1, edges)`, rad, angles between the edges and the third axes of their frames.
      darboux: `(T + 1, bends, 3)`, 1/m, curvatures and twist in the measure of the rod.
      tension: `(T + 1, edges)`, N.
      moment: `(T + 1, bends, 3)`, N m, about the axes of the cross section.
    """

    strain: Array
    shear: Array
    darboux: Array
    tension: Array
    moment: Array

    __repr__ = summarize


@dataclass(frozen=True, repr=False)
class ContactForces:
    """Sums of the forces of contacts and friction on each point and frame, in world axes.

    Attributes:
      forces: `(T, points, 3)`, N, at the end of each step.
      torques: `(T, frames, 3)`, N m, about the centers of mass of bodies, and on the edges of rods.
    """

    forces: Array
    torques: Array

    __repr__ = summarize


def internal(trajectory: Trajectory) -> Internal:
    """Return strains, tensions and moments of the rods in each state."""
    world, p, x = trajectory.world, trajectory.params, trajectory.positions
    edges = [rod.along(x[:, world.points(rod)]) for rod in world.rods]
    e = np.concatenate([np.zeros((len(x), 0, 3)), *edges], axis=1)
    length = np.linalg.norm(e, axis=2)
    director = trajectory.rotations[:, : world.n_edges, :, 2]
    sine = np.linalg.norm(np.cross(e, director), axis=2)
    strain = length / p.length - 1
    vectors = np.empty((len(x), world.n_bends, 3))
    _core.rods_darboux_into(
        trajectory.model,
        rows=len(x),
        positions=x,
        rotations=trajectory.rotations,
        vectors=vectors,
    )
    rest = world.rest() if trajectory.inputs.rest is None else trajectory.inputs.rest
    if rest.ndim == 3:
        rest = np.concatenate([rest[:1], rest])
    return Internal(
        strain,
        np.arctan2(sine, np.einsum("tei,tei->te", e, director)),
        vectors,
        p.stretch * strain,
        p.bend * (vectors - rest),
    )


def contact_forces(trajectory: Trajectory) -> ContactForces:
    """Return the forces and torques of all contacts at the end of each step."""
    world, T = trajectory.world, trajectory.steps
    before = state_before(world, trajectory.first)
    x, R = (
        np.concatenate([each[None], rows])
        for each, rows in zip(before, (trajectory.positions, trajectory.rotations), strict=True)
    )
    made = ContactForces(np.empty((T, world.n_points, 3)), np.empty((T, world.n_frames, 3)))
    for k in range(T):
        # the states before step k, newest first, are the rows k + 1, k, ...
        past = slice(max(k - 2, 0), k + 2)
        _core.rods_contact_forces_into(
            trajectory.model,
            step=k,
            past_x=np.ascontiguousarray(x[past][::-1]),
            past_R=np.ascontiguousarray(R[past][::-1]),
            x=x[k + 2],
            R=R[k + 2],
            forces=made.forces[k],
            torques=made.torques[k],
        )
    return made
