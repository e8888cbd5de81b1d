"""Translate what GitHub's Markdown and MyST write differently, when Sphinx reads a page.

The pages of this project are read on GitHub as well as on the site. There are three differences:

- GitHub writes formulas within a line as dollar, backtick, formula, backtick, dollar.
- Links on GitHub lead to any file of the repository. On the site, a file has a page of its own, or
  the link leads to the repository.
- A comment that begins with `site:` is a part of the page on the site only, such as a table of
  contents.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FORMULA = re.compile(r"\$`([^`]+)`\$")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(?=[)#])")
COMMENT = re.compile(r"^<!-- site:\n(.*?)^-->$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"(^ *```.*?^ *```)", re.MULTILINE | re.DOTALL)

# files outside of docs/ that are pages of the site
PAGES = {
    "README.md": "docs/index.md",
    "CHANGELOG.md": "docs/changelog.md",
    "CONTRIBUTING.md": "docs/contributing.md",
}


def translate(text: str, source: PurePosixPath, page: PurePosixPath, repository: str) -> str:
    """Return the text of the file `source` as a part of `page`; paths are in the repository."""

    def link(match: re.Match[str]) -> str:
        target = os.path.normpath(source.parent / match[1])
        target = PAGES.get(target, target)
        if target.startswith("notebooks/"):
            target = f"docs/{target}"  # a copy
        if not target.startswith("docs/"):
            return f"{repository}/blob/main/{target}"
        return os.path.relpath(target, page.parent)

    parts = FENCE.split(COMMENT.sub(r"\1", text))
    parts[::2] = [LINK.sub(link, FORMULA.sub(r"$\1$", part)) for part in parts[::2]]
    return "".join(parts)


def read_page(app: Sphinx, docname: str, content: list[str]) -> None:
    """Translate a page."""
    path = Path(app.env.doc2path(docname, base=False))
    if path.suffix == ".md":
        page = PurePosixPath("docs") / path.as_posix()
        content[0] = translate(content[0], page, page, app.config.repository)


def read_included(app: Sphinx, relative_path: Path, parent: str, content: list[str]) -> None:
    """Translate a file that a page of docs/ includes."""
    source = PurePosixPath(os.path.normpath(PurePosixPath("docs") / relative_path.as_posix()))
    page = PurePosixPath("docs") / f"{parent}.md"
    content[0] = translate(content[0], source, page, app.config.repository)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the translation."""
    app.add_config_value("repository", "", "env", types=[str])
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
