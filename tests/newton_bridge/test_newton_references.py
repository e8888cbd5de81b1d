"""The file of reference derivatives against differences of Newton's step in double precision."""

import mujoco
import numpy as np
import pytest
from oracle import Oracle

from mujacobian.newton import DifferentiableMuJoCo, references
from mujacobian.newton.reference_models import ROWS

# differences of a step, relative to the largest derivative
TOLERANCE = 1e-6
INPUTS = ("joint_q", "joint_qd", "joint_f", "joint_target_q", "joint_target_qd", "ctrl", "body_f")


@pytest.mark.parametrize("title", ROWS)
def test_states_and_inputs(title):
    row = ROWS[title]
    made = references.reference(row)
    oracle = Oracle(
        DifferentiableMuJoCo(row.build(), use_mujoco_cpu=True, parameters=(), **row.options)
    )
    start = {name: made[name] for name in INPUTS if name in made}
    act = made["mujoco/act"]

    def after(values):
        q, v, _ = oracle.step(values["joint_q"], values["joint_qd"], act, values, references.DT)
        return np.concatenate([q, v])

    end = after(start)
    nq = made["joint_q"].size
    written = np.concatenate([made["next/joint_q"], made["next/joint_qd"]]) != 0
    wanted = np.concatenate([made["next/joint_q"], made["next/joint_qd"]])
    # stiff equalities amplify the rounding of both
    np.testing.assert_allclose(end[written], wanted[written], rtol=1e-6, atol=1e-6)
    rng = np.random.default_rng(0)
    for name, values in start.items():
        direction = rng.normal(size=values.shape)
        if name == "joint_q":
            xi = rng.normal(size=oracle.nv)

            def at(h, xi=xi):
                return after({**start, "joint_q": oracle.boxplus(start["joint_q"], h * xi)})

            h = 1e-6
            direction = (oracle.boxplus(values, h * xi) - oracle.boxplus(values, -h * xi)) / (2 * h)
        else:

            def at(h, name=name, values=values, direction=direction):
                return after({**start, name: values + h * direction})

        h = 1e-5 if name in ("joint_q", "joint_qd") else 1e-3
        first, second = ((at(s * h) - at(-s * h)) / (2 * s * h) for s in (2, 1))
        difference = (4 * second - first) / 3
        parts = [made[f"d_{part}/{name}"] for part in ("joint_q", "joint_qd")]
        jacobian = np.concatenate([part.reshape(len(part), values.size) for part in parts])
        found = jacobian @ direction.ravel()
        scale = max(np.abs(jacobian).max(initial=0), 1e-4)
        error = np.abs(found - difference)[written].max(initial=0) / scale
        print(title, name, f"{error:.1e}")
        assert error < TOLERANCE, name
    assert np.abs(made["d_joint_qd/joint_qd"]).max() > 0.1
    for name in row.parameters:
        jacobian = np.concatenate([made[f"d_joint_q/{name}"], made[f"d_joint_qd/{name}"]])
        assert jacobian.shape == (nq + made["joint_qd"].size, *made[name].shape)
        assert jacobian.any(), name


def test_the_file(tmp_path, monkeypatch, capsys):
    """The models can be loaded and repeat the step."""
    titles = ["joints: revolute, ball", "contact: box on plane"]
    monkeypatch.setattr(references, "ROWS", {title: ROWS[title] for title in titles})
    path = tmp_path / "references.npz"
    references.write(str(path))
    assert capsys.readouterr().out.count("\n") == len(titles)
    made = np.load(path)
    for title in titles:
        file = tmp_path / "model.mjb"
        file.write_bytes(made[f"{title}/mujoco/model"].tobytes())
        model = mujoco.MjModel.from_binary_path(str(file))
        assert model.opt.timestep == made["dt"]
        data = mujoco.MjData(model)
        for name in ("qpos", "qvel", "ctrl", "qfrc_applied", "xfrc_applied"):
            getattr(data, name)[:] = made[f"{title}/mujoco/{name}"]
        A = np.zeros((2 * model.nv, 2 * model.nv))
        mujoco.mjd_transitionFD(model, data, 1e-6, True, A, None, None, None)
        np.testing.assert_allclose(A, made[f"{title}/mujoco/A"], atol=1e-5)
        mujoco.mj_step(model, data)
        np.testing.assert_allclose(data.qvel, made[f"{title}/mujoco/next/qvel"], rtol=1e-9)
