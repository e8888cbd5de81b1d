"""Derivatives do not depend on `opt.ccd_tolerance`: they are those of a converged collider."""

import copy
import itertools
import warnings
from collections.abc import Callable

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import ColliderNotConvergedWarning, SolverNotConvergedWarning, reference
from mujacobian._diagnostics import COLLIDER_LIMIT, CONTACT_LIMIT
from mujacobian._notices import SLOPE_LENGTH

TOLERANCES = (1e-4, 1e-6, 3e-7, 1e-8, 1e-10)  # 1e-6 is MuJoCo's default
SAME = 1e-12  # relative: only the last iterate of the constraint solver differs
# relative: rounding in the state of a later stage can move its contact to another facet of the
# collider, by the square root of rounding (tests/test_facets.py)
STAGES = 1e-8
SLOPE_LIMIT = 1e-2  # relative error of slopes over SLOPE_LENGTH that causes a warning
EXACT = 1e-6  # relative, against differences of a step whose own collider has converged

SHAPES = {
    "ellipsoid": 'type="ellipsoid" size=".05 .08 .03"',
    "cylinder": 'type="cylinder" size=".05 .06"',
    "capsule": 'type="capsule" size=".04 .05"',
    "sphere": 'type="sphere" size=".05"',
    "box": 'type="box" size=".05 .04 .06"',
    "mesh": 'type="mesh" mesh="blob"',
}
PAIRS = [
    *itertools.product(("ellipsoid", "cylinder"), SHAPES),
    ("sphere", "mesh"),
    ("capsule", "mesh"),
]

# A cylinder across an edge of a box, deeper than its axis: feet on the shins of a humanoid. The
# pose of the box. At the default tolerance, the contact of the first resembles another feature.
CROSSED = {
    "beyond": ("0.017138 0.025332 0.111333", "0.980366 -0.000509 0.197173 0.002417"),
    "before": ("0.017138 -0.024668 0.111333", "0.980366 -0.000509 0.197173 0.002417"),
}


def two_bodies(first: str, second: str, option: str = "", size: str = "") -> mujoco.MjModel:
    """Return two free bodies with a geom each, and sensors of their contact."""
    vertices = np.random.default_rng(1).normal(size=(14, 3)) * 0.05
    return mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <size {size}/>
        <option timestep=".002" {option}/>
        <asset><mesh name="blob" vertex="{" ".join(f"{x:.5f}" for x in vertices.ravel())}"/></asset>
        <worldbody>
          <body name="one" quat=".58 .04 -.04 .81"><freejoint/><geom name="first" {first}/></body>
          <body name="two" quat=".58 .04 -.04 .81"><freejoint/><geom name="second" {second}/></body>
        </worldbody>
        <sensor>
          <contact geom1="first" num="1" data="force dist normal" reduce="maxforce"/>
          <framelinacc objtype="body" objname="two"/>
        </sensor>
      </mujoco>""")


def crossed(case: str, option: str = "", size: str = "") -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a cylinder across an edge of a box, moving."""
    place, turn = CROSSED[case]
    box = f'type="box" size=".04 .03 .15" pos="{place}" quat="{turn}"'
    model = two_bodies('type="cylinder" size=".015 .11"', box, option, size)
    data = mujoco.MjData(model)
    data.qvel[:] = 0.01 * np.arange(model.nv)
    mujoco.mj_forward(model, data)
    return model, data


def touching(model: mujoco.MjModel, rng: np.random.Generator) -> mujoco.MjData:
    """Return a random pose in which the bodies overlap by a few millimeters."""
    data = mujoco.MjData(model)
    for adr in (3, 10):
        data.qpos[adr : adr + 4] = rng.normal(size=4)
    data.qvel[:] = 0.02 * rng.normal(size=model.nv)
    toward = rng.normal(size=3)
    toward /= np.linalg.norm(toward)
    far, near, depth = 0.25, 0.0, rng.uniform(1e-3, 6e-3)
    for _ in range(40):
        data.qpos[7:10] = (far + near) / 2 * toward
        mujoco.mj_forward(model, data)
        deep = data.ncon > 0 and data.contact.dist.min() < -depth
        far, near = (far, (far + near) / 2) if deep else ((far + near) / 2, near)
    return data


def blocks(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    lin = mujacobian.linearize(model, data)
    assert lin.C is not None
    assert lin.D is not None
    return np.vstack([np.hstack([lin.A, lin.B]), np.hstack([lin.C, lin.D])])


def assert_same(given: np.ndarray, wanted: np.ndarray, name: str, limit: float = SAME) -> None:
    assert abs(wanted).max() > 0
    error = abs(given - wanted).max() / abs(wanted).max()
    assert error <= limit, f"{name}: {error:.1e}"


@pytest.mark.parametrize("case", CROSSED)
def test_a_cylinder_across_an_edge(case: str) -> None:
    model, data = crossed(case)
    converged = mujacobian.converged(model)
    wanted = blocks(converged, data)
    reference.converge(converged)
    ref = reference.jacobian(converged, data, constrained=True)
    result = reference.compare(wanted[: ref.nx], ref.J[: ref.nx], ref.err[: ref.nx], ref.blocks[:4])
    assert result.error <= EXACT
    for tolerance in TOLERANCES:
        model.opt.ccd_tolerance = tolerance
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ColliderNotConvergedWarning)
            assert_same(blocks(model, data), wanted, f"{tolerance:g}")


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_pairs(pair: tuple[str, str]) -> None:
    model = two_bodies(*(SHAPES[name] for name in pair))
    rng = np.random.default_rng(3)
    for pose in range(3):
        data = touching(model, rng)
        wanted = blocks(mujacobian.converged(model), data)
        for tolerance in TOLERANCES:
            loose = copy.copy(model)
            loose.opt.ccd_tolerance = tolerance
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ColliderNotConvergedWarning)
                assert_same(blocks(loose, data), wanted, f"pose {pose}, {tolerance:g}")


@pytest.mark.parametrize("shape", ["sphere", "capsule"])
def test_round_geoms_deep_in_a_mesh(shape: str) -> None:
    """The core of the round geom is inside the mesh, where the collider uses its surface."""
    model = two_bodies(SHAPES[shape], SHAPES["mesh"])
    rng = np.random.default_rng(5)
    for pose in range(3):
        data = mujoco.MjData(model)
        data.qpos[:3], data.qpos[3:7] = 0.01 * rng.normal(size=3), rng.normal(size=4)
        mujoco.mj_forward(model, data)
        assert reference.is_deep(model, data.contact[0])
        wanted = blocks(mujacobian.converged(model), data)
        assert_same(blocks(model, data), wanted, f"pose {pose}")


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_distance_sensors(pair: tuple[str, str]) -> None:
    vertices = np.random.default_rng(1).normal(size=(14, 3)) * 0.05
    ends = 'geom1="first" geom2="second" cutoff="1"'
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <size memory="60K"/>
        <option><flag contact="disable"/></option>
        <asset><mesh name="blob" vertex="{" ".join(f"{x:.5f}" for x in vertices.ravel())}"/></asset>
        <worldbody>
          <body><freejoint/><geom name="first" {SHAPES[pair[0]]}/></body>
          <body><freejoint/><geom name="second" {SHAPES[pair[1]]}/></body>
        </worldbody>
        <sensor><distance {ends}/><normal {ends}/><fromto {ends}/></sensor>
      </mujoco>""")
    converged = mujacobian.converged(model)
    converged.opt.ccd_iterations = model.opt.ccd_iterations
    rng = np.random.default_rng(4)
    for pose in range(5):
        data = mujoco.MjData(model)
        data.qpos[3:7], data.qpos[10:] = rng.normal(size=(2, 4))
        toward = rng.normal(size=3)
        data.qpos[7:10] = rng.uniform(0.02, 0.3) * toward / np.linalg.norm(toward)
        assert_same(blocks(model, data), blocks(converged, data), f"pose {pose}")


def _inverse(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    DfDq, DfDv, DfDa = np.empty((3, model.nv, model.nv))
    DsDq = np.empty((model.nv, model.nsensordata))
    mujacobian.inverse(model, data, DfDq, DfDv, DfDa, DsDq)
    return np.hstack([DfDq, DfDv, DfDa, DsDq])


def _rollout(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Compare one step and the velocity after it; later states differ between the tolerances."""
    parameters = mujacobian.Parameters(model, [("body_mass", "one")])
    trajectory = mujacobian.rollout(model, data, np.zeros((1, 0)), params=parameters)
    d_states = np.zeros((2, model.nq + model.nv))
    d_states[1, model.nq :] = np.arange(model.nv)
    gradient = trajectory.gradient(d_states)
    return np.concatenate([gradient.state, np.atleast_1d(gradient.params)])


def _batch(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    state = np.empty(mujoco.mj_stateSize(model, spec))
    mujoco.mj_getState(model, data, state, spec)
    return mujacobian.linearize_batch(model, np.tile(state, (3, 1)), np.zeros((3, 0)), threads=2).A


CALLS: dict[str, Callable[[mujoco.MjModel, mujoco.MjData], np.ndarray]] = {
    "jvp": lambda m, d: mujacobian.jvp(m, d, np.ones(2 * m.nv))[0],
    "vjp": lambda m, d: mujacobian.vjp(m, d, np.ones(2 * m.nv)).state,
    "inverse": _inverse,
    "rollout": _rollout,
    "batch": _batch,
}


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "RK4"])
@pytest.mark.parametrize("call", CALLS)
def test_every_function_differentiates_the_converged_contact(call: str, integrator: str) -> None:
    model, data = crossed("beyond", f'integrator="{integrator}"')
    wanted = CALLS[call](mujacobian.converged(model), data)
    assert_same(CALLS[call](model, data), wanted, call)


def test_the_data_is_left_as_mj_forward_leaves_it() -> None:
    model, data = crossed("beyond")
    fresh = mujoco.MjData(model)
    fresh.qpos[:], fresh.qvel[:] = data.qpos, data.qvel
    mujoco.mj_forward(model, fresh)
    mujacobian.linearize(model, data)
    for name in ("qpos", "qvel", "qacc", "qacc_warmstart", "sensordata", "efc_J", "efc_force"):
        np.testing.assert_array_equal(getattr(data, name), getattr(fresh, name), name)
    for name in ("pos", "frame", "dist"):
        np.testing.assert_array_equal(getattr(data.contact, name), getattr(fresh.contact, name))


def test_models_of_the_same_sizes_do_not_share_results() -> None:
    """Both models are evaluated in the same mjData."""
    first, data = crossed("beyond")
    second = copy.copy(first)
    second.geom_size[0] *= 1.01
    second.opt.gravity[:] = 1, 2, 3
    wanted = [blocks(mujacobian.converged(model), data) for model in (first, second)]
    assert abs(wanted[0] - wanted[1]).max() > 1e-3
    for _ in range(2):
        for model, A in zip((first, second), wanted, strict=True):
            assert_same(blocks(model, data), A, "taking turns")


def test_a_small_arena_suffices() -> None:
    """The converged collider needs more memory than the user's."""
    model, data = crossed("beyond", size='memory="60K"')
    assert_same(blocks(model, data), blocks(*crossed("beyond")), "small arena")


def coarse() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return two ellipsoids whose contact error exceeds the limit."""
    model = two_bodies(SHAPES["ellipsoid"], SHAPES["ellipsoid"])
    model.opt.ccd_tolerance = 1e-3
    rng = np.random.default_rng(0)
    for _ in range(20):
        data = touching(model, rng)
        if max(row.contact_error for row in mujacobian.diagnose(model, data).rows) > CONTACT_LIMIT:
            return model, data
    raise AssertionError("all contacts are fine")


@pytest.mark.parametrize("call", ["linearize", *CALLS])
def test_far_contacts_warn_once(call: str) -> None:
    model, data = coarse()
    run = CALLS.get(call, blocks)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        first, second = run(model, data), run(model, data)
    np.testing.assert_array_equal(first, second)
    assert [each.category for each in found] == [ColliderNotConvergedWarning]
    text = str(found[0].message)
    assert 'geom "first" and geom "second"' in text
    assert found[0].filename == __file__
    assert isinstance(found[0].message, ColliderNotConvergedWarning)
    seen = mujacobian.diagnose(model, data)
    worst = max(row.contact_error for row in seen.rows)
    # the warning is about the larger excess; inverse dynamics has no acceleration that could differ
    contact = worst / CONTACT_LIMIT > seen.collider_error / COLLIDER_LIMIT
    expected = worst if contact or call == "inverse" else seen.collider_error
    assert found[0].message.value == pytest.approx(expected, rel=SAME)
    assert seen.collider.startswith("not converged")


def test_a_small_error_of_a_contact_warns_if_it_changes_the_acceleration() -> None:
    """The converged force passes through the axis of the hinge, MuJoCo's only nearly."""
    model = mujoco.MjModel.from_xml_string("""
      <mujoco>
        <option ccd_iterations="100" ccd_tolerance="1e-10"/>
        <worldbody>
          <geom type="ellipsoid" size=".05 .06 .2"/>
          <body pos="0 .155 0"><joint axis="1 0 0"/><geom type="ellipsoid" size=".08 .1 .1"/></body>
        </worldbody>
      </mujoco>""")
    data = mujoco.MjData(model)
    with pytest.warns(ColliderNotConvergedWarning, match="geom 0 and geom 1") as found:
        mujacobian.linearize(model, data)
    seen = mujacobian.diagnose(model, data)
    assert 0 < max(row.contact_error for row in seen.rows) < CONTACT_LIMIT
    assert isinstance(found[0].message, ColliderNotConvergedWarning)
    assert found[0].message.value == pytest.approx(seen.collider_error, rel=1e-6)
    assert seen.collider_error > 0.9
    best = mujacobian.diagnose(mujacobian.converged(model), data)
    assert best.collider_error == 0
    assert best.collider.startswith("converged")


def test_the_tolerance_that_the_warning_names_helps() -> None:
    model, data = coarse()
    with pytest.warns(ColliderNotConvergedWarning) as found:
        mujacobian.linearize(model, data)
    named = float(str(found[0].message).split("ccd_tolerance to ")[1].split()[0])
    assert named < model.opt.ccd_tolerance
    better = copy.copy(model)
    better.opt.ccd_tolerance = named
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mujacobian.linearize(better, data)


def slope(model: mujoco.MjModel, data: mujoco.MjData, length: float) -> np.ndarray:
    """Return differences of the velocities after `mj_step` over a motion, one column per dof."""
    columns, twin = [], mujoco.MjData(model)
    for dof in range(model.nv):
        ends = []
        for sign in (1, -1):
            mujoco.mj_copyData(twin, model, data)
            mujoco.mj_integratePos(model, twin.qpos, sign * length * np.eye(model.nv)[dof], 1)
            mujoco.mj_step(model, twin)
            ends.append(twin.qvel.copy())
        columns.append((ends[0] - ends[1]) / (2 * length))
    return np.array(columns).T


def test_slopes_that_follow_facets_warn() -> None:
    """Contacts and accelerations are within their limits, slopes of the step are not."""
    warned = [count_warnings(SHAPES[other]) for other in ("capsule", "box")]
    assert 0 < sum(warned) < 16  # MuJoCo 3.15 finds the contacts with boxes more accurately


def count_warnings(other: str) -> int:
    """Return the number of warnings in 16 states, which must agree with the slopes of the step."""
    model = two_bodies(SHAPES["ellipsoid"], other, 'tolerance="1e-14" iterations="200"')
    rng = np.random.default_rng(0)
    warned = 0
    for state in range(16):
        data = touching(model, rng)
        seen = mujacobian.diagnose(model, data)
        if not seen.collider_converged:
            continue
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            A = mujacobian.linearize(copy.copy(model), data, sensors=False).A[
                model.nv :, : model.nv
            ]
        error = abs(slope(model, data, SLOPE_LENGTH) - A).max() / abs(A).max()
        if found:
            assert "follows facets" in str(found[0].message)
            assert isinstance(found[0].message, ColliderNotConvergedWarning)
            # an estimate from the error of the acceleration in this state
            assert found[0].message.value / 5 < error < found[0].message.value * 5, f"{state}"
            warned += 1
        else:
            assert error < 3 * SLOPE_LIMIT, f"{state}: {error:.1e}"
    return warned


@pytest.mark.skipif(mujoco.mj_version() < 4000000, reason="finds two points at any tolerance")
def test_another_number_of_contacts_warns() -> None:
    """For a toe on a rod, MuJoCo finds one point, 2 mm deep, instead of two points at the edge.

    Its step differs as well, so no derivative of the converged step could agree with it.
    """
    toe = 'pos="-0.009075 0.033564 -0.037" quat="0 0.9998819 -0.0153655 0" type="box"'
    model = two_bodies('type="cylinder" size=".025 .1"', f'{toe} size=".01 .0105 .0055"')
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert data.ncon == 1
    assert data.contact.dist[0] < -2e-3
    converged = mujacobian.converged(model)
    mujoco.mj_forward(converged, data)
    assert data.ncon == 2
    assert data.contact.dist.min() > -2e-5
    with pytest.warns(ColliderNotConvergedWarning, match="another number of contacts"):
        given = blocks(model, data)
    assert_same(given, blocks(converged, data), "toe")
    assert [row.contact_error for row in mujacobian.diagnose(model, data).rows] == [np.inf] * 2


@pytest.mark.parametrize("other", ["sphere", "capsule"])
def test_default_settings_do_not_warn(other: str) -> None:
    model = two_bodies(SHAPES["ellipsoid"], SHAPES[other])
    data = touching(model, np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mujacobian.linearize(model, data)
    errors = [row.contact_error for row in mujacobian.diagnose(model, data).rows]
    assert 0 < max(errors) <= CONTACT_LIMIT
    converged = mujacobian.diagnose(mujacobian.converged(model), data).rows
    assert [row.contact_error for row in converged] == [0] * len(converged)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_result_does_not_depend_on_who_solves(pair: tuple[str, str]) -> None:
    """With sensors MuJoCo solves for the forces again, without sensors the core does."""
    model = two_bodies(*(SHAPES[name] for name in pair))
    rng = np.random.default_rng(6)
    for pose in range(3):
        data = touching(model, rng)
        wanted = blocks(mujacobian.converged(model), data)[: 2 * model.nv]
        for tolerance in (1e-4, 1e-6):
            loose = copy.copy(model)
            loose.opt.ccd_tolerance = tolerance
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ColliderNotConvergedWarning)
                given = mujacobian.linearize(loose, data, sensors=False)
            assert_same(np.hstack([given.A, given.B]), wanted, f"pose {pose}, {tolerance:g}")


GROUND = 'type="hfield" hfield="ground" pos="0 0 -.06"'
# Attributes of both geoms, elements of the worldbody, further sections. Each determines which part
# of MuJoCo's pipeline must be repeated.
VARIANTS = {
    "margin": ('margin=".004"', "", ""),
    "gap": ('margin=".004" gap=".002"', "", ""),
    "pair": (
        'contype="0" conaffinity="0"',
        "",
        '<contact><pair geom1="first" geom2="second" margin=".003"/></contact>',
    ),
    "adhesion": ("", "", '<actuator><adhesion body="one" ctrlrange="0 1" gain="3"/></actuator>'),
    "height field": ("", f'<geom name="ground" {GROUND}/>', ""),
    "noslip": ("", "", '<option noslip_iterations="5"/>'),
    "diagexact": ("", "", '<option><flag diagexact="enable"/></option>'),
    "RK4": ("", "", '<option integrator="RK4" tolerance="0"/>'),
    "PGS": ("", "", '<option solver="PGS" iterations="2000" tolerance="1e-15"/>'),
    "override": ("", "", '<option o_margin=".003"><flag override="enable"/></option>'),
}


@pytest.mark.parametrize("sensors", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_variants(variant: str, sensors: bool) -> None:
    attributes, elements, sections = VARIANTS[variant]
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <asset>
          <hfield name="ground" nrow="3" ncol="3" size=".3 .3 .02 .1"
                  elevation="0 1 0 1 0 1 0 1 1"/>
        </asset>
        {sections}
        <worldbody>
          {elements}
          <body name="one"><freejoint/>
            <geom name="first" {SHAPES["ellipsoid"]} {attributes}/>
          </body>
          <body name="two" pos=".05 .02 .07"><freejoint/>
            <geom name="second" {SHAPES["cylinder"]} {attributes}/>
          </body>
        </worldbody>
        <sensor><framelinacc objtype="body" objname="two"/></sensor>
      </mujoco>""")
    rng = np.random.default_rng(8)
    for pose in range(3):
        data = touching(model, rng)
        data.ctrl[:] = 0.7
        mujoco.mj_forward(model, data)
        assert data.ncon > 0
        converged = mujacobian.converged(model)
        converged.opt.solver, converged.opt.iterations = model.opt.solver, model.opt.iterations
        given, wanted = (mujacobian.linearize(m, data, sensors=sensors) for m in (model, converged))
        for name in ("A", "B", "C", "D") if sensors else ("A", "B"):
            block = getattr(wanted, name)
            if block.size:
                limit = STAGES if variant == "RK4" else SAME
                assert_same(getattr(given, name), block, f"pose {pose}, {name}", limit)


@pytest.mark.parametrize("second", ["box", "mesh"])
def test_a_gap_rounds_sharp_geoms(second: str) -> None:
    """Without margin and gap, the contacts of boxes and meshes do not depend on the tolerance."""
    model = two_bodies(*(f'{SHAPES[name]} gap=".01"' for name in ("mesh", second)))
    rng = np.random.default_rng(9)
    for pose in range(5):
        data = touching(model, rng)
        given, wanted = (blocks(m, data) for m in (model, mujacobian.converged(model)))
        assert_same(given, wanted, f"pose {pose}")


def test_the_solver_is_judged_without_the_collider() -> None:
    """Both stop early; the warning about the solver refers to the converged contacts."""
    model, data = crossed("beyond")
    model.opt.iterations = 1
    model.opt.ls_iterations = 1
    model.opt.ccd_tolerance = 1e-4
    data.qvel[:] = np.linspace(-3, 3, model.nv)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        mujacobian.linearize(model, data, sensors=False)
    value = mujacobian.diagnose(model, data).solver_error
    assert value > 1e-3
    assert [each.category for each in found] == [
        SolverNotConvergedWarning,
        ColliderNotConvergedWarning,
    ]
    assert isinstance(found[0].message, SolverNotConvergedWarning)
    assert found[0].message.value == pytest.approx(value)
