"""Rotations: exponential, checks, frames along curves, Darboux vectors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers, shaped
from mujacobian._rotation import axial, skew
from mujacobian.errors import ArgumentError

# how far R^T R may be from 1; rounding of single precision is refused
ORTHONORMAL = 1e-9


def rotations(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """`values` as rotation matrices of this shape `(..., 3, 3)`, without their rounding errors."""
    R = shaped(name, values, shape)
    if R.size == 0:
        return R
    error = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-2, -1))
    wrong = (error > ORTHONORMAL) | (np.linalg.det(R) < 0)
    if wrong.any():
        where = np.argwhere(np.atleast_1d(wrong))[0] if R.ndim > 2 else []
        index = "".join(f"[{int(i)}]" for i in where)
        raise ArgumentError(
            f"{name}{index} is not a rotation matrix: R^T R differs from 1 by "
            f"{float(np.max(error)):.1e}, det R = {float(np.min(np.linalg.det(R))):.3g}"
        )
    u, _, vt = np.linalg.svd(R)
    made: Array = np.ascontiguousarray(u @ vt)
    return made


def frames_along(nodes: ArrayLike, up: ArrayLike | None = None) -> Array:
    """Frames `(n, 3, 3)` of the edges of a polyline whose third axis is the edge, without twist.

    Each frame is the one before, turned the shortest way.

    Args:
      nodes: `(n + 1, 3)`.
      up: direction near which the first frame's first axis lies.
    """
    x = numbers("nodes", nodes)
    if x.ndim != 2 or x.shape[1] != 3 or len(x) < 2:
        raise ArgumentError(f"nodes must have shape (n + 1, 3) with n >= 1, got {x.shape}")
    along = np.diff(x, axis=0)
    lengths = np.linalg.norm(along, axis=1, keepdims=True)
    if not lengths.min() > 0:
        raise ArgumentError(f"edge {int(np.argmin(lengths))} has length zero")
    d = along / lengths
    hint = np.eye(3)[np.argmin(np.abs(d[0]))] if up is None else shaped("up", up, (3,))
    first = hint - (hint @ d[0]) * d[0]
    if np.linalg.norm(first) < 1e-9:
        raise ArgumentError("up must not be parallel to the first edge")
    first /= np.linalg.norm(first)
    frames = [np.column_stack([first, np.cross(d[0], first), d[0]])]
    for before, after in pairwise(d):
        axis, cosine = np.cross(before, after), float(before @ after)
        if cosine < -1 + 1e-12:
            raise ArgumentError("an edge turns back on the one before: give frames")
        turn = np.eye(3) + skew(axis) + skew(axis) @ skew(axis) / (1 + cosine)
        frames.append(turn @ frames[-1])
    return np.array(frames)


def darboux(frames: ArrayLike, lengths: ArrayLike) -> Array:
    """Darboux vectors `(n - 1, 3)` between neighbouring frames `(n, 3, 3)` of edges.

    (R_a^T R_b - R_b^T R_a) / (2 l) = [omega]x with l the mean length of the two edges: curvature
    about the first two axes and twist about the third, in rad/m.              (ROD-15)
    """
    length = numbers("lengths", lengths)
    if length.ndim != 1 or not (length > 0).all():
        raise ArgumentError("lengths must be positive, of shape (n,)")
    R = shaped("frames", frames, (len(length), 3, 3))
    Q = np.swapaxes(R[:-1], -1, -2) @ R[1:]
    made: Array = axial(Q) / (length[:-1] + length[1:])[:, None]
    return made


def project(R: Array, bar: Array) -> Array:
    """Derivatives with respect to left perturbations, from those to the entries of R. (ROD-4)."""
    return axial(bar @ np.swapaxes(R, -1, -2))


def lift(R: Array, tangent: Array) -> Array:
    """The matrix tangent to the rotations at R that `project` takes to `tangent`."""
    made: Array = 0.5 * skew(tangent) @ R
    return made
