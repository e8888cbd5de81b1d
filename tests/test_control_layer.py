"""Optimal plans as functions of PyTorch and JAX: gradients against optima that are solved again."""

import mujoco
import numpy as np
import pytest

import mujacobian
from benchmarks.exact_planning import ARM, CART, sliding_tip, with_sensors
from mujacobian import control
from mujacobian.errors import ArgumentError, ArgumentTypeError
from tests.oracle.extrapolation import derivative

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
bridge = pytest.importorskip("mujacobian.control.torch")

TOLERANCE = 1e-6  # relative: the differences are those of solutions of an optimization
STEP = {"cart": 2e-3, "arm": 2e-3, "tip": 3e-5}  # the tip is 0.5 mm deep in the floor
LIMIT = {"cart": 0.5, "arm": 0.6, "tip": 0.3}  # bounds that are active in some knots
LATE = 15  # a knot of the cart whose control is between its bounds


class Case:
    """A planner with its initial state and controls, and a random scalar of its plans."""

    def __init__(self, name, is_bounded=False):
        if name == "tip":
            problem = sliding_tip("elliptic")
            model, self.state, self.controls = problem.model, problem.start, problem.guess[:20]
            goal, weights = problem.goal, (1.0, 0.01, 0.02)
        else:
            model = with_sensors({"cart": CART, "arm": ARM}[name])
            self.state = {"cart": np.array([0, np.pi - 0.3, 0, 0]), "arm": np.zeros(6)}[name]
            goal = {"cart": np.array([0.5, np.pi, 0, 0]), "arm": np.array([1, -1, 0.5, 0, 0, 0])}
            goal, weights = goal[name], (1.0, 0.05, 0.05)
            self.controls = np.zeros((25, model.nu))
        names = [model.joint(j).name for j in range(model.njnt)]
        q, v = (control.stack(*(control.sensor(model, f"{k}_{n}") for n in names)) for k in "qv")
        terms = [
            control.Term("pose", q, control.L2(0.3), weights[0], goal[: model.nq]),
            control.Term("still", v, weight=weights[1]),
            control.Term("effort", control.controls(model), weight=weights[2]),
        ]
        limit = np.full(model.nu, LIMIT[name] if is_bounded else np.inf)
        self.planner = control.ILQR(
            model, control.Cost(model, terms), len(self.controls) + 1, hessian="auto",
            tolerance=1e-15, threads=1, lower=-limit, upper=limit,
        )  # fmt: skip
        self.targets = np.zeros(2 * model.nv + model.nu)
        rng = np.random.default_rng(0)
        self.given = self.state, self.planner.cost.weights.copy(), self.targets
        self.directions = [rng.normal(size=x.shape) for x in self.given]
        self.directions[1] *= self.given[1]
        self.cotangents = [
            rng.normal(size=(len(self.controls) + 1, 2 * model.nv)),
            rng.normal(size=self.controls.shape),
        ]

    def scalar(self, x, w, p):
        """Return the scalar of the optimal plan, which is solved from the first one."""
        states, controls = bridge.plan(
            self.planner, x, weights=w, targets=p, controls=self.controls
        )
        cotangents = (torch.tensor(each) for each in self.cotangents)
        return sum((a * b).sum() for a, b in zip((states, controls), cotangents, strict=True))

    def gradients(self):
        tensors = [torch.tensor(x, requires_grad=True) for x in self.given]
        self.scalar(*tensors).backward()
        return [x.grad.numpy() for x in tensors]


@pytest.mark.parametrize("is_bounded", [False, True])
@pytest.mark.parametrize("name", ["cart", "arm", "tip"])
def test_gradients_are_differences_of_optima(name, is_bounded):
    case = Case(name, is_bounded)
    before = mujacobian.fd_count()
    found = case.gradients()
    assert [x.tobytes() for x in case.gradients()] == [x.tobytes() for x in found]
    assert mujacobian.fd_count() == before
    _, controls = bridge.plan(case.planner, case.state, controls=case.controls)
    at_bound = abs(controls.numpy()) == case.planner.upper
    assert at_bound.any() == is_bounded
    assert not at_bound.all()
    case.controls = controls.numpy()  # the differences start from the optimum
    weights = case.planner.cost.weights.copy()
    for k, (gradient, along) in enumerate(zip(found, case.directions, strict=True)):

        def moved(step, k=k, along=along):
            given = list(case.given)
            given[k] = given[k] + step * along
            return np.array([case.scalar(*map(torch.tensor, given)).item()])

        expected, error = derivative(moved, first=STEP[name], levels=3)
        scale = np.linalg.norm(gradient) * np.linalg.norm(along)
        assert error < TOLERANCE * scale
        assert abs(gradient.ravel() @ along.ravel() - expected[0]) < TOLERANCE * scale
        assert scale > 1e-6
    assert case.planner.cost.weights.tobytes() == weights.tobytes()


def test_rotations():
    """Gradients with respect to a quaternion are those of functions of q / |q|."""
    model = mujoco.MjModel.from_xml_string(
        "<mujoco><option timestep='.02' integrator='implicitfast'/><worldbody><body>"
        "<joint name='ball' type='ball' damping='.1'/><geom size='.1' pos='.2 .1 -.4' mass='.5'/>"
        "<site name='tip' pos='.2 .1 -.4'/></body></worldbody>"
        "<actuator><motor joint='ball' gear='4 0 0'/><motor joint='ball' gear='0 4 0'/>"
        "</actuator><sensor><framepos name='tip' objtype='site' objname='tip'/></sensor></mujoco>"
    )
    cost = control.Cost(
        model,
        [
            control.Term("reach", control.sensor(model, "tip") - [0.3, 0.2, -0.2]),
            control.Term("effort", control.controls(model), weight=0.02),
        ],
    )
    planner = control.ILQR(model, cost, 15, hessian="auto", tolerance=1e-15, threads=1)
    rng = np.random.default_rng(1)
    state = np.concatenate([[1.1, 0.1, -0.2, 0.1], 0.3 * rng.normal(size=3)])
    weights, along = torch.tensor(rng.normal(size=(14, 7))), rng.normal(size=7)

    def scalar(x):
        states, controls = bridge.plan(planner, x)
        # the first state is not normalized, while its derivative is
        return (states[1:] * weights).sum() + controls.sum()

    x = torch.tensor(state, requires_grad=True)
    scalar(x).backward()
    expected, error = derivative(
        lambda step: np.array([scalar(torch.tensor(state + step * along)).item()]),
        first=2e-3,
        levels=3,
    )
    scale = np.linalg.norm(x.grad.numpy()) * np.linalg.norm(along)
    assert error < TOLERANCE * scale
    assert abs(x.grad.numpy() @ along - expected[0]) < TOLERANCE * scale
    assert abs(x.grad.numpy()[:4] @ state[:4]) < 1e-12 * scale


@pytest.fixture(scope="module")
def cart():
    return Case("cart", is_bounded=True)


def test_they_are_sums_of_sensitivities(cart):
    found = cart.gradients()
    plan = cart.planner.solve(cart.state, controls=cart.controls)
    for gradient, name in zip(found, ("state", "weights", "targets"), strict=True):
        parts = plan.sensitivity(name)
        expected = np.einsum("tx,txk->k", cart.cotangents[0], parts.states)
        expected += np.einsum("tu,tuk->k", cart.cotangents[1], parts.controls)
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-9 * abs(expected).max())


def test_batches_and_vmap(cart):
    shifts = np.array([[0, 0, 0, 0], [0.1, 0.05, 0, 0]])
    states = torch.tensor(cart.state + shifts, requires_grad=True)
    weights = torch.tensor(cart.given[1], requires_grad=True)
    made = bridge.plan(cart.planner, states, weights=weights)
    assert made[0].shape == (2, 26, 4)
    assert made[1].shape == (2, 25, 1)
    made[1][:, LATE].sum().backward()
    for k, state in enumerate(states.detach()):
        x = state.clone().requires_grad_()
        single = bridge.plan(cart.planner, x, weights=weights.detach())
        assert torch.equal(single[1], made[1][k])
        single[1][LATE].sum().backward()
        assert torch.equal(x.grad, states.grad[k])
        assert x.grad.any()

    def late(w):
        return bridge.plan(cart.planner, states.detach()[1], weights=w)[1][LATE]

    rows = torch.func.jacrev(late)(weights.detach())
    assert rows.shape == (1, 3)
    assert rows.any()


def test_jax(cart):
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    from mujacobian.control import jax as other

    with jax.enable_x64(True):

        def scalar(x, w, p):
            made = other.plan(
                cart.planner, x, weights=w, targets=p, controls=cart.controls, iterations=50
            )
            return sum((a * b).sum() for a, b in zip(made, cart.cotangents, strict=True))

        slope = jax.grad(scalar, argnums=(0, 1, 2))
        for made in (slope(*cart.given), jax.jit(slope)(*cart.given)):
            for a, b in zip(made, cart.gradients(), strict=True):
                np.testing.assert_array_equal(np.asarray(a), b)
        states = cart.state + np.array([[0, 0, 0, 0], [0.1, 0.05, 0, 0]])
        made = jax.vmap(slope, (0, None, None))(states, *cart.given[1:])
        assert made[1].shape == (2, 3)
        np.testing.assert_array_equal(np.asarray(made[0][0]), cart.gradients()[0])
        expected, _ = other.plan(cart.planner, states)
        assert expected.shape == (2, 26, 4)
        with pytest.raises(ArgumentError, match="state must have shape"):
            other.plan(cart.planner, cart.state[1:])


def test_plans_that_have_not_converged_raise(cart):
    with pytest.raises(mujacobian.MujacobianError, match=r'not converged after 2.*"iterations"'):
        bridge.plan(cart.planner, cart.state, iterations=2)
    model, cost = cart.planner.model, cart.planner.cost
    rough = control.ILQR(model, cost, 26, tolerance=0.1)
    weights = torch.tensor(cost.weights, requires_grad=True)
    _, controls = bridge.plan(rough, cart.state, weights=weights)
    with pytest.raises(mujacobian.MujacobianError, match="another iteration would decrease"):
        controls.sum().backward()


def test_bad_arguments(cart):
    planner, state = cart.planner, cart.state
    with pytest.raises(ArgumentTypeError, match=r"planner must be a control\.ILQR, got str"):
        bridge.plan("planner", state)
    with pytest.raises(ArgumentError, match=r"weights must have shape \(3,\)"):
        bridge.plan(planner, state, weights=np.ones(2))
    with pytest.raises(ArgumentError, match='weight of term "pose" must be at least 0'):
        bridge.plan(planner, state, weights=-np.ones(3))
    with pytest.raises(ArgumentError, match="targets must be finite"):
        bridge.plan(planner, state, targets=np.full(5, np.nan))
    with pytest.raises(ArgumentError, match="state must be finite"):
        bridge.plan(planner, np.full(4, np.inf))
    with pytest.raises(ArgumentTypeError, match="state must have double precision"):
        bridge.plan(planner, torch.zeros(4))
    with pytest.raises(ArgumentError, match="batches must be of one size"):
        bridge.plan(planner, np.zeros((2, 4)), weights=np.ones((3, 3)))
    with pytest.raises(ArgumentError, match='must have derivatives="analytic"'):
        bridge.plan(control.ILQR(planner.model, planner.cost, 26, derivatives="fd"), state)
    own = control.UserResidual(1, lambda t, x, u: u, lambda t, x, u: (None, None))
    user = control.Cost(planner.model, [control.Term("own", own)])
    with pytest.raises(mujacobian.UnsupportedFeatureError, match='term "own"'):
        bridge.plan(control.ILQR(planner.model, user, 26), state)
    x = torch.tensor(state, requires_grad=True)
    _, controls = bridge.plan(planner, x)
    with pytest.raises(ArgumentError, match="d_controls must be finite"):
        (controls.sum() * float("nan")).backward(retain_graph=True)
    (slope,) = torch.autograd.grad(controls.sum(), x, create_graph=True)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="second derivatives of optimal"):
        slope.sum().backward()


def test_gradcheck():
    case = Case("cart")

    def late(x, w, p):
        return bridge.plan(case.planner, x, weights=w, targets=p)[1][::8]

    given = [torch.tensor(x, requires_grad=True) for x in case.given]
    assert torch.autograd.gradcheck(late, given, eps=1e-5, atol=TOLERANCE, rtol=TOLERANCE)
