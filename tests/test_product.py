"""vjp and jvp are products with the Jacobian of linearize, and transposes of each other."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import (
    CONSTRAINT_MODELS,
    CONTACT_MODELS,
    INTEGRATORS,
    MODELS,
    load,
    random_state,
    simulated_states,
    snapshot,
)

# tolerance of sums of products, relative to the sizes of both factors
TRANSPOSE_TOLERANCE = 1e-12
# tolerance between solves with one right-hand side and with many
PRODUCT_TOLERANCE = 1e-10

MATRIX = [
    *MODELS,
    *(f"constraints/{name}" for name in CONSTRAINT_MODELS),
    *(f"contacts/{name}" for name in CONTACT_MODELS),
]


def a_state(model, name):
    """Return a state with constraint rows if there is one."""
    if "/" in name:
        for _, data in simulated_states(model, name, (0.04, 0.2)):
            return data
    return random_state(model, np.random.default_rng(4), forces="/" not in name)


@pytest.mark.parametrize("name", MATRIX)
def test_transposes(name):
    """<y, J x> = <J^T y, x>, and both are products with the blocks of linearize."""
    judged = 0
    for integrator, choose in INTEGRATORS.items():
        model = load(name)
        choose(model)
        data = a_state(model, name)
        sensors = not mujacobian.support(model)
        try:
            lin = mujacobian.linearize(model, data, sensors=sensors, forces=True)
        except mujacobian.UnsupportedFeatureError:
            continue
        before = snapshot(model, data)
        rng = np.random.default_rng(5)
        x, u, f = (rng.normal(size=n) for n in (len(lin.A), model.nu, model.nv))
        y, s = rng.normal(size=len(lin.A)), rng.normal(size=model.nsensordata)
        change, sensed = mujacobian.jvp(model, data, x, u, d_forces=f, sensors=sensors)
        back = mujacobian.vjp(model, data, y, s if sensors else None, forces=True)

        J = np.hstack([lin.A, lin.B, lin.Bf])
        given, made, y_all = np.concatenate([x, u, f]), change, y
        if sensors:
            J = np.vstack([J, np.hstack([lin.C, lin.D, lin.Df])])
            made, y_all = np.concatenate([change, sensed]), np.concatenate([y, s])
        pulled = np.concatenate([back.state, back.controls, back.forces])
        norm = np.linalg.norm
        label = f"{name}, {integrator}"
        scale = norm(y_all) * norm(made) + norm(pulled) * norm(given)
        assert abs(y_all @ made - pulled @ given) <= TRANSPOSE_TOLERANCE * scale, label
        assert norm(made - J @ given) <= PRODUCT_TOLERANCE * norm(np.abs(J) @ np.abs(given)), label
        assert norm(pulled - y_all @ J) <= PRODUCT_TOLERANCE * norm(np.abs(y_all) @ np.abs(J)), (
            label
        )
        assert snapshot(model, data) == before
        again = mujacobian.vjp(model, data, y, s if sensors else None, forces=True)
        assert again.state.tobytes() == back.state.tobytes()
        if model.nv:
            assert made.any()
            assert pulled.any()
        judged += 1
    assert judged, "refused with every integrator"


def test_force_sensors_beside_the_next_state():
    """They depend on the acceleration, although there is no sensor of accelerations."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom type="plane" size="3 3 .1"/>
        <body pos="0 0 .098"><freejoint/><geom size=".1"/><site name="skin" size=".2"/></body>
        <body pos="1 0 1"><joint name="bent" axis="0 1 0" limited="true" range="10 20"/>
        <geom size=".1" pos=".1 0 0"/></body></worldbody>
        <sensor><touch site="skin"/><jointlimitfrc joint="bent"/></sensor></mujoco>"""
    )
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(8).normal(size=model.nv) * 0.2
    lin = mujacobian.linearize(model, data)
    assert np.abs(lin.C).max(axis=1).min() > 1
    y, s, x = np.ones(14), np.array([1.0, -2.0]), np.arange(14.0)
    back = mujacobian.vjp(model, data, y, s).state
    np.testing.assert_allclose(back, y @ lin.A + s @ lin.C, rtol=1e-10)
    np.testing.assert_allclose(mujacobian.jvp(model, data, x)[1], lin.C @ x, rtol=1e-10)


def test_parameters():
    """The product uses the values in the model, not those when the parameters were made."""
    made_for = load("hinge_chain")
    parameters = mujacobian.Parameters(made_for, ["body_log_cholesky", "gravity"])
    model = parameters.apply(parameters.values + 0.1)
    data = random_state(model, np.random.default_rng(6))
    rng = np.random.default_rng(7)
    y, p = rng.normal(size=2 * model.nv), rng.normal(size=len(parameters))
    back = mujacobian.vjp(model, data, y, params=parameters)
    change, _ = mujacobian.jvp(model, data, params=parameters, d_params=p)
    assert y @ change == pytest.approx(back.params @ p, rel=TRANSPOSE_TOLERANCE)
    fresh = mujacobian.Parameters(model, ["body_log_cholesky", "gravity"])
    wanted = mujacobian.vjp(model, data, y, params=fresh).params
    np.testing.assert_allclose(back.params, wanted, rtol=1e-12)
    assert (wanted != 0).any()


def test_nothing_given_is_nothing_made():
    model = load("everything")
    data = mujoco.MjData(model)
    back = mujacobian.vjp(model, data)
    assert not back.state.any()
    assert not back.controls.any()
    assert back.forces is None
    assert back.params is None
    change, sensed = mujacobian.jvp(model, data, sensors=False)
    assert not change.any()
    assert sensed is None


@pytest.mark.parametrize(
    ("function", "arguments", "text"),
    [
        ("vjp", {"d_next": np.ones(3)}, r"d_next must have shape \(6,\), got \(3,\)"),
        ("vjp", {"d_sensors": np.ones(3)}, r"d_sensors must have shape \(0,\)"),
        ("vjp", {"d_next": np.full(6, np.nan)}, r"d_next must be finite, but d_next\[0\] is nan"),
        ("jvp", {"d_state": np.ones(3)}, r"d_state must have shape \(6,\)"),
        ("jvp", {"d_controls": np.ones((1, 2))}, r"d_controls must have shape \(2,\)"),
        ("jvp", {"d_forces": np.full(3, np.inf)}, r"d_forces\[0\] is inf"),
        ("jvp", {"d_params": np.ones(3)}, "d_params needs params"),
    ],
)
def test_bad_input(function, arguments, text):
    model = load("hinge_chain")
    with pytest.raises(ValueError, match=text):
        getattr(mujacobian, function)(model, mujoco.MjData(model), **arguments)


@pytest.mark.parametrize("function", ["vjp", "jvp"])
def test_not_a_model(function):
    with pytest.raises(TypeError, match=r"model must be a mujoco\.MjModel"):
        getattr(mujacobian, function)(None, None)
