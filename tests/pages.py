"""The Python blocks of README.md and docs/, run in a folder with the models that they load."""

import ast
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from sybil import Document, Example
from sybil.parsers.markdown import PythonCodeBlockParser

ROOT = Path(__file__).resolve().parent.parent
NEWTON = {"newton", "warp"}  # Newton needs an environment of its own
OPTIONAL = {*NEWTON, "crocoddyl", "ray"}


def pages() -> list[str]:
    """Return the pages that have Python blocks, as paths in the repository."""
    files = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(file.relative_to(ROOT)) for file in files if "```python" in file.read_text()]


def blocks(page: str) -> list[Example]:
    """Return the Python blocks of a page. They share one namespace."""
    document = Document.parse(str(ROOT / page), PythonCodeBlockParser())
    return list(document.examples())


def packages(block: Example) -> set[str]:
    """Return the packages of OPTIONAL that a block imports."""
    return set(imports(str(block.parsed))) & OPTIONAL


def missing(block: Example) -> set[str]:
    """Return the packages that a block imports and that are not installed."""
    return {package for package in packages(block) if find_spec(package) is None}


def imports(code: str) -> Iterator[str]:
    """Yield the names of the packages that the code imports."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def provide_models(folder: Path) -> None:
    """Copy the models of the examples into a folder, one of them as robot.xml."""
    (folder / "examples").mkdir()
    for model in (ROOT / "examples").glob("*.xml"):
        shutil.copy(model, folder / "examples")
    shutil.copy(ROOT / "examples" / "hopper.xml", folder / "robot.xml")
