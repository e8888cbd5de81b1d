"""Derivatives with respect to every family of parameters, judged on many models.

`python -m benchmarks.parameters [models]` judges one random direction of each family, at a few
states of each model, against extrapolated differences of `Parameters.apply` and `mj_step`. Without
arguments the models are those of the installed packages dm_control and gymnasium, and of the folder
MENAGERIE_ROOT if it is set. The exit status says whether any derivative is wrong.
"""

from __future__ import annotations

import argparse
import copy
import importlib.util
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import mujoco
import numpy as np

import mujacobian
from mujacobian import reference
from mujacobian.check.states import states
from mujacobian.parameters import FIELDS
from mujacobian.probe import NOISE_SAMPLES
from mujacobian.verdict import SETTLED_MARGIN, TRUST_MARGIN, bar, converged

EXACT, UNTRUSTED, REFUSED, WRONG = "exact", "not judged (kink or rounding)", "refused", "wrong"
STEP = 0.01  # largest relative change of the parameters
NOISE_STEP = 1e-5  # relative change between the samples from which rounding is measured
PACKAGES = ("dm_control", "gymnasium")
COLLIDER_SLOPE = 1e-4  # what MuJoCo's collider leaves on curved geoms, see tests/directional.py


@dataclass(frozen=True)
class Verdict:
    """What one random direction of a family showed at one state."""

    model: str
    state: str
    family: str
    word: str
    error: float = 0.0
    why: str = ""


class ParameterStep(reference.ConstrainedStep):
    """A step as a function of the first coordinate of z, along a direction of parameters."""

    def __init__(
        self, parameters: mujacobian.Parameters, direction: np.ndarray, data: mujoco.MjData
    ) -> None:
        self._values, self._direction = parameters.values, direction
        self._parameters = parameters
        super().__init__(parameters.apply(self._values), data)

    def _outcome(self, z: np.ndarray) -> np.ndarray:
        moved = self._values + z[0] * self._direction
        self.model = self.bare = self._parameters.apply(moved)
        return super()._outcome(z)

    def _move(self, z: np.ndarray) -> None:
        super()._move(np.zeros(self.nz))

    def _noise(self) -> np.ndarray:
        """Return the rounding of each row, over changes of the parameters that move all of them."""
        samples = np.array(
            [self(k * NOISE_STEP * np.eye(self.nz)[0]) for k in range(NOISE_SAMPLES)]
        )
        noise = np.sqrt((np.diff(samples, 4, axis=0) ** 2).mean(axis=0) / 70)
        return np.maximum(noise, np.finfo(float).eps * abs(self.value) / 4)

    def inside(self, direction: np.ndarray, h: float) -> float:
        """Return the largest step in the branch of the state, at most `STEP`."""
        return super().inside(direction, min(h, STEP))


def judge(
    model: mujoco.MjModel,
    name: str = "",
    *,
    count: int = 2,
    seed: int = 0,
    families: Sequence[str] = tuple(FIELDS),
    derived: Literal["recompute", "hold"] = "recompute",
) -> Iterator[Verdict]:
    """Judge one random direction of each family at `count` states of the model."""
    rng = np.random.default_rng(seed)
    with reference.quiet():
        for label, data in list(states(model, count + 1, seed=seed))[1:]:
            twin, same = converged(model, data)
            for family in families:
                parameters = _choose(twin, family, derived)
                if parameters is None:
                    continue
                word, error, why = judge_family(parameters, same, rng)
                yield Verdict(name, label, family, word, error, why)


def judge_family(
    parameters: mujacobian.Parameters, data: mujoco.MjData, rng: np.random.Generator
) -> tuple[str, float, str]:
    """The verdict on a random direction of the parameters: word, error, reason."""
    model, values = parameters.model, parameters.values
    size = np.where(parameters.lower == 0, abs(values), np.maximum(abs(values), 0.1))
    direction = rng.uniform(-1, 1, len(values)) * size
    if not direction.any():
        return UNTRUSTED, 0.0, "all values are zero"
    sensors = model.nsensordata > 0
    try:
        column, why = _product(model, data, parameters, direction, sensors), ""
    except mujacobian.UnsupportedFeatureError as error:
        if not sensors or not error.element.startswith("sensor"):
            return REFUSED, 0.0, str(error)
        sensors, why = False, str(error)
        try:
            column = _product(model, data, parameters, direction, sensors)
        except mujacobian.UnsupportedFeatureError as again:
            return REFUSED, 0.0, str(again)
    tolerance = COLLIDER_SLOPE if reference.meets_curved(model, data) else bar(data)
    try:
        step = ParameterStep(parameters, direction, data)
        along = np.eye(1, step.nz)
        J, err = reference.differentiate(step, along, tolerance / SETTLED_MARGIN)
    except (ArithmeticError, ValueError) as error:
        return UNTRUSTED, 0.0, str(error)
    rows = slice(None if sensors else step.nx)
    blocks = step.blocks if sensors else step.blocks[:4]
    result = reference.compare(
        column[:, None], J[rows], err[rows], blocks, trust=tolerance / TRUST_MARGIN
    )
    if result.error > tolerance:
        row = result.worst()[0]
        return WRONG, result.error, f"row {row}: {column[row]:.9g} for {J[row, 0]:.9g}"
    return (EXACT if result.share > 0 else UNTRUSTED), result.error, why


def _product(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    parameters: mujacobian.Parameters,
    direction: np.ndarray,
    sensors: bool,
) -> np.ndarray:
    state, sensed = mujacobian.jvp(
        model, data, params=parameters, d_params=direction, sensors=sensors
    )
    return state if sensed is None else np.concatenate([state, sensed])


def _choose(
    model: mujoco.MjModel, family: str, derived: Literal["recompute", "hold"]
) -> mujacobian.Parameters | None:
    """All elements of the family that can be parameters; None if there are none."""
    item: object = family
    if family in ("body_ipos", "body_log_cholesky"):
        chosen = [b for b in range(1, model.nbody) if not model.body_simple[b]]
        if family == "body_log_cholesky":
            chosen = [b for b in chosen if _is_physical(model, b)]
        item = (family, chosen)
    parameters = mujacobian.Parameters(model, [item], derived=derived)  # type: ignore[list-item]
    return parameters if len(parameters) else None


def _is_physical(model: mujoco.MjModel, body: int) -> bool:
    """Whether the body's inertia is that of some distribution of mass, with a margin."""
    inertia = np.sort(model.body_inertia[body])
    return bool(model.body_mass[body] > 0 and inertia[0] + inertia[1] > (1 + 1e-6) * inertia[2])


def model_paths() -> list[Path]:
    """The models of the installed packages, and the scenes of MENAGERIE_ROOT."""
    found: list[Path] = []
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            found += sorted(Path(spec.submodule_search_locations[0]).rglob("*.xml"))
    if root := os.environ.get("MENAGERIE_ROOT"):
        found += sorted(Path(root).rglob("scene*.xml"))
    return found


def load(paths: Sequence[Path]) -> Iterator[tuple[str, mujoco.MjModel]]:
    """The distinct models among those that load and have dofs."""
    seen: set[bytes] = set()
    for path in paths:
        try:
            with reference.quiet():
                model = mujoco.MjModel.from_xml_path(str(path))
        except ValueError:
            continue  # a part of other models
        numbers = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(copy.copy(model), None, numbers)
        if model.nv == 0 or numbers.tobytes() in seen:
            continue
        seen.add(numbers.tobytes())
        yield f"{path.parent.name}/{path.stem}", model


def main() -> int:
    """Print a table; return 1 if a derivative is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="*", type=Path, help="XML files; default: all installed")
    parser.add_argument("--states", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--derived", choices=("recompute", "hold"), default="recompute")
    parser.add_argument("--largest", type=int, default=80, help="skip models with more dofs")
    options = parser.parse_args()
    table: Counter[tuple[str, str]] = Counter()
    models = 0
    for name, model in load(options.models or model_paths()):
        if model.nv > options.largest:
            continue
        models += 1
        for verdict in judge(
            model, name, count=options.states, seed=options.seed, derived=options.derived
        ):
            table[verdict.family, verdict.word] += 1
            if verdict.word == WRONG:
                print(
                    f"{verdict.model}, {verdict.state}, {verdict.family}: wrong by"
                    f" {verdict.error:.1e}, {verdict.why}",
                    flush=True,
                )
    words = (EXACT, REFUSED, UNTRUSTED, WRONG)
    print("| family | " + " | ".join(words) + " |\n|---|" + "---|" * len(words))
    for family in FIELDS:
        print(f"| {family} | " + " | ".join(str(table[family, word]) for word in words) + " |")
    totals = [sum(n for (_, w), n in table.items() if w == word) for word in words]
    print(f"| {models} models | " + " | ".join(map(str, totals)) + " |")
    return int(totals[-1] > 0)


if __name__ == "__main__":
    sys.exit(main())
