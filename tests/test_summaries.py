"""`print` of a result shows a few lines: shapes and key figures, not all entries."""

import pickle
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import control, rods
from mujacobian._summary import MOST_ROWS, html_table
from mujacobian.control import tasks

MOST_LINES, MOST_COLUMNS = 12, 100


@pytest.fixture(scope="module")
def results() -> dict[str, object]:
    """Return results of all kinds."""
    task = tasks.load("cartpole")
    model, data = task.model, task.start(None)
    mujoco.mj_forward(model, data)
    params = mujacobian.Parameters(model, ["body_mass", "dof_damping", "body_inertia"])
    trajectory = mujacobian.rollout(model, data, np.zeros((30, model.nu)), params=params)
    planner = control.ILQR(task.planned, task.cost, horizon=20)
    plan = planner.solve(data, iterations=2)
    mpc = control.MPC(model, planner)
    return {
        "Linearization": mujacobian.linearize(model, data),
        "Trajectory": trajectory,
        "Gradient": trajectory.gradient(np.ones_like(trajectory.states)),
        "Jacobian": trajectory.jacobian(),
        "Diagnostics": mujacobian.diagnose(model, data),
        "Parameters": params,
        "Pullback": mujacobian.vjp(model, data, np.ones(2 * model.nv)),
        "Plan": plan,
        "Policy": plan.policy,
        "History": plan.history,
        "ILQR": planner,
        "Cost": task.cost,
        "MPC": mpc,
        "MPCResult": mpc.run(data, seconds=0.1),
        "Log": sysid_log(trajectory),
    }


def sysid_log(trajectory: mujacobian.Trajectory) -> mujacobian.sysid.Log:
    """Return the sensor readings of a trajectory as a log."""
    return mujacobian.sysid.Log(trajectory.states[0], np.zeros((30, 1)), trajectory.sensordata)


NAMES = (
    "Linearization",
    "Trajectory",
    "Gradient",
    "Jacobian",
    "Diagnostics",
    "Parameters",
    "Pullback",
    "Plan",
    "Policy",
    "History",
    "ILQR",
    "Cost",
    "MPC",
    "MPCResult",
    "Log",
)


@pytest.mark.parametrize("name", NAMES)
def test_a_result_prints_a_few_lines(results: dict[str, object], name: str) -> None:
    text = str(results[name])
    lines = text.splitlines()
    assert lines[0].split(":")[0] == name
    assert 2 <= len(lines) <= MOST_LINES
    assert max(map(len, lines)) <= MOST_COLUMNS
    assert "array(" not in text


def test_results_of_rods_print_a_few_lines() -> None:
    body = rods.RigidBody(mass=1, inertia=[1, 2, 3], angular_velocity=[0.01, 5, 0])
    world = rods.World(timestep=0.01, bodies=[body])
    trajectory = rods.rollout(world, steps=100)
    gradient = trajectory.gradient(np.ones_like(trajectory.positions))
    assert "1 bodies" in str(world)
    assert "converged: 100 steps" in str(trajectory.report)
    results = trajectory, trajectory.report, trajectory.first, trajectory.params, gradient
    for result in results:
        lines = str(result).splitlines()
        assert lines[0] == type(result).__name__
        assert 2 <= len(lines) <= 2 * MOST_LINES
        assert max(map(len, lines)) <= MOST_COLUMNS
        assert "array(" not in str(result)
        assert str(pickle.loads(pickle.dumps(result))) == str(result)


PICKLED = tuple(name for name in NAMES if name not in ("ILQR", "MPC"))  # they own threads


@pytest.mark.parametrize("name", PICKLED)
def test_a_result_that_was_pickled_prints_the_same(results: dict[str, object], name: str) -> None:
    assert str(pickle.loads(pickle.dumps(results[name]))) == str(results[name])


def test_shapes_and_figures_are_those_of_the_arrays() -> None:
    lin = mujacobian.Linearization(A=np.array([[1.0, -2.5], [0, 1]]), B=np.zeros((2, 0)))
    expected = "Linearization\n  A (2, 2), entries up to 2.5\n  B (2, 0)"
    assert str(lin) == expected


def test_entries_that_are_not_finite_are_named() -> None:
    lin = mujacobian.Linearization(A=np.full((1, 1), np.nan), B=np.zeros((1, 1)))
    assert "A (1, 1), not finite" in str(lin)


@pytest.mark.parametrize("name", ["Parameters", "Diagnostics"])
def test_a_notebook_shows_a_table(results: dict[str, object], name: str) -> None:
    table = ElementTree.fromstring(results[name]._repr_html_())
    caption, header, *rows = table
    assert caption.text.startswith(name)
    count = len(results[name] if name == "Parameters" else results[name].rows)
    assert len(rows) == count
    assert all(len(row) == len(header) for row in rows)


def test_tables_are_short_and_escaped() -> None:
    text = html_table("a < b", ("x",), [("<script>",)] * 60)
    table = ElementTree.fromstring(text)
    assert "<script>" not in text
    assert len(table) == 2 + MOST_ROWS + 1
    assert table[-1][0].text == f"and {60 - MOST_ROWS} more"
