"""Second derivatives with respect to parameters, against differences of exact gradients."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian.errors import ArgumentError, ArgumentTypeError
from tests.oracle.extrapolation import derivative
from tests.scenes.cases import INTEGRATORS, random_state, sample
from tests.scenes.contact_scenes import STATES
from tests.scenes.rollout_cases import row
from tests.test_contacts import CONES, OPTIONS
from tests.test_hessian import ROWS, load, pendulum
from tests.test_hessian_contacts import walker
from tests.test_hessian_sensors import machine

SMOOTH = 1e-8
CONSTRAINED = 1e-6
SYMMETRY = 1e-11
INERTIA = ["body_mass", "body_ipos", "body_inertia", "dof_armature", "gravity"]
FAMILIES = {
    "hinge_chain": [*INERTIA, "dof_damping"],
    "ball_chain": ["body_log_cholesky", "gravity"],
    "free_body_with_limbs": INERTIA,
    "joint_springs": ["jnt_stiffness", "qpos_spring", "body_mass"],
    "ball_and_free_springs": ["jnt_stiffness", "body_inertia"],
    "actuator_kinds": ["actuator_gainprm", "actuator_biasprm", "body_mass"],
    "actuator_tendon": ["actuator_gainprm", "actuator_biasprm"],
    "actuator_site": ["actuator_gainprm", "actuator_biasprm"],
    "force_clamping": ["actuator_gainprm", "actuator_biasprm"],
    "fixed_tendon": ["tendon_stiffness", "tendon_damping", "tendon_lengthspring", "dof_damping"],
    "spatial_tendon": ["tendon_stiffness", "tendon_damping", "tendon_lengthspring", "body_mass"],
}
COVERED = ("euler", "implicitfast", "implicit")
MUSCLE = """<mujoco><option integrator="implicitfast"/><worldbody>
<body><joint name="hinge" axis="0 1 0" damping=".1"/><geom size=".05" pos=".3 0 -.3"/></body>
</worldbody><actuator><muscle name="muscle" joint="hinge" ctrlrange="0 1" {force}
lengthrange="-1 1" range=".6 1.2"/></actuator></mujoco>"""
SLIDER = """<mujoco><worldbody><geom type="plane" size="2 2 .1"/>
<body name="block" pos="0 0 .05"><joint axis="0 0 1" type="slide" armature=".2"/><joint
axis="1 0 0" type="slide" armature=".3"/><geom size=".05"/></body></worldbody></mujoco>"""


def make_positive(model):
    """Make parameters positive that differences would otherwise move below their lower bound."""
    for name in ("dof_armature", "dof_damping", "tendon_damping", "tendon_stiffness"):
        field = getattr(model, name)
        field[field == 0] = 0.05
    model.jnt_stiffness[model.jnt_stiffness == 0] = 0.1
    mujoco.mj_setConst(model, mujoco.MjData(model))


def part_geoms(model, solref):
    """Avoid ties between geoms."""
    spread = 1 + 0.1 * np.arange(model.ngeom)
    model.geom_solref[:] = np.outer(spread, solref)
    model.geom_friction[:] *= spread[:, None]
    model.geom_solmix[:] = spread


class Case:
    """A rollout with random inputs, weights and directions."""

    def __init__(self, model, items, steps=4, *, state=None, sensors=False, derived="recompute"):
        rng = np.random.default_rng(0)
        self.model, self.params = model, mujacobian.Parameters(model, items, derived=derived)
        self.values = self.params.values
        self.unit = np.where(self.values == 0, 0.1, abs(self.values))
        self.state = row(random_state(model, rng, scale=0.3)) if state is None else state
        self.controls = 0.3 * rng.random(size=(steps, model.nu))
        self.trajectory = self.rollout()
        self.weights = [rng.normal(size=self.trajectory.states.shape), None]
        self.weights[0][0] = 0
        if sensors:
            self.weights[1] = rng.normal(size=self.trajectory.sensordata.shape)
        sizes = self.state.shape, self.controls.shape, self.values.shape
        self.along = [rng.normal(size=size) for size in sizes]
        self.along[2] *= self.unit

    def rollout(self, state=0, controls=0, values=0, **options):
        start, inputs = self.state + state, self.controls + controls
        params = self.params, self.values + values
        return mujacobian.rollout(self.model, start, inputs, params=params, threads=1, **options)

    def parts(self, gradient):
        return [gradient.state, gradient.controls.ravel(), gradient.params * self.unit]

    def judge(self, tolerance, **steps):
        """Compare each part of the product, and the symmetry of the block of parameters."""

        def gradient(step):
            moved = self.rollout(*(step * x for x in self.along))
            return np.concatenate(self.parts(moved.gradient(*self.weights)))

        expected, error = derivative(gradient, **steps)
        found = self.parts(self.trajectory.hvp(self.along, *self.weights))
        ends = np.cumsum([len(part) for part in found])[:-1]
        assert error < tolerance * abs(expected).max()
        for one, other in zip(found, np.split(expected, ends), strict=True):
            if len(one):
                scale = max(abs(other).max(), 1e-2 * abs(expected).max())
                np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)
        assert abs(found[2]).max() > 0
        self.judge_symmetry()

    def judge_symmetry(self):
        units = np.diag(self.unit)
        columns = [self.trajectory.hvp((None, None, x), *self.weights).params for x in units]
        matrix = np.array(columns) * self.unit
        assert abs(matrix - matrix.T).max() <= SYMMETRY * abs(matrix).max()


@pytest.mark.parametrize(("name", "integrator"), sample(3, tuple(FAMILIES), COVERED))
def test_smooth_families(name, integrator):
    model = load(name)
    make_positive(model)
    INTEGRATORS[integrator](model)
    Case(model, FAMILIES[name]).judge(SMOOTH)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family(name):
    model = load(name)
    make_positive(model)
    Case(model, FAMILIES[name], 2).judge(SMOOTH)


@pytest.mark.parametrize("integrator", ["implicitfast", "rk4"])
def test_muscles(integrator):
    model = mujoco.MjModel.from_xml_string(MUSCLE.format(force='force="30"'))
    INTEGRATORS[integrator](model)
    items = ["actuator_gainprm", "actuator_biasprm", "body_mass"]
    case = Case(model, items, state=np.array([0.1, 0.2, 0.5]))
    assert len(case.values) == 3
    case.judge(SMOOTH, first=1e-3)


def test_a_muscle_that_scales_with_acc0_raises():
    model = mujoco.MjModel.from_xml_string(MUSCLE.format(force='scale="200"'))
    state = np.array([0.1, 0.2, 0.5])
    case = Case(model, ["body_mass"], state=state)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=r'actuator "muscle".*second d'):
        case.trajectory.hvp(case.along, *case.weights)
    Case(model, ["body_mass"], state=state, derived="hold").judge(SMOOTH, first=1e-3)


@pytest.mark.parametrize("derived", ["recompute", "hold"])
@pytest.mark.parametrize("integrator", COVERED)
def test_constraint_rows(integrator, derived):
    """Derived weights scale the rows of limits, dry friction and couplings."""
    model = mujoco.MjModel.from_xml_string(ROWS.format(flag=""))
    make_positive(model)
    INTEGRATORS[integrator](model)
    items = ["body_mass", "dof_armature", "dof_frictionloss", "tendon_frictionloss", "gravity"]
    Case(model, items, derived=derived).judge(CONSTRAINED, first=1e-5, levels=4)


@pytest.mark.parametrize("items", [INERTIA, ["body_log_cholesky"]])
@pytest.mark.parametrize("derived", ["recompute", "hold"])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contacts(cone, derived, items):
    model, data = walker(cone, 3)
    make_positive(model)
    case = Case(model, items, 3, state=row(data), derived=derived)
    case.judge(CONSTRAINED, first=1e-6, levels=4)


@pytest.mark.parametrize("solref", [(0.02, 1.0), (-3000.0, -80.0)])
@pytest.mark.parametrize(("cone", "condim"), sample(3, CONES, STATES))
def test_parameters_of_contacts(cone, condim, solref):
    """Friction, solref and solimp of both geoms, with masses, on which their weights depend."""
    model, data = walker(cone, condim)
    part_geoms(model, solref)
    items = ["geom_friction", "geom_solref", "geom_solimp", "body_mass"]
    case = Case(model, items, 1, state=row(data))
    case.judge(CONSTRAINED, first=1e-6, levels=4)


def test_parameters_of_limits():
    model = mujoco.MjModel.from_xml_string(ROWS.format(flag=""))
    case = Case(model, ["jnt_range", "jnt_solref", "body_mass"])
    case.judge(CONSTRAINED, first=1e-5, levels=4)


def test_moving_surfaces_raise():
    model = mujoco.MjModel.from_xml_string(SLIDER.replace("geom size", 'geom surfacevel="1" size'))
    case = Case(model, ["geom_friction"], 1, state=np.array([-0.0005, 0, -0.01, 0.3]))
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="moving surface"):
        case.trajectory.hvp(case.along, *case.weights)
    (listed,) = mujacobian.support(model, order=2, params=case.params)
    assert (listed.element, "numbers of its contacts" in listed.reason) == ("geom 1", True)
    assert mujacobian.support(model, params=case.params) == []
    mass = mujacobian.Parameters(model, ["body_mass"])
    assert mujacobian.support(model, order=2, params=mass) == []


def test_bodies_with_sliders_only():
    """The weight of such a body is the inverse of its mass."""
    model = mujoco.MjModel.from_xml_string(SLIDER)
    state = np.array([-0.0005, 0, -0.01, 0.3])
    case = Case(model, ["body_mass", "dof_armature", "gravity"], state=state)
    case.along[0][:] = 0
    case.weights[0] *= [1, 1, 0.01, 0.01]
    case.judge(CONSTRAINED, first=1e-5, levels=4)


@pytest.mark.parametrize("kind", ["framepos", "framelinvel", "accelerometer", "gyro"])
def test_sensors(kind):
    model = machine(kind)
    make_positive(model)
    moved = np.flatnonzero(model.body_mass > 0.01)
    Case(model, [("body_mass", moved), "dof_damping"], 3, sensors=True).judge(SMOOTH)


def test_sensors_that_depend_directly_on_parameters_raise():
    case = Case(machine("accelerometer"), ["gravity"], 2, sensors=True)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="depends directly"):
        case.trajectory.hvp(case.along, *case.weights)


@pytest.mark.parametrize(
    ("items", "match"),
    [
        (["geom_size"], "geom.*second derivatives with respect to its geom_size"),
        (["body_pos"], "body.*second derivatives with respect to its body_position"),
        (["body_quat"], "body.*second derivatives with respect to its body_rotation"),
    ],
)
def test_other_families_raise_with_their_name(items, match):
    model, data = pendulum()
    trajectory = mujacobian.rollout(
        model, data, np.zeros((2, 0)), params=mujacobian.Parameters(model, items)
    )
    weights = np.ones_like(trajectory.states)
    assert np.isfinite(trajectory.gradient(weights).params).all()
    with pytest.raises(mujacobian.UnsupportedFeatureError, match=match):
        trajectory.hessian("params", weights)
    assert np.isfinite(trajectory.hvp(([1, 1], None), weights).state).all()


def test_support_lists_parameters_without_second_derivative():
    model = machine("accelerometer")
    covered = mujacobian.Parameters(model, ["dof_damping"])
    assert mujacobian.support(model, order=2, params=covered) == []
    params = mujacobian.Parameters(model, ["jnt_pos", "body_quat", "gravity"])
    assert mujacobian.support(model, params=params) == []
    listed = mujacobian.support(model, order=2, params=params)
    assert {u.element.split()[0] for u in listed} == {"joint", "body", "sensor"}
    assert len(set(listed)) == len(listed)
    assert any(u.element.startswith("sensor") and "directly" in u.reason for u in listed)
    model.opt.noslip_iterations = 3
    listed = mujacobian.support(model, params=covered)
    assert [u.element for u in listed] == ["option noslip_iterations"]


@pytest.mark.parametrize(
    ("items", "prefix"), [(["geom_size"], "geom"), (["body_pos"], "body"), (["body_mass"], "actu")]
)
def test_support_names_what_raises(items, prefix):
    model = mujoco.MjModel.from_xml_string(MUSCLE.format(force='scale="200"'))
    params = mujacobian.Parameters(model, items)
    trajectory = mujacobian.rollout(model, [0.1, 0.2, 0.5], np.ones((1, 1)), params=params)
    with pytest.raises(mujacobian.UnsupportedFeatureError) as raised:
        trajectory.hessian("params", np.ones_like(trajectory.states))
    listed = [u.element for u in mujacobian.support(model, order=2, params=params)]
    assert raised.value.element.removeprefix("step 0: ") in listed
    assert any(element.startswith(prefix) for element in listed)


@pytest.mark.skipif("adhesion" not in OPTIONS, reason="geoms adhere since MuJoCo 4.0")
def test_adhesive_contacts_raise_with_derived_constants():
    model = mujoco.MjModel.from_xml_string(SLIDER.replace("geom size", 'geom adhesion="5" size'))
    state = np.array([-0.0005, 0, -0.01, 0.3])
    case = Case(model, ["body_mass"], 1, state=state)
    with pytest.raises(mujacobian.UnsupportedFeatureError, match="adhesive contacts"):
        case.trajectory.hvp(case.along, *case.weights)
    friction = mujacobian.Parameters(model, ["geom_friction"], derived="hold")
    listed = mujacobian.support(model, order=2, params=friction)
    assert [u.element for u in listed] == ["an adhesive geom"]
    held = Case(model, ["body_mass"], 1, state=state, derived="hold")
    assert held.trajectory.hvp(held.along, *held.weights).params.any()


@pytest.mark.parametrize("name", FAMILIES)
def test_stages_of_rk4(name):
    model = load(name)
    make_positive(model)
    INTEGRATORS["rk4"](model)
    Case(model, FAMILIES[name], 2).judge(SMOOTH)


@pytest.mark.parametrize("derived", ["recompute", "hold"])
def test_constraint_rows_in_stages_of_rk4(derived):
    model = mujoco.MjModel.from_xml_string(ROWS.format(flag=""))
    make_positive(model)
    INTEGRATORS["rk4"](model)
    items = ["body_mass", "dof_armature", "dof_frictionloss", "tendon_frictionloss", "jnt_range"]
    Case(model, items, derived=derived).judge(CONSTRAINED, first=1e-5, levels=4)


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_contacts_in_stages_of_rk4(cone):
    model, data = walker(cone, 3)
    make_positive(model)
    part_geoms(model, (0.02, 1.0))
    INTEGRATORS["rk4"](model)
    items = ["body_mass", "body_ipos", "geom_friction", "geom_solref", "gravity"]
    Case(model, items, 1, state=row(data)).judge(CONSTRAINED, first=1e-6, levels=4)


def test_sensors_of_the_first_stage_of_rk4():
    model = machine("accelerometer")
    make_positive(model)
    INTEGRATORS["rk4"](model)
    moved = np.flatnonzero(model.body_mass > 0.01)
    Case(model, [("body_mass", moved), "dof_damping"], 3, sensors=True).judge(SMOOTH)


def test_the_hessian_has_the_products_as_columns():
    model = load("hinge_chain")
    make_positive(model)
    case = Case(model, ["body_mass", "dof_damping"])
    H = case.trajectory.hessian("params", *case.weights)
    along = (None, None, case.along[2])
    found = case.trajectory.hvp(along, *case.weights).params
    np.testing.assert_allclose(H @ case.along[2], found, rtol=1e-11, atol=1e-14)
    assert (H == H.T).all()
    with pytest.raises(ArgumentError, match='wrt must be "params"'):
        case.trajectory.hessian("state", *case.weights)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_one_step_is_that_of_hvp(integrator):
    model = load("hinge_chain")
    make_positive(model)
    INTEGRATORS[integrator](model)
    case = Case(model, INERTIA, 1)
    d_states = np.random.default_rng(1).normal(size=(2, 2 * model.nv))
    dx, du, dp = case.along
    found = case.trajectory.hvp((dx, du, dp), d_states, tangent=True)
    data = mujoco.MjData(model)
    data.qpos, data.qvel = np.split(case.state, [model.nq])
    data.ctrl[:] = case.controls[0]
    made = mujacobian.hvp(model, data, dx, du[0], d_states[1], params=case.params, d_params=dp)
    for one, other in zip(
        (made.state, made.controls, made.params),
        (found.state, found.controls[0], found.params),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    plain = mujacobian.hvp(model, data, dx, du[0], d_states[1], params=case.params)
    constant = mujacobian.hvp(model, data, dx, du[0], d_states[1])
    np.testing.assert_array_equal(plain.state, constant.state)
    assert constant.params is None
    assert abs(plain.params).max() > 0
    with pytest.raises(ArgumentError, match="d_params needs params"):
        mujacobian.hvp(model, data, dx, du[0], d_states[1], d_params=dp)


def test_jvp_is_the_transpose_of_the_gradient():
    model = machine("framepos")
    case = Case(model, ["gravity", "dof_damping"], 5, sensors=True)
    moved, sensed = case.trajectory.jvp(case.along)
    gradient = case.trajectory.gradient(*case.weights)
    left = (case.weights[0] * moved).sum() + (case.weights[1] * sensed).sum()
    right = sum(
        (x * y).sum()
        for x, y in zip(
            case.along, (gradient.state, gradient.controls, gradient.params), strict=True
        )
    )
    assert left == pytest.approx(right, rel=1e-11)


def test_checkpoints_threads_and_batches_do_not_matter():
    model = load("actuator_kinds")
    make_positive(model)
    case = Case(model, ["actuator_gainprm", "body_mass"])
    count = mujacobian.fd_count()
    expected = np.concatenate(case.parts(case.trajectory.hvp(case.along, *case.weights)))
    sparse = case.rollout(checkpoint=3).hvp(case.along, *case.weights)
    assert np.concatenate(case.parts(sparse)).tobytes() == expected.tobytes()
    several = np.array([case.controls, 2 * case.controls, case.controls])
    params = case.params, case.values
    batch = mujacobian.rollout(model, case.state, several, params=params, threads=2)
    given = [np.stack([x] * 3) for x in (*case.along, case.weights[0])]
    made = batch.hvp(given[:3], given[3])
    assert made.params.shape == (3, len(case.values))
    assert batch.hessian("params", given[3]).shape == (3, len(case.values), len(case.values))
    product = case.trajectory.hvp(case.along, *case.weights).params
    for k in (0, 2):
        assert made.params[k].tobytes() == product.tobytes()
    assert mujacobian.fd_count() == count


def test_wrong_arguments():
    case = Case(load("hinge_chain"), ["body_mass"], 2)
    hvp, weights = case.trajectory.hvp, case.weights[0]
    with pytest.raises(ArgumentError, match=r"direction\[2\] must have shape \(3,\), got \(2,\)"):
        hvp((None, None, [1, 2]), weights)
    with pytest.raises(ArgumentError, match=r"direction\[2\] must be finite"):
        hvp((None, None, [1, 2, np.nan]), weights)
    with pytest.raises(ArgumentTypeError, match="direction must be a pair"):
        hvp((None, None, None, None), weights)
    plain = mujacobian.rollout(case.model, case.state, case.controls)
    with pytest.raises(ArgumentError, match="no params"):
        plain.hvp((None, None, [1]), weights)
    with pytest.raises(ArgumentError, match="no params"):
        plain.hessian("params", weights)
