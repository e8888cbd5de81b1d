"""The command line: exit status, output and errors of `mujacobian`."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import mujoco
import pytest

import mujacobian
from mujacobian import _cli as cli
from mujacobian import _core
from tests.scenes.cases import FOLDER

ARM = str(FOLDER / "hinge_chain.xml")
QUADRUPED = str(FOLDER / "contacts" / "quadruped.xml")

REFUSED = """
<mujoco>
  <worldbody>
    <body>
      <joint name="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    </body>
  </worldbody>
  <actuator>
    <general name="governor" joint="hinge" gaintype="user"/>
  </actuator>
</mujoco>"""

URDF = """
<robot name="arm">
  <link name="base"/>
  <link name="link"><inertial><mass value="1"/><origin xyz=".1 0 0"/>
    <inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="link"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
</robot>"""


NO_DIFFERENCES = "mjd_transitionFD does not support the integrator RK4"


def run_json(capsys, *arguments):
    """Return the exit status and the parsed standard output."""
    status = cli.main(["check", "--json", *arguments])
    return status, json.loads(capsys.readouterr().out)


def test_an_exact_model(capsys):
    status, report = run_json(capsys, ARM)
    assert status == 0
    assert report["exact"]
    assert report["unsupported"] == []
    assert [state["verdict"] for state in report["states"]] == ["exact"] * 3
    for state in report["states"]:
        assert state["error"]["A"] <= state["tolerance"] == 1e-9
        assert state["share_trusted"] > 0.9
        assert state["fd_over_ours"] > 0
        assert state["derivative_over_step"] > 0
    assert report["sizes"]["nv"] == report["covered"]["joint"]["total"]


def test_runge_kutta_has_no_differences_and_the_report_says_why(capsys, tmp_path):
    path = tmp_path / "arm.xml"
    option = '<option integrator="RK4"/></mujoco>'
    path.write_text((FOLDER / "hinge_chain.xml").read_text().replace("</mujoco>", option))
    status, report = run_json(capsys, str(path), "--states", "1")
    assert status == 0
    assert report["states"][0]["error_fd_centred"] == {}
    assert report["states"][0]["fd_over_ours"] is None
    assert report["fd_missing"] == NO_DIFFERENCES
    assert cli.main(["check", str(path), "--states", "1"]) == 0
    assert f"FDc is missing: {NO_DIFFERENCES}." in " ".join(capsys.readouterr().out.split())
    _, report = run_json(capsys, ARM, "--states", "1")
    assert report["fd_missing"] is None


def test_sensors_are_judged(capsys, tmp_path):
    path = tmp_path / "arm.xml"
    joint = '<joint name="hinge"/><geom type="capsule" fromto="0 0 0 1 0 0" size=".1"/>'
    path.write_text(
        f"<mujoco><worldbody><body>{joint}</body></worldbody><actuator><motor joint='hinge'/>"
        "</actuator><sensor><jointpos joint='hinge'/><jointvel joint='hinge'/></sensor></mujoco>"
    )
    status, report = run_json(capsys, str(path), "--states", "2")
    assert status == 0
    for state in report["states"]:
        assert set(state["error"]) == set(state["error_fd_centred"]) == set("ABCD")


def test_contacts_and_the_number_of_states(capsys):
    status, report = run_json(capsys, QUADRUPED, "--states", "2", "--seed", "3")
    assert status == 0
    assert len(report["states"]) == 2
    assert any(state["contacts"] for state in report["states"])
    errors = [(state["error"]["A"], state["error_fd_centred"]["A"]) for state in report["states"]]
    assert all(ours < theirs for ours, theirs in errors)


def test_the_seed_makes_it_repeatable(capsys):
    errors = []
    for seed in ("1", "1", "2"):
        _, report = run_json(capsys, ARM, "--states", "2", "--seed", seed)
        errors.append([state["error"] for state in report["states"]])
    assert errors[0] == errors[1]
    assert errors[0] != errors[2]


def test_refusals_are_named(capsys, tmp_path):
    path = tmp_path / "user.xml"
    path.write_text(REFUSED)
    status, report = run_json(capsys, str(path), "--states", "1")
    assert status == 1
    assert not report["exact"]
    assert report["unsupported"]
    assert report["states"][0]["verdict"] == "refused"
    assert report["states"][0]["error"] == {}
    assert cli.main(["check", str(path), "--states", "1"]) == 1
    assert "governor" in capsys.readouterr().out


def test_refused_sensors_leave_the_dynamics(capsys, tmp_path, monkeypatch):
    """A and B are compared although C and D are refused."""
    path = tmp_path / "sensor.xml"
    text = (FOLDER / "hinge_chain.xml").read_text()
    path.write_text(text.replace("</mujoco>", "<sensor><clock name='watch'/></sensor></mujoco>"))
    original = mujacobian.linearize

    def refuse(model, data, *, sensors=True, **options):
        if sensors:
            raise mujacobian.UnsupportedFeatureError('sensor "watch"', "it ticks")
        return original(model, data, sensors=False, **options)

    monkeypatch.setattr("mujacobian.check._study.linearize_without_selfcheck", refuse)
    status, report = run_json(capsys, str(path), "--states", "1")
    state = report["states"][0]
    assert status == 1
    assert "watch" in state["sensors_refused"]
    assert set(state["error"]) == {"A"} | ({"B"} if report["sizes"]["nu"] else set())
    assert state["verdict"] == "exact"
    cli.main(["check", str(path), "--states", "1"])
    out = capsys.readouterr().out
    assert "(no C, D)" in out
    assert "it ticks" in out


def test_a_wrong_result_is_found(capsys, monkeypatch):
    original = _core.linearize_into

    def wrong(model, data, A, *blocks, **options):
        original(model, data, A, *blocks, **options)
        A[-1, 0] += 1e-5 * abs(A).max()

    monkeypatch.setattr(_core, "linearize_into", wrong)
    status, report = run_json(capsys, ARM, "--states", "1")
    assert status == 1
    assert report["states"][0]["verdict"] == "wrong"
    assert "A[" in report["states"][0]["reason"]


def test_urdf(capsys, tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF)
    status, report = run_json(capsys, str(path))
    assert status == 0
    assert report["sizes"]["nv"] == 1


def test_the_table_and_the_picture(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "errors.png"
    assert cli.main(["check", ARM, "--plot", str(picture)]) == 0
    out = capsys.readouterr().out
    assert "3 of 3 states exact" in out
    assert "\x1b" not in out, "no colors where there is no terminal"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_missing_matplotlib_is_named(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert cli.main(["check", ARM, "--plot", str(tmp_path / "errors.png")]) == 2
    assert "pip install 'mujacobian[plot]'" in one_line(capsys)


def one_line(capsys):
    """Return the only line of standard error; standard output must be empty."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("mujacobian: ")
    return captured.err


BROKEN = {
    "empty": "",
    "truncated": "<mujoco><worldbody><body><geom si",
    "text": "hello",
    "other": "<html><body/></html>",
    "mesh": '<mujoco><asset><mesh file="nowhere.stl"/></asset></mujoco>',
    "massless": "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>",
    "include": '<mujoco><include file="nowhere.xml"/></mujoco>',
    "attribute": '<mujoco><worldbody><geom size="a b"/></worldbody></mujoco>',
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(capsys, tmp_path, case):
    path = tmp_path / f"{case}.xml"
    path.write_text(BROKEN[case])
    assert cli.main(["check", str(path)]) == 2
    assert str(path) in one_line(capsys)


def test_binary_files(capsys, tmp_path):
    path = tmp_path / "binary.xml"
    path.write_bytes(bytes(range(256)) * 10)
    assert cli.main(["check", str(path), "--json"]) == 2
    assert str(path) in one_line(capsys)


def test_compiled_models(capsys, tmp_path):
    path = tmp_path / "arm.mjb"
    mujoco.mj_saveModel(mujoco.MjModel.from_xml_path(ARM), str(path), None)
    status, report = run_json(capsys, str(path), "--states", "1")
    assert (status, report["exact"]) == (0, True)
    path.write_bytes(path.read_bytes()[:5000])
    assert cli.main(["check", str(path)]) == 2
    assert str(path) in one_line(capsys)


ARM_WITH = """<mujoco>{}<worldbody><body><joint/><geom size=".1" pos="1 0 0"/></body></worldbody>
  <sensor><clock/></sensor></mujoco>"""


@pytest.mark.parametrize("timestep", ["0", "-1", "1e-9"])
def test_strange_time_steps(capsys, tmp_path, timestep):
    path = tmp_path / "arm.xml"
    path.write_text(ARM_WITH.format(f'<option timestep="{timestep}"/>'))
    status, report = run_json(capsys, str(path))
    assert (status, report["exact"]) == (0, True)


def test_models_without_joints(capsys, tmp_path):
    path = tmp_path / "still.xml"
    path.write_text("<mujoco><sensor><clock/></sensor></mujoco>")
    for text in (path.read_text(), "<mujoco/>"):
        path.write_text(text)
        status, report = run_json(capsys, str(path))
        assert (status, report["exact"], report["sizes"]["nv"]) == (0, True, 0)


def test_a_full_arena(capsys, tmp_path):
    path = tmp_path / "full.xml"
    path.write_text(ARM_WITH.format('<size memory="1K"/>').replace("<joint/>", "<freejoint/>"))
    assert cli.main(["check", str(path)]) == 2
    assert "memory" in one_line(capsys)


def test_missing_files_and_folders(capsys, tmp_path):
    assert cli.main(["check", str(tmp_path / "nowhere.xml")]) == 2
    assert "no such file" in one_line(capsys)
    assert cli.main(["check", str(tmp_path)]) == 2
    assert "not a file" in one_line(capsys)
    assert cli.main(["check", ARM, "--plot", str(tmp_path / "nowhere" / "errors.png")]) == 2
    assert "nowhere" in one_line(capsys)


@pytest.mark.parametrize(
    "arguments",
    [[], ["check", ARM, "--states", "0"], ["check", ARM, "--seed", "-1"], ["mpc", "--seed", "-1"]],
)
def test_wrong_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().out == ""


def test_a_model_must_be_given(capsys):
    for arguments in (["check"], ["check", "--json"]):
        assert cli.main(arguments) == 2
        assert "MODEL.xml" in one_line(capsys)


@pytest.mark.parametrize("name", ["", "check", "mpc", "info"])
def test_help_has_an_example_for_each_command(capsys, name):
    with pytest.raises(SystemExit) as caught:
        cli.main([name, "--help"] if name else ["--help"])
    assert caught.value.code == 0
    _, _, examples = capsys.readouterr().out.partition("example")
    for each in [name] if name else ["check", "mpc", "info"]:
        assert f"\n  mujacobian {each}" in examples


def test_json_goes_to_a_file_or_to_standard_output(capsys, tmp_path):
    path = tmp_path / "report.json"
    assert cli.main(["check", ARM, "--states", "1", "--json", str(path)]) == 0
    assert "1 of 1 states exact" in capsys.readouterr().out
    written = json.loads(path.read_text())
    assert written["model"] == ARM
    for arguments in (
        ["check", ARM, "--json"],
        ["check", "--json", ARM],
        ["check", ARM, "--json", "-"],
    ):
        assert cli.main([*arguments, "--states", "1"]) == 0
        assert json.loads(capsys.readouterr().out).keys() == written.keys()


@pytest.mark.parametrize("option", ["--json", "--plot"])
def test_outputs_that_cannot_be_written(capsys, tmp_path, option):
    for path in (tmp_path / "nowhere" / "file.png", tmp_path):
        assert cli.main(["check", ARM, option, str(path)]) == 2
        assert str(path) in one_line(capsys)


def test_an_unknown_format_of_pictures_is_found_before_the_run(capsys, tmp_path):
    pytest.importorskip("matplotlib")
    for command in (["check", ARM], ["mpc", "cartpole"]):
        assert cli.main([*command, "--plot", str(tmp_path / "picture.xyz")]) == 2
        assert "png" in one_line(capsys)


def test_a_failed_write_is_one_line(capsys, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    path = tmp_path / "report.json"
    assert cli.main(["check", ARM, "--states", "1", "--json", str(path)]) == 2
    assert "No space left" in one_line(capsys)


def test_info_and_version(capsys):
    assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert mujoco.__version__ in out
    assert "fields found" in out
    with pytest.raises(SystemExit) as caught:
        cli.main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("mujacobian ")


def test_as_a_module():
    run = subprocess.run(
        [sys.executable, "-m", "mujacobian", "check", "nowhere.xml"], capture_output=True, text=True
    )
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "mujacobian: nowhere.xml: no such file\n"


def hurried(tmp_path):
    """Return the path of a stack of spheres whose solver stops after one iteration."""
    path = tmp_path / "hurried.xml"
    text = (FOLDER / "contacts" / "stacked_spheres.xml").read_text()
    path.write_text(text.replace("<option ", '<option iterations="1" ls_iterations="5" '))
    return path


def test_a_solver_that_stops_early_is_not_a_wrong_derivative(capsys, tmp_path):
    path = hurried(tmp_path)
    status, report = run_json(capsys, str(path), "--states", "1")
    assert status == 1
    (state,) = report["states"]
    assert state["verdict"] == "unconverged"
    assert state["solver_error"] > 1e-4
    assert state["error"]["A"] > 1e-2
    assert state["error_converged"]["A"] <= state["tolerance"]
    assert state["solver_share"] > 0.999
    assert "the solver accounts for 100.00 % of the error" in state["reason"]
    assert "mujacobian.converged(model)" in state["reason"]
    assert cli.main(["check", str(path), "--states", "1"]) == 1
    assert "in 1 MuJoCo stops before it converges" in capsys.readouterr().out


def test_a_collider_that_stops_early_is_not_a_wrong_derivative(capsys, tmp_path):
    """The contact force passes through the axis of the hinge only with a converged collider."""
    path = tmp_path / "coarse.xml"
    path.write_text("""
      <mujoco>
        <worldbody>
          <geom type="ellipsoid" size=".05 .06 .2"/>
          <body pos="0 .155 0">
            <joint axis="1 0 0"/><geom type="ellipsoid" size=".08 .1 .13"/>
          </body>
        </worldbody>
      </mujoco>""")
    status, report = run_json(capsys, str(path), "--states", "1")
    assert status == 1
    (state,) = report["states"]
    assert state["verdict"] == "unconverged"
    assert state["collider_error"] > 0.1
    assert state["error_converged"]["A"] <= state["tolerance"] < state["error"]["A"]
    assert state["solver_share"] == 0
    assert state["collider_share"] > 0.99
    assert "the collider accounts for " in state["reason"]
    assert "ccd_tolerance" in state["reason"]


def test_a_converged_model_is_exact(capsys, tmp_path):
    model = mujacobian.converged(mujoco.MjModel.from_xml_path(str(hurried(tmp_path))))
    path = tmp_path / "converged.mjb"
    mujoco.mj_saveModel(model, str(path), None)
    status, report = run_json(capsys, str(path), "--states", "2")
    assert status == 0
    for state in report["states"]:
        assert state["verdict"] == "exact"
        assert state["solver_error"] < 1e-6
        assert state["error_converged"] == {}


def test_names_cannot_command_the_terminal(capsys, tmp_path):
    path = tmp_path / "name.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint/><geom size=".1"/></body></worldbody>'
        '<sensor><user name="a&#27;[31mb&#8238;c" dim="1"/></sensor></mujoco>'
    )
    model = mujoco.MjModel.from_xml_path(str(path))
    assert "\x1b" in model.sensor(0).name
    cli.main(["check", str(path), "--states", "1"])
    shown = capsys.readouterr().out
    assert r"a\x1b[31mb\u202ec" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert cli.main(["check", "no\x1b[31msuch.xml"]) == 2
    assert r"no\x1b[31msuch.xml: no such file" in capsys.readouterr().err


def test_a_model_that_does_not_fit_into_memory_is_one_line(capsys, monkeypatch, tmp_path):
    path = tmp_path / "huge.xml"
    path.write_text("<mujoco/>")
    for error in (MemoryError(), RuntimeError("Caught an unknown exception!")):

        def load(_, error=error):
            raise error

        monkeypatch.setattr(mujoco.MjModel, "from_xml_path", load)
        assert cli.main(["check", str(path)]) == 2
        text = capsys.readouterr().err
        assert text.startswith(f"mujacobian: {path}: ")
        assert text.count("\n") == 1
