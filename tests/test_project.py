"""The files that describe the project agree with each other."""

import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml

from mujacobian import _core
from tools import make_wheels, smoke_test

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())
RECIPE = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONDA_NAMES = {"mujoco": "mujoco-python"}  # packages whose name on conda-forge is another one


def first(pattern, file):
    return re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)[1]


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(_core.version(), id="core"),
        pytest.param(CITATION["version"], id="CITATION.cff"),
        pytest.param(RECIPE["context"]["version"], id="conda"),
        pytest.param(first(r"^## (\S+)", "CHANGELOG.md"), id="changelog"),
        pytest.param(first(r"version = \{(.*)\}", "README.md"), id="README"),
    ],
)
def test_there_is_one_version(version):
    assert version == PROJECT["project"]["version"]


def test_there_is_one_repository():
    urls = PROJECT["project"]["urls"]
    home = urls["Homepage"]
    assert CITATION["repository-code"] == RECIPE["about"]["homepage"] == home
    assert urls["Issues"].startswith(home)
    assert urls["Changelog"].startswith(home)


def test_links_of_the_page_on_pypi_are_absolute():
    page = metadata("mujacobian")["Description"]
    links = re.findall(r"\]\((.*?)\)", page)
    assert len(links) > 10
    assert all(link.startswith("https://") for link in links)


def test_the_license_is_the_same_everywhere():
    assert CITATION["license"] == RECIPE["about"]["license"] == PROJECT["project"]["license"]


def conda_requirement(line):
    name, bound = re.fullmatch(r"([\w-]+)(.*)", line).groups()
    return f"{CONDA_NAMES.get(name, name)} {bound}"


def test_conda_has_the_requirements_of_the_wheel():
    project, recipe = PROJECT["project"], RECIPE["requirements"]
    run = [f"python {project['requires-python']}", *map(conda_requirement, project["dependencies"])]
    assert recipe["run"] == run
    assert recipe["host"] == [
        "python",
        "pip",
        *map(conda_requirement, PROJECT["build-system"]["requires"]),
    ]


def test_classifiers_name_the_versions_of_python_that_the_wheels_are_tried_with():
    named = re.findall(r":: Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert tuple(named) == make_wheels.VERSIONS


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_of_make(workflow):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    steps = [step for job in jobs for step in job["steps"]]
    called = {
        target
        for step in steps
        for target in re.findall(r"^make ([\w-]+)", step.get("run", ""), re.MULTILINE)
    }
    for job in jobs:
        called.update(job.get("strategy", {}).get("matrix", {}).get("target", []))
    assert called
    assert called <= targets


def test_the_smoke_test_passes(capsys):
    smoke_test.main()
    assert "from centered differences" in capsys.readouterr().out
