"""Three-vectors, 3x3 matrices, motions and forces, against NumPy and invariants."""

import numpy as np
import primitives
import pytest
from precise import EPS

# Sums of up to six products of numbers of a few units
ROUNDING = 64 * EPS


@pytest.fixture(params=range(4))
def rng(request):
    return np.random.default_rng(request.param)


def close(computed, exact):
    return np.ravel(computed) == pytest.approx(np.ravel(exact), rel=ROUNDING, abs=ROUNDING)


def skew(w):
    return np.cross(w, np.eye(3), axisb=0, axisc=0)


def crm(v):
    """Return the matrix of a -> v x a for motions, angular part first."""
    return np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])


def test_vectors(rng):
    a, b = rng.normal(size=(2, 3))
    assert close([primitives.dot(a, b), primitives.norm(a)], [a @ b, np.linalg.norm(a)])
    assert close(primitives.cross(a, b), np.cross(a, b))
    assert close(primitives.unit(a), a / np.linalg.norm(a))
    assert close(primitives.outer(a, b), np.outer(a, b))
    assert close(primitives.skew(a), skew(a))


def test_matrices(rng):
    A, B = rng.normal(size=(2, 3, 3))
    x = rng.normal(size=3)
    assert close(primitives.multiply(A.ravel(), B.ravel()), A @ B)
    assert close(primitives.add(A.ravel(), B.ravel()), A + B)
    assert close(primitives.scale(0.3, A.ravel()), 0.3 * A)
    assert close(primitives.transposed(A.ravel()), A.T)
    assert close(primitives.apply(A.ravel(), x), A @ x)
    assert close(primitives.apply_transposed(A.ravel(), x), A.T @ x)
    assert close([primitives.column(A.ravel(), k) for k in range(3)], A.T)
    assert close(primitives.times_transposed(A.ravel(), B.ravel()), A @ B.T)
    assert close(primitives.transposed_times(A.ravel(), B.ravel()), A.T @ B)


def test_cross_products_of_motions_and_forces_are_dual(rng):
    v, a, f = rng.normal(size=(3, 6))
    assert close(primitives.cross_motion(v, a), crm(v) @ a)
    assert close(primitives.cross_force(v, f), -crm(v).T @ f)
    assert close([primitives.power(v, f)], [v @ f])


def test_motion_about_another_point(rng):
    v, r = rng.normal(size=6), rng.normal(size=3)
    assert close(primitives.at_point(v, r), v[3:] + np.cross(v[:3], r))
    assert close(primitives.about(v, r), [*v[:3], *(v[3:] + np.cross(v[:3], r))])


def test_inertia(rng):
    """The packed inertia (xx yy zz xy xz yz, mass times center, mass) gives the momentum."""
    v, center, mass = rng.normal(size=6), rng.normal(size=3), 2.5
    points = rng.normal(size=(3, 3))
    rotational = points @ points.T + mass * skew(center) @ skew(center).T
    packed = [*np.diag(rotational), *rotational[[0, 0, 1], [1, 2, 2]], *mass * center, mass]
    coupling = mass * skew(center)
    full = np.block([[rotational, coupling], [-coupling, mass * np.eye(3)]])
    assert close(primitives.inertia_times(packed, v), full @ v)


def test_six_by_six_matrices(rng):
    A, v = rng.normal(size=(6, 6)), rng.normal(size=6)
    assert close(primitives.apply6(A.ravel(), v), A @ v)
    assert close(primitives.apply6_transposed(A.ravel(), v), A.T @ v)


def test_derivatives_with_respect_to_left_perturbations(rng):
    """(ROD-3), (ROD-4) and (ROD-7) by central differences of a function of exp(t) R."""
    M, p, g = rng.normal(size=(3, 3)), *rng.normal(size=(2, 3))
    R = np.reshape(primitives.rotation_exp(rng.normal(size=3)), (3, 3))
    assert close(primitives.axial(M.ravel()), (M - M.T)[[2, 0, 1], [1, 2, 0]])
    step = 1e-4  # fourth derivatives make an error of its square, rounding one of EPS / step^2

    def turned(t):
        return np.reshape(primitives.rotation_exp(t), (3, 3))

    slope = [np.sum(M * (turned(step * e) @ R - turned(-step * e) @ R)) for e in np.eye(3)]
    assert primitives.turn(R.ravel(), M.ravel()) == pytest.approx(
        np.array(slope) / (2 * step), abs=1e-7
    )

    def second(a, b):
        values = [g @ turned(step * (sa * a + sb * b)) @ p for sa in (1, -1) for sb in (1, -1)]
        return (values[0] - values[1] - values[2] + values[3]) / (4 * step**2)

    curvature = [second(a, b) for a in np.eye(3) for b in np.eye(3)]
    assert primitives.bend_of_arc(p, g) == pytest.approx(curvature, abs=1e-6)


def test_orthonormal_squares_the_error_of_a_rotation(rng):
    R = np.reshape(primitives.rotation_exp(rng.normal(size=3)), (3, 3))
    almost = R + 1e-6 * rng.normal(size=(3, 3))
    once = np.reshape(primitives.orthonormal(almost.ravel()), (3, 3))
    assert np.abs(almost.T @ almost - np.eye(3)).max() > 1e-7
    assert np.abs(once.T @ once - np.eye(3)).max() < 1e-10
