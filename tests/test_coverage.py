"""docs/coverage.md agrees with MuJoCo's enumerators, the test files and the library."""

import re
from pathlib import Path

import mujoco
import pytest

import mujacobian

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "coverage.md"
ENUMS = ("mjtIntegrator", "mjtJoint", "mjtEq", "mjtTrn", "mjtDyn", "mjtGain", "mjtBias")
# one element of every kind, so that element 0 exists
MODEL = """
<mujoco>
  <worldbody>
    <body>
      <joint name="hinge"/>
      <geom size=".1"/>
      <site name="site"/>
      <camera/>
    </body>
  </worldbody>
  <tendon><fixed><joint joint="hinge" coef="1"/></fixed></tendon>
  <actuator><general joint="hinge"/></actuator>
  <sensor><jointpos joint="hinge"/></sensor>
</mujoco>
"""


def read_page():
    """Return {enumerator: status}, and every test file that a row names."""
    statuses, proofs = {}, set()
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 3 or cells[1] not in ("exact", "refused"):
            continue
        proofs.add(cells[2])
        if name := re.fullmatch(r"`(mj[A-Z0-9]+_\w+)`", cells[0]):
            assert name[1] not in statuses, f"{name[1]} is listed twice"
            statuses[name[1]] = cells[1]
    return statuses, proofs


STATUSES, PROOFS = read_page()


def enumerators(name):
    """Return {enumerator: value} of one of MuJoCo's enums, without those that are not used."""
    members = getattr(mujoco, name).__members__
    gone = ("mjTRN_UNDEFINED", "mjEQ_DISTANCE")
    return {key: int(value) for key, value in members.items() if key not in gone}


@pytest.mark.parametrize("name", [*ENUMS, "mjtSensor"])
def test_every_enumerator_is_listed(name):
    missing = set(enumerators(name)) - set(STATUSES)
    assert not missing, f"not on the page: {sorted(missing)}"


def test_every_proof_exists():
    assert PROOFS
    for proof in PROOFS:
        assert "def test_" in (TESTS / proof).read_text()


@pytest.mark.parametrize("sensor", enumerators("mjtSensor"))
def test_sensors_are_refused_as_the_page_says(sensor):
    model = mujoco.MjModel.from_xml_string(MODEL)
    model.sensor_type[0] = enumerators("mjtSensor")[sensor]
    model.sensor_objtype[0] = mujoco.mjtObj.mjOBJ_SITE  # a range finder may also be on a camera
    refused = any(item.element.startswith("sensor") for item in mujacobian.support(model))
    assert refused == (STATUSES[sensor] == "refused")


@pytest.mark.parametrize("number", [-1, 60, 1000])
def test_sensor_types_that_are_not_known_are_refused(number):
    model = mujoco.MjModel.from_xml_string(MODEL)
    model.sensor_type[0] = number
    assert [item.reason for item in mujacobian.support(model)] == ["its type is not known"]


@pytest.mark.parametrize("integrator", enumerators("mjtIntegrator"))
def test_integrators_are_refused_as_the_page_says(integrator):
    model = mujoco.MjModel.from_xml_string(MODEL)
    model.opt.integrator = enumerators("mjtIntegrator")[integrator]
    assert bool(mujacobian.support(model)) == (STATUSES[integrator] == "refused")


@pytest.mark.parametrize("field", ["dyn", "gain", "bias"])
def test_user_types_of_actuators_are_refused(field):
    model = mujoco.MjModel.from_xml_string(MODEL)
    name = f"mj{field.upper()}_USER"
    getattr(model, f"actuator_{field}type")[0] = enumerators(f"mjt{field.capitalize()}")[name]
    assert STATUSES[name] == "refused"
    assert [item.element for item in mujacobian.support(model)] == ["actuator 0"]
