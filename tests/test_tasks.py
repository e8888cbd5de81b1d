"""The tasks have exact derivatives and succeed, also from the command line."""

import json
import pickle
from dataclasses import replace
from functools import cache

import mujoco
import numpy as np
import pytest

import mujacobian
from mujacobian import _cli as cli
from mujacobian import control
from mujacobian.check._judge import Judge, stack
from mujacobian.control import tasks, video
from mujacobian.errors import MujacobianError

# numbers of random initial states from which a task must succeed
SLOW = pytest.mark.slow
STARTS = [3, pytest.param(20, marks=SLOW)]


@cache
def run(name, seconds, seed=None):
    """Return a task, its result and its outcome."""
    task = tasks.load(name)
    result = task.run(seconds, seed=seed, progress=False)
    return task, result, task.judge(result)


@pytest.mark.parametrize("name", tasks.names())
def test_derivatives_are_exact(name):
    """The derivatives are those of the planner's model after some steps, with sensors."""
    task, result, _ = run(name, 0.1)
    assert mujacobian.support(task.planned) == []
    data = mujoco.MjData(task.planned)
    nq, nv = task.model.nq, task.model.nv
    data.qpos[:], data.qvel[:] = result.states[-1, :nq], result.states[-1, nq : nq + nv]
    data.ctrl[:] = result.controls[-1]
    mujoco.mj_forward(task.planned, data)
    judge = Judge(task.planned, data)
    J = stack(mujacobian.linearize(task.planned, data))
    verdict = judge.compare(J)
    assert verdict.error <= judge.tolerance, judge.describe(verdict, J)
    assert verdict.share > 0.5


@pytest.mark.parametrize("name", tasks.names())
def test_plans_are_not_differenced(name):
    before = mujacobian.fd_count()
    _, result, _ = run(name, 0.1)
    assert np.isfinite(result.costs).all()
    assert mujacobian.fd_count() == before


def test_trot():
    """The robot stays upright and follows goal and gait; the trot begins in the first cycle."""
    _, result, outcome = run("a1_trot", 1.0)
    measures = outcome.measures
    assert outcome.success
    assert measures["covered (m)"] > 0.3
    assert measures["phase error, worst foot (cycles)"] < 0.05
    assert 0.02 < measures["swing height, mean (m)"] < 0.045
    assert measures["feet as scheduled (share)"] > 0.9
    assert result.costs[-100:].mean() < 0.02


@SLOW
def test_trot_for_ten_seconds():
    task, _, outcome = run("a1_trot", 10.0)
    assert outcome.success
    assert outcome.measures["covered (m)"] == pytest.approx(4, abs=0.2)
    assert outcome.measures["farthest from the goal (m)"] < 0.15
    assert task.seconds == 10


def test_first_stairs():
    """The robot climbs the first two steps without stumbling and keeps up with its goal."""
    task, _, outcome = run("quadruped_stairs", 3.0)
    assert task.seconds > 3
    assert not outcome.success
    assert outcome.measures["highest foot, last (m)"] > 0.1
    assert outcome.measures["least upright (cosine)"] > 0.95
    assert outcome.measures["last distance to the goal (m)"] < 0.15


@SLOW
@pytest.mark.parametrize("seed", range(10))
def test_whole_stairs(seed):
    task = tasks.load("quadruped_stairs")
    outcome = run(task.name, task.seconds, seed)[2]
    assert outcome.success
    assert outcome.measures["least upright (cosine)"] > 0.95


@pytest.mark.parametrize("seed", [None, *(pytest.param(k, marks=SLOW) for k in range(10))])
def test_box_is_pushed_within_a_centimeter(seed):
    measures = run("push_box", 5.0, seed)[2].measures
    assert measures["first distance to the goal (m)"] > 0.1
    assert measures["last distance to the goal (m)"] < 0.01


def test_first_steps_and_a_push():
    """The robot is pushed after 2 s and still follows its goal and its gait."""
    _, result, outcome = run("g1_walk", 3.0)
    velocity = result.states[:, 31]  # of the pelvis, to the side
    assert np.diff(velocity).max() == pytest.approx(0.5, abs=0.1)
    assert outcome.measures["walked (m)"] > 0.7
    assert outcome.measures["lowest pelvis (m)"] > 0.65
    assert outcome.measures["feet as scheduled (share)"] > 0.9


@SLOW
def test_walk_of_two_meters_with_random_pushes():
    task = tasks.load("g1_walk")
    assert sum(run(task.name, task.seconds, seed)[2].success for seed in range(10)) >= 9


@pytest.mark.parametrize("seed", [None, *(pytest.param(k, marks=SLOW) for k in range(10))])
def test_cube_is_turned_by_90_degrees(seed):
    measures = run("leap_turn", 5.0, seed)[2].measures
    assert measures["turned (rad)"] == pytest.approx(np.pi / 2, abs=0.05)
    assert measures["off the middle (m)"] < 0.005
    assert measures["least level (cosine)"] > 0.98


@pytest.mark.parametrize("name", ["humanoid", "hand"])
def test_the_others_are_done(name):
    task = tasks.load(name)
    assert run(name, task.seconds)[2].success


@pytest.mark.parametrize("starts", STARTS)
@pytest.mark.parametrize(("name", "seconds"), [("cartpole", 3.0), ("arm", 1.5)])
def test_done_from_random_starts(name, seconds, starts):
    failed = [seed for seed in range(starts) if not run(name, seconds, seed)[2].success]
    assert failed == []


@pytest.mark.parametrize("name", tasks.names())
def test_command_line(name, capsys, tmp_path):
    picture, record = tmp_path / "run.png", tmp_path / "run.json"
    arguments = ["mpc", name, "--seconds", "0.1", "--threads", "2", "--seed", "3"]
    status = cli.main([*arguments, "--plot", str(picture), "--json", str(record)])
    report = json.loads(record.read_text())
    assert status == (0 if report["success"] else 1)
    assert report["task"] == name
    assert report["derivatives"] == "analytic"
    assert len(report["times"]) == len(report["states"]) == len(report["costs"])
    assert picture.stat().st_size > 10_000
    out = capsys.readouterr().out
    assert name in out
    assert all(measure in out for measure in report["measures"])


def test_json_alone_is_on_standard_output(capsys):
    for arguments in (["--json", "cartpole"], ["cartpole", "--json"], ["cartpole", "--json", "-"]):
        status = cli.main(["mpc", *arguments, "--seconds", "0.1"])
        report = json.loads(capsys.readouterr().out)
        assert (status, report["task"]) == (0 if report["success"] else 1, "cartpole")


@pytest.mark.parametrize("backend", ["fd", "wasp"])
def test_command_line_with_differences(backend, tmp_path):
    record = tmp_path / "run.json"
    arguments = ["mpc", "cartpole", "--seconds", "0.1", "--derivatives", backend]
    cli.main([*arguments, "--json", str(record)])
    assert json.loads(record.read_text())["derivatives"] == backend


def test_tasks_are_listed(capsys):
    assert cli.main(["mpc"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()] == tasks.names()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["juggle"], "a1_trot"),
        (["cartpole", "--derivatives", "guess"], "analytic"),
        (["cartpole", "--plot", "no/such/folder/run.png"], "no/such/folder"),
        (["cartpole", "--json", "no/such/folder/run.json"], "no/such/folder"),
        (["--json", "juggle"], "juggle"),
    ],
)
def test_errors_are_one_line(arguments, message, capsys):
    assert cli.main(["mpc", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert message in captured.err


def test_times_must_be_positive(capsys):
    with pytest.raises(SystemExit) as raised:
        cli.main(["mpc", "cartpole", "--seconds", "-1"])
    assert raised.value.code == 2
    assert "positive" in capsys.readouterr().err


def test_a_missing_writer_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(video.importlib.util, "find_spec", lambda _: None)
    assert cli.main(["mpc", "cartpole", "--video", str(tmp_path / "run.mp4")]) == 2
    assert "pip install 'mujacobian[video]'" in capsys.readouterr().err


def test_no_video_without_a_renderer(monkeypatch, tmp_path, capsys):
    """The run still succeeds, and a message contains the reason."""
    monkeypatch.setattr(video, "require_writer", lambda: None)
    monkeypatch.setenv("MUJOCO_GL", "none")
    path = tmp_path / "run.mp4"
    assert cli.main(["mpc", "cartpole", "--seconds", ".02", "--video", str(path)]) in (0, 1)
    captured = capsys.readouterr()
    assert "no video" in captured.err
    assert "cartpole" in captured.out
    assert not path.exists()


def test_video(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    path = tmp_path / "run.mp4"
    task, result, _ = run("cartpole", 0.1)
    try:
        video.write(task.model, result.times, result.states, path)
    except video.NoRendererError as error:
        pytest.skip(str(error))
    assert path.stat().st_size > 1000


def test_errors_of_unknown_tasks_list_the_known_ones():
    with pytest.raises(MujacobianError, match="cartpole"):
        tasks.load("juggle")


WALK = control.Gait(offsets=(0.0, 0.5), duty=0.6, cadence=2.0, amplitude=0.05)
TIMES = np.arange(0, 3, 0.002)


def test_gait():
    """A foot is up for the fraction 1 - duty of a cycle and highest at its phase."""
    lift = WALK.lift(TIMES)
    np.testing.assert_allclose((lift > 0).mean(axis=0), 1 - WALK.duty, atol=0.01)
    np.testing.assert_allclose(
        WALK.lift(np.array([0, 0.25, 0.5])), [[0.05, 0], [0, 0.05], [0.05, 0]]
    )
    height = WALK.height(TIMES, ground=0.02)
    assert np.isnan(height[lift == 0]).all()
    np.testing.assert_allclose(height[lift > 0], 0.02 + lift[lift > 0])


def test_contact_schedule():
    down = WALK.is_down(TIMES)
    np.testing.assert_array_equal(down, WALK.lift(TIMES) == 0)
    targets = WALK.targets_down(TIMES, [1.0, 2.0])
    assert targets.shape == (len(TIMES), 4)
    for foot in range(2):
        pair = targets[:, 2 * foot : 2 * foot + 2]
        assert (pair[down[:, foot]] == [1.0, 2.0]).all()
        assert np.isnan(pair[~down[:, foot]]).all()
    assert WALK.targets_down(TIMES, 0.0).shape == (len(TIMES), 2)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"offsets": ()}, "at least one foot"),
        ({"offsets": (0.0, np.nan)}, r"offsets must be finite, but offsets\[1\] is nan"),
        ({"start": np.inf}, "start must be finite"),
        ({"duty": 1.0}, "duty must be between 0 and 1, got 1.0"),
        ({"cadence": 0.0}, "cadence must be positive, got 0.0"),
        ({"amplitude": -0.1}, "amplitude must be positive"),
    ],
)
def test_wrong_gaits_raise(change, match):
    with pytest.raises(ValueError, match=match):
        replace(WALK, **change)


@pytest.mark.parametrize("name", tasks.names())
def test_costs_can_be_pickled(name):
    task = tasks.load(name)
    copy = pickle.loads(pickle.dumps(task.cost))
    data, times = task.start(None), np.linspace(0, 2, 5)
    mujoco.mj_forward(task.model, data)
    given = [data.sensordata] * 5, [data.ctrl] * 5, times
    assert np.array_equal(copy(*given), task.cost(*given))


def test_the_former_name_of_gaits_is_deprecated():
    with pytest.warns(DeprecationWarning, match="control.Gait"):
        assert tasks.Gait is control.Gait
    with pytest.raises(AttributeError, match="Trot"):
        tasks.Trot  # noqa: B018


def test_before_its_start_a_gait_rests():
    late = control.Gait(WALK.offsets, WALK.duty, WALK.cadence, WALK.amplitude, start=1.0)
    assert not late.lift(TIMES[TIMES < 1]).any()
    np.testing.assert_allclose(late.lift(TIMES + 1), WALK.lift(TIMES), atol=1e-12)


@pytest.mark.parametrize("delay", [0.0, 0.05, -0.02])
def test_phase_error(delay):
    heights = 0.7 * WALK.lift(TIMES - delay + 10)  # 10 s are a whole number of cycles
    assert WALK.phase_error(TIMES, heights) == pytest.approx(abs(delay) * WALK.cadence, abs=1e-6)
    assert np.isnan(WALK.phase_error(TIMES[:10], heights[:10]))


def test_swing_heights():
    heights = 0.7 * WALK.lift(TIMES)
    np.testing.assert_allclose(WALK.swing_heights(TIMES, heights), 0.035, atol=1e-4)
    assert len(WALK.swing_heights(TIMES, heights)) == 11  # the first foot begins during a swing
