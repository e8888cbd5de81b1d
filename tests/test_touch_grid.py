"""The sensor plugin mujoco.sensor.touch_grid against the reference."""

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import reference

TRUSTED_SHARE = 0.85  # the two columns that tilt the flat box are known less exactly
TOLERANCE = 1e-6  # of the reference in contact

XML = """
<mujoco>
  <extension><plugin plugin="mujoco.sensor.touch_grid"/></extension>
  <option timestep=".002" cone="{cone}"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" condim="{condim}" friction="1 .02 .01"/>
    <body name="early" pos="0 0 1"><freejoint/><geom size=".05" contype="0" conaffinity="0"/></body>
    <body name="hand" pos="0 0 .0985">
      <freejoint/>
      <geom name="palm" type="box" size=".2 .15 .1" mass="1" condim="{condim}"/>
      <site name="skin" pos=".02 .01 .1" euler="{euler}"/>
    </body>
    <body name="ball" pos=".05 .04 .2475"><freejoint/>
      <geom name="ball" size=".05" mass=".3" condim="{condim}" friction="1 .02 .01"/></body>
  </worldbody>
  <sensor>
    <plugin name="skin" plugin="mujoco.sensor.touch_grid" objtype="site" objname="skin">
      <config key="size" value="{size}"/><config key="fov" value="{fov}"/>
      <config key="gamma" value="{gamma}"/><config key="nchannel" value="{channels}"/>
    </plugin>
  </sensor>
</mujoco>"""


def scene(
    cone="pyramidal",
    condim=3,
    size="3 4",
    fov="170 80",
    gamma="0",
    channels="3",
    euler="5 10 20",
):
    xml = XML.format(
        cone=cone,
        condim=condim,
        size=size,
        fov=fov,
        gamma=gamma,
        channels=channels,
        euler=euler,
    )
    model = mujoco.MjModel.from_xml_string(xml)
    reference.converge(model)
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(2).normal(size=model.nv) * 0.02
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize(("condim", "channels"), [(1, 1), (3, 3), (6, 6)])
def test_forces_in_bins_are_exact(cone, condim, channels):
    model, data = scene(cone, condim, channels=str(channels))
    assert mujacobian.support(model) == []
    assert np.count_nonzero(data.sensordata) >= 2 * channels, "too few contacts are in the grid"
    lin = mujacobian.linearize(model, data, forces=True)
    found = reference.jacobian(model, data, forces=True, constrained=True)
    J = np.hstack([lin.C, lin.D, lin.Df])
    expected, error = found.J[found.nx :], found.err[found.nx :]
    scale = np.maximum(abs(expected).max(axis=0), 1)
    trusted = error <= TOLERANCE / 5 * scale
    assert trusted.mean() > TRUSTED_SHARE
    assert (abs(J - expected) / scale)[trusted].max() < TOLERANCE
    assert np.count_nonzero(lin.C.any(axis=1)) >= 2 * channels


@pytest.mark.parametrize("gamma", ["0", ".5", "1"])
@pytest.mark.parametrize("size", ["1 1", "7 5"])
def test_grids_are_those_of_the_plugin(gamma, size):
    model, data = scene(size=size, gamma=gamma, fov="120 60")
    lin = mujacobian.linearize(model, data)
    # exactly the bins with a force have rows
    np.testing.assert_array_equal(lin.C.any(axis=1), data.sensordata != 0)


def test_contacts_outside_of_the_grid_do_not_count():
    model, data = scene(fov="1 1", euler="0 0 0")
    assert not data.sensordata.any()
    assert not mujacobian.linearize(model, data).C.any()
