"""Print the requirements of parts of pyproject.toml: requirements.py build|run|EXTRA ..."""

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def requirements(part: str, table: dict[str, Any]) -> list[str]:
    """Return the requirements of one part; extras that name the project itself are unfolded."""
    project = table["project"]
    if part == "build":
        return table["build-system"]["requires"]
    if part == "run":
        return project["dependencies"]
    extras = project["optional-dependencies"]
    if part not in extras:
        raise SystemExit(f"no extra '{part}' in {PROJECT}; there are {', '.join(extras)}")
    result = []
    for line in extras[part]:
        own = re.fullmatch(rf"{project['name']}\[(.*)\]", line)
        if own is None:
            result.append(line)
            continue
        for name in own[1].split(","):
            result += requirements(name.strip(), table)
    return result


def main(parts: list[str]) -> None:
    """Print one requirement per line, each once."""
    table = tomllib.loads(PROJECT.read_text())
    lines = [line for part in parts for line in requirements(part, table)]
    print("\n".join(dict.fromkeys(lines)))


if __name__ == "__main__":
    main(sys.argv[1:])
