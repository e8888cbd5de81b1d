"""Rotation matrices: exponential and logarithm, checks, frames along curves, Darboux vectors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers, shaped
from mujacobian._rotation import axial, skew
from mujacobian.errors import ArgumentError

# tolerance on R^T R - 1; rotations rounded to single precision are rejected
ORTHONORMAL = 1e-9


def rotations(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return `values` as rotation matrices of this shape `(..., 3, 3)`, orthonormalized."""
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
    """Return frames `(n, 3, 3)` without twist, whose third axes are the edges of a polyline.

    Each frame results from the previous one by the smallest rotation.

    Args:
      nodes: `(n + 1, 3)`, m, vertices of the polyline.
      up: `(3,)`, direction whose component normal to the first edge is the first axis of the first
        frame; by default the coordinate axis that is most perpendicular to this edge.
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
            raise ArgumentError("an edge reverses the direction of the previous edge: give frames")
        turn = np.eye(3) + skew(axis) + skew(axis) @ skew(axis) / (1 + cosine)
        frames.append(turn @ frames[-1])
    return np.array(frames)


def darboux(frames: ArrayLike, lengths: ArrayLike, bending: str = "sine") -> Array:
    """Return the Darboux vectors `(n - 1, 3)`, rad/m, between frames of adjacent edges (ROD-15).

    (R_a^T R_b - R_b^T R_a) / (2 l) = [omega]x, where l is the mean length of the two edges. The
    first two components are curvatures, the third is the twist. This is the sine of the angle
    between the frames, divided by l.

    Args:
      frames: `(n, 3, 3)`, frames of the edges.
      lengths: `(n,)`, m, lengths of the edges.
      bending: measure of the angle: "sine", the default, or "tangent", 2 tan(angle / 2) (ROD-34).
    """
    require_measure(bending)
    length = numbers("lengths", lengths)
    if length.ndim != 1 or not (length > 0).all():
        raise ArgumentError("lengths must be positive and have shape (n,)")
    R = shaped("frames", frames, (len(length), 3, 3))
    Q = np.swapaxes(R[:-1], -1, -2) @ R[1:]
    made: Array = axial(Q) / (length[:-1] + length[1:])[:, None]
    if bending == "tangent":
        made *= 4 / (1 + np.trace(Q, axis1=-2, axis2=-1))[:, None]
    return made


def require_measure(bending: str) -> str:
    """Return the name of a measure of bending angles, or raise if there is no such measure."""
    if bending not in ("sine", "tangent"):
        raise ArgumentError(f"bending must be 'sine' or 'tangent', got {bending!r}")
    return bending


def project(R: Array, bar: Array) -> Array:
    """Convert derivatives by the entries of R to derivatives by left perturbations (ROD-4)."""
    return axial(bar @ np.swapaxes(R, -1, -2))


def lift(R: Array, tangent: Array) -> Array:
    """Return the matrix in the tangent space at R that `project` maps to `tangent`."""
    made: Array = 0.5 * skew(tangent) @ R
    return made
