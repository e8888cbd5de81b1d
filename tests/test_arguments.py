"""Bad input raises a Python error that names the argument; empty models give empty results."""

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.scenes.cases import load, random_state

SENSOR_MODEL = """
<mujoco>
  <worldbody>
    <body>
      <joint name="hinge"/>
      <geom size=".1" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
  <actuator><motor joint="hinge"/></actuator>
  <sensor><user name="encoder" dim="1"/></sensor>
</mujoco>
"""


@pytest.fixture
def model():
    return load("hinge_chain")


@pytest.fixture
def data(model):
    return random_state(model, np.random.default_rng(0))


def shape(model, block):
    nx = 2 * model.nv + model.na
    ns = model.nsensordata
    return {"A": (nx, nx), "B": (nx, model.nu), "C": (ns, nx), "D": (ns, model.nu)}[block]


@pytest.mark.parametrize("block", ["A", "B", "C", "D"])
def test_wrong_shape(model, data, block):
    rows, columns = shape(model, block)
    for wrong in ((rows + 1, columns), (rows, columns + 1), (rows * columns,), (1, rows, columns)):
        if rows * columns or wrong != (rows, columns):
            with pytest.raises((ValueError, TypeError), match=rf"\b{block}\b"):
                mujacobian.transition(model, data, **{block: np.zeros(wrong)})


@pytest.mark.parametrize("dtype", [np.float32, np.int64, complex, bool, object, ">f8"])
def test_wrong_dtype(model, data, dtype):
    with pytest.raises((ValueError, TypeError), match=r"\bA\b"):
        mujacobian.transition(model, data, np.zeros(shape(model, "A"), dtype))


def test_outputs_that_share_memory(model, data):
    nx, nv = 2 * model.nv, model.nv
    flat = np.zeros(2 * nx * nx)
    shared = flat[: nx * nx].reshape(nx, nx), flat[3 : 3 + nx * model.nu].reshape(nx, model.nu)
    with pytest.raises(mujacobian.errors.ArgumentError, match="A and B must be separate arrays"):
        mujacobian.transition(model, data, *shared)
    with pytest.raises(mujacobian.errors.ArgumentError, match="A and B must be separate arrays"):
        mujacobian.transition(model, data, *shared, fallback="fd")
    with pytest.raises(mujacobian.errors.ArgumentError, match="xx and xu must be separate arrays"):
        mujacobian.hessian_into(model, data, np.zeros(nx), *shared)
    same = np.zeros((nv, nv))
    with pytest.raises(mujacobian.errors.ArgumentError, match="DfDq and DfDa must be separate"):
        mujacobian.inverse(model, data, same, None, same)
    assert not flat.any()
    neighbors = flat[: nx * nx].reshape(nx, nx), flat[nx * nx :][: nx * model.nu]
    mujacobian.transition(model, data, neighbors[0], neighbors[1].reshape(nx, model.nu))
    np.testing.assert_array_equal(neighbors[0], mujacobian.linearize(model, data).A)


def test_output_that_cannot_be_written_in_place(model, data):
    rows, columns = shape(model, "A")
    strided = np.zeros((rows, 2 * columns))[:, ::2]
    fortran = np.zeros((rows, columns), order="F")
    read_only = np.zeros((rows, columns))
    read_only.flags.writeable = False
    for wrong in (strided, fortran, read_only):
        with pytest.raises((ValueError, TypeError), match=r"\bA\b"):
            mujacobian.transition(model, data, wrong)


@pytest.mark.parametrize("wrong", [[[0.0]], "A", 3.0, object()])
def test_output_that_is_no_array(model, data, wrong):
    with pytest.raises((ValueError, TypeError), match=r"\bA\b"):
        mujacobian.transition(model, data, wrong)


def test_a_failed_call_writes_nothing(model, data):
    A = np.full(shape(model, "A"), 7.0)
    with pytest.raises((ValueError, TypeError), match=r"\bB\b"):
        mujacobian.transition(model, data, A, np.zeros((1, 1)))
    assert (A == 7.0).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e11])
@pytest.mark.parametrize("field", ["qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied"])
def test_state_that_is_not_finite(model, data, field, value):
    """MuJoCo itself resets such a state or sets such controls to zero; here it is an error."""
    getattr(data, field).flat[-1] = value
    with pytest.raises(ValueError, match=rf"\b{field}\b"):
        mujacobian.linearize(model, data, sensors=False)
    assert np.array_equal(getattr(data, field).flat[-1], value, equal_nan=True)


def test_mocap_that_is_not_finite():
    model = load("mocap")
    data = random_state(model, np.random.default_rng(0))
    data.mocap_pos[0, 0] = np.nan
    with pytest.raises(ValueError, match="mocap_pos"):
        mujacobian.linearize(model, data, sensors=False)


@pytest.mark.parametrize("forward", [True, False])
def test_model_and_data_that_do_not_belong_together(model, forward):
    for other in ("everything", "slide_chain", "static_world", "three_slides"):
        with pytest.raises(ValueError, match=r"data.*model|model.*data"):
            mujacobian.linearize(model, mujoco.MjData(load(other)), sensors=False, forward=forward)


def test_data_of_an_equal_model_is_accepted(model, data):
    again = load("hinge_chain")
    expected = mujacobian.linearize(model, data, sensors=False)
    lin = mujacobian.linearize(again, data, sensors=False)
    assert lin.A.tobytes() == expected.A.tobytes()


@pytest.mark.parametrize("wrong", [None, 1, "model", np.zeros(3)])
def test_wrong_types(model, data, wrong):
    with pytest.raises(TypeError, match=r"\bmodel\b"):
        mujacobian.linearize(wrong, data)
    with pytest.raises(TypeError, match=r"\bdata\b"):
        mujacobian.linearize(model, wrong)
    with pytest.raises(TypeError, match=r"\bdata\b"):
        mujacobian.linearize(model, model)
    with pytest.raises(TypeError, match=r"\bmodel\b"):
        mujacobian.support(wrong)
    with pytest.raises(TypeError, match=r"\bmodel\b"):
        mujacobian.linearize_batch(wrong, np.zeros((1, 1)), np.zeros((1, 1)))


def test_no_degrees_of_freedom():
    model = load("static_world")
    data = mujoco.MjData(model)
    lin = mujacobian.linearize(model, data, forces=True)
    for block in ("A", "B", "C", "D", "Bf", "Df"):
        assert getattr(lin, block).shape == (0, 0)
    mujacobian.transition(model, data, np.zeros((0, 0)), np.zeros((0, 0)))


def test_no_actuators():
    model = load("ball_chain")
    data = random_state(model, np.random.default_rng(0))
    lin = mujacobian.linearize(model, data)
    assert lin.A.shape == (14, 14)
    assert lin.B.shape == (14, 0)
    mujacobian.transition(model, data, B=np.zeros((14, 0)))


def test_shapes_and_dtypes(model, data):
    lin = mujacobian.linearize(model, data, forces=True)
    expected = {"A": (6, 6), "B": (6, 2), "C": (0, 6), "D": (0, 2), "Bf": (6, 3), "Df": (0, 3)}
    for block, size in expected.items():
        array = getattr(lin, block)
        assert array.shape == size
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        assert array.flags.writeable


def test_blocks_that_were_not_asked_for(model, data):
    lin = mujacobian.linearize(model, data, sensors=False)
    for block in ("C", "D", "Bf", "Df"):
        assert getattr(lin, block) is None


def test_sensors_are_refused_by_name_and_only_when_asked_for():
    model = mujoco.MjModel.from_xml_string(SENSOR_MODEL)
    data = mujoco.MjData(model)
    C, D = np.zeros((1, 2)), np.zeros((1, 1))
    for call in (
        lambda: mujacobian.linearize(model, data),
        lambda: mujacobian.transition(model, data, C=C),
        lambda: mujacobian.transition(model, data, D=D),
    ):
        with pytest.raises(mujacobian.UnsupportedFeatureError, match="encoder"):
            call()
    assert mujacobian.linearize(model, data, sensors=False).A.any()
    mujacobian.transition(model, data, np.zeros((2, 2)), np.zeros((2, 1)))


def test_errors_share_a_base_class():
    assert issubclass(mujacobian.UnsupportedFeatureError, mujacobian.MujacobianError)
    assert issubclass(mujacobian.MujacobianError, Exception)


def test_positional_and_unknown_options_are_refused(model, data):
    with pytest.raises(TypeError):
        mujacobian.linearize(model, data, False)
    with pytest.raises(TypeError):
        mujacobian.linearize(model, data, eps=1e-6)
