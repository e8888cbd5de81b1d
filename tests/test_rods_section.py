"""Materials and cross sections of rods."""

import numpy as np
import pytest

from mujacobian import rods
from mujacobian.errors import ArgumentError, ArgumentTypeError

STEEL = {"E": 210e9, "nu": 0.3, "density": 7850}
NODES = np.linspace([0, 0, 0], [1, 0, 0], 41)


def test_a_disk_has_its_textbook_values():
    rod = rods.Rod.from_material(NODES, rods.Section.circle(0.01), **STEEL)
    area, moment, G = np.pi * 1e-4, np.pi / 4 * 1e-8, 210e9 / 2.6
    assert rod.mass == pytest.approx(7850 * area)
    assert rod.stretch == pytest.approx(np.full(40, 210e9 * area))
    assert rod.shear == pytest.approx(np.full(40, 2 * 7.8 / 8.8 * G * area))
    assert rod.bend[0] == pytest.approx([210e9 * moment] * 2 + [2 * G * moment])
    plain = rods.Rod(NODES, rod.mass, 0.01, 1, 1, 1)
    assert rod.lumped()[1] == pytest.approx(plain.lumped()[1])


def test_sections():
    ring = rods.Section.circle(0.02, 0.0199)
    assert ring.area == pytest.approx(2 * np.pi * 0.01995 * 1e-4)
    assert ring.torsion == pytest.approx(2 * np.pi * 0.01995**3 * 1e-4, rel=1e-4)
    assert ring.shear_factor(0.3) == pytest.approx(2 * 1.3 / (4 + 3 * 0.3), rel=1e-3)  # thin ring
    plate, turned = rods.Section.rectangle(0.03, 0.01), rods.Section.rectangle(0.01, 0.03)
    assert (plate.first, plate.second) == (turned.second, turned.first)
    assert plate.first == pytest.approx(0.03 * 1e-6 / 12)
    assert plate.torsion == turned.torsion == pytest.approx(0.2633 * 0.03 * 1e-6, rel=1e-3)
    square = rods.Section.rectangle(1, 1)
    assert square.torsion == pytest.approx(0.140577, rel=1e-5)
    rod = rods.Rod.from_material(NODES, plate, **STEEL)
    assert np.diag(rod.lumped()[1][0]) == pytest.approx(
        rod.mass / 40 / 12 * np.array([1e-4, 9e-4, 1e-3])
    )


def test_a_cantilever_bends_by_its_own_weight():
    """The deflection of the tip is q L^4 / 8 E I, and the shorter rest length has less mass."""
    section = rods.Section.rectangle(0.01, 0.02)
    frames = np.tile([[0, 0, 1], [1, 0, 0], [0, 1, 0]], (40, 1, 1))  # the third axis is x
    beam = rods.Rod.from_material(NODES, section, **STEEL, clamp_start=True, frames=frames)
    resting = rods.equilibrium(rods.World(timestep=1, rods=[beam]))
    # the first axis is y, so the height of the section is 0.02 m along z
    deflection = beam.mass * 9.81 / (8 * 210e9 * 0.01 * 0.02**3 / 12)
    assert -resting.positions[-1, 2] == pytest.approx(deflection, rel=5e-3)
    short = rods.Rod.from_material(NODES, section, **STEEL, rest_lengths=np.full(40, 0.0125))
    assert short.mass == pytest.approx(beam.mass / 2)


def test_bad_materials():
    disk = rods.Section.circle(0.01)
    with pytest.raises(ArgumentError, match="nu must be above -1"):
        rods.Rod.from_material(NODES, disk, E=1, nu=0.6, density=1)
    with pytest.raises(ArgumentError, match="E must be positive"):
        rods.Rod.from_material(NODES, disk, E=0, nu=0.3, density=1)
    with pytest.raises(ArgumentTypeError, match="section must be of type Section"):
        rods.Rod.from_material(NODES, 0.01, **STEEL)
    with pytest.raises(ArgumentError, match="inner must be less than radius"):
        rods.Section.circle(0.01, 0.01)
    with pytest.raises(ArgumentError, match="width must be positive"):
        rods.Section.rectangle(0, 1)
