"""States exactly on ties between branches: the derivative, the documented rule, or an error.

docs/ties.md states the rule. A comparison of the core that selects a branch of a differentiated
quantity is marked in the source with a comment, "// tie: name". The tables `ties/*.py` have states
exactly on these ties. This module checks their derivatives, and that no comparison is missing.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
from tests.ties import (
    actuators,
    contacts,
    exemptions,
    motors,
    plugins,
    rays,
    rows,
    sensors,
    shapes,
    taxels,
    tendons,
    zones,
)
from tests.ties.judge import Tie, judge, load, one_sided

TABLES = (
    actuators,
    contacts,
    motors,
    plugins,
    rays,
    rows,
    sensors,
    shapes,
    taxels,
    tendons,
    zones,
)
TIES: tuple[Tie, ...] = tuple(tie for table in TABLES for tie in table.TIES)
SOURCES = Path(__file__).parent.parent / "cpp"
FOLDERS = (
    "actuation",
    "adjoint",
    "constraint",
    "contact",
    "dynamics",
    "forces",
    "linear",
    "second_order",
    "sensor",
    "spatial",
    "step",
    "tree",
)
COMPARISON = re.compile(r" (<|>|<=|>=) |fmin|fmax|clamp\(|outside\(|std::(min|max|round)\b")
LOOP = re.compile(r"for \([^;]*;[^;]*;")
MARK = re.compile(r"// tie: (.*)$")


@pytest.mark.parametrize("tie", TIES, ids=lambda tie: tie.name)
def test_tie(tie: Tie) -> None:
    judge(tie)


def test_names_are_unique() -> None:
    names = [tie.name for tie in TIES]
    assert len(set(names)) == len(names)


def test_every_tie_has_a_state() -> None:
    """Every comparison marked in the sources has a state, and every state a comparison."""
    marked = Counter(name for path in _sources() for name in _marks(path))
    assert marked.keys() == {tie.tie for tie in TIES}
    print(f"{len(TIES)} states on {len(marked)} ties, {marked.total()} comparisons in the sources")


def test_every_comparison_is_classified() -> None:
    """Every line that compares is marked as a tie, or counted as an exemption."""
    exempt: Counter[str] = Counter()
    for reason in exemptions.REASONS:
        for entry in reason.split():
            name, count = entry.split(":")
            exempt[name] += int(count)
    found = Counter(
        {path.relative_to(SOURCES).as_posix(): len(list(_unmarked(path))) for path in _sources()}
    )
    assert exempt == +found, "mark new comparisons, or count them in tests/ties/exemptions.py"


def test_muscle_at_rest_follows_its_control() -> None:
    """d act' / d ctrl = h / (tau_act / 2), at the usual initial state of muscle models."""
    tie = next(tie for tie in TIES if tie.name == "muscle at rest, control")
    model, data = load(tie)
    lin = mujacobian.linearize(model, data)
    assert lin.B[2, 0] == pytest.approx(0.002 / (0.01 * 0.5), rel=1e-12)


def test_both_geoms_together_have_the_slope_of_the_pair() -> None:
    """Equal friction coefficients share the derivative: along (1, 1) it is that of the pair."""
    tie = next(tie for tie in TIES if tie.name.startswith("sliding friction of equal geoms"))
    model, data = load(tie)
    params = mujacobian.Parameters(model, ["geom_friction"])
    direction = np.array([float(entry.endswith("[0]")) for entry in params.names])
    given = mujacobian.jvp(model, data, params=params, d_params=direction)[0]
    slope = one_sided(model, data, ("geom_friction", "ball", 0), 1.0)
    assert abs(slope).max() > 0
    np.testing.assert_allclose(given, slope, rtol=0, atol=2e-5 * abs(slope).max())


def test_sphere_beside_a_vertex_of_a_mesh() -> None:
    """The witness point distinguishes the vertex from a face that is flat in single precision."""
    vertices = "0 0 0  1 0 0  0 1 0  1 1 0  0 0 1  1 0 1  0 1 1"
    model = mujoco.MjModel.from_xml_string(f"""
      <mujoco>
        <asset><mesh name="cut" scale=".2 .3 .1" vertex="{vertices}"/></asset>
        <worldbody>
          <geom name="mesh" type="mesh" mesh="cut"/>
          <body pos=".7 0 0"><freejoint/><geom name="ball" size=".15"/></body>
        </worldbody>
        <sensor><fromto geom1="mesh" geom2="ball" cutoff="1"/></sensor>
      </mujoco>""")
    model.opt.ccd_tolerance = 1e-13
    data = mujoco.MjData(model)
    lin = mujacobian.linearize(model, data)
    step = 1e-9  # within the distance of 7e-9 between the vertex and the face
    columns = []
    for k in range(3):
        sides = []
        for h in (step, -step):
            mujoco.mj_resetData(model, data)
            data.qpos[k] += h
            mujoco.mj_forward(model, data)
            sides.append(data.sensordata.copy())
        columns.append((sides[0] - sides[1]) / (2 * step))
    np.testing.assert_allclose(lin.C[:, :3], np.array(columns).T, rtol=0, atol=1e-6)


def _sources() -> list[Path]:
    return sorted(path for folder in FOLDERS for path in (SOURCES / folder).glob("*.*"))


def _marks(path: Path) -> list[str]:
    found = (MARK.search(line) for line in path.read_text().splitlines())
    return [match[1] for match in found if match]


def _unmarked(path: Path) -> Iterator[str]:
    """Yield the lines that compare without a mark on or above them; loops do not count."""
    marked = False
    for line in path.read_text().splitlines():
        marked |= bool(MARK.search(line))
        code = LOOP.sub("", line.split("//")[0])
        if not code.strip():
            continue
        if COMPARISON.search(code) and not re.match(r"\s*for \(", code) and not marked:
            yield line
        marked = False
