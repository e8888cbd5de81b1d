"""Rotations as vectors, matrices and quaternions, and their derivatives.

A rotation vector is the axis times the angle, in rad. The functions whose names begin with
`quaternion` take quaternions (w, x, y, z), as MuJoCo stores them. The functions from `to_wxyz` on
take quaternions (x, y, z, w), as Newton stores them. Arrays may have any leading axes.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from mujacobian._arguments import Array, numbers
from mujacobian.errors import ArgumentError

_CONJUGATE: Array = np.array([-1.0, -1.0, -1.0, 1.0])


def _entries(x: Array, table: Array) -> Array:
    """Return square matrices whose entries are linear in vectors x.

    Two calls of NumPy are several times faster than one for each entry.
    """
    return (x @ table).reshape(*x.shape, x.shape[-1])


_SKEW: Array = np.array([np.cross(e, np.eye(3)).T for e in np.eye(3)]).reshape(3, 9)


def skew(w: ArrayLike) -> Array:
    """Return the matrices [w]x of vectors w, with [w]x u = w x u."""
    return _entries(np.asarray(w, dtype=np.float64), _SKEW)


def cross(a: Array, b: Array) -> Array:
    """Return the cross products a x b."""
    return turn(skew(a), b)


def axial(M: Array) -> Array:
    """Return the vectors a with M - M^T = [a]x (ROD-3), the sums of e_k x M e_k over the axes."""
    return np.stack(
        [M[..., 2, 1] - M[..., 1, 2], M[..., 0, 2] - M[..., 2, 0], M[..., 1, 0] - M[..., 0, 1]],
        axis=-1,
    )


def exp(w: ArrayLike) -> Array:
    """Return the matrices of the rotations by vectors `w` `(..., 3)`: axis times angle, in rad.

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
    """Return the rotation vectors of rotation matrices, with lengths up to pi.

    At pi the axis has either sign.
    """
    twice = axial(R)  # 2 sin(angle) axis
    sine = 0.5 * np.linalg.norm(twice, axis=-1)[..., None]
    cosine = 0.5 * (np.trace(R, axis1=-2, axis2=-1)[..., None] - 1)
    angle = np.arctan2(sine, cosine)
    small = sine < 1e-8
    near = 0.5 * twice * np.where(small, 1, angle / np.where(small, 1, sine))
    # beyond a right angle, from the symmetric part, cos 1 + (1 - cos) axis axis^T
    square = 0.5 * (R + np.swapaxes(R, -1, -2)) - cosine[..., None] * np.eye(3)
    largest = np.argmax(np.diagonal(square, axis1=-2, axis2=-1), axis=-1)[..., None, None]
    column = np.take_along_axis(square, largest, axis=-1)[..., 0]
    axis = column / np.linalg.norm(column, axis=-1, keepdims=True).clip(1e-300)
    backwards = np.sum(axis * twice, axis=-1, keepdims=True) < 0
    return np.where(cosine > 0, near, angle * np.where(backwards, -axis, axis))


def right_jacobian(w: ArrayLike) -> Array:
    """Return Jr with exp(w + dw) = exp(w) exp(Jr dw); its transpose is the left Jacobian."""
    v = np.asarray(w, dtype=np.float64)
    t = np.sum(v * v, axis=-1)[..., None, None]
    angle, s = np.sqrt(t), skew(v)
    half = np.sinc(angle / (2 * np.pi))
    big = np.maximum(t, 1e-2)
    series = 1 / 6 - t / 120 + t**2 / 5040 - t**3 / 362880 + t**4 / 39916800
    third = np.where(t < 1e-2, series, (1 - np.sinc(np.sqrt(big) / np.pi)) / big)
    made: Array = np.eye(3) - 0.5 * half**2 * s + third * (s @ s)
    return made


def turn(R: Array, x: Array) -> Array:
    """Return R x."""
    return (R @ x[..., None])[..., 0]


def turn_back(R: Array, x: Array) -> Array:
    """Return R^T x."""
    return (x[..., None, :] @ R)[..., 0, :]


def quaternion_matrix(q: Array) -> Array:
    """Return the rotation matrix `(3, 3)` of one unit quaternion (w, x, y, z)."""
    made = np.empty(9)
    mujoco.mju_quat2Mat(made, q)
    return made.reshape(3, 3)


def quaternion_rate(q: Array, t: Array) -> Array:
    """Return E(q) t = q (0, t), twice the change of q with a rotation t after it (ADJ-6)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    a, b, c = np.moveaxis(t, -1, 0)
    parts = (
        -x * a - y * b - z * c,
        w * a - z * b + y * c,
        z * a + w * b - x * c,
        -y * a + x * b + w * c,
    )
    return np.stack(parts, axis=-1)


def quaternion_rate_transposed(q: Array, g: Array) -> Array:
    """Return E(q)^T g (ADJ-7)."""
    w, x, y, z = np.moveaxis(q, -1, 0)
    a, b, c, d = np.moveaxis(g, -1, 0)
    parts = (
        -x * a + w * b + z * c - y * d,
        -y * a - z * b + w * c + x * d,
        -z * a + y * b - x * c + w * d,
    )
    return np.stack(parts, axis=-1)


def to_wxyz(q: Array) -> Array:
    """Return quaternions (x, y, z, w) in the order of MuJoCo."""
    return np.take(q, (3, 0, 1, 2), axis=-1)


def to_xyzw(q: Array) -> Array:
    """Return quaternions (w, x, y, z) in the order of Newton, scaled to unit length."""
    return unit(np.take(q, (1, 2, 3, 0), axis=-1))


def unit(q: Array) -> Array:
    """Return q / |q|."""
    length: Array = np.sqrt((q * q).sum(axis=-1, keepdims=True))
    return q / length


def conjugate(q: Array) -> Array:
    """Return the inverse of unit quaternions."""
    return q * _CONJUGATE


def _before(p: Array) -> list[list[float]]:
    """Return the matrix L(p) of products p q = L(p) q."""
    x, y, z, w = p
    return [[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]]


def _after(q: Array) -> list[list[float]]:
    """Return the matrix R(q) of products p q = R(q) p."""
    x, y, z, w = q
    return [[w, z, -y, x], [-z, w, x, y], [y, -x, w, z], [-x, -y, -z, w]]


_BEFORE: Array = np.array([_before(e) for e in np.eye(4)]).reshape(4, 16)
_AFTER_INVERSE: Array = np.array([_after(e * _CONJUGATE) for e in np.eye(4)]).reshape(4, 16)


def multiply(p: Array, q: Array) -> Array:
    """Return the products p q: the rotation q, then p."""
    return turn(_entries(p, _BEFORE), q)


def matrix(q: Array) -> Array:
    """Return the rotation matrices of unit quaternions: those of the products q p q^-1."""
    return _entries(q, _BEFORE)[..., :3, :] @ _entries(q, _AFTER_INVERSE)[..., :3]


def sandwich(p: Array, q: Array) -> Array:
    """Return the matrices `(..., 4, 4)` of g in products p g q^-1."""
    return _entries(p, _BEFORE) @ _entries(q, _AFTER_INVERSE)


def left(q: Array, t: Array) -> Array:
    """Return (t, 0) q, twice the change of q with a rotation t in front of it."""
    return multiply(np.concatenate([t, np.zeros((*t.shape[:-1], 1))], axis=-1), q)


def left_transposed(q: Array, g: Array) -> Array:
    """Return the vectors t with g . left(q, s) = t . s for all s."""
    return multiply(g, conjugate(q))[..., :3]


def right(q: Array, t: Array) -> Array:
    """Return q (t, 0), twice the change of q with a rotation t after it."""
    return multiply(q, np.concatenate([t, np.zeros((*t.shape[:-1], 1))], axis=-1))


def right_transposed(q: Array, g: Array) -> Array:
    """Return the vectors t with g . right(q, s) = t . s for all s."""
    return multiply(conjugate(q), g)[..., :3]


def lifted(q: Array, phi: Array) -> Array:
    """Return derivatives with respect to q from those with respect to rotations after q.

    They are derivatives of functions of q / |q|.
    """
    square: Array = (q * q).sum(axis=-1, keepdims=True)
    return 2 * right(q, phi) / square


def logarithm(q: Array) -> Array:
    """Return the rotation vectors of unit quaternions, with lengths up to pi."""
    vector, w = q[..., :3], q[..., 3]
    sine = np.linalg.norm(vector, axis=-1)
    angle = 2 * np.arctan2(sine, w)
    angle = np.where(angle > np.pi, angle - 2 * np.pi, angle)
    small = sine < 1e-12
    scale = np.where(small, 2 / np.where(w == 0, 1, w), angle / np.where(small, 1, sine))
    return vector * scale[..., None]


def pull_logarithm(a: Array, g: Array) -> Array:
    """Return Jl(a)^-T g, the transposed derivative of the logarithm a with rotations in front."""
    t2: Array = (a * a).sum(axis=-1, keepdims=True)
    t = np.sqrt(t2)
    small = t < 1e-3
    safe = np.where(small, 1.0, t)
    exact = 1 / (safe * safe) - (1 + np.cos(safe)) / (2 * safe * np.sin(safe))
    c: Array = np.where(small, 1 / 12 + t2 / 720, exact)
    once = cross(a, g)
    return g + 0.5 * once + c * cross(a, once)
