"""Sentences about parameters that logs determine only in combination."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.sysid import IdentificationWarning, Log, identify
from mujacobian.sysid.identifiability import explain
from mujacobian.sysid.linear_fit import LinearFit

CART = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="cart"><joint name="rail" type="slide" axis="1 0 0" damping=".5"/>
      <geom size=".1" mass="2"/>
      <body name="load" pos="0 0 .3"><geom size=".1" mass="1"/></body></body>
  </worldbody>
  <actuator><motor name="motor" joint="rail"/></actuator>
  <sensor><jointpos joint="rail" noise=".001"/><jointvel joint="rail" noise=".01"/></sensor>
</mujoco>
"""

LOAD = '<body name="load" pos="0 0 .3"><geom size=".1" mass="1"/></body>'


def found(items, xml=CART):
    model = mujoco.MjModel.from_xml_string(xml)
    controls = np.sin(0.05 * np.arange(400))[:, None]
    read = mujacobian.rollout(model, [0, 0], controls).sensordata
    rng = np.random.default_rng(0)
    read += [0.001, 0.01] * rng.normal(size=read.shape)
    parameters = mujacobian.Parameters(model, items)
    with pytest.warns(IdentificationWarning):
        return identify(parameters, Log([0, 0], controls, read))


def test_only_the_sum_of_two_masses_is_determined():
    result = found([("body_mass", ["cart", "load"])])
    wanted = 'Only the sum of body_mass["cart"] and body_mass["load"] is determined.'
    assert result.identifiability == (wanted,)
    assert wanted in str(result)


def test_only_ratios_of_mass_damping_and_gain_are_determined():
    items = [("body_mass", "cart"), ("dof_damping", "rail"), ("actuator_gainprm", "motor")]
    alone = CART.replace(LOAD, "")
    (sentence,) = found(items, alone).identifiability
    names = 'body_mass["cart"], dof_damping["rail"], actuator_gainprm["motor"][0]'
    assert sentence == f"Only the ratios of {names} are determined."


@pytest.mark.parametrize(
    ("direction", "names", "wanted"),
    [
        ((1, -1), ("mass[0]", "mass[1]"), "Only the sum of mass[0] and mass[1] is determined."),
        ((1, 1), ("a[0]", "a[1]"), "Only the difference of a[0] and a[1] is determined."),
        ((2, 3), ("mass", "gain"), "Only the ratio of mass and gain is determined."),
        ((2, -3), ("mass", "gain"), "Only the product of mass and gain is determined."),
        ((1, -4), ("mass", "gain"), "Only mass + 0.25 gain is determined."),
        ((1, 4), ("mass", "gain"), "Only mass - 0.25 gain is determined."),
    ],
)
def test_directions_in_words(direction, names, wanted):
    """The Jacobian is random, except that it does not change along the direction."""
    rng = np.random.default_rng(0)
    d = np.array(direction) / np.linalg.norm(direction)
    J = rng.normal(size=(20, 2))
    fit = LinearFit(J - np.outer(J @ d, d), rng.normal(size=20))
    assert explain(fit, names, np.array([2.0, 3.0]), fit.covariance()) == (wanted,)


def test_groups_in_words():
    rng = np.random.default_rng(0)
    values = np.array([2.0, 3.0, 4.0])
    d = values / np.linalg.norm(values)
    J = rng.normal(size=(20, 3))
    fit = LinearFit(J - np.outer(J @ d, d), rng.normal(size=20))
    made = explain(fit, "abc", values, fit.covariance())
    assert made == ("Only the ratios of a, b, c are determined.",)
    J = np.outer(rng.normal(size=20), [1, 2, 3])
    fit = LinearFit(J, rng.normal(size=20))
    made = explain(fit, "abc", values, fit.covariance())
    assert made == ("The logs determine only 1 combination of a, b, c.",)
    fit = LinearFit(J * [1, 0, 0], rng.normal(size=20))
    made = explain(fit, "abc", values, fit.covariance())
    assert made == ("The logs do not depend on b.", "The logs do not depend on c.")


def test_correlated_parameters_in_words():
    fit = LinearFit(np.eye(2), np.zeros(2))
    covariance = np.array([[1.0, -0.99], [-0.99, 1.0]])
    (sentence,) = explain(fit, "ab", np.array([5.0, 7.0]), covariance)
    assert "a and b are hard to separate (correlation -0.990)" in sentence
    assert "a + 0.99 b is 11.93 ± 0.14, but a alone is 5 ± 1." in sentence
    assert explain(fit, "ab", np.array([5.0, 7.0]), np.eye(2)) == ()
