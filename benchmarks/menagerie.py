"""Judge every scene of MuJoCo Menagerie (exact, not supported or wrong), and time it.

Where curved geoms touch, MuJoCo's collider stops early, on a facet of its polytope. If a state
differs from finite differences of that contact, it is judged again with converged contacts and
counted separately.

Every exact state is also linearized with the solver and collider settings of the scene. The result
is compared with the same differences of the converged step. Every error must come with a warning.

The scenes come from the checkout in the environment variable MENAGERIE_ROOT, or otherwise from the
package mujoco-menagerie, which downloads them. The program prints a table and writes
build/menagerie.md. The exit status is 1 if any state is wrong or crashes.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import mujacobian
from benchmarks import speed
from benchmarks.own_settings import OwnSettings
from benchmarks.refusals import linearize, reason
from benchmarks.states import driven
from mujacobian import reference
from mujacobian.check._judge import Judge, stack
from tests.oracle import directional

BLOCKS = ("A", "B", "C", "D")
EXACT = {"exact", directional.CONVERGED}
ROUNDS = 10  # timing rounds per candidate
REASONS = 3  # reasons reported per scene


@dataclass
class Scene:
    """The verdicts, errors and times of one scene over all its states."""

    name: str
    nv: int
    verdicts: list[str] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)  # reasons
    sensors_refused: str = ""
    worst: dict[str, float] = field(default_factory=dict)  # error per block
    pairs: set[str] = field(default_factory=set)
    shares: list[float] = field(default_factory=list)  # share of trusted entries per state
    notes: list[str] = field(default_factory=list)  # wrong results and crashes, with their states
    times: dict[str, float] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether any state is wrong or crashed."""
        return bool(self.notes)

    @property
    def verdict(self) -> str:
        """Summary of the verdicts on all states."""
        count = Counter(self.verdicts)
        if not count:
            return "no state"
        if set(count) <= EXACT:
            return "A B exact" if self.sensors_refused else "exact"
        return ", ".join(f"{word} {n}/{len(self.verdicts)}" for word, n in count.most_common())

    @property
    def why(self) -> str:
        """The most frequent reasons why derivatives are not supported."""
        reasons = [why for why, _ in self.refused.most_common(REASONS)]
        return "; ".join([*reasons, *filter(None, [self.sensors_refused])])


@dataclass
class State:
    """The verdict on one state and, if it is exact, its Jacobian and the judge that accepted it."""

    verdict: str
    J: np.ndarray | None = None
    judge: Judge | None = None


def main() -> None:
    """Judge and time all scenes."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.menagerie",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--states", type=int, default=6, help="states per scene and seed")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of the random controls")
    parser.add_argument("--out", type=Path, default=Path("build"), help="folder of the table")
    arguments = parser.parse_args()
    try:
        paths = scene_paths()
    except FileNotFoundError as error:
        sys.exit(str(error))

    console = Console()
    columns = (TextColumn("{task.description:36}"), BarColumn(), MofNCompleteColumn())
    scenes, own = [], OwnSettings()
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("", total=len(paths))
        for path in paths:
            progress.update(task, description=label(path))
            scenes.append(judge_scene(path, arguments.states, arguments.seeds, own))
            progress.advance(task)
    text = report(scenes) + "\n".join(["", f"{own}", "", *own.notes, ""])
    console.print(Markdown(text))
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "menagerie.md").write_text(text)
    console.print(f"written: {arguments.out / 'menagerie.md'}")
    sys.exit(any(scene.failed for scene in scenes) or bool(own.notes))


def scene_paths() -> list[Path]:
    """Return all scene*.xml, from MENAGERIE_ROOT or from the package mujoco-menagerie."""
    root = os.environ.get("MENAGERIE_ROOT")
    if root:
        # with a relative path, MuJoCo does not find all files of nested includes
        folders = sorted(path for path in Path(root).resolve().glob("*/") if path.is_dir())
    else:
        folders = _downloaded()
    paths = [path for folder in folders for path in sorted(folder.glob("scene*.xml"))]
    if not paths:
        raise FileNotFoundError(f"no scene*.xml in the folders of MENAGERIE_ROOT={root}")
    return paths


def _downloaded() -> list[Path]:
    try:
        import mujoco_menagerie as menagerie
    except ImportError:
        raise FileNotFoundError(
            "no Menagerie: set MENAGERIE_ROOT to a checkout of google-deepmind/mujoco_menagerie, "
            "or pip install mujoco-menagerie"
        ) from None
    try:
        return [Path(menagerie.get(name).path()) for name in menagerie.names()]
    except (menagerie.MenagerieError, OSError) as error:
        raise FileNotFoundError(
            f"mujoco-menagerie could not download its robots ({error}): set MENAGERIE_ROOT to a "
            "checkout of google-deepmind/mujoco_menagerie"
        ) from None


def label(path: Path) -> str:
    """Return the name of the robot, with that of the scene if the robot has several scenes."""
    scene = path.stem.removeprefix("scene").strip("_")
    return f"{path.parent.name} {scene}".strip()


def judge_scene(path: Path, states: int, seeds: int, own: OwnSettings) -> Scene:
    """Judge one scene at states of several seeds, and time it at the state with most contacts.

    The derivative is judged with converged settings and, if it is exact, with those of the scene.
    """
    model = mujoco.MjModel.from_xml_path(str(path))
    scene = Scene(label(path), model.nv)
    converged = reference.converge(copy(model))
    exact = []
    for seed in range(seeds):
        for name, data in driven(converged, states, seed):
            where = f"seed {seed}, {name}"
            judged = judge_state(scene, where, converged, data)
            scene.verdicts.append(judged.verdict)
            if judged.judge is None or judged.J is None:
                continue
            exact.append(data)
            own.compare(model, data, judged.judge, judged.J, f"{scene.name}, {where}")
    if exact:
        busiest = max(exact, key=lambda data: data.ncon)
        scene.times = measure(model, busiest, sensors=not scene.sensors_refused)
    return scene


def judge_state(scene: Scene, where: str, model: mujoco.MjModel, data: mujoco.MjData) -> State:
    """Judge one state, and add the results to `scene`."""
    mujoco.mj_forward(model, data)
    scene.pairs |= set(pairs(model, data))
    try:
        lin, sensors_refused = linearize(model, data)
    except mujacobian.UnsupportedFeatureError as error:
        scene.refused[reason(error)] += 1
        return State("refused")
    except Exception as error:
        scene.notes.append(f"{where}: {type(error).__name__}: {error}")
        return State("crashed")
    scene.sensors_refused = sensors_refused

    judge, J = Judge(model, data), stack(lin)
    result = judge.compare(J)
    errors = judge.block_errors(result)
    for name, error in errors.items():
        scene.worst[name] = max(scene.worst.get(name, 0.0), error)
    scene.shares.append(result.share)
    if mujacobian.fd_count() == 0:
        if result.error <= judge.tolerance:
            return State("exact", J, judge)
        only_A = all(error <= judge.tolerance for name, error in errors.items() if name != "A")
        if only_A and converged_error(model, data) <= judge.tolerance:
            return State(directional.CONVERGED, J, judge)
    scene.notes.append(f"{where}: {judge.describe(result, J)}")
    return State("wrong")


def converged_error(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """Return the error of A with converged contacts of curved geoms."""
    nx = 2 * model.nv + model.na
    directions = np.eye(nx + model.nu + model.nv)[:nx]
    result = directional.compare_converged(model, data, directions)
    return result.error if result and result.share > directional.TRUSTED_SHARE else np.inf


def pairs(model: mujoco.MjModel, data: mujoco.MjData) -> Iterator[str]:
    """Yield the geom types of every contact, such as "box-plane"."""
    for contact in data.contact[: data.ncon]:
        kinds = (mujoco.mjtGeom(model.geom_type[g]).name for g in contact.geom)
        yield "-".join(sorted(kind.removeprefix("mjGEOM_").lower() for kind in kinds))


def measure(model: mujoco.MjModel, data: mujoco.MjData, *, sensors: bool) -> dict[str, float]:
    """Return the ratios of times at one state, with the model's own solver settings."""
    own = mujoco.MjData(model)
    mujoco.mj_copyData(own, model, data)
    mujoco.mj_forward(model, own)
    try:
        return speed.measure(model, own, rounds=ROUNDS, sensors=sensors)
    # with the settings of the model, the solver or the collider stops too early
    except (ValueError, mujacobian.MujacobianError):
        return {}


def report(scenes: list[Scene]) -> str:
    """Return the table and the totals in Markdown."""
    head = ("scene", "nv", "verdict", *BLOCKS, "trusted", "contacts", "FDc / ours", "alone / step")
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(_cells(scene))} |" for scene in scenes]
    exact = sum(scene.verdict == "exact" for scene in scenes)
    partly = sum(scene.verdict == "A B exact" for scene in scenes)
    total = Counter(verdict for scene in scenes for verdict in scene.verdicts)
    lines += [
        "",
        f"{exact} of {len(scenes)} scenes exact, {partly} more in A and B; states: "
        + ", ".join(f"{word} {n}" for word, n in total.most_common())
        + f" (MuJoCo {mujoco.__version__})",
    ]
    refused = [f"- {scene.name} refused: {scene.why}" for scene in scenes if scene.why]
    notes = [f"- {scene.name} FAILED: {note}" for scene in scenes for note in scene.notes]
    return "\n".join([*lines, "", *refused, *notes]) + "\n"


def _cells(scene: Scene) -> list[str]:
    worst = (f"{scene.worst[name]:.0e}" if name in scene.worst else "" for name in BLOCKS)
    ratios = (scene.times.get(key) for key in ("fdc/ours", "bare/step"))
    share = f"{np.mean(scene.shares):.2f}" if scene.shares else ""
    contacts = ", ".join(sorted(scene.pairs))
    return [scene.name, str(scene.nv), scene.verdict, *worst, share, contacts] + [
        "" if ratio is None else f"{ratio:.1f}" for ratio in ratios
    ]


if __name__ == "__main__":
    main()
