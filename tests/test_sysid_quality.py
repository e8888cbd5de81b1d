"""Diagnostics of an identification: chi-square, rank, bounds, convergence, intervals."""

import pickle
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.sysid import IdentificationWarning, Log, identify
from mujacobian.sysid.quality import expected_chi_square, judge_chi_square

CART = """
<mujoco>
  <option timestep=".01"/>
  <worldbody><body name="cart">
    <joint name="rail" type="slide" axis="1 0 0" damping=".5"/><geom size=".1" mass="2"/>
  </body></worldbody>
  <actuator><motor name="motor" joint="rail" gear="1"/></actuator>
  <sensor><jointpos joint="rail" noise=".01"/></sensor>
</mujoco>
"""
NOISE = 0.01


def cart(items, steps=300, noise=NOISE, **options):
    """Return the parameters of a cart on a rail, and a noisy log of it from rest."""
    model = mujoco.MjModel.from_xml_string(CART)
    controls = 5 * np.sin(0.1 * np.arange(steps))[:, None]
    read = mujacobian.rollout(model, [0, 0], controls).sensordata
    read = read + noise * np.random.default_rng(0).normal(size=read.shape)
    return mujacobian.Parameters(model, items), Log([0, 0], controls, read, **options)


MASS_AND_DAMPING = [("body_mass", "cart"), "dof_damping"]


def test_a_good_fit_does_not_warn(recwarn):
    parameters, log = cart(MASS_AND_DAMPING)
    found = identify(parameters, log, start=[1, 1])
    assert not recwarn.list
    assert found.warnings == found.undetermined == found.on_bounds == ()
    assert found.degrees_of_freedom == 300 - 2 - 2
    assert found.reduced_chi_square == pytest.approx(2 * found.cost / 296)
    text = str(found)
    for part in (
        'body_mass["cart"]',
        " kg",
        f"cost {found.cost:.6g}",
        "reduced chi-square",
        "296 degrees of freedom",
        "converged: ",
        "not determined: none",
        "on bounds: none",
    ):
        assert part in text
    assert len(repr(found)) < 120
    assert "2 parameters" in repr(found)
    caption, header, *rows = ElementTree.fromstring(found._repr_html_())
    assert "converged" in caption.text
    assert [row[0].text for row in rows] == list(found.parameters.names)
    assert all(len(row) == len(header) for row in rows)
    again = pickle.loads(pickle.dumps(found))
    assert str(again) == text


def test_intervals():
    found = identify(*cart(MASS_AND_DAMPING))
    half = 1.968011 * found.standard_errors  # quantile of Student's t with 296 degrees
    expected = np.column_stack([found.values - half, found.values + half])
    np.testing.assert_allclose(found.intervals(), expected, rtol=1e-6)
    assert (np.diff(found.intervals(0.5)) < np.diff(found.intervals(0.9))).all()
    with pytest.raises(ValueError, match="level must be between 0 and 1, got 95"):
        found.intervals(95)


@pytest.mark.parametrize(
    ("reduced", "freedom", "expected"),
    [
        (1.0, 1000, None),
        (1.4, 100000, None),  # significant, but with little effect on standard errors
        (1.6, 1000, "does not explain the logs"),
        (1.6, 10, None),  # large, but not rare
        (0.6, 1000, "smaller than the stated noise"),
        (0.7, 100000, None),
        (0.5, 5, None),
    ],
)
def test_rule_of_chi_square(reduced, freedom, expected):
    text = judge_chi_square(reduced, freedom, estimate=True, window=None)
    assert (text is None) if expected is None else (expected in text)


def test_interval_of_chi_square():
    """In a simulation, all but one of a thousand values are inside."""
    low, high = expected_chi_square(20)
    drawn = np.random.default_rng(0).chisquare(20, size=200000) / 20
    assert np.mean((drawn < low) | (drawn > high)) == pytest.approx(1e-3, rel=0.2)


def test_noise_of_first_states_shows_in_chi_square():
    parameters, log = cart(MASS_AND_DAMPING)
    shifted = Log([0.05, 0.2], log.controls, log.sensordata)
    with pytest.warns(IdentificationWarning, match='use initial_states="estimate"') as caught:
        given = identify(parameters, shifted, initial_states="given")
    assert [str(w.message) for w in caught] == list(given.warnings)
    assert caught[0].filename == __file__
    assert f"warning: {given.warnings[0]}" in str(given)
    found = identify(parameters, shifted)
    assert found.warnings == ()
    lower, upper = found.intervals(0.999).T
    assert ((lower < [2, 0.5]) & (upper > [2, 0.5])).all()


def test_unknown_noise_is_not_judged():
    """Without a stated noise, the residuals have no expected size; with one they are checked."""
    parameters, log = cart(MASS_AND_DAMPING)
    parameters.model.sensor_noise[:] = 0
    assert identify(parameters, log).warnings == ()
    stated = Log([0, 0], log.controls, log.sensordata, sensor_noise=[10 * NOISE])
    with pytest.warns(IdentificationWarning, match="smaller than the stated noise"):
        identify(parameters, stated)


def test_combination():
    """Mass, damping and the gain of the motor have a common factor that no log determines."""
    parameters, log = cart([*MASS_AND_DAMPING, ("actuator_gainprm", "motor")])
    with pytest.warns(IdentificationWarning, match="only a combination of") as caught:
        found = identify(parameters, log, start=[1.5, 0.4, 1])
    assert found.undetermined == parameters.names
    assert all(name in str(caught[0].message) for name in parameters.names)
    assert np.isinf(found.standard_errors).all()
    ratios = found.values[:2] / found.values[2]
    np.testing.assert_allclose(ratios, [2, 0.5], rtol=0.05)


def test_parameter_without_effect():
    parameters, log = cart([*MASS_AND_DAMPING, ("geom_friction", 0)])
    with pytest.warns(IdentificationWarning, match=r"do not depend on geom_friction\[0\]\[0\], "):
        found = identify(parameters, log)
    assert found.undetermined == parameters.names[2:]
    assert np.isfinite(found.standard_errors[:2]).all()
    assert "not determined: geom_friction[0][0]" in str(found)


def test_windows_that_are_too_short():
    """Three positions determine an acceleration, but hardly its causes."""
    parameters, log = cart(MASS_AND_DAMPING)
    with pytest.warns(IdentificationWarning, match=r'hardly determined: body_mass\["cart"\] = '):
        identify(parameters, log, window=3)


@pytest.mark.parametrize("bounds", [(0, 1.8), (2.2, 5)])
def test_bounds(bounds):
    parameters, log = cart(MASS_AND_DAMPING)
    start = [np.mean(bounds), 0.5]
    with pytest.warns(IdentificationWarning, match=r'on a bound: body_mass\["cart"\] = '):
        found = identify(parameters, log, start=start, bounds={"body_mass": bounds})
    assert found.on_bounds == parameters.names[:1]
    assert 'on bounds: body_mass["cart"]' in str(found)


def test_near_a_bound_is_not_on_it():
    parameters, log = cart(MASS_AND_DAMPING)
    found = identify(parameters, log)
    edge = found.values[0] + 0.01 * found.standard_errors[0]
    again = identify(parameters, log, start=[1.5, 0.5], bounds={"body_mass": (0, edge)})
    assert again.on_bounds == ()


def test_not_converged():
    parameters, log = cart(MASS_AND_DAMPING)
    with pytest.warns(IdentificationWarning, match="did not converge: The maximum number"):
        found = identify(parameters, log, start=[0.1, 5], max_evaluations=1)
    assert not found.converged
    assert "\nnot converged: " in str(found)


def test_no_degrees_of_freedom():
    """As many numbers as unknowns leave no residuals, so the noise is unknown."""
    parameters, log = cart(MASS_AND_DAMPING)
    read = np.full((300, 1), np.nan)
    read[[100, 299]] = log.sensordata[[100, 299]]
    with pytest.warns(IdentificationWarning, match="the noise cannot be estimated"):
        found = identify(parameters, Log([0, 0], log.controls, read), initial_states="given")
    assert found.degrees_of_freedom == 0
    assert np.isinf(found.standard_errors).all()
    assert np.isnan(found.reduced_chi_square)
    assert np.isinf(found.intervals()).all()
