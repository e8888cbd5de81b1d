"""Print the include graph of cpp/ and the import graph of src/mujacobian, and fail on a cycle.

C++: an edge `a -> b (n)` means that files of folder a include files of folder b n times.
Python: an edge `a -> b` means that importing module a imports module b. Imports inside functions
run later, and imports under TYPE_CHECKING never run: neither counts. An import of a package also
runs its `__init__`, but nobody writes that import, so it is no edge.

    .venv/bin/python tools/check_graph.py [--edges]

The exit status is 1 if folders of cpp/ include one another in a cycle, or modules import one
another in a cycle, and 0 otherwise.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPP, SRC = ROOT / "cpp", ROOT / "src"
PACKAGE = "mujacobian"
COMPILED = f"{PACKAGE}._core"
INCLUDE = re.compile(r'^#include "(\w+)/[\w/]+\.h"', re.MULTILINE)

Graph = dict[str, Counter[str]]


def main() -> int:
    """Print the sizes of both graphs and their cycles, and with --edges all edges; 1 if any."""
    found = False
    for title, graph in (
        ("folders of cpp/, by includes", folder_graph()),
        (f"modules of {PACKAGE}, by imports", module_graph()),
    ):
        edges = sum(len(targets) for targets in graph.values())
        print(f"{title}: {len(graph)} nodes, {edges} edges")
        for node, targets in sorted(graph.items()) if "--edges" in sys.argv[1:] else ():
            print(f"  {short(node)} -> {', '.join(describe(targets)) or '(nothing)'}")
        cycles = list(find_cycles(graph))
        for cycle in cycles:
            print(f"  CYCLE: {' -> '.join(map(short, cycle))}")
        print(f"  {len(cycles) or 'no'} cycle{'s' if len(cycles) > 1 else ''}\n")
        found |= bool(cycles)
    return int(found)


def describe(targets: Counter[str]) -> Iterator[str]:
    """Yield the targets of a node by name, with their number where it is more than one."""
    for target, number in sorted(targets.items()):
        yield f"{short(target)} ({number})" if number > 1 else short(target)


def short(node: str) -> str:
    """Return the name of a node without the name of the package."""
    return node.removeprefix(f"{PACKAGE}.")


def folder_graph() -> Graph:
    """Return how often the files of each folder of cpp/ include files of each other folder."""
    graph: Graph = {folder.name: Counter() for folder in CPP.iterdir() if folder.is_dir()}
    for path in sorted((*CPP.rglob("*.h"), *CPP.rglob("*.cc"))):
        folder = path.relative_to(CPP).parts[0]
        graph[folder].update(
            other for other in INCLUDE.findall(path.read_text()) if other != folder
        )
    return graph


def module_graph() -> Graph:
    """Return which modules of the package, `_core` included, each module imports at import."""
    paths = {module_name(path): path for path in sorted((SRC / PACKAGE).rglob("*.py"))}
    return {
        name: Counter(imported(name, path, {*paths, COMPILED}) - {name})
        for name, path in paths.items()
    }


def module_name(path: Path) -> str:
    """Return the dotted name of a module; that of a package for its `__init__.py`."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(name: str, path: Path, known: set[str]) -> set[str]:
    """Return the modules among the known ones that a module imports at import time."""
    found: set[str] = set()
    for node in runs_at_import(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = absolute(name, path, node)
            # `from package import module` imports the module; of other names it is the base
            inner = [f"{base}.{alias.name}" for alias in node.names]
            targets = [each if each in known else base for each in inner]
        else:
            continue
        found.update(target for target in targets if target in known)
    return found


def absolute(name: str, path: Path, node: ast.ImportFrom) -> str:
    """Return the module that a `from ... import` names, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    depth = node.level - (path.name == "__init__.py")
    parts = name.split(".")
    base = parts[: len(parts) - depth]
    return ".".join([*base, node.module] if node.module else base)


def runs_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module does: not functions, not TYPE_CHECKING."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from runs_at_import(node.orelse)
            continue
        yield node
        for inner in ("body", "orelse", "finalbody"):
            yield from runs_at_import(getattr(node, inner, []))
        for handler in getattr(node, "handlers", []):
            yield from runs_at_import(handler.body)


def find_cycles(graph: Graph) -> Iterator[list[str]]:
    """Yield one cycle after another, each without the edge that closes the one before it."""
    left = {node: set(targets) for node, targets in graph.items()}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            cycle = error.args[1][::-1]  # graphlib lists predecessors
            yield cycle
            left[cycle[0]].discard(cycle[1])
        else:
            return


if __name__ == "__main__":
    sys.exit(main())
