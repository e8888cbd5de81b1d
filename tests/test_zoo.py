"""The judge of `make zoo` finds errors, and survives crashes of the judged models."""

import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
from benchmarks.zoo import catalog, judge, report, sources, sweep
from benchmarks.zoo.differences import Differences
from benchmarks.zoo.judge import LINEARIZING
from benchmarks.zoo.worker import CrashError, HangError, Worker

WALKER = """<mujoco>
  <option iterations="{iterations}" ls_iterations="5"/>
  <default><geom size=".02"/></default>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body pos="0 0 .17">
      <freejoint/>
      <geom type="box" size=".1 .08 .03"/>
      <body pos=".1 .08 0">
        <joint name="a" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .02 0 -.15"/>
      </body>
      <body pos="-.1 .02 0">
        <joint name="b" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.15"/>
      </body>
      <body pos=".05 -.08 0">
        <joint name="c" axis="1 0 0"/>
        <geom type="capsule" fromto="0 0 0 0 0 -.15"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="a"/>
    <motor joint="b"/>
    <motor joint="c"/>
  </actuator>
  <sensor>
    <framelinvel objtype="xbody" objname="world"/>
    <jointvel joint="a"/>
  </sensor>
</mujoco>"""
PENDULUM = """<mujoco>
  <worldbody>
    <body>
      <joint axis="0 1 0"/>
      <geom pos=".1 0 0" size="{}"/>
    </body>
  </worldbody>
</mujoco>"""
ERROR = 1e-4  # relative error of a linearization that is wrong on purpose


def _standing(iterations: int = 100) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(WALKER.format(iterations=iterations))
    data = mujoco.MjData(model)
    for _ in range(60):
        mujoco.mj_step(model, data)
    data.qvel += 0.01 * np.random.default_rng(0).standard_normal(model.nv)
    return model, data


def _judge(model: mujoco.MjModel, data: mujoco.MjData) -> dict:
    *stages, found = judge.judge(model, data, seed=0)
    assert set(stages) == {LINEARIZING, judge.JUDGING}
    return found


@pytest.fixture
def patched(monkeypatch: pytest.MonkeyPatch) -> Callable:
    """Replace `linearize` by a function that changes its result."""
    original = mujacobian.linearize

    def patch(change: Callable) -> None:
        def linearize(model, data, **options):
            return change(model, data, original(model, data, **options))

        monkeypatch.setattr(mujacobian, "linearize", linearize)

    return patch


def test_right_linearization():
    found = _judge(*_standing())
    assert found["contacts"] > 0
    for settings in ("own", "converged"):
        assert found[settings]["word"] == judge.EXACT, found[settings]
        assert found[settings]["share"] > 0.9
    assert not found["flaws"]
    assert not found["warned"]


@pytest.mark.parametrize("block", ["A", "B", "C"])
def test_wrong_linearization(patched: Callable, block: str):
    def disturb(model, data, lin):
        wrong = getattr(lin, block).copy()
        row, column = np.unravel_index(abs(wrong).argmax(), wrong.shape)
        wrong[row, column] *= 1 + ERROR
        return dataclasses.replace(lin, **{block: wrong})

    patched(disturb)
    found = _judge(*_standing())
    assert found["converged"]["word"] == judge.WRONG
    assert f"in {block}[" in found["converged"]["reason"]
    assert found["own"]["word"] == judge.WRONG


def test_wrong_at_own_settings_only(patched: Callable):
    def disturb(model, data, lin):
        return dataclasses.replace(lin, A=1.1 * lin.A) if model.opt.tolerance else lin

    patched(disturb)
    found = _judge(*_standing())
    assert found["converged"]["word"] == judge.EXACT
    assert found["own"]["word"] == judge.WRONG


def _not_finite(model, data, lin):
    A = lin.A.copy()
    A[0, 0] = np.nan
    return dataclasses.replace(lin, A=A)


def _changed(model, data, lin):
    data.qvel[0] += 1e-16
    return lin


def _differs(model, data, lin):
    return dataclasses.replace(lin, B=lin.B + 1e-18 * np.random.default_rng().random(lin.B.shape))


def _raises(model, data, lin):
    raise TypeError("by accident")


@pytest.mark.parametrize(
    ("change", "flaw"),
    [
        (_not_finite, judge.NOT_FINITE),
        (_changed, judge.CHANGED),
        (_differs, judge.NOT_REPEATABLE),
        (_raises, judge.RAISED),
    ],
)
def test_flaws(patched: Callable, change: Callable, flaw: str):
    patched(change)
    found = _judge(*_standing())
    assert flaw in found["flaws"]
    record = {"file": "x", "source": "y", "hash": "z", "nv": 1, "states": [{"state": 0, **found}]}
    assert report.failures([record]) == 1


def test_refusal(patched: Callable):
    def refuse(model, data, lin):
        raise mujacobian.UnsupportedFeatureError('geom "x"', "not covered")

    patched(refuse)
    found = _judge(*_standing())
    assert found["own"]["word"] == found["converged"]["word"] == judge.REFUSED
    assert found["own"]["reason"] == 'geom "x": not covered'


def test_unconverged_solver_is_not_exact():
    model, data = _standing(iterations=1)
    data.qvel += 0.3 * np.random.default_rng(1).standard_normal(model.nv)  # warm starts are wrong
    found = _judge(model, data)
    assert found["converged"]["word"] == judge.EXACT
    assert found["own"]["word"] == judge.SOLVER


def test_kink_is_not_wrong():
    """A control at its bound has two one-sided derivatives; one of them is not an error."""
    model = mujoco.MjModel.from_xml_string(
        WALKER.format(iterations=100).replace("<motor ", '<motor ctrlrange="-1 1" ')
    )
    data = mujoco.MjData(model)
    data.ctrl[:] = 1
    found = _judge(model, data)
    assert found["converged"]["word"] == judge.EXACT
    assert found["converged"]["share"] < 1


def test_differences_that_all_columns_contradict_are_distrusted(monkeypatch: pytest.MonkeyPatch):
    """The extrapolation may miss a kink along a direction that no coordinate crosses."""

    def misled(self, directions):
        J, err = original(self, directions)
        J[:, 0] *= 1.05
        return J, err

    original = Differences._differentiate
    monkeypatch.setattr(Differences, "_differentiate", misled)
    monkeypatch.setattr(Differences, "_is_kink", lambda *_: False)
    found = _judge(*_standing())
    assert found["converged"]["word"] == judge.EXACT
    assert found["own"]["word"] == judge.EXACT


# the work of a worker in the tests below: paths are commands


def _obey(task: sweep.Task) -> Iterator:
    command = task.path.stem
    if task.first is None:
        yield {"hash": command, "nv": 1}
        return
    for k in range(task.first, 3):
        yield LINEARIZING if command != "slow" else judge.JUDGING
        if k == 1:
            if command == "abort":
                os.abort()
            if command in ("hang", "slow"):
                time.sleep(60)
            if command == "raise":
                raise ValueError("by the harness")
        good = dataclasses.asdict(judge.Verdict(judge.EXACT, 1e-10, 1.0))
        yield {"state": k, "own": good, "converged": good, "flaws": [], "warned": []}


def _run(folder: Path, *commands: str, work: Callable = _obey) -> sweep.Sweep:
    found = sweep.Sweep(folder / "zoo.jsonl", folder / "zoo.log", seed=0, work=work)
    files = [catalog.File(command, "commands", Path(f"{command}.xml")) for command in commands]
    found.run(files, processes=1, most=None, advance=lambda label: None)
    return found


def test_lost_processes_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sweep, "LIMIT", 1.0)
    monkeypatch.setattr(sweep, "LINEARIZE_LIMIT", 1.0)
    records = _run(tmp_path, "abort", "hang", "slow", "good").records
    fates = {r["file"]: [s.get("fate", "judged") for s in r["states"]] for r in records}
    assert fates == {
        "abort": ["judged", sweep.CRASHED, "judged"],
        "hang": ["judged", sweep.HUNG, "judged"],
        "slow": ["judged", judge.NOT_JUDGED, "judged"],  # the judge is too slow
        "good": ["judged"] * 3,
    }
    assert report.failures(records) == 2
    text = report.report(records, [], {"missing": "no such package"})
    assert "1 crashed, 1 hung" in text
    assert "missing could not be installed: no such package" in text
    assert "- abort, state 1: crashed" in text


def _record(own: str, warned: list[str]) -> dict:
    verdict = dataclasses.asdict(judge.Verdict(own, 0.1, 1.0, "the step differs by 1e-01"))
    good = dataclasses.asdict(judge.Verdict(judge.EXACT, 1e-10, 1.0))
    state = {"state": 0, "own": verdict, "converged": good, "flaws": [], "warned": warned}
    return {"file": f"zoo/{own}.xml", "source": "zoo", "hash": own, "states": [state]}


@pytest.mark.parametrize("own", [judge.SOLVER, judge.COLLIDER])
def test_silent_states_are_failures(own: str):
    """A step that differs from the converged one requires a warning."""
    silent, warned = _record(own, []), _record(own, ["NotConvergedWarning"])
    assert report.failures([silent, warned]) == 1
    text = report.report([silent], [], {})
    assert "1 silent" in text
    assert f"zoo/{own}.xml, state 0: silent; own {own} 1.0e-01 the step differs" in text


def test_error_of_the_harness_is_raised(tmp_path: Path):
    with pytest.raises(RuntimeError, match="by the harness"):
        _run(tmp_path, "raise")


def _never(task: sweep.Task) -> Iterator:
    raise AssertionError("a finished file must not be judged again")
    yield


def test_sweep_goes_on_where_it_was(tmp_path: Path):
    first = _run(tmp_path, "good", "better").records
    assert _run(tmp_path, "good", "better", work=_never).records == first


def test_worker_survives_its_process(tmp_path: Path):
    worker = Worker(_obey, tmp_path / "log")
    with pytest.raises(CrashError):
        list(worker.run(sweep.Task(Path("abort"), 0, 0), lambda message: 30.0))
    with pytest.raises(HangError):
        list(worker.run(sweep.Task(Path("hang"), 0, 0), lambda message: 0.5))
    assert len(list(worker.run(sweep.Task(Path("good"), 0, 0), lambda message: 30.0))) == 6
    worker.stop()


def test_models_are_distinct(tmp_path: Path):
    (tmp_path / "a.xml").write_text(PENDULUM.format(".05"))
    (tmp_path / "b.xml").write_text("<!-- the same -->" + PENDULUM.format(".05"))
    (tmp_path / "c.xml").write_text(PENDULUM.format(".06"))
    (tmp_path / "broken.xml").write_text("<mujoco><worldbody></mujoco>")
    (tmp_path / "static.xml").write_text("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    (tmp_path / "settings.xml").write_text("<settings/>")
    source = sources.Source("folder", tmp_path, files=list(sources.model_files(tmp_path)))
    assert [path.name for path in source.files] == [
        "a.xml",
        "b.xml",
        "broken.xml",
        "c.xml",
        "static.xml",
    ]
    found = list(catalog.models([source]))
    assert [file.label for file, _ in found] == ["folder/a.xml", "folder/c.xml"]
    assert [model.nv for _, model in found] == [1, 1]


def test_work_judges_a_file(tmp_path: Path):
    path = tmp_path / "walker.xml"
    path.write_text(WALKER.format(iterations=100))
    (loaded,) = sweep.work(sweep.Task(path, 0))
    assert loaded["nv"] == 9
    states = [found for found in sweep.work(sweep.Task(path, 0, 0)) if isinstance(found, dict)]
    assert [state["steps"] for state in states] == [0, 60, 200]
    assert {state["converged"]["word"] for state in states} <= {judge.EXACT, judge.NOT_JUDGED}
    (error,) = sweep.work(sweep.Task(tmp_path / "missing.xml", 0))
    assert "error" in error


def test_package_that_cannot_be_installed(tmp_path: Path):
    assert sources.install("not a package", tmp_path / "x")
    assert not (tmp_path / "x").exists()
