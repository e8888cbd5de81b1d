"""The backward pass with bounds agrees with a recursion in NumPy that uses a QP solver of SciPy."""

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from mujacobian import _core

TOLERANCE = 1e-8  # measured errors are about 1e-12


def random_problem(rng, T, nx, nu, spread=1.0):
    """Return dynamics, a convex cost at each knot, controls, and bounds around them."""
    nz = nx + nu
    A = rng.normal(size=(T, nx, nx)) / np.sqrt(nx)
    B = rng.normal(size=(T, nx, nu))
    gradient = rng.normal(size=(T, nz)) * spread
    hessian = np.zeros((T, nz, -(-nz // 4) * 4))
    for t in range(T):
        root = rng.normal(size=(nz + 2, nz))
        hessian[t, :, :nz] = root.T @ root / nz
    controls = rng.uniform(-0.2, 0.2, (T, nu))
    controls[-1] = controls[-2]
    return A, B, gradient, hessian, controls


def solve_qp(H, g, lower, upper):
    """Return the minimum within bounds, and whether each component is free."""
    root = np.linalg.cholesky(H)
    found = lsq_linear(
        root.T, -np.linalg.solve(root, g), (lower, upper), method="bvls", tol=1e-15, max_iter=1000
    )
    x = found.x
    return x, (x > lower + 1e-9) & (x < upper - 1e-9)


def reference(A, B, gradient, hessian, controls, lower, upper, kind, mu):
    """Return the steps and gains."""
    scale = scale_of(controls)
    T, nx = A.shape[:2]
    nu = B.shape[2]
    nz = nx + nu
    lz, lzz = gradient, hessian[:, :, :nz]
    steps, gains = np.zeros((T - 1, nu)), np.zeros((T - 1, nu, nx))
    # V as a function of x and of the previous control, which only the last knot depends on
    Vz, Vzz = lz[-1], lzz[-1]
    for t in range(T - 2, -1, -1):
        F = np.block([[A[t], B[t]], [np.zeros((nu, nx)), np.eye(nu)]])
        Q, H = lz[t] + F.T @ Vz, lzz[t] + F.T @ Vzz @ F
        x, u = slice(nx), slice(nx, nz)
        Huu, Hux = H[u, u].copy(), H[u, x].copy()
        if kind == "control":
            Huu += mu * np.diag(scale)
        if kind == "state":
            Huu += mu * B[t].T @ B[t]
            Hux += mu * B[t].T @ A[t]
        k, free = solve_qp(Huu, Q[u], lower - controls[t], upper - controls[t])
        K = np.zeros((nu, nx))
        K[free] = -np.linalg.solve(Huu[np.ix_(free, free)], Hux[free])
        steps[t], gains[t] = k, K
        along = np.vstack([np.eye(nx), K])
        Vz = np.concatenate([along.T @ (Q + H[:, u] @ k), np.zeros(nu)])
        Vzz = np.zeros((nz, nz))
        Vzz[x, x] = along.T @ H @ along
    return steps, gains


def scale_of(controls):
    """Return the scale of the regularization of each control."""
    return np.linspace(0.5, 2.0, controls.shape[1])


def change(A, B, gradient, hessian, steps, gains, size):
    """Return the cost of the quadratic model along the linear dynamics with feedback."""
    nz = gradient.shape[1]
    x, u, total = np.zeros(A.shape[1]), np.zeros(B.shape[2]), 0.0
    for t in range(len(A)):
        if t < len(steps):  # the last knot keeps the control
            u = size * steps[t] + gains[t] @ x
        z = np.concatenate([x, u])
        total += gradient[t] @ z + 0.5 * z @ hessian[t, :, :nz] @ z
        x = A[t] @ x + B[t] @ u
    return total


def run(problem, lower, upper, kind, mu):
    A, B, gradient, hessian, controls = problem
    steps = np.zeros((len(A) - 1, B.shape[2]))
    gains = np.zeros((len(A) - 1, B.shape[2], A.shape[1]))
    made = _core.backward_into(
        A, B, gradient, hessian, controls, lower, upper, kind, mu, scale_of(controls), steps, gains
    )
    return steps, gains, made


@pytest.mark.parametrize("kind", ["none", "control", "state"])
@pytest.mark.parametrize(
    ("nx", "nu", "bound"), [(4, 2, np.inf), (7, 3, 0.4), (5, 6, 0.3), (36, 12, 0.5)]
)
def test_steps_and_gains_are_those_of_the_recursion(nx, nu, bound, kind):
    rng = np.random.default_rng(nx)
    clamped = 0
    for _ in range(4):
        problem = random_problem(rng, 8, nx, nu)
        lower, upper = np.full(nu, -bound), np.full(nu, bound)
        steps, gains, (knot, linear, quadratic) = run(problem, lower, upper, kind, 0.3)
        expected = reference(*problem, lower, upper, kind, 0.3)
        assert knot == -1
        assert np.allclose(steps, expected[0], atol=TOLERANCE, rtol=0)
        assert np.allclose(
            gains, expected[1], atol=TOLERANCE * (1 + abs(expected[1]).max()), rtol=0
        )
        for size in (1.0, 0.3):
            model = change(*problem[:4], steps, gains, size)
            assert size * (linear + size * quadratic) == pytest.approx(model, rel=1e-9)
        u = problem[-1][:-1] + steps
        clamped += ((u <= lower) | (u >= upper)).sum()
        assert (u >= lower - 1e-15).all()
        assert (u <= upper + 1e-15).all()
        assert steps.any()
    assert (clamped > 0) == np.isfinite(bound)


def test_large_and_badly_scaled_boxes():
    """There are forty controls with curvatures from 1e-4 to 1e4."""
    rng = np.random.default_rng(5)
    problem = random_problem(rng, 2, 3, 40)
    scale = 10 ** rng.uniform(-2, 2, 43)
    problem[3][:, :, :43] *= scale[:, None] * scale
    problem[3][:, :, 43:] = 0
    lower, upper = np.full(40, -0.5), np.full(40, 0.5)
    steps, _, (knot, *_) = run(problem, lower, upper, "none", 0.0)
    expected = reference(*problem, lower, upper, "none", 0.0)
    assert knot == -1
    assert np.allclose(steps, expected[0], atol=1e-7, rtol=0)
    lower[:5] = upper[:5] = problem[-1][0, :5]
    fixed, gains, _ = run(problem, lower, upper, "none", 0.0)
    assert not fixed[0, :5].any()
    assert not gains[0, :5].any()
    assert fixed.any()


def test_a_problem_that_is_not_convex_is_found():
    rng = np.random.default_rng(7)
    problem = random_problem(rng, 6, 4, 2)
    problem[3][3, 4:, 4:6] -= 1e3 * np.eye(2)
    inf = np.full(2, np.inf)
    assert run(problem, -inf, inf, "none", 0.0)[2][0] == 3
    assert run(problem, -inf, inf, "control", 2e3)[2][0] == -1
