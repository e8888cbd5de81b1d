"""Second derivatives of smooth dynamics against the tensors of Pinocchio.

Pinocchio has them in C++ only. The tests are skipped without Pinocchio, its headers, or a compiler.
`make test-pinocchio` installs them, except for the compiler, and runs the tests.
"""

import shutil
import subprocess
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
from benchmarks.robots import ROBOTS, Robot, load, random_data

pinocchio = pytest.importorskip("pinocchio", reason="Pinocchio is not installed")

TOLERANCE = 1e-10  # of the largest entry; both results are exact up to rounding
A1 = Robot("a1", "a1_description/urdf/a1.urdf", floating=True)
CHECKED = [robot for robot in (*ROBOTS, A1) if robot.name != "solo12"]
PREFIX = "cmeel.prefix"  # of the wheels of Pinocchio and its dependencies
# as the configuration of its CMake package
DEFINES = [
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
    "-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION",
]
SOURCE = Path(__file__).parent / "oracle" / "pinocchio_tensors.cc"


@pytest.fixture(scope="module")
def tensors(tmp_path_factory):
    """Return a function that contracts the second derivatives of inverse dynamics with mu."""
    prefix = next(p for p in Path(pinocchio.__file__).parents if p.name == PREFIX)
    headers = prefix / "include"
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    if not (headers / "pinocchio" / "multibody.hpp").exists():
        pytest.skip("there are no headers of Pinocchio 4")
    if not (headers / "eigen3").exists():
        pytest.skip("there are no headers of Eigen: pip install cmeel-eigen")
    folder = tmp_path_factory.mktemp("pinocchio")
    program, library = folder / "tensors", prefix / "lib"
    include = [f"-isystem{headers / name}" for name in ("", "eigen3")]
    link = [f"-L{library}", f"-Wl,-rpath,{library}", "-lpinocchio_default"]
    link += ["-lboost_serialization", "-lboost_filesystem"]
    subprocess.run(
        [compiler, "-std=c++17", "-O0", *DEFINES, *include, SOURCE, "-o", program, *link],
        check=True,
    )

    def contract(made, *vectors):
        made.saveToBinary(str(folder / "model.bin"))
        np.concatenate(vectors).tofile(folder / "vectors.bin")
        ran = subprocess.run(
            [program, folder / "model.bin", folder / "vectors.bin"],
            check=True,
            capture_output=True,
            text=True,
        )
        return np.array(ran.stdout.split(), float).reshape(4, made.nv, made.nv)

    return contract


def rigid_bodies(model):
    """Return the bodies of a model for Pinocchio, with free joints as translation and rotation."""
    assert not model.dof_armature.any()
    assert not model.jnt_pos.any()
    made = pinocchio.Model()
    made.gravity.linear = model.opt.gravity
    # the joint that carries each body, and the place of the body in its frame
    carriers = [(0, pinocchio.SE3.Identity())]
    for body in range(1, model.nbody):
        joint, place = carriers[model.body_parentid[body]]
        place = place * pinocchio.SE3(turn(model.body_quat[body]), model.body_pos[body])
        first, count = model.body_jntadr[body], model.body_jntnum[body]
        for k in range(first, first + count):
            if model.jnt_type[k] == mujoco.mjtJoint.mjJNT_FREE:
                place = pinocchio.SE3.Identity()
            for kind in joint_models(model, k):
                joint = made.addJoint(joint, kind, place, f"{k}{kind.shortname()}")
                place = pinocchio.SE3.Identity()
        axes = turn(model.body_iquat[body])
        inertia = axes @ np.diag(model.body_inertia[body]) @ axes.T
        made.appendBodyToJoint(
            joint, pinocchio.Inertia(model.body_mass[body], model.body_ipos[body], inertia), place
        )
        carriers.append((joint, place))
    assert made.nv == model.nv
    return made


def joint_models(model, k):
    axis = model.jnt_axis[k]
    match model.jnt_type[k]:
        case mujoco.mjtJoint.mjJNT_FREE:
            return pinocchio.JointModelTranslation(), pinocchio.JointModelSpherical()
        case mujoco.mjtJoint.mjJNT_SLIDE:
            return (pinocchio.JointModelPrismaticUnaligned(*axis),)
        case _:
            return (pinocchio.JointModelRevoluteUnaligned(*axis),)


def turn(quaternion):
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)


def configuration(model, data):
    """Return qpos with the quaternion of a floating base in the order of Pinocchio."""
    q = data.qpos.copy()
    if model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE:
        q[3:7] = np.roll(q[3:7], -1)
    return q


@pytest.mark.parametrize("robot", CHECKED, ids=lambda robot: robot.name)
def test_second_derivatives_of_the_acceleration(robot, tensors):
    """The second derivative of mu . (M a + c) gives that of the acceleration (HES-7)."""
    model = load(robot)
    # Pinocchio's inverse dynamics has neither damping nor limits of forces
    model.dof_damping[:] = 0
    model.jnt_actfrclimited[:] = 0
    data = random_data(model, seed=1)
    made = rigid_bodies(model)
    rigid = made.createData()
    q, v, a = configuration(model, data), data.qvel, data.qacc
    pinocchio.computeABADerivatives(made, rigid, q, v, data.qfrc_actuator)
    np.testing.assert_allclose(rigid.ddq, a, atol=1e-9 * abs(a).max())
    inverse = np.triu(rigid.Minv) + np.triu(rigid.Minv, 1).T

    # d2(mu . tau) over (q, v, a)
    along = np.random.default_rng(2).normal(size=model.nv)
    qq, vv, qv, aq = tensors(made, q, v, a, inverse @ along)
    nothing = np.zeros_like(qq)
    second = np.block(
        [[0.5 * (qq + qq.T), qv, aq.T], [qv.T, 0.5 * (vv + vv.T), nothing], [aq, nothing, nothing]]
    )
    moments = np.zeros((model.nu, model.nv))
    mujoco.mju_sparse2dense(
        moments, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
    )
    total = np.hstack([rigid.ddq_dq, rigid.ddq_dv, inverse @ moments.T])
    inputs = np.eye(2 * model.nv, 2 * model.nv + model.nu)
    columns = np.vstack([inputs, total])
    expected = -columns.T @ second @ columns

    d_state = np.concatenate([np.zeros(model.nv), along])
    found = mujacobian.hessian(model, data, d_state)
    ours = np.block([[found.xx, found.xu], [found.xu.T, found.uu]]) / model.opt.timestep
    assert abs(expected).max() > 1
    error = abs(ours - expected).max() / abs(expected).max()
    print(f"{robot.name}: {error:.1e}")
    assert error <= TOLERANCE
