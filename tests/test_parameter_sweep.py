"""The judge of `make parameters` finds wrong derivatives, and continues after an interruption."""

import json
from collections.abc import Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

import mujacobian
from benchmarks.parameters import constrained, judge
from benchmarks.parameters.report import failures, report
from benchmarks.parameters.sweep import Families, ParameterSweep
from benchmarks.zoo import catalog, sweep
from mujacobian import reference
from mujacobian.check._judge import CONTACT_TOLERANCE, converged
from mujacobian.check._states import states

MODELS = Path(__file__).parent / "models"
# contacts, limits, equalities and tendons; each has states in which derived constants matter
CONSTRAINED = (
    "constraints/joint_limits",
    "constraints/tendon_limits",
    "constraints/weld_bodies",
    "contacts/chain_on_tilted_floor",
    "contacts/two_trees",
    "rollouts/hand_with_ball",
)
ARM = """<mujoco>
  <worldbody>
    <body>
      <joint axis="0 1 0" damping=".2"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
      <body pos=".3 0 0">
        <joint axis="0 1 .2" damping=".1"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .2 .05 0"/>
        <site name="tip" pos=".2 0 0"/>
      </body>
    </body>
  </worldbody>
  <sensor><accelerometer site="tip"/></sensor>
</mujoco>"""
ERROR = 1e-5  # relative error of a product that is wrong on purpose


def _states(name: str) -> Iterator[tuple[mujoco.MjModel, mujoco.MjData]]:
    model = mujoco.MjModel.from_xml_path(str(MODELS / f"{name}.xml"))
    with reference.quiet():
        for _, data in states(model, 3, seed=0):
            yield converged(model, data)


@pytest.mark.parametrize("field", constrained.FIELDS)
@pytest.mark.parametrize("name", CONSTRAINED)
def test_constrained_states(name: str, field: str) -> None:
    words = []
    for model, data in _states(name):
        *_, verdict = constrained.judge_field(model, data, field, np.random.default_rng(0))
        words.append(verdict.word)
        assert verdict.word != judge.WRONG, verdict
    assert judge.EXACT in words


def test_held_constants_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Differences with `mj_setConst` show whether a derivative includes derived constants."""

    def held(parameters, data, direction, sensors):
        other = judge.choose(parameters.model, "body_mass", "hold")
        return product(other, data, direction, sensors)

    product = judge.product
    model, data = next(_states("constraints/joint_limits"))
    monkeypatch.setattr(judge, "product", held)
    *_, verdict = constrained.judge_field(model, data, "body_mass", np.random.default_rng(0))
    assert verdict.word == judge.WRONG
    assert verdict.error > 1e3 * constrained.TOLERANCE


@pytest.mark.parametrize("rows", [slice(2), slice(2, 4), slice(4, 7)], ids=["q", "v", "sensor"])
def test_wrong_product(monkeypatch: pytest.MonkeyPatch, rows: slice) -> None:
    model = mujoco.MjModel.from_xml_string(ARM)
    *_, (_, data) = states(model, 2, seed=0)
    model, data = converged(model, data)
    parameters = judge.choose(model, "dof_damping", "recompute")
    assert parameters is not None
    direction = judge.random_direction(parameters, np.random.default_rng(0))
    *_, verdict = judge.judge_family(parameters, data, direction, CONTACT_TOLERANCE)
    assert verdict.word == judge.EXACT, verdict
    product = judge.product

    def disturbed(*arguments):
        column = product(*arguments)
        part = column[rows]
        part[abs(part).argmax()] *= 1 + ERROR
        return column

    monkeypatch.setattr(judge, "product", disturbed)
    *_, verdict = judge.judge_family(parameters, data, direction, CONTACT_TOLERANCE)
    assert verdict.word == judge.WRONG
    assert verdict.error == pytest.approx(ERROR, rel=1e-3)


def test_a_jump_at_the_state_is_not_judged() -> None:
    """A step that is smooth on both sides, with another value at the state itself."""

    def make(damping: float) -> mujoco.MjModel:
        model = mujoco.MjModel.from_xml_string(ARM)
        model.dof_damping[0] = damping
        return model

    model = make(0.2)
    data = mujoco.MjData(model)
    data.qvel[:] = [1.0, -2.0]
    mujoco.mj_forward(model, data)
    parameters = mujacobian.Parameters(model, [("dof_damping", [0])])

    def verdict(jump: float, error: float) -> judge.Verdict:
        def change(t: float) -> mujoco.MjModel:
            return make(0.2 + (1 + error) * t + (jump if t == 0 else 0.0))

        direction = np.ones(1)
        *_, found = judge.judge_family(
            parameters, data, direction, CONTACT_TOLERANCE, change=change
        )
        return found

    assert verdict(0.0, 0.0).word == judge.EXACT
    assert verdict(0.0, 1e-4).word == judge.WRONG
    assert verdict(1e-9, 1e-4).word == judge.NOT_JUDGED


def test_parameters_without_effect() -> None:
    model, data = next(_states("constraints/joint_limits"))
    parameters = judge.choose(model, "geom_friction", "recompute")
    assert parameters is not None
    direction = judge.random_direction(parameters, np.random.default_rng(0))
    *_, verdict = judge.judge_family(parameters, data, direction, CONTACT_TOLERANCE)
    assert verdict.word == judge.NO_EFFECT


def test_rounding_of_positions_is_measured() -> None:
    """The rows are relative to the result itself, whose size does not determine their rounding."""
    model, data = next(_states("rollouts/humanoid"))
    step = judge.ParameterStep(lambda t: model, data)  # it has no parameter
    assert (step.noise[: model.nv] > 0).all()


def _run(folder: Path, paths: list[Path], work: object, count: int) -> list[sweep.Record]:
    found = ParameterSweep(folder / "lines.jsonl", folder / "log", 0, work, count)
    files = [catalog.File(path.stem, "folder", path) for path in paths]
    found.run(files, processes=1, most=None, advance=lambda label: None)
    return found.records


def test_a_line_for_each_verdict(tmp_path: Path) -> None:
    families = ("body_mass", "dof_damping", "tendon_damping")
    work = Families(families, states=1)
    path = MODELS / "constraints/joint_limits.xml"
    records = _run(tmp_path, [path], work, len(work))
    lines = [json.loads(line) for line in (tmp_path / "lines.jsonl").read_text().splitlines()]
    assert lines == records
    *verdicts, file = lines
    assert [v["family"] for v in verdicts] == ["body_mass", "dof_damping"]  # there is no tendon
    assert file["nv"] > 0
    assert failures(records) == 0
    text = report(records, families)
    assert "| body_mass | 1 | 0 | 0 | 0 | 0 | 0 | 1 |" in text
    assert _run(tmp_path, [path], work, len(work)) == records


def _count(task: sweep.Task) -> Iterator:
    """Yield a model of four verdicts, the second of which crashes."""
    if task.first is None:
        yield {"hash": task.path.stem, "nv": 1}
        return
    for item in range(task.first, 4):
        yield judge.LINEARIZING
        if item == 1:
            raise SystemExit(1)
        yield {"item": item, "state": "", "family": "f", "word": judge.EXACT, "error": 0, "why": ""}


def test_an_unfinished_model_goes_on(tmp_path: Path) -> None:
    whole = _run(tmp_path, [Path("model.xml")], _count, 4)
    assert [record.get("item") for record in whole] == [0, 1, 2, 3, None]
    assert whole[1]["fate"] == sweep.CRASHED
    assert failures(whole) == 1
    lines = tmp_path / "lines.jsonl"
    first = lines.read_text().splitlines()[:3]
    lines.write_text("\n".join(first) + "\n")
    again = _run(tmp_path, [Path("model.xml")], _count, 4)
    assert [record.get("item") for record in again] == [0, 1, 2, 3, None]
    assert len(lines.read_text().splitlines()) == 5
