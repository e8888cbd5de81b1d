"""Mark the cells of tables that contain a number, so that the style keeps them on one line."""

import re

from docutils import nodes
from sphinx.application import Sphinx

NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?( ([%s]|us|ns|ms|mm))?")


def mark(app: Sphinx, doctree: nodes.document) -> None:
    """Give the class `number` to cells that contain nothing but a number and perhaps a unit."""
    for cell in doctree.findall(nodes.entry):
        if NUMBER.fullmatch(cell.astext().strip()):
            cell["classes"].append("number")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the marks."""
    app.connect("doctree-read", mark)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
