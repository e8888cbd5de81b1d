"""Read docstrings as Markdown does, where reStructuredText would read something else."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

BLOCK = re.compile(r" {4,}\S")
SECTION = re.compile(r"\w+:")
BAR = re.compile(r"\|(?=[^`]*(?:`[^`]*`[^`]*)*$)")  # outside of backticks
SUFFIX = re.compile(r"(`[^`]+`)(?=\w)")


def translate(
    app: Sphinx, kind: str, name: str, documented: object, options: object, lines: list[str]
) -> None:
    """Keep indented blocks as they are, instead of quoting them; keep bars; allow `Name`s."""
    if lines[0].startswith(name.rpartition(".")[2] + "("):
        del lines[0]  # the signature of a compiled function, which the page states
    translated: list[str] = []
    section, literal = "", False
    for before, line in pairwise(["", *lines]):
        if line and not line.startswith(" "):
            section = line if SECTION.fullmatch(line) else ""
            literal = section == "Example:"
        elif not section and not literal and not before and BLOCK.match(line):
            translated += ["::", ""]
            literal = True
        translated.append(line if literal else SUFFIX.sub(r"\1\\ ", BAR.sub(r"\\|", line)))
    lines[:] = translated


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the translation, before napoleon reads the sections."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", translate, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
