"""States exactly on ties between branches: the derivative, the documented rule, or an error.

docs/ties.md states the rule. The tables `tie_*.py` list the comparisons of the sources that select
a branch, each with a state on it; this module judges them, and checks that no source file with such
a comparison has been forgotten.
"""

import re
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
import tie_actuators
import tie_contacts
import tie_rows
import tie_sensors
import tie_shapes
from tie_judge import Tie, judge, load, one_sided

TABLES = (tie_actuators, tie_rows, tie_contacts, tie_sensors, tie_shapes)
TIES: tuple[Tie, ...] = tuple(tie for table in TABLES for tie in table.TIES)
SOURCES = Path(__file__).parent.parent / "cpp"
FOLDERS = ("adjoint", "constraint", "contact", "dynamics", "sensor", "smooth", "spatial", "step")
COMPARISON = re.compile(r" (<|>|<=|>=) |fmin|fmax|clamp\(|std::(min|max)")

BOOKKEEPING = "It compares counts and indices, or tells whether something is present at all."
NUMERICS = "It chooses between ways to compute the same number, or checks the result."
FEATURES = "It looks for the features that made a contact; the tie is in what they are."
SOLVER = (
    "The solver's own zones: a state is on their boundary only up to the rounding of the optimum, "
    "and the derivative is that of the side on which the optimum is."
)
SIGN = "The sign of a damping or stiffness; at zero both branches add nothing."
DERIVED = "The guard of a quotient whose denominator is zero only where the numerator is."
SINGULAR = "A singular pose: it raises, or both branches are zero."
NO_TIES = {
    BOOKKEEPING: (
        "adjoint/carrier.cc adjoint/column.h adjoint/frame.cc adjoint/frame.h adjoint/inertial.cc "
        "adjoint/parameter.cc adjoint/product.cc adjoint/sensed.cc adjoint/trajectory.cc "
        "constraint/contact.cc constraint/equality.cc constraint/noslip_derivative.cc "
        "contact/wrench.cc dynamics/forward.cc sensor/frame.cc sensor/frame.h sensor/inertial.cc "
        "sensor/limit.cc sensor/path.cc sensor/sensing.cc sensor/virtual_motion.h "
        "smooth/inverse_dynamics.cc smooth/passive.h smooth/residual.cc smooth/tendon.h "
        "smooth/topology.h step/batch.cc step/integrator.h step/runge_kutta.cc step/support.cc "
        "step/transition.cc"
    ),
    NUMERICS: (
        "adjoint/pass.cc constraint/cholesky.cc constraint/elimination.cc constraint/rounding.cc "
        "constraint/idle.cc constraint/regularization.h contact/collider.cc "
        "dynamics/lu.cc smooth/inertia.cc spatial/dual.h step/diagnostics.cc step/integrator.cc"
    ),
    FEATURES: (
        "adjoint/geom.cc contact/curved.cc contact/polytope.cc contact/polytope.h "
        "contact/prism.cc contact/simplex.cc contact/turned.cc"
    ),
    SOLVER: (
        "constraint/effective_diagonal.cc constraint/exact_diagonal.cc constraint/noslip.cc "
        "constraint/optimum.cc constraint/qcqp.cc constraint/rub.cc"
    ),
    SIGN: "dynamics/metric.cc",
    DERIVED: "adjoint/constant.cc",
    SINGULAR: (
        "sensor/camera.cc sensor/subtree.cc smooth/law.cc smooth/orientation.cc "
        "smooth/transmission.cc smooth/wrap.cc"
    ),
}


@pytest.mark.parametrize("tie", TIES, ids=lambda tie: tie.name)
def test_tie(tie: Tie) -> None:
    judge(tie)


def test_names_are_unique() -> None:
    names = [tie.name for tie in TIES]
    assert len(set(names)) == len(names)


def test_comparisons_are_in_the_sources() -> None:
    """The tables name comparisons that exist, and every file that compares is listed."""
    compared = {(tie.source, tie.comparison) for tie in TIES}
    for source, comparison in compared:
        text = re.sub(r"\s+", " ", (SOURCES / source).read_text())
        assert comparison in text, f"{source}: {comparison}"
    covered = {source for source, _ in compared}
    exempt = {name for names in NO_TIES.values() for name in names.split()}
    assert not covered & exempt
    found = {name for name in _sources() if _compares(SOURCES / name)}
    assert found - covered - exempt == set(), "list these files in a table or in NO_TIES"
    assert exempt <= found, "these files no longer compare"
    print(f"{len(TIES)} states on {len(compared)} comparisons in {len(covered)} files")


def test_muscle_at_rest_follows_its_control() -> None:
    """d act' / d ctrl = h / (tau_act / 2), how every muscle model starts."""
    tie = next(tie for tie in TIES if tie.name == "muscle at rest, control")
    model, data = load(tie)
    lin = mujacobian.linearize(model, data)
    assert lin.B[2, 0] == pytest.approx(0.002 / (0.01 * 0.5), rel=1e-12)


def test_both_geoms_together_have_the_slope_of_the_pair() -> None:
    """Equal friction coefficients share the derivative: along (1, 1) it is the pair's."""
    tie = next(tie for tie in TIES if tie.name.startswith("sliding friction of equal geoms"))
    model, data = load(tie)
    params = mujacobian.Parameters(model, ["geom_friction"])
    direction = np.array([float(entry.endswith("[0]")) for entry in params.names])
    given = mujacobian.jvp(model, data, params=params, d_params=direction)[0]
    slope = one_sided(model, data, ("geom_friction", "ball", 0), 1.0)
    assert abs(slope).max() > 0
    np.testing.assert_allclose(given, slope, rtol=0, atol=2e-5 * abs(slope).max())


def test_sphere_beside_a_vertex_of_a_mesh() -> None:
    """The witness point tells the vertex from a face that is flat to single precision only."""
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
    step = 1e-9  # within the 7e-9 that separate the vertex from the face
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


def _sources() -> list[str]:
    files = (path for folder in FOLDERS for path in (SOURCES / folder).glob("*.*"))
    return sorted(f"{path.parent.name}/{path.name}" for path in files)


def _compares(path: Path) -> bool:
    """Return whether a file has a comparison other than the condition of a loop."""
    for line in path.read_text().splitlines():
        code = re.sub(r"for \([^;]*;[^;]*;", "", line.split("//")[0])
        if not re.match(r"\s*for \(", code) and COMPARISON.search(code):
            return True
    return False
