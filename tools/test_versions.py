"""Run a sample of the tests, and of Menagerie, on every release of MuJoCo from 3.15 on.

The releases are those that pip finds: the newest version of each from `OLDEST_TESTED` on. Each is a
folder of `build`, which PYTHONPATH puts in front. The scenes of Menagerie come from the folder in
the environment variable MENAGERIE_ROOT, if it is set. The program prints a table. Everything else
goes to `build/versions`, and is printed if it fails. The exit status is 1 if anything fails.
"""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from rich.console import Console
from rich.table import Table

from mujacobian._versions import NEWEST_TESTED, OLDEST_TESTED, release

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "versions"
CASES = 2  # parameter sets per test
STATES = 3  # per scene of Menagerie
WIDTH = 120  # columns of the table

# test files, tests/test_NAME.py, by the part of MuJoCo whose derivatives they cover
SAMPLE = {
    "layout": "layout imports versions",
    "joints": "smooth_models models transition inverse discrete fluid plastic kitchen_sink",
    "actuators": "actuators wrapping mujoco_cases",
    "constraints": "constraint_rows idle_rows noslip wrench",
    "branches": "kinks ties",
    "contacts": "contacts pairs facets height_field uneven_polygons distances",
    "curved contacts": "cylinder_directions turned_contacts collider_tolerance",
    "sensors": "sensors force_sensors",
    "parameters": "parameters derived_constants",
    "rollouts": "rollout product batch control_mpc",
}


@dataclass
class Outcome:
    """The results on one release."""

    version: str
    tests: str
    scenes: str
    seconds: float
    passed: bool


def main() -> int:
    """Run everything on each release, print the table and return the exit status."""
    LOGS.mkdir(parents=True, exist_ok=True)
    names = releases()
    folders = [f"build/mujoco-{name}" for name in names]
    targets = [f"{folder}/.installed" for folder in folders]
    subprocess.run(["make", "--no-print-directory", *targets], cwd=ROOT, check=True)
    outcomes = [run(name, ROOT / folder) for name, folder in zip(names, folders, strict=True)]
    table = Table("MuJoCo", "tests", "Menagerie", "s", "")
    for each in outcomes:
        verdict = "[green]passed[/green]" if each.passed else "[red]FAILED[/red]"
        if release(each.version) > release(NEWEST_TESTED):
            verdict += f", newer than {NEWEST_TESTED}, the newest tested one"
        table.add_row(each.version, each.tests, each.scenes, f"{each.seconds:.0f}", verdict)
    Console(width=WIDTH).print(table)
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def releases() -> list[str]:
    """Return the releases that pip can install here, such as 3.15, from the oldest tested one."""
    command = [sys.executable, "-m", "pip", "index", "versions", "mujoco"]
    found = subprocess.run(command, capture_output=True, text=True)
    listed = re.search(r"^Available versions: (.*)$", found.stdout, re.MULTILINE)
    if listed is None:
        raise SystemExit(f"pip cannot list the versions of mujoco: {found.stderr.strip()}")
    known = {release(version) for version in listed[1].split(", ")}
    if release(NEWEST_TESTED) not in known:
        raise SystemExit(f"pip does not find MuJoCo {NEWEST_TESTED}, the newest tested release")
    return [f"{a}.{b}" for a, b in sorted(known) if (a, b) >= release(OLDEST_TESTED)]


def run(name: str, folder: Path) -> Outcome:
    """Return the results on the release in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    print_version = [sys.executable, "-c", "import mujoco; print(mujoco.__version__)"]
    version = subprocess.check_output(print_version, env=environment, text=True).strip()
    if release(version) != release(name):
        raise SystemExit(f"{folder} contains MuJoCo {version}: remove it")
    begun = time.perf_counter()
    tests, tests_passed = run_tests(name, environment)
    scenes, scenes_passed = run_menagerie(name, environment)
    seconds = time.perf_counter() - begun
    return Outcome(version, tests, scenes, seconds, tests_passed and scenes_passed)


def run_tests(name: str, environment: dict[str, str]) -> tuple[str, bool]:
    """Return how many tests of the sample passed, were skipped and failed; and whether none did."""
    report = LOGS / f"{name}.xml"
    report.unlink(missing_ok=True)
    files = [f"tests/test_{stem}.py" for stems in SAMPLE.values() for stem in stems.split()]
    options = f"-n auto --dist worksteal -p no:cacheprovider --cases {CASES}".split()
    selection = ["-m", "not slow", f"--junitxml={report}", *files]
    passed = logged(f"{name}-tests", ["pytest", *options, *selection], environment)
    suite = ElementTree.parse(report).getroot().find("testsuite") if report.exists() else None
    if suite is None:
        return "crashed", False
    total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
    return f"{total - skipped - failed} passed, {skipped} skipped, {failed} failed", passed


def run_menagerie(name: str, environment: dict[str, str]) -> tuple[str, bool]:
    """Return how many scenes and states are exact, and whether no result is wrong."""
    if not environment.get("MENAGERIE_ROOT"):
        return "not run: set MENAGERIE_ROOT", True
    report = LOGS / name / "menagerie.md"
    report.unlink(missing_ok=True)
    options = ["--states", str(STATES), "--out", str(report.parent)]
    passed = logged(f"{name}-menagerie", ["benchmarks.menagerie", *options], environment)
    text = report.read_text() if report.exists() else ""
    found = re.search(r"^(\d+ of \d+ scenes exact).*; states: (.*) \(MuJoCo", text, re.MULTILINE)
    if found is None:
        return "crashed", False
    return f"{found[1]}; states: {found[2]}", passed


def logged(name: str, module: list[str], environment: dict[str, str]) -> bool:
    """Run a Python module with its output in a log; print the log if the module fails."""
    path = LOGS / f"{name}.log"
    print(f"{name} ...", flush=True)
    with path.open("w") as log:
        command = [sys.executable, "-m", *module]
        code = subprocess.run(
            command, env=environment, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT
        ).returncode
    if code:
        print(path.read_text())
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
