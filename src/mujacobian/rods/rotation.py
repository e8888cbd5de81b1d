"""Rotations: exponential, checks, frames along curves, Darboux vectors."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers, shaped
from mujacobian.errors import ArgumentError

# how far R^T R may be from 1; rounding of single precision is refused
ORTHONORMAL = 1e-9


def skew(w: ArrayLike) -> Array:
    """The matrices [w]x of vectors w, with [w]x u = w x u."""
    v = np.asarray(w, dtype=np.float64)
    made = np.zeros((*v.shape, 3))
    made[..., 2, 1], made[..., 0, 2], made[..., 1, 0] = v[..., 0], v[..., 1], v[..., 2]
    return made - np.swapaxes(made, -1, -2)


def exp(w: ArrayLike) -> Array:
    """The rotations by the vectors `w` `(..., 3)`: axis times angle, in rad.

    Example:
      >>> from mujacobian import rods
      >>> rods.exp([0, 0, 3.141592653589793]).round(12)[0]
      array([-1., -0.,  0.])
    """
    v = numbers("w", w)
    if v.shape[-1:] != (3,):
        raise ArgumentError(f"w must have shape (..., 3), got {v.shape}")
    angle = np.linalg.norm(v, axis=-1)[..., None, None]
    s = skew(v)
    # np.sinc(x) = sin(pi x) / (pi x)
    first, half = np.sinc(angle / np.pi), np.sinc(angle / (2 * np.pi))
    made: Array = np.eye(3) + first * s + 0.5 * half**2 * (s @ s)
    return made


def log(R: Array) -> Array:
    """The rotation vectors, of length up to pi, of rotations; at pi the axis has either sign."""
    twice = axial(R)  # 2 sin(angle) axis
    sine = 0.5 * np.linalg.norm(twice, axis=-1)[..., None]
    cosine = 0.5 * (np.trace(R, axis1=-2, axis2=-1)[..., None] - 1)
    angle = np.arctan2(sine, cosine)
    small = sine < 1e-8
    near = 0.5 * twice * np.where(small, 1, angle / np.where(small, 1, sine))
    # beyond a right angle from the symmetric part, cos 1 + (1 - cos) axis axis^T
    square = 0.5 * (R + np.swapaxes(R, -1, -2)) - cosine[..., None] * np.eye(3)
    largest = np.argmax(np.diagonal(square, axis1=-2, axis2=-1), axis=-1)[..., None, None]
    column = np.take_along_axis(square, largest, axis=-1)[..., 0]
    axis = column / np.linalg.norm(column, axis=-1, keepdims=True).clip(1e-300)
    backwards = np.sum(axis * twice, axis=-1, keepdims=True) < 0
    return np.where(cosine > 0, near, angle * np.where(backwards, -axis, axis))


def right_jacobian(w: ArrayLike) -> Array:
    """Jr with exp(w + dw) = exp(w) exp(Jr dw); its transpose is the left Jacobian."""
    v = np.asarray(w, dtype=np.float64)
    t = np.sum(v * v, axis=-1)[..., None, None]
    angle, s = np.sqrt(t), skew(v)
    half = np.sinc(angle / (2 * np.pi))
    big = np.maximum(t, 1e-2)
    series = 1 / 6 - t / 120 + t**2 / 5040 - t**3 / 362880 + t**4 / 39916800
    third = np.where(t < 1e-2, series, (1 - np.sinc(np.sqrt(big) / np.pi)) / big)
    made: Array = np.eye(3) - 0.5 * half**2 * s + third * (s @ s)
    return made


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


def axial(M: Array) -> Array:
    """The vectors a with M - M^T = [a]x. (ROD-3)."""
    return np.stack(
        [M[..., 2, 1] - M[..., 1, 2], M[..., 0, 2] - M[..., 2, 0], M[..., 1, 0] - M[..., 0, 1]],
        axis=-1,
    )


def project(R: Array, bar: Array) -> Array:
    """Derivatives with respect to left perturbations, from those to the entries of R. (ROD-4)."""
    return axial(bar @ np.swapaxes(R, -1, -2))


def lift(R: Array, tangent: Array) -> Array:
    """The matrix tangent to the rotations at R that `project` takes to `tangent`."""
    made: Array = 0.5 * skew(tangent) @ R
    return made
