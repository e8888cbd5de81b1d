"""Measurements of one model: errors per block, errors for several step sizes, and times."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np

from benchmarks import accuracy, speed

EPSILONS = 10.0 ** np.arange(-11, 0.1, 0.5)
LABELS = {"fd": "FD", "fdc": "FD central", "ours": "mujacobian"}
BLOCKS = ("q'/q", "q'/v", "q'/u", "v'/q", "v'/v", "v'/u")
NOISE = 0.02  # of the positions of the keyframe; velocities are of order one
FLOOR = 1e-16  # smallest error in the figure


@dataclass
class Study:
    """A model, its state, and the results of `run`."""

    name: str
    model: mujoco.MjModel
    data: mujoco.MjData
    errors: dict[str, dict[str, float]] = field(default_factory=dict)
    sweep: dict[str, list[float]] = field(default_factory=lambda: {"fd": [], "fdc": []})
    times: dict[str, float] = field(default_factory=dict)

    def run(self) -> Iterator[str]:
        """Measure everything, and yield the name of each stage at its end."""
        reference = accuracy.Reference(self.model, self.data)
        for method in LABELS:
            error = reference.error(accuracy.jacobian(method, self.model, self.data))
            self.errors[method] = self._blocks(error)
        yield "reference"
        for eps in EPSILONS:
            for method, errors in self.sweep.items():
                J = accuracy.jacobian(method, self.model, self.data, eps)
                errors.append(float(np.max(reference.error(J))))
            yield f"differences, eps {eps:.0e}"
        self.times = speed.measure(self.model, self.data)
        yield "time"

    def _blocks(self, error: np.ndarray) -> dict[str, float]:
        """Return the largest error of each block of [A B]."""
        nv = self.model.nv
        rows = {"q'": slice(0, nv), "v'": slice(nv, 2 * nv)}
        columns = {"q": slice(0, nv), "v": slice(nv, 2 * nv), "u": slice(2 * nv, None)}
        worst = {}
        for block in BLOCKS:
            row, column = block.split("/")
            worst[block] = max(float(np.max(error[rows[row], columns[column]])), FLOOR)
        return worst


def load(name: str, seed: int = 0) -> Study:
    """Return a bundled model in motion near its keyframe, without active constraints."""
    model = mujoco.MjModel.from_xml_path(str(Path(__file__).with_name(f"{name}.xml")))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_integratePos(model, data.qpos, NOISE * rng.uniform(-1, 1, model.nv), 1.0)
    data.qvel[:] = rng.standard_normal(model.nv)
    mujoco.mj_forward(model, data)
    return Study(name, model, data)
