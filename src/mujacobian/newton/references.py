"""A file of reference derivatives of one step of Newton's SolverMuJoCo, in double precision.

`python -m mujacobian.newton.references OUT.npz` writes it. docs/newton_references.md explains it.
"""

from __future__ import annotations

import argparse
from importlib.metadata import version

import mujoco
import newton
import numpy as np
import warp as wp

from mujacobian._arguments import Array
from mujacobian._linearization import linearize_without_selfcheck
from mujacobian.newton.internals import VERSIONS
from mujacobian.newton.parameters import array_of
from mujacobian.newton.reference_models import ROWS, Row, lower, random_state
from mujacobian.newton.snapshot import INTEGRATION
from mujacobian.newton.solver import DifferentiableMuJoCo

DT = 0.005
_CONVERGED = {"tolerance": 1e-14, "iterations": 500, "ls_iterations": 200}
_RK4 = int(mujoco.mjtIntegrator.mjINT_RK4)


def reference(row: Row) -> dict[str, Array]:
    """Return the state, the inputs, the next state and all derivatives of a row of the table.

    The derivatives are those of joint_q and joint_qd after one step, as stored, at the values of
    all arrays in single precision.
    """
    model = row.build()
    for name in row.parameters:
        array = array_of(model, name)
        assert array is not None
        array.requires_grad = True
    solver = DifferentiableMuJoCo(
        model, use_mujoco_cpu=True, parameters=row.parameters, **_CONVERGED, **row.options
    )
    state, control = random_state(model)
    if row.touches:
        lower(model, solver.mj_model, state)
    after = model.state()
    with wp.Tape() as tape:
        solver.step(state, after, control, None, DT)
    taken = tape.launches[-1].__self__

    # the step of MuJoCo C
    made: dict[str, Array] = {"joint_q": taken.at.joint_q[0], "joint_qd": taken.at.joint_qd[0]}
    made |= {name: values[0] for name, values in taken.given.items()}
    made |= {name: array.numpy() for name, array in taken.snapshot.parameters.arrays.items()}
    c = taken.snapshot.coordinates
    next_q, next_qd = c.to_newton(taken.qpos, taken.qvel)
    made["next/joint_q"] = np.where(c.kinematic_q, taken.at.joint_q, next_q)[0]
    made["next/joint_qd"] = np.where(c.kinematic_v, taken.at.joint_qd, next_qd)[0]
    made |= _in_mujoco(taken.snapshot.worlds.at(0), taken.rows[0])

    # one cotangent per component of the next state
    sizes = made["joint_q"].size, made["joint_qd"].size
    rows: dict[str, list[Array]] = {}
    for k in range(sum(sizes)):
        d_q, d_v = np.split(np.eye(sum(sizes))[k][None], [sizes[0]], axis=1)
        for name, gradient in taken.gradients(d_q * c.written_q, d_v * c.written_v, {}).items():
            rows.setdefault(name, []).append(np.array(gradient).reshape(made[name].shape))
    for name, values in rows.items():
        jacobian = np.stack(values)
        made[f"d_joint_q/{name}"], made[f"d_joint_qd/{name}"] = np.split(jacobian, [sizes[0]])
    return made


def _in_mujoco(model: mujoco.MjModel, start: Array) -> dict[str, Array]:
    """Return the same step in MuJoCo's coordinates, as mjd_transitionFD defines its derivatives."""
    data = mujoco.MjData(model)
    model.opt.timestep = DT
    mujoco.mj_setState(model, data, start, INTEGRATION)
    rk4 = model.opt.integrator == _RK4
    lin = linearize_without_selfcheck(model, data, sensors=False, forces=True)
    compiled = np.zeros(mujoco.mj_sizeModel(model), dtype=np.uint8)
    mujoco.mj_saveModel(model, None, compiled)
    names = ("qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos",
             "mocap_quat")  # fmt: skip
    found = {f"mujoco/{name}": np.array(getattr(data, name)) for name in names}
    found |= {"mujoco/model": compiled, "mujoco/A": lin.A, "mujoco/B": lin.B}
    if not rk4 and lin.Bf is not None:
        found["mujoco/Bf"] = lin.Bf
    mujoco.mj_step(model, data)
    found |= {f"mujoco/next/{name}": np.array(getattr(data, name)) for name in ("qpos", "qvel")}
    return found


def write(path: str) -> None:
    """Write the references of all rows into a compressed file, and print one line per row."""
    made: dict[str, Array | str | float] = {"dt": DT}
    made |= {f"version/{name}": version(name) for name in VERSIONS}
    for title, row in ROWS.items():
        found = reference(row)
        made |= {f"{title}/{name}": values for name, values in found.items()}
        size = np.linalg.norm(found["d_joint_qd/joint_qd"])
        print(f"{title}: {len(found['joint_qd'])} dofs, |d_joint_qd/joint_qd| {size:.6f}")
    np.savez_compressed(path, **made)  # type: ignore[arg-type]


def main() -> None:
    """Write the file that the command line names."""
    parser = argparse.ArgumentParser(
        prog="python -m mujacobian.newton.references", description=__doc__
    )
    parser.add_argument("path", metavar="OUT.npz", help="file to write")
    wp.config.quiet = True
    newton.use_coord_layout_targets = True
    write(parser.parse_args().path)


if __name__ == "__main__":
    main()
