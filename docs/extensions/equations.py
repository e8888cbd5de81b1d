r"""Labels of equations, such as (ID-8): where they are defined, and links from their citations.

A displayed equation has its label in `\tag{ID-8}`. A statement in the text ends with its label in
bold. Every other place that names the label becomes a link.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import make_refnode

LABEL = re.compile(r"\b[A-Z]{2,}-\d+[a-z]?\b")
TAG = re.compile(rf"\\tag\{{({LABEL.pattern})\}}")
STATEMENT = re.compile(rf"\(({LABEL.pattern})\)")
# nodes whose text is no citation
OPAQUE = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.reference)


class Definitions(SphinxTransform):
    """Give anchors to the equations of a page, and their own delimiters to displayed ones."""

    default_priority = 700

    def apply(self) -> None:
        """Register every label of the page as a target of the standard domain."""
        for block in self.document.findall(nodes.math_block):
            for label in TAG.findall(block.astext()):
                self.define(label, block)
            # Sphinx would wrap several lines into an environment that admits no tags
            block["no-wrap"] = True
            block[:] = [nodes.Text(rf"\[{block.astext()}\]")]
        for strong in self.document.findall(nodes.strong):
            if statement := STATEMENT.fullmatch(strong.astext()):
                self.define(statement[1], strong)

    def define(self, label: str, node: nodes.Element) -> None:
        """Make the node the target of a label."""
        anchor = label.lower()
        node["ids"].append(anchor)
        domain = self.env.domains.standard_domain
        domain.note_hyperlink_target(anchor, self.env.docname, anchor, label)


def link_citations(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Turn every label in a text into a link to its definition."""
    labels = app.env.domains.standard_domain.labels
    for text in list(doctree.findall(nodes.Text)):
        if any(isinstance(parent, OPAQUE) or is_statement(parent) for parent in ancestors(text)):
            continue
        pieces: list[nodes.Node] = []
        end = 0
        for label in LABEL.finditer(text):
            if (place := labels.get(label[0].lower())) is None:
                continue
            page, anchor, _ = place
            pieces += [
                nodes.Text(text[end : label.start()]),
                make_refnode(app.builder, docname, page, anchor, nodes.Text(label[0])),
            ]
            end = label.end()
        if pieces:
            text.parent.replace(text, [*pieces, nodes.Text(text[end:])])


def is_statement(node: nodes.Node) -> bool:
    """Return whether the node is the bold label of a statement."""
    return isinstance(node, nodes.strong) and STATEMENT.fullmatch(node.astext()) is not None


def ancestors(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield the nodes around a node, innermost first."""
    while node.parent is not None:
        node = node.parent
        yield node


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the labels and the links."""
    app.add_transform(Definitions)
    app.connect("doctree-resolved", link_citations)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
