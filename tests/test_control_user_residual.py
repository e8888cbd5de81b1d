"""User-defined residuals: automatic and numerical Jacobians, and the check of given ones."""

import numpy as np
import pytest

import mujacobian
from mujacobian import control
from mujacobian.errors import PrecisionError
from tests.scenes.control_models import pendulum, random_state, slides, tumbler

# error of extrapolated differences of smooth functions of order 1
NUMERICAL = 1e-9
# two derivations of one derivative differ by rounding
ROUNDING = 1e-12


def turned(xp):
    """Return a residual of quaternions, velocities, activations, controls and time."""

    def value(times, states, controls):
        q, v = states[:, 3:7], states[:, 14:17]
        return xp.stack(
            [
                q[:, 0] * v[:, 1] + xp.sin(q[:, 2]),
                states[:, -1] * controls[:, 1] + times,
                xp.exp(states[:, 7]) * controls[:, 0] ** 2,
                (states[:, 8:12] ** 3).sum(1),
            ],
            1,
        )

    return value


def by_hand(times, states, controls):
    """Return the Jacobian of `turned(np)`, for rotations in the frame of the body."""
    n, nx = len(times), 21
    rx, ru = np.zeros((n, 4, nx)), np.zeros((n, 4, 2))
    w, x, y, z = states[:, 3:7].T
    v = states[:, 14:17]
    # dq = q (0, theta) / 2
    dw = np.stack([-x, -y, -z], axis=1) / 2
    dy = np.stack([z, w, -x], axis=1) / 2
    rx[:, 0, 3:6] = dw * v[:, 1:2] + np.cos(y)[:, None] * dy
    rx[:, 0, 13] = w
    rx[:, 1, -1], ru[:, 1, 1] = controls[:, 1], states[:, -1]
    rx[:, 2, 6] = np.exp(states[:, 7]) * controls[:, 0] ** 2
    ru[:, 2, 0] = np.exp(states[:, 7]) * 2 * controls[:, 0]
    w, x, y, z = states[:, 8:12].T
    square = 3 * states[:, 8:12] ** 2
    turns = np.stack([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]) / 2  # (4, 3, n)
    rx[:, 3, 7:10] = np.einsum("nq,qkn->nk", square, turns)
    return rx, ru


def arguments(n=4):
    model, _ = tumbler()
    states = np.stack([random_state(model, k) for k in range(n)])
    states[:, -1] = np.linspace(-0.5, 0.5, n)
    controls = np.random.default_rng(0).uniform(-1, 1, (n, 2))
    return model, states, controls, 0.1 * np.arange(n)


def expand(jacobian, value=None, check=True):
    model, states, controls, times = arguments()
    residual = control.UserResidual(4, value or turned(np), jacobian, check=check)
    cost = control.Cost(model, [control.Term("own", residual, control.L2(0.3), target=0.1)])
    n, ns, nx = len(times), model.nsensordata, 2 * model.nv + model.na
    given = np.zeros((n, ns)), controls, times, np.zeros((n, ns, nx)), np.zeros((n, ns, 2)), states
    return cost.expand(*given)


def test_numerical_jacobians_are_accurate_and_counted():
    before = mujacobian.fd_count()
    expected = expand(by_hand)
    assert mujacobian.fd_count() == before  # the check of a Jacobian does not count
    found = expand("numerical")
    assert mujacobian.fd_count() == before + 4
    for a, b in zip(found, expected, strict=True):
        assert abs(b).max() > 0.1
        assert np.allclose(a, b, atol=NUMERICAL * max(1, abs(b).max()))


def test_torch_differentiates():
    torch = pytest.importorskip("torch")
    for a, b in zip(expand("torch", turned(torch)), expand(by_hand), strict=True):
        assert np.allclose(a, b, atol=ROUNDING * max(1, abs(b).max()))


def test_jax_differentiates():
    jax = pytest.importorskip("jax")
    with jax.enable_x64(False), pytest.raises(PrecisionError, match="jax_enable_x64"):
        expand("jax", turned(jax.numpy))
    with jax.enable_x64(True):
        for a, b in zip(expand("jax", turned(jax.numpy)), expand(by_hand), strict=True):
            assert np.allclose(a, b, atol=ROUNDING * max(1, abs(b).max()))


@pytest.mark.parametrize(
    ("row", "column", "label"),
    [
        (0, 3, r"row 0, column 3 of the state \(position of dof 3\)"),
        (0, 12, r"row 0, column 12 of the state \(velocity of dof 2\)"),
        (1, 20, r"row 1, column 20 of the state \(activation 0\)"),
        (2, 21, "row 2, column 0 of the controls"),
        (3, 22, "row 3, column 1 of the controls"),
    ],
)
def test_a_wrong_entry_is_refused(row, column, label):
    def wrong(*given):
        rz = np.concatenate(by_hand(*given), axis=2)
        rz[:, row, column] += 0.01
        return rz[:, :, :21], rz[:, :, 21:]

    with pytest.raises(
        control.WrongJacobianError, match=f'term "own" is wrong at 0.*{label}: given'
    ):
        expand(wrong)
    assert expand(wrong, check=False)[0].any()


def test_a_jacobian_of_zeros_is_refused_and_the_numbers_are_named():
    model = slides()
    residual = control.UserResidual(
        1,
        lambda t, x, u: 2.5 * x[:, :1],
        lambda t, x, u: (np.zeros((len(t), 1, 6)), np.zeros((len(t), 1, 2))),
    )
    cost = control.Cost(model, [control.Term("own", residual)])
    planner = control.ILQR(model, cost, 5)
    match = r"given 0, expected 2\.5, the derivative of the value\. 3 of 24 entries"
    for _ in range(2):  # it is refused every time
        with pytest.raises(control.WrongJacobianError, match=match):
            planner.solve(np.ones(6))


def test_kinks_and_barriers_are_not_judged():
    """At a kink and at the border of the domain, differences do not converge."""
    model = slides()
    for value, slope in (
        (lambda x: abs(x), lambda x: np.sign(x)),
        (lambda x: np.where(x >= 0, np.sqrt(abs(x)), np.inf), lambda x: np.zeros_like(x)),
    ):
        residual = control.UserResidual(
            1,
            lambda t, x, u, value=value: value(x[:, :1]),
            lambda t, x, u, slope=slope: (
                slope(x[:, :1])[:, :, None] * np.eye(1, 6),
                np.zeros((len(t), 1, 2)),
            ),
        )
        cost = control.Cost(model, [control.Term("own", residual)])
        n = 2
        gradient, _ = cost.expand(
            np.zeros((n, 6)),
            np.zeros((n, 2)),
            np.zeros(n),
            np.zeros((n, 6, 6)),
            np.zeros((n, 6, 2)),
            np.zeros((n, 6)),
        )
        assert not gradient.any()


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_large_and_small_residuals_are_judged_relative_to_their_size(scale):
    def value(*given):
        return scale * turned(np)(*given)

    def scaled(factor):
        return lambda *given: tuple(factor * part for part in by_hand(*given))

    assert expand(scaled(scale), value)[0].any()
    with pytest.raises(control.WrongJacobianError):
        expand(scaled(1.01 * scale), value)


@pytest.mark.parametrize("jacobian", ["numerical", "torch"])
def test_a_planner_uses_them(jacobian):
    """The plan is the same as with rows of sensors."""
    model, cost = pendulum()
    if jacobian == "torch":
        xp = pytest.importorskip("torch")
    else:
        xp = np
    own = control.UserResidual(
        3,
        lambda t, x, u: xp.stack(
            [-0.5 * xp.sin(x[:, 0]), 0 * x[:, 0], -0.5 * xp.cos(x[:, 0]) - 0.5], 1
        ),
        jacobian,
    )
    terms = [control.Term("tip", own, control.L2(0.2)), *cost.terms[1:]]
    plans = [
        control.ILQR(model, each, 40).solve([0.3, 0.0], iterations=30)
        for each in (cost, control.Cost(model, terms))
    ]
    assert plans[0].cost < 0.9 * plans[0].initial_cost
    assert plans[1].cost == pytest.approx(plans[0].cost, rel=1e-6)
    assert np.allclose(plans[0].controls, plans[1].controls, atol=1e-4)


def test_wrong_arguments_raise():
    def value(t, x, u):
        return u

    with pytest.raises(ValueError, match=r'one of "numerical", "jax", "torch", got .fd.'):
        control.UserResidual(2, value, "fd")
    with pytest.raises(TypeError, match="jacobian must be a function, got NoneType"):
        control.UserResidual(2, value, None)
    with pytest.raises(TypeError, match="value must be a function, got int"):
        control.UserResidual(2, 3, "numerical")
    with pytest.raises(ValueError, match="dim must be an integer"):
        control.UserResidual(0, value, "numerical")
    with pytest.raises(TypeError, match=r'Jacobian of term "own" must be a pair.*got ndarray'):
        expand(lambda t, x, u: np.zeros((len(t), 4, 23)))
    with pytest.raises(ValueError, match=r"state Jacobian.*must have shape \(4, 4, 21\)"):
        expand(lambda t, x, u: (np.zeros((len(t), 4, 20)), np.zeros((len(t), 4, 2))))
    with pytest.raises(ValueError, match=r"numerical Jacobian.*must be finite"):
        expand("numerical", lambda t, x, u: np.where(u[:, [0] * 4] > u[0, 0], np.inf, 0.0))
