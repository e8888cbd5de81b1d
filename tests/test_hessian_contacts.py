"""Second derivatives of steps with contacts, against differences of A and B."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference
from tests.oracle.second_order import cotangent, joined, judge_brackets, judge_columns
from tests.scenes.cases import CONTACT_MODELS, FOLDER, INTEGRATORS, sample, simulated_states
from tests.scenes.contact_scenes import PAIRS, STATES
from tests.scenes.random_scenes import random_scene
from tests.test_contacts import CONES, OPTION_PAIRS, OPTIONS, prepare

# With steps below a millimeter, the differences of A and B settle at about 1e-10 of the largest
# entry.
TOLERANCE = 1e-7
# The collider's normal of a curved contact has an error of 3e-7, and A contains it, multiplied by
# the stiffness of the contact. This error changes smoothly with the state, so that differences of A
# settle at a wrong slope: between crossed cylinders, the slope of the position's error is 5e-8.
CURVED_TOLERANCE = 1e-5
CURVED = ("plane-cylinder standing",)
BRACKET_TOLERANCE = 1e-11  # of the antisymmetric part, relative to the largest entry
BRACKET_STEP = 2e-3  # the contacts of the walker are 4 mm deep
LEAST_SHARE = 0.8  # of the columns; separating bodies are at a kink if their velocity changes
MOVING = ("sticking", "slipping", "rolling", "mixed")

# A torso with two legs on a tilted floor; a foot also touches the other leg.
WALKER = """
<mujoco>
  <option timestep=".004" tolerance="1e-15" cone="{cone}"/>
  <default><geom condim="{condim}" friction=".4 .02 .01" solimp=".5 .95 .01 .4 3"/></default>
  <worldbody>
    <geom type="plane" size="3 3 .1" euler="2 3 1"/>
    <body pos="0 0 .2">
      <freejoint/>
      <geom type="box" size=".05 .07 .1" mass="1" euler="10 20 30"/>
      <site name="trunk" pos=".02 .03 .1" euler="20 0 50"/>
      <body pos=".1 0 .05">
        <joint axis="0 1 .3" damping=".2"/>
        <geom type="capsule" fromto="0 0 0 .2 0 -.2" size=".04"/>
        <site name="thigh" pos=".1 0 -.1" euler="10 40 0"/>
        <body name="foot" pos=".2 0 -.2">
          <joint type="ball" damping=".1"/>
          <geom size=".05" pos="0 .1 0" mass=".3"/>
          <site name="sole" pos="0 .1 -.05" size=".3" euler="0 30 10"/>
        </body>
      </body>
      <body pos=".1 .2 -.1">
        <joint axis="1 0 .2"/>
        <geom type="box" size=".04 .05 .03" pos=".1 -.03 -.02" mass=".2"/>
        <site name="heel" pos=".1 0 0" size=".3"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="leg"/></actuator>
  <sensor>{sensors}</sensor>
</mujoco>""".replace('axis="0 1 .3"', 'name="leg" axis="0 1 .3"')


def walker(cone, condim, integrator="euler", sensors=""):
    """Return the walker 4 mm deep in the floor, with a random velocity."""
    model = mujoco.MjModel.from_xml_string(WALKER.format(cone=cone, condim=condim, sensors=sensors))
    INTEGRATORS[integrator](model)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    data.qpos[7] = 0.1
    data.qvel[:] = rng.normal(size=model.nv) * 0.05
    data.qvel[:3] = 0.1, 0, -0.1
    depth = 0.0
    while depth > -0.004:
        data.qpos[2] -= 5e-4
        mujoco.mj_forward(model, data)
        floor = [c.dist for c in data.contact if c.geom[0] == 0]
        depth = min(floor, default=0)
    return model, data


@pytest.mark.parametrize(
    ("cone", "condim", "integrator"),
    sample(3, CONES, STATES, ("euler", "implicitfast", "implicit")),
)
def test_trees_on_a_floor(cone, condim, integrator):
    model, data = walker(cone, condim, integrator)
    assert data.ncon >= 2
    assert (data.contact.geom[:, 0] > 0).any() or (data.contact.geom[:, 0] == 0).sum() >= 2
    assert judge_columns(model, data, tolerance=TOLERANCE) >= LEAST_SHARE


@pytest.mark.parametrize("cone", CONES)
def test_the_antisymmetric_part_of_the_differences_is_that_of_lie_brackets(cone):
    """(HES-3): A and B of a state with contacts are the derivative of one function."""
    model, data = walker(cone, 4)
    judge_brackets(model, data, tolerance=BRACKET_TOLERANCE, least=1, step=BRACKET_STEP)


@pytest.mark.parametrize(("pair", "cone", "condim"), sample(5, PAIRS, CONES, STATES))
def test_pairs(pair, cone, condim):
    state = MOVING[(len(pair) + condim) % len(MOVING)]
    model, data = prepare(pair, cone, condim, state)
    tolerance = CURVED_TOLERANCE if pair in CURVED else TOLERANCE
    assert judge_columns(model, data, tolerance=tolerance) >= LEAST_SHARE


@pytest.mark.parametrize(("option", "pair", "cone"), sample(6, OPTIONS, OPTION_PAIRS, CONES))
def test_options(option, pair, cone):
    attributes, geom = OPTIONS[option]
    # edges of a flat pyramid are near their kink, where rounding limits the differences
    state, share = ("sticking", 0.6) if option == "slippery" else ("slipping", LEAST_SHARE)
    model, data = prepare(pair, cone, 4, state, option=attributes, geom=geom)
    assert judge_columns(model, data, tolerance=TOLERANCE) >= share


@pytest.mark.parametrize("name", sample(2, CONTACT_MODELS))
def test_models(name):
    """Explicit pairs with a reference of their own for friction, conveyor belts, closed hands."""
    model = reference.converge(
        mujoco.MjModel.from_xml_path(str(FOLDER / "contacts" / f"{name}.xml"))
    )
    states = [data for _, data in simulated_states(model, name)]
    shares = [judge_columns(model, data, tolerance=TOLERANCE) for data in states[1:4:2] or states]
    assert np.mean(shares) >= LEAST_SHARE


def test_friction_with_a_reference_of_its_own():
    _, data = walker("elliptic", 4)
    contacts = [(c.geom[0], c.geom[1]) for c in data.contact]
    text = WALKER.format(cone="elliptic", condim=4, sensors="")
    spec = mujoco.MjSpec.from_string(text)
    for k, geom in enumerate(spec.geoms):
        geom.name = f"g{k}"
    for first, second in contacts:
        spec.add_pair(
            geomname1=f"g{first}",
            geomname2=f"g{second}",
            condim=4,
            friction=[0.4, 0.3, 0.02, 0.01, 0.01],
            solimp=[0.5, 0.95, 0.01, 0.4, 3],
            solreffriction=[0.05, 0.7],
        )
    other = spec.compile()
    moved = mujoco.MjData(other)
    moved.qpos[:], moved.qvel[:] = data.qpos, data.qvel
    mujoco.mj_forward(other, moved)
    damping = moved.efc_KBIP.reshape(-1, 4)[: moved.nefc, 1]
    assert np.unique(damping).size > 1
    assert judge_columns(other, moved, tolerance=TOLERANCE) >= LEAST_SHARE


@pytest.mark.parametrize("seed", sample(3, range(30)))
def test_random_scenes(seed):
    model, data = random_scene(seed)
    model = reference.converge(model)
    if model.nv > 20:
        pytest.skip("the differences take long")
    try:
        mujacobian.hessian(model, data, np.zeros(2 * model.nv))
    except mujacobian.UnsupportedFeatureError as error:
        pytest.skip(str(error))
    judge_columns(model, data, tolerance=CURVED_TOLERANCE)


# Geoms whose contacts the convex collider finds, and geoms with the same surface there, for which
# MuJoCo has closed forms.
TWINS = {"cylinder": "capsule", "ellipsoid": "sphere"}
TWIN_SIZES = {
    "cylinder": 'size=".03 .1"',
    "capsule": 'size=".03 .1"',
    "ellipsoid": 'size=".03 .03 .03"',
    "sphere": 'size=".03"',
    "box": 'size=".1 .2 .03"',
}
# Error of H, relative to its largest entry, per error of the converged collider (1e-9 to 2e-6 m or
# rad): H contains the contact itself.
SENSITIVITY = 100


def crossed(lower, upper):
    """Return a free geom that is 4 mm deep in the geom of a hinged body below it."""
    lying = 'euler="0 90 0"' if lower in ("cylinder", "capsule") else ""
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <option timestep=".002" tolerance="1e-15" cone="elliptic"/>
        <default><geom condim="4" friction=".6 .02 .01" mass="0"/></default>
        <worldbody>
          <body pos=".02 -.03 0">
            <joint axis="1 .2 0"/><joint axis="0 1 .1"/>
            <geom name="lower" type="{lower}" {TWIN_SIZES[lower]} pos="0 .02 0" {lying}/>
            <geom size=".1" mass="1" pos=".3 .2 -.1" contype="0" conaffinity="0"/>
          </body>
          <body pos=".03 -.01 .056">
            <freejoint/>
            <geom name="upper" type="{upper}" {TWIN_SIZES[upper]} euler="90 20 10"/>
            <geom size=".1" mass="1" pos=".1 .3 .2" contype="0" conaffinity="0"/>
          </body>
        </worldbody>
      </mujoco>""")
    model = reference.converge(model)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.1 * np.random.default_rng(5).normal(size=model.nv)
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    return model, data


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ("cylinder", "cylinder"),
        ("capsule", "cylinder"),
        ("ellipsoid", "ellipsoid"),
        ("box", "ellipsoid"),
        ("capsule", "ellipsoid"),
    ],
)
def test_curved_contacts_agree_with_closed_forms(lower, upper):
    """Differences of A contain the slope of the collider's error; this comparison does not."""
    curved = crossed(lower, upper)
    exact = crossed(*(TWINS.get(kind, kind) for kind in (lower, upper)))
    contacts = [scene[1].contact for scene in (curved, exact)]
    # the order of the geoms may change, and the sign of the normal with it
    off = abs(abs(contacts[0].frame) - abs(contacts[1].frame)).max()
    off += abs(contacts[0].pos - contacts[1].pos).max()
    given = cotangent(curved[0])
    found, expected = (joined(mujacobian.hessian(*scene, given)) for scene in (curved, exact))
    assert abs(expected).max() > 1
    assert off < 1e-5
    np.testing.assert_allclose(found, expected, atol=SENSITIVITY * off * abs(expected).max())


STACK = """
<mujoco>
  <worldbody>
    <body><freejoint/><geom name="lower" type="box" size=".1 .1 .1"/></body>
    <body pos="0 0 .1999"><freejoint/><geom name="upper" type="box" size=".1 .1 .1"/></body>
  </worldbody>
</mujoco>"""


def test_boxes_with_parallel_faces_raise():
    """The motion chooses the box whose face is the reference, so that A jumps."""
    model = mujoco.MjModel.from_xml_string(STACK)
    data = mujoco.MjData(model)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="parallel faces") as raised:
        mujacobian.hessian(model, data, np.ones(24))
    assert "lower" in raised.value.element
    model.geom_contype[:] = model.geom_conaffinity[:] = 0
    assert np.isfinite(mujacobian.hessian(model, data, np.ones(24)).xx).all()


def test_geoms_that_touch_along_a_line_raise():
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <worldbody>
          <body><geom name="wall" type="cylinder" size=".1 .1"/></body>
          <body pos=".2999 0 0">
            <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
            <geom name="post" type="cylinder" size=".2 .3"/>
          </body>
        </worldbody>
      </mujoco>""")
    data = mujoco.MjData(model)
    assert np.isfinite(mujacobian.linearize(model, data).A).all()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="along a line"):
        mujacobian.hessian(model, data, np.ones(4))


def test_contacts_are_repeatable_and_change_nothing():
    model, data = walker("elliptic", 6)
    given = np.ones(2 * model.nv)
    spec = mujoco.mjtState.mjSTATE_INTEGRATION
    before, after = np.empty((2, mujoco.mj_stateSize(model, spec)))
    mujoco.mj_getState(model, data, before, spec)
    count = mujacobian.fd_count()
    first = mujacobian.hessian(model, data, given, forces=True)
    second = mujacobian.hessian(model, data, given, forces=True)
    mujoco.mj_getState(model, data, after, spec)
    for name in ("xx", "xu", "uu", "xf", "uf", "ff"):
        assert (getattr(first, name) == getattr(second, name)).all()
        assert abs(getattr(first, name)).max() > 0
    assert (before == after).all()
    assert mujacobian.fd_count() == count
