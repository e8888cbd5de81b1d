"""Configuration of the documentation site, which `make docs` builds into build/html."""

import shutil
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

from sphinx.ext.autodoc.mock import _MockObject

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
URLS = PROJECT.get("urls", {})
sys.path.insert(0, str(ROOT / "docs" / "extensions"))

# Sphinx reads only pages in its own folder
shutil.rmtree(ROOT / "docs" / "notebooks", ignore_errors=True)
shutil.copytree(ROOT / "notebooks", ROOT / "docs" / "notebooks")

project = PROJECT["name"]
author = PROJECT["authors"][0]["name"]
release = version = PROJECT["version"]
project_copyright = author

extensions = [
    "equations",
    "github_markdown",
    "markdown_docstrings",
    "myst_nb",
    "numeric_cells",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["extensions"]

# Markdown as GitHub reads it
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 4
nb_execution_mode = "off"
repository = URLS.get("Homepage", "https://github.com/mujacobian/mujacobian")

# the reference: docstrings with single backticks, as in Markdown
default_role = "py:obj"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_type_aliases = {name: name for name in ("Array", "ArrayLike", "Tensors")}
python_use_unqualified_type_names = True
# Packages that do not fit into one environment with the others are mocked. Newton's joint types are
# enumerations, which mujacobian.newton converts to numbers.
autodoc_mock_imports = [
    name for name in ("crocoddyl", "newton", "ray", "warp") if not find_spec(name)
]
_MockObject.__int__ = lambda self: 0

# the pages
html_theme = "furo"
html_baseurl = URLS.get("Documentation", "")
html_title = f"{project} {version}"
html_static_path = ["static", "../build/mathjax/static"]
html_css_files = ["site.css"]
pygments_dark_style = "github-dark"
html_theme_options = {
    "source_repository": repository,
    "source_branch": "main",
    "source_directory": "docs/",
}
copybutton_exclude = ".linenos, .gp, .go"

# MathJax and its fonts are part of the site, which therefore works without a network
mathjax_path = "mathjax/tex-chtml.js"
mathjax_config_path = "mathjax.js"
