"""`mujacobian check --states FILE`: a user's own states and logs, and files that are not."""

import json

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import _cli as cli
from mujacobian.check import Study
from mujacobian.check._format import LISTED
from mujacobian.check._state_file import StateFile
from tests.scenes.cases import FOLDER

QUADRUPED = FOLDER / "contacts" / "quadruped.xml"
FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS


@pytest.fixture(scope="module")
def model():
    return mujoco.MjModel.from_xml_path(str(QUADRUPED))


@pytest.fixture(scope="module")
def log(model):
    """Return states (time, qpos, qvel) and controls of a short run."""
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    rng = np.random.default_rng(0)
    states, controls = np.empty((4, mujoco.mj_stateSize(model, FULL))), np.empty((4, model.nu))
    for state, control in zip(states, controls, strict=True):
        for _ in range(20):
            data.ctrl += 0.02 * rng.standard_normal(model.nu)
            mujoco.mj_step(model, data)
        mujoco.mj_getState(model, data, state, FULL)
        control[:] = data.ctrl
    return states, controls


def check(capsys, path, *arguments):
    """Return the exit status and the report on the states of a file."""
    status = cli.main(["check", str(QUADRUPED), "--states", str(path), "--json", *arguments])
    return status, json.loads(capsys.readouterr().out)


def test_a_log_is_judged_row_by_row(capsys, tmp_path, log):
    states, controls = log
    path = tmp_path / "log.npz"
    np.savez(path, states=states, controls=controls)
    status, report = check(capsys, path)
    assert (status, report["exact"]) == (0, True)
    assert report["states_file"] == str(path)
    assert [state["name"] for state in report["states"]] == ["row 0", "row 1", "row 2", "row 3"]
    assert all(state["error"]["A"] <= state["tolerance"] for state in report["states"])
    assert any(state["contacts"] for state in report["states"])


def test_the_data_has_the_numbers_of_the_file(tmp_path, model, log):
    states, controls = log
    path = tmp_path / "log.npz"
    np.savez(path, states=states, controls=controls)
    for (_, data), state, control in zip(StateFile(model, path), states, controls, strict=True):
        assert data.time == state[0]
        assert (np.concatenate([data.qpos, data.qvel]) == state[1:]).all()
        assert (data.ctrl == control).all()
    np.savez(path, states=states[:, 1:])
    for (_, data), state in zip(StateFile(model, path), states, strict=True):
        assert data.time == 0
        assert (np.concatenate([data.qpos, data.qvel]) == state[1:]).all()
        assert (data.ctrl == 0).all()


def test_states_may_be_npy_or_csv(tmp_path, model, log):
    states, _ = log
    np.save(tmp_path / "log.npy", states)
    np.savetxt(tmp_path / "log.csv", states, delimiter=",")
    np.save(tmp_path / "one.npy", states[2, 1:])
    for name, rows in (("log.npy", states), ("log.csv", states), ("one.npy", states[2:3, 1:])):
        assert (StateFile(model, tmp_path / name).states == rows).all()


def test_the_last_state_of_a_rollout_has_no_control(tmp_path, model, log):
    states, controls = log
    trajectory = mujacobian.rollout(model, states[0, 1:], controls)
    path = tmp_path / "rollout.npz"
    np.savez(path, states=trajectory.states, controls=controls)
    assert len(StateFile(model, path)) == len(controls) == len(trajectory.states) - 1


def test_a_study_takes_a_path(tmp_path, model, log):
    path = tmp_path / "log.npy"
    np.save(path, log[0][:1])
    study = Study(model, path, 0)
    assert len(list(study.run())) == study.stages == 3
    assert study.report.exact


def rows(n=2, column=0, value=0.0):
    """Return states of the quadruped at rest in the air, with a value in one column."""
    states = np.zeros((n, 37))
    states[:, 2:4] = 1
    states[:, column] = value
    return states


FILES = {
    "nan.npy": (rows(column=7, value=np.nan), "states[0, 7] is nan"),
    "infinite.npy": (rows(column=30, value=np.inf), "states[0, 30] is inf"),
    "narrow.npy": (np.zeros((3, 10)), "(n, 37) for (qpos, qvel, act), or (n, 38)"),
    "batch.npy": (np.zeros((2, 3, 37)), "got (2, 3, 37)"),
    "number.npy": (np.zeros(()), "got ()"),
    "none.npy": (rows(0), "no states"),
    "complex.npy": (rows() * 1j, "complex128"),
    "objects.npy": (np.array([{}]), "an array of numbers"),
    "rotation.npy": (
        rows(column=3, value=0),
        "row 0: state has a quaternion of length 0",
    ),
    "names.npz": (
        {"qpos": rows()},
        "must have the array states, and may have controls",
    ),
    "typo.npz": ({"states": rows(), "ctrl": np.zeros((2, 12))}, "it has states, ctrl"),
    "controls.npz": (
        {"states": rows(), "controls": np.zeros((5, 12))},
        "controls must have shape (2, 12), one row per state, or (1, 12), got (5, 12)",
    ),
    "uncontrolled.npz": ({"states": rows(1), "controls": np.zeros((0, 12))}, "no states"),
    "bad_controls.npz": (
        {"states": rows(), "controls": np.full((2, 12), np.nan)},
        "controls[0, 0]",
    ),
    "header.csv": ("time,qpos\n0,1\n", "without a header"),
    "ragged.csv": ("1,2\n1\n", "columns changed from 2 to 1"),
    "comment.csv": ("# nothing\n", "(n, 37)"),
    "empty.csv": ("", "the file is empty"),
    "text.npy": ("hello", "an array of numbers"),
    "broken.npz": ("PK\x03\x04", "arrays of numbers"),
    "log.txt": ("1,2", ".npy, .npz, .csv"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_states_are_one_line(capsys, tmp_path, name):
    content, message = FILES[name]
    path = tmp_path / name
    if isinstance(content, str):
        path.write_text(content)
    elif isinstance(content, dict):
        np.savez(path, **content)
    else:
        np.save(path, content)
    assert cli.main(["check", str(QUADRUPED), "--states", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"mujacobian: {path}: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_a_missing_file_of_states_is_one_line(capsys, tmp_path):
    for path in (tmp_path / "nowhere.npz", tmp_path):
        assert cli.main(["check", str(QUADRUPED), "--states", str(path)]) == 2
        assert capsys.readouterr().err.startswith(f"mujacobian: {path}: no")


def test_a_state_that_mujoco_cannot_step_is_refused(capsys, tmp_path):
    path = tmp_path / "fast.npy"
    np.save(path, rows(1, column=20, value=1e200))
    status, report = check(capsys, path)
    assert status == 1
    assert report["states"][0]["verdict"] == "refused"
    assert "1e+200" in report["states"][0]["reason"]


def test_the_table_and_the_picture_of_many_states(capsys, tmp_path):
    """States that are not exact come first in the table, and the picture stays small."""
    pytest.importorskip("matplotlib")
    from matplotlib import image

    model = tmp_path / "ball.xml"
    model.write_text(
        "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='1 0 0'/></body>"
        "</worldbody></mujoco>"
    )
    states = np.stack([np.linspace(0, 1, LISTED + 2), np.ones(LISTED + 2)], axis=1)
    states[4, 1] = 1e11  # more than MuJoCo takes
    path, picture = tmp_path / "log.npy", tmp_path / "log.png"
    np.save(path, states)
    arguments = ["check", str(model), "--states", str(path), "--plot", str(picture)]
    assert cli.main(arguments) == 1
    out = capsys.readouterr().out
    assert f"{len(states) - 1} of {len(states)} states exact" in out
    assert f"{LISTED} of {len(states)} states are listed" in " ".join(out.split())
    assert (
        sum(line.startswith("row ") and "exact" in line for line in out.splitlines()) == LISTED - 1
    )
    assert "row 4: qvel[0] is 1e+11" in out
    height, width, _ = image.imread(picture).shape
    assert 2 * height < width < 5 * height
